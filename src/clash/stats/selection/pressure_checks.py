"""Whether sparse cells go with a higher risk, and whether a score foretells which family wins.

Tables 17, 26 and 27 of the finite-calibration paper, which gives their names, transformations and tests.
Its errors take the prefixes of a split for independent; here they are clustered too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.dependence.contribution import auc
from clash.stats.resample import cluster_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.intervals import Interval
    from clash.stats.typing import Bools, Floats, Index

PERMUTATIONS = 2000


@dataclass(frozen=True, slots=True)
class WithinSlope:
    """A standardised slope within groups.

    Attributes:
        estimate: between -1 and 1: both sides have mean 0 in each group and one variance in all.
        se: as if all observations were independent, as the paper has it.
        clustered_se: by a sandwich over clusters; NaN with one.
    """

    estimate: float
    se: float
    clustered_se: float
    n: int


@dataclass(frozen=True, slots=True)
class WinnerForetold:
    """Whether a score is higher where one of two families wins.

    Attributes:
        auc: chance that a winning case has the higher score, bootstrapped over clusters.
        p: one-sided, by permuting winners within clusters.
        gap: mean score of winning cases less that of the others.
        n: cases.
    """

    auc: Interval
    p: float
    gap: Interval
    n: int


def residuals_in_groups(values: ArrayLike, groups: ArrayLike) -> Floats:
    """(n,), less the mean of each one's group."""
    x = np.asarray(values, dtype=float)
    _, codes = np.unique(np.asarray(groups), return_inverse=True)
    residuals: Floats = x - (np.bincount(codes, x) / np.bincount(codes))[codes]
    return residuals


def within_slope(x: ArrayLike, y: ArrayLike, groups: ArrayLike, clusters: ArrayLike) -> WithinSlope:
    """Regress y on x, both less their groups' means and scaled to variance 1 (table 26).

    NaN where one of them is constant in every group.

    Args:
        x: (n,), pressure or unseen share.
        y: (n,), test risk.
        groups: (n,), data set, budget and path rule.
        clusters: (n,), splits: their prefixes share rows.
    """
    u, v = residuals_in_groups(x, groups), residuals_in_groups(y, groups)
    n = len(u)
    if not u.std() or not v.std():
        return WithinSlope(math.nan, math.nan, math.nan, n)
    u, v = u / u.std(), v / v.std()
    slope = float(u @ v / n)
    se = math.sqrt((1 - slope**2) / (n - 2)) if n > 2 else math.nan
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    scores = np.bincount(codes, u * (v - slope * u))
    size = len(scores)
    sandwich = math.sqrt(size / (size - 1) * float(scores @ scores)) / n if size > 1 else math.nan
    return WithinSlope(slope, se, sandwich, n)


def within_correlations(x: ArrayLike, y: ArrayLike, groups: ArrayLike) -> Floats:
    """Pearson's correlation in each group (table 27); groups with a constant side are left out."""
    a, b, codes = np.asarray(x, float), np.asarray(y, float), np.asarray(groups)
    parts = [(a[codes == group], b[codes == group]) for group in np.unique(codes)]
    return np.array([np.corrcoef(u, v)[0, 1] for u, v in parts if u.std() and v.std()])


def standard_score(*parts: ArrayLike) -> Floats:
    """(n,), the sum of the parts, each with mean 0 and variance 1; a constant one adds nothing."""
    columns = [np.asarray(part, dtype=float) for part in parts]
    sums: Floats = np.sum([(c - c.mean()) / (c.std() or 1.0) for c in columns], axis=0)
    return sums


def winner_foretold(
    score: ArrayLike, wins: ArrayLike, clusters: ArrayLike, rng: np.random.Generator
) -> WinnerForetold:
    """Whether ``score`` is higher where a family ``wins`` (table 17).

    Args:
        score: (n,), see :func:`standard_score`.
        wins: (n,), true where the family has less test risk.
        clusters: (n,), data set and budget: drawn together, and permuted within.
        rng: of the bootstrap and the permutations.

    Raises:
        StatisticsError: fewer than two clusters, or one family that always wins.
    """
    s, is_winner = np.asarray(score, dtype=float), np.asarray(wins, dtype=bool)
    _, codes = np.unique(np.asarray(clusters), return_inverse=True)
    order = np.argsort(s, kind="stable")
    level = np.unique(s[order], return_inverse=True)[1]
    resamples = cluster_bootstrap(lambda w: _auc_and_gap(w, s, is_winner, order, level), codes, rng)
    area = auc(s, is_winner.astype(float))
    draws = [
        auc(s, _permute_winners(is_winner, codes, rng).astype(float)) for _ in range(PERMUTATIONS)
    ]
    p = (1 + sum(draw >= area - 1e-12 for draw in draws)) / (1 + PERMUTATIONS)
    return WinnerForetold(resamples.interval(0), p, resamples.interval(1), len(s))


def _auc_and_gap(weights: Floats, s: Floats, wins: Bools, order: Index, level: Index) -> Floats:
    """(B, 2), with each case counted ``weights`` (B, n) times; NaN without both outcomes."""
    positive, negative = weights * wins, weights * ~wins
    n_positive, n_negative = positive.sum(axis=1), negative.sum(axis=1)
    # Cases in order of the score; those of one level share their place.
    starts = np.flatnonzero(np.r_[True, np.diff(level) > 0])
    up = np.add.reduceat(positive[:, order], starts, axis=1)
    down = np.add.reduceat(negative[:, order], starts, axis=1)
    below = np.cumsum(down, axis=1) - down / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        areas = (up * below).sum(axis=1) / (n_positive * n_negative)
        gaps = positive @ s / n_positive - negative @ s / n_negative
    return np.column_stack([areas, gaps])


def _permute_winners(wins: Bools, codes: Index, rng: np.random.Generator) -> Bools:
    """Winners in a random order within each cluster."""
    by_cluster = np.argsort(codes, kind="stable")
    random_order = np.lexsort((rng.random(len(wins)), codes))
    out = np.empty_like(wins)
    out[by_cluster] = wins[random_order]
    return out
