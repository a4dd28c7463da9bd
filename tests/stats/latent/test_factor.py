"""Latent factors: quadrature against brute force, gradients, recovery, and the class-free rival."""

from itertools import product

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.dawid_skene import dawid_skene
from clash.stats.latent.factor import (
    FactorLaw,
    FactorModel,
    FactorPriors,
    factor,
    factor_class,
    factor_family,
    product_rule,
    trait,
)
from clash.stats.latent.marginal_likelihood import objective
from clash.stats.latent.patterns import collapse
from clash.stats.latent.vote_counting import majority
from stats.latent.simulated import accuracy, independent, moved


@pytest.mark.parametrize("rank", [1, 2])
def test_the_quadrature_integrates_normal_moments(rank):
    point, log_weight = product_rule(9, rank)
    weight = np.exp(log_weight)
    assert weight.sum() == pytest.approx(1)
    np.testing.assert_allclose(weight @ point**2, 1, atol=1e-12)
    np.testing.assert_allclose(weight @ point**4, 3, atol=1e-10)


@pytest.mark.parametrize(
    ("rank", "groups", "by_class"),
    [
        (1, None, False),
        (2, None, False),
        (0, [0, 0, 1, 1, 2], False),
        (1, [0, 0, 1, 1, 2], False),
        (1, None, True),
    ],
)
def test_gradient_against_finite_differences(rank, groups, by_class):
    rng = np.random.default_rng(0)
    votes = rng.integers(-1, 3, (100, 5)).astype(np.int8)
    patterns = collapse(votes, labels=rng.integers(-1, 2, 100))
    model = FactorModel.of(patterns, rank, groups, FactorPriors(), by_class=by_class)
    theta = 0.4 * rng.normal(size=len(model.penalty.centre))
    numeric = [
        (objective(theta + e, model, patterns)[0] - objective(theta - e, model, patterns)[0]) / 2e-6
        for e in 1e-6 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(objective(theta, model, patterns)[1], numeric, atol=1e-8)


def a_law(groups=()):
    rng = np.random.default_rng(1)
    own_loadings = 0.8 * rng.normal(size=4) if groups else np.zeros(4)
    return FactorLaw(
        0.5,
        rng.normal(size=4),
        rng.normal(size=4),
        rng.normal(size=(4, 1)),
        own_loadings,
        groups,
        21,
        0,
    )


@pytest.mark.parametrize("groups", [(), (0, 0, 1, 1)])
def test_probabilities_add_up_and_missing_votes_are_summed_out(groups):
    law = a_law(groups)
    rows = np.array(list(product((0, 1), repeat=4)), np.int8)
    np.testing.assert_allclose(np.exp(law.log_likelihoods(rows)).sum(axis=0), 1, atol=1e-9)
    gap, votes_of_one, zero = (np.array([[v, 1, 0, 0]], np.int8) for v in (-1, 1, 0))
    both_log_sum = np.logaddexp(law.log_likelihoods(votes_of_one), law.log_likelihoods(zero))
    np.testing.assert_allclose(law.log_likelihoods(gap), both_log_sum, atol=1e-12)


def test_the_integral_agrees_with_simulation():
    law = a_law()
    z = np.random.default_rng(2).normal(size=(400_000, 1))
    votes = np.array([1, 0, 1, 1])
    for y, sign in enumerate((-1, 1)):
        rate = 1 / (1 + np.exp(-(law.lean + sign * law.skill + z @ law.loadings.T)))
        likelihoods = np.where(votes == 1, rate, 1 - rate).prod(axis=1)
        exact = np.exp(law.log_likelihoods(votes[None].astype(np.int8))[0, y])
        assert exact == pytest.approx(likelihoods.mean(), abs=5 * likelihoods.std() / 400_000**0.5)


def test_recovers_skills_and_loadings():
    rng = np.random.default_rng(3)
    skill, loading = np.array([2.2, 1.8, 2.0, 1.5, 1.7, 2.1]), np.array([1.5, 1.5, 1.5, 0, 0, 0])
    votes, _ = moved(40_000, skill, loading, rng)
    loose = FactorPriors(skill=0, chance=0, loading=0)
    law = factor(collapse(votes), priors=loose, tol=1e-7).parameters
    np.testing.assert_allclose(law.skill, skill, atol=0.25)
    loadings = law.loadings[:, 0] * np.sign(law.loadings[0, 0])
    np.testing.assert_allclose(loadings, loading, atol=0.25)


def test_beats_majority_and_does_not_lose_to_independence_where_a_factor_moves_a_bloc():
    rng = np.random.default_rng(4)
    votes, truth = moved(4000, [1.2] * 5 + [2.4] * 4, [1.8] * 5 + [0.0] * 4, rng)
    patterns = collapse(votes)
    share_right = accuracy(factor(patterns).item_posterior, truth)
    assert share_right > accuracy(majority(patterns).item_posterior, truth) + 0.02
    assert share_right >= accuracy(dawid_skene(patterns).item_posterior, truth) - 0.002


def test_loadings_by_class_are_told_apart():
    """A factor of class 1 alone, in either naming of the classes."""
    rng = np.random.default_rng(3)
    for truth_of_one in (0, 1):
        truth = rng.integers(0, 2, 4000)
        moved_class = (truth == truth_of_one)[:, None]
        eta = (2 * truth - 1)[:, None] * 1.2 + 2.0 * moved_class * rng.normal(size=(4000, 1))
        votes = (rng.random((4000, 8)) < 1 / (1 + np.exp(-eta - np.zeros(8)))).astype(np.int8)
        fit = factor_class(collapse(votes))
        loadings, contrast = fit.parameters.loadings[:, 0], fit.parameters.contrast[:, 0]
        by_class = np.abs(np.stack([loadings - contrast, loadings + contrast])).mean(axis=1)
        assert fit.converged
        assert by_class[truth_of_one] > 1.5
        assert by_class[1 - truth_of_one] < 0.7


def test_family_factors_discount_copies():
    rng = np.random.default_rng(5)
    good, truth = independent(2000, [0.85, 0.85, 0.85], rng)
    weak = np.where(rng.random(2000) < 0.6, truth, 1 - truth)
    copies = np.where(rng.random((2000, 5)) < 0.05, 1 - weak[:, None], weak[:, None])
    patterns = collapse(np.column_stack([good, copies]))
    fit = factor_family(patterns, ["a", "b", "c", *"ddddd"])
    share_right = accuracy(fit.item_posterior, truth)
    assert share_right > accuracy(majority(patterns).item_posterior, truth) + 0.1


def test_a_trait_has_no_opinion_of_the_truth():
    votes, _ = independent(400, [0.8] * 5, np.random.default_rng(6))
    fit = trait(collapse(votes))
    np.testing.assert_allclose(fit.item_posterior, 0.5)
    assert fit.n_params == 10


def test_classes_beat_a_trait_where_there_are_classes_and_not_where_there_are_none():
    rng = np.random.default_rng(7)
    classes = collapse(independent(3000, [0.85] * 5, rng)[0])
    assert dawid_skene(classes).log_likelihood > trait(classes).log_likelihood + 10
    continuum = collapse(moved(3000, [0.0] * 5, [1.5] * 5, rng)[0])
    assert dawid_skene(continuum).log_likelihood < trait(continuum).log_likelihood - 10


def test_refusals():
    votes, _ = independent(300, [0.8, 0.7, 0.75], np.random.default_rng(8))
    with pytest.raises(NotIdentifiedError, match="needs 4 judges"):
        factor(collapse(votes))
    with pytest.raises(StatisticsError, match="rank must be 1 or 2"):
        factor(collapse(votes), rank=3)
    with pytest.raises(NotIdentifiedError, match="three families"):
        factor_family(collapse(votes), ["a", "a", "b"])
