"""A share that people would give, from few labels and what a panel says of all rows.

The estimate is the difference estimator of survey sampling with a fitted slope (Cassel, Särndal and
Wretman 1976), which prediction-powered inference has for equal chances (PPI++, Angelopoulos, Duchi
and Zrnic 2023). Rows may be labelled with unequal chances, provided that these are known: they are
weighted by their inverse (Hájek 1971). Where the panel's judges differ in what they are worth, a
cross-fitted regression on their votes takes the place of the panel's mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import (
    Interval,
    normal_quantile,
    t_quantile,
    wilson,
    wilson_clustered,
)
from clash.stats.selection.sample_design import RANDOM_ROWS, SampleDesign
from clash.stats.selection.vote_regression import PRIOR_POWER, PRIOR_ROWS, cross_fit
from clash.stats.sequential import boundary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from clash.stats.typing import Bools, Codes, Floats

FEWEST = 10
"""Labelled sources below which no interval is narrowed."""
PLANNED_LABELS = 50
"""Labels at which the interval for continuous looking is narrowest."""
FEW = 10.0
"""Squared number of rarer labels at which half of what votes save beyond the panel is believed."""
SKEWED_SHARE = 0.5
"""Squared skewness of the labels' mean at which half of what a panel saves is believed."""


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
        power: how much of the panel's mean is used, 0 the labels alone. Where ``interval`` is by each
            judge's vote, what would be used of their mean.
        model: (N,), what the estimate takes the label of each row to be, up to a constant; 0 for
            labels alone.
        gaps: (N,), labels minus a model that did not see them, NaN where there is no label. The
            estimate is the mean of ``model`` and the weighted mean of ``gaps``.
    """

    interval: Interval
    labels_only: Interval
    always_valid: Interval
    panel_mean: float
    bias: float
    power: float
    model: Floats = field(repr=False, compare=False)
    gaps: Floats = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A mean, its variance as of an independent sample, and what it takes each row's label to be.

    Attributes:
        model, held_out: (N,), by fits to all labels, and for labelled rows by fits without them.
    """

    mean: float
    variance: float
    power: float
    model: Floats
    held_out: Floats


@dataclass(frozen=True, slots=True)
class _Sample:
    """Rows with what is known of them.

    Attributes:
        y: (N,), labels; 0 where there is none.
        weights: (N,), of the labelled rows, which sum to 1.
        source, stratum: (N,), codes.
    """

    y: Floats
    has_label: Bools
    weights: Floats
    source: Codes
    stratum: Codes

    @property
    def n_sources(self) -> int:
        """Labelled sources."""
        return len(np.unique(self.source[self.has_label]))

    @property
    def n_strata(self) -> int:
        """Strata."""
        return int(self.stratum.max()) + 1

    @property
    def freedom(self) -> int:
        """Labelled sources, less one for each stratum's mean and one for the power."""
        return self.n_sources - self.n_strata - 1

    @property
    def varies(self) -> bool:
        """Whether labels differ in every stratum."""
        stratum = self.stratum[self.has_label]
        y = self.y[self.has_label]
        return all(np.ptp(y[stratum == s]) > 0 for s in range(self.n_strata))

    def means(self, values: Floats) -> Floats:
        """(N,), the weighted mean of the labelled rows of each row's stratum."""
        total = np.bincount(self.stratum, self.weights, self.n_strata)
        sums = np.bincount(self.stratum, self.weights * values, self.n_strata)
        return np.asarray((sums / total)[self.stratum], np.float64)

    def variance(self, residuals: Floats, model: Floats, freedom: int) -> float:
        """Of the mean: cluster totals of weighted residuals, and of a model of all rows."""
        errors = np.where(self.has_label, self.weights * residuals, 0.0)
        errors *= math.sqrt(self.n_sources / freedom)
        totals = np.bincount(self.source, errors + (model - model.mean()) / len(model))
        return float(totals @ totals)


def corrected_share(
    labels: ArrayLike,
    panel: ArrayLike,
    design: SampleDesign = RANDOM_ROWS,
    *,
    votes: ArrayLike | None = None,
    level: float = 0.95,
) -> CorrectedShare:
    """The mean label over all rows.

    estimate = sum w y + power (mean panel - sum w panel), w = 1 / chance, summing to 1 over the
    labelled rows. The power is the slope of labels on the panel, shrunk to 0.5 by four rows and kept
    at 0 or above: of ten labels a fitted slope is mostly noise. The variance is that of cluster
    totals of w (y - power panel) + power panel / N, its first part with two degrees of freedom
    spent, and the interval Wilson's with the same variance times the square of Student's quantile
    over the normal one.

    With votes, power times panel gives way to a cross-fitted regression on the panel and each
    judge's vote (:mod:`clash.stats.selection.vote_regression`) where that makes the interval
    narrower. Where labels alone make a narrower one than either, theirs is it, with power 0.

    It covers however wrong the panel is if each row's chance of a label is as stated, up to a factor,
    whatever its label. A stratum whose labels are all the same, which show no spread, fewer than ten
    labelled sources, and a table that is labelled throughout leave the labels alone. Where one kind
    of label is rare, not all that the panel seems to save is believed.

    Args:
        labels: (N,), in [0, 1]; NaN where there is none.
        panel: (N,), in [0, 1], what the panel says of each row; fitted to none of these labels.
        design: sources, and how rows came to be labelled.
        votes: (N, J), in [0, 1], what each judge says; NaN where it says nothing.
        level: confidence level.

    Raises:
        StatisticsError: no label, a stratum without one, values or chances out of range, or shapes
            that differ.
    """
    y, f = np.asarray(labels, dtype=float), np.asarray(panel, dtype=float)
    has_label = ~np.isnan(y)
    x = np.empty((len(f), 0)) if votes is None else np.asarray(votes, dtype=float)
    _check(y[has_label], f, has_label, x)
    sample = _Sample(
        np.where(has_label, y, 0.0),
        has_label,
        design.weights(has_label),
        design.sources(len(f)),
        design.stratum(len(f)),
    )
    labels_only = _labels_only(sample, level)
    interval, chosen_estimate = (
        labels_only,
        _Estimate(labels_only.estimate, 0.0, 0.0, *np.zeros((2, len(f)))),
    )
    is_narrowed = sample.n_sources >= FEWEST and sample.freedom >= 1 and not has_label.all()
    if is_narrowed and sample.varies:
        for estimate, method in _estimates(sample, f, x, labels_only):
            narrower = _interval(estimate, sample, labels_only, method)
            if narrower is not None and narrower.half_width < interval.half_width:
                interval, chosen_estimate = narrower, estimate
    bias = float(sample.weights @ np.where(has_label, f - sample.y, 0.0))
    always = _always_valid(interval, sample.n_sources)
    return CorrectedShare(
        interval,
        labels_only,
        always,
        float(f.mean()),
        bias,
        chosen_estimate.power,
        chosen_estimate.model,
        y - chosen_estimate.held_out,
    )


def rarity(mean: float, n: float) -> float:
    """How much of what a panel saves is not believed, 0 to 1, for a mean of n labels.

    Where one kind of label is rare, a sample of few mostly lacks the rows that the panel gets wrong,
    and the residuals look smaller than they are. It is g^2 / (g^2 + ``SKEWED_SHARE``), g being the skewness
    of the labels' mean.
    """
    skewness = (1 - 2 * mean) ** 2 / (n * mean * (1 - mean))
    return skewness / (skewness + SKEWED_SHARE)


def _estimates(
    sample: _Sample, f: Floats, votes: Floats, labels_only: Interval
) -> Iterator[tuple[_Estimate, str]]:
    """By the panel's mean, and by each judge's vote, with the name of the method."""
    by_panel = _by_panel(sample, f)
    yield by_panel, "PPI"
    if votes.shape[1] > 1:
        yield _by_votes(sample, f, votes, by_panel, labels_only), "PPI, each judge"


def _check(y: Floats, f: Floats, has_label: Bools, votes: Floats) -> None:
    if has_label.shape != f.shape:
        raise StatisticsError(f"{len(has_label)} rows of labels but {len(f)} judged rows")
    if votes.ndim != 2 or len(votes) != len(f):
        raise StatisticsError(f"votes of shape {votes.shape} but {len(f)} judged rows")
    if not len(y):
        raise StatisticsError("a share needs a label")
    if np.any((y < 0) | (y > 1)) or np.any((f < 0) | (f > 1)):
        raise StatisticsError("a share lies in [0, 1]")


def _interval(
    estimate: _Estimate, sample: _Sample, labels_only: Interval, method: str
) -> Interval | None:
    """Wilson's interval of the same variance; null where an estimate leaves its range.

    Its variance is drawn to that of the labels alone by their :func:`rarity`.
    """
    mean, n, level = estimate.mean, labels_only.n, labels_only.level
    if not (0 < mean < 1 and estimate.variance > 0):
        return None
    spread = mean * (1 - mean)
    alone = spread / labels_only.n_effective
    doubt = rarity(mean, labels_only.n_effective)
    variance = estimate.variance + doubt * max(alone - estimate.variance, 0.0)
    t_factor = t_quantile(level, sample.freedom) / normal_quantile(level)
    effective = spread / (variance * t_factor**2)
    bounds = wilson(mean * n, n, level, design_effect=n / effective)
    return Interval(mean, bounds.low, bounds.high, level, n, effective, f"{method}, Wilson")


def _always_valid(interval: Interval, sources: int) -> Interval:
    """The interval that holds at every number of labels at once."""
    if sources < FEWEST:
        n, effective = interval.n, interval.n_effective
        return Interval(interval.estimate, 0.0, 1.0, interval.level, n, effective, "none")
    reach = boundary(sources, 1 - interval.level, PLANNED_LABELS) * math.sqrt(sources)
    method = interval.method.removesuffix(", Wilson") if "PPI" in interval.method else "labels"
    return _score_interval(interval, reach, f"{method}, any time")


def _labels_only(sample: _Sample, level: float) -> Interval:
    """Wilson's interval, with the effects of clusters and of unequal weights (Kish 1965)."""
    has_label = sample.has_label
    y, weights = sample.y[has_label], sample.weights[has_label]
    plain = wilson_clustered(y, sample.source[has_label], level)
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


def _by_panel(sample: _Sample, f: Floats) -> _Estimate:
    """The estimate by the panel's mean, and the variance of its cluster totals."""
    y_mean, f_mean = sample.means(sample.y), sample.means(f)
    sums = np.bincount(sample.stratum, f, sample.n_strata)
    f_all = (sums / np.bincount(sample.stratum, minlength=sample.n_strata))[sample.stratum]
    power = _power(sample.y - y_mean, f - f_mean, f - f_all, sample.weights)
    model = y_mean + power * (f - f_mean)
    variance = sample.variance(sample.y - model, model, sample.freedom)
    return _Estimate(float(model.mean()), variance, power, power * f, power * f)


def _by_votes(
    sample: _Sample, f: Floats, votes: Floats, by_panel: _Estimate, labels_only: Interval
) -> _Estimate:
    """The estimate by a cross-fitted regression on each judge's vote.

    The fits saw no label that they predict, so the residuals lose a degree of freedom to each
    stratum's mean only. A handful of labels of the rarer kind says little about how much the votes
    save (a judge that happens to agree on all of them seems to save everything), so that the
    variance is drawn to that by the panel, with weight m^2 / (m^2 + ``FEW``) on its own for
    m = n_eff p (1 - p).
    """
    fit = cross_fit(sample.y, f, votes, sample.weights, sample.source)
    residuals = np.where(sample.has_label, sample.y - fit.held_out, 0.0)
    shift = sample.means(residuals)
    model = fit.everywhere + shift
    mean = float(model.mean())
    freedom = sample.n_sources - sample.n_strata
    by_residuals = sample.variance(residuals - shift, model, freedom)
    rarer = (labels_only.n_effective * mean * (1 - mean)) ** 2
    doubt = FEW / (rarer + FEW)
    variance = by_residuals + doubt * max(by_panel.variance - by_residuals, 0.0)
    return _Estimate(mean, variance, by_panel.power, fit.everywhere, fit.held_out)


def _power(y: Floats, f: Floats, f_all: Floats, weights: Floats) -> float:
    """The slope of labels on the panel, by centred values, shrunk to the prior's."""
    prior = PRIOR_ROWS / int((weights > 0).sum()) * float(f_all @ f_all) / len(f_all)
    spread = float(weights @ (f * f)) + prior
    if spread <= 0:
        return 0.0
    return max(0.0, (float(weights @ (y * f)) + prior * PRIOR_POWER) / spread)
