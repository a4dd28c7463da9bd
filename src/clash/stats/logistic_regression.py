"""Penalised logistic regression, for two classes and for several, and its errors over clusters.

One loss serves all: minus the log-likelihood of weighted rows, with a Gaussian prior of precision P
(a ridge) about c on the coefficients b,

    f(b) = sum_i w_i (log sum_k exp(x_ik b) - sum_k t_ik x_ik b) + (b - c)' P (b - c) / 2,     (1)

x_ik the columns of class k in row i, t_ik its share of the row: 1 for the class that was observed, or
so much of an observation as a tie counts for it. With p_ik = exp(x_ik b) / sum_l exp(x_il b),

    g = sum_i w_i sum_k (p_ik - t_ik) x_ik + P (b - c),                                        (2)
    H = sum_i w_i (sum_k p_ik x_ik x_ik' - m_i m_i') + P,   m_i = sum_k p_ik x_ik,             (3)

a covariance plus P: f is strictly convex where P is positive, whatever the data, and Newton's method
(:mod:`clash.stats.optimise`) finds its only minimum. For two classes x_i0 = 0 can be taken, and
p_i = sigmoid(x_i b), H = sum_i w_i p_i (1 - p_i) x_i x_i' + P (4): a Newton step is then one step of
iteratively reweighted least squares.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, encode_clusters, normal_quantile
from clash.stats.logistic import sigmoid, softmax
from clash.stats.optimise import NewtonMinimum, minimise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats


@dataclass(frozen=True, slots=True)
class LogisticLoss:
    """Equation (1) for two classes.

    Attributes:
        columns: x, shape (q, n), transposed so that what belongs to a coefficient lies together:
            the Hessian of many rows then takes half the time.
        weights: w, shape (n,): how many observations a row stands for.
        successes: w t, shape (n,): how many of them were of class 1; they need not be whole.
        precision: diagonal of P, shape (q,); positive, or columns that separate the outcomes have
            no finite coefficients.
        centre: c, shape (q,).
    """

    columns: Floats
    weights: Floats
    successes: Floats
    precision: Floats
    centre: Floats

    def value(self, x: Floats) -> np.float64:
        """Equation (1) at coefficients (q,)."""
        log_odds, away = x @ self.columns, x - self.centre
        # log(1 + e^z) = max(z, 0) + log(1 + e^-|z|): a third of the time of numpy's logaddexp.
        log_total = np.maximum(log_odds, 0) + np.log1p(np.exp(-np.abs(log_odds)))
        loss = self.weights @ log_total - self.successes @ log_odds
        return np.float64(loss + 0.5 * (self.precision @ (away * away)))

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Equations (2) and (4): (q,) and (q, q)."""
        p = sigmoid(x @ self.columns)
        means = self.weights * p
        gradient = self.columns @ (means - self.successes) + self.precision * (x - self.centre)
        hessian = (self.columns * (means * (1 - p))) @ self.columns.T
        hessian.flat[:: len(x) + 1] += self.precision
        return gradient, hessian


@dataclass(frozen=True, slots=True)
class SoftmaxLoss:
    """Equation (1) for several classes.

    Attributes:
        design: x, shape (n, C, q).
        counts: w t, shape (n, C): observations of each class; they need not be whole.
        weights: w, shape (n,), their sums.
        precision: diagonal of P, shape (q,), positive.
        centre: c, shape (q,).
    """

    design: Floats
    counts: Floats
    weights: Floats
    precision: Floats
    centre: Floats

    def value(self, x: Floats) -> np.float64:
        """Equation (1) at coefficients (q,)."""
        scores, away = self.design @ x, x - self.centre
        loss = self.weights @ log_sum_exp(scores) - (self.counts * scores).sum()
        return np.float64(loss + 0.5 * (self.precision @ (away * away)))

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Equations (2) and (3): (q,) and (q, q)."""
        a, q = self.design, len(x)
        p = softmax(a @ x)
        means = self.weights[:, None] * p
        gradient = (means - self.counts).ravel() @ a.reshape(-1, q)
        rows = (a * means[:, :, None]).reshape(-1, q)
        mean = (p[:, None, :] @ a)[:, 0]
        hessian = rows.T @ a.reshape(-1, q) - (mean * self.weights[:, None]).T @ mean
        hessian.flat[:: q + 1] += self.precision
        return gradient + self.precision * (x - self.centre), hessian


def log_sum_exp(scores: Floats) -> Floats:
    """(n,), log of the sum of exp of each row; numpy's own reduction takes ten times as long."""
    top = scores.max(axis=1)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))


def logistic_regression(
    design: Floats,
    target: Floats,
    weights: Floats,
    precision: Floats,
    *,
    centre: Floats | None = None,
    start: Floats | None = None,
    gradient_tol: float | None = None,
    decrement_tol: float | None = 1e-8,
    max_iter: int = 50,
    longest_step: float = np.inf,
) -> NewtonMinimum:
    """Penalised logistic regression; ``x`` of the result holds the coefficients (q,).

    Args:
        design: shape (n, q), with whatever intercept is wanted.
        target: shape (n,), in [0, 1]; a fraction counts as so much of a success.
        weights: shape (n,), of the rows.
        precision: shape (q,), of the Gaussian prior on the coefficients; positive.
        centre: shape (q,), where the prior has them; 0 by default.
        start: shape (q,), where the search begins; the centre by default.
        gradient_tol: see :func:`clash.stats.optimise.minimise`; in observations.
        decrement_tol: see there; in units of log-likelihood.
        max_iter: Newton steps.
        longest_step: largest change of a coefficient in one step.
    """
    middle = np.zeros(design.shape[1]) if centre is None else centre
    return minimise(
        LogisticLoss(np.ascontiguousarray(design.T), weights, weights * target, precision, middle),
        middle if start is None else start,
        gradient_tol=gradient_tol,
        decrement_tol=decrement_tol,
        max_iter=max_iter,
        longest_step=longest_step,
    )


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
    residuals = w * (sigmoid(design @ coefficients) - outcome)
    totals = [np.bincount(codes, column * residuals, n_clusters) for column in design.T]
    return np.stack(totals, axis=1)


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

    Raises:
        StatisticsError: shapes that differ, or no row.
    """
    x, y = np.asarray(design, dtype=float), np.asarray(outcome, dtype=float)
    if x.ndim != 2 or len(x) != len(y) or not len(y):
        raise StatisticsError(f"a regression of {y.shape} outcomes on {x.shape}")
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    fit = logistic_regression(
        x,
        y,
        w,
        np.full(x.shape[1], ridge),
        start=None if start is None else np.asarray(start, dtype=float),
        gradient_tol=tol * max(1.0, float(w.sum())),
        decrement_tol=None,
        max_iter=100,
        longest_step=3.0,
    )
    eta = x @ fit.x
    log_likelihood = float(w @ (y * eta - np.logaddexp(0, eta)))
    _, codes, groups = encode_clusters(y, clusters)
    totals = score_totals(x, y, fit.x, codes, groups, w)
    bread = np.linalg.inv(fit.hessian)
    # G / (G - 1): the totals are taken around their mean, which costs one of G.
    meat = totals.T @ totals * (groups / max(1, groups - 1))
    return ClusteredLogistic(
        fit.x,
        bread @ meat @ bread,
        log_likelihood,
        bool(fit.converged),
        int(fit.n_iter),
        float(fit.gradient_norm),
    )
