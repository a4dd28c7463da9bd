"""Edges from agreement: the closed form of three judges, simulated truths, and nothing to tell."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.stats.simulate.panels import IndependentPanel
from clash.stats.triangle import agreement_triangle, majority_accuracy


def _spins(
    right: list[float], n: int, seed: int, *, share: float = 0.5, ties: float = 0.0
) -> np.ndarray:
    rng = np.random.default_rng(seed)
    truth = np.where(rng.random(n) < share, 1, -1)
    votes = np.where(rng.random((n, len(right))) < right, truth[:, None], -truth[:, None])
    return np.where(rng.random(votes.shape) < ties, 0, votes)


def test_three_judges_have_the_edges_of_the_closed_form() -> None:
    """e1^2 = c12 c13 / c23, with covariances by numpy and no lean of any judge."""
    spins = _spins([0.9, 0.8, 0.7], 2000, 0)
    spins = np.vstack([spins, -spins])  # no lean: means are 0 and loadings are edges
    c = np.cov(spins.T, bias=True)
    closed_form = [
        math.sqrt(c[i, j] * c[i, k] / c[j, k]) for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1))
    ]
    triangle = agreement_triangle(spins)
    assert triangle.edges == pytest.approx(closed_form, abs=2e-3)
    assert math.isnan(triangle.p_independent)


@pytest.mark.parametrize(
    "right", [[0.7], [0.7, 0.7, 0.7], [0.9, 0.8, 0.7, 0.6], [0.85, 0.8, 0.5, 0.1]]
)
def test_majority_of_independent_judges_is_that_of_all_patterns(right: list[float]) -> None:
    panel = IndependentPanel.of(right, right, 0.5)
    assert majority_accuracy([2 * p - 1 for p in right]) == pytest.approx(panel.majority_accuracy())


def test_three_judges_of_70_make_a_panel_of_78() -> None:
    assert majority_accuracy([0.4] * 3) == pytest.approx(0.784)
    triangle = agreement_triangle(_spins([0.7] * 3, 4000, 5), rng=np.random.default_rng(0))
    assert triangle.accuracy.low < 0.784 < triangle.accuracy.high
    assert triangle.accuracy.high - triangle.accuracy.low < 0.06


def test_three_judges_whose_covariances_are_too_large_by_chance_may_be_a_weaker_panel() -> None:
    """An edge at its bound of 1 leaves the others no room, and the accuracy is far from sure."""
    triangle = agreement_triangle(_spins([0.7] * 3, 100, 155), rng=np.random.default_rng(0))
    assert triangle.edges.max() == pytest.approx(1.0)
    assert triangle.accuracy.low < 0.784 < triangle.accuracy.high


def test_an_inverted_judge_among_three_does_not_count_as_a_good_one() -> None:
    triangle = agreement_triangle(_spins([0.85, 0.8, 0.2], 400, 3), rng=np.random.default_rng(0))
    assert (
        triangle.accuracy.low < majority_accuracy([0.7, 0.6, -0.6]) < triangle.accuracy.high < 0.82
    )


def test_intervals_hold_the_truth_and_shrink_with_what_there_is() -> None:
    """Of 20 panels of a good, a fair, a coin and an inverted judge."""
    right = [0.85, 0.75, 0.8, 0.5, 0.2]
    n_held = np.zeros(5)
    for seed in range(20):
        triangle = agreement_triangle(_spins(right, 250, seed, share=0.6, ties=0.1))
        truth = 2 * np.array(right) - 1
        n_held += (triangle.low <= truth) & (truth <= triangle.high)
    assert n_held.sum() / 100 > 0.88
    assert n_held.min() >= 15
    assert triangle.high[4] < 0 < triangle.low[0]


def test_copies_are_not_taken_for_good_judges() -> None:
    """Three copies among five: independence is rejected, and with one voice the copies are one."""
    own_spins = _spins([0.75, 0.75, 0.75], 600, 3)
    rng = np.random.default_rng(4)
    copies = np.where(rng.random((600, 2)) < 0.97, own_spins[:, :1], -own_spins[:, :1])
    spins = np.column_stack([own_spins, copies])
    assert agreement_triangle(spins).p_independent < 1e-4
    apart = agreement_triangle(spins, voices=np.array([0, 1, 2, 0, 0]))
    assert math.isnan(apart.p_independent)
    assert np.all((apart.low <= 0.55) & (apart.high >= 0.45))


def test_rows_of_one_cluster_count_once() -> None:
    spins = _spins([0.8] * 4, 200, 7)
    clusters = np.repeat(np.arange(200), 4)
    often = agreement_triangle(np.repeat(spins, 4, axis=0), clusters=clusters)
    once = agreement_triangle(spins)
    assert often.high - often.low == pytest.approx(once.high - once.low, abs=0.01)


@pytest.mark.parametrize(
    ("spins", "edges"),
    [
        (np.ones((50, 2)), [np.nan] * 2),
        (_spins([0.8] * 4, 20, 0), [np.nan] * 4),
        (np.zeros((50, 3)), [np.nan] * 3),
        (np.ones((50, 3)), [np.nan] * 3),
        (np.ones((0, 3)), [np.nan] * 3),
        (np.tile(_spins([0.5], 200, 1), (1, 4)), [1.0] * 4),
    ],
    ids=["two judges", "few items", "all tie", "all constant", "nothing", "all agree"],
)
def test_what_tells_nothing_is_nan_or_an_interval_of_everything(
    spins: np.ndarray, edges: list[float]
) -> None:
    triangle = agreement_triangle(spins, rng=np.random.default_rng(0))
    is_identified = triangle.is_identified
    assert np.array_equal(is_identified, ~np.isnan(edges))
    assert triangle.edges[is_identified] == pytest.approx(np.array(edges)[is_identified], abs=1e-3)


def test_a_constant_judge_is_worth_nothing_however_common_its_side() -> None:
    spins = _spins([0.85] * 4, 500, 2, share=0.85)
    spins[:, 3] = 1
    triangle = agreement_triangle(spins)
    assert not triangle.high[3] > 0.2
    assert np.all(triangle.low[:3] < 0.7)
    assert np.all(triangle.high[:3] > 0.7)
