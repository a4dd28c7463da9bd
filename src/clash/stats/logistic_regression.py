"""Ridge-penalised logistic regression on a few columns, and its errors over clusters.

The fit minimises, with eta = X beta and p = sigmoid(eta),

    -sum_i w_i (y_i eta_i - log(1 + exp(eta_i))) + ridge |beta|^2 / 2,

which is strictly convex for ridge > 0, so that Newton's method finds its only minimum. Gradient
X'w(p - y) + ridge beta, Hessian X'diag(w p (1 - p))X + ridge I. Outcomes may be fractional (a tie
is half a win).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, encode_clusters, normal_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats

_MAX_ETA = 500.0
"""exp(-eta) overflows beyond 709; the sigmoid is 0 or 1 to the last bit long before."""


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """The minimum of the penalised loss.

    Attributes:
        coefficients: (p,).
        hessian: (p, p), at the coefficients; its inverse is the covariance under the model.
        residual: largest component of the gradient.
    """

    coefficients: Floats
    hessian: Floats
    converged: bool
    n_iter: int
    residual: float


def fit_logistic(
    design: Floats,
    outcome: Floats,
    *,
    weights: Floats | None = None,
    start: Floats | None = None,
    ridge: float,
    tol: float,
    max_iter: int,
    max_step: float,
) -> LogisticFit:
    """Fit by Newton's method with bounded steps.

    Args:
        design: (n, p), with whatever intercepts are wanted.
        outcome: (n,), in [0, 1].
        weights: (n,), of the rows; 1 where not given.
        start: (p,), where to start from; 0 where not given.
        ridge: weight of the squares of all coefficients, over 2.
        tol: of the gradient, for each unit of weight.
        max_iter: steps.
        max_step: the largest change of a coefficient in one step.
    """
    w = np.ones(len(outcome)) if weights is None else weights
    beta = np.zeros(design.shape[1]) if start is None else start
    scale, n_iter = max(1.0, float(w.sum())), 0
    gradient, hessian = _derivatives(design, outcome, w, beta, ridge)
    while np.abs(gradient).max() > tol * scale and n_iter < max_iter:
        step = np.linalg.solve(hessian, gradient)
        # The loss is convex but not quadratic: a bound on the step keeps Newton from leaping
        # into the flat tails of the sigmoid, where the Hessian vanishes and the next step grows.
        beta = beta - step / max(1.0, float(np.abs(step).max()) / max_step)
        n_iter += 1
        gradient, hessian = _derivatives(design, outcome, w, beta, ridge)
    residual = float(np.abs(gradient).max())
    return LogisticFit(beta, hessian, residual <= tol * scale, n_iter, residual)


def _derivatives(
    design: Floats, outcome: Floats, weights: Floats, beta: Floats, ridge: float
) -> tuple[Floats, Floats]:
    p = _probability(design, beta)
    gradient: Floats = design.T @ (weights * (p - outcome)) + ridge * beta
    hessian: Floats = (design.T * (weights * p * (1 - p))) @ design + ridge * np.eye(len(beta))
    return gradient, hessian


def _probability(design: Floats, beta: Floats) -> Floats:
    p: Floats = 1 / (1 + np.exp(-np.clip(design @ beta, -_MAX_ETA, _MAX_ETA)))
    return p


def score_totals(
    design: Floats,
    outcome: Floats,
    coefficients: Floats,
    codes: Codes,
    n_clusters: int,
    weights: Floats | None = None,
) -> Floats:
    """(G, p), sums over clusters of x_i w_i (p_i - y_i): the filling of a sandwich covariance.

    Args:
        design: (n, p).
        outcome: (n,).
        coefficients: (p,), of the fit.
        codes: (n,), clusters as 0..G-1.
        n_clusters: G.
        weights: (n,), of the rows; 1 where not given.
    """
    w = np.ones(len(outcome)) if weights is None else weights
    totals = np.zeros((n_clusters, design.shape[1]))
    residuals = w * (_probability(design, coefficients) - outcome)
    np.add.at(totals, codes, design * residuals[:, None])
    return totals


@dataclass(frozen=True, slots=True)
class ClusteredLogistic:
    """A logistic regression with a weak ridge and errors robust to clusters.

    Attributes:
        coefficients: (p,), one for each column of the design.
        covariance: (p, p), sandwich over clusters (Liang, Zeger 1986).
        log_likelihood: unpenalised.
    """

    coefficients: Floats
    covariance: Floats
    log_likelihood: float
    converged: bool
    n_iter: int
    residual: float

    def interval(self, index: int, level: float = 0.95) -> Interval:
        """A coefficient with its Wald interval."""
        estimate = float(self.coefficients[index])
        reach = normal_quantile(level) * math.sqrt(float(self.covariance[index, index]))
        nan = math.nan
        low, high = estimate - reach, estimate + reach
        return Interval(estimate, low, high, level, nan, nan, "wald, clustered")


def clustered_logistic(
    design: ArrayLike,
    outcome: ArrayLike,
    clusters: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    start: ArrayLike | None = None,
    ridge: float = 1e-3,
    tol: float = 1e-8,
    max_iter: int = 100,
) -> ClusteredLogistic:
    """Fit, with a sandwich covariance; the ridge keeps it finite where a column decides everything.

    Args:
        design: (n, p), with whatever intercepts are wanted.
        outcome: (n,), 1 or 0.
        clusters: (n,), codes.
        weights: (n,), of the rows (how often a bootstrap drew them).
        start: (p,), where to start from; 0 where not given.
        ridge: weight of the squares of all coefficients, over 2.
        tol: of the gradient, for each unit of weight.
        max_iter: steps.

    Raises:
        StatisticsError: shapes that differ, or no row.
    """
    x, y = np.asarray(design, dtype=float), np.asarray(outcome, dtype=float)
    if x.ndim != 2 or len(x) != len(y) or not len(y):
        raise StatisticsError(f"a regression of {y.shape} outcomes on {x.shape}")
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    fit = fit_logistic(
        x,
        y,
        weights=w,
        start=None if start is None else np.asarray(start, dtype=float),
        ridge=ridge,
        tol=tol,
        max_iter=max_iter,
        max_step=3.0,
    )
    eta = x @ fit.coefficients
    log_likelihood = float(w @ (y * eta - np.logaddexp(0, eta)))
    _, codes, groups = encode_clusters(y, clusters)
    totals = score_totals(x, y, fit.coefficients, codes, groups, w)
    bread = np.linalg.inv(fit.hessian)
    # G / (G - 1): the totals are taken around their mean, which costs one of G.
    meat = totals.T @ totals * (groups / max(1, groups - 1))
    return ClusteredLogistic(
        fit.coefficients,
        bread @ meat @ bread,
        log_likelihood,
        fit.converged,
        fit.n_iter,
        fit.residual,
    )
