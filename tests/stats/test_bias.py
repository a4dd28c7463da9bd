"""Measures of bias find the bias that was put in, and none where there is none."""

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.bias import (
    favouritism,
    first_slot_rate,
    length_controlled_win_rate,
    longer_wins_rate,
)

NAN = math.nan


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_the_first_slot_is_judged_by_its_fair_rate():
    fair = first_slot_rate([1, 0] * 50, np.arange(100))
    assert fair.test.p == pytest.approx(1)
    biased_rate = first_slot_rate([1] * 70 + [0] * 30, np.arange(100))
    assert biased_rate.interval.estimate == pytest.approx(0.7)
    assert biased_rate.test.p < 1e-3
    thirds = first_slot_rate([1] * 34 + [0] * 66, np.arange(100), 1 / 3)
    assert thirds.test.p > 0.8
    assert thirds.fair == pytest.approx(1 / 3)


def test_missing_judgments_are_left_out_and_counted():
    rate = first_slot_rate([1, NAN, 0, NAN], np.arange(4))
    assert (rate.interval.n, rate.left_out) == (2, 2)
    nothing = first_slot_rate([NAN], [0])
    assert math.isnan(nothing.interval.estimate)
    assert nothing.test.p == 1


def test_copies_of_a_question_do_not_prove_a_slot():
    wins, clusters = np.repeat([1, 1, 1, 0, 1, 1, 0, 1], 20), np.repeat(np.arange(8), 20)
    assert first_slot_rate(wins, np.arange(160)).test.p < 0.001
    assert first_slot_rate(wins, clusters).test.p > 0.05


def test_the_longer_response_wins():
    rate = longer_wins_rate(
        [1, 0, 1, 0.5, 1, NAN], [9, 2, 1, 5, 3, 4], [3, 8, 6, 1, 3, 1], range(6)
    )
    # Longer: won, won, lost; then a tie, equal lengths, and a missing one.
    assert rate.interval.estimate == pytest.approx(2 / 3)
    assert (rate.interval.n, rate.left_out) == (3, 3)


def test_favouritism_is_against_the_reference_not_against_half():
    """A judge whose own model is better by everyone's vote is not partial."""
    rng, n_rejected = np.random.default_rng(0), {"fair": 0, "partial": 0}
    for _ in range(100):
        judge, people = (rng.random((2, 300)) < 0.8).astype(float)
        partial = np.maximum(judge, rng.random(300) < 0.6)
        n_rejected["fair"] += favouritism(judge, people, np.arange(300)).test.p < 0.05
        n_rejected["partial"] += favouritism(partial, people, np.arange(300)).test.p < 0.05
    assert n_rejected["fair"] < 13
    assert n_rejected["partial"] > 80


def test_favouritism_gives_the_difference_of_the_paper():
    """Own first in 52.8%, people in 59.9% of 252: -7.1 points."""
    panel_wins, people = np.arange(252) < 133, np.arange(252) < 151
    favour = favouritism(panel_wins, people, np.arange(252))
    assert 100 * favour.difference.estimate == pytest.approx(-7.1, abs=0.05)


def test_favouritism_without_pairs_is_unknown():
    favour = favouritism([1, NAN], [NAN, 0], [0, 1])
    assert math.isnan(favour.difference.estimate)
    assert favour.test.p == 1
    with pytest.raises(StatisticsError):
        favouritism([1], [1, 0], [0])


def logistic_data(rng, n, intercept, slope, spread=300.0):
    gap = rng.normal(scale=spread, size=n)
    scale = np.sqrt(np.mean(gap**2))
    is_win = rng.random(n) < sigmoid(intercept + slope * np.tanh(gap / scale))
    return is_win.astype(float), gap


def test_a_win_rate_at_equal_length_is_recovered():
    rng = np.random.default_rng(1)
    wins, gap = logistic_data(rng, 20000, 0.4, 1.5)
    rates = length_controlled_win_rate(wins, gap, np.arange(20000))
    assert rates.converged
    assert rates.controlled.low < sigmoid(0.4) < rates.controlled.high
    assert rates.slope.low < 1.5 < rates.slope.high
    assert rates.slope_test.p < 1e-10


def test_wins_by_length_alone_vanish_when_length_is_controlled():
    rng = np.random.default_rng(2)
    gap = np.abs(rng.normal(scale=300, size=4000)) - 50
    scale = np.sqrt(np.mean(gap**2))
    wins = (rng.random(4000) < sigmoid(2 * np.tanh(gap / scale))).astype(float)
    rates = length_controlled_win_rate(wins, gap, np.arange(4000))
    assert rates.raw.low > 0.6
    assert abs(rates.controlled.estimate - 0.5) < 0.06


def test_the_fit_solves_its_equations_on_lopsided_data():
    """Observed = expected, with the prior: sum (p - y) + ridge a = 0, and with the length term."""
    wins = np.array([1.0] * 27 + [0.5] * 2 + [0.0])
    gap = np.linspace(-10, 900, 30)
    rates = length_controlled_win_rate(wins, gap, np.arange(30), ridge=0.5)
    a = math.log(rates.controlled.estimate / (1 - rates.controlled.estimate))
    z = np.tanh(gap / rates.scale)
    p = sigmoid(a + rates.slope.estimate * z)
    assert np.sum(p - wins) + 0.5 * a == pytest.approx(0, abs=1e-6)
    assert np.sum((p - wins) * z) + 0.5 * rates.slope.estimate == pytest.approx(0, abs=1e-6)
    assert rates.residual < 1e-6


def test_the_fit_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    wins, gap = logistic_data(np.random.default_rng(3), 300, -0.3, 0.8)
    rates = length_controlled_win_rate(wins, gap, np.arange(300), ridge=2.0)
    design = np.stack([np.ones(300), np.tanh(gap / rates.scale)], axis=1)
    reference_coefficient = (
        LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(design, wins).coef_[0]
    )
    assert sigmoid(reference_coefficient[0]) == pytest.approx(rates.controlled.estimate, abs=1e-5)
    assert reference_coefficient[1] == pytest.approx(rates.slope.estimate, abs=1e-4)


@pytest.mark.parametrize("wins", [np.ones(15), np.zeros(15)])
def test_winning_all_is_finite_and_not_certain(wins):
    rates = length_controlled_win_rate(wins, np.arange(15.0), np.arange(15))
    assert rates.converged
    assert 0 < rates.controlled.low < rates.controlled.estimate < rates.controlled.high < 1
    assert rates.controlled.high - rates.controlled.low > 0.1


def test_equal_lengths_are_the_raw_rate_up_to_the_prior():
    rates = length_controlled_win_rate([1] * 60 + [0] * 40, np.zeros(100), np.arange(100))
    assert rates.controlled.estimate == pytest.approx(0.6, abs=0.005)
    assert rates.slope.estimate == pytest.approx(0)


def test_one_cluster_falls_back_to_the_model():
    rates = length_controlled_win_rate([1, 0, 1, 1], [5, -3, 8, 1], [0, 0, 0, 0])
    assert 0 < rates.controlled.low < rates.controlled.high < 1


@pytest.mark.slow
def test_the_controlled_interval_covers_with_clusters():
    rng, hits, runs = np.random.default_rng(4), 0, 250
    clusters = np.repeat(np.arange(40), 3)
    for _ in range(runs):
        gap = rng.normal(scale=300, size=120)
        scale = np.sqrt(np.mean(gap**2))
        is_win = rng.random(40).repeat(3) < sigmoid(0.3 + np.tanh(gap / scale))
        controlled_rate = length_controlled_win_rate(is_win.astype(float), gap, clusters).controlled
        hits += controlled_rate.low <= sigmoid(0.3) <= controlled_rate.high
    assert hits / runs > 0.92


@pytest.mark.parametrize(
    ("wins", "gap", "options"),
    [([NAN], [1.0], {}), ([1], [NAN], {}), ([1, 0], [1.0, 2.0], {"ridge": 0})],
)
def test_what_cannot_be_controlled_is_refused(wins, gap, options):
    with pytest.raises(StatisticsError):
        length_controlled_win_rate(wins, gap, range(len(wins)), **options)


def test_other_clusters_than_outcomes_are_refused():
    with pytest.raises(StatisticsError, match="clusters of shape"):
        first_slot_rate([1, 0], [0])
