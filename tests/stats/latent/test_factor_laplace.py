"""Factors by Laplace's method: against a fine grid, gradients, recovery of three factors."""

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.factor import FactorPriors, factor
from clash.stats.latent.factor_laplace import (
    LaplaceLaw,
    LaplaceModel,
    VoteWeights,
    expand,
    factor_laplace,
)
from clash.stats.latent.patterns import collapse
from clash.stats.latent.quadrature import FactorLaw


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def simulate(n, k, rank, seed, *, skill=0.85, loading=1.2):
    """Votes, truth and loadings: judge j loads on factor j mod rank alone."""
    rng = np.random.default_rng(seed)
    truth, z = rng.integers(0, 2, n), rng.normal(size=(n, rank))
    loadings = np.where(np.arange(k)[:, None] % rank == np.arange(rank), loading, 0.0)
    p = sigmoid((2 * truth - 1)[:, None] * skill + z @ loadings.T)
    return (rng.random((n, k)) < p).astype(np.int8), truth, loadings


def law_of(rng, k, rank, scale):
    lean, loadings = rng.normal(size=k) * 0.3, rng.normal(size=(k, rank)) * scale
    return LaplaceLaw(0.5, lean, np.full(k, 0.85), loadings, 0)


def test_without_loadings_it_is_the_product_of_the_judges():
    rng = np.random.default_rng(0)
    law = law_of(rng, 4, 2, 0.0)
    votes = rng.choice([0, 1, -1, 2], size=(30, 4)).astype(np.int8)
    for y, sign in enumerate((-1, 1)):
        p = sigmoid(law.lean + sign * law.skill)
        half = (np.log(p) + np.log(1 - p)) / 2
        logs = np.select([votes == 1, votes == 0, votes == 2], [np.log(p), np.log(1 - p), half], 0)
        assert law.log_likelihoods(votes)[:, y] == pytest.approx(logs.sum(axis=1))


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize(("scale", "off"), [(0.5, 0.01), (1.0, 0.04), (2.0, 0.1)])
@pytest.mark.parametrize("k", [5, 14])
def test_the_evidence_for_the_truth_is_that_of_a_fine_grid(rank, scale, off, k):
    rng = np.random.default_rng(1)
    law = law_of(rng, k, rank, scale)
    votes = rng.choice([0, 1, -1], p=[0.45, 0.45, 0.1], size=(60, k)).astype(np.int8)
    # Fewer nodes than that are too coarse for 14 judges with loadings of 2.
    grid = FactorLaw(0.5, law.lean, law.skill, law.loadings, np.zeros(k), (), 80, 0)
    exact, laplace_ratio = (np.diff(x.log_likelihoods(votes), axis=1)[:, 0] for x in (grid, law))
    assert np.abs(exact).mean() > 1
    assert np.abs(exact - laplace_ratio).mean() < off
    # The likelihoods of both classes are too small together, by more than their ratio is off.
    short = grid.log_likelihoods(votes) - law.log_likelihoods(votes)
    assert 0 < short.mean() < 0.12


def test_the_gradient_agrees_with_finite_differences():
    rng = np.random.default_rng(2)
    votes = rng.choice([0, 1, -1, 2], p=[0.4, 0.4, 0.1, 0.1], size=(50, 6))
    patterns = collapse(votes.astype(np.int8))
    model = LaplaceModel.of(patterns, 3, FactorPriors())
    theta = model.start(patterns)
    theta += rng.normal(size=len(theta)) * 0.3
    weights = rng.random((len(patterns.counts), 2))
    _, kept_state = model.evaluate(theta)
    slopes = model.gradient(kept_state, weights)
    for i, e in enumerate(np.eye(len(theta))[1:] * 1e-5, start=1):
        ahead, behind = (np.sum(model.evaluate(theta + s * e)[0] * weights) for s in (1, -1))
        assert slopes[i] == pytest.approx((ahead - behind) / 2e-5, abs=1e-6)


def test_a_missing_vote_has_no_factor_in_it():
    rng = np.random.default_rng(3)
    law = law_of(rng, 6, 3, 1.0)
    votes = rng.integers(0, 2, (40, 6)).astype(np.int8)
    fewer = LaplaceLaw(0.5, law.lean[:5], law.skill[:5], law.loadings[:5], 0)
    votes[:, 5] = -1
    assert law.log_likelihoods(votes) == pytest.approx(fewer.log_likelihoods(votes[:, :5]))


def test_turning_the_factors_changes_nothing():
    rng = np.random.default_rng(4)
    law = law_of(rng, 7, 3, 1.0)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned_law = LaplaceLaw(0.5, law.lean, law.skill, law.loadings @ turn, 0)
    votes = rng.integers(0, 2, (40, 7)).astype(np.int8)
    assert turned_law.log_likelihoods(votes) == pytest.approx(law.log_likelihoods(votes))


@pytest.mark.parametrize("rank", [1, 2])
def test_fits_of_few_factors_are_those_of_the_grid(rank):
    votes, truth, _ = simulate(1500, 10, rank, 5, skill=1.2, loading=0.8)
    patterns = collapse(votes)
    exact, fit = factor(patterns, rank=rank), factor_laplace(patterns, rank=rank)
    assert fit.converged
    assert np.abs(exact.item_posterior - fit.item_posterior).mean() < 0.05
    assert np.mean((exact.item_posterior > 0.5) == (fit.item_posterior > 0.5)) > 0.96
    assert np.mean((fit.item_posterior > 0.5) == truth) > 0.85


def test_three_factors_are_recovered_from_any_start():
    votes, truth, loadings = simulate(3000, 12, 3, 6)
    fit = factor_laplace(collapse(votes))
    assert fit.converged
    ends = [start.objective for start in fit.starts]
    assert ends[0] == pytest.approx(ends[1], abs=0.5)
    law = fit.parameters
    off = ~np.eye(12, dtype=bool)
    shared_covariance = law.loadings @ law.loadings.T
    true = loadings @ loadings.T
    assert np.corrcoef(shared_covariance[off], true[off])[0, 1] > 0.95
    assert law.skill == pytest.approx(np.full(12, 0.85), abs=0.35)
    assert np.mean((fit.item_posterior > 0.5) == truth) > 0.77


def test_a_factor_stronger_than_the_truth_does_not_take_its_place():
    """Both starts end where a factor is taken for the class, 28 nats below the exchanged one."""
    rng, n, k = np.random.default_rng([7, 0]), 800, 12
    skill, loadings = rng.uniform(0.6, 1.4, k), 2 * rng.normal(size=(k, 3))
    truth, z = rng.integers(0, 2, n), rng.normal(size=(n, 3))
    p = sigmoid((2 * truth - 1)[:, None] * skill + z @ loadings.T)
    votes = (rng.random((n, k)) < p).astype(np.int8)
    fit = factor_laplace(collapse(votes), tol=1e-4)
    assert fit.start == "class and largest factor exchanged"
    first, exchanged_start = fit.starts
    assert exchanged_start.objective > first.objective + 20
    assert first.differs > 0.2
    assert np.mean((fit.item_posterior > 0.5) == truth) > 0.8


def test_renaming_judges_and_sides_renames_the_fit():
    votes, _, _ = simulate(800, 8, 3, 7)
    order = np.random.default_rng(0).permutation(8)
    fit = factor_laplace(collapse(votes), tol=1e-7)
    other_fit = factor_laplace(collapse(votes[:, order]), tol=1e-7)
    assert other_fit.item_posterior == pytest.approx(fit.item_posterior, abs=0.01)
    turned_fit = factor_laplace(collapse(1 - votes), tol=1e-7)
    assert turned_fit.item_posterior == pytest.approx(1 - fit.item_posterior, abs=0.01)


def test_the_mode_is_found_where_a_whole_step_would_pass_it():
    rng = np.random.default_rng(9)
    law = law_of(rng, 30, 2, 12.0)
    cast = VoteWeights.of(rng.integers(0, 2, (50, 30)).astype(np.int8))
    at = expand(law, cast)
    slope = (cast.votes_one[:, None] - at.right) @ law.loadings - at.mode
    assert np.abs(slope).max() < 1e-6
    assert np.all(np.isfinite(at.value))


def test_swapping_the_classes_swaps_their_likelihoods():
    votes, _, _ = simulate(60, 6, 3, 10)
    patterns = collapse(votes)
    model = LaplaceModel.of(patterns, 3, FactorPriors())
    theta = model.start(patterns)
    theta[0] = 0.7
    objective, back = model.evaluate(theta)[0], model.evaluate(model.swap_classes(theta))[0]
    assert back == pytest.approx(objective[:, ::-1])
    assert model.law(model.swap_classes(theta)).prior == pytest.approx(1 - model.law(theta).prior)


def test_what_cannot_be_fitted_is_refused():
    votes, _, _ = simulate(100, 5, 1, 8)
    with pytest.raises(NotIdentifiedError, match="factor-3 needs 6 judges"):
        factor_laplace(collapse(votes))
    with pytest.raises(StatisticsError, match="at least 1"):
        factor_laplace(collapse(votes), rank=0)
