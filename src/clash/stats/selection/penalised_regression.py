"""Penalised logistic regressions from counts by pattern of votes, and their errors on left-out rows.

Of P patterns only the number of labelled rows and the sum of their targets are known, so the fits are
to counts; a target that is a share counts as so much of a row of either class. Loss, gradient and
Hessian are equations (1) to (4) of :mod:`clash.stats.logistic_regression`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import logit, sigmoid, softmax
from clash.stats.logistic_regression import LogisticLoss, SoftmaxLoss, log_sum_exp
from clash.stats.optimise import minimise

if TYPE_CHECKING:
    from clash.stats.typing import Floats


DECREMENT = 1e-8
"""Newton decrement with which a fit ends: 1e-4 standard errors, which the step that follows squares."""
RIDGE = 1.0
"""Pseudo-rows on each slope of a regression without a prior of its own."""
NEWTON_STEPS = 30
"""Steps allowed; some 4 to 8 are taken."""


@dataclass(frozen=True, slots=True)
class PenalisedFit:
    """A penalised regression of counts.

    Attributes:
        theta: (D,), the parameters.
        scores: (P, C), log-probabilities up to a constant, of every row of the design; (P,)
            log-odds of class 1 where there are two.
        left_out: mean log-loss of rows predicted without themselves, to first order.
        converged: the last step was one of :data:`DECREMENT`.
    """

    theta: Floats
    scores: Floats
    left_out: float
    converged: bool


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
    has_rows = n > 0
    a, n, s = x[has_rows], n[has_rows], s[has_rows]
    minimum = minimise(
        LogisticLoss(np.ascontiguousarray(a.T), n, s, penalty, centre),
        start,
        decrement_tol=DECREMENT,
        max_iter=NEWTON_STEPS,
    )
    log_odds = np.asarray(x @ minimum.x)
    odds = log_odds[has_rows]
    mean = sigmoid(odds)
    lever = ((a @ np.linalg.inv(minimum.hessian)) * a).sum(axis=1)
    # Without a row the Hessian loses p (1 - p) x x', and by Sherman-Morrison the row's log-odds move
    # by its residual (mean minus label) times lever / (1 - p (1 - p) lever).
    reach = lever / (1 - mean * (1 - mean) * lever)
    if_one, if_zero = odds + reach * (mean - 1), odds + reach * mean
    loss = s @ np.logaddexp(0, -if_one) + (n - s) @ np.logaddexp(0, if_zero)
    return PenalisedFit(minimum.x, log_odds, float(loss / n.sum()), bool(minimum.converged))


def binomial(x: Floats, n: Floats, s: Floats) -> Floats:
    """(P,), log-odds by logistic regression with a ridge on the slopes, from counts.

    The intercept is all but free. scikit-learn's estimator has the same optimum (a test holds it to
    that) and takes ten times as long on a few patterns.

    Args:
        x: (P, D), without a column of ones.
        n: (P,), observations.
        s: (P,), of class 1.
    """
    has_rows = n > 0
    a = np.column_stack([np.ones(len(x)), x])
    penalty = np.full(a.shape[1], RIDGE)
    penalty[0] = 1e-3
    start = np.zeros(a.shape[1])
    start[0] = float(logit((s.sum() + 0.5) / (n.sum() + 1)))
    columns = np.ascontiguousarray(a[has_rows].T)
    loss = LogisticLoss(columns, n[has_rows], s[has_rows], penalty, np.zeros(a.shape[1]))
    return np.asarray(a @ minimise(loss, start, decrement_tol=DECREMENT).x)


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
    has_rows = counts.sum(axis=1) > 0
    a, s = x[has_rows], counts[has_rows]
    n = s.sum(axis=1)
    minimum = minimise(
        SoftmaxLoss(a, s, n, penalty, centre),
        start,
        decrement_tol=DECREMENT,
        max_iter=NEWTON_STEPS,
    )
    left_out = _left_out(a, s, minimum.x, minimum.hessian)
    return PenalisedFit(minimum.x, x @ minimum.x, left_out, bool(minimum.converged))


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
        loss += float(s[:, c] @ (log_sum_exp(scores_without) - scores_without[:, c]))
    return loss / float(s.sum())


def multinomial(x: Floats, counts: Floats) -> Floats:
    """(P, C), class probabilities by regression with a ridge on the slopes, from counts (P, C).

    L-BFGS on the mean penalised likelihood, since with a column for every product of judges the
    Hessian of C classes is expensive. scikit-learn's estimator has the same optimum (a test
    holds it to that) and spends most of its time on checking its input, five times over.
    """
    from scipy.optimize import minimize

    has_rows = counts.sum(axis=1) > 0
    a = np.column_stack([np.ones(has_rows.sum()), x[has_rows]])
    s = counts[has_rows]
    n, total = s.sum(axis=1)[:, None], float(s.sum())
    shape = (a.shape[1], s.shape[1])

    def objective(theta: Floats) -> tuple[float, Floats]:
        table = theta.reshape(shape)
        logs = a @ table
        logs -= logs.max(axis=1, keepdims=True)
        share = np.exp(logs)
        sums = share.sum(axis=1, keepdims=True)
        slope = a.T @ (n * share / sums - s)
        slope[1:] += RIDGE * table[1:]
        loss = float((n * np.log(sums)).sum() - (s * logs).sum())
        penalty = 0.5 * RIDGE * float((table[1:] ** 2).sum())
        return (loss + penalty) / total, slope.ravel() / total

    minimum = minimize(
        objective,
        np.zeros(shape[0] * shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 200, "gtol": 3e-4, "ftol": 1e-9},
    )
    return softmax(np.column_stack([np.ones(len(x)), x]) @ minimum.x.reshape(shape))
