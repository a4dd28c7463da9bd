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


_FEW = 3.0
"""Squared number of rarer labels at which half of the measured gain in precision is believed."""
_TINY = 1e-9


def powered_mean(
    labels: ArrayLike,
    judgments: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    strata: ArrayLike | None = None,
    level: float = 0.95,
    are_shares: bool = False,
) -> PoweredMean:
    """The mean label of a population from which some rows are labelled and all are judged.

    estimate = mean(label) - power (mean(judgment | labelled) - mean(judgment | unlabelled)), with
    the power that minimises its variance, estimated and kept in [0, 1]. The interval covers however
    wrong the judges are, provided that the labelled rows are a random sample of all rows and that
    the judgments were not fitted to these labels; good judges make it narrower. With strata, the
    estimate is the mean of the strata's, weighted by their share of all rows, and labels need be a
    random sample only within each stratum. The variance is that of cluster totals, and the quantile
    Student's with G - S - 1 degrees of freedom for G labelled clusters and S strata. The result is
    asymptotic: do not rely on it with fewer than about twenty labelled clusters.

    The interval of shares is Wilson's, and stays in [0, 1]: with the effective number of labels of
    :func:`~clash.stats.intervals.wilson_clustered`, times what the judgments save, the variance of
    the labelled mean over that of the estimate. A handful of failures says little about that ratio (a
    judge that happens to agree on the only failure seems to save everything), so it is shrunk
    towards 1, or towards Kish's design effect of unequal strata, with weight m^2 / (m^2 + 3) on the
    measured ratio for m = n_eff p (1 - p). With one stratum the ratio never exceeds 1: such
    judgments are never worse than none. Simulated coverage is in docs/calibration.md.

    Args:
        labels: (N,), any range, NaN for rows without one; without such rows labels stand alone.
        judgments: (N,), what the judges say of all rows, on the labels' scale.
        clusters: (N,), codes of sources, of which a labelled and an unlabelled row may share one;
            None where rows are independent.
        strata: (N,), codes; None for one.
        level: confidence level.
        are_shares: labels lie in [0, 1].

    Raises:
        StatisticsError: fewer than two labelled sources in a stratum, shares outside [0, 1], NaN
            among the judgments, or shapes that differ.
    """
    y = np.asarray(labels, dtype=float)
    f, source, _ = encode_clusters(judgments, clusters)
    if y.shape != f.shape:
        raise StatisticsError(f"{len(y)} rows of labels but {len(f)} judged rows")
    stratum = np.zeros(len(f), np.intp) if strata is None else encode_clusters(f, strata)[1]
    has_label = ~np.isnan(y)
    order = np.argsort(~has_label, kind="stable")  # labelled rows first
    n = int(has_label.sum())
    sample = _Sample(y[order[:n]], f[order], source[order], stratum[order])
    if len(np.unique(sample.sources)) < 2:
        raise StatisticsError("a mean needs labels of at least two sources")
    mean = _mean_of_any(sample, level)
    return (
        _mean_of_shares(sample, mean, level, by_stratum=strata is not None) if are_shares else mean
    )


@dataclass(frozen=True, slots=True)
class _Sample:
    """Labels y (n,) of the first rows, and judgments, sources and strata of all (N,)."""

    y: Floats
    judgments: Floats
    source: Codes
    stratum: Codes

    @property
    def sources(self) -> Codes:
        """(n,), of the labelled rows."""
        return self.source[: len(self.y)]

    @property
    def is_complete(self) -> bool:
        """Whether every row has a label."""
        return len(self.y) == len(self.judgments)


def _mean_of_any(sample: _Sample, level: float) -> PoweredMean:
    """The estimate with Student's interval."""
    y, n = sample.y, len(sample.y)
    g = len(np.unique(sample.sources))
    labels_only = mean_clustered(y, sample.sources, level)
    judges_mean = float(sample.judgments.mean())
    bias = float((sample.judgments[:n] - y).mean())
    if sample.is_complete:
        alone = (labels_only.half_width / t_quantile(level, g - 1)) ** 2
        return PoweredMean(labels_only, labels_only, judges_mean, 0.0, bias, alone)
    parts = _parts(sample)
    # The error is label + power * judge, summed over sources, so its variance is quadratic in the
    # power and least at -cov(label, judge) / var(judge).
    spread = float(parts.judge @ parts.judge)
    best = -float(parts.label @ parts.judge) / spread if spread > 0 else 0.0
    power = min(max(best, 0.0), 1.0)
    means = parts.label_means + power * parts.judge_means
    estimate = float(parts.share @ means)
    # Which strata the rows fall into is random too: it adds the spread of the strata's means.
    deviations = (means - estimate)[sample.stratum] / len(sample.stratum)
    between = np.bincount(sample.source, deviations, len(parts.label))
    totals = parts.label + power * parts.judge + between
    # The power was fitted to the same rows, which costs a degree of freedom.
    freedom = max(g - len(means) - 1, 1)
    variance = float(totals @ totals) * max(g - len(means), 1) / freedom
    reach = t_quantile(level, freedom) * math.sqrt(variance)
    effective = float(y.var(ddof=1) / variance) if variance > 0 else float(n)
    method = "PPI++, clustered" if len(means) == 1 else "PPI++, stratified and clustered"
    interval = Interval(estimate, estimate - reach, estimate + reach, level, n, effective, method)
    return PoweredMean(interval, labels_only, judges_mean, power, bias, variance)


def _mean_of_shares(
    sample: _Sample, mean: PoweredMean, level: float, *, by_stratum: bool
) -> PoweredMean:
    """The same with Wilson's interval."""
    n, g = len(sample.y), len(np.unique(sample.sources))
    alone = wilson_clustered(sample.y, sample.sources, level)
    if sample.is_complete:
        return replace(mean, interval=alone, labels_only=alone)
    kish = _kish(sample)
    label_variance = (mean.labels_only.half_width / t_quantile(level, g - 1)) ** 2
    ratio = mean.variance / label_variance if label_variance > 0 else kish
    ratio = ratio if by_stratum else min(ratio, 1.0)
    rarer = alone.n_effective * alone.estimate * (1 - alone.estimate)
    weight = rarer**2 / (rarer**2 + _FEW)
    share = min(max(mean.interval.estimate, 0.0), 1.0)
    effect = max((1 - weight) * kish + weight * ratio, _TINY) * n / alone.n_effective
    interval = wilson(share * n, n, level, design_effect=effect)
    if not by_stratum and interval.half_width > alone.half_width:
        # The effective size at the estimate is below that at the bounds of the labels' own interval.
        return replace(mean, interval=alone, labels_only=alone)
    method = f"{mean.interval.method}, as Wilson's"
    return replace(mean, interval=replace(interval, method=method), labels_only=alone)


def _kish(sample: _Sample) -> float:
    """Design effect of labelling strata at other rates than they occur: n sum share^2 / n_s."""
    n = len(sample.y)
    share = np.bincount(sample.stratum) / len(sample.stratum)
    n_labels = np.bincount(sample.stratum[:n], minlength=len(share))
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


def _parts(sample: _Sample) -> _Parts:
    """The parts of the estimate in each stratum."""
    y, f, source, stratum = sample.y, sample.judgments, sample.source, sample.stratum
    n, n_strata, n_sources = len(y), int(stratum.max()) + 1, int(source.max()) + 1
    share = np.bincount(stratum, minlength=n_strata) / len(stratum)
    label, judge = np.zeros(n_sources), np.zeros(n_sources)
    label_means, judge_means = np.zeros(n_strata), np.zeros(n_strata)
    for s in range(n_strata):
        rows, other_rows = np.flatnonzero(stratum[:n] == s), n + np.flatnonzero(stratum[n:] == s)
        if len(np.unique(source[rows])) < 2:
            raise StatisticsError("a stratum has labels of fewer than two sources")
        mean = _mean(y[rows], source[rows], n_sources)
        label_means[s] = mean.value
        label += share[s] * mean.errors
        # One unlabelled source does not show how much sources differ, so it corrects nothing.
        if len(np.unique(source[other_rows])) > 1:
            before = _mean(f[rows], source[rows], n_sources)
            after = _mean(f[other_rows], source[other_rows], n_sources)
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
