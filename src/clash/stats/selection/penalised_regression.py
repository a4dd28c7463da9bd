"""Penalised logistic regressions from counts by pattern of votes: two classes, and several.

Of P patterns only the number of labelled rows and the sum of their targets are known, so the fits are
to counts. All minimise half a penalised deviance,

    - sum of counts * log p(class | pattern, theta)  +  1/2 penalty . (theta - centre)^2

which is strictly convex where the penalty is positive. With p = softmax(x theta), its gradient is
sum_p x_p'(n_p p_p - s_p) + penalty (theta - centre), and its Hessian
sum_p n_p x_p'(diag(p_p) - p_p p_p')x_p + diag(penalty); for two classes p (1 - p) stands in the middle.
A target that is a share counts as so much of a row of either class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import logit, sigmoid, softmax

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.typing import Floats


@dataclass(frozen=True, slots=True)
class _StoppingRule:
    """When Newton's method stops.

    Attributes:
        change: of the deviance in a step, relative to one more than the deviance.
        rise: of the deviance that a step may cause; rounding causes as much near the minimum. Also
            the size from which a step is not halved any more.
        max_iter: steps.
    """

    change: float
    rise: float
    max_iter: int


_COARSE = _StoppingRule(1e-8, 1e-8, 30)
_FINE = _StoppingRule(1e-9, 1e-12, 50)


@dataclass(frozen=True, slots=True)
class PenalisedFit:
    """A penalised regression of counts.

    Attributes:
        theta: (D,), the parameters.
        scores: (P, C), log-probabilities up to a constant, of every row of the design; (P,)
            log-odds of class 1 where there are two.
        left_out: mean log-loss of rows predicted without themselves, to first order.
        converged: the last step changed the penalised deviance by less than 1e-8 of it.
    """

    theta: Floats
    scores: Floats
    left_out: float
    converged: bool


@dataclass(frozen=True, slots=True)
class _Minimum:
    theta: Floats
    hessian: Floats
    converged: bool


def _newton(
    deviance: Callable[[Floats], float],
    derivatives: Callable[[Floats], tuple[Floats, Floats]],
    start: Floats,
    stop: _StoppingRule,
) -> _Minimum:
    """Newton's method; a step is halved until the deviance does not rise.

    The Hessian of the result is that of the point before the last step, which moved by too little
    to matter.
    """
    theta, value, converged = start, deviance(start), False
    hessian = np.eye(len(start))
    for _ in range(stop.max_iter):
        gradient, hessian = derivatives(theta)
        step = np.linalg.solve(hessian, gradient)
        new = deviance(theta - step)
        while new > value + stop.rise and np.abs(step).max() > stop.rise:
            step = step / 2
            new = deviance(theta - step)
        theta = theta - step
        converged = bool(abs(value - new) < stop.change * (1 + abs(new)))
        value = new
        if converged:
            break
    return _Minimum(theta, hessian, converged)


def _fit_two_classes(
    x: Floats,
    n: Floats,
    s: Floats,
    penalty: Floats,
    centre: Floats,
    start: Floats,
    stop: _StoppingRule,
) -> _Minimum:
    """As :func:`binary_regression`, without patterns of no row."""

    def deviance(theta: Floats) -> float:
        odds, shift = x @ theta, theta - centre
        return float(n @ np.logaddexp(0, odds) - s @ odds + 0.5 * penalty @ shift**2)

    def derivatives(theta: Floats) -> tuple[Floats, Floats]:
        mean = sigmoid(x @ theta)
        gradient = (n * mean - s) @ x + penalty * (theta - centre)
        return gradient, (x * (n * mean * (1 - mean))[:, None]).T @ x + np.diag(penalty)

    return _newton(deviance, derivatives, start, stop)


def binary_regression(
    x: Floats, n: Floats, s: Floats, penalty: Floats, centre: Floats, start: Floats
) -> PenalisedFit:
    """Logistic regression of s in n, as :func:`softmax_regression` has it for more classes.

    Args:
        x: (P, D).
        n: (P,), observations.
        s: (P,), of class 1; a share of an observation counts as so much of a row of either class.
        penalty: (D,), ridge towards ``centre``, positive.
        centre: (D,), where the parameters are without data.
        start: (D,), where the search begins.
    """
    used = n > 0
    a, n, s = x[used], n[used], s[used]
    minimum = _fit_two_classes(a, n, s, penalty, centre, start, _COARSE)
    odds = a @ minimum.theta
    mean = sigmoid(odds)
    lever = ((a @ np.linalg.inv(minimum.hessian)) * a).sum(axis=1)
    # Without a row the Hessian loses p (1 - p) x x', and by Sherman-Morrison the row's log-odds move
    # by its residual (mean minus label) times lever / (1 - p (1 - p) lever).
    reach = lever / (1 - mean * (1 - mean) * lever)
    if_one, if_zero = odds + reach * (mean - 1), odds + reach * mean
    loss = s @ np.logaddexp(0, -if_one) + (n - s) @ np.logaddexp(0, if_zero)
    theta = minimum.theta
    return PenalisedFit(theta, np.asarray(x @ theta), float(loss / n.sum()), minimum.converged)


def binomial(x: Floats, n: Floats, s: Floats, ridge: float = 1.0) -> Floats:
    """(P,), log-odds by logistic regression with ``ridge`` on the slopes, from counts.

    The intercept is all but free. scikit-learn's estimator has the same optimum (a test holds it to
    that) and takes ten times as long on a few patterns.

    Args:
        x: (P, D), without a column of ones.
        n: (P,), observations.
        s: (P,), of class 1.
        ridge: pseudo-rows on each slope.
    """
    used = n > 0
    a = np.column_stack([np.ones(len(x)), x])
    penalty = np.full(a.shape[1], ridge)
    penalty[0] = 1e-3
    start = np.zeros(a.shape[1])
    start[0] = float(logit((s.sum() + 0.5) / (n.sum() + 1)))
    centre = np.zeros(a.shape[1])
    minimum = _fit_two_classes(a[used], n[used], s[used], penalty, centre, start, _FINE)
    return np.asarray(minimum.theta[0] + x @ minimum.theta[1:])


def softmax_regression(
    x: Floats, counts: Floats, penalty: Floats, centre: Floats, start: Floats
) -> PenalisedFit:
    """Newton's method on the penalised likelihood of counts, and its leave-one-out loss.

    The loss of left-out rows is the approximation of Rad and Maleki (2020): one Newton step from
    the optimum, exact for least squares.

    Args:
        x: (P, C, D); the score of class c in row p is ``x[p, c] @ theta``.
        counts: (P, C), observations; they need not be whole.
        penalty: (D,), ridge towards ``centre``, positive.
        centre: (D,), where the parameters are without data.
        start: (D,), where the search begins.
    """
    used = counts.sum(axis=1) > 0
    a, s = x[used], counts[used]
    n = s.sum(axis=1)

    def deviance(theta: Floats) -> float:
        scores, shift = a @ theta, theta - centre
        return float(n @ _log_total(scores) - (s * scores).sum() + 0.5 * penalty @ shift**2)

    def derivatives(theta: Floats) -> tuple[Floats, Floats]:
        mean = softmax(a @ theta)
        gradient = np.tensordot(n[:, None] * mean - s, a, axes=2) + penalty * (theta - centre)
        return gradient, _curvature(a, n, mean) + np.diag(penalty)

    minimum = _newton(deviance, derivatives, start, _COARSE)
    theta = minimum.theta
    left_out = _left_out(a, s, theta, minimum.hessian)
    return PenalisedFit(theta, x @ theta, left_out, minimum.converged)


def _curvature(a: Floats, n: Floats, mean: Floats) -> Floats:
    """(D, D), sum of n a'(diag(mean) - mean mean')a."""
    size = a.shape[2]
    rows = (a * (n[:, None] * mean)[:, :, None]).reshape(-1, size)
    centre = np.einsum("pcd,pc->pd", a, mean)
    return np.asarray(rows.T @ a.reshape(-1, size) - (centre * n[:, None]).T @ centre)


def _log_total(scores: Floats) -> Floats:
    """(n,), log of the sum of exp of each row; numpy's own reduction takes ten times as long."""
    top = scores.max(axis=1)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))


def _left_out(a: Floats, s: Floats, theta: Floats, hessian: Floats) -> float:
    """Mean log-loss of rows predicted without themselves.

    As for two classes, with matrices: lever = x H^-1 x', and a row of class c moves the scores by
    lever (I - V lever)^-1 (p - e_c), V = diag(p) - pp'.
    """
    scores = a @ theta
    mean = softmax(scores)
    lever = a @ np.linalg.inv(hessian) @ a.transpose(0, 2, 1)
    unit = np.eye(mean.shape[1])
    variance = mean[:, :, None] * (unit - mean[:, None, :])
    shrink = np.linalg.inv(unit - variance @ lever)
    loss = 0.0
    for c in range(len(unit)):
        shift = np.einsum("pcd,pd->pc", shrink, mean - unit[c])
        scores_without = scores + np.einsum("pcd,pd->pc", lever, shift)
        loss += float(s[:, c] @ (_log_total(scores_without) - scores_without[:, c]))
    return loss / float(s.sum())


def multinomial(x: Floats, counts: Floats, ridge: float = 1.0) -> Floats:
    """(P, C), class probabilities by regression with ``ridge`` on the slopes, from counts (P, C).

    L-BFGS on the mean penalised likelihood, since with a column for every product of judges the
    Hessian of C classes is expensive. scikit-learn's estimator has the same optimum (a test
    holds it to that) and spends most of its time on checking its input, five times over.
    """
    from scipy.optimize import minimize

    used = counts.sum(axis=1) > 0
    a = np.column_stack([np.ones(used.sum()), x[used]])
    s = counts[used]
    n, total = s.sum(axis=1)[:, None], float(s.sum())
    shape = (a.shape[1], s.shape[1])

    def objective(theta: Floats) -> tuple[float, Floats]:
        table = theta.reshape(shape)
        logs = a @ table
        logs -= logs.max(axis=1, keepdims=True)
        share = np.exp(logs)
        sums = share.sum(axis=1, keepdims=True)
        slope = a.T @ (n * share / sums - s)
        slope[1:] += ridge * table[1:]
        loss = float((n * np.log(sums)).sum() - (s * logs).sum())
        penalty = 0.5 * ridge * float((table[1:] ** 2).sum())
        return (loss + penalty) / total, slope.ravel() / total

    minimum = minimize(
        objective,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "gtol": 3e-4, "ftol": 1e-9},
    )
    return softmax(np.column_stack([np.ones(len(x)), x]) @ minimum.x.reshape(shape))
