"""Agreement between raters, beyond chance and raw, with intervals.

Codes are integers 0..C-1, with -1 for missing, unless said otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, normal_quantile, t_quantile, wilson
from clash.stats.resample import FEWEST_CLUSTERS, cluster_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


Weighting = Literal["none", "linear", "quadratic"]
MeasurementLevel = Literal["nominal", "ordinal", "interval"]
_LANDIS_KOCH = (
    (0.0, "poor"),
    (0.2, "slight"),
    (0.4, "fair"),
    (0.6, "moderate"),
    (0.8, "substantial"),
)


@dataclass(frozen=True, slots=True)
class Kappa:
    """Cohen's kappa of two raters.

    Attributes:
        interval: kappa with its interval, within [-1, 1].
        observed: share of the pairs that agree (weighted agreement where weighted).
        expected: the same if the raters were independent with the margins they have.
        table: (C, C), first rater by row, second by column.
        error: large-sample standard error of kappa, over clusters where there are any.
        z: kappa over its standard error under independence; NaN where that is 0.
    """

    interval: Interval
    observed: float
    expected: float
    table: Floats
    z: float
    error: float = math.nan

    @property
    def estimate(self) -> float:
        """Kappa; NaN where it is undefined (both raters used one and the same class)."""
        return self.interval.estimate

    @property
    def words(self) -> str:
        """The adjective of Landis and Koch; see :func:`landis_koch`."""
        return landis_koch(self.estimate)


def landis_koch(kappa: float) -> str:
    """The adjective of Landis and Koch (1977) for a kappa: a convention, not a test.

    Bounds belong to the lower adjective; NaN is ``undefined``.
    """
    if math.isnan(kappa):
        return "undefined"
    return next((word for bound, word in _LANDIS_KOCH if kappa <= bound), "almost perfect")


def confusion(first: ArrayLike, second: ArrayLike, n_classes: int) -> Floats:
    """How often each pair of codes occurs, (C, C); pairs with a missing code are left out.

    Raises:
        StatisticsError: shapes that differ or codes out of range.
    """
    a, b = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp)
    if a.shape != b.shape or a.ndim != 1:
        raise StatisticsError(f"codes of two raters have shapes {a.shape} and {b.shape}")
    if a.size and (min(a.min(), b.min()) < -1 or max(a.max(), b.max()) >= n_classes):
        raise StatisticsError(f"codes lie in 0..{n_classes - 1}, or are -1 for missing")
    present = (a >= 0) & (b >= 0)
    counts = np.bincount(a[present] * n_classes + b[present], minlength=n_classes**2)
    return counts.reshape(n_classes, n_classes).astype(float)


def cohen_kappa(
    first: ArrayLike,
    second: ArrayLike,
    n_classes: int = 2,
    *,
    weighting: Weighting = "none",
    clusters: ArrayLike | None = None,
    level: float = 0.95,
) -> Kappa:
    """Kappa of two raters over the same n observations.

    Over sides (what was said against what the label says) and over match/miss (whether two
    runs both met the label) it is the same function of different codes, and not the same
    number: name in a report which one it is. With two classes and even margins, kappa over
    sides is 2p - 1.

    Args:
        first: (n,), codes.
        second: (n,), codes.
        n_classes: C.
        weighting: of disagreements by distance of the codes (Cohen 1968).
        clusters: (n,), what may depend on each other; the standard error is then robust to it.
        level: confidence level.

    Returns:
        The interval is Wilson's for (1 + kappa) / 2 with the large-sample standard error (Fleiss,
        Cohen, Everitt 1969), with clusters by the sum of influences in each and a t quantile.
        Where that error is 0 (perfect agreement, say), it is Wilson's for the observed agreement
        at the expected agreement found. Undefined kappa: NaN in [-1, 1].

    Raises:
        StatisticsError: shapes that differ or codes out of range.
    """
    table = confusion(first, second, n_classes)
    a, b = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp)
    paired_rows = (a >= 0) & (b >= 0)
    groups = None if clusters is None else np.asarray(clusters)[paired_rows]
    return _kappa(table, a[paired_rows], b[paired_rows], weighting, groups, level)


def kappa_from_table(
    table: ArrayLike, *, weighting: Weighting = "none", level: float = 0.95
) -> Kappa:
    """:func:`cohen_kappa` from a (C, C) table of counts, first rater by row.

    Raises:
        StatisticsError: not square, or counts that are no non-negative integers.
    """
    counts = np.asarray(table, dtype=float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise StatisticsError(f"a table of two raters is square, not {counts.shape}")
    if not np.all((counts >= 0) & (counts == np.round(counts))):
        raise StatisticsError("a table holds counts")
    cells = np.repeat(np.arange(counts.size), counts.ravel().astype(np.intp))
    a, b = np.divmod(cells, len(counts))
    return _kappa(counts, a, b, weighting, None, level)


def _kappa(
    table: Floats,
    a: Codes,
    b: Codes,
    weighting: Weighting,
    clusters: NDArray[np.generic] | None,
    level: float,
) -> Kappa:
    n = len(a)
    if n == 0:
        return Kappa(_undefined_interval(level, 0), math.nan, math.nan, table, math.nan)
    p, w = table / n, _agreement_weights(len(table), weighting)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    agreement, by_chance = float(np.sum(w * p)), float(rows @ w @ columns)
    if by_chance >= 1 - 1e-12:
        return Kappa(_undefined_interval(level, n), agreement, by_chance, table, math.nan)
    kappa = (agreement - by_chance) / (1 - by_chance)
    # What one observation in a cell adds to kappa, the derivative of (p_o - p_e) / (1 - p_e) by
    # the cell's share; its mean square over n is the large-sample variance of Fleiss, Cohen and
    # Everitt (1969).
    of_row, of_column = w @ columns, rows @ w
    reach = of_row[:, None] + of_column[None, :]
    influence = (w - agreement - (1 - kappa) * (reach - 2 * by_chance)) / (1 - by_chance)
    error, df = _clustered_error(influence[a, b], clusters)
    chance = rows[:, None] * columns[None, :]
    null = np.sum(chance * (w - reach) ** 2) - by_chance**2
    # Their variance under independence of the raters; 1e-15 is 0 but for rounding.
    z = kappa * (1 - by_chance) / math.sqrt(null / n) if null > 1e-15 else math.nan
    interval = _kappa_interval(kappa, agreement, by_chance, error, df, n, level)
    return Kappa(interval, agreement, by_chance, table, z, error)


def _agreement_weights(n_classes: int, weighting: Weighting) -> Floats:
    distance = np.abs(np.subtract.outer(np.arange(n_classes), np.arange(n_classes))).astype(float)
    if weighting == "none":
        identity: Floats = (distance == 0).astype(float)
        return identity
    share = distance / max(1, n_classes - 1)
    credit: Floats = 1.0 - (share if weighting == "linear" else share**2)
    return credit


def _clustered_error(
    influence: Floats, clusters: NDArray[np.generic] | None
) -> tuple[float, float]:
    """Standard error of a mean influence, and its degrees of freedom."""
    n = len(influence)
    if clusters is None:
        return math.sqrt(float(np.sum(influence**2))) / n, math.inf
    codes = np.unique(clusters, return_inverse=True)[1]
    totals = np.bincount(codes, weights=influence)
    groups = len(totals)
    if groups < 2:
        return math.inf, 1
    # G / (G - 1), as the totals sum to 0 around the estimate; see intervals.ratio_variance.
    return math.sqrt(groups / (groups - 1) * float(np.sum(totals**2))) / n, groups - 1


def _kappa_interval(
    kappa: float, agreement: float, by_chance: float, error: float, df: float, n: int, level: float
) -> Interval:
    groups = n if math.isinf(df) else df + 1
    suffix = "" if math.isinf(df) else ", clustered"
    if math.isinf(error):
        return Interval(kappa, -1.0, 1.0, level, n, groups, "none: one cluster")
    if error < 1e-12:
        # Perfect agreement has no large-sample error, and is not certain all the same.
        share = wilson(min(1.0, max(0.0, agreement)) * groups, groups, level)
        low, high = ((bound - by_chance) / (1 - by_chance) for bound in (share.low, share.high))
        method = "wilson at the expected agreement found"
    else:
        # (1 + kappa) / 2 as a share of so many observations as have its large-sample error: bounds
        # in the range and, near 1, as far below as above is near. Of few clusters, a t quantile.
        quantile = normal_quantile(level) if math.isinf(df) else t_quantile(level, df)
        error *= quantile / normal_quantile(level)
        half = min(1.0, max(0.0, (1 + kappa) / 2))
        effective = half * (1 - half) / (error / 2) ** 2
        share = wilson(half * effective, effective, level)
        low, high = 2 * share.low - 1, 2 * share.high - 1
        method = "wilson, large-sample error" + suffix
    return Interval(kappa, max(-1.0, low), min(1.0, high), level, n, groups, method)


def _undefined_interval(level: float, n: int) -> Interval:
    return Interval(math.nan, -1.0, 1.0, level, n, n, "undefined")


def _divide(top: Floats, bottom: Floats) -> Floats:
    out = np.full(top.shape, np.nan)
    ratio: Floats = np.divide(top, bottom, out=out, where=np.abs(bottom) > 1e-12)
    return ratio


def krippendorff_alpha(
    values: ArrayLike,
    scale: MeasurementLevel = "nominal",
    *,
    rng: np.random.Generator | None = None,
    clusters: ArrayLike | None = None,
    n_bootstrap: int = 1000,
    level: float = 0.95,
) -> Interval:
    """Krippendorff's alpha: 1 - observed / expected disagreement, missing ratings allowed.

    Items with fewer than two ratings say nothing about agreement and are left out. 0 is the
    value under chance, below 0 is systematic disagreement (Krippendorff 2018, chapter 12).

    Args:
        values: (N, J), items by raters, NaN for missing.
        scale: how far apart two values are: not the same; ranks in between; difference squared.
        rng: for the interval, a bootstrap over items (or clusters of them); without it, and with
            fewer than six of them, the interval is [-1, 1] and the method says so.
        clusters: (N,), codes.
        n_bootstrap: resamples.
        level: confidence level.

    Returns:
        NaN in [-1, 1] where no item has two ratings or all ratings are the same value.

    Raises:
        StatisticsError: values that are not (N, J).
    """
    table = np.asarray(values, dtype=float)
    if table.ndim != 2:
        raise StatisticsError(f"expected items by raters, not an array of shape {table.shape}")
    pairable = np.sum(~np.isnan(table), axis=1) >= 2
    table = table[pairable]
    alpha = _AlphaStatistic(table, scale)
    estimate = float(alpha(np.ones((1, len(table))))[0]) if len(table) else math.nan
    if math.isnan(estimate):
        return _undefined_interval(level, len(table))
    groups = np.arange(len(table)) if clusters is None else np.asarray(clusters)[pairable]
    n_groups = len(np.unique(groups))
    if rng is None or n_groups < FEWEST_CLUSTERS:
        return Interval(estimate, -1.0, 1.0, level, len(table), n_groups, "no interval")
    bootstrap = cluster_bootstrap(alpha, groups, rng, n_bootstrap, level=level)
    return bootstrap.interval().within(-1.0, 1.0)


class _AlphaStatistic:
    """Alpha as a function of item weights, (B, N) to (B,)."""

    def __init__(self, table: Floats, scale: MeasurementLevel) -> None:
        present = ~np.isnan(table)
        self.scale = scale
        self.values, codes = np.unique(table[present], return_inverse=True)
        n_items, n_values = len(table), len(self.values)
        item = np.nonzero(present)[0]
        counts = np.bincount(item * n_values + codes, minlength=n_items * n_values)
        self.counts = counts.reshape(n_items, n_values).astype(float)
        self.pairs = self.counts.sum(axis=1) - 1

    def __call__(self, weights: Floats) -> Floats:
        """Alpha of each row of weights; NaN where nothing varies."""
        margins = weights @ self.counts
        if self.scale == "ordinal":
            parts = [self._ordinal(w, m) for w, m in zip(weights, margins, strict=True)]
            disagreement, by_chance = np.array(parts).T
        else:
            # Sums over pairs of values, from sums over values: no table of pairs is held.
            within = self._within()
            disagreement = weights @ (within / self.pairs)
            total = margins.sum(axis=1)
            by_chance = self._spread(margins) / np.maximum(total - 1, 1)
        return 1 - _divide(disagreement, by_chance)

    def _within(self) -> Floats:
        return self._spread(self.counts)

    def _spread(self, counts: Floats) -> Floats:
        """Sum of the distances over ordered pairs of ratings, for each row of counts."""
        total = counts.sum(axis=1)
        if self.scale == "nominal":
            unequal: Floats = total**2 - np.sum(counts**2, axis=1)
            return unequal
        offsets = self.values - self.values.mean()
        spread: Floats = 2 * (total * (counts @ offsets**2) - (counts @ offsets) ** 2)
        return spread

    def _ordinal(self, weights: Floats, margins: Floats) -> tuple[float, float]:
        # Distance of two ranks: the ratings between them, half of those at either end.
        below = np.cumsum(margins) - margins / 2
        distance = np.subtract.outer(below, below) ** 2
        shares = self.counts * (weights / self.pairs)[:, None]
        together = self.counts.T @ shares - np.diag(shares.sum(axis=0))
        disagreement = float(np.sum(together * distance))
        apart = float(margins @ distance @ margins)
        return disagreement, apart / max(margins.sum() - 1, 1)
