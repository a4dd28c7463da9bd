"""Tables 17, 26 and 27: against statsmodels, scikit-learn and brute force, and on nothing at all."""

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.pressure_checks import (
    residuals_in_groups,
    standard_score,
    winner_foretold,
    within_correlations,
    within_slope,
)

RNG = np.random.default_rng(4)
GROUPS = np.repeat(np.arange(12), 25)
X = RNG.normal(size=300) + GROUPS
Y = 0.3 * X + RNG.normal(size=300) - 2 * GROUPS
SPLITS = np.tile(np.arange(25), 12)


def test_the_slope_is_that_of_least_squares_with_a_dummy_a_group():
    slope = within_slope(X, Y, GROUPS, SPLITS)
    dummies = np.equal.outer(GROUPS, np.unique(GROUPS)).astype(float)
    coefficients = np.linalg.lstsq(np.column_stack([X, dummies]), Y, rcond=None)[0]
    u, v = (side - dummies @ np.linalg.lstsq(dummies, side, rcond=None)[0] for side in (X, Y))
    assert slope.estimate == pytest.approx(coefficients[0] * u.std() / v.std())
    u, v = u / u.std(), v / v.std()
    residual = v - slope.estimate * u
    assert slope.se == pytest.approx((residual @ residual / 298 / (u @ u)) ** 0.5)
    meat = sum((u[c == SPLITS] @ residual[c == SPLITS]) ** 2 for c in range(25))
    assert slope.clustered_se == pytest.approx((25 / 24 * meat) ** 0.5 / (u @ u))


def test_copies_of_a_split_do_not_narrow_the_clustered_error():
    once = within_slope(X, Y, GROUPS, SPLITS)
    twice = within_slope(np.tile(X, 2), np.tile(Y, 2), np.tile(GROUPS, 2), np.tile(SPLITS, 2))
    assert twice.clustered_se == pytest.approx(once.clustered_se)
    assert twice.se < 0.75 * once.se


def test_correlations_are_numpys_group_by_group_and_constants_are_left_out():
    correlations = within_correlations(X, Y, GROUPS)
    expected_correlations = [np.corrcoef(X[g == GROUPS], Y[g == GROUPS])[0, 1] for g in range(12)]
    assert correlations == pytest.approx(expected_correlations)
    assert len(within_correlations([1, 1, 2, 3], [1, 2, 3, 5], [0, 0, 1, 1])) == 1
    assert math.isnan(within_slope([1, 1], [1, 2], [0, 0], [0, 1]).estimate)
    assert residuals_in_groups([1, 3, 7], [0, 0, 1]).tolist() == [-1, 1, 0]


def test_the_area_is_scikit_learns_and_its_bootstrap_that_of_whole_clusters():
    metrics = pytest.importorskip("sklearn.metrics")
    clusters = np.repeat(np.arange(20), 15)
    score = np.round(RNG.normal(size=300), 1)  # with levels
    is_win = RNG.random(300) < 1 / (1 + np.exp(-score))
    forecast = winner_foretold(score, is_win, clusters, np.random.default_rng(1))
    assert forecast.auc.estimate == pytest.approx(metrics.roc_auc_score(is_win, score))
    assert forecast.gap.estimate == pytest.approx(score[is_win].mean() - score[~is_win].mean())
    rng, draws = np.random.default_rng(2), []
    for _ in range(1000):
        rows = (rng.integers(0, 20, 20)[:, None] * 15 + np.arange(15)).ravel()
        draws.append(metrics.roc_auc_score(is_win[rows], score[rows]))
    low, high = np.quantile(draws, (0.025, 0.975))
    assert (forecast.auc.low, forecast.auc.high) == pytest.approx((low, high), abs=0.01)
    assert forecast.p < 0.01


def test_a_score_that_tells_clusters_apart_alone_foretells_nothing_within_them():
    clusters = np.repeat(np.arange(10), 20)
    is_win = RNG.random(200) < clusters / 10
    forecast = winner_foretold(clusters.astype(float), is_win, clusters, np.random.default_rng(3))
    assert forecast.auc.estimate > 0.7
    assert forecast.p == 1.0


def test_nothing_to_foretell_is_refused_and_a_constant_part_says_nothing():
    with pytest.raises(StatisticsError):
        winner_foretold([1.0, 2.0], [True, True], [0, 1], np.random.default_rng(0))
    with pytest.raises(StatisticsError):
        winner_foretold([1.0, 2.0], [True, False], [0, 0], np.random.default_rng(0))
    assert standard_score([1, 2, 3], [5, 5, 5]) == pytest.approx(standard_score([10, 20, 30]))
