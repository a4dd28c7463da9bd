"""Quality, price and speed drawn together: against closed forms, brute force and known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import bdtr, betaincinv

from clash.analysis.win_rates import PairOutcomes, win_rates
from clash.stats.choice import (
    Draws,
    PairSample,
    StrengthSample,
    draw_candidates,
    price_of_a_win,
    regrets,
)
from clash.stats.selection.corrected_share import corrected_share
from clash.stats.selection.sample_design import SampleDesign

RNG = np.random.default_rng


def draws_of(outcomes, clusters=None, **options):
    """Draws of two candidates without cost or latency."""
    n = len(outcomes)
    sample = [PairSample(0, 1, np.arange(n), np.asarray(outcomes, float))]
    blank = np.full((n, 2), np.nan)
    codes = np.arange(n) if clusters is None else clusters
    return draw_candidates(sample, blank, blank, codes, RNG(1), **options)


@pytest.mark.parametrize(("wins", "n"), [(3, 3), (7, 9), (0, 1)])
def test_the_win_rate_of_two_has_the_distribution_of_jeffreys_prior(wins, n):
    shares = draws_of([1.0] * wins + [0.0] * (n - wins)).shares[:, 0, 1]
    levels = np.array([0.025, 0.25, 0.5, 0.75, 0.975])
    quantiles = betaincinv(wins + 0.5, n - wins + 0.5, levels)
    assert (shares[:, None] <= quantiles).mean(axis=0) == pytest.approx(levels, abs=0.02)


def test_copies_of_a_prompt_tell_no_more_than_the_prompt():
    once = draws_of([1, 1, 0, 1]).quality[:, 0]
    five_times = draws_of([1] * 10 + [0] * 5 + [1] * 5, np.repeat(np.arange(4), 5)).quality[:, 0]
    assert five_times.std() == pytest.approx(once.std(), rel=0.1)


def test_the_mean_cost_and_a_quantile_have_the_moments_of_the_bayesian_bootstrap():
    cost = RNG(2).lognormal(size=(40, 1)) * [[1.0, 2.0]]
    sample = [PairSample(0, 1, np.arange(40), np.full(40, 0.5))]
    draws = draw_candidates(sample, cost, cost, np.arange(40), RNG(3), quantile=0.9)
    # The variance of a Dirichlet-weighted mean: s^2 / (n + 1) with the population s^2.
    assert draws.cost[:, 0].mean() == pytest.approx(cost[:, 0].mean(), rel=0.01)
    assert draws.cost[:, 0].var() == pytest.approx(cost[:, 0].var() / 41, rel=0.1)
    assert np.isin(draws.latency[:, 0], cost[:, 0]).all()
    # The weight at or below the j-th of n is Beta(j, n - j): above 0.9 with a binomial chance.
    below = (draws.latency[:, 0] <= np.sort(cost[:, 0])[34]).mean()
    assert below == pytest.approx(bdtr(34, 39, 0.9), abs=0.02)


def test_strengths_are_those_of_the_win_rates_that_screens_show():
    rng = RNG(4)
    rows = np.arange(300)
    pairs = [
        PairOutcomes(0, 1, rows[:200], (rng.random(200) < 0.7).astype(float)),
        PairOutcomes(1, 2, rows[100:], (rng.random(200) < 0.6).astype(float)),
    ]
    rates = win_rates(pairs, rows, 3, same_items=False)
    sample = [PairSample(p.first, p.second, p.rows, p.outcomes) for p in pairs]
    blank = np.full((300, 3), np.nan)
    draws = draw_candidates(sample, blank, blank, rows, RNG(5), by_strengths=True, draws=1000)
    assert draws.quality.mean(axis=0) == pytest.approx([r.estimate for r in rates.rates], abs=0.01)
    spread = np.sqrt(((rates.influence - rates.influence.mean(axis=0)) ** 2).sum(axis=0))
    assert draws.quality.std(axis=0) == pytest.approx(spread, rel=0.15)


@pytest.mark.parametrize("n_labels", [20, 120])
@pytest.mark.parametrize("copies", [1, 3])
def test_labels_and_each_judges_vote_narrow_a_pair_as_the_corrected_share(n_labels, copies):
    rng = RNG(6)
    people = (rng.random(400) < 0.6).astype(float)
    is_right = rng.random((400, 3)) < [0.95, 0.5, 0.2]
    votes = np.where(is_right, people[:, None], 1 - people[:, None])
    labels = np.where(np.arange(400) < n_labels, people, np.nan)
    source, rows = np.repeat(np.arange(400), copies), np.arange(400 * copies)
    labels, votes = np.repeat(labels, copies), np.repeat(votes, copies, axis=0)
    share = corrected_share(labels, votes.mean(axis=1), SampleDesign(source), votes=votes)
    sample = [PairSample.of_labels((0, 1), rows, share, source)]
    blank = np.full((len(rows), 2), np.nan)
    shares = draw_candidates(sample, blank, blank, source, RNG(7)).shares[:, 0, 1]
    assert share.interval.half_width < 0.95 * share.labels_only.half_width
    assert shares.mean() == pytest.approx(share.interval.estimate, abs=0.25 / n_labels + 0.005)
    assert 1.96 * shares.std() == pytest.approx(share.interval.half_width, rel=0.1)


@pytest.mark.parametrize("copies", [1, 10])
def test_the_prior_is_one_question_however_many_copies_of_it_were_labelled(copies):
    """Eighteen wins of twenty questions and one of the prior: Beta(18.5, 2.5)."""
    source = np.repeat(np.arange(40), copies)
    labels = np.where(source < 20, source >= 2, np.nan)
    share = corrected_share(labels, np.full(len(source), 0.5), SampleDesign(source))
    sample = [PairSample.of_labels((0, 1), np.arange(len(source)), share, source)]
    blank = np.full((len(source), 2), np.nan)
    quality = draw_candidates(sample, blank, blank, source, RNG(11)).quality[:, 0]
    assert quality.mean() == pytest.approx(18.5 / 21, abs=0.01)
    assert quality.std() == pytest.approx(np.sqrt(18.5 * 2.5 / 21**2 / 22), rel=0.15)


def test_rounding_is_no_spread_of_labels_that_are_all_of_one_question():
    people = (RNG(1).random(30) < 0.6).astype(float)
    source = np.repeat([0, 1], [30, 270])
    labels = np.append(people, np.full(270, np.nan))
    share = corrected_share(labels, np.full(300, 0.5), SampleDesign(source))
    assert PairSample.of_labels((0, 1), np.arange(300), share, source).widening < 10


def test_corrected_strengths_are_drawn_with_their_influence():
    influence = RNG(8).normal(size=(50, 3)) / 50
    influence -= influence.mean(axis=1, keepdims=True)
    sample = StrengthSample(np.array([0.4, 0.0, -0.4]), influence)
    blank = np.full((50, 3), np.nan)
    draws = draw_candidates(sample, blank, blank, np.arange(50), RNG(9))
    gap = np.log(draws.shares[:, 0, 2] / draws.shares[:, 2, 0])
    assert gap.mean() == pytest.approx(0.8, abs=0.02)
    assert gap.std() == pytest.approx(np.linalg.norm(influence[:, 0] - influence[:, 2]), rel=0.05)


def test_the_front_is_that_of_brute_force():
    rng = RNG(10)
    quality, cost, latency = rng.integers(0, 3, (3, 200, 4)).astype(float)
    front = Draws(np.zeros((200, 4, 4)), quality, cost, latency).front()
    scales = np.stack([quality, -cost, -latency], axis=2)
    hits = np.zeros(4)
    for draw in scales:
        for b in range(4):
            is_beaten = any(
                (draw[a] >= draw[b]).all() and (draw[a] > draw[b]).any() for a in range(4)
            )
            hits[b] += not is_beaten
    assert front == pytest.approx(hits / 200)


def test_a_candidate_whose_price_nobody_knows_is_on_no_front():
    quality, blank = np.full((10, 3), 0.5), np.full((10, 3), np.nan)
    cost = np.tile([1.0, 2.0, np.nan], (10, 1))
    front = Draws(np.zeros((10, 3, 3)), quality, cost, blank).front()
    np.testing.assert_equal(front, [1, 0, np.nan])


def test_one_scale_alone_has_no_front():
    assert draws_of([1, 0, 1]).front() is None


def test_regret_is_the_mean_loss_beside_the_best_of_the_eligible():
    worth = np.array([[3.0, 1.0, 9.0], [2.0, 4.0, 9.0], [1.0, 1.0, 9.0], [5.0, 1.0, 9.0]])
    table = regrets(worth, [0, 1])
    assert table.best[:2] == pytest.approx([2.5 / 4, 1.5 / 4])
    assert table.mean[:2] == pytest.approx([2 / 4, 6 / 4])
    assert np.isnan([table.best[2], table.mean[2], table.high[2]]).all()
    assert np.isnan(regrets(worth, []).mean).all()


def test_the_price_of_a_win_is_extra_cost_over_net_wins():
    prices = price_of_a_win(np.array([0.6, 0.5, 0.3, 0.9]), np.array([0.03, 0.03, 0.03, -0.01]))
    assert prices == pytest.approx([0.15, np.inf, np.inf, 0.0])
