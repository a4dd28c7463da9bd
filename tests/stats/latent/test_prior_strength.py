"""The strength of a prior follows the data: hard for independent judges, soft for coupled ones."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.latent.fit import posterior
from clash.stats.latent.ising import IsingLaw, ising_class, ising_shared, whole_prior
from clash.stats.latent.ising_pseudo import STRENGTHS, choose_strength
from clash.stats.latent.patterns import collapse
from stats.latent.simulated import accuracy, coupled, independent


def test_independent_judges_get_the_hardest_ridge():
    rng = np.random.default_rng(0)
    votes, _ = independent(800, [0.85, 0.8, 0.75, 0.8, 0.7], rng)
    strength = choose_strength(ising_shared, collapse(votes), rng=rng, grid=(0.3, 0.003))
    assert strength.priors.coupling == 0.3
    assert strength.grid == (0.3, 0.003)


def test_strongly_coupled_judges_get_a_soft_one():
    rng = np.random.default_rng(1)
    fields = np.array([-1.0, 1.0])[:, None] * np.full(5, 0.4)
    couplings = np.zeros((2, 5, 5))
    couplings[:, 0, 1] = couplings[:, 1, 0] = 1.5
    votes, _ = coupled(2000, fields, couplings, rng)
    strength = choose_strength(ising_shared, collapse(votes), rng=rng, grid=(0.3, 0.003))
    assert strength.priors.coupling == 0.003
    assert strength.held_out[1] > strength.held_out[0]


def test_an_empty_grid_or_a_refused_model_is_an_error():
    rng = np.random.default_rng(2)
    votes, _ = independent(100, [0.8, 0.8, 0.8], rng)
    with pytest.raises(StatisticsError, match="no strength of the prior"):
        choose_strength(ising_shared, collapse(votes), rng=rng, grid=())
    with pytest.raises(StatisticsError, match="needs 4 judges"):
        choose_strength(ising_shared, collapse(votes), rng=rng)


@pytest.mark.parametrize("skills", [[0.42] * 6, [0.3, 0.4, 0.5, 0.35, 0.45, 0.55]])
def test_with_many_items_couplings_by_class_come_to_what_bayes_rule_does(skills):
    """A prior that grows with the items holds the two classes together for ever."""
    fields = np.array([-1.0, 1.0])[:, None] * np.array(skills)
    couplings = np.zeros((2, 6, 6))
    couplings[0, :3, :3], couplings[1, 3:, 3:] = 2.0, 1.8
    couplings[:, range(6), range(6)] = 0
    rng = np.random.default_rng(1)
    votes, truth = coupled(10_000, fields, couplings, rng)
    patterns = collapse(votes)
    law = IsingLaw(0.5, fields, couplings, (tuple(range(6)),), 0)
    best = accuracy(patterns.expand(posterior(law, patterns.votes)), truth)
    strength = choose_strength(ising_class, patterns, rng=rng, prior_of=whole_prior, grid=STRENGTHS)
    assert strength.fit.converged
    assert strength.strength < 1
    assert accuracy(strength.fit.item_posterior, truth) > best - 0.005
    assert accuracy(ising_class(patterns).item_posterior, truth) < best - 0.005
