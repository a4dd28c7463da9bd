"""Prediction-powered inference: many judged rows and few labelled ones make one interval.

Source: Angelopoulos, Duchi and Zrnic, PPI++ (2023), for a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, encode_clusters, mean_clustered, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean of labels, helped by the judges.

    Attributes:
        interval: of the mean label.
        labels_only: the interval of the labels alone.
        judges_only: mean of what the judges say, whose bias nothing corrects.
        power: how much of the judges' say is used, 0 to 1 (lambda); 0 is labels alone.
        bias: mean of judges minus labels on the labelled rows.
    """

    interval: Interval
    labels_only: Interval
    judges_only: float
    power: float
    bias: float


def powered_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    others: ArrayLike,
    groups: ArrayLike | None = None,
    other_groups: ArrayLike | None = None,
    level: float = 0.95,
    *,
    strata: ArrayLike | None = None,
    other_strata: ArrayLike | None = None,
) -> PoweredMean:
    """The mean label of a population from which n rows are labelled and N more only judged.

    estimate = mean(label) - power (mean(judged | labelled) - mean(judged | unlabelled)), with
    the power that makes its variance least, estimated and kept in [0, 1]. However wrong the
    judges are the interval covers, if the labelled rows are a random sample of all rows and
    the judges' say was not fitted to these labels; good judges make it narrower. With strata
    the estimate is that of each, weighed by its share of all rows, and labels need be a random
    sample within each stratum only. The variance is of cluster totals, and the quantile
    Student's with G - S - 1 degrees of freedom for G labelled clusters and S strata. Asymptotic:
    below some twenty labelled clusters do not lean on it.

    Args:
        labels: (n,), any range.
        judged: (n,), what the judges say of the labelled rows, on the labels' scale.
        others: (N,), what they say of the rest; none gives labels alone.
        groups: (n,), codes of sources; None where rows are independent.
        other_groups: (N,), likewise, in the same code: a source may be on both sides.
        level: confidence level.
        strata: (n,), codes of strata; None for one.
        other_strata: (N,), likewise.

    Raises:
        StatisticsError: fewer than two labelled sources in a stratum, NaN, or shapes that differ.
    """
    y, _, g = encode_clusters(labels, groups)
    f, rest = encode_clusters(judged, groups)[0], encode_clusters(others, other_groups)[0]
    if y.shape != f.shape:
        raise StatisticsError(f"{len(y)} labels but {len(f)} judged rows")
    if g < 2:
        raise StatisticsError("a mean needs labels of at least two sources")
    alone = mean_clustered(y, groups, level)
    if not len(rest):
        return PoweredMean(alone, alone, float(f.mean()), 0.0, float((f - y).mean()))
    code = _sources(groups, len(y), other_groups, len(rest))
    place = _codes(strata, len(y), other_strata, len(rest))
    parts = _parts(y, f, rest, code, place)
    spread = float(parts.judge @ parts.judge)
    best = -float(parts.label @ parts.judge) / spread if spread > 0 else 0.0
    power = min(max(best, 0.0), 1.0)
    means = parts.label_means + power * parts.judge_means
    estimate = float(parts.share @ means)
    between = np.bincount(code, (means - estimate)[place] / len(place), len(parts.label))
    totals = parts.label + power * parts.judge + between
    spent = max(g - len(means) - 1, 1)
    # The power was fitted to the same rows, which costs a degree of freedom.
    variance = float(totals @ totals) * max(g - len(means), 1) / spent
    reach = t_quantile(level, spent) * math.sqrt(variance)
    effective = float(y.var(ddof=1) / variance) if variance > 0 else float(len(y))
    method = "PPI++, clustered" if len(means) == 1 else "PPI++, stratified and clustered"
    found = Interval(estimate, estimate - reach, estimate + reach, level, len(y), effective, method)
    everyone = float(np.concatenate([f, rest]).mean())
    return PoweredMean(found, alone, everyone, power, float((f - y).mean()))


@dataclass(frozen=True, slots=True)
class _Parts:
    """The estimate as a sum over sources: ``label`` plus power times ``judge``.

    Attributes:
        label, judge: (G,), what each source adds to the error of the two parts, to first order.
        label_means, judge_means: (S,), the two parts of each stratum's mean.
        share: (S,), of all rows.
    """

    label: Floats
    judge: Floats
    label_means: Floats
    judge_means: Floats
    share: Floats


def _parts(y: Floats, f: Floats, rest: Floats, code: Codes, place: Codes) -> _Parts:
    n, size = len(y), int(place.max()) + 1
    share = np.bincount(place, minlength=size) / len(place)
    label, judge = np.zeros(int(code.max()) + 1), np.zeros(int(code.max()) + 1)
    label_means, judge_means = np.zeros(size), np.zeros(size)
    for s in range(size):
        mine, others = np.flatnonzero(place[:n] == s), np.flatnonzero(place[n:] == s)
        if len(np.unique(code[mine])) < 2:
            raise StatisticsError("a stratum has labels of fewer than two sources")
        own = _means(y[mine], code[mine], len(label))
        label_means[s] = own.mean
        label += share[s] * own.errors
        # Of one source nobody knows how much its like differ: it corrects nothing.
        if len(np.unique(code[n + others])) > 1:
            seen = _means(f[mine], code[mine], len(label))
            unseen = _means(rest[others], code[n + others], len(label))
            judge_means[s] = unseen.mean - seen.mean
            judge += share[s] * (unseen.errors - seen.errors)
    return _Parts(label, judge, label_means, judge_means, share)


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean, and what each source adds to its error; their sum of squares is its variance."""

    mean: float
    errors: Floats


def _means(x: Floats, code: Codes, size: int) -> _Mean:
    errors = np.bincount(code, (x - x.mean()) / len(x), size)
    g = len(np.unique(code))
    return _Mean(float(x.mean()), np.asarray(errors * math.sqrt(g / max(g - 1, 1)), np.float64))


def _sources(first: ArrayLike | None, n: int, second: ArrayLike | None, m: int) -> Codes:
    """(n + m,), codes of sources; rows without a code are their own."""
    if first is None and second is None:
        return np.arange(n + m)
    return _codes(first, n, second, m)


def _codes(first: ArrayLike | None, n: int, second: ArrayLike | None, m: int) -> Codes:
    parts = [np.zeros(k) if x is None else np.asarray(x) for x, k in ((first, n), (second, m))]
    if parts[0].shape != (n,) or parts[1].shape != (m,):
        raise StatisticsError(f"codes {parts[0].shape} and {parts[1].shape} for {n} and {m} rows")
    return np.unique(np.concatenate(parts), return_inverse=True)[1].astype(np.intp)
