"""Newton's method with halved steps, and logistic regression by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from clash.stats.logistic import logit, sigmoid, softmax
from clash.stats.optimise import LogisticLoss, logistic_regression, minimise


def _problem(n: int = 60, q: int = 4, seed: int = 0) -> LogisticLoss:
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(0, 2, (n, q - 1))])
    target = (rng.random(n) < sigmoid(design @ rng.normal(0, 1, q))).astype(float)
    precision = np.full(q, 0.3)
    return LogisticLoss(design, target, rng.uniform(0.5, 3, n), precision, rng.normal(0, 0.1, q))


def test_the_gradient_at_the_end_is_zero_and_the_fit_says_so():
    loss = _problem()
    fit = logistic_regression(
        loss.design,
        loss.target,
        loss.weights,
        loss.precision,
        centre=loss.centre,
        decrement_tol=1e-20,
    )
    p = sigmoid(loss.design @ fit.x)
    observed, expected = (
        loss.design.T @ (loss.weights * loss.target),
        loss.design.T @ (loss.weights * p),
    )
    np.testing.assert_allclose(
        expected - observed, -loss.precision * (fit.x - loss.centre), atol=1e-9
    )
    assert fit.converged
    assert fit.gradient_norm < 1e-9
    assert fit.n_iter <= 10


def test_it_ends_where_a_general_optimiser_does():
    loss = _problem(seed=3)
    fit = minimise(loss, np.zeros(4), gradient_tol=1e-10)
    other = minimize(
        lambda b: float(loss.value(b)), np.zeros(4), jac=lambda b: loss.derivatives(b)[0]
    )
    assert float(fit.value) <= other.fun + 1e-9
    np.testing.assert_allclose(fit.x, other.x, atol=1e-4)


def test_derivatives_are_those_of_the_value():
    loss = _problem(seed=1)
    x, h = np.array([0.3, -0.2, 0.5, 0.1]), 1e-6
    gradient, hessian = loss.derivatives(x)
    steps = np.eye(4) * h
    slope = [(loss.value(x + e) - loss.value(x - e)) / (2 * h) for e in steps]
    bend = [(loss.derivatives(x + e)[0] - loss.derivatives(x - e)[0]) / (2 * h) for e in steps]
    np.testing.assert_allclose(gradient, slope, atol=1e-6)
    np.testing.assert_allclose(hessian, bend, atol=1e-5)


class _Softplus:
    """log(1 + e^x) - a x + e^-x e^x terms: flat far to the right, where Newton overshoots."""

    def __init__(self, share: np.ndarray) -> None:
        self.share = share

    def value(self, x: np.ndarray) -> np.ndarray:
        return (np.logaddexp(0, x) - self.share * x).sum(axis=-1)

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = sigmoid(x)
        return p - self.share, (p * (1 - p))[..., None] * np.eye(x.shape[-1])


def test_overshooting_steps_are_halved_until_the_function_falls():
    """From x = 6 the undamped step of log(1 + e^x) - 0.3 x goes to x = -280, where it is flat."""
    fit = minimise(_Softplus(np.array([0.3])), np.array([6.0]), gradient_tol=1e-12, max_iter=200)
    assert fit.converged
    np.testing.assert_allclose(fit.x, logit(0.3), atol=1e-9)


def test_several_problems_at_once_end_where_each_does_alone():
    share = np.array([[0.3, 0.6], [0.5, 0.01], [0.9, 0.2]])
    start = np.array([[0.0, 0.0], [3.0, -3.0], [-5.0, 5.0]])
    together = minimise(_Softplus(share), start, gradient_tol=1e-12, max_iter=300, longest_step=4.0)
    np.testing.assert_allclose(together.x, logit(share), atol=1e-8)
    assert together.converged.shape == together.n_iter.shape == (3,)
    for row, x, n_iter in zip(range(3), together.x, together.n_iter, strict=True):
        alone = minimise(
            _Softplus(share[row]), start[row], gradient_tol=1e-12, max_iter=300, longest_step=4.0
        )
        np.testing.assert_array_equal(alone.x, x)
        assert alone.n_iter == n_iter


def test_too_few_steps_are_reported():
    fit = minimise(_problem(), np.full(4, 3.0), gradient_tol=1e-10, max_iter=1)
    assert not fit.converged
    assert fit.n_iter == 1
    assert fit.gradient_norm > 1e-10


def test_columns_that_separate_the_outcomes_stay_finite_under_the_ridge():
    design = np.array([[1.0, -1.0], [1.0, 1.0]])
    fit = logistic_regression(design, np.array([0.0, 1.0]), np.full(2, 1e6), np.array([1e-3, 1.0]))
    assert fit.converged
    assert 5 < fit.x[1] < 20


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax_adds_up_to_one_whatever_the_size_of_its_weights(axis: int):
    p = softmax(np.array([[1000.0, 0.0], [1001.0, -1000.0]]), axis=axis)
    np.testing.assert_allclose(p.sum(axis=axis), 1.0)
    assert np.isfinite(p).all()
