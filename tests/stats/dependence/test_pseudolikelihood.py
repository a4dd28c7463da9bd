"""Couplings by pseudo-likelihood: against the exact fit, finite differences and known truth."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.dependence.couplings import couplings, pseudo_couplings
from clash.stats.dependence.hypotheses import classes_alike, exchangeable, families_independent
from clash.stats.dependence.pseudolikelihood import (
    PseudoLikelihood,
    fit_pseudo,
    pseudo_score_test,
)
from clash.stats.dependence.restricted_ising import Restriction
from clash.stats.latent.patterns import collapse
from stats.dependence import panels


def off(matrix):
    return matrix[np.triu_indices(len(matrix), 1)]


def test_gradient_and_hessian_against_finite_differences():
    """With gaps, labels uncertain, and couplings that differ by class."""
    rng = np.random.default_rng(0)
    patterns = collapse(np.where(rng.random((80, 4)) < 0.1, -1, rng.integers(0, 2, (80, 4))))
    every = np.eye(6)
    likelihood = PseudoLikelihood.of(
        patterns, rng.random(len(patterns.counts)), Restriction.of(4, every, every)
    )
    theta = 0.4 * rng.normal(size=likelihood.free.shape[1])
    steps = 1e-5 * np.eye(len(theta))
    slope = [(likelihood.value(theta + e) - likelihood.value(theta - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(likelihood.derivatives(theta)[0], slope, atol=1e-6)
    bend = [
        (likelihood.derivatives(theta + e)[0] - likelihood.derivatives(theta - e)[0]) / 2e-5
        for e in steps
    ]
    exact = likelihood.hessian(theta) + np.diag(likelihood.precision)
    np.testing.assert_allclose(exact, bend, atol=1e-5)


def test_agrees_with_the_exact_fit_in_estimates_and_errors():
    sample = panels.families().sample(3000, np.random.default_rng(1))
    patterns = panels.patterns(sample, with_labels=True)
    p = patterns.labels.astype(float)
    exact = couplings(patterns, p, np.random.default_rng(2), replicates=300)
    near = pseudo_couplings(patterns, p, np.random.default_rng(2), replicates=300)
    assert near.converged
    assert near.log_likelihood is None
    np.testing.assert_allclose(off(near.matrix), off(exact.matrix), atol=0.1)
    np.testing.assert_allclose(off(near.error), off(exact.error), rtol=0.12)
    np.testing.assert_allclose(off(near.bootstrap_error), off(near.error), rtol=0.15)
    for actual, right in zip(near.by_class, exact.by_class, strict=True):
        np.testing.assert_allclose(off(actual), off(right), atol=0.2)


def test_recovers_couplings_of_twenty_judges_with_intervals_that_cover():
    """Two copies in twenty: their coupling is found, the others' intervals hold 0."""
    rng = np.random.default_rng(3)
    sample = panels.with_copies(2, 18, 2000, rng)
    coupling_fit = pseudo_couplings(
        panels.patterns(sample, with_labels=True),
        collapse(sample.votes, labels=sample.labels).labels.astype(float),
        rng,
    )
    values, errors = off(coupling_fit.matrix), off(coupling_fit.error)
    assert values.argmax() == 0
    assert values[0] / errors[0] > 10
    assert np.mean(np.abs(values[1:] / errors[1:]) < 1.96) > 0.9


def test_the_scores_of_an_item_add_up_to_the_gradient():
    sample = panels.families().sample(400, np.random.default_rng(4))
    patterns = panels.patterns(sample, with_labels=True)
    fit = fit_pseudo(patterns, patterns.labels.astype(float), Restriction.of(5, np.eye(10)))
    penalty = fit.likelihood.precision * fit.theta
    np.testing.assert_allclose(patterns.counts @ fit.scores(), penalty, atol=1e-3)
    assert fit.converged


@pytest.mark.parametrize(
    "make",
    [
        lambda: families_independent(panels.FAMILIES),
        lambda: exchangeable(panels.FAMILIES),
        lambda: classes_alike(5),
    ],
    ids=["families independent", "exchangeable", "classes alike"],
)
@pytest.mark.slow
def test_a_true_hypothesis_is_rejected_one_time_in_twenty(make):
    p = []
    for seed in range(150):
        sample = panels.families().sample(600, np.random.default_rng(seed))
        patterns = panels.patterns(sample, with_labels=True)
        p.append(pseudo_score_test(make(), patterns, patterns.labels.astype(float)).p)
    assert 0.0 < np.mean(np.array(p) < 0.05) <= 0.11


@pytest.mark.parametrize(
    ("make", "panel"),
    [
        (lambda: families_independent(panels.FAMILIES), panels.families(cross=0.8)),
        (lambda: exchangeable(panels.FAMILIES), panels.families(uneven=1.5)),
        (lambda: classes_alike(5), panels.families(by_class=1.5)),
    ],
    ids=["families independent", "exchangeable", "classes alike"],
)
def test_a_false_hypothesis_is_rejected(make, panel):
    patterns = panels.patterns(panel.sample(3000, np.random.default_rng(5)), with_labels=True)
    assert pseudo_score_test(make(), patterns, patterns.labels.astype(float)).p < 0.001


def test_crowds_and_sparse_votes_are_refused():
    rng = np.random.default_rng(6)
    crowd = collapse(rng.integers(0, 2, (100, 49)))
    sparse = collapse(np.where(rng.random((100, 5)) < 0.5, -1, rng.integers(0, 2, (100, 5))))
    for patterns, reason in ((crowd, "up to 48"), (sparse, "votes are missing")):
        k = patterns.n_judges
        with pytest.raises(StatisticsError, match=reason):
            fit_pseudo(
                patterns,
                np.full(len(patterns.counts), 0.5),
                Restriction.of(k, np.eye(k * (k - 1) // 2)),
            )
