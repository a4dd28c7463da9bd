"""Damped Newton for smooth convex functions, one or many at once.

Every fit of the package that has a gradient, a Hessian and one minimum ends here: the logistic
regressions (:mod:`clash.stats.logistic_regression`), strengths from comparisons and rankings, the
pseudo-likelihood of couplings, the modes of latent factors.

Method. Newton's step s solves H s = g, with g the gradient and H the Hessian: (1) where the function
is a parabola, x - s is the minimum. Far from the minimum the parabola is a poor guide (the curvature
of a logistic loss vanishes in its tails, so that the step overshoots), and the step is halved until
the function falls by a fair share of what the gradient promises (Armijo's rule),

    f(x - t s) <= f(x) - 1e-4 t g' s,    t = 1, 1/2, 1/4, ...                                  (2)

Near the minimum the full step passes that rule, and the digits that are right double with every step.

Convergence. A function is done by either of two tests, and a fit says whether it was:

- the largest entry of g is at most ``gradient_tol``: the equations g = 0 that define the estimate
  hold to that many units;
- the Newton decrement g' s = g' H^-1 g is below ``decrement_tol``. It is twice the fall that the
  parabola predicts, in the units of the function and whatever the scale of the parameters (Boyd and
  Vandenberghe 2004, section 9.5); of a log-likelihood it is the squared distance from the maximum
  in standard errors. The step that it belongs to is still taken: it costs no derivatives, and
  squares the error.

Every array may have leading axes ``...``: then there are as many problems, solved side by side, each
step one call of LAPACK, and each ends where it would end alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index

SUFFICIENT = 1e-4
"""Share of the fall promised by the gradient that a step has to reach (Armijo's constant)."""
ROUNDING = 1e-12
"""Rise, as a share of the value, that is put down to rounding: at the minimum nothing else moves."""
SMALLEST_STEP = 1e-10
"""Share of Newton's step below which a search for a fall is given up."""
DIAGONAL = 1e-12
"""Share of its largest entry by which the diagonal of a Hessian that cannot be solved is raised."""


class ConvexProblem(Protocol):
    """Convex functions of n variables, with leading axes ``...`` for several of them."""

    def value(self, x: Floats) -> Floats | np.float64:
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
        hessian: shape (..., n, n), there; one step short of there where the decrement ended the search.
        gradient_norm: largest entry of the gradient, shape (...), where the Hessian is.
        decrement: g' H^-1 g before the last step, shape (...): about twice what that step gained.
        converged: whether a tolerance was met, shape (...). Else the steps ran out, or no step made
            the function fall.
        n_iter: steps taken, shape (...).
    """

    x: Floats
    value: Floats
    hessian: Floats
    gradient_norm: Floats
    decrement: Floats
    converged: Bools
    n_iter: Index


def minimise(
    problem: ConvexProblem,
    start: Floats,
    *,
    gradient_tol: Floats | float | None = None,
    decrement_tol: Floats | float | None = None,
    max_iter: int = 50,
    longest_step: float = np.inf,
) -> NewtonMinimum:
    """Minimise convex functions by Newton steps, each halved until its function falls.

    Args:
        problem: the functions.
        start: shape (..., n).
        gradient_tol: a function is done where the largest entry of its gradient is at most this;
            a number, or of shape (...); None for no such test.
        decrement_tol: or with the step whose Newton decrement is below this; likewise.
        max_iter: steps after which it gives up (``converged`` is then False).
        longest_step: largest entry that a step may have: where a function is nearly flat, Newton's
            own step means nothing.
    """
    x = np.asarray(start, np.float64)
    value = problem.value(x)
    converged = is_stuck = np.zeros(x.shape[:-1], bool)[()]
    n_iter, decrement = np.zeros(x.shape[:-1], np.intp), np.zeros(x.shape[:-1])
    steps = 0
    while True:
        gradient, hessian = problem.derivatives(x)
        if gradient_tol is not None:
            converged = converged | (np.abs(gradient).max(axis=-1) <= gradient_tol)
        is_done = converged | is_stuck
        if steps == max_iter or _is_true_throughout(is_done):
            break
        step, decrement = _newton_step(gradient, hessian, is_done)
        if decrement_tol is not None:
            converged = converged | (decrement < decrement_tol)
        slope = decrement
        if longest_step < np.inf:
            length = np.abs(step).max(axis=-1, keepdims=True)
            shrink = longest_step / np.maximum(length, longest_step)
            step, slope = step * shrink, slope * shrink[..., 0]
        has_moved, x, value = _line_search(problem, x, value, slope, step, ~is_done)
        n_iter, steps = n_iter + has_moved, steps + 1
        is_stuck = ~(is_done | has_moved) | is_stuck
        if _is_true_throughout(converged | is_stuck):
            break
    return NewtonMinimum(
        x,
        np.asarray(value, np.float64),
        hessian,
        np.abs(gradient).max(axis=-1),
        np.asarray(decrement, np.float64),
        np.asarray(converged, bool),
        np.asarray(n_iter, np.intp),
    )


def _newton_step(gradient: Floats, hessian: Floats, is_done: Bools) -> tuple[Floats, Floats]:
    """Steps s of H s = g, shape (..., n), and the decrements g' s, shape (...).

    A Hessian that is singular to working precision (a candidate without games, far out) has no
    solution, or one that leads uphill: then the diagonals are raised.
    """
    try:
        step = _solve(hessian, gradient)
        decrement = _dot(gradient, step)
        if _is_true_throughout((decrement > 0) | is_done):
            return step, decrement
    except np.linalg.LinAlgError:
        pass
    largest = np.diagonal(hessian, axis1=-2, axis2=-1).max(axis=-1)[..., None, None]
    step = _solve(
        hessian + DIAGONAL * np.maximum(1.0, largest) * np.eye(hessian.shape[-1]), gradient
    )
    return step, _dot(gradient, step)


# A single problem is as common as many at once, and small: its forms below spare it some microseconds a
# step, which are a third of its time.
def _solve(matrix: Floats, right: Floats) -> Floats:
    """(..., n), solutions of systems.

    Raises:
        numpy.linalg.LinAlgError: a matrix is singular, or not positive definite where it is the only one.
    """
    if right.ndim > 1:
        return np.asarray(np.linalg.solve(matrix, right[..., None])[..., 0], np.float64)
    from scipy.linalg.lapack import dposv

    _, solution, status = dposv(matrix, right)
    if status != 0:
        raise np.linalg.LinAlgError(f"the leading minor of order {status} is not positive")
    return np.asarray(solution, np.float64)


def _dot(a: Floats, b: Floats) -> Floats:
    """(...), products of vectors (..., n)."""
    products: Floats = a @ b if a.ndim == 1 else (a * b).sum(axis=-1)
    return products


def _is_true_throughout(flags: Bools) -> bool:
    return bool(flags) if flags.ndim == 0 else bool(flags.all())


def _line_search(
    problem: ConvexProblem,
    x: Floats,
    value: Floats | np.float64,
    slope: Floats,
    step: Floats,
    active: Bools,
) -> tuple[Bools, Floats, Floats | np.float64]:
    """Halve steps until their functions fall: which moved, where to, and the values there."""
    limit = value + ROUNDING * np.maximum(1.0, np.abs(value))
    trial = x - step
    trial_value = problem.value(trial)
    has_moved = active & (trial_value <= limit - SUFFICIENT * slope)
    if _is_true_throughout(has_moved):
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
