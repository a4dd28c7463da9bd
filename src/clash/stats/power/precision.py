"""How many items make an interval as narrow as asked: concordance, kappa, test-retest.

Half-widths are half the length of the two-sided interval; ``level`` is its confidence.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import normal_quantile, wilson
from clash.stats.power.comparisons import ALONE
from clash.stats.power.design import Clustering, Demand

if TYPE_CHECKING:
    from clash.stats.typing import Floats


def concordance_items(
    half_width: float, expected: float = 0.8, clustering: Clustering = ALONE, level: float = 0.95
) -> Demand:
    """Labelled items for a Wilson interval of this half-width around an expected concordance.

    Args:
        half_width: in (0, 0.5).
        expected: the concordance that is expected; 0.5 is the most demanding.
        clustering: of items that share a question.
        level: of the interval.

    Raises:
        StatisticsError: a half-width or a proportion out of range.
    """
    _check_width(half_width, 0.5)
    if not 0 <= expected <= 1:
        raise StatisticsError(f"an expected concordance lies in [0, 1], not {expected:g}")
    low, high = 0.0, 1.0
    while wilson(expected * high, high, level).half_width > half_width:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        wide = middle == 0 or wilson(expected * middle, middle, level).half_width > half_width
        low, high = (middle, high) if wide else (low, middle)
    return Demand.of(high, clustering)


def kappa_variance(kappa: float, first: float = 0.5, second: float | None = None) -> float:
    """N times the large-sample variance of Cohen's kappa of two binary raters.

    Fleiss, Cohen, Everitt (1969), at the table that the margins and kappa imply.

    Args:
        kappa: expected agreement beyond chance.
        first: share of class 1 of the first rater.
        second: of the second; the same where null.

    Raises:
        StatisticsError: no table has these margins and this kappa.
    """
    table = kappa_table(kappa, first, first if second is None else second)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    chance = float(rows @ columns)
    credit = np.eye(2)
    reach = columns[:, None] + rows[None, :]
    agreement = float(np.trace(table))
    pull = (credit - agreement - (1 - kappa) * (reach - 2 * chance)) / (1 - chance)
    return float(np.sum(table * pull**2))


def kappa_table(kappa: float, first: float, second: float) -> Floats:
    """The 2 x 2 table of shares with these margins and this kappa.

    Raises:
        StatisticsError: there is none.
    """
    if not (0 < first < 1 and 0 < second < 1):
        raise StatisticsError("kappa needs raters that use both classes")
    chance = first * second + (1 - first) * (1 - second)
    agree = chance + kappa * (1 - chance)
    both_one = (agree - 1 + first + second) / 2
    table = np.array(
        [[both_one, first - both_one], [second - both_one, 1 - first - second + both_one]]
    )
    if np.any(table < -1e-12):
        raise StatisticsError(
            f"raters with {first:.0%} and {second:.0%} of class 1 cannot have a kappa of {kappa:g}"
        )
    shares: Floats = np.clip(table, 0.0, None)
    return shares


def kappa_items(
    half_width: float,
    kappa: float = 0.6,
    first: float = 0.5,
    second: float | None = None,
    clustering: Clustering = ALONE,
    level: float = 0.95,
) -> Demand:
    """Items that two raters must share for an interval of kappa of this half-width.

    Raises:
        StatisticsError: as :func:`kappa_variance`, or a half-width out of (0, 1).
    """
    _check_width(half_width, 1)
    z = normal_quantile(level)
    return Demand.of((z / half_width) ** 2 * kappa_variance(kappa, first, second), clustering)


def retest_items(
    half_width: float,
    agreement: float = 0.8,
    runs: int = 2,
    clustering: Clustering = ALONE,
    level: float = 0.95,
) -> Demand:
    """Items for an interval of this half-width around the agreement of runs with each other.

    The statistic is the share of pairs of runs with the same verdict, averaged over items. With
    two runs that is a proportion. With more, its variance depends on how instability is spread
    over items; here each item's probability of either verdict is a draw from a symmetric beta
    distribution that has this agreement (few hopeless items and many that waver a little are
    alike to it).

    Args:
        half_width: in (0, 0.5).
        agreement: expected share of agreeing pairs, at least 0.5 for two verdicts.
        runs: R >= 2.
        clustering: of items that share a question.
        level: of the interval.

    Raises:
        StatisticsError: values out of range.
    """
    if runs < 2:
        raise StatisticsError("agreement of runs needs at least two runs")
    if not 0.5 <= agreement <= 1:
        raise StatisticsError(f"two verdicts agree by chance half the time, not {agreement:g}")
    _check_width(half_width, 0.5)
    single = concordance_items(half_width, agreement, level=level).independent
    if agreement == 1:
        return Demand.of(single, clustering)
    share = retest_variance(agreement, runs) / (agreement * (1 - agreement))
    return Demand.of(single * share, clustering)


def retest_variance(agreement: float, runs: int) -> float:
    """Variance over items of the share of agreeing pairs among ``runs`` runs."""
    counts = np.arange(runs + 1)
    pairs = runs * (runs - 1)
    agreements = (counts * (counts - 1) + (runs - counts) * (runs - counts - 1)) / pairs
    weights = _beta_binomial(runs, 2 * agreement - 1)
    mean = float(weights @ agreements)
    return float(weights @ (agreements - mean) ** 2)


def _beta_binomial(n: int, icc: float) -> Floats:
    """P(k of n) for a symmetric beta-binomial with this intra-class correlation."""
    from scipy.special import betaln, gammaln

    k = np.arange(n + 1)
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    if icc <= 0:
        logs = choose - n * math.log(2)
    else:
        a = (1 / icc - 1) / 2
        logs = choose + betaln(k + a, n - k + a) - betaln(a, a)
    weights: Floats = np.exp(logs)
    total: Floats = weights / weights.sum()
    return total


def _check_width(half_width: float, most: float) -> None:
    if not 0 < half_width < most:
        raise StatisticsError(f"a half-width lies in (0, {most:g}), not {half_width:g}")
