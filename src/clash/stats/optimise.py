"""Damped Newton for smooth convex functions, one or many at once, and logistic regression by it.

Newton's step solves H s = g, with g the gradient and H the Hessian: where the function is a
parabola it ends at the minimum. Far from the minimum the parabola is a poor guide (the curvature
of a logistic loss vanishes in its tails, so that the step overshoots), and the step is halved until
the function falls by a fair share of what the gradient promises (Armijo's rule). Near the minimum
the full step passes that rule, and the digits that are right double with every step.

The Newton decrement g' H^-1 g is twice the fall that the parabola predicts. As a stopping rule it
is in the units of the function and does not depend on how the parameters are scaled (Boyd and
Vandenberghe 2004, section 9.5).

Every array may have leading axes ``...``: then there are as many problems, solved side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index

SUFFICIENT = 1e-4
"""Share of the fall promised by the gradient that a step has to reach (Armijo's constant)."""
ROUNDING = 1e-12
"""Rise, as a share of the value, that is put down to rounding: at the minimum nothing else moves."""
SMALLEST_STEP = 1e-10
"""Share of Newton's step below which a search for a fall is given up."""


class ConvexProblem(Protocol):
    """Convex functions of n variables, with leading axes ``...`` for several of them."""

    def value(self, x: Floats) -> Floats:
        """The functions at x of shape (..., n); shape (...)."""
        ...

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradients (..., n) and positive definite Hessians (..., n, n) at x."""
        ...


@dataclass(frozen=True, slots=True)
class NewtonMinimum:
    """Where Newton's method ended.

    Attributes:
        x: shape (..., n).
        value: of the functions there, shape (...).
        gradient: shape (..., n), there.
        hessian: shape (..., n, n), there.
        gradient_norm: largest entry of the gradient, shape (...).
        decrement: g' H^-1 g, shape (...): about twice what a further step would gain.
        converged: whether the tolerance was met, shape (...).
        n_iter: steps taken, shape (...).
    """

    x: Floats
    value: Floats
    gradient: Floats
    hessian: Floats
    gradient_norm: Floats
    decrement: Floats
    converged: Bools
    n_iter: Index


def minimise(
    problem: ConvexProblem,
    start: Floats,
    *,
    gradient_tol: Floats | float = 0.0,
    decrement_tol: Floats | float = 0.0,
    max_iter: int = 50,
    longest_step: float = np.inf,
) -> NewtonMinimum:
    """Minimise convex functions by Newton steps, each halved until its function falls.

    Args:
        problem: the functions.
        start: shape (..., n).
        gradient_tol: a function is done where the largest entry of its gradient is at most this;
            a number, or of shape (...).
        decrement_tol: or where its Newton decrement is below this.
        max_iter: steps after which it gives up (``converged`` is then False).
        longest_step: largest entry that a step may have: where a function is nearly flat, Newton's
            own step means nothing.

    Raises:
        numpy.linalg.LinAlgError: a Hessian is singular; a ridge on the parameters prevents it.
    """
    x = np.asarray(start, np.float64)
    value = problem.value(x)
    n_iter = np.zeros(np.shape(value), np.intp)
    stuck = np.zeros(np.shape(value), bool)
    while True:
        gradient, hessian = problem.derivatives(x)
        step = np.asarray(np.linalg.solve(hessian, gradient[..., None])[..., 0], np.float64)
        decrement = (gradient * step).sum(axis=-1)
        gradient_norm = np.abs(gradient).max(axis=-1)
        converged = (gradient_norm <= gradient_tol) | (decrement < decrement_tol)
        active = ~(converged | stuck)
        if not active.any() or n_iter.max() >= max_iter:
            break
        if longest_step < np.inf:
            length = np.abs(step).max(axis=-1, keepdims=True)
            step = step * (longest_step / np.maximum(length, longest_step))
        has_moved, x, value = _line_search(problem, x, value, gradient, step, active)
        n_iter = n_iter + has_moved
        stuck = stuck | (active & ~has_moved)
    return NewtonMinimum(
        x,
        np.asarray(value, np.float64),
        gradient,
        hessian,
        np.asarray(gradient_norm, np.float64),
        np.asarray(decrement, np.float64),
        np.asarray(converged, bool),
        np.asarray(n_iter, np.intp),
    )


def _line_search(
    problem: ConvexProblem,
    x: Floats,
    value: Floats,
    gradient: Floats,
    step: Floats,
    active: Bools,
) -> tuple[Bools, Floats, Floats]:
    """Halve steps until their functions fall: which moved, where to, and the values there."""
    slope = (gradient * step).sum(axis=-1)
    limit = value + ROUNDING * np.maximum(1.0, np.abs(value))
    trial = x - step
    trial_value = problem.value(trial)
    has_moved = active & (trial_value <= limit - SUFFICIENT * slope)
    if has_moved.all():
        return has_moved, trial, trial_value
    x = np.where(has_moved[..., None], trial, x)
    value = np.where(has_moved, trial_value, value)
    size = 0.5
    while (active & ~has_moved).any() and size > SMALLEST_STEP:
        trial = x - size * step
        trial_value = problem.value(trial)
        # What has moved already stays where it is: its step was accepted at a larger size.
        falls = active & ~has_moved & (trial_value <= limit - SUFFICIENT * size * slope)
        x = np.where(falls[..., None], trial, x)
        value = np.where(falls, trial_value, value)
        has_moved, size = has_moved | falls, size / 2
    return has_moved, x, value


@dataclass(frozen=True, slots=True)
class LogisticLoss:
    """Minus the penalised log-likelihood of a logistic regression.

    With p = sigmoid(X beta), targets t of weights w, and a Gaussian prior of precision P about c:

        f = sum_i w_i (log(1 + exp(x_i beta)) - t_i x_i beta) + (beta - c)' P (beta - c) / 2
        g = X' diag(w) (p - t) + P (beta - c),   H = X' diag(w p (1 - p)) X + P.

    A Newton step of f is one step of iteratively reweighted least squares.

    Attributes:
        design: X, shape (n, q).
        target: t, shape (n,), in [0, 1]: 0 or 1, or a share of successes.
        weights: w, shape (n,): how many observations a row stands for.
        precision: diagonal of P, shape (q,); positive, or columns that separate the outcomes have
            no finite coefficients.
        centre: c, shape (q,).
    """

    design: Floats
    target: Floats
    weights: Floats
    precision: Floats
    centre: Floats

    def value(self, x: Floats) -> Floats:
        """Minus the penalised log-likelihood at coefficients (q,)."""
        log_odds, away = self.design @ x, x - self.centre
        loss = self.weights @ (np.logaddexp(0, log_odds) - self.target * log_odds)
        return np.asarray(loss + 0.5 * self.precision @ away**2)

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Its gradient (q,) and Hessian (q, q)."""
        p = sigmoid(self.design @ x)
        residual = self.weights * (p - self.target)
        gradient = self.design.T @ residual + self.precision * (x - self.centre)
        hessian = (self.design * (self.weights * p * (1 - p))[:, None]).T @ self.design
        hessian.flat[:: len(x) + 1] += self.precision
        return gradient, hessian


def logistic_regression(
    design: Floats,
    target: Floats,
    weights: Floats,
    precision: Floats,
    *,
    centre: Floats | None = None,
    start: Floats | None = None,
    decrement_tol: float = 1e-8,
    max_iter: int = 50,
) -> NewtonMinimum:
    """Penalised logistic regression; ``x`` of the result holds the coefficients (q,).

    Args:
        design: shape (n, q), with whatever intercept is wanted.
        target: shape (n,), in [0, 1]; a fraction counts as so much of a success.
        weights: shape (n,), of the rows.
        precision: shape (q,), of the Gaussian prior on the coefficients; positive.
        centre: shape (q,), where the prior has them; 0 by default.
        start: shape (q,), where the search begins; the centre by default.
        decrement_tol: see :func:`minimise`; in units of log-likelihood.
        max_iter: Newton steps.
    """
    middle = np.zeros(design.shape[1]) if centre is None else centre
    loss = LogisticLoss(design, target, weights, precision, middle)
    first = middle if start is None else start
    return minimise(loss, first, decrement_tol=decrement_tol, max_iter=max_iter)
