"""The bootstrap of a ranking draws whole items, and covers where nothing varies too."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.voting.bootstrap import DOUBT, TWINS, draw, replicate
from clash.stats.voting.rankings import ranking_array, with_twins
from clash.stats.voting.rules import RANKING_RULES, PairwiseTable

FAST = ("borda", "majority", "bradley-terry", "plackett-luce")


def replicates_of(rankings, name, rng, n=1000, doubt=DOUBT, twins=TWINS):
    tally = PairwiseTable.of(with_twins(rankings, twins, rng), rankings.n_clusters)
    weights = draw(rankings.n_clusters, twins, n, rng, doubt)
    return replicate(RANKING_RULES[name](tally), weights)


def rankings_of(rng, n_items, theta, judges=3, shared_noise=1.0, grid=0.0):
    """Rankings by strengths with noise, part of which all judges of an item share."""
    k, items = len(theta), np.repeat(np.arange(n_items), judges)
    taste = shared_noise * rng.gumbel(size=(n_items, k))
    worth = np.asarray(theta) + taste[items] + rng.gumbel(size=(len(items), k))
    return ranking_array(-np.round(worth / grid) if grid else -worth, items=items)


def test_every_replicate_holds_as_many_clusters_and_the_twins_that_doubt_asks_for():
    weights = draw(20, 50, 4000, np.random.default_rng(0))
    assert weights.shape == (4000, 70)
    assert np.all(weights.sum(axis=1) == 20)
    assert weights[:, 20:].sum(axis=1).mean() == pytest.approx(20 * 2 / 22, rel=0.05)
    assert not draw(20, 50, 10, np.random.default_rng(0), doubt=0)[:, 20:].any()


def test_items_that_one_candidate_won_leave_the_doubt_of_a_few_tosses():
    """Its share in a replicate is 1 less a binomial of doubt's twins, half of them lost."""
    from scipy.stats import binom

    draws = replicates_of(ranking_array([[1, 2]] * 10), "borda", np.random.default_rng(1), 4000)
    loss_distribution = binom(10, 1 / 12)
    low, high = draws.score_interval(0.95)
    assert (low[0], high[0]) == (1 - loss_distribution.ppf(0.975) / 10, 1)
    assert draws.first()[0] == pytest.approx(
        loss_distribution.cdf(4) + loss_distribution.pmf(5) / 2, abs=0.01
    )
    plain = replicates_of(ranking_array([[1, 2]] * 10), "borda", np.random.default_rng(1), doubt=0)
    assert plain.score_interval(0.95)[0][0] == 1


def test_ballots_of_one_item_are_drawn_together():
    rng = np.random.default_rng(0)
    wins = np.repeat(rng.random(60) < 0.6, 9)
    ranks = np.stack([1 - wins, wins], axis=1).astype(float)
    spread = {}
    for name, items in (("items", np.repeat(np.arange(60), 9)), ("ballots", np.arange(540))):
        draws = replicates_of(
            ranking_array(ranks, items=items), "bradley-terry", np.random.default_rng(1), 400
        )
        spread[name] = draws.scores[:, 0].std()
    assert spread["items"] / spread["ballots"] == pytest.approx(3, rel=0.25)


def test_a_candidate_that_never_wins_has_a_finite_strength_and_a_wide_interval():
    ranks = [[1, 2, 3], [2, 1, 3]] * 8
    draws = replicates_of(ranking_array(ranks), "bradley-terry", np.random.default_rng(2))
    low, high = draws.score_interval(0.95)
    assert np.all(np.isfinite(draws.scores))
    assert high[2] - low[2] > 1.5
    assert draws.ahead()[2, 0] < 0.01


def test_what_is_never_apart_is_a_tie_in_every_replicate():
    draws = replicates_of(ranking_array([[1, 1]] * 8), "copeland", np.random.default_rng(3), 100)
    assert np.all(draws.places == 1)
    assert draws.first() == pytest.approx([0.5, 0.5])
    assert draws.ahead()[0, 1] == 0.5


def test_the_same_seed_gives_the_same_replicates():
    run = rankings_of(np.random.default_rng(0), 12, (1, 0, -1))
    draws, other_draws = (
        replicates_of(run, "kemeny", np.random.default_rng(7), 50) for _ in range(2)
    )
    assert np.array_equal(draws.scores, other_draws.scores)


def test_a_rare_candidate_is_absent_from_some_replicates_and_takes_nothing_from_the_others():
    ranks = [[1, 2, np.nan], [2, 1, np.nan]] * 10 + [[np.nan, 2, 1]]
    draws = replicates_of(ranking_array(ranks), "borda", np.random.default_rng(4))
    absent = np.isnan(draws.scores[:, 2])
    assert 0.2 < absent.mean() < 0.5
    assert np.all(draws.places[absent, 2] == 0)
    assert not np.isnan(draws.scores[:, :2]).any()
    assert draws.first().sum() == pytest.approx(1)


def test_one_item_shows_no_variation():
    with pytest.raises(StatisticsError, match="at least two"):
        draw(1, 10, 10, np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theta", "grid", "plain_fails"),
    [((2.5, -2.5), 0, True), ((3, 0, 0, -3), 0, True), ((0.5, 0.2, -0.2, -0.5), 1.5, False)],
)
def test_intervals_cover_the_truth(theta, grid, plain_fails):
    """Ten items, three judges that share half of their noise; the truth by 20,000 items.

    In all 8 x 4 cells measured (10 and 30 items, doubt 1 and 2) coverage lies in 0.85 to 1; the
    plain bootstrap covers a share near 1 in 0.11 to 0.59 of the simulations.
    """
    large = PairwiseTable.of(rankings_of(np.random.default_rng(99), 20_000, theta, grid=grid))
    truth = {name: RANKING_RULES[name](large).scores(large.own_weights())[0] for name in FAST}
    runs, rng = 120, np.random.default_rng(1)
    hits = {(name, doubt): np.zeros(len(theta)) for name in FAST for doubt in (0.0, DOUBT)}
    for _ in range(runs):
        run = rankings_of(rng, 10, theta, grid=grid)
        tally = PairwiseTable.of(with_twins(run, 100, rng), 10)
        for (name, doubt), n_counted in hits.items():
            replicates = replicate(RANKING_RULES[name](tally), draw(10, 100, 200, rng, doubt))
            low, high = replicates.score_interval(0.95)
            n_counted += (low <= truth[name] + 1e-9) & (truth[name] <= high + 1e-9)
    for name in FAST:
        assert hits[name, DOUBT].min() / runs > 0.86, name
    worst = min(hits[name, 0.0].min() for name in FAST) / runs
    assert (worst < 0.6) == plain_fails


@pytest.mark.slow
def test_the_chance_of_being_first_comes_true_where_candidates_differ():
    """Strengths of spread 1, ten items: what is first in 86% of the replicates is in 89% of cases.

    Of candidates that hardly differ (spread 0.3) it says too much, 84% for 69%: it knows no prior
    by which the best of equals is partly luck.
    """
    rng, estimates, best = np.random.default_rng(0), [], []
    for _ in range(250):
        theta = rng.normal(size=3)
        run = rankings_of(rng, 10, theta)
        estimates.append(replicates_of(run, "borda", rng, 200, twins=100).first())
        best.append(np.arange(3) == theta.argmax())
    p, y = np.ravel(estimates), np.ravel(best)
    for low, high in ((0, 0.25), (0.25, 0.75), (0.75, 1.01)):
        inside = (p >= low) & (p < high)
        assert inside.sum() > 100
        assert p[inside].mean() == pytest.approx(y[inside].mean(), abs=0.08)
