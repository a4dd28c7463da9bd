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
    biased = first_slot_rate([1] * 70 + [0] * 30, np.arange(100))
    assert biased.interval.estimate == pytest.approx(0.7)
    assert biased.test.p < 1e-3
    thirds = first_slot_rate([1] * 34 + [0] * 66, np.arange(100), 1 / 3)
    assert thirds.test.p > 0.8
    assert thirds.fair == pytest.approx(1 / 3)


def test_missing_judgments_are_left_out_and_counted():
    found = first_slot_rate([1, NAN, 0, NAN], np.arange(4))
    assert (found.interval.n, found.left_out) == (2, 2)
    nothing = first_slot_rate([NAN], [0])
    assert math.isnan(nothing.interval.estimate)
    assert nothing.test.p == 1


def test_copies_of_a_question_do_not_prove_a_slot():
    won, clusters = np.repeat([1, 1, 1, 0, 1, 1, 0, 1], 20), np.repeat(np.arange(8), 20)
    assert first_slot_rate(won, np.arange(160)).test.p < 0.001
    assert first_slot_rate(won, clusters).test.p > 0.05


def test_the_longer_response_wins():
    found = longer_wins_rate(
        [1, 0, 1, 0.5, 1, NAN], [9, 2, 1, 5, 3, 4], [3, 8, 6, 1, 3, 1], range(6)
    )
    # Longer: won, won, lost; then a tie, equal lengths, and a missing one.
    assert found.interval.estimate == pytest.approx(2 / 3)
    assert (found.interval.n, found.left_out) == (3, 3)


def test_favouritism_is_against_the_reference_not_against_half():
    """A judge whose own model is better by everyone's vote is not partial."""
    rng, rejected = np.random.default_rng(0), {"fair": 0, "partial": 0}
    for _ in range(100):
        judge, people = (rng.random((2, 300)) < 0.8).astype(float)
        partial = np.maximum(judge, rng.random(300) < 0.6)
        rejected["fair"] += favouritism(judge, people, np.arange(300)).test.p < 0.05
        rejected["partial"] += favouritism(partial, people, np.arange(300)).test.p < 0.05
    assert rejected["fair"] < 13
    assert rejected["partial"] > 80


def test_favouritism_gives_the_difference_of_the_paper():
    """Own first in 52.8%, people in 59.9% of 252: -7.1 points."""
    picked, people = np.arange(252) < 133, np.arange(252) < 151
    found = favouritism(picked, people, np.arange(252))
    assert 100 * found.difference.estimate == pytest.approx(-7.1, abs=0.05)


def test_favouritism_without_pairs_is_unknown():
    found = favouritism([1, NAN], [NAN, 0], [0, 1])
    assert math.isnan(found.difference.estimate)
    assert found.test.p == 1
    with pytest.raises(StatisticsError):
        favouritism([1], [1, 0], [0])


def logistic_data(rng, n, intercept, slope, spread=300.0):
    gap = rng.normal(scale=spread, size=n)
    scale = np.sqrt(np.mean(gap**2))
    won = rng.random(n) < sigmoid(intercept + slope * np.tanh(gap / scale))
    return won.astype(float), gap


def test_a_win_rate_at_equal_length_is_recovered():
    rng = np.random.default_rng(1)
    won, gap = logistic_data(rng, 20000, 0.4, 1.5)
    found = length_controlled_win_rate(won, gap, np.arange(20000))
    assert found.converged
    assert found.controlled.low < sigmoid(0.4) < found.controlled.high
    assert found.slope.low < 1.5 < found.slope.high
    assert found.slope_test.p < 1e-10


def test_wins_by_length_alone_vanish_when_length_is_controlled():
    rng = np.random.default_rng(2)
    gap = np.abs(rng.normal(scale=300, size=4000)) - 50
    scale = np.sqrt(np.mean(gap**2))
    won = (rng.random(4000) < sigmoid(2 * np.tanh(gap / scale))).astype(float)
    found = length_controlled_win_rate(won, gap, np.arange(4000))
    assert found.raw.low > 0.6
    assert abs(found.controlled.estimate - 0.5) < 0.06


def test_the_fit_solves_its_equations_on_lopsided_data():
    """Observed = expected, with the prior: sum (p - y) + ridge a = 0, and with the length term."""
    won = np.array([1.0] * 27 + [0.5] * 2 + [0.0])
    gap = np.linspace(-10, 900, 30)
    found = length_controlled_win_rate(won, gap, np.arange(30), ridge=0.5)
    a = math.log(found.controlled.estimate / (1 - found.controlled.estimate))
    z = np.tanh(gap / found.scale)
    p = sigmoid(a + found.slope.estimate * z)
    assert np.sum(p - won) + 0.5 * a == pytest.approx(0, abs=1e-6)
    assert np.sum((p - won) * z) + 0.5 * found.slope.estimate == pytest.approx(0, abs=1e-6)
    assert found.residual < 1e-6


def test_the_fit_agrees_with_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    won, gap = logistic_data(np.random.default_rng(3), 300, -0.3, 0.8)
    found = length_controlled_win_rate(won, gap, np.arange(300), ridge=2.0)
    design = np.stack([np.ones(300), np.tanh(gap / found.scale)], axis=1)
    other = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(design, won).coef_[0]
    assert sigmoid(other[0]) == pytest.approx(found.controlled.estimate, abs=1e-5)
    assert other[1] == pytest.approx(found.slope.estimate, abs=1e-4)


@pytest.mark.parametrize("won", [np.ones(15), np.zeros(15)])
def test_winning_all_is_finite_and_not_certain(won):
    found = length_controlled_win_rate(won, np.arange(15.0), np.arange(15))
    assert found.converged
    assert 0 < found.controlled.low < found.controlled.estimate < found.controlled.high < 1
    assert found.controlled.high - found.controlled.low > 0.1


def test_equal_lengths_are_the_raw_rate_up_to_the_prior():
    found = length_controlled_win_rate([1] * 60 + [0] * 40, np.zeros(100), np.arange(100))
    assert found.controlled.estimate == pytest.approx(0.6, abs=0.005)
    assert found.slope.estimate == pytest.approx(0)


def test_one_cluster_falls_back_to_the_model():
    found = length_controlled_win_rate([1, 0, 1, 1], [5, -3, 8, 1], [0, 0, 0, 0])
    assert 0 < found.controlled.low < found.controlled.high < 1


@pytest.mark.slow
def test_the_controlled_interval_covers_with_clusters():
    rng, hits, runs = np.random.default_rng(4), 0, 250
    clusters = np.repeat(np.arange(40), 3)
    for _ in range(runs):
        gap = rng.normal(scale=300, size=120)
        scale = np.sqrt(np.mean(gap**2))
        won = rng.random(40).repeat(3) < sigmoid(0.3 + np.tanh(gap / scale))
        found = length_controlled_win_rate(won.astype(float), gap, clusters).controlled
        hits += found.low <= sigmoid(0.3) <= found.high
    assert hits / runs > 0.92


@pytest.mark.parametrize(
    ("won", "gap", "options"),
    [([NAN], [1.0], {}), ([1], [NAN], {}), ([1, 0], [1.0, 2.0], {"ridge": 0})],
)
def test_what_cannot_be_controlled_is_refused(won, gap, options):
    with pytest.raises(StatisticsError):
        length_controlled_win_rate(won, gap, range(len(won)), **options)


def test_other_clusters_than_outcomes_are_refused():
    with pytest.raises(StatisticsError, match="clusters of shape"):
        first_slot_rate([1, 0], [0])
