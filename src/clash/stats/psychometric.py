"""A judge as a measuring instrument: the gap at which it decides, and how sharply.

A gap x >= 0 between two responses is perceived as x + e, e logistic with scale s. The judge picks
the better one where that exceeds tau, the worse where it is below -tau, and ties in between; in a
share lambda of trials (lapses) it gives any of the three answers with equal probability. So

    P(better | x) = (1 - lambda) F((x - tau) / s) + lambda / 3,
    P(worse | x) = (1 - lambda) F((-x - tau) / s) + lambda / 3,

F the logistic distribution function. It is the judge model of the judge-effectiveness pilot (4.1)
with the lapses of psychometric practice (Wichmann, Hill 2001).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import LEVEL, Interval
from clash.stats.resample import cluster_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


_FEWEST = 20
"""Trials: three parameters from fewer say nothing."""
_MOST_LAPSE = 0.6
"""A judge that lapses more often has no curve left to fit; the bound keeps the fit identified."""
_SCALE = (1e-3, 5.0)
"""Gaps of calibration pairs lie in [0, 1]: below the first the curve is a step, beyond the second it is flat."""
_MOST_TAU = 3.0


@dataclass(frozen=True, slots=True)
class PsychometricCurve:
    """The parameters of a judge.

    Attributes:
        tau: the gap at which it decides half the time (lapses apart); the tie band is
            [-tau, tau].
        scale: s, in units of the gap; small is sharp.
        lapse: lambda.
    """

    tau: float
    scale: float
    lapse: float

    def better(self, gap: ArrayLike) -> Floats:
        """P(the better one is picked) at a gap."""
        return self._side(np.asarray(gap, dtype=float))

    def worse(self, gap: ArrayLike) -> Floats:
        """P(the worse one is picked)."""
        return self._side(-np.asarray(gap, dtype=float))

    def tie(self, gap: ArrayLike) -> Floats:
        """P(a tie)."""
        tied: Floats = 1 - self.better(gap) - self.worse(gap)
        return tied

    def _side(self, x: Floats) -> Floats:
        from scipy.special import expit

        side: Floats = (1 - self.lapse) * expit((x - self.tau) / self.scale) + self.lapse / 3
        return side

    @property
    def slope(self) -> float:
        """Rise of P(better) at tau, for a gap of 1."""
        return (1 - self.lapse) / (4 * self.scale)

    def gap_for(self, share: float) -> float:
        """The gap at which the better one is picked in this share; infinite if lapses forbid it."""
        p = (share - self.lapse / 3) / (1 - self.lapse)
        if not 0 < p < 1:
            return math.inf
        return max(0.0, self.tau + self.scale * math.log(p / (1 - p)))


@dataclass(frozen=True, slots=True)
class Psychometric:
    """The fit of a judge, with percentile intervals by a bootstrap over clusters.

    Attributes:
        tau: threshold; ``band`` is the width of the tie band, 2 tau.
        slope: see :attr:`PsychometricCurve.slope`.
        seventy_five: the gap at which it picks the better one in 75% of trials.
        log_likelihood: at the fit.
        residual: gain in log likelihood of a further search from the optimum.
        warnings: parameters that the trials do not determine.
    """

    curve: PsychometricCurve
    tau: Interval
    slope: Interval
    lapse: Interval
    band: Interval
    seventy_five: Interval
    n: int
    log_likelihood: float
    converged: bool
    residual: float
    warnings: tuple[str, ...]


def fit_psychometric(
    gaps: ArrayLike,
    outcomes: ArrayLike,
    clusters: ArrayLike | None = None,
    *,
    rng: np.random.Generator,
    n_bootstrap: int = 100,
) -> Psychometric:
    """Fit a judge by maximum likelihood from three starts.

    Args:
        gaps: (n,), known gaps >= 0.
        outcomes: (n,), 1 the better one picked, 0 the worse, 0.5 a tie; at a gap of 0 either
            side may be called the better.
        clusters: (n,), what the pairs were made from.
        rng: of the bootstrap.
        n_bootstrap: refits.

    Raises:
        StatisticsError: fewer than 20 trials, one cluster, a single gap, negative gaps, or
            other outcomes.
    """
    x, y = np.asarray(gaps, dtype=float), np.asarray(outcomes, dtype=float)
    groups = np.arange(len(x)) if clusters is None else np.asarray(clusters)
    _check(x, y, groups)
    levels, at = np.unique(x, return_inverse=True)
    counts = _counts(at, y, np.ones(len(x)), len(levels))
    best = _search(levels, counts, _STARTS)
    curve = best.curve
    draws = [
        _search(levels, _counts(at, y, weights, len(levels)), [_inside(curve)], 1e-6).curve
        for block in cluster_weights(groups, rng, n_bootstrap)
        for weights in block
    ]
    again = _search(levels, counts, [_inside(curve)])

    def interval(estimate: float, values: list[float]) -> Interval:
        ends = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        low, high = min(float(ends[0]), estimate), max(float(ends[1]), estimate)
        name = "bootstrap over clusters, percentile"
        return Interval(estimate, low, high, LEVEL, len(x), len(np.unique(groups)), name)

    gap_at_75 = curve.gap_for(0.75)
    return Psychometric(
        curve,
        interval(curve.tau, [c.tau for c in draws]),
        interval(curve.slope, [c.slope for c in draws]),
        interval(curve.lapse, [c.lapse for c in draws]),
        interval(2 * curve.tau, [2 * c.tau for c in draws]),
        interval(gap_at_75, [c.gap_for(0.75) for c in draws]),
        len(x),
        best.value,
        best.converged,
        max(0.0, again.value - best.value),
        tuple(_warnings(levels, curve)),
    )


def _check(x: Floats, y: Floats, groups: NDArray[np.generic]) -> None:
    if not x.shape == y.shape == groups.shape or x.ndim != 1:
        raise StatisticsError(f"{x.shape} gaps, {y.shape} outcomes, {groups.shape} clusters")
    if len(x) < _FEWEST:
        raise StatisticsError(f"a psychometric curve needs {_FEWEST} trials, there are {len(x)}")
    if not (np.all(x >= 0) and np.all(np.isin(y, (0.0, 0.5, 1.0)))):
        raise StatisticsError("gaps are >= 0 and outcomes 1, 0.5 or 0")
    if len(np.unique(x)) < 2:
        raise StatisticsError("a curve needs at least two gaps")


# The likelihood may have several maxima where lapses and the tie band compete for the same ties: a
# narrow band that is sharp, a wide one that is not, and a flat curve.
_STARTS = [np.array([0.1, math.log(0.1), -3.0]), np.array([0.5, math.log(0.3), -2.0]),
           np.array([0.02, math.log(1.0), -3.0])]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _CurveFit:
    curve: PsychometricCurve
    value: float
    converged: bool


def _counts(at: NDArray[np.intp], y: Floats, weights: Floats, n: int) -> Floats:
    """(levels, 3): worse, tie, better."""
    cells = at * 3 + (2 * y).astype(np.intp)
    counts: Floats = (
        np.bincount(cells, weights=weights, minlength=3 * n).reshape(n, 3).astype(float)
    )
    return counts


def _curve(point: Floats) -> PsychometricCurve:
    """From (tau, log s, logit of lambda / 0.6): every point in the bounds is a judge."""
    tau, log_scale, lapse = (float(value) for value in point)
    return PsychometricCurve(tau, math.exp(log_scale), _MOST_LAPSE / (1 + math.exp(-lapse)))


def _inside(curve: PsychometricCurve) -> Floats:
    share = min(max(curve.lapse / _MOST_LAPSE, 1e-4), 1 - 1e-4)
    return np.array([curve.tau, math.log(curve.scale), math.log(share / (1 - share))])


def _search(levels: Floats, counts: Floats, starts: list[Floats], tol: float = 1e-10) -> _CurveFit:
    from scipy.optimize import minimize

    def loss(point: Floats) -> float:
        curve = _curve(point)
        p = np.stack([curve.worse(levels), curve.tie(levels), curve.better(levels)], axis=1)
        return -float(np.sum(counts * np.log(np.maximum(p, 1e-12))))

    bounds = [(0.0, _MOST_TAU), (math.log(_SCALE[0]), math.log(_SCALE[1])), (-9.0, 9.0)]
    fits = [
        minimize(loss, start, method="L-BFGS-B", bounds=bounds, options={"ftol": tol})
        for start in starts
    ]
    best = min(fits, key=lambda fit: float(fit.fun))
    return _CurveFit(_curve(best.x), -float(best.fun), bool(best.success))


def _warnings(levels: Floats, curve: PsychometricCurve) -> list[str]:
    warnings = []
    if levels[0] > 0:
        warnings.append("no pair without a gap: tie band and lapses are hard to distinguish")
    if curve.tau > levels[-1]:
        warnings.append("the threshold lies beyond the largest gap shown")
    if curve.scale < 2 * _SCALE[0]:
        warnings.append("the curve is a step between two gaps: its slope is a lower bound only")
    return warnings
