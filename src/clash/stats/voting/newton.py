"""Newton's method with step halving, for many convex problems of one shape at once.

A bootstrap refits a thousand small models, so that values, gradients and Hessians of all of them are
arrays with a leading axis B and each step is one call of LAPACK.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clash.stats.typing import Floats


_SMALLEST_STEP = 1e-10
_LONGEST_STEP = 8.0
"""Of a log strength. Where the function is nearly flat, the Newton step can be arbitrarily long."""


class Problem(Protocol):
    """B convex functions of n variables."""

    def value(self, x: Floats) -> Floats:
        """Of shape (B,), at x of shape (B, n)."""
        ...

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """Gradients (B, n) and Hessians (B, n, n), these positive definite."""
        ...


@dataclass(frozen=True, slots=True)
class Minimum:
    """Where the search ended.

    Attributes:
        x: (B, n).
        hessian: (B, n, n), there.
        residual: (B,), largest entry of the gradient.
        converged: (B,), residual within the tolerance.
        n_iter: (B,), steps taken.
    """

    x: Floats
    hessian: Floats
    residual: Floats
    converged: NDArray[np.bool_]
    n_iter: NDArray[np.intp]


def newton(problem: Problem, start: Floats, tol: Floats, max_iter: int) -> Minimum:
    """Minimise each function from its start.

    Args:
        problem: the functions.
        start: (B, n).
        tol: (B,), largest entry of the gradient at which to stop.
        max_iter: steps; the result says for which functions they were enough.
    """
    x = start.copy()
    value = problem.value(x)
    gradient, hessian = problem.derivatives(x)
    n_iter = np.zeros(len(x), dtype=np.intp)
    going = np.abs(gradient).max(axis=1) > tol
    while going.any() and n_iter.max() < max_iter:
        progress, x, value = _step(problem, x, value, gradient, hessian, going)
        n_iter += progress
        gradient, hessian = problem.derivatives(x)
        going = progress & (np.abs(gradient).max(axis=1) > tol)
    residual = np.abs(gradient).max(axis=1)
    return Minimum(x, hessian, residual, residual <= tol, n_iter)


def _step(
    problem: Problem,
    x: Floats,
    value: Floats,
    gradient: Floats,
    hessian: Floats,
    going: NDArray[np.bool_],
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """One step of each problem, halved until the function falls by Armijo's condition.

    Returns:
        Which problems moved, the points, and the values there.
    """
    direction = _direction(gradient, hessian) * going[:, None]
    slope = np.sum(gradient * direction, axis=1)
    # Near the minimum the decrease is smaller than the rounding error of the value.
    slack = 1e-12 * np.maximum(1.0, np.abs(value))
    is_done, size = ~going, 1.0
    points, values = x.copy(), value.copy()
    while not is_done.all() and size > _SMALLEST_STEP:
        trial = x + size * direction
        trial_values = problem.value(trial)
        accept = ~is_done & (trial_values <= value + 1e-4 * size * slope + slack)
        points[accept], values[accept] = trial[accept], trial_values[accept]
        is_done, size = is_done | accept, size / 2
    return is_done & going, points, values


def _direction(gradient: Floats, hessian: Floats) -> Floats:
    """The Newton step, (B, n), with no entry beyond ``_LONGEST_STEP``.

    The diagonal is raised by 1e-12 of its largest entry, so that a Hessian that is singular to working
    precision (a candidate without games, far out) can still be solved.
    """
    size = hessian.shape[-1]
    largest = hessian[:, np.arange(size), np.arange(size)].max(axis=1)
    regular = hessian + (1e-12 * np.maximum(1.0, largest))[:, None, None] * np.eye(size)
    step: Floats = -np.linalg.solve(regular, gradient[..., None])[..., 0].astype(float)
    length = np.abs(step).max(axis=1, keepdims=True)
    direction: Floats = step * (_LONGEST_STEP / np.maximum(length, _LONGEST_STEP))
    return direction
