"""One effect over several data sets: random effects, how much they differ, and a slope over them.

y_i = x_i' beta + u_i + e_i, u_i ~ N(0, tau²) the difference of the data sets, e_i ~ N(0, v_i) their
sampling error. tau² is estimated by REML (Viechtbauer 2005, equation 14) or by moments (DerSimonian
and Laird 1986), its interval is that of the Q profile (Viechtbauer 2007), and that of beta has the
variance of Hartung and Knapp (2001) with Student's quantiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import Significance
from clash.stats.intervals import LEVEL, Interval, t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from clash.stats.typing import Floats

_STEPS, _TOLERANCE = 200, 1e-10
_HALVINGS = 50
_METHODS = {"reml": "REML, Hartung-Knapp", "moments": "DerSimonian-Laird, Hartung-Knapp"}


@dataclass(frozen=True)
class RandomEffects:
    """What k data sets have in common.

    Attributes:
        mean: of the effects over data sets; where there is a moderator, at its mean.
        slope: what one unit of the moderator adds; null without one.
        prediction: where the effect of another data set lies (Higgins 2009); null with a moderator,
            and for fewer than three data sets.
        test: that the mean is 0; ``slope_test`` that the slope is.
        tau2: variance between data sets, by the Q profile.
        i2: its share of the variance of a typical effect, 0 to 1.
        heterogeneity: Cochran's Q, the test that tau² is 0.
        k: data sets.
        converged: whether REML has; moments need no steps.
    """

    mean: Interval
    slope: Interval | None
    prediction: Interval | None
    test: Significance
    slope_test: Significance | None
    tau2: Interval
    i2: Interval
    heterogeneity: Significance
    k: int
    converged: bool


@dataclass(frozen=True)
class _Effects:
    """Effects (k,), their variances (k,), and the design (k, p)."""

    y: Floats
    v: Floats
    x: Floats

    @property
    def freedom(self) -> int:
        """Data sets less coefficients."""
        return int(len(self.y) - self.x.shape[1])

    def projection(self, tau2: float) -> Floats:
        """P = W - W X (X' W X)^-1 X' W, (k, k), for weights 1 / (v + tau²)."""
        w = 1 / (self.v + tau2)
        wx = w[:, None] * self.x
        return np.asarray(np.diag(w) - wx @ np.linalg.solve(self.x.T @ wx, wx.T), np.float64)

    def q(self, tau2: float) -> float:
        """The weighted squares around the fit, y' P y, which fall as tau² grows."""
        return float(self.y @ self.projection(tau2) @ self.y)


def random_effects(
    effects: ArrayLike,
    variances: ArrayLike,
    *,
    moderator: ArrayLike | None = None,
    method: Literal["reml", "moments"] = "reml",
) -> RandomEffects:
    """Combine the effects of independent data sets.

    Args:
        effects: (k,), on a scale on which they are about normal.
        variances: (k,), of their sampling errors, above 0.
        moderator: (k,), a property of the data sets that may move the effect.
        method: how tau² is estimated.

    Raises:
        StatisticsError: fewer than two data sets (three with a moderator), a moderator that does
            not vary, or variances that are not positive.
    """
    y, v = np.asarray(effects, dtype=float), np.asarray(variances, dtype=float)
    columns = [np.ones(len(y))]
    if moderator is not None:
        m = np.asarray(moderator, dtype=float)
        if m.shape != y.shape or not np.ptp(m) > 0:
            raise StatisticsError("a moderator has a value for each data set, and they differ")
        columns.append(m - m.mean())
    if y.shape != v.shape or len(y) <= len(columns):
        raise StatisticsError(f"{len(y)} data sets are too few")
    if not (np.isfinite(y).all() and np.isfinite(v).all() and (v > 0).all()):
        raise StatisticsError("an effect needs a value and a positive variance")
    data = _Effects(y, v, np.column_stack(columns))
    tau2, converged = _moments(data), True
    if method == "reml":
        tau2, converged = _reml(data, tau2)
    covariance, beta = _hartung_knapp(data, tau2)
    words = _METHODS[method]
    parts = [
        _estimate(beta[j], math.sqrt(covariance[j, j]), data.freedom, len(y), words)
        for j in range(len(beta))
    ]
    mean, test = parts[0]
    slope, slope_test = parts[1] if moderator is not None else (None, None)
    is_predictable = moderator is None and len(y) > 2
    spread = math.sqrt(tau2 + covariance[0, 0])
    prediction = _estimate(beta[0], spread, len(y) - 2, len(y), "prediction")[0]
    of_tau2 = _q_profile(data, tau2)
    return RandomEffects(
        mean=mean,
        slope=slope,
        prediction=prediction if is_predictable else None,
        test=test,
        slope_test=slope_test,
        tau2=of_tau2,
        i2=_share(of_tau2, data),
        heterogeneity=_cochran(data),
        k=len(y),
        converged=converged,
    )


def _moments(data: _Effects) -> float:
    """(Q - df) / tr(P), at least 0: DerSimonian and Laird, and its form for a design."""
    return max(0.0, (data.q(0.0) - data.freedom) / float(np.trace(data.projection(0.0))))


def _reml(data: _Effects, start: float) -> tuple[float, bool]:
    """Fisher scoring of the restricted likelihood, kept at 0 or above."""
    tau2 = start
    for _ in range(_STEPS):
        projection = data.projection(tau2)
        score = float(data.y @ projection @ projection @ data.y) - float(np.trace(projection))
        step = score / float(np.sum(projection * projection))
        new = max(0.0, tau2 + step)
        if abs(new - tau2) <= _TOLERANCE * (1 + tau2):
            return new, True
        tau2 = new
    return tau2, False


def _hartung_knapp(data: _Effects, tau2: float) -> tuple[Floats, Floats]:
    """The covariance of the coefficients (p, p), and they (p,).

    It is scaled by the spread that is seen, but never below that of the model: a few effects that
    happen to lie close together would have an interval of no length (Röver, Knapp, Friede 2015).
    """
    w = 1 / (data.v + tau2)
    inverse = np.linalg.inv(data.x.T @ (w[:, None] * data.x))
    scale = max(1.0, data.q(tau2) / data.freedom)
    return np.asarray(inverse * scale, np.float64), np.asarray(
        inverse @ (data.x.T @ (w * data.y)), np.float64
    )


def _estimate(
    value: float, error: float, freedom: int, k: int, method: str
) -> tuple[Interval, Significance]:
    """Student's interval and test; nothing is ruled out without a degree of freedom."""
    from scipy.special import stdtr

    if freedom < 1:
        interval = Interval(float(value), -math.inf, math.inf, LEVEL, k, k, method)
        return interval, Significance(1.0, 0.0, "t test")
    reach = t_quantile(LEVEL, freedom) * error
    interval = Interval(
        float(value), float(value - reach), float(value + reach), LEVEL, k, k, method
    )
    t = float(value) / error if error > 0 else math.copysign(math.inf, value) if value else 0.0
    return interval, Significance(2 * float(stdtr(freedom, -abs(t))), t, "t test, Hartung-Knapp")


def _q_profile(data: _Effects, tau2: float) -> Interval:
    """The values of tau² under which y' P y is no rare draw of chi-square with k - p df.

    Effects that lie closer than sampling error allows leave no value, and tell nothing: no bound.
    """
    from scipy.special import chdtri

    tail = (1 - LEVEL) / 2
    # chdtri has the upper tail: many squares are left at a small tau².
    low = _root(data, float(chdtri(data.freedom, tail)))
    least = float(chdtri(data.freedom, 1 - tail))
    high = _root(data, least) if data.q(0.0) > least else math.inf
    k = len(data.y)
    return Interval(tau2, min(low, tau2), max(high, tau2), LEVEL, k, k, "Q profile")


def _root(data: _Effects, target: float) -> float:
    """The tau² at which y' P y falls to a target, by bisection; 0 where it is lower at once."""
    if data.q(0.0) <= target:
        return 0.0
    low, high = 0.0, float(data.v.max())
    while data.q(high) > target:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if data.q(middle) > target else (low, middle)
    return (low + high) / 2


def _share(tau2: Interval, data: _Effects) -> Interval:
    """I² = tau² / (tau² + v), v of a typical data set (Higgins and Thompson 2002)."""
    typical = data.freedom / float(np.trace(data.projection(0.0)))
    estimate, low = (t / (t + typical) for t in (tau2.estimate, tau2.low))
    high = tau2.high / (tau2.high + typical) if math.isfinite(tau2.high) else 1.0
    return Interval(estimate, low, high, tau2.level, tau2.n, tau2.n, tau2.method)


def _cochran(data: _Effects) -> Significance:
    from scipy.special import chdtrc

    q = data.q(0.0)
    return Significance(float(chdtrc(data.freedom, q)), q, "Cochran's Q, heterogeneity")


def share_effects(shares: Sequence[Interval]) -> tuple[Floats, Floats]:
    """Shares with intervals as log-odds and their variances, (k,) each.

    With w = n_effective share + 1/2 and l likewise: log(w / l), 1 / w + 1 / l (Haldane, Anscombe),
    which exist where all or none succeed.
    """
    p = np.array([share.estimate for share in shares])
    n = np.array([share.n_effective for share in shares])
    wins, losses = n * p + 0.5, n * (1 - p) + 0.5
    return np.log(wins / losses), 1 / wins + 1 / losses
