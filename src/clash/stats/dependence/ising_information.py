"""Second moments of Ising laws, exactly, with and without gaps in the votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.ising_states import energies, masks, pairs, spin_states, walsh

if TYPE_CHECKING:
    from clash.stats.latent.ising_states import BlockEnergies, MissingVotes, VoteBlock
    from clash.stats.typing import Floats

ROWS_AT_ONCE = 1 << 16


def class_information(
    block: VoteBlock, field: Floats, coupling: Floats, weights: Floats, *, complete: bool = False
) -> Floats:
    """Information on fields and couplings in votes of known class, shape (K + m, K + m).

    The covariance of spins and pair products under the law, times the weight, less their
    covariance given what was observed where votes are missing.

    Args:
        block: the votes.
        field: shape (K,).
        coupling: shape (K, K).
        weights: of the patterns in this class, shape (n_patterns,).
        complete: as if missing votes had been seen.
    """
    first, second = pairs(len(field))
    total = weights.sum() * law_covariance(np.concatenate([field, coupling[first, second]]))
    for gaps in () if complete else block.gaps:
        total -= _hidden_covariance(block, gaps, field, coupling, weights)
    return np.asarray(total)


def law_covariance(natural: Floats) -> Floats:
    """Covariance of spins and pair products under fields and couplings ``natural``.

    The product of two parities is a parity, so every second moment is an entry of the Walsh
    spectrum of the probabilities.
    """
    K = int((np.sqrt(8 * len(natural) + 1) - 1) / 2)
    energy = energies(natural, K)
    weight = np.exp(energy - energy.max())
    spectrum = walsh(weight / weight.sum())
    spot = masks(K)
    mean = spectrum[spot]
    return np.asarray(spectrum[spot[:, None] ^ spot] - np.outer(mean, mean))


def pattern_statistics(block: VoteBlock, energies: BlockEnergies) -> Floats:
    """Expected spins and pair products of each pattern, shape (n_patterns, K + m)."""
    first, second = pairs(energies.expected_spins.shape[1])
    products = energies.expected_spins[:, first] * energies.expected_spins[:, second]
    spot = np.zeros((energies.expected_spins.shape[1],) * 2, np.intp)
    spot[first, second] = np.arange(len(first))
    for gaps, extra in zip(block.gaps, energies.pair_covariances, strict=True):
        first_gap, second_gap = pairs(gaps.judges.shape[1])
        products[
            gaps.rows[:, None], spot[gaps.judges[:, first_gap], gaps.judges[:, second_gap]]
        ] += extra
    return np.hstack([energies.expected_spins, products])


def _hidden_covariance(
    block: VoteBlock, gaps: MissingVotes, field: Floats, coupling: Floats, weights: Floats
) -> Floats:
    """Sum of the weighted covariances of the statistics over the completions of each pattern."""
    size = len(field) + len(pairs(len(field))[0])
    total = np.zeros((size, size))
    step = max(1, ROWS_AT_ONCE >> gaps.judges.shape[1])
    for start in range(0, len(gaps.rows), step):
        part = slice(start, start + step)
        total += _covariance_of(
            block.spins[gaps.rows[part]],
            gaps.judges[part],
            field,
            coupling,
            weights[gaps.rows[part]],
        )
    return total


def _covariance_of(
    spins: Floats, missing: np.ndarray, field: Floats, coupling: Floats, weights: Floats
) -> Floats:
    g, q = missing.shape
    completions = np.repeat(spins[:, None, :], 2**q, axis=1)
    completions[np.arange(g)[:, None, None], np.arange(2**q)[:, None], missing[:, None, :]] = (
        spin_states(q)
    )
    first, second = pairs(spins.shape[1])
    statistics = np.concatenate(
        [completions, completions[:, :, first] * completions[:, :, second]], axis=2
    )
    energy = statistics @ np.concatenate([field, coupling[first, second]])
    chance = np.exp(energy - energy.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    mean = np.einsum("gs,gsp->gp", chance, statistics)
    flat = statistics.reshape(-1, statistics.shape[2])
    share = (chance * weights[:, None]).reshape(-1, 1)
    return np.asarray((flat * share).T @ flat - (mean * weights[:, None]).T @ mean)
