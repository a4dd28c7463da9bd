"""Votes with a known truth, for the tests of this folder."""

import numpy as np


def independent(n, accuracy, rng, prior=0.5):
    truth = (rng.random(n) < prior).astype(int)
    right = rng.random((n, len(accuracy))) < np.asarray(accuracy)
    return np.where(right, truth[:, None], 1 - truth[:, None]).astype(np.int8), truth


def moved(n, skill, loading, rng, prior=0.5):
    """A logistic-normal factor model; ``loading`` is per judge."""
    truth = (rng.random(n) < prior).astype(int)
    z = rng.normal(size=(n, 1))
    eta = (2 * truth - 1)[:, None] * np.asarray(skill) + z * np.asarray(loading)
    return (rng.random(eta.shape) < 1 / (1 + np.exp(-eta))).astype(np.int8), truth


def coupled(n, fields, couplings, rng, prior=0.5):
    """Exact draws from class-conditional Ising laws in spins; fields (2, K), couplings (2, K, K)."""
    k = fields.shape[1]
    states = 1 - 2 * ((np.arange(2**k)[:, None] >> np.arange(k)) & 1)
    truth = (rng.random(n) < prior).astype(int)
    votes = np.empty((n, k), np.int8)
    for y in (0, 1):
        energy = states @ fields[y] + 0.5 * np.einsum("sj,jk,sk->s", states, couplings[y], states)
        weight = np.exp(energy - energy.max())
        drawn_rows = rng.choice(2**k, size=int((truth == y).sum()), p=weight / weight.sum())
        votes[truth == y] = states[drawn_rows] > 0
    return votes, truth


def accuracy(p, truth):
    """Share of items on the right side; an item at 1/2 counts half."""
    return np.where(np.abs(p - 0.5) < 1e-9, 0.5, (p > 0.5) == truth).mean()
