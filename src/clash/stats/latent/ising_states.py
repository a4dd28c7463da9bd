"""The 2^m vote vectors of m judges: enumeration, energies, moments and information of an Ising law.

All are exact, with and without gaps in the votes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.patterns import MISSING, TIE, spins

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index, VoteCodes


ROWS_AT_ONCE = 1 << 16
"""Vote vectors completed at once where votes are missing."""
DENSE = 7
"""Judges up to which one matrix product is faster than two halves."""


@lru_cache(maxsize=32)
def pairs(m: int) -> tuple[Index, Index]:
    """Rows and columns of the m (m - 1) / 2 pairs j < k, in the order of their couplings."""
    first, second = np.triu_indices(m, 1)
    first.flags.writeable = second.flags.writeable = False
    return first, second


@lru_cache(maxsize=32)
def spin_states(m: int) -> Floats:
    """All vote vectors as spins, shape (2^m, m); bit j of the row number set means -1."""
    bits = (np.arange(2**m)[:, None] >> np.arange(m)) & 1
    states: Floats = np.asarray(1.0 - 2.0 * bits, dtype=np.float64)
    states.flags.writeable = False
    return states


@lru_cache(maxsize=16)
def features(m: int) -> Floats:
    """Spins and their pair products, shape (2^m, m + m (m - 1) / 2)."""
    states = spin_states(m)
    first, second = pairs(m)
    statistics = np.hstack([states, states[:, first] * states[:, second]])
    statistics.flags.writeable = False
    return statistics


@lru_cache(maxsize=32)
def masks(m: int) -> Index:
    """Where field j and coupling (j, k) sit in a Walsh spectrum of length 2^m."""
    bit = np.left_shift(1, np.arange(m))
    first, second = pairs(m)
    spots = np.concatenate([bit, bit[first] | bit[second]]).astype(np.intp)
    spots.flags.writeable = False
    return spots


def walsh(vector: Floats) -> Floats:
    """Walsh-Hadamard transform (unnormalised) of a vector of length 2^m, in m 2^m additions.

    Entry b is the sum over the states of the vector times the product of the spins whose bits are
    set in b: of probabilities, the expectation of that product. A matrix product would cost 4^m.
    """
    out: Floats = np.array(vector, dtype=np.float64)
    half = 1
    while half < len(out):
        blocks = out.reshape(-1, 2, half)
        upper = blocks[:, 0] + blocks[:, 1]
        blocks[:, 1] = blocks[:, 0] - blocks[:, 1]
        blocks[:, 0] = upper
        half *= 2
    return out


def energies(natural: Floats, m: int) -> Floats:
    """Energy of every state under fields and couplings ``natural``; shape (2^m,).

    Half the judges make the rows of a matrix, half its columns: what couples within a half is
    added along it, what couples across is one small product.
    """
    if m <= DENSE:
        return np.asarray(features(m) @ natural)
    low, high, across = halves(m)
    a, b = m // 2, m - m // 2
    cross = spin_states(b) @ natural[across].reshape(a, b).T
    levels = cross @ spin_states(a).T
    levels += features(a) @ natural[low]
    levels += (features(b) @ natural[high])[:, None]
    return np.asarray(levels.ravel())


def moments(weights: Floats, m: int) -> Floats:
    """Weighted sums of spins and pair products over the states, in the order of ``natural``."""
    if m <= DENSE:
        return np.asarray(weights @ features(m))
    low, high, across = halves(m)
    a, b = m // 2, m - m // 2
    table = weights.reshape(2**b, 2**a)
    out = np.empty(m + m * (m - 1) // 2)
    out[low] = table.sum(axis=0) @ features(a)
    out[high] = table.sum(axis=1) @ features(b)
    out[across] = (spin_states(a).T @ (table.T @ spin_states(b))).ravel()
    return out


@lru_cache(maxsize=16)
def halves(m: int) -> tuple[Index, Index, Index]:
    """Where ``natural`` holds what is within the first m // 2 judges, the rest, and across.

    The last is in the order of (first half, second half), row by row.
    """
    a = m // 2
    first, second = pairs(m)
    at = np.zeros((m, m), np.intp)
    at[first, second] = m + np.arange(len(first))
    low = np.concatenate([np.arange(a), at[:a, :a][pairs(a)]])
    high = np.concatenate([np.arange(a, m), at[a:, a:][pairs(m - a)]])
    return low, high, at[:a, a:].ravel()


def log_normaliser(natural: Floats, m: int) -> tuple[float, Floats]:
    """The log partition function and its gradient, the expected spins and pair products."""
    energy = energies(natural, m)
    top = (
        energy.max()
    )  # exp(energy) overflows where couplings are strong; its excess over top cannot
    weight = np.exp(energy - top)
    total = weight.sum()
    return float(top + np.log(total)), moments(weight / total, m)


MOST_COMPLETIONS = 1_000_000
"""Completions (patterns times 2^gaps) beyond which an exact sum is refused."""


@dataclass(frozen=True, slots=True)
class MissingVotes:
    """The patterns with the same number of missing votes.

    Attributes:
        rows: which patterns, shape (g,).
        judges: which votes they miss, shape (g, q).
    """

    rows: Index
    judges: Index


@dataclass(frozen=True, slots=True)
class VoteBlock:
    """Vote vectors of judges that may depend on each other.

    A tie is a spin of 0, which is the mean of its two resolutions as long as energies are linear in
    it. Beside a missing vote they are not: the sum over the gap is a log-sum-exp. Such a pattern is
    therefore held as all resolutions of its ties, each with its share.

    Attributes:
        spins: shape (rows, m); +1 and -1, 0 for a tie and for a missing vote.
        gaps: the rows with missing votes, by how many they miss.
        source: the pattern of each row, shape (rows,); None where every row is a pattern.
        share: of each row in its pattern, shape (rows,).
    """

    spins: Floats
    gaps: tuple[MissingVotes, ...]
    source: Index | None
    share: Floats

    @classmethod
    def of(cls, votes: VoteCodes) -> VoteBlock:
        """A block of votes of shape (n, m), coded as in ``Patterns``.

        Raises:
            StatisticsError: too many votes are missing to sum over what they might have been.
        """
        rows, source, share = _resolve_ties(votes)
        missing = rows == MISSING
        sizes = missing.sum(axis=1)
        if float(np.exp2(sizes[sizes > 0]).sum()) > MOST_COMPLETIONS:
            raise StatisticsError(
                f"too many missing votes to integrate out exactly: up to {sizes.max()} of "
                f"{votes.shape[1]} judges; the factor model has no such limit"
            )
        gaps = tuple(_gaps(missing, sizes, int(q)) for q in np.unique(sizes) if q)
        return cls(spins(rows), gaps, source, share)

    def per_row(self, per_pattern: Floats) -> Floats:
        """Weights of patterns (n,) as weights of rows."""
        return per_pattern if self.source is None else per_pattern[self.source] * self.share

    def per_pattern(self, per_row: Floats) -> Floats:
        """Values of rows, rows first, as means over the resolutions of each pattern."""
        if self.source is None:
            return per_row
        share = self.share.reshape(-1, *[1] * (per_row.ndim - 1))
        starts = np.flatnonzero(np.diff(self.source, prepend=-1))
        return np.asarray(np.add.reduceat(per_row * share, starts, axis=0))


@dataclass(frozen=True, slots=True)
class BlockEnergies:
    """Energies of the patterns of a block, with what their gradient needs.

    Attributes:
        energy: log of the sum of exp(energy) over the completions, of each pattern, shape (n,).
        expected_spins: spins with the expected spin in place of each missing one, shape (rows, m).
        pair_covariances: per group of gaps, expected pair products minus products of expectations.
    """

    energy: Floats
    expected_spins: Floats
    pair_covariances: tuple[Floats, ...]


def block_energies(block: VoteBlock, field: Floats, coupling: Floats) -> BlockEnergies:
    """Energies under a field of shape (m,) and a symmetric coupling matrix with zero diagonal."""
    local = block.spins @ coupling
    energy = block.spins @ field + 0.5 * np.einsum("nm,nm->n", local, block.spins)
    expected_spins, pair_covariances = block.spins, []
    if block.gaps:
        expected_spins = expected_spins.copy()
    for gaps in block.gaps:
        _, q = gaps.judges.shape
        first, second = pairs(q)
        natural = np.hstack(
            [
                field[gaps.judges] + np.take_along_axis(local[gaps.rows], gaps.judges, axis=1),
                coupling[gaps.judges[:, first], gaps.judges[:, second]],
            ]
        )
        levels = natural @ features(q).T
        top = levels.max(axis=1)
        weight = np.exp(levels - top[:, None])
        total = weight.sum(axis=1)
        moments = (weight @ features(q)) / total[:, None]
        energy[gaps.rows] += top + np.log(total)
        mean = moments[:, :q]
        expected_spins[gaps.rows[:, None], gaps.judges] = mean
        pair_covariances.append(moments[:, q:] - mean[:, first] * mean[:, second])
    return BlockEnergies(block.per_pattern(energy), expected_spins, tuple(pair_covariances))


def second_moments(
    block: VoteBlock, energies: BlockEnergies, weights: Floats
) -> tuple[Floats, Floats]:
    """Weighted sums of expected spins, shape (m,), and pair products, shape (m, m)."""
    weights = block.per_row(weights)
    weighted_spins = energies.expected_spins * weights[:, None]
    products = weighted_spins.T @ energies.expected_spins
    for gaps, extra in zip(block.gaps, energies.pair_covariances, strict=True):
        first, second = pairs(gaps.judges.shape[1])
        spots = (gaps.judges[:, first], gaps.judges[:, second])
        np.add.at(products, spots, weights[gaps.rows, None] * extra)
        np.add.at(products, spots[::-1], weights[gaps.rows, None] * extra)
    return weighted_spins.sum(axis=0), products


def _resolve_ties(votes: VoteCodes) -> tuple[VoteCodes, Index | None, Floats]:
    """Rows in which no tie stands beside a gap, the pattern of each, and its share of that."""
    ties = votes == TIE
    has_both = ties.any(axis=1) & (votes == MISSING).any(axis=1)
    if not has_both.any():
        return votes, None, np.ones(len(votes))
    n_ties = np.where(has_both, ties.sum(axis=1), 0)
    if float(np.exp2(n_ties).sum()) > MOST_COMPLETIONS:
        raise StatisticsError("too many ties beside missing votes to sum over; use --ties missing")
    source = np.repeat(np.arange(len(votes)), 2**n_ties)
    resolution = np.arange(len(source)) - np.searchsorted(source, source)
    rows, of_row = votes[source], ties[source] & has_both[source, None]
    position = np.cumsum(of_row, axis=1) - 1
    bit = resolution[:, None] >> np.maximum(position, 0) & 1
    return np.where(of_row, bit, rows).astype(np.int8), source, 0.5 ** n_ties[source]


def _gaps(missing: np.ndarray, sizes: np.ndarray, q: int) -> MissingVotes:
    rows = np.flatnonzero(sizes == q)
    return MissingVotes(rows, np.nonzero(missing[rows])[1].reshape(len(rows), q))


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
    weights = block.per_row(weights)
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
    return block.per_pattern(np.hstack([energies.expected_spins, products]))


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
