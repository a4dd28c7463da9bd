"""Tests of hypotheses about proportions, tables and paired methods.

Tables are [[a, b], [c, d]]: rows are groups, columns success and failure. All p values are
two-sided unless the name says otherwise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import (
    Interval,
    encode_clusters,
    mean_clustered,
    normal_quantile,
    t_quantile,
)
from clash.stats.resample import cluster_bootstrap

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Floats


_EXACT_RANKS = 200
"""Clusters up to which the distribution of signed ranks is computed and not approximated."""
_ROUNDING = 1e-12
_EXACT_FLIPS = 12
_PERMUTATIONS = 9999
"""Clusters up to which all 2^12 = 4096 sign patterns are tried, fewer than a random draw has."""


@dataclass(frozen=True, slots=True)
class Significance:
    """The result of a test.

    Attributes:
        p: probability of data at least this far from the hypothesis, if it holds.
        statistic: z, chi-square, t, odds ratio or a count, as the method says.
        method: the name of the test, for the report.
    """

    p: float
    statistic: float
    method: str


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How much better one method does than another on the same items."""

    difference: Interval
    test: Significance


def two_proportions(k1: float, n1: float, k2: float, n2: float) -> Significance:
    """The pooled z test that k1 of n1 and k2 of n2 have one proportion.

    For independent observations in both groups. p = 1 where either group is empty or all
    observations are alike: the data cannot tell them apart.

    Raises:
        StatisticsError: counts that are no proportion.
    """
    for k, n in ((k1, n1), (k2, n2)):
        if not 0 <= k <= n:
            raise StatisticsError(f"{k} of {n} is not a proportion")
    name = "two-proportion z test"
    if not (n1 and n2):
        return Significance(1.0, 0.0, name)
    rate = (k1 + k2) / (n1 + n2)
    variance = rate * (1 - rate) * (1 / n1 + 1 / n2)
    if variance == 0:
        return Significance(1.0, 0.0, name)
    z = (k1 / n1 - k2 / n2) / math.sqrt(variance)
    return Significance(two_sided(z), z, name)


def two_sided(z: float) -> float:
    """The two-sided p value of a standard normal deviate."""
    return math.erfc(abs(z) / math.sqrt(2))


def binomial_tail(k: int, n: int, p: float = 0.5) -> Significance:
    """P(X >= k) of n trials with success probability ``p``: a one-sided exact test.

    Raises:
        StatisticsError: k outside 0..n, or p outside [0, 1].
    """
    from scipy.special import betainc

    if not (0 <= k <= n and 0 <= p <= 1):
        raise StatisticsError(f"no tail of {k} of {n} at {p}")
    tail = 1.0 if k == 0 else float(betainc(k, n - k + 1, p))
    return Significance(tail, k, f"binomial tail P(X >= {k} of {n})")


def sign_test(wins: int, losses: int) -> Significance:
    """The exact test that wins and losses are equally likely, ties left out.

    The statistic is wins - losses. p = 1 where there are none.

    Raises:
        StatisticsError: negative counts.
    """
    if wins < 0 or losses < 0:
        raise StatisticsError("wins and losses are counts")
    p = min(1.0, 2 * binomial_tail(max(wins, losses), wins + losses).p)
    return Significance(p, wins - losses, "sign test")


def mcnemar(first: int, second: int, *, exact: bool = True) -> Significance:
    """McNemar's test that two methods on the same items are right equally often.

    Args:
        first: items that only the first method got right.
        second: items that only the second got right.
        exact: by the binomial distribution; else chi-square with continuity correction
            (Edwards 1948), which brings the p of a discrete count near the exact one; floored
            at 0, where it would turn the sign.

    Returns:
        p = 1 where both counts are 0.

    Raises:
        StatisticsError: negative counts.
    """
    if exact:
        return Significance(sign_test(first, second).p, min(first, second), "McNemar, exact")
    if first < 0 or second < 0:
        raise StatisticsError("discordant pairs are counts")
    name, n = "McNemar, chi-square with continuity correction", first + second
    statistic = max(abs(first - second) - 1, 0) ** 2 / n if n else 0.0
    return Significance(two_sided(math.sqrt(statistic)), statistic, name)


def chi_square(table: ArrayLike, *, correction: bool = False) -> Significance:
    """Pearson's chi-square (df = 1) of a 2 x 2 table, with or without Yates' correction.

    p = 1 where a margin is empty. Below expected counts of about 5 use :func:`fisher_exact`.

    Raises:
        StatisticsError: not 2 x 2 counts.
    """
    (a, b), (c, d) = cells(table)
    n = a + b + c + d
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    name = "chi-square" + (" with Yates' correction" if correction else "")
    if margins == 0:
        return Significance(1.0, 0.0, name)
    gap = abs(a * d - b * c)
    if correction:
        gap = max(gap - n / 2, 0.0)
    statistic = n * gap**2 / margins
    return Significance(two_sided(math.sqrt(statistic)), statistic, name)


def cells(table: ArrayLike) -> list[list[float]]:
    """A 2 x 2 table of counts as numbers.

    Raises:
        StatisticsError: it is none.
    """
    counts = np.asarray(table, dtype=float)
    if counts.shape != (2, 2) or not np.all((counts >= 0) & np.isfinite(counts)):
        raise StatisticsError("expected a 2 x 2 table of counts")
    values: list[list[float]] = counts.tolist()
    return values


def smallest_expected(table: ArrayLike) -> float:
    """The smallest expected count of a 2 x 2 table; below 5 the chi-square test is unsafe."""
    (a, b), (c, d) = cells(table)
    n = a + b + c + d
    return min(a + b, c + d) * min(a + c, b + d) / n if n else 0.0


def fisher_exact(table: ArrayLike) -> Significance:
    """Fisher's exact test: the tables with these margins that are no likelier than this one.

    Raises:
        StatisticsError: not 2 x 2 counts.
    """
    from scipy.special import gammaln

    (a, b), (c, d) = cells(table)
    row, column, n = a + b, a + c, a + b + c + d
    x = np.arange(max(0, row + column - n), min(row, column) + 1)
    logs = -(
        gammaln(x + 1)
        + gammaln(row - x + 1)
        + gammaln(column - x + 1)
        + gammaln(n - row - column + x + 1)
    )
    weights = np.exp(logs - logs.max())
    weight = weights[round(a - x[0])]
    # Tables as likely as this one differ from it in the last bits, and belong to the sum.
    p = float(weights[weights <= weight * (1 + 1e-7)].sum() / weights.sum())
    return Significance(min(1.0, p), a, "Fisher's exact test")


def odds_ratio(table: ArrayLike, level: float = 0.95) -> Interval:
    """The odds ratio a d / (b c) with Woolf's interval on the log scale.

    Where a cell is 0, each cell is raised by 0.5 first (Haldane 1956, Anscombe 1956), and the
    method says so. NaN in (0, infinity) for an empty row or column.

    Raises:
        StatisticsError: not 2 x 2 counts.
    """
    (a, b), (c, d) = cells(table)
    n = a + b + c + d
    if (a + b) * (c + d) * (a + c) * (b + d) == 0:
        return Interval(math.nan, 0.0, math.inf, level, n, n, "undefined")
    method = "woolf"
    if min(a, b, c, d) == 0:
        a, b, c, d = a + 0.5, b + 0.5, c + 0.5, d + 0.5
        method = "woolf, cells raised by 0.5"
    ratio = a * d / (b * c)
    reach = normal_quantile(level) * math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    return Interval(ratio, ratio * math.exp(-reach), ratio * math.exp(reach), level, n, n, method)


def paired_difference(
    first: ArrayLike, second: ArrayLike, clusters: ArrayLike | None = None, level: float = 0.95
) -> PairedDifference:
    """Mean of first - second on shared items, by a cluster-robust t test.

    Args:
        first: (n,), credit of the first method on each item, such as 1 right, 0 wrong.
        second: (n,), of the second.
        clusters: (n,), items whose errors are shared; None where they are independent.
        level: confidence level.

    Returns:
        With fewer than two clusters p = 1 and nothing is ruled out. Where all differences are the
        same and not 0, p is that of all signs alike, 2 / 2^G. Of credits between 0 and 1 the interval
        ends at -1 and 1, and has a length also where all differences are the same
        (:meth:`~clash.stats.intervals.Interval.within`).

    Raises:
        StatisticsError: NaN among the values, or shapes that differ.
    """
    from scipy.special import stdtr

    x, y = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if x.shape != y.shape:
        raise StatisticsError(f"methods with {x.shape} and {y.shape} items are not paired")
    _, _, groups = encode_clusters(x - y, clusters)
    gap = mean_clustered(x - y, clusters, level)
    interval = gap.within(-1.0, 1.0) if _are_shares(x, y) else gap
    name = "paired t test" + ("" if clusters is None else ", clustered")
    if groups < 2 or gap.estimate == 0:
        return PairedDifference(interval, Significance(1.0, 0.0, name))
    if gap.half_width <= 1e-12 * abs(gap.estimate):  # 0 but for rounding
        # No t, but G differences of one sign, which equal methods have with this probability.
        p, t = min(1.0, 2 * 0.5**groups), math.copysign(math.inf, gap.estimate)
        return PairedDifference(interval, Significance(p, t, name))
    t = gap.estimate / (gap.half_width / t_quantile(level, groups - 1))
    return PairedDifference(interval, Significance(2 * float(stdtr(groups - 1, -abs(t))), t, name))


def _are_shares(x: Floats, y: Floats) -> bool:
    """Whether all credits lie between 0 and 1, so that a difference lies between -1 and 1."""
    ends = [end for values in (x, y) if len(values) for end in (values.min(), values.max())]
    return all(0 <= end <= 1 for end in ends)


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    n: int = 2000,
    *,
    level: float = 0.95,
) -> PairedDifference:
    """Mean of first - second by a bootstrap over clusters.

    p is twice the smaller share of replicates at or beyond 0, never below 2 / (n + 1); the
    statistic is the difference. The interval of credits between 0 and 1 is kept as that of
    :func:`paired_difference`.

    Raises:
        StatisticsError: shapes that differ, NaN, or fewer than two clusters.
    """
    pair = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    x, codes, _ = encode_clusters(pair[0] - pair[1], clusters)
    bootstrap = cluster_bootstrap(lambda w: w @ x / w.sum(axis=1), codes, rng, n, level=level)
    values = bootstrap.replicates[:, 0]
    below, above = np.sum(values <= 0), np.sum(values >= 0)
    # + 1: the sample itself is one of the replicates (Davison, Hinkley 1997, chapter 4), so
    # that no finite number of them gives p = 0.
    p = min(1.0, 2 * (min(below, above) + 1) / (len(values) + 1))
    test = Significance(float(p), float(bootstrap.estimate[0]), "paired bootstrap over clusters")
    interval = bootstrap.interval()
    if _are_shares(*pair):
        interval = interval.within(-1.0, 1.0)
    return PairedDifference(interval, test)


def sign_flip_test(
    first: ArrayLike,
    second: ArrayLike,
    clusters: ArrayLike,
    rng: np.random.Generator,
    n: int = 10000,
) -> Significance:
    """The permutation test that two methods are interchangeable on every cluster.

    All sign patterns for up to 12 clusters with a difference, ``n`` random ones for more. The
    statistic is the sum of differences.

    Raises:
        StatisticsError: shapes that differ or NaN.
    """
    gap = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    gap, codes, groups = encode_clusters(gap, clusters)
    totals = np.bincount(codes, weights=gap, minlength=groups)
    totals = totals[totals != 0]
    total = float(totals.sum())
    name = "sign-flip test over clusters"
    if not len(totals):
        return Significance(1.0, 0.0, name)
    exact = len(totals) <= _EXACT_FLIPS
    signs = _all_signs(len(totals)) if exact else rng.choice([-1.0, 1.0], (n, len(totals)))
    beyond = int(np.sum(np.abs(signs @ totals) >= abs(total) - 1e-9))
    # The observed pattern counts among the random ones (Phipson, Smyth 2010), or p could be 0.
    p = beyond / len(signs) if exact else (beyond + 1) / (n + 1)
    return Significance(p, total, name)


def wilcoxon_signed_rank(
    first: ArrayLike, second: ArrayLike, clusters: ArrayLike | None = None
) -> Significance:
    """Wilcoxon's signed rank test that first - second is symmetric around 0 (Wilcoxon 1945).

    Of the means of clusters; equal ones are left out, tied sizes share the mean of their ranks. Up to
    200 of them the distribution over all signs is computed, ties included; beyond, the normal
    approximation without continuity correction. The statistic is the sum of the positive ranks.

    Returns:
        p = 1 where no cluster differs.

    Raises:
        StatisticsError: NaN, or shapes that differ.
    """
    gap = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    gap, codes, groups = encode_clusters(gap, clusters)
    sizes = np.bincount(codes, minlength=groups)
    means = np.bincount(codes, weights=gap, minlength=groups) / np.maximum(sizes, 1)
    means = np.round(means[np.abs(means) > _ROUNDING], 12)
    name = "Wilcoxon signed rank" + ("" if clusters is None else ", over clusters")
    if not len(means):
        return Significance(1.0, 0.0, name)
    from scipy.stats import rankdata

    ranks = rankdata(np.abs(means))
    positive = float(ranks[means > 0].sum())
    if len(ranks) <= _EXACT_RANKS:
        return Significance(_signed_rank_p(ranks, positive), positive, name)
    spread = math.sqrt(float(ranks @ ranks) / 4)
    return Significance(two_sided((positive - float(ranks.sum()) / 2) / spread), positive, name)


def _signed_rank_p(ranks: Floats, positive: float) -> float:
    """Two-sided, over all signs: how many sums of ranks are as far from their middle.

    Ranks are counted in halves, so that tied ones are whole numbers.
    """
    halves = np.round(2 * ranks).astype(int)
    chances = np.ones(1)
    for rank in halves:
        longer = np.zeros(len(chances) + rank)
        longer[: len(chances)] += chances / 2
        longer[rank:] += chances / 2
        chances = longer
    sums = np.arange(len(chances))
    middle = halves.sum() / 2
    is_beyond = np.abs(sums - middle) >= abs(round(2 * positive) - middle) - 1e-9
    return min(1.0, float(chances[is_beyond].sum()))


def _all_signs(k: int) -> Floats:
    bits = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
    return np.where(bits == 1, 1.0, -1.0)


def holm(p_values: ArrayLike) -> Floats:
    """Holm's correction for looking at several tests at once (Holm 1979), in the given order.

    Reject those at or below alpha: the chance of any false one is at most alpha.

    Raises:
        StatisticsError: a p outside [0, 1].
    """
    p = np.asarray(p_values, dtype=float)
    if p.ndim != 1 or not np.all((p >= 0) & (p <= 1)):
        raise StatisticsError("p values lie in [0, 1]")
    order = np.argsort(p, kind="stable")
    # The k-th smallest p against alpha / (m - k + 1); the running maximum keeps the order, since
    # no hypothesis is rejected after the first that is not.
    running_max = np.maximum.accumulate(p[order] * (len(p) - np.arange(len(p))))
    corrections: Floats = np.ones(len(p))
    corrections[order] = np.minimum(running_max, 1.0)
    return corrections


def cochran_q(
    success: ArrayLike, clusters: ArrayLike | None = None, rng: np.random.Generator | None = None
) -> Significance:
    """Whether m methods succeed equally often on the same items (Cochran 1950).

    Q = (m - 1) (m sum_j G_j² - N²) / (m N - sum_i L_i²) for the successes G_j of the methods, L_i of
    the items and N in all. p is that of chi-square with m - 1 degrees of freedom; with clusters, of
    the permutations of the methods within each cluster, all items of one alike.

    Args:
        success: (n, m), 0 or 1.
        clusters: (n,), items whose errors are shared; None where they are independent.
        rng: for the permutations.

    Returns:
        p = 1 and a statistic of 0 where every item has the same outcome with all methods.

    Raises:
        StatisticsError: fewer than two methods, no item, or clusters without a generator.
    """
    from scipy.special import chdtrc

    x = np.asarray(success, dtype=float)
    if x.ndim != 2 or x.shape[1] < 2 or not len(x):
        raise StatisticsError("Cochran's Q needs items and two methods or more")
    m, rows = x.shape[1], x.sum(axis=1)
    scale = m * rows.sum() - (rows**2).sum()
    if scale == 0:
        return Significance(1.0, 0.0, "Cochran's Q")
    codes, names = encode_clusters(rows, clusters)[1], "Cochran's Q"
    totals = np.stack([np.bincount(codes, column) for column in x.T], axis=1)
    q = float((m - 1) * (m * (x.sum(axis=0) ** 2).sum() - rows.sum() ** 2) / scale)
    if len(totals) == len(x):
        return Significance(float(chdtrc(m - 1, q)), q, names)
    if rng is None:
        raise StatisticsError("clusters are permuted, which needs a generator")
    # Only sum_j G_j² changes from one permutation to the next.
    statistic, hits = (totals.sum(axis=0) ** 2).sum(), 0
    for _ in range(_PERMUTATIONS):
        order = rng.permuted(np.tile(np.arange(m), (len(totals), 1)), axis=1)
        sums = np.take_along_axis(totals, order, axis=1).sum(axis=0)
        hits += (sums**2).sum() >= statistic - 1e-9
    return Significance((hits + 1) / (_PERMUTATIONS + 1), q, f"{names}, permutation of clusters")
