"""A share that people would give, from few labels and what a panel says of all rows.

The estimate is the difference estimator of survey sampling with a fitted slope (Cassel, Särndal and
Wretman 1976), which prediction-powered inference has for equal chances (PPI++, Angelopoulos, Duchi
and Zrnic 2023). Rows may be labelled with unequal chances, provided that these are known: they are
weighted by their inverse (Hájek 1971).
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
    normal_quantile,
    t_quantile,
    wilson,
    wilson_clustered,
)
from clash.stats.sequential import boundary

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats

FEWEST = 10
"""Labelled sources below which no interval is narrowed."""
PLANNED = 50
"""Labels at which the interval for continuous looking is narrowest."""
PRIOR_POWER, PRIOR_ROWS = 0.5, 4.0
"""The power that is assumed before any label, and how many labels it is worth."""


@dataclass(frozen=True, slots=True)
class CorrectedShare:
    """A mean of labels in [0, 1], made more precise by a panel.

    Attributes:
        interval: of the mean label over all rows; never wider than ``labels_only``.
        labels_only: from the labelled rows alone, weighted.
        always_valid: as ``interval``, but holding at every number of labels at once, so that people
            may look after each label and stop for any reason.
        panel_mean: of the panel over all rows, whose error nothing corrects.
        bias: the panel's mean minus that of the labels on labelled rows, weighted.
        power: how much of the panel's say is used; 0 is the labels alone.
    """

    interval: Interval
    labels_only: Interval
    always_valid: Interval
    panel_mean: float
    bias: float
    power: float


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A mean, its variance as of an independent sample, and sources and strata it is from."""

    mean: float
    variance: float
    power: float


def corrected_share(
    labels: ArrayLike,
    panel: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    chances: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    level: float = 0.95,
    planned: int = PLANNED,
) -> CorrectedShare:
    """The mean label over all rows.

    estimate = sum w y + power (mean panel - sum w panel), w = 1 / chance, summing to 1 over the
    labelled rows. The power is the slope of labels on the panel, shrunk to 0.5 by four rows and kept
    at 0 or above: of ten labels a fitted slope is mostly noise. The variance is that of cluster
    totals of w (y - power panel) + power panel / N, its first part with two degrees of freedom
    spent, and the interval Wilson's with the same variance times the square of Student's quantile
    over the normal one. Where labels alone make a narrower interval, theirs is it, with power 0.

    It covers however wrong the panel is if each row's chance of a label is as stated, up to a factor,
    whatever its label. Labels that are all the same, fewer than ten labelled sources, and a table
    that is labelled throughout leave the labels alone.

    Args:
        labels: (N,), in [0, 1]; NaN where there is none.
        panel: (N,), in [0, 1], what the panel says of each row; fitted to none of these labels.
        clusters: (N,), codes of sources; None where rows are independent.
        chances: (N,), of each row to be labelled, in (0, 1]; None for equal ones.
        strata: (N,), codes; labels are then a random sample within each stratum, and chances the
            share of it that is labelled. None for one.
        level: confidence level.
        planned: number of labels at which ``always_valid`` is narrowest; chosen before there are any.

    Raises:
        StatisticsError: no label, a stratum without one, values or chances out of range, or shapes
            that differ.
    """
    y, f = np.asarray(labels, dtype=float), np.asarray(panel, dtype=float)
    source = encode_clusters(f, clusters)[1]
    stratum = np.zeros(len(f), np.intp) if strata is None else encode_clusters(f, strata)[1]
    has_label = ~np.isnan(y)
    _check(y[has_label], f, has_label)
    weights = _weights(has_label, stratum, chances, by_stratum=strata is not None)
    labels_only = _labels_only(y[has_label], source[has_label], weights[has_label], level)
    bias = float(weights @ np.where(has_label, f - y, 0.0))
    sources = len(np.unique(source[has_label]))
    reach = boundary(max(sources, 1), 1 - level, planned) * math.sqrt(max(sources, 1))
    endless = Interval(
        labels_only.estimate, 0.0, 1.0, level, labels_only.n, labels_only.n_effective, "none"
    )
    alone = CorrectedShare(
        labels_only,
        labels_only,
        endless if sources < FEWEST else _score_interval(labels_only, reach, "labels, any time"),
        float(f.mean()),
        bias,
        0.0,
    )
    freedom = sources - int(stratum.max()) - 2
    if sources < FEWEST or freedom < 1 or has_label.all() or np.ptp(y[has_label]) == 0:
        return alone
    estimate = _estimate(y, f, weights, source, stratum, freedom)
    if not (0 < estimate.mean < 1 and estimate.variance > 0):
        return alone
    t_factor = t_quantile(level, freedom) / normal_quantile(level)
    n = int(has_label.sum())
    effective = estimate.mean * (1 - estimate.mean) / (estimate.variance * t_factor**2)
    wilson_interval = wilson(estimate.mean * n, n, level, design_effect=n / effective)
    if wilson_interval.half_width >= labels_only.half_width:
        return alone
    interval = Interval(
        estimate.mean, wilson_interval.low, wilson_interval.high, level, n, effective, "PPI, Wilson"
    )
    always = _score_interval(interval, reach, "PPI, any time")
    return CorrectedShare(interval, labels_only, always, float(f.mean()), bias, estimate.power)


def _check(y: Floats, f: Floats, has_label: np.ndarray) -> None:
    if has_label.shape != f.shape:
        raise StatisticsError(f"{len(has_label)} rows of labels but {len(f)} judged rows")
    if not len(y):
        raise StatisticsError("a share needs a label")
    if np.any((y < 0) | (y > 1)) or np.any((f < 0) | (f > 1)):
        raise StatisticsError("a share lies in [0, 1]")


def _weights(
    has_label: np.ndarray, stratum: Codes, chances: ArrayLike | None, *, by_stratum: bool
) -> Floats:
    """(N,), weights of the labelled rows, which sum to 1; 0 elsewhere."""
    rows = np.bincount(stratum)
    labelled_rows = np.bincount(stratum[has_label], minlength=len(rows))
    if np.any(labelled_rows == 0):
        raise StatisticsError("a stratum has no label")
    if chances is not None and not by_stratum:
        chance = np.asarray(chances, dtype=float)
        if chance.shape != has_label.shape or np.any(~(chance[has_label] > 0)):
            raise StatisticsError("every labelled row had a chance above 0 of being labelled")
    else:
        chance = (labelled_rows / rows)[stratum]
    weights = np.where(has_label, 1 / np.where(has_label, chance, 1.0), 0.0)
    return np.asarray(weights / weights.sum(), np.float64)


def _labels_only(y: Floats, source: Codes, weights: Floats, level: float) -> Interval:
    """Wilson's interval, with the effects of clusters and of unequal weights (Kish 1965)."""
    plain = wilson_clustered(y, source, level)
    if np.allclose(weights, weights[0], rtol=1e-9, atol=0):
        return plain
    share = min(max(float(weights @ y), 0.0), 1.0)
    kish = 1 / (len(y) * float(weights @ weights))
    effective = plain.n_effective * kish
    interval = wilson(share * len(y), len(y), level, design_effect=len(y) / effective)
    return Interval(
        share, interval.low, interval.high, level, len(y), effective, "wilson, weighted"
    )


def _score_interval(interval: Interval, reach: float, method: str) -> Interval:
    """The interval with the same information and ``reach`` standard errors to both sides."""
    p, n = interval.estimate, interval.n_effective
    centre, scale = p + reach**2 / (2 * n), 1 + reach**2 / n
    spread = reach * math.sqrt(p * (1 - p) / n + reach**2 / (4 * n * n))
    low, high = max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
    return Interval(p, min(low, p), max(high, p), interval.level, interval.n, n, method)


def _estimate(
    y: Floats, f: Floats, weights: Floats, source: Codes, stratum: Codes, freedom: int
) -> _Estimate:
    """The estimate and the variance of its cluster totals."""
    n_rows, n_strata = len(f), int(stratum.max()) + 1
    has_label = weights > 0
    y = np.where(has_label, y, 0.0)
    total = np.bincount(stratum, weights, n_strata)
    y_mean = (np.bincount(stratum, weights * y, n_strata) / total)[stratum]
    f_mean = (np.bincount(stratum, weights * f, n_strata) / total)[stratum]
    f_all = (np.bincount(stratum, f, n_strata) / np.bincount(stratum, minlength=n_strata))[stratum]
    power = _power(y - y_mean, f - f_mean, f - f_all, weights)
    model = y_mean + power * (f - f_mean)
    mean = float(model.mean())
    residuals = np.where(has_label, weights * (y - model), 0.0)
    # The residuals lost one degree of freedom to each stratum's mean and one to the power.
    sources = len(np.unique(source[has_label]))
    residuals *= math.sqrt(sources / freedom)
    totals = np.bincount(source, residuals + (model - mean) / n_rows)
    return _Estimate(mean, float(totals @ totals), power)


def _power(y: Floats, f: Floats, f_all: Floats, weights: Floats) -> float:
    """The slope of labels on the panel, by centred values, shrunk to the prior's."""
    prior = PRIOR_ROWS / int((weights > 0).sum()) * float(f_all @ f_all) / len(f_all)
    spread = float(weights @ (f * f)) + prior
    if spread <= 0:
        return 0.0
    return max(0.0, (float(weights @ (y * f)) + prior * PRIOR_POWER) / spread)
