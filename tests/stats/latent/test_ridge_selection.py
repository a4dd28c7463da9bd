"""The ridge follows the data: hard where judges are independent, soft where they are coupled."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.latent.ising import ising_shared
from clash.stats.latent.ising_pseudo import choose_ridge
from clash.stats.latent.patterns import collapse
from stats.latent.simulated import coupled, independent


def test_independent_judges_get_the_hardest_ridge():
    rng = np.random.default_rng(0)
    votes, _ = independent(800, [0.85, 0.8, 0.75, 0.8, 0.7], rng)
    chosen = choose_ridge(ising_shared, collapse(votes), rng=rng, grid=(0.3, 0.003))
    assert chosen.priors.coupling == 0.3
    assert chosen.grid == (0.3, 0.003)


def test_strongly_coupled_judges_get_a_soft_one():
    rng = np.random.default_rng(1)
    fields = np.array([-1.0, 1.0])[:, None] * np.full(5, 0.4)
    couplings = np.zeros((2, 5, 5))
    couplings[:, 0, 1] = couplings[:, 1, 0] = 1.5
    votes, _ = coupled(2000, fields, couplings, rng)
    chosen = choose_ridge(ising_shared, collapse(votes), rng=rng, grid=(0.3, 0.003))
    assert chosen.priors.coupling == 0.003
    assert chosen.held_out[1] > chosen.held_out[0]


def test_an_empty_grid_or_a_refused_model_is_an_error():
    rng = np.random.default_rng(2)
    votes, _ = independent(100, [0.8, 0.8, 0.8], rng)
    with pytest.raises(StatisticsError, match="no value of the ridge penalty"):
        choose_ridge(ising_shared, collapse(votes), rng=rng, grid=())
    with pytest.raises(StatisticsError, match="needs 4 judges"):
        choose_ridge(ising_shared, collapse(votes), rng=rng)
