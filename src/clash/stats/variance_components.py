"""How much of the variance of an outcome comes from each factor that was drawn anew.

The same items are judged in several arms. An arm has a level of each factor: which rubric, which
shuffle, which generation of the responses. Levels of one item have nothing to do with those of
another, so every factor is nested in the items, and within an item the factors are crossed. With
E the judges' own noise, sigma²_U the variance of an effect that belongs to a set U of factors,

    half the mean squared difference of two arms that differ in the factors T
        = sum over U that meet T of sigma²_U + sigma²_E,

which is a system of linear equations in the components, one for each T. In a balanced design its
solution is the analysis of variance (and REML, where that is not on its boundary); it stays
unbiased where cells are missing at random, and nothing is assumed normal (Searle, Casella,
McCulloch 1992, chapters 4 and 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import (
    LEVEL,
    Interval,
    encode_clusters,
    mean_clustered,
    normal_quantile,
    ratio_variance,
    t_quantile,
    wilson,
    wilson_clustered,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats

_MOST = 0.25
"""The greatest variance of a value in [0, 1]."""
_ROUNDING = 1e-12
_METHOD = "moments, square-and-add"

Effect = frozenset[int]
"""Columns of the factors that an effect belongs to; empty is the noise that remains."""


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance.

    Attributes:
        effect: its factors, as columns; empty is the noise that remains when none of them changes.
        variance: what it adds to the variance of one outcome; it and its interval in [0, 1/4].
        share: of the total variance, in [0, 1].
        error: its standard error in the mean over all items of one arm: sqrt(variance / items).
    """

    effect: Effect
    variance: Interval
    share: Interval
    error: float


@dataclass(frozen=True, slots=True)
class Change:
    """How often an outcome changes when one factor alone is drawn anew."""

    effect: Effect
    rate: Interval


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """Where the variance of an outcome comes from.

    Attributes:
        mean: over items, each counting once.
        total: variance of one outcome of one item.
        items: variance between items.
        components: within items; the one without factors is the last.
        confounds: effects that the design cannot tell from the noise that remains, which holds them.
        changes: for no factor (the noise), then each factor that has two levels.
        n_items: items with an outcome.
    """

    mean: float
    total: Interval
    items: Component
    components: tuple[Component, ...]
    confounds: tuple[Effect, ...]
    changes: tuple[Change, ...]
    n_items: int


def variance_components(
    values: ArrayLike,
    levels: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    nesting: Sequence[tuple[int, int]] = (),
) -> VarianceComponents:
    """Split the variance of outcomes over arms.

    Each equation's left side is a mean over items of a value in [0, 1/2], with a score interval as
    for a proportion; a component is a sum and difference of them, with an interval by square-and-add
    (Zou, Donner 2008), which uses their correlation over clusters and never has length 0. Where the
    estimate is negative it is given as 0, and the interval is cut at 0.

    Args:
        values: (n, A), outcomes in [0, 1] of items in arms; NaN is missing.
        levels: (A, F), the level of each factor in each arm.
        clusters: (n,), items whose errors are shared.
        nesting: pairs (inner, outer) of factors: a change of the outer is one of the inner too, as
            another author writes another rubric.

    Raises:
        StatisticsError: values outside [0, 1], shapes that do not fit, fewer than two clusters, or
            no item with two outcomes.
    """
    table, factors = np.asarray(values, dtype=float), np.asarray(levels)
    _check(table, factors)
    present = ~np.isnan(table)
    rows = present.any(axis=1)
    table = table[rows]
    groups = np.arange(len(rows)) if clusters is None else np.asarray(clusters)
    _, codes, n_clusters = encode_clusters(np.zeros(len(table)), groups[rows])
    if n_clusters < 2:
        raise StatisticsError("variance between items takes two items at least")
    differences = _differences(table, factors)
    if not differences:
        raise StatisticsError("no item was judged in two arms")
    types = list(differences)
    effects, confounds = _effects(types, factors, nesting)
    basis = _Basis.of(list(differences.values()), table, codes, n_clusters)
    solution = np.linalg.pinv(_equations(types, effects))
    weights = [np.append(row, 0.0) for row in solution]
    between = np.append(-solution.sum(axis=0), 1.0)
    n = len(table)
    components = tuple(
        _component(effect, row, basis, n) for effect, row in zip(effects, weights, strict=True)
    )
    changes = tuple(
        Change(kind, _rate(differences[kind].change_shares, codes))
        for kind in types
        if _is_single(kind, nesting)
    )
    return VarianceComponents(
        float(np.nanmean(table, axis=1).mean()),
        basis.total,
        _component(frozenset({-1}), between, basis, n),
        tuple(sorted(components, key=lambda c: (not c.effect, len(c.effect), sorted(c.effect)))),
        confounds,
        changes,
        n,
    )


def _check(table: Floats, factors: Codes) -> None:
    if table.ndim != 2 or factors.ndim != 2 or len(factors) != table.shape[1]:
        raise StatisticsError(
            f"expected items by arms and arms by factors, not {table.shape} and {factors.shape}"
        )
    if np.any((table < 0) | (table > 1)):
        raise StatisticsError("outcomes lie in [0, 1]")


# -- pairs of arms --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Differences:
    """Of the pairs of arms that differ in the same factors, by item; NaN where it has no pair.

    Attributes:
        halved_squares: (n,), half the mean squared difference.
        change_shares: (n,), share of pairs with another outcome.
        pairs: of an item with an outcome in every arm.
    """

    halved_squares: Floats
    change_shares: Floats
    pairs: int


def _differences(table: Floats, factors: Codes) -> dict[Effect, _Differences]:
    """Pairs of arms by the factors that differ, the fewest factors first."""
    pairs: dict[Effect, list[tuple[int, int]]] = {}
    for a, b in combinations(range(len(factors)), 2):
        kind = frozenset(np.flatnonzero(factors[a] != factors[b]).tolist())
        pairs.setdefault(kind, []).append((a, b))
    differences = {}
    for kind in sorted(pairs, key=lambda kind: (len(kind), sorted(kind))):
        first, second = np.array(pairs[kind]).T
        gap = table[:, first] - table[:, second]
        if np.isnan(gap).all():
            continue
        differences[kind] = _Differences(
            _row_mean(gap**2 / 2), _row_mean(_is_changed(gap)), len(first)
        )
    return differences


def _is_changed(gap: Floats) -> Floats:
    return np.where(np.isnan(gap), np.nan, (np.abs(gap) > 1e-9).astype(float))


def _row_mean(cells: Floats) -> Floats:
    counts = (~np.isnan(cells)).sum(axis=1)
    blank = np.full(len(cells), np.nan)
    means: Floats = np.divide(np.nansum(cells, axis=1), counts, out=blank, where=counts > 0)
    return means


def _is_single(kind: Effect, nesting: Sequence[tuple[int, int]]) -> bool:
    """Whether one factor alone changes; a rubric that changes with its author counts as one."""
    follows = {inner for inner, outer in nesting if outer in kind}
    return len(kind - follows) <= 1


def _rate(change_shares: Floats, codes: Codes) -> Interval:
    present = ~np.isnan(change_shares)
    return wilson_clustered(change_shares[present], codes[present])


# -- the equations --------------------------------------------------------------------------------


def _effects(
    types: Sequence[Effect], factors: Codes, nesting: Sequence[tuple[int, int]]
) -> tuple[list[Effect], tuple[Effect, ...]]:
    """The effects that the pairs can tell apart, lower orders first, and those that they cannot."""
    varying_columns = [f for f in range(factors.shape[1]) if len(np.unique(factors[:, f])) > 1]
    candidates: list[Effect] = [frozenset()]
    for size in range(1, len(varying_columns) + 1):
        candidates += [
            frozenset(effect)
            for effect in combinations(varying_columns, size)
            # An effect of a rubric is one of its author's too: the pair is the rubric's own.
            if not any({inner, outer} <= set(effect) for inner, outer in nesting)
        ]
    independent_effects: list[Effect] = []
    confounds: list[Effect] = []
    for effect in candidates:
        trial = _equations(types, [*independent_effects, effect])
        is_new = np.linalg.matrix_rank(trial) == len(independent_effects) + 1
        (independent_effects if is_new else confounds).append(effect)
    return independent_effects, tuple(confounds)


def _equations(types: Sequence[Effect], effects: Sequence[Effect]) -> Floats:
    """Which effects differ between two arms of each type, (types, effects)."""
    return np.array(
        [[float(not effect or bool(effect & kind)) for effect in effects] for kind in types]
    )


# -- intervals of sums and differences ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Basis:
    """The left sides of the equations, then the total variance: estimates, bounds, correlation.

    Attributes:
        estimates, low, high: (E + 1,).
        correlation: (E + 1, E + 1), over clusters; 0 where one of two does not vary.
        total: of them the last, which is never below 0.
        clusters: G.
    """

    estimates: Floats
    low: Floats
    high: Floats
    correlation: Floats
    total: Interval
    clusters: int

    @classmethod
    def of(
        cls, differences: Sequence[_Differences], table: Floats, codes: Codes, n_clusters: int
    ) -> _Basis:
        intervals = [_half(d.halved_squares, d.pairs, codes) for d in differences]
        total, pull = _total(table, codes, n_clusters)
        influences = [_influence(d.halved_squares, codes, n_clusters) for d in differences]
        spread = np.array([*influences, pull])
        spread = spread - spread.mean(axis=1, keepdims=True)
        norms = np.sqrt((spread**2).sum(axis=1))
        scale = np.outer(norms, norms)
        correlation = np.divide(
            spread @ spread.T, scale, out=np.eye(len(spread)), where=scale > 1e-15
        )
        intervals.append(total)
        return cls(
            np.array([i.estimate for i in intervals]),
            np.array([i.low for i in intervals]),
            np.array([i.high for i in intervals]),
            np.clip(correlation, -1.0, 1.0),
            total,
            n_clusters,
        )

    def combine(self, weights: Floats) -> tuple[float, float, float]:
        """A sum with these weights, and its bounds by square-and-add for dependent estimates.

        The distance to a bound is that of a standard deviation: the square root of the sum of
        products of the parts' own distances, each pair times its correlation. A part with a
        positive weight comes with its distance on the same side, one with a negative weight with
        that on the other.
        """
        estimate = float(weights @ self.estimates)
        down = np.where(weights > 0, self.estimates - self.low, self.high - self.estimates)
        up = np.where(weights > 0, self.high - self.estimates, self.estimates - self.low)
        reach = [
            math.sqrt(max(0.0, float(side @ self.correlation @ side)))
            for side in (weights * down, weights * up)
        ]
        return estimate, estimate - reach[0], estimate + reach[1]


def _half(side: Floats, pairs: int, codes: Codes) -> Interval:
    """The mean of values in [0, 1/2], each over as many pairs of arms, with a score interval.

    Twice the values would be successes of a proportion if each were of one pair and no item shared
    errors; the design effect is the variance that they have over that one. It stays between that
    of independent pairs and that of items and pairs that are copies in a cluster, and allows for few
    clusters by the squared ratio of the t quantile to the normal one.
    """
    present = ~np.isnan(side)
    x, groups, n_clusters = encode_clusters(2 * side[present], codes[present])
    n, mean = len(x), float(x.mean())
    sizes = np.bincount(groups).astype(float)
    most = float(sizes @ sizes) / n
    effect = most
    if n_clusters > 1:
        student = t_quantile(LEVEL, n_clusters - 1) / normal_quantile(LEVEL)
        if 0 < mean < 1:
            variance = ratio_variance(x - mean, groups, n_clusters) / n
            effect = student**2 * variance / (mean * (1 - mean))
        effect = min(max(effect, most / pairs), most * student**2)
    rate = wilson(mean * n, n, LEVEL, design_effect=effect)
    return replace(rate.transform(lambda share: share / 2), estimate=mean / 2)


def _influence(side: Floats, codes: Codes, n_clusters: int) -> Floats:
    """What each cluster adds to a mean over items, (G,)."""
    present = ~np.isnan(side)
    gap = side[present] - side[present].mean()
    pull = np.bincount(codes[present], weights=gap / present.sum(), minlength=n_clusters)
    return pull.astype(float)


def _total(table: Floats, codes: Codes, n_clusters: int) -> tuple[Interval, Floats]:
    """Variance of one outcome: half the mean squared difference of items of different clusters.

    Returns:
        With an interval by the jackknife over clusters, and the clusters' influence, (G,).
    """
    means, squares = np.nanmean(table, axis=1), np.nanmean(table**2, axis=1)
    size = np.bincount(codes, minlength=n_clusters).astype(float)
    sums = np.bincount(codes, weights=means, minlength=n_clusters)
    second = np.bincount(codes, weights=squares, minlength=n_clusters)

    within = size * second - sums**2

    def variance(left: Floats) -> Floats:
        """Without some clusters: ``left`` is what is taken from each of the five sums."""
        n, n_squares, total, square, inside = left
        pairs = (size.sum() - n) ** 2 - ((size**2).sum() - n_squares)
        # The sum over pairs of items of (q_i + q_j) / 2 - m_i m_j, less the pairs within a cluster.
        gap = (size.sum() - n) * (second.sum() - square) - (sums.sum() - total) ** 2
        result: Floats = (gap - (within.sum() - inside)) / pairs
        return result

    # Of few items the unbiased estimate may lie beyond what any distribution has.
    estimate = min(max(0.0, float(variance(np.zeros(5)))), _MOST)
    estimate = estimate if estimate > _ROUNDING else 0.0
    if n_clusters == 2:
        return Interval(estimate, 0.0, _MOST, LEVEL, len(table), 2, "jackknife"), np.zeros(2)
    left_out = variance(np.array([size, size**2, sums, second, within]))
    pull = (n_clusters - 1) * (left_out.mean() - left_out) / n_clusters
    gaps = mean_clustered(pull * n_clusters)
    reach = gaps.half_width
    low, high = max(0.0, estimate - reach), min(_MOST, estimate + reach)
    if reach <= _ROUNDING:
        low, high = _without_spread(means, codes, estimate)
    method = "jackknife over clusters"
    return Interval(estimate, low, high, LEVEL, len(table), n_clusters, method), pull


def _without_spread(means: Floats, codes: Codes, estimate: float) -> tuple[float, float]:
    """Bounds of a total variance that stays the same whichever cluster is left out.

    Either all items are alike, and others may turn up as often as a score interval of none of them
    allows; or half of the items lie as far above the mean as the others below it, and the shares of
    the two halves have a score interval.
    """
    if np.ptp(means) <= _ROUNDING:
        share = wilson_clustered(np.zeros(len(means)), codes).high
        furthest = max(means[0], 1 - means[0])
        is_at_end = furthest >= 1 - _ROUNDING
        spread = share if share >= 0.5 or not is_at_end else share * (1 - share)
        return 0.0, min(_MOST, max(estimate, float(spread * furthest**2)))
    half = wilson_clustered((means > means.mean()).astype(float), codes)
    return estimate * min(1.0, 4 * half.low * (1 - half.low)), _MOST


def _component(effect: Effect, weights: Floats, basis: _Basis, n: int) -> Component:
    estimate, low, high = basis.combine(weights)
    rest_weights = -weights.copy()
    rest_weights[-1] += 1.0
    remainder, remainder_low, remainder_high = (
        max(0.0, end) for end in basis.combine(rest_weights)
    )
    total = basis.total
    variance = Interval(
        min(max(0.0, estimate), _MOST),
        min(max(0.0, low), _MOST),
        min(max(0.0, high), _MOST),
        total.level,
        n,
        basis.clusters,
        _METHOD,
    )
    # The least over itself and the most of the rest, and the other way round: never outside [0, 1].
    share = Interval(
        _part(variance.estimate, remainder),
        _part(variance.low, remainder_high, otherwise=0.0),
        _part(variance.high, remainder_low, otherwise=1.0),
        total.level,
        n,
        basis.clusters,
        "bounds over bounds",
    )
    return Component(effect, variance, share, math.sqrt(variance.estimate / n))


def _part(amount: float, remainder: float, otherwise: float = math.nan) -> float:
    return amount / (amount + remainder) if amount + remainder > 0 else otherwise
