"""Ising laws: exact sums against brute force, gradients, the paper's counterexamples, recovery."""

from itertools import product

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.fit import posterior
from clash.stats.latent.ising import (
    IsingLaw,
    IsingModel,
    IsingPriors,
    ising_alone,
    ising_class,
    ising_family,
    ising_shared,
)
from clash.stats.latent.ising_states import VoteBlock, energies, features, log_normaliser, moments
from clash.stats.latent.marginal_likelihood import objective
from clash.stats.latent.patterns import collapse
from clash.stats.latent.vote_counting import majority
from stats.latent.simulated import accuracy, coupled, independent

COUNTEREXAMPLES = [
    (
        [[-1.7447, 2.2991, 3.5085], [-2.0094, 0.1721, -2.7597]],
        [[-2.7496, 4.4583, -4.8249]] * 2,
        (0, 1, 1),
        0.0384,
        0.9682,
    ),
    (
        [[2.7369, 1.3602, 1.9559], [-2.5484, -2.2580, -0.9266]],
        [[-2.4445, 2.4553, -2.9206], [-3.3637, 3.0718, -0.0677]],
        (1, 1, 0),
        0.0305,
        0.9571,
    ),
]


def symmetric(upper):
    matrix = np.zeros((3, 3))
    matrix[np.triu_indices(3, 1)] = upper
    return matrix + matrix.T


def in_spins(h, upper):
    """Fields and couplings of equation (1) as those of spins."""
    w = np.array([symmetric(u) for u in upper])
    return np.array(h) / 2 + w.sum(axis=2) / 4, w / 4


@pytest.mark.parametrize(("h", "upper", "votes", "bayes", "naive"), COUNTEREXAMPLES)
def test_the_counterexamples_of_appendix_c(h, upper, votes, bayes, naive):
    fields, couplings = in_spins(h, upper)
    law = IsingLaw(0.5, fields, couplings, ((0, 1, 2),), 0)
    paper_fields = 2 * law.fields - 2 * law.couplings.sum(axis=2)
    np.testing.assert_allclose(paper_fields, h, atol=1e-12)
    rows = np.array(list(product((0, 1), repeat=3)), np.int8)
    chance = np.exp(law.log_likelihoods(rows))
    np.testing.assert_allclose(chance.sum(axis=0), 1, atol=1e-12)
    assert posterior(law, np.array([votes], np.int8))[0] == pytest.approx(bayes, abs=5e-5)
    rates = chance.T @ rows
    likelihoods = np.where(np.array(votes) == 1, rates, 1 - rates).prod(axis=1)
    assert likelihoods[1] / likelihoods.sum() == pytest.approx(naive, abs=5e-5)


@pytest.mark.parametrize("m", [1, 3, 8, 9])
def test_the_fast_transform_equals_enumeration(m):
    rng = np.random.default_rng(m)
    natural = rng.normal(size=features(m).shape[1])
    np.testing.assert_allclose(energies(natural, m), features(m) @ natural, atol=1e-10)
    weights = rng.random(2**m)
    np.testing.assert_allclose(moments(weights, m), weights @ features(m), atol=1e-10)


def test_the_gradient_of_the_normaliser_is_the_expected_votes():
    natural = np.random.default_rng(0).normal(size=10)
    step = 1e-6 * np.eye(10)
    numeric = [
        (log_normaliser(natural + e, 4)[0] - log_normaliser(natural - e, 4)[0]) / 2e-6 for e in step
    ]
    np.testing.assert_allclose(log_normaliser(natural, 4)[1], numeric, atol=1e-8)


@pytest.mark.parametrize("class_dependent", [False, True])
@pytest.mark.parametrize("groups", [[0] * 5, [0, 1, 0, 1, 0]], ids=["all", "families"])
def test_gradient_against_finite_differences(groups, class_dependent):
    """With missing votes, ties, labels and the prior all in play."""
    rng = np.random.default_rng(1)
    votes = rng.integers(-1, 3, (150, 5)).astype(np.int8)
    patterns = collapse(votes, labels=rng.integers(-1, 2, 150))
    model = IsingModel.of(patterns, groups, class_dependent, IsingPriors())
    theta = 0.4 * rng.normal(size=len(model.penalty.centre))
    numeric = [
        (objective(theta + e, model, patterns)[0] - objective(theta - e, model, patterns)[0]) / 2e-6
        for e in 1e-6 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(objective(theta, model, patterns)[1], numeric, atol=1e-8)


def a_law(k, rng, blocks=None):
    couplings = np.triu(0.4 * rng.normal(size=(2, k, k)), 1)
    couplings = couplings + couplings.transpose(0, 2, 1)
    return IsingLaw(0.5, rng.normal(size=(2, k)), couplings, blocks or (tuple(range(k)),), 0)


def test_missing_votes_and_ties_are_summed_out_as_by_brute_force():
    rng = np.random.default_rng(2)
    law = a_law(5, rng)
    votes = rng.integers(-1, 3, (80, 5)).astype(np.int8)
    log_sums = law.log_likelihoods(votes)
    for row, level in zip(votes, log_sums, strict=True):
        resolutions = [
            np.logaddexp.reduce(law.log_likelihoods(_rows(resolved, -1)), axis=0)
            for resolved in _rows(row, 2)
        ]
        np.testing.assert_allclose(level, np.mean(resolutions, axis=0), atol=1e-10)


def _rows(row, code):
    """Every row in which votes of that code are 0 or 1."""
    return np.array(list(product(*[(0, 1) if v == code else (v,) for v in row])), np.int8)


def test_a_tie_is_the_mean_of_its_resolutions():
    law = a_law(4, np.random.default_rng(3))
    tie, votes_of_one, zero = (np.array([[v, 1, 0, 1]], np.int8) for v in (2, 1, 0))
    mean = (law.log_likelihoods(votes_of_one) + law.log_likelihoods(zero)) / 2
    # a coupling of the tied judge averages out, the field as well
    np.testing.assert_allclose(law.log_likelihoods(tie), mean, atol=1e-12)


def test_families_that_do_not_couple_multiply():
    rng = np.random.default_rng(4)
    law = a_law(4, rng, ((0, 2), (1, 3)))
    votes = np.array(list(product((0, 1), repeat=4)), np.int8)
    np.testing.assert_allclose(np.exp(law.log_likelihoods(votes)).sum(axis=0), 1, atol=1e-12)
    for judges, alternative in (((0, 2), (1, 3)), ((1, 3), (0, 2))):
        alone = votes.copy()
        alone[:, list(alternative)] = -1
        remaining_votes = votes.copy()
        remaining_votes[:, list(judges)] = -1
        np.testing.assert_allclose(
            law.log_likelihoods(alone) + law.log_likelihoods(remaining_votes),
            law.log_likelihoods(votes),
            atol=1e-12,
        )


def test_recovers_the_law_it_was_drawn_from():
    rng = np.random.default_rng(5)
    fields = np.array([-1.0, 1.0])[:, None] * np.array([0.9, 0.7, 0.6, 0.8, 0.7, 0.5])
    coupling = np.zeros((6, 6))
    coupling[3, 4] = coupling[4, 3] = 0.8
    votes, truth = coupled(60_000, fields, np.array([coupling, coupling]), rng)
    loose = IsingPriors(skill=0, chance=0, coupling=0, contrast=0)
    fit = ising_shared(collapse(votes), priors=loose, tol=1e-7)
    assert fit.converged
    np.testing.assert_allclose(fit.parameters.fields, fields, atol=0.12)
    np.testing.assert_allclose(fit.parameters.couplings[0], coupling, atol=0.08)
    assert accuracy(fit.item_posterior, truth) > accuracy(
        majority(fit.patterns).item_posterior, truth
    )


def test_class_dependent_couplings_are_told_apart_with_labels():
    rng = np.random.default_rng(6)
    fields = np.array([-1.0, 1.0])[:, None] * np.full(5, 0.2)
    couplings = np.stack([np.zeros((5, 5)), 0.5 * (1 - np.eye(5))])
    votes, truth = coupled(6000, fields, couplings, rng)
    labels = np.where(np.arange(6000) < 3000, truth, -1)
    loose = IsingPriors(skill=0, chance=0, coupling=0, contrast=0)
    fit = ising_class(collapse(votes, labels=labels), priors=loose)
    upper = np.triu_indices(5, 1)
    assert fit.parameters.couplings[0][upper].mean() == pytest.approx(0, abs=0.05)
    assert fit.parameters.couplings[1][upper].mean() == pytest.approx(0.5, abs=0.06)
    held_out_posterior = fit.posterior(votes[3000:])
    shared_posterior = ising_shared(collapse(votes, labels=labels), priors=loose).posterior(
        votes[3000:]
    )
    assert accuracy(held_out_posterior, truth[3000:]) > accuracy(shared_posterior, truth[3000:])


def test_at_the_optimum_observed_votes_equal_expected_votes():
    """The equation the fit solves, the prior aside."""
    votes, _ = independent(5000, [0.8, 0.75, 0.7, 0.85], np.random.default_rng(7))
    loose = IsingPriors(skill=0, chance=0, coupling=0)
    fit = ising_shared(collapse(votes), priors=loose, tol=1e-9)
    law, rows = fit.parameters, np.array(list(product((0, 1), repeat=4)), np.int8)
    mixture = np.exp(law.log_likelihoods(rows)) @ [1 - law.prior, law.prior]
    expected_product = np.einsum("s,sj,sk->jk", mixture, rows, rows)
    np.testing.assert_allclose(expected_product, votes.T.astype(float) @ votes / 5000, atol=2e-3)


def test_relabelling_flipping_and_permuting_change_nothing():
    rng = np.random.default_rng(8)
    votes, _ = independent(600, [0.9, 0.8, 0.7, 0.75, 0.8], rng)
    fit = ising_shared(collapse(votes), tol=1e-8)
    judges, items = rng.permutation(5), rng.permutation(600)
    again = ising_shared(collapse(votes[items][:, judges]), tol=1e-8)
    np.testing.assert_allclose(again.item_posterior, fit.item_posterior[items], atol=1e-3)
    flipped_fit = ising_shared(collapse(1 - votes), tol=1e-8)
    np.testing.assert_allclose(flipped_fit.item_posterior, 1 - fit.item_posterior, atol=1e-3)


def test_a_bloc_of_copies_is_outvoted_where_families_are_known():
    """Five copies of a weak judge against three good ones: majority follows the copies."""
    rng = np.random.default_rng(9)
    good, truth = independent(3000, [0.85, 0.85, 0.85], rng)
    weak = np.where(rng.random(3000) < 0.6, truth, 1 - truth)
    noise = rng.random((3000, 5)) < 0.05
    votes = np.column_stack([good, np.where(noise, 1 - weak[:, None], weak[:, None])])
    patterns = collapse(votes)
    fit = ising_family(patterns, ["a", "b", "c", "d", "d", "d", "d", "d"])
    share_right = accuracy(fit.item_posterior, truth)
    assert share_right > accuracy(majority(patterns).item_posterior, truth) + 0.1


def test_without_classes_the_posterior_says_nothing():
    votes, _ = independent(500, [0.8] * 4, np.random.default_rng(10))
    np.testing.assert_allclose(ising_alone(collapse(votes)).item_posterior, 0.5, atol=1e-6)


def test_what_is_not_identified_is_refused():
    votes, _ = independent(300, [0.8, 0.7, 0.75], np.random.default_rng(11))
    with pytest.raises(NotIdentifiedError, match="needs 4 judges"):
        ising_shared(collapse(votes))
    with pytest.raises(NotIdentifiedError, match="needs 5 judges"):
        ising_class(collapse(np.column_stack([votes, 1 - votes[:, :1]])))
    with pytest.raises(NotIdentifiedError, match="no family has two judges"):
        ising_family(collapse(votes), ["a", "b", "c"])
    with pytest.raises(NotIdentifiedError, match="needs three families"):
        ising_family(collapse(votes), ["a", "a", "b"])
    with pytest.raises(StatisticsError, match="2 families for 3 judges"):
        ising_family(collapse(votes), ["a", "a"])


def test_too_many_judges_or_gaps_are_refused_with_the_way_out():
    rng = np.random.default_rng(12)
    with pytest.raises(StatisticsError, match="factor model"):
        ising_shared(collapse(rng.integers(0, 2, (50, 16))))
    votes = rng.integers(0, 2, (200, 15)).astype(np.int8)
    votes[:, 2:] = -1
    with pytest.raises(StatisticsError, match="too many missing votes"):
        VoteBlock.of(votes)
