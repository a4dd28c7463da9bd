"""A share from few labels and many judgments: what it covers, and that labels alone are no better."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from clash.errors import StatisticsError
from clash.stats.choice import PRIOR_GAMES, StrengthSample
from clash.stats.intervals import wilson, wilson_clustered
from clash.stats.selection.corrected_share import corrected_share
from clash.stats.selection.corrected_strengths import corrected_strengths
from clash.stats.selection.sample_design import SampleDesign
from clash.stats.selection.vote_regression import cross_fit
from clash.stats.voting.bradley_terry import Comparisons, bradley_terry


def people_and_panel(rng, n, share=0.6, skill=0.85, bias=0.0):
    """Labels of all rows, and the share of three judges that says the same."""
    truth = (rng.random(n) < share).astype(float)
    is_right = rng.random((n, 3)) < skill
    votes = np.where(is_right, truth[:, None], 1 - truth[:, None])
    votes = np.where(rng.random((n, 3)) < bias, 1.0, votes)
    return truth, votes.mean(axis=1)


def some(labels, rows):
    known_labels = np.full(len(labels), np.nan)
    known_labels[rows] = labels[rows]
    return known_labels


@pytest.mark.parametrize("n", [10, 50])
@pytest.mark.parametrize("n_drawn", [False, True])
def test_it_covers_what_people_prefer_and_is_never_wider_than_their_labels(n, n_drawn):
    rng = np.random.default_rng(n + n_drawn)
    is_covered, widths = [], []
    for _ in range(250):
        labels, panel = people_and_panel(rng, 200, bias=0.2)
        rates = np.where((panel > 0) & (panel < 1), 2.0, 1.0) if n_drawn else np.ones(200)
        keys = rng.random(200) / rates
        order = np.argsort(keys)
        chances = np.minimum(1, rates * keys[order[n]]) if n_drawn else None
        share = corrected_share(some(labels, order[:n]), panel, SampleDesign(chances=chances))
        is_covered.append(share.interval.low <= 0.6 <= share.interval.high)
        widths.append(share.interval.half_width / share.labels_only.half_width)
        assert 0 <= share.always_valid.low < share.interval.low
        assert share.interval.high < share.always_valid.high <= 1
    # 0.95 less 3 standard errors of 250.
    assert np.mean(is_covered) > 0.91
    assert max(widths) <= 1
    assert np.mean(widths) < 0.9


def test_unequal_chances_are_undone():
    """Rows that people like are drawn three times as often; without their chances, that shows."""
    rng = np.random.default_rng(1)
    labels, panel = people_and_panel(rng, 4000, share=0.5)
    chances = np.where(panel > 0.5, 0.3, 0.1)
    subset = some(labels, rng.random(4000) < chances)
    noise = np.full(4000, 0.5)
    weighted_share, plain = (
        corrected_share(subset, noise, SampleDesign(chances=chances)),
        corrected_share(subset, noise),
    )
    assert abs(weighted_share.interval.estimate - labels.mean()) < 0.04
    assert plain.interval.estimate > 0.6
    strata = corrected_share(subset, noise, SampleDesign(strata=(panel > 0.5).astype(int)))
    assert abs(strata.interval.estimate - labels.mean()) < 0.04


def test_a_panel_that_knows_nothing_or_nothing_new_leaves_the_labels_alone():
    rng = np.random.default_rng(2)
    labels, panel = people_and_panel(rng, 60)
    constant = corrected_share(some(labels, np.arange(30)), np.full(60, 0.5))
    assert constant.interval == constant.labels_only == wilson_clustered(labels[:30], range(30))
    everything = corrected_share(labels, panel)
    assert everything.interval == everything.labels_only
    assert everything.power == 0
    alike = corrected_share(some(np.ones(60), np.arange(12)), panel)
    assert alike.interval == alike.labels_only
    few = corrected_share(some(labels, np.arange(9)), panel)
    assert few.interval == few.labels_only
    assert (few.always_valid.low, few.always_valid.high) == (0, 1)


def test_a_stratum_whose_labels_are_all_the_same_proves_nothing():
    """Five labels speak for the unanimous rows, which are nine of ten."""
    rng = np.random.default_rng(13)
    is_covered = []
    for _ in range(150):
        labels, panel = people_and_panel(rng, 400, share=0.7, skill=0.95)
        is_sure = (panel == 0) | (panel == 1)
        rows = [rng.permutation(np.flatnonzero(is_sure == s))[:n] for s, n in ((1, 5), (0, 20))]
        subset = some(labels, np.concatenate(rows))
        share = corrected_share(subset, panel, SampleDesign(strata=is_sure.astype(int)))
        is_covered.append(share.interval.low <= 0.7 <= share.interval.high)
    assert np.mean(is_covered) > 0.9


@pytest.mark.parametrize(("n_rare", "least", "most"), [(1, 0.8, 1.0), (5, 0.4, 0.75)])
def test_what_a_panel_saves_is_doubted_where_one_kind_of_label_is_rare(n_rare, least, most):
    """A panel that agrees with each of 20 labels, one of them of the rarer kind or five."""
    labels = np.arange(400) % 20 >= n_rare
    panel = np.where(labels, 0.9, 0.1)
    share = corrected_share(some(labels.astype(float), np.arange(20)), panel)
    assert least < share.interval.half_width / share.labels_only.half_width < most


def test_copies_of_a_row_are_not_taken_for_evidence():
    rng = np.random.default_rng(3)
    labels, panel = people_and_panel(rng, 100)
    once = corrected_share(some(labels, np.arange(30)), panel)
    copies = corrected_share(
        np.repeat(some(labels, np.arange(30)), 4),
        np.repeat(panel, 4),
        SampleDesign(np.repeat(np.arange(100), 4)),
    )
    assert copies.interval.half_width == pytest.approx(once.interval.half_width, rel=0.05)


def unequal_judges(rng, n, share=0.6, skill=(0.9, 0.5, 0.2)):
    """Labels, and the votes of an expert, a coin and one that mostly inverts the truth."""
    truth = (rng.random(n) < share).astype(float)
    return truth, np.where(rng.random((n, len(skill))) < skill, truth[:, None], 1 - truth[:, None])


@pytest.mark.parametrize(("n", "most"), [(10, 1.0), (50, 0.9)])
def test_each_judges_vote_tells_more_than_their_mean_where_judges_differ(n, most):
    rng = np.random.default_rng(n)
    is_covered, widths = [], []
    for _ in range(200):
        labels, votes = unequal_judges(rng, 200)
        order = rng.permutation(200)
        subset = some(labels, order[:n])
        share = corrected_share(subset, votes.mean(axis=1), votes=votes)
        by_mean = corrected_share(subset, votes.mean(axis=1))
        is_covered.append(share.interval.low <= 0.6 <= share.interval.high)
        widths.append(share.interval.half_width / by_mean.interval.half_width)
        assert share.interval.half_width <= share.labels_only.half_width
    assert np.mean(is_covered) > 0.91
    assert max(widths) <= 1
    assert np.mean(widths) < most


def test_with_many_labels_the_regression_is_least_squares():
    rng = np.random.default_rng(8)
    labels, votes = unequal_judges(rng, 20_000)
    weights = np.full(20_000, 1 / 20_000)
    fit = cross_fit(labels, votes.mean(axis=1), votes, weights, np.arange(20_000))
    columns = np.column_stack([np.ones(20_000), votes])
    residual_free = columns @ np.linalg.lstsq(columns, labels, rcond=None)[0]
    np.testing.assert_allclose(fit.everywhere, residual_free, atol=2e-3)
    np.testing.assert_allclose(fit.held_out, residual_free, atol=2e-2)


@pytest.mark.parametrize(
    "votes",
    [
        np.full((60, 3), np.nan),
        np.full((60, 2), 0.5),
        np.random.default_rng(9).integers(0, 2, (60, 90)).astype(float),
    ],
    ids=["silent", "constant", "more judges than labels"],
)
def test_votes_that_say_nothing_cost_nothing(votes):
    labels, panel = people_and_panel(np.random.default_rng(10), 60)
    subset = some(labels, np.arange(12))
    share, by_mean = corrected_share(subset, panel, votes=votes), corrected_share(subset, panel)
    assert share.interval.half_width <= by_mean.interval.half_width
    assert np.isfinite([share.interval.low, share.interval.high]).all()


def test_copies_of_a_row_share_a_fold():
    """Else a fit would see the label that it predicts."""
    rng = np.random.default_rng(11)
    labels, votes = (rng.random(100) < 0.5).astype(float), rng.random((100, 60))
    subset = some(labels, np.arange(40))
    once = corrected_share(subset, np.full(100, 0.5), votes=votes)
    copies = corrected_share(
        np.repeat(subset, 5),
        np.full(500, 0.5),
        SampleDesign(np.repeat(np.arange(100), 5)),
        votes=np.repeat(votes, 5, axis=0),
    )
    assert copies.interval.half_width == pytest.approx(once.interval.half_width, rel=0.05)


def test_what_is_no_share_is_refused():
    with pytest.raises(StatisticsError, match="needs a label"):
        corrected_share([np.nan, np.nan], [0.5, 0.5])
    with pytest.raises(StatisticsError, match=r"lies in \[0, 1\]"):
        corrected_share([2.0, np.nan], [0.5, 0.5])
    with pytest.raises(StatisticsError, match="chance above 0"):
        corrected_share([1.0, np.nan], [0.5, 0.5], SampleDesign(chances=[0.0, 1.0]))
    with pytest.raises(StatisticsError, match="stratum has no label"):
        corrected_share([1.0, np.nan], [0.5, 0.5], SampleDesign(strata=[0, 1]))
    with pytest.raises(StatisticsError, match=r"votes of shape \(2,\)"):
        corrected_share([1.0, np.nan], [0.5, 0.5], votes=[0.5, 0.5])


def test_a_review_that_stops_when_it_likes_errs_at_most_as_often_as_it_says():
    """Two candidates that people prefer equally; each stop that names one is an error."""
    rng = np.random.default_rng(4)
    n_errors, n_runs = 0, 60
    for _ in range(n_runs):
        labels, votes = unequal_judges(rng, 120, share=0.5)
        order = rng.permutation(120)
        for n in range(10, 100, 3):
            subset = some(labels, order[:n])
            always_valid = corrected_share(subset, votes.mean(axis=1), votes=votes).always_valid
            if always_valid.excludes(0.5):
                n_errors += 1
                break
    assert n_errors <= 6  # 5% of 60 are 3; 7 or more once in 30


PAIRS = [(0, 1), (0, 2), (1, 2)]


def holds(fit, strength):
    """Of each candidate, whether the interval of its strength has the true one."""
    return [
        line.low <= value <= line.high for line, value in zip(fit.strengths, strength, strict=True)
    ]


def test_strengths_without_a_panel_are_those_of_bradley_and_terry():
    rng = np.random.default_rng(5)
    strength = np.array([0.8, 0.0, -0.8])
    gaps = np.array([strength[i] - strength[j] for i, j in PAIRS])
    outcomes = (rng.random((400, 3)) < 1 / (1 + np.exp(-gaps))).astype(float)
    strengths = corrected_strengths(outcomes, np.full((400, 3), 0.5), PAIRS, 3)
    wins = np.zeros((3, 3))
    for (i, j), column in zip(PAIRS, outcomes.T, strict=True):
        wins[i, j], wins[j, i] = column.sum(), (1 - column).sum()
    other_theta = bradley_terry(Comparisons(wins, np.zeros((3, 3))), prior=0.0, ties="half").theta
    estimates = np.array([line.estimate for line in strengths.strengths])
    np.testing.assert_allclose(estimates, other_theta - other_theta.mean(), atol=0.01)
    assert strengths.converged
    assert strengths.power == 0


def test_a_panel_makes_strengths_more_precise_and_its_bias_does_not_move_them():
    rng = np.random.default_rng(6)
    strength = np.array([0.6, 0.0, -0.6])
    is_covered, ratio = [], []
    for _ in range(60):
        utility = strength + rng.gumbel(size=(300, 3))
        observed_utility = utility + 0.5 * rng.gumbel(size=(300, 3)) + np.array([0, 0.4, 0])
        labels, panel = (
            np.column_stack([u[:, i] > u[:, j] for i, j in PAIRS]).astype(float)
            for u in (utility, observed_utility)
        )
        labels[60:] = np.nan
        strengths = corrected_strengths(labels, panel, PAIRS, 3)
        alone = corrected_strengths(labels, np.full((300, 3), 0.5), PAIRS, 3)
        is_covered += holds(strengths, strength)
        ratio.append(strengths.win_rates[0].half_width / alone.win_rates[0].half_width)
    assert np.mean(is_covered) > 0.9
    assert np.mean(ratio) < 0.9


@pytest.mark.parametrize("sees_winner_only", [False, True])
def test_strengths_use_each_judges_vote_where_judges_differ(sees_winner_only):
    """A good judge, a coin and one that mostly inverts the order."""
    rng = np.random.default_rng(7)
    strength = np.array([0.6, 0.0, -0.6])
    is_covered, ratio = [], []
    for _ in range(40):
        utility = strength + rng.gumbel(size=(300, 3))
        observed_utility = np.stack([utility, 0 * utility, -utility]) + [
            [[0.3]],
            [[1.0]],
            [[0.7]],
        ] * rng.gumbel(size=(3, 300, 3))
        first, second = np.array(PAIRS).T
        labels = (utility[:, first] > utility[:, second]).astype(float)
        votes = np.moveaxis(
            observed_utility[..., first] > observed_utility[..., second], 0, 2
        ).astype(float)
        if sees_winner_only:
            best = utility.argmax(axis=1)[:, None]
            labels[(first != best) & (second != best)] = np.nan
        labels[50:] = np.nan
        panel = votes.mean(axis=2)
        strengths = corrected_strengths(labels, panel, PAIRS, 3, votes=votes)
        by_mean = corrected_strengths(labels, panel, PAIRS, 3)
        is_covered += holds(strengths, strength)
        ratio.append(strengths.win_rates[0].half_width / by_mean.win_rates[0].half_width)
    assert np.mean(is_covered) > 0.9
    assert np.mean(ratio) < 0.85


def test_a_candidate_that_always_wins_has_a_finite_strength():
    strengths = corrected_strengths(np.ones((12, 1)), np.full((12, 1), 0.5), [(0, 1)], 2)
    assert all(np.isfinite([line.low, line.high]).all() for line in strengths.strengths)
    assert strengths.win_rates[0].high <= 1
    with pytest.raises(StatisticsError, match="need a label"):
        corrected_strengths(np.full((3, 1), np.nan), np.full((3, 1), 0.5), [(0, 1)], 2)


def test_strengths_of_candidates_that_nearly_always_win_or_lose_cover():
    """Twenty labels hold one upset or none, and the panel's errors on the others are not seen."""
    theta, is_covered = np.array([2.5, 0.0, -2.5]), []
    first, second = np.array(PAIRS).T
    p = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    best = (p[0].sum() - 0.5) / 2
    for seed in range(80):
        rng = np.random.default_rng([12, seed])
        worth = theta + rng.gumbel(size=(300, 3))
        observed_utility = 0.9 * worth[:, :, None] + 0.2 * rng.gumbel(size=(300, 3, 3))
        people = (worth[:, first] > worth[:, second]).astype(float)
        votes = (observed_utility[:, first] > observed_utility[:, second]).astype(float)
        labels = np.where(np.arange(300)[:, None] < 20, people, np.nan)
        fit = corrected_strengths(labels, votes.mean(axis=2), PAIRS, 3, votes=votes)
        is_covered.append(fit.win_rates[0].low <= best <= fit.win_rates[0].high)
    assert np.mean(is_covered) > 0.9


def upsets(of_first, of_second, n=20):
    """Labels of n rows: the second beat the first so often, the third the second so often."""
    labels = np.ones((n, 3))
    labels[:of_first, 0], labels[n - of_second :, 2] = 0.0, 0.0
    return labels


def score_distance(labels, rate):
    """Standard errors of the middle one's win rate, by a general optimiser, phantom games included."""
    sides = np.array([[1, -1, 0], [1, 0, -1], [0, 1, -1]], float)
    wins, n = labels.sum(axis=0), len(labels)

    def loss(theta):
        odds = sides @ theta
        phantom = np.logaddexp(0, theta) - theta / 2
        return float((n * np.logaddexp(0, odds) - wins * odds).sum() + PRIOR_GAMES * phantom.sum())

    def rate_gap(theta):
        return (expit(theta[1] - theta[0]) + expit(theta[1] - theta[2])) / 2 - rate

    theta = minimize(
        loss,
        np.array([2.0, 0.0, -2.0]),
        method="SLSQP",
        constraints={"type": "eq", "fun": rate_gap},
        options={"ftol": 1e-12, "maxiter": 500},
    ).x
    p, q = expit(sides @ theta), expit(theta)
    score = sides.T @ (wins - n * p) + PRIOR_GAMES * (0.5 - q)
    information = sides.T @ (sides * (n * p * (1 - p))[:, None])
    information += np.diag(PRIOR_GAMES * q * (1 - q))
    return float(np.sqrt(score @ np.linalg.solve(information, score)))


def test_three_upsets_on_one_side_do_not_say_that_the_middle_one_is_no_middle():
    """Three of three are no proof against a half; both ends are as far from the estimate."""
    labels = upsets(3, 0)
    table = np.vstack([labels, np.full((40, 3), np.nan)])
    middle = corrected_strengths(table, np.full((60, 3), 0.5), PAIRS, 3).win_rates[1]
    assert middle.low < 0.5 < middle.estimate
    at_low, at_high = (score_distance(labels, end) for end in (middle.low, middle.high))
    assert at_low == pytest.approx(at_high, rel=0.01)
    assert at_low > 1.96


@pytest.mark.parametrize("k", [3, 4, 8])
def test_labels_that_are_all_alike_leave_strengths_unsure(k):
    """Twenty people with one order: nothing varies, which is no proof that nothing can."""
    pairs = list(combinations(range(k), 2))
    labels = np.where(np.arange(200)[:, None] < 20, np.ones(len(pairs)), np.nan)
    fit = corrected_strengths(labels, np.full(labels.shape, 0.5), pairs, k)
    # The first won each of 20 (k - 1) games: at least as unsure as of so many independent ones.
    assert fit.win_rates[0].low <= wilson(20 * (k - 1), 20 * (k - 1)).low + 0.02
    for line in fit.win_rates:
        assert 0 <= line.low < line.estimate < line.high <= 1
        assert line.n_effective < 20 * 200
    assert all(line.high - line.low > 0.5 for line in fit.strengths)
    draws = StrengthSample(np.zeros(k), fit.influence).shares(
        np.random.default_rng(1).exponential(size=(500, 200))
    )
    assert draws[:, 0, 1].std() > 0.005


def test_of_two_candidates_the_rate_is_that_of_wilson():
    labels = np.array([[1.0]] * 38 + [[0.0]] * 2)
    fit = corrected_strengths(labels, np.full((40, 1), 0.5), [(0, 1)], 2)
    by_hand = wilson(38.25, 40.5)
    assert fit.win_rates[0].low == pytest.approx(by_hand.low, abs=0.02)
    assert fit.win_rates[0].high == pytest.approx(by_hand.high, abs=0.01)


def test_a_panel_that_asks_for_more_wins_than_games_leaves_the_labels_alone():
    """By its votes the first loses all labelled rows, and wins all others."""
    is_labelled = np.arange(400) < 20
    labels = np.where(
        is_labelled[:, None], np.random.default_rng(3).random((400, 3)) < 0.97, np.nan
    )
    panel = np.where(is_labelled[:, None], 0.0, 1.0) * np.ones(3)
    fit = corrected_strengths(labels, panel, PAIRS, 3, votes=np.stack([panel] * 2, axis=2))
    alone = corrected_strengths(labels, np.full((400, 3), 0.5), PAIRS, 3)
    assert fit.converged
    assert fit.win_rates == alone.win_rates
