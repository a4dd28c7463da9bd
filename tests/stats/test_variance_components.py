"""Variance components against mean squares, REML, and data whose components are known."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.variance_components import variance_components

CROSSED = np.array([[r, s] for r, s, _ in product(range(2), range(3), range(2))])
"""Two rubrics by three shuffles, two judgments of each."""
NOISE, RUBRIC, SHUFFLE, BOTH = (frozenset(e) for e in ((), (0,), (1,), (0, 1)))


def normal_data(seed: int, n: int = 40) -> np.ndarray:
    """Items by the twelve arms of CROSSED, around 0.5."""
    rng = np.random.default_rng(seed)
    rubric, shuffle = rng.normal(0, 0.05, (n, 2)), rng.normal(0, 0.04, (n, 3))
    values = 0.5 + rng.normal(0, 0.06, (n, 1)) + rubric[:, CROSSED[:, 0]]
    interaction = rng.normal(0, 0.03, (n, 6))[:, CROSSED[:, 0] * 3 + CROSSED[:, 1]]
    values = values + shuffle[:, CROSSED[:, 1]] + interaction + rng.normal(0, 0.03, (n, 12))
    return np.clip(values, 0, 1)


def raw(result) -> dict[frozenset[int], float]:
    return {part.effect: part.variance.estimate for part in result.components}


def test_a_balanced_design_has_the_mean_squares_of_the_analysis_of_variance():
    values = normal_data(3)
    n, r, s, k = len(values), 2, 3, 2
    cube = values.reshape(n, r, s, k)
    item, cell = cube.mean((1, 2, 3)), cube.mean(3)
    by_rubric, by_shuffle = cube.mean((2, 3)), cube.mean((1, 3))
    error = ((cube - cell[..., None]) ** 2).sum() / (n * r * s * (k - 1))
    remainder = cell - by_rubric[:, :, None] - by_shuffle[:, None, :] + item[:, None, None]
    ms_both = k * (remainder**2).sum() / (n * (r - 1) * (s - 1))
    ms_rubric = s * k * ((by_rubric - item[:, None]) ** 2).sum() / (n * (r - 1))
    ms_shuffle = r * k * ((by_shuffle - item[:, None]) ** 2).sum() / (n * (s - 1))
    ms_item = r * s * k * item.var(ddof=1)
    result = variance_components(values, CROSSED)
    parts = raw(result)
    assert parts[NOISE] == pytest.approx(error)
    assert parts[BOTH] == pytest.approx(max(0.0, (ms_both - error) / k))
    # Where the interaction is negative it is shown as 0; the others use what was estimated.
    assert parts[RUBRIC] == pytest.approx((ms_rubric - ms_both) / (s * k))
    assert parts[SHUFFLE] == pytest.approx((ms_shuffle - ms_both) / (r * k))
    between = ms_item - ms_rubric - ms_shuffle + ms_both
    assert result.items.variance.estimate == pytest.approx(between / (r * s * k))


def test_a_balanced_design_has_the_components_of_restricted_maximum_likelihood():
    # statsmodels 0.15 MixedLM(reml=True), groups="item", random rubric, shuffle and their product
    # in each item, on normal_data(3).
    reml = {RUBRIC: 0.00421937, SHUFFLE: 0.00142436, BOTH: 0.00111016, NOISE: 0.00078980}
    result = variance_components(normal_data(3), CROSSED)
    assert raw(result) == pytest.approx(reml, abs=1e-6)
    assert result.items.variance.estimate == pytest.approx(0.00270978, abs=1e-6)


def test_missing_cells_leave_it_unbiased_and_copies_of_items_change_no_interval():
    rng = np.random.default_rng(5)
    values = normal_data(7, n=3000)
    holes = np.where(rng.random(values.shape) < 0.3, np.nan, values)
    full_components, components = (
        raw(variance_components(values, CROSSED)),
        variance_components(holes, CROSSED),
    )
    for effect, variance in raw(components).items():
        assert variance == pytest.approx(full_components[effect], abs=2e-4)
    few = normal_data(8, n=15)
    single = variance_components(few, CROSSED)
    copied_components = variance_components(
        np.tile(few, (4, 1)), CROSSED, np.tile(np.arange(15), 4)
    )
    for record, four in zip(single.components, copied_components.components, strict=True):
        assert four.variance.low == pytest.approx(record.variance.low, abs=1e-9)
        assert four.variance.high == pytest.approx(record.variance.high, abs=1e-9)


def votes(seed: int, n: int, flip: float) -> tuple[np.ndarray, np.ndarray]:
    """A shuffle that decides an item with probability ``flip``, else the item does; no noise."""
    rng = np.random.default_rng(seed)
    levels = np.array([[s] for s, _ in product(range(2), range(2))])
    item = rng.random((n, 1)) < 0.5
    by_shuffle = rng.random((n, 2))[:, levels[:, 0]] < 0.5
    is_decided = rng.random((n, 1)) < flip
    return np.where(is_decided, by_shuffle, item).astype(float), levels


@pytest.mark.parametrize(("n", "flip"), [(25, 0.1), (60, 0.4)])
def test_intervals_cover_components_that_are_known(n, flip):
    # Within an item that the shuffle decides its variance is 1/4; else 0.
    truth = {NOISE: 0.0, frozenset({0}): flip / 4}
    hits = dict.fromkeys((*truth, "items", "share"), 0)
    for seed in range(200):
        result = variance_components(*votes(seed, n, flip))
        for part in result.components:
            hits[part.effect] += part.variance.low <= truth[part.effect] <= part.variance.high
            if part.effect:
                hits["share"] += part.share.low <= flip <= part.share.high
        hits["items"] += result.items.variance.low <= (1 - flip) / 4 <= result.items.variance.high
    assert min(hits.values()) >= 182, hits


def test_a_nested_factor_is_told_from_what_it_is_nested_in():
    rng = np.random.default_rng(2)
    n, levels = 4000, np.array([[0, 0], [0, 1], [1, 2]])
    author, rubric = rng.normal(0, 0.08, (n, 2)), rng.normal(0, 0.05, (n, 3))
    values = 0.5 + author[:, levels[:, 0]] + rubric[:, levels[:, 1]]
    result = variance_components(np.clip(values, 0, 1), levels, nesting=[(1, 0)])
    parts = raw(result)
    assert parts[frozenset({0})] == pytest.approx(0.08**2, rel=0.1)
    # One judgment of each page: the noise holds the rubric, and says so.
    assert parts[NOISE] == pytest.approx(0.05**2, rel=0.1)
    assert result.confounds == (frozenset({1}),)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.5, 0.1 + 0.2, 1 / 3])
def test_where_nothing_varies_nothing_is_ruled_out_that_could_be(value):
    result = variance_components(np.full((12, 4), value), np.array([[0], [0], [1], [1]]))
    assert result.total.estimate == 0
    for part in (result.items, *result.components):
        assert part.variance.estimate == 0 == part.variance.low
        assert np.isnan(part.share.estimate)
        assert (part.share.low, part.share.high) == (0, 1)
    for part in result.components:
        assert 0.05 < part.variance.high <= 0.25


@pytest.mark.parametrize(
    "values",
    [
        [[0, 0], [1, 1]],
        [[0, 0], [1, 1], [0, 0], [1, 1]],
        [[0, 1], [1, 0]],
        [[0, 1], [1, 0], [1, 0]],
        [[0.5, 0.5]] * 4,
        [[0.1 + 0.2, 0.3]] * 7,
        [[0, 0]] * 3,
    ],
)
def test_few_items_that_balance_have_a_variance_that_exists_and_bounds_around_it(values):
    result = variance_components(values, [[0], [1]])
    assert 0 <= result.total.low <= result.total.estimate <= result.total.high <= 0.25
    # Half of the items lose: leaving any one out says the same, which is no certainty.
    assert result.total.low < result.total.high
    for part in (result.items, *result.components):
        assert 0 <= part.variance.low <= part.variance.estimate <= part.variance.high <= 0.25


@pytest.mark.parametrize(
    ("values", "levels"),
    [
        ([[0.0, 1.0]], [[0], [1]]),
        ([[0.0, np.nan], [np.nan, 1.0]], [[0], [1]]),
        ([[0.0, 2.0], [1.0, 1.0]], [[0], [1]]),
        ([[0.0, 1.0], [1.0, 1.0]], [[0]]),
        (np.full((3, 2), np.nan), [[0], [1]]),
    ],
)
def test_too_little_or_wrong_is_an_error(values, levels):
    with pytest.raises(StatisticsError):
        variance_components(values, levels)
