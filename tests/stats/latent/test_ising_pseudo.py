"""Pseudo-likelihood against the exact fit, where both can be had."""

import numpy as np
import pytest

from clash.errors import NotIdentifiedError
from clash.stats.latent.ising import IsingPriors, ising_shared, log_partition
from clash.stats.latent.ising_pseudo import (
    UnnormalisedIsing,
    _NodeRegressions,
    ising_pseudo,
    log_normaliser_ratio,
)
from clash.stats.latent.patterns import collapse
from stats.latent.simulated import accuracy, moved


@pytest.mark.parametrize("class_dependent", [False, True])
def test_gradient_against_finite_differences(class_dependent):
    rng = np.random.default_rng(0)
    patterns = collapse(rng.integers(-1, 3, (100, 5)))
    regression = _NodeRegressions.of(patterns, class_dependent, IsingPriors())
    theta = 0.3 * rng.normal(size=len(regression.start(patterns)))
    weights = rng.random((len(patterns.counts), 2))
    numeric = [
        (regression.loss(theta + e, weights)[0] - regression.loss(theta - e, weights)[0]) / 2e-6
        for e in 1e-6 * np.eye(len(theta))
    ]
    np.testing.assert_allclose(regression.loss(theta, weights)[1], numeric, atol=1e-8)


def test_the_normalisers_differ_by_what_enumeration_says():
    rng = np.random.default_rng(1)
    couplings = np.triu(0.3 * rng.normal(size=(2, 8, 8)), 1)
    couplings = couplings + couplings.transpose(0, 2, 1)
    law = UnnormalisedIsing(0.5, rng.normal(size=(2, 8)), couplings, 0.0, 0)
    exact = log_partition(law.fields[1], couplings[1]) - log_partition(law.fields[0], couplings[0])
    assert log_normaliser_ratio(law, rng) == pytest.approx(exact, abs=0.15)


def test_agrees_with_the_exact_fit():
    votes, truth = moved(8000, [1.2] * 10, [1.0] * 5 + [0.0] * 5, np.random.default_rng(2))
    patterns = collapse(votes)
    approximate = ising_pseudo(patterns, rng=np.random.default_rng(3))
    exact = ising_shared(patterns)
    gap = np.abs(approximate.item_posterior - exact.item_posterior)
    assert gap.mean() < 0.02
    assert accuracy(approximate.item_posterior, truth) == pytest.approx(
        accuracy(exact.item_posterior, truth), abs=0.005
    )


def test_the_same_seed_gives_the_same_fit():
    patterns = collapse(moved(300, [1.5] * 6, [0.5] * 6, np.random.default_rng(4))[0])
    first_fit, two = (ising_pseudo(patterns, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first_fit.item_posterior, two.item_posterior)


def test_too_few_judges_are_refused():
    with pytest.raises(NotIdentifiedError):
        ising_pseudo(collapse([[0, 1, 1], [1, 0, 1]]), rng=np.random.default_rng(0))
