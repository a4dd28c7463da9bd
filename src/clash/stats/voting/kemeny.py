"""Kemeny's ranking: the order that contradicts the least weight of pairwise preferences.

With d[a, b] the weight of the rankings that put a before b, an order costs the sum of d[b, a] over
all pairs that it puts a before b (Kemeny 1959; Young, Levenglick 1978). The search is exact, by
dynamic programming over the 2^K sets S of candidates that are still to be placed (Held, Karp 1962):
whoever leads S, the cost of the rest does not depend on the order before it, so

    cost(S) = min over i in S of  sum over j in S of d[j, i]  +  cost(S without i),   cost({}) = 0

Several orders may be optimal, and which of them a search meets first is arbitrary, so the scores are
over all of them. A set is encoded as a whole number whose bit i says whether i is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clash.stats.typing import Floats


MOST_CANDIDATES = 16
_CELLS = 1 << 22
_EVEN = 1e-9


def kemeny_scores(d: Floats) -> Floats:
    """How many candidates stand below each, over all optimal orders, shape (B, K).

    A candidate that stands below in every optimal order counts 1, one that does in some counts 1/2.
    Takes O(2^K K) time and memory for each table: half a millisecond at K = 8, some ten at 14.

    Args:
        d: (B, K, K), weight of those who prefer the row to the column, with a diagonal of 0 and
            K <= ``MOST_CANDIDATES``.
    """
    k = d.shape[-1]
    step = max(1, _CELLS // (k * 2**k))
    return np.concatenate([_scores(_solve(d[at : at + step])) for at in range(0, len(d), step)])


@dataclass(frozen=True, slots=True)
class _Tables:
    """For each table and set of candidates: the least cost of ordering it, and who may lead it.

    Attributes:
        cost: (B, 2^K), cost(S) of the module's recursion.
        leaders: (B, 2^K), the candidates that attain the minimum, as bits.
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
            subsets = sets[inside]
            costs[i][:, inside] = against[:, i, subsets] + cost[:, subsets ^ (1 << i)]
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


def _scores(tables: _Tables) -> Floats:
    """Below in every optimal order counts 1, in some 1/2: by the sets that optimal orders leave."""
    b, k = len(tables.cost), tables.k
    left = np.zeros((b, 2**k), dtype=bool)
    left[:, -1] = True
    for sets in _levels(k)[:0:-1]:
        leads = np.where(left[:, sets], tables.leaders[:, sets], 0)
        for i in range(k):
            is_leader = (leads >> i & 1).astype(bool)
            inside = np.flatnonzero(sets >> i & 1)
            left[:, sets[inside] ^ (1 << i)] |= is_leader[:, inside]
    member = (np.arange(2**k)[:, None] >> np.arange(k) & 1).astype(np.float32)
    sets_left = left.astype(np.float32)
    # In some optimal order i is placed while j is left: i may stand before j.
    may = np.einsum("bs,si,sj->bij", sets_left, 1 - member, member, optimize=True) > 0
    off = ~np.eye(k, dtype=bool)
    always = may & ~may.swapaxes(1, 2)
    either = may & may.swapaxes(1, 2) & off
    scores: Floats = always.sum(axis=2) + either.sum(axis=2) / 2
    return scores
