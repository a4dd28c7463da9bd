"""Kemeny's ranking: the order that goes against the fewest pairwise preferences.

Exact, by dynamic programming over the 2^K sets of candidates that are still to be placed: the best
order of a set is its best leader before the best order of the rest. Several orders may be equally
good, and which of them an algorithm meets first says nothing; so the scores here are over all of
them. Source: Kemeny 1959; Young, Levenglick 1978; Held, Karp 1962 for the recursion.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.voting.condorcet import places

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


MOST_CANDIDATES = 16
_CELLS = 1 << 22
_EVEN = 1e-9


@dataclass(frozen=True, slots=True)
class KemenyResult:
    """The rankings that disagree least with the ballots.

    Attributes:
        order: (K,), candidates from best to worst; the first in index order among the optimal.
        disagreement: weight of the pairwise preferences it goes against.
        unique: whether no other strict order goes against as little.
        winner: the candidate that is first in every optimal order, -1 where they differ.
        scores: (K,), candidates that stand below in every optimal order, half of those that
            stand below in some.
        places: (K,) by these scores, 1 is best, tied candidates share the better place.
    """

    order: Codes
    disagreement: float
    unique: bool
    winner: int
    scores: Floats
    places: Codes


def kemeny(matrix: ArrayLike) -> KemenyResult:
    """The exact Kemeny ranking, O(2^K K).

    Half a millisecond at K = 8, some ten at 14.

    Args:
        matrix: (K, K), weight of those who prefer the row to the column.

    Raises:
        StatisticsError: not K x K weights, or K > 16.
    """
    d = np.array(matrix, dtype=float)
    if d.ndim != 2 or d.shape[0] != d.shape[1] or len(d) < 2 or not np.all(d >= 0):
        raise StatisticsError("expected a K x K table of weights >= 0 with K >= 2")
    if len(d) > MOST_CANDIDATES:
        raise StatisticsError(
            f"Kemeny is exact to {MOST_CANDIDATES} candidates, not {len(d)}; use schulze"
        )
    np.fill_diagonal(d, 0.0)
    tables = _solve(d[None])
    order = _first_order(tables.leaders[0])
    scores = _scores(tables)[0]
    tops = int(tables.leaders[0, -1])
    return KemenyResult(
        order=order,
        disagreement=float(tables.cost[0, -1]),
        # A unique order leaves no pair undecided.
        unique=bool(np.all(scores == np.round(scores)) and len(set(scores.tolist())) == len(d)),
        winner=tops.bit_length() - 1 if tops.bit_count() == 1 else -1,
        scores=scores,
        places=places(scores),
    )


def kemeny_scores(d: Floats) -> Floats:
    """The scores of B tables at once, shape (B, K); ``d`` (B, K, K), K <= 16."""
    k = d.shape[-1]
    step = max(1, _CELLS // (k * 2**k))
    return np.concatenate([_scores(_solve(d[at : at + step])) for at in range(0, len(d), step)])


@dataclass(frozen=True, slots=True)
class _Tables:
    """For each table and set of candidates: the least cost of ordering it, and who may lead it.

    Attributes:
        cost: (B, 2^K).
        leaders: (B, 2^K), sets as bits.
    """

    cost: Floats
    leaders: NDArray[np.int64]

    @property
    def k(self) -> int:
        return int(self.cost.shape[1]).bit_length() - 1


@lru_cache(maxsize=4)
def _levels(k: int) -> tuple[NDArray[np.int64], ...]:
    """The sets of each size, 0 to K."""
    sets = np.arange(2**k)
    size = np.sum(sets[:, None] >> np.arange(k) & 1, axis=1)
    return tuple(np.flatnonzero(size == n) for n in range(k + 1))


def _solve(d: Floats) -> _Tables:
    b, k = d.shape[:2]
    against = _cost_of_leading(d)
    slack = _EVEN * np.maximum(1.0, d.sum(axis=(1, 2)))[:, None]
    cost, leaders = np.zeros((b, 2**k)), np.zeros((b, 2**k), dtype=np.int64)
    for sets in _levels(k)[1:]:
        costs = np.full((k, b, len(sets)), np.inf)
        for i in range(k):
            inside = np.flatnonzero(sets >> i & 1)
            chosen = sets[inside]
            costs[i][:, inside] = against[:, i, chosen] + cost[:, chosen ^ (1 << i)]
        least = costs.min(axis=0)
        cost[:, sets] = least
        leads = costs <= least + slack
        leaders[:, sets] = np.tensordot(1 << np.arange(k), leads, axes=1)
    return _Tables(cost, leaders)


def _cost_of_leading(d: Floats) -> Floats:
    """Weight against putting i before the other members of each set, (B, K, 2^K)."""
    b, k = d.shape[:2]
    cost = np.zeros((b, k, 2**k))
    for bit in range(k):
        # Sets whose highest member is ``bit``: those without it, plus one.
        cost[:, :, 2**bit : 2 ** (bit + 1)] = cost[:, :, : 2**bit] + d[:, bit, :, None]
    return cost


def _first_order(leaders: NDArray[np.int64]) -> Codes:
    left, order = len(leaders) - 1, []
    while left:
        tops = int(leaders[left])
        order.append((tops & -tops).bit_length() - 1)
        left &= ~(1 << order[-1])
    return np.array(order, dtype=np.intp)


def _scores(tables: _Tables) -> Floats:
    """Below in every optimal order counts 1, in some 1/2: by the sets that optimal orders leave."""
    b, k = len(tables.cost), tables.k
    left = np.zeros((b, 2**k), dtype=bool)
    left[:, -1] = True
    for sets in _levels(k)[:0:-1]:
        leads = np.where(left[:, sets], tables.leaders[:, sets], 0)
        for i in range(k):
            reached = (leads >> i & 1).astype(bool)
            inside = np.flatnonzero(sets >> i & 1)
            left[:, sets[inside] ^ (1 << i)] |= reached[:, inside]
    member = (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(np.float32)
    sets_left = left.astype(np.float32)
    # In some optimal order i is placed while j is left: i may stand before j.
    may = np.einsum("bs,si,sj->bij", sets_left, 1 - member, member, optimize=True) > 0
    off = ~np.eye(k, dtype=bool)
    always = may & ~may.swapaxes(1, 2)
    undecided = may & may.swapaxes(1, 2) & off
    scores: Floats = always.sum(axis=2) + undecided.sum(axis=2) / 2
    return scores
