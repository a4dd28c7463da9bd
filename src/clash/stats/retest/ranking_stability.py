"""Rankings of the same candidates, cycle against cycle."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, mean_clustered

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Floats


def kendall_tau(first: ArrayLike, second: ArrayLike) -> float:
    """Kendall's tau-b of two rankings or score vectors (K,), ties allowed on both sides.

    NaN where one of them ties everything, or K < 2.

    Raises:
        StatisticsError: shapes that differ or NaN.
    """
    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if x.shape != y.shape or np.isnan(x).any() or np.isnan(y).any():
        raise StatisticsError("two rankings of the same candidates, without NaN")
    a = np.sign(x[:, None] - x)
    b = np.sign(y[:, None] - y)
    scale = math.sqrt(float(np.sum(a * a)) * float(np.sum(b * b)))
    return float(np.sum(a * b)) / scale if scale else math.nan


@dataclass(frozen=True, slots=True)
class RankingStability:
    """Tau-b between every two of N rankings.

    Attributes:
        mean: mean over pairs; the interval is by the jackknife over rankings.
        tau: (N, N), NaN where a ranking ties everything.
        undefined: pairs left out for that reason.
        same_winner: share of pairs of rankings whose first place is the same set.
    """

    mean: Interval
    tau: Floats
    undefined: int
    same_winner: float


def ranking_stability(scores: ArrayLike, level: float = 0.95) -> RankingStability:
    """Compare the rankings of N cycles.

    Args:
        scores: (N, K), larger is better (negate ranks).
        level: confidence level.

    Raises:
        StatisticsError: fewer than two cycles, or NaN.
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or len(table) < 2:
        raise StatisticsError("expected cycles by candidates, with two cycles or more")
    n = len(table)
    tau = np.array([[kendall_tau(x, y) for y in table] for x in table])
    top = table == table.max(axis=1, keepdims=True)
    same_top = np.all(top[:, None, :] == top[None, :, :], axis=2)
    upper = np.triu_indices(n, 1)
    pairs = tau[upper]
    return RankingStability(
        _mean_of_pairs(tau, level), tau, int(np.isnan(pairs).sum()), float(same_top[upper].mean())
    )


def _mean_of_pairs(tau: Floats, level: float) -> Interval:
    n = len(tau)
    finite = ~np.isnan(tau) & ~np.eye(n, dtype=bool)
    value = np.where(finite, tau, 0.0)
    total, count = value.sum() / 2, finite.sum() / 2
    if count == 0:
        return Interval(math.nan, -1.0, 1.0, level, n, n, "undefined")
    mean = total / count
    pairs_without = count - finite.sum(axis=1)
    if n < 3 or np.any(pairs_without == 0):
        return Interval(mean, -1.0, 1.0, level, n, n, "no interval")
    means_without = (total - value.sum(axis=1)) / pairs_without
    # Pairs share rankings, so they are not independent; pseudo-values n T - (n - 1) T_(-i), one
    # for each ranking left out, nearly are (Tukey 1958).
    pseudo = mean_clustered(n * mean - (n - 1) * means_without, level=level)
    reach = pseudo.half_width
    return Interval(
        mean, max(-1.0, mean - reach), min(1.0, mean + reach), level, n, n, "jackknife over cycles"
    )
