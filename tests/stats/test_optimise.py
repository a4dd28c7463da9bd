"""Newton's method with halved steps, and logistic regression by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from clash.stats.logistic import logit, sigmoid, softmax
from clash.stats.logistic_regression import LogisticLoss, SoftmaxLoss, logistic_regression
from clash.stats.optimise import minimise


def _problem(n: int = 60, q: int = 4, seed: int = 0) -> LogisticLoss:
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(n), rng.normal(0, 2, (n, q - 1))])
    target = (rng.random(n) < sigmoid(design @ rng.normal(0, 1, q))).astype(float)
    weights = rng.uniform(0.5, 3, n)
    return LogisticLoss(design.T, weights, weights * target, np.full(q, 0.3), rng.normal(0, 0.1, q))


def test_the_equations_of_the_estimate_hold_at_the_end_and_the_fit_says_so():
    loss = _problem()
    fit = logistic_regression(
        loss.columns.T,
        loss.successes / loss.weights,
        loss.weights,
        loss.precision,
        centre=loss.centre,
    )
    expected_gradient = loss.columns @ (loss.weights * sigmoid(fit.x @ loss.columns))
    np.testing.assert_allclose(
        expected_gradient - loss.columns @ loss.successes,
        -loss.precision * (fit.x - loss.centre),
        atol=1e-9,
    )
    assert fit.converged
    assert fit.n_iter <= 10


def test_it_ends_where_a_general_optimiser_does():
    loss = _problem(seed=3)
    fit = minimise(loss, np.zeros(4), gradient_tol=1e-10)
    other_minimum = minimize(
        lambda b: float(loss.value(b)), np.zeros(4), jac=lambda b: loss.derivatives(b)[0]
    )
    assert float(fit.value) <= other_minimum.fun + 1e-9
    np.testing.assert_allclose(fit.x, other_minimum.x, atol=1e-4)


def _rows(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    design = rng.normal(0, rng.choice([0.3, 1.0, 5.0]), (80, 4))
    if kind == "separable":
        return design, (design[:, 0] > 0).astype(float)
    if kind == "constant":
        design[:, 0], design[:, 1] = 1.0, 0.0
    rate = {"lopsided": 0.03, "single class": 0.0}.get(kind, 0.5)
    return design, (rng.random(80) < rate).astype(float)


@pytest.mark.parametrize("kind", ["random", "separable", "lopsided", "constant", "single class"])
def test_logistic_regression_is_that_of_scikit_learn(kind: str):
    sklearn = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(7)
    for precision in (0.01, 1.0, 30.0):
        design, target = _rows(kind, rng)
        # It refuses a single class: a row of next to no weight stands for the other.
        design, target = np.vstack([design, design[:1]]), np.append(target, 1 - target[0])
        weights = np.append(rng.uniform(0.5, 3, 80), 1e-13)
        fit = logistic_regression(design, target, weights, np.full(4, precision))
        other_fit_result = sklearn.LogisticRegression(
            C=1 / precision, fit_intercept=False, solver="newton-cholesky", tol=1e-12
        ).fit(design, target, weights)
        assert fit.converged
        np.testing.assert_allclose(fit.x, other_fit_result.coef_[0], rtol=1e-7, atol=1e-8)


def test_the_regression_of_two_classes_is_that_of_several_with_one_column_empty():
    loss, x = _problem(seed=5), np.array([0.3, -0.2, 0.5, 0.1])
    design = np.stack([np.zeros_like(loss.columns.T), loss.columns.T], axis=1)
    counts = np.stack([loss.weights - loss.successes, loss.successes], axis=1)
    general = SoftmaxLoss(design, counts, loss.weights, loss.precision, loss.centre)
    np.testing.assert_allclose(general.value(x), loss.value(x))
    for several, two in zip(general.derivatives(x), loss.derivatives(x), strict=True):
        np.testing.assert_allclose(several, two, atol=1e-12)


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
        np.testing.assert_allclose(alone.x, x, atol=1e-13)
        assert alone.n_iter == n_iter


class _Valley:
    """(x + y)^2 / 2 for two variables: minima along a line, so that the Hessian is singular."""

    def value(self, x: np.ndarray) -> np.ndarray:
        return x.sum(axis=-1) ** 2 / 2

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(x.sum(axis=-1)[..., None], 2, axis=-1), np.ones((*x.shape, 2))


@pytest.mark.parametrize("start", [[3.0, 1.0], [[3.0, 1.0], [0.0, 0.0], [-1.0, 2.0]]])
def test_a_singular_hessian_still_leads_downhill(start: list):
    fit = minimise(_Valley(), np.array(start), gradient_tol=1e-9)
    assert fit.converged.all()
    np.testing.assert_allclose(fit.x.sum(axis=-1), 0, atol=1e-9)


def test_the_step_that_meets_the_decrement_is_taken():
    fit = minimise(_Valley(), np.array([3.0, 1.0]), decrement_tol=100.0)
    assert fit.n_iter == 1
    assert fit.converged
    np.testing.assert_allclose(fit.x.sum(), 0, atol=1e-9)


def test_a_function_that_no_step_lowers_is_no_minimum():
    """A gradient of the wrong sign promises a fall that never comes."""

    class Wrong(_Valley):
        def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            gradient, hessian = super().derivatives(x)
            return -gradient, hessian + np.eye(2)

    fit = minimise(Wrong(), np.array([3.0, 1.0]), gradient_tol=1e-9)
    assert not fit.converged
    assert fit.n_iter == 0
    np.testing.assert_array_equal(fit.x, [3.0, 1.0])


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
