"""Ising energies of vote vectors with gaps: the missing votes are summed out exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.ising_states import features, pairs
from clash.stats.latent.patterns import MISSING, Codes, spins

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

MOST_COMPLETIONS = 1_000_000
"""Completions (patterns times 2^gaps) beyond which an exact sum is refused."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """The patterns with the same number of missing votes.

    Attributes:
        rows: which patterns, shape (g,).
        judges: which votes they miss, shape (g, q).
    """

    rows: Index
    judges: Index


@dataclass(frozen=True, slots=True)
class Block:
    """Vote vectors of judges that may depend on each other.

    Attributes:
        spins: shape (n, m); +1 and -1, 0 for a tie and for a missing vote.
        gaps: the patterns with missing votes, by how many they miss.
    """

    spins: Floats
    gaps: tuple[Gaps, ...]

    @classmethod
    def of(cls, votes: Codes) -> Block:
        """A block of votes of shape (n, m), coded as in ``Patterns``.

        Raises:
            StatisticsError: too many votes are missing to sum over what they might have been.
        """
        missing = votes == MISSING
        sizes = missing.sum(axis=1)
        if float(np.exp2(sizes[sizes > 0]).sum()) > MOST_COMPLETIONS:
            raise StatisticsError(
                f"too many missing votes to sum out exactly: up to {sizes.max()} of "
                f"{votes.shape[1]} judges; the factor model has no such limit"
            )
        gaps = tuple(_gaps(missing, sizes, int(q)) for q in np.unique(sizes) if q)
        return cls(spins(votes), gaps)


@dataclass(frozen=True, slots=True)
class Summed:
    """Energies of the patterns of a block, with what their gradient needs.

    Attributes:
        energy: log of the sum of exp(energy) over the completions, shape (n,).
        filled: spins with the expected spin in place of each missing one, shape (n, m).
        extra: per group of gaps, expected pair products minus products of expectations.
    """

    energy: Floats
    filled: Floats
    extra: tuple[Floats, ...]


def summed(block: Block, field: Floats, coupling: Floats) -> Summed:
    """Energies under a field of shape (m,) and a symmetric coupling matrix with zero diagonal."""
    local = block.spins @ coupling
    energy = block.spins @ field + 0.5 * np.einsum("nm,nm->n", local, block.spins)
    filled, extra = block.spins, []
    if block.gaps:
        filled = filled.copy()
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
        expected = (weight @ features(q)) / total[:, None]
        energy[gaps.rows] += top + np.log(total)
        mean = expected[:, :q]
        filled[gaps.rows[:, None], gaps.judges] = mean
        extra.append(expected[:, q:] - mean[:, first] * mean[:, second])
    return Summed(energy, filled, tuple(extra))


def second_moments(block: Block, done: Summed, weights: Floats) -> tuple[Floats, Floats]:
    """Weighted sums of expected spins, shape (m,), and pair products, shape (m, m)."""
    weighted = done.filled * weights[:, None]
    products = weighted.T @ done.filled
    for gaps, extra in zip(block.gaps, done.extra, strict=True):
        first, second = pairs(gaps.judges.shape[1])
        spots = (gaps.judges[:, first], gaps.judges[:, second])
        np.add.at(products, spots, weights[gaps.rows, None] * extra)
        np.add.at(products, spots[::-1], weights[gaps.rows, None] * extra)
    return weighted.sum(axis=0), products


def _gaps(missing: np.ndarray, sizes: np.ndarray, q: int) -> Gaps:
    rows = np.flatnonzero(sizes == q)
    return Gaps(rows, np.nonzero(missing[rows])[1].reshape(len(rows), q))
