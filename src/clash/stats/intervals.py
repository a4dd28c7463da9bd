"""Intervals for proportions, differences of proportions and means, independent or clustered.

Cluster arguments are arrays of shape (n,) of any integer codes; observations with the same code
may depend on each other in any way (several pairs on one question, two orders of one pair).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats


LEVEL = 0.95
"""The confidence level of what a report prints."""


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate and the values that the data do not rule out at ``level``.

    Attributes:
        n: observations.
        n_effective: independent observations with the same information; equals ``n`` where
            nothing is clustered.
        method: the name of the construction, for the report.
    """

    estimate: float
    low: float
    high: float
    level: float
    n: float
    n_effective: float
    method: str

    @property
    def half_width(self) -> float:
        """Half the length, which is what a report prints after ±."""
        return (self.high - self.low) / 2

    def within(self, least: float, most: float) -> Interval:
        """The same interval where every observation lies between ``least`` and ``most``.

        Observations that are all the same have no spread to show, which is no proof that the next
        ones are the same too: another value has a probability of at most z² / (n + z²), the upper
        end of Wilson's interval at 0 of n, and moves the mean no further than the range.
        """
        # Equal values whose mean is rounded differ from it by 1e-17.
        is_alike = self.high - self.low <= 1e-12 * (most - least)
        if is_alike and math.isfinite(least) and math.isfinite(most):
            square = normal_quantile(self.level) ** 2
            share = square / (max(self.n_effective, 0.0) + square)
            low = self.estimate - share * (self.estimate - least)
            high = self.estimate + share * (most - self.estimate)
            return replace(self, low=low, high=high)
        return replace(self, low=max(least, self.low), high=min(most, self.high))

    def transform(self, function: Callable[[float], float]) -> Interval:
        """The interval of a monotone function of the estimate; a falling one exchanges the ends."""
        low, high = sorted((function(self.low), function(self.high)))
        return replace(self, estimate=function(self.estimate), low=low, high=high)

    def complement(self) -> Interval:
        """The interval of one less a share."""
        return self.transform(lambda share: 1 - share)

    def negative(self) -> Interval:
        """The interval of a difference taken the other way round."""
        return self.transform(lambda difference: -difference)

    def excludes(self, value: float) -> bool:
        """Whether ``value`` lies outside: a two-sided test at 1 - ``level``."""
        return not self.low <= value <= self.high


def normal_quantile(level: float) -> float:
    """The two-sided critical value of the normal distribution, 1.96 for 0.95.

    Raises:
        StatisticsError: ``level`` is not strictly between 0 and 1.
    """
    if not 0 < level < 1:
        raise StatisticsError(f"a confidence level lies between 0 and 1, not {level}")
    return NormalDist().inv_cdf((1 + level) / 2)


def t_quantile(level: float, df: float) -> float:
    """The two-sided critical value of Student's t with ``df`` > 0 degrees of freedom."""
    from scipy.special import stdtrit

    normal_quantile(level)
    return float(stdtrit(df, (1 + level) / 2))


def wilson(k: float, n: float, level: float = 0.95, *, design_effect: float = 1.0) -> Interval:
    """Wilson's score interval for k successes of n (Wilson 1927; Brown, Cai, DasGupta 2001).

    ``k`` may be fractional (a tie as half a success). At 0/n and n/n the interval is one-sided
    and finite. For n = 0 nothing is known: estimate NaN, interval [0, 1].

    Args:
        k: successes, 0 <= k <= n.
        n: trials.
        level: confidence level.
        design_effect: variance of the proportion over its variance under independence; the
            interval is that of n / design_effect trials.

    Raises:
        StatisticsError: k outside [0, n], or a design effect that is not positive.
    """
    _check_counts(k, n)
    if not design_effect > 0:
        raise StatisticsError(f"a design effect is positive, not {design_effect}")
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, level, 0.0, 0.0, "wilson")
    p, effective = k / n, n / design_effect
    low, high = _wilson_bounds(p, effective, normal_quantile(level))
    method = "wilson" if design_effect == 1 else "wilson, design effect"
    return Interval(p, low, high, level, n, effective, method)


def _wilson_bounds(p: float, n: float, z: float) -> tuple[float, float]:
    # The roots of (p - pi)^2 = z^2 pi (1 - pi) / n in pi: the score test inverted, with the
    # variance under the tested pi and not under the estimate, which is 0 at 0/n and n/n.
    centre = p + z * z / (2 * n)
    spread = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    # 0 and 1 are attained exactly there, where rounding would leave 1e-18.
    low = 0.0 if p == 0 else (centre - spread) / scale
    high = 1.0 if p == 1 else (centre + spread) / scale
    return max(0.0, low), min(1.0, high)


def _check_counts(k: float, n: float) -> None:
    if not (n >= 0 and 0 <= k <= n):
        raise StatisticsError(f"{k} of {n} is not a proportion")


def wilson_clustered(values: ArrayLike, clusters: ArrayLike, level: float = 0.95) -> Interval:
    """A score interval for the mean of ``values`` where observations come in clusters.

    It holds the proportions pi that a score test does not reject. With p the mean, S_g the total
    of a cluster and n_g its size, the variance of p under pi is pi (1 - pi) d(pi) / n, and

        d(pi) = sum_g (S_g - n_g pi)^2 / (n p (1 - pi)^2 + n (1 - p) pi^2)

    is the design effect *under the tested pi*: Wilson's idea (1927) for the variance within
    clusters too. A design effect at p itself is too small just where p is too close to 0 or 1,
    because the few discordant clusters that would show the correlation are missing. d(pi) is kept
    between 1 and its value under complete correlation, n / n_c with n_c = n^2 / sum n_g^2: beyond
    that it is noise, and with two clusters nothing but noise. Few clusters are allowed for by the
    squared ratio of the t quantiles with n - 1 and f degrees of freedom (Korn, Graubard 1998), f
    being Satterthwaite's (1946) under the tested pi, by the clusters' own rates r_g, at most G - 1:

        f(pi) = 2 A^2 / (sum_g (r_g - pi)^4 - A^2 / G),   A = sum_g (r_g - pi)^2

    Where three of a hundred clusters hold all failures, the variance rests on three.

    So copies of an observation leave its interval unchanged, G equal clusters are worth at least G
    observations, and with one observation per cluster it is Wilson's interval. Where all values
    are equal, the correlation is taken as complete. ``benchmarks/coverage.py`` measures it.

    Args:
        values: shape (n,), in [0, 1]: 1 a success, 0 a failure, 0.5 a tie.
        clusters: shape (n,), integer codes.
        level: confidence level.

    Returns:
        ``n_effective`` is n over the design effect at the estimate, between n_c and n.

    Raises:
        StatisticsError: values outside [0, 1] or NaN, or shapes that differ. A single cluster
            of several observations has an effective n of 1.
    """
    x, codes, n_clusters = encode_clusters(values, clusters)
    if np.any((x < 0) | (x > 1)):
        raise StatisticsError("values of a proportion lie in [0, 1]")
    n = len(x)
    if n == 0:
        return Interval(math.nan, 0.0, 1.0, level, 0.0, 0.0, "wilson, clustered")
    size = _EffectiveSize(x, codes, n_clusters, level)
    z = normal_quantile(level)
    widest, tightest = (_wilson_bounds(size.p, worth, z) for worth in (size.least, size.n))
    return Interval(
        size.p,
        size.furthest_kept(widest[0], tightest[0], z),
        size.furthest_kept(widest[1], tightest[1], z),
        level,
        n,
        float(size.under(np.array([size.p]))[0]),
        "wilson, clustered",
    )


class _EffectiveSize:
    """How many independent observations clustered ones are worth, under a proportion to test.

    Attributes:
        p: the mean.
        least: their number if those of a cluster are copies, which it never falls below.
        is_known: nothing is estimated, and the size is ``least`` under every proportion.
    """

    _STEPS = 64

    def __init__(self, x: Floats, codes: Codes, n_clusters: int, level: float) -> None:
        n = len(x)
        self.p, self.n = float(x.mean()), float(n)
        totals = np.bincount(codes, weights=x, minlength=n_clusters)
        sizes = np.bincount(codes, minlength=n_clusters).astype(float)
        # sum_g (S_g - n_g pi)^2 by its powers of pi, highest first.
        self._squares = (float(sizes @ sizes), -2 * float(totals @ sizes), float(totals @ totals))
        self.least = self.n if n_clusters == n else n * n / self._squares[0]
        self.is_known = n_clusters in (1, n) or bool(np.ptp(x) == 0)
        rates = totals / np.maximum(sizes, 1)
        powers = [float((rates**k).sum()) for k in range(5)]
        self._rate_squares = (n_clusters, -2 * powers[1], powers[2])
        self._rate_fourths = (n_clusters, -4 * powers[1], 6 * powers[2], -4 * powers[3], powers[4])
        self._level, self._n_clusters = level, n_clusters

    def under(self, pi: Floats) -> Floats:
        """The effective size where the proportion is ``pi``, any shape."""
        if self.is_known:
            return np.full(np.shape(pi), self.least)
        squares = np.polyval(self._squares, pi)
        most = np.maximum(self.least, self.n * self._student(pi))
        independent = self.n * (self.p * (1 - pi) ** 2 + (1 - self.p) * pi**2)
        # most * independent / squares; no clustering to see where squares is 0.
        worth = np.divide(
            most * independent, squares, out=np.full(pi.shape, np.inf), where=squares > 0
        )
        size: Floats = np.clip(worth, self.least, most)
        return size

    def _student(self, pi: Floats) -> Floats:
        """The squared ratio of t quantiles, with the degrees of freedom under ``pi``."""
        from scipy.special import stdtrit

        squares = np.polyval(self._rate_squares, pi) ** 2
        excess = np.polyval(self._rate_fourths, pi) - squares / self._n_clusters
        freedom = np.divide(
            2 * squares, excess, out=np.full(pi.shape, np.inf), where=excess > 1e-12 * squares
        )
        t = stdtrit(np.clip(freedom, 1.0, self._n_clusters - 1), (1 + self._level) / 2)
        ratio: Floats = (t_quantile(self._level, self.n - 1) / t) ** 2
        return ratio

    def furthest_kept(self, widest: float, tightest: float, z: float) -> float:
        """The bound between two bounds: the first pi from ``widest`` on that is not rejected."""
        if self.is_known:
            return widest
        path = np.linspace(widest, tightest, self._STEPS)
        for _ in range(4):  # each round narrows the step 63-fold, to below 1e-7 of the path
            is_kept = self.under(path) * (self.p - path) ** 2 <= z * z * path * (1 - path) + 1e-15
            at = int(np.argmax(is_kept)) if is_kept.any() else len(path) - 1
            if at == 0:
                return float(path[0])
            path = np.linspace(path[at - 1], path[at], self._STEPS)
        return float(path[-1])


def ratio_variance(residuals: Floats, codes: Codes, n_clusters: int) -> float:
    """The variance of a sum of residuals, estimated from its cluster totals S_g.

    G / (G - 1) sum S_g²: the totals are independent, whatever happens within a cluster. They sum
    to 0 around the estimated mean, which costs one degree of freedom; G / (G - 1) restores it, and
    matters where clusters are few (CR1 in Cameron, Miller 2015).
    """
    totals = np.bincount(codes, weights=residuals, minlength=n_clusters)
    return float(n_clusters / (n_clusters - 1) * np.sum(totals**2))


def encode_clusters(values: ArrayLike, clusters: ArrayLike | None) -> tuple[Floats, Codes, int]:
    """``values`` as floats, ``clusters`` as codes 0..G-1, and G; None is a cluster each.

    Raises:
        StatisticsError: NaN among the values, or shapes that differ.
    """
    x = np.asarray(values, dtype=float)
    if x.ndim != 1 or np.isnan(x).any():
        raise StatisticsError("expected one row of values without NaN: leave missing ones out")
    if clusters is None:
        return x, np.arange(len(x)), len(x)
    names = np.asarray(clusters)
    if names.shape != x.shape:
        raise StatisticsError(f"{len(x)} values but clusters of shape {names.shape}")
    unique, codes = np.unique(names, return_inverse=True)
    return x, codes.astype(np.intp), len(unique)


def mean_clustered(
    values: ArrayLike, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """A t interval for a mean with a cluster-robust standard error (G - 1 degrees of freedom).

    With one observation per cluster it is Student's. With one cluster or none the variance is
    unknown and the interval unbounded. The normal quantile would be too short: with few clusters
    the variance is itself uncertain (Cameron, Miller 2015, section VI).

    Args:
        values: shape (n,), any range.
        clusters: shape (n,), integer codes; None makes every observation its own cluster.
        level: confidence level.

    Raises:
        StatisticsError: NaN among the values, or shapes that differ.
    """
    x, codes, n_clusters = encode_clusters(values, clusters)
    n = len(x)
    mean = float(x.mean()) if n else math.nan
    if n_clusters < 2:
        return Interval(mean, -math.inf, math.inf, level, n, n_clusters, "t, clustered")
    error = math.sqrt(ratio_variance(x - mean, codes, n_clusters)) / n
    reach = t_quantile(level, n_clusters - 1) * error
    spread = float(x.var(ddof=1))
    effective = min(float(n), spread / error**2) if error > 0 else float(n_clusters)
    return Interval(mean, mean - reach, mean + reach, level, n, effective, "t, clustered")


def difference(first: Interval, second: Interval) -> Interval:
    """The difference of two independent estimates from their own intervals.

    Square-and-add (Newcombe 1998, method 10, where both are Wilson's): never outside [-1, 1]
    for proportions, and not of zero length at 0/n against 0/m. NaN where an estimate is NaN,
    with the interval that the bounds allow.

    Raises:
        StatisticsError: the two have different levels.
    """
    if first.level != second.level:
        raise StatisticsError("two intervals of different levels cannot be subtracted")
    gap = first.estimate - second.estimate
    if math.isnan(gap):
        low, high = first.low - second.high, first.high - second.low
    else:
        low = gap - math.hypot(first.estimate - first.low, second.high - second.estimate)
        high = gap + math.hypot(first.high - first.estimate, second.estimate - second.low)
    return Interval(
        gap,
        low,
        high,
        first.level,
        first.n + second.n,
        first.n_effective + second.n_effective,
        "square-and-add",
    )


def newcombe(k1: float, n1: float, k2: float, n2: float, level: float = 0.95) -> Interval:
    """The difference k1/n1 - k2/n2 of independent proportions (Newcombe 1998, method 10)."""
    return difference(wilson(k1, n1, level), wilson(k2, n2, level))


def newcombe_paired(
    n_both: int, first: int, second: int, neither: int, level: float = 0.95
) -> Interval:
    """The difference of two proportions on the same items (Newcombe 1998b, method 10).

    Args:
        n_both: items that both got right.
        first: items that only the first got right.
        second: items that only the second got right.
        neither: items that both got wrong.
        level: confidence level.

    Returns:
        Interval of (first - second) / n; [-1, 1] with a NaN estimate where n = 0.
    """
    n = n_both + first + second + neither
    if n == 0:
        return Interval(math.nan, -1.0, 1.0, level, 0.0, 0.0, "newcombe, paired")
    first_rate, second_rate = wilson(n_both + first, n, level), wilson(n_both + second, n, level)
    phi = _paired_correlation(n_both, first, second, neither)
    gap = first_rate.estimate - second_rate.estimate
    low = gap - _correlated_distance(
        first_rate.estimate - first_rate.low, second_rate.high - second_rate.estimate, phi
    )
    high = gap + _correlated_distance(
        first_rate.high - first_rate.estimate, second_rate.estimate - second_rate.low, phi
    )
    return Interval(gap, low, high, level, n, n, "newcombe, paired")


def _paired_correlation(a: int, b: int, c: int, d: int) -> float:
    margins = float(a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    cross = float(a * d - b * c)
    # The continuity correction of Newcombe's method 10: a positive correlation narrows the
    # interval, so it is taken half an item per cell smaller; a negative one is left as it is.
    if cross > 0:
        cross = max(cross - (a + b + c + d) / 2, 0.0)
    return cross / math.sqrt(margins)


def _correlated_distance(x: float, y: float, phi: float) -> float:
    # The law of cosines: sd(X - Y) where X and Y have correlation phi.
    return math.sqrt(max(0.0, x * x - 2 * phi * x * y + y * y))
