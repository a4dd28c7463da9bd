"""Prediction-powered inference: many judged rows and few labelled ones make one interval.

Source: Angelopoulos, Duchi and Zrnic, PPI++ (2023), for a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import (
    Interval,
    encode_clusters,
    mean_clustered,
    t_quantile,
    wilson,
    wilson_clustered,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats


@dataclass(frozen=True, slots=True)
class PoweredMean:
    """A mean of labels, made more precise by the judges.

    Attributes:
        interval: of the mean label.
        labels_only: interval from the labels alone.
        judges_mean: mean of all judgments, whose bias nothing corrects.
        power: weight of the judgments, 0 to 1 (lambda in the paper); 0 uses the labels alone.
        bias: mean of judgments minus labels on the labelled rows.
        variance: of the estimate, over sources.
    """

    interval: Interval
    labels_only: Interval
    judges_mean: float
    power: float
    bias: float
    variance: float


def powered_mean(
    labels: ArrayLike,
    judgments: ArrayLike,
    other_judgments: ArrayLike,
    groups: ArrayLike | None = None,
    other_groups: ArrayLike | None = None,
    level: float = 0.95,
    *,
    strata: ArrayLike | None = None,
    other_strata: ArrayLike | None = None,
) -> PoweredMean:
    """The mean label of a population from which n rows are labelled and N more only judged.

    estimate = mean(label) - power (mean(judgment | labelled) - mean(judgment | unlabelled)), with
    the power that minimises its variance, estimated and kept in [0, 1]. The interval covers however
    wrong the judges are, provided that the labelled rows are a random sample of all rows and that
    the judgments were not fitted to these labels; good judges make it narrower. With strata, the
    estimate is the mean of the strata's, weighted by their share of all rows, and labels need be a
    random sample only within each stratum. The variance is that of cluster totals, and the quantile
    Student's with G - S - 1 degrees of freedom for G labelled clusters and S strata. The result is
    asymptotic: do not rely on it with fewer than about twenty labelled clusters.

    Args:
        labels: (n,), any range.
        judgments: (n,), what the judges say of the labelled rows, on the labels' scale.
        other_judgments: (N,), what they say of the other rows; none gives labels alone.
        groups: (n,), codes of sources; None where rows are independent.
        other_groups: (N,), likewise, in the same code: a source may be on both sides.
        level: confidence level.
        strata: (n,), codes of strata; None for one.
        other_strata: (N,), likewise.

    Raises:
        StatisticsError: fewer than two labelled sources in a stratum, NaN, or shapes that differ.
    """
    y, _, g = encode_clusters(labels, groups)
    f = encode_clusters(judgments, groups)[0]
    h = encode_clusters(other_judgments, other_groups)[0]
    if y.shape != f.shape:
        raise StatisticsError(f"{len(y)} labels but {len(f)} judged rows")
    if g < 2:
        raise StatisticsError("a mean needs labels of at least two sources")
    labels_only = mean_clustered(y, groups, level)
    bias = float((f - y).mean())
    if not len(h):
        alone = (labels_only.half_width / t_quantile(level, g - 1)) ** 2
        return PoweredMean(labels_only, labels_only, float(f.mean()), 0.0, bias, alone)
    source = _source_codes(groups, len(y), other_groups, len(h))
    stratum = _codes(strata, len(y), other_strata, len(h))
    parts = _parts(y, f, h, source, stratum)
    # The error is label + power * judge, summed over sources, so its variance is quadratic in the
    # power and least at -cov(label, judge) / var(judge).
    spread = float(parts.judge @ parts.judge)
    best = -float(parts.label @ parts.judge) / spread if spread > 0 else 0.0
    power = min(max(best, 0.0), 1.0)
    means = parts.label_means + power * parts.judge_means
    estimate = float(parts.share @ means)
    # Which strata the rows fall into is random too: it adds the spread of the strata's means.
    between = np.bincount(source, (means - estimate)[stratum] / len(stratum), len(parts.label))
    totals = parts.label + power * parts.judge + between
    # The power was fitted to the same rows, which costs a degree of freedom.
    freedom = max(g - len(means) - 1, 1)
    variance = float(totals @ totals) * max(g - len(means), 1) / freedom
    reach = t_quantile(level, freedom) * math.sqrt(variance)
    effective = float(y.var(ddof=1) / variance) if variance > 0 else float(len(y))
    method = "PPI++, clustered" if len(means) == 1 else "PPI++, stratified and clustered"
    interval = Interval(
        estimate, estimate - reach, estimate + reach, level, len(y), effective, method
    )
    judges_mean = float(np.concatenate([f, h]).mean())
    return PoweredMean(interval, labels_only, judges_mean, power, bias, variance)


_FEW = 3.0
"""Squared number of rarer labels at which half of the measured gain in precision is believed."""


def powered_proportion(
    labels: ArrayLike,
    judgments: ArrayLike,
    other_judgments: ArrayLike,
    groups: ArrayLike | None = None,
    other_groups: ArrayLike | None = None,
    level: float = 0.95,
    *,
    strata: ArrayLike | None = None,
    other_strata: ArrayLike | None = None,
) -> PoweredMean:
    """:func:`powered_mean` for labels in [0, 1], with intervals that stay there: Wilson's.

    The estimate is that of :func:`powered_mean`. Its interval is Wilson's with the effective number
    of labels of :func:`~clash.stats.intervals.wilson_clustered`, times what the judgments save: the
    variance of the labelled mean over that of the estimate. A handful of failures says little
    about that ratio (a judge that happens to agree on the only failure seems to save
    everything), so it is shrunk towards 1, or towards Kish's design effect of unequal strata,
    with weight m^2 / (m^2 + 3) on the measured ratio for m = n_eff p (1 - p). With one stratum the
    ratio never exceeds 1: such judgments are never worse than none. Simulated coverage is in
    docs/calibration.md.

    Args:
        labels: (n,), in [0, 1].
        judgments: (n,), as in :func:`powered_mean`, like all that follow.
        other_judgments: (N,).
        groups: (n,).
        other_groups: (N,).
        level: confidence level.
        strata: (n,).
        other_strata: (N,).

    Raises:
        StatisticsError: labels outside [0, 1], or as in :func:`powered_mean`.
    """
    mean = powered_mean(
        labels,
        judgments,
        other_judgments,
        groups,
        other_groups,
        level,
        strata=strata,
        other_strata=other_strata,
    )
    y, codes, g = encode_clusters(labels, groups)
    alone = wilson_clustered(y, codes, level)
    if not len(np.asarray(other_judgments)):
        return replace(mean, interval=alone, labels_only=alone)
    kish = _kish(strata, len(y), other_strata, len(np.asarray(other_judgments)))
    label_variance = (mean.labels_only.half_width / t_quantile(level, g - 1)) ** 2
    ratio = mean.variance / label_variance if label_variance > 0 else kish
    ratio = min(ratio, 1.0) if strata is None else ratio
    rarer = alone.n_effective * alone.estimate * (1 - alone.estimate)
    weight = rarer**2 / (rarer**2 + _FEW)
    share = min(max(mean.interval.estimate, 0.0), 1.0)
    effect = max((1 - weight) * kish + weight * ratio, _TINY) * len(y) / alone.n_effective
    interval = wilson(share * len(y), len(y), level, design_effect=effect)
    method = f"{mean.interval.method}, as Wilson's"
    return replace(mean, interval=replace(interval, method=method), labels_only=alone)


_TINY = 1e-9


def _kish(first: ArrayLike | None, n: int, second: ArrayLike | None, m: int) -> float:
    """Design effect of labelling strata at other rates than they occur: n sum share^2 / n_s."""
    stratum = _codes(first, n, second, m)
    share = np.bincount(stratum) / (n + m)
    n_labels = np.bincount(stratum[:n], minlength=len(share))
    return float(n * np.sum(share**2 / np.maximum(n_labels, 1)))


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


def _parts(y: Floats, f: Floats, h: Floats, source: Codes, stratum: Codes) -> _Parts:
    """The parts from labels y (n,), their judgments f (n,) and the other judgments h (N,).

    ``source`` and ``stratum`` have a code for each of the n + N rows.
    """
    n, n_strata, n_sources = len(y), int(stratum.max()) + 1, int(source.max()) + 1
    share = np.bincount(stratum, minlength=n_strata) / len(stratum)
    label, judge = np.zeros(n_sources), np.zeros(n_sources)
    label_means, judge_means = np.zeros(n_strata), np.zeros(n_strata)
    for s in range(n_strata):
        rows, other_rows = np.flatnonzero(stratum[:n] == s), np.flatnonzero(stratum[n:] == s)
        if len(np.unique(source[rows])) < 2:
            raise StatisticsError("a stratum has labels of fewer than two sources")
        mean = _mean(y[rows], source[rows], n_sources)
        label_means[s] = mean.value
        label += share[s] * mean.errors
        # One unlabelled source does not show how much sources differ, so it corrects nothing.
        if len(np.unique(source[n + other_rows])) > 1:
            before = _mean(f[rows], source[rows], n_sources)
            after = _mean(h[other_rows], source[n + other_rows], n_sources)
            judge_means[s] = after.value - before.value
            judge += share[s] * (after.errors - before.errors)
    return _Parts(label, judge, label_means, judge_means, share)


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean, and what each source adds to its error; their sum of squares is its variance."""

    value: float
    errors: Floats


def _mean(x: Floats, source: Codes, n_sources: int) -> _Mean:
    errors = np.bincount(source, (x - x.mean()) / len(x), n_sources)
    g = len(np.unique(source))
    return _Mean(float(x.mean()), np.asarray(errors * math.sqrt(g / max(g - 1, 1)), np.float64))


def _source_codes(first: ArrayLike | None, n: int, second: ArrayLike | None, m: int) -> Codes:
    """(n + m,), codes of sources; a row without a code is a source of its own."""
    if first is None and second is None:
        return np.arange(n + m)
    return _codes(first, n, second, m)


def _codes(first: ArrayLike | None, n: int, second: ArrayLike | None, m: int) -> Codes:
    """(n + m,), the codes of both sides counted from 0; a side without codes has all 0."""
    parts = [np.zeros(k) if x is None else np.asarray(x) for x, k in ((first, n), (second, m))]
    if parts[0].shape != (n,) or parts[1].shape != (m,):
        raise StatisticsError(f"codes {parts[0].shape} and {parts[1].shape} for {n} and {m} rows")
    return np.unique(np.concatenate(parts), return_inverse=True)[1].astype(np.intp)
