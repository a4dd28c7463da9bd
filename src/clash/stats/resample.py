"""Bootstrap and jackknife over clusters, for statistics that are functions of weights.

A statistic is a function of a weight matrix of shape (B, n): row b says how often replicate b
holds each observation. A weighted mean is ``lambda w: w @ x / w.sum(axis=1)``. So a thousand
replicates are one matrix product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats

    Statistic = Callable[[Floats], Floats]

Method = Literal["percentile", "bca"]
FEWEST_CLUSTERS = 6
"""Clusters below which percentiles are no interval: even the least and the largest of five draws
hold their median in 15 of 16 samples only."""
_CHUNK = 125_000  # weights held at once: 1 MB, which also fits a cache
_MOST_DELETIONS = 1000
"""Groups of the jackknife: the acceleration is a third moment, which more hardly sharpen."""


@dataclass(frozen=True, slots=True)
class RepeatMean:
    """A mean over repeated splits or trials, and its standard error; NaN with one of them.

    Repeats draw from the same items, so the error says how the mean would differ with other draws
    and nothing of other items.
    """

    mean: float
    se: float

    @classmethod
    def of(cls, values: ArrayLike) -> RepeatMean:
        """Repeats where the figure is undefined are left out; NaN where it is in all."""
        x = np.asarray(values, dtype=float)
        x = x[~np.isnan(x)]
        if not len(x):
            return cls(math.nan, math.nan)
        se = float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else math.nan
        return cls(float(x.mean()), se)


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """The bootstrap distribution of a statistic of one or several values.

    Attributes:
        estimate: shape (k,), the statistic on the data.
        replicates: shape (B, k); a row with NaN is a replicate where it was undefined.
        low: shape (k,).
        high: shape (k,).
        undefined: replicates left out for that reason; the interval is conditional on the rest.
        n: observations.
        n_clusters: clusters that were drawn.
    """

    estimate: Floats
    replicates: Floats
    low: Floats
    high: Floats
    level: float
    method: Method
    undefined: int
    n: int
    n_clusters: int

    def interval(self, index: int = 0) -> Interval:
        """The interval of one of the values."""
        return Interval(
            float(self.estimate[index]),
            float(self.low[index]),
            float(self.high[index]),
            self.level,
            self.n,
            self.n_clusters,
            f"bootstrap over clusters, {self.method}",
        )


def cluster_bootstrap(
    statistic: Statistic,
    clusters: ArrayLike,
    rng: np.random.Generator,
    n: int = 2000,
    *,
    level: float = 0.95,
    method: Method = "percentile",
) -> Bootstrap:
    """Draw whole clusters with replacement and recompute ``statistic`` each time.

    Args:
        statistic: weights (B, n_obs) to values (B,) or (B, k); NaN where it is undefined.
        clusters: shape (n_obs,), codes; what shares a code is drawn together.
        rng: source of randomness.
        n: replicates.
        level: confidence level.
        method: percentile, or bias-corrected and accelerated (Efron 1987), whose acceleration
            is by a jackknife over clusters (over at most 1000 groups of them).

    Raises:
        StatisticsError: no observation, fewer than two clusters, or a statistic that is
            undefined on the data or on more than half of the replicates.
    """
    codes, n_clusters = _codes(clusters)
    estimate = _values(statistic(np.ones((1, len(codes)))))[0]
    if np.isnan(estimate).any():
        raise StatisticsError("the statistic is undefined on the data itself")
    replicates = np.concatenate(
        [_values(statistic(w)) for w in _draws(codes, n_clusters, n, rng)], axis=0
    )
    usable = _without_nan(replicates)
    if len(usable) < n / 2:
        raise StatisticsError(f"the statistic is undefined on {n - len(usable)} of {n} replicates")
    tails = np.tile([(1 - level) / 2, (1 + level) / 2], (len(estimate), 1))
    if method == "bca":
        tails = _bca_tails(estimate, usable, jackknife(statistic, codes), level)
    bounds = np.array([np.quantile(usable[:, i], tails[i]) for i in range(len(estimate))])
    return Bootstrap(
        estimate,
        replicates,
        bounds[:, 0],
        bounds[:, 1],
        level,
        method,
        n - len(usable),
        len(codes),
        n_clusters,
    )


def jackknife(statistic: Statistic, clusters: ArrayLike) -> Floats:
    """The statistic with each cluster left out in turn, shape (G, k).

    More than 1000 clusters are left out in 1000 groups of nearly equal size.

    Raises:
        StatisticsError: fewer than two clusters.
    """
    codes, n_clusters = _codes(clusters)
    groups = min(n_clusters, _MOST_DELETIONS)
    group = codes * groups // n_clusters
    step = max(1, _CHUNK // len(codes))
    parts = [
        _values(statistic((group != np.arange(at, min(at + step, groups))[:, None]).astype(float)))
        for at in range(0, groups, step)
    ]
    return np.concatenate(parts, axis=0)


def cluster_weights(
    clusters: ArrayLike, rng: np.random.Generator, n: int
) -> Iterator[NDArray[np.float64]]:
    """The weights of ``n`` replicates, shape (b, n_obs) each, b chosen to bound the memory."""
    codes, n_clusters = _codes(clusters)
    return _draws(codes, n_clusters, n, rng)


def _draws(
    codes: NDArray[np.intp], n_clusters: int, n: int, rng: np.random.Generator
) -> Iterator[Floats]:
    step = max(1, _CHUNK // len(codes))
    for at in range(0, n, step):
        rows = min(step, n - at)
        draws = rng.integers(n_clusters, size=(rows, n_clusters))
        draws += np.arange(rows)[:, None] * n_clusters
        counts = np.bincount(draws.ravel(), minlength=rows * n_clusters)
        yield counts.reshape(rows, n_clusters)[:, codes].astype(float)


def _codes(clusters: ArrayLike) -> tuple[NDArray[np.intp], int]:
    unique, codes = np.unique(np.asarray(clusters), return_inverse=True)
    if len(unique) < 2:
        raise StatisticsError(
            f"{len(unique)} cluster(s): a bootstrap over clusters needs at least two"
        )
    return codes.astype(np.intp), len(unique)


def _values(result: Floats) -> Floats:
    values = np.asarray(result, dtype=float)
    return values[:, None] if values.ndim == 1 else values


def _without_nan(replicates: Floats) -> Floats:
    return replicates[~np.isnan(replicates).any(axis=1)]


def _bca_tails(estimate: Floats, replicates: Floats, left_out: Floats, level: float) -> Floats:
    """The two quantiles of the replicates that bound each value, shape (k, 2).

    Phi(b + (b + z) / (1 - a (b + z))), z the normal quantiles of the level, b the bias correction
    Phi^-1(share of replicates below the estimate), a the acceleration (Efron 1987).
    """
    normal = NormalDist()
    reach = normal.inv_cdf((1 + level) / 2)
    tails = []
    for value, column, jack in zip(estimate, replicates.T, left_out.T, strict=True):
        # Ties count half, or a discrete statistic looks biased; the quantile is infinite at 0
        # and 1, so the share stays one replicate away from both.
        below = (np.mean(column < value) + np.mean(column <= value)) / 2
        edge = 1 / (len(column) + 1)
        bias = normal.inv_cdf(float(np.clip(below, edge, 1 - edge)))
        pace = _acceleration(jack)
        ends = (bias - reach, bias + reach)
        tails.append([normal.cdf(bias + z / (1 - pace * z)) for z in ends])
    return np.array(tails)


def _acceleration(left_out: Floats) -> float:
    """A sixth of the skewness of the jackknife values: how the error changes with the value."""
    pull = np.nanmean(left_out) - left_out[~np.isnan(left_out)]
    scale = np.sum(pull**2) ** 1.5
    return float(np.sum(pull**3) / (6 * scale)) if scale > 0 else 0.0
