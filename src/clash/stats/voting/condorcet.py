"""Rankings from pairwise majorities: Copeland, Schulze and Kemeny; who beats whom, and cycles.

A table of preferences ``d`` holds in ``d[a, b]`` the weight of the rankings that put a before b, a
tie being half a preference either way. Every function here is of such tables alone.

Kemeny's ranking is the order that contradicts the least weight of preferences: it costs the sum of
d[b, a] over all pairs that it puts a before b (Kemeny 1959; Young, Levenglick 1978). The search is
exact, by dynamic programming over the 2^K sets S of candidates that are still to be placed (Held, Karp
1962): whoever leads S, the cost of the rest does not depend on the order before it, so

    cost(S) = min over i in S of  sum over j in S of d[j, i]  +  cost(S without i),   cost({}) = 0

Several orders may be optimal, and which of them a search meets first is arbitrary, so the scores are
over all of them. A set is encoded as a whole number whose bit i says whether i is in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


MOST_CANDIDATES = 16
_CELLS = 1 << 22
_EVEN = 1e-9
"""Sums of weights that differ by less, relative to the larger, are equal."""


def _square(matrix: ArrayLike) -> Floats:
    d = np.array(matrix, dtype=float)
    if d.ndim != 2 or d.shape[0] != d.shape[1] or len(d) < 2 or not np.all(d >= 0):
        raise StatisticsError("expected a K x K table of weights >= 0 with K >= 2")
    np.fill_diagonal(d, 0.0)
    return d


def margins(d: Floats) -> Floats:
    """+1 where the row beats the column, -1 where it loses, 0 where level; (..., K, K)."""
    gap = d - d.swapaxes(-1, -2)
    level = np.abs(gap) <= _EVEN * np.maximum(d, d.swapaxes(-1, -2))
    return np.where(level, 0.0, np.sign(gap))


def places(scores: Floats, slack: float | Floats = 1e-9) -> Codes:
    """Places by score, (..., K): 1 is best, tied candidates share the better place.

    Args:
        scores: (..., K), larger is better; NaN takes no place, 0.
        slack: scores that differ by less are equal; broadcast against (..., K, K).
    """
    better = scores[..., None, :] > scores[..., :, None] + slack
    return np.where(np.isnan(scores), 0, 1 + np.sum(better, axis=-1)).astype(np.intp)


def condorcet_winner(matrix: ArrayLike) -> int:
    """The candidate that beats every other by majority, -1 where there is none.

    Args:
        matrix: (K, K), weight of the rankings that put the row before the column.

    Raises:
        StatisticsError: not K x K weights.
    """
    d = _square(matrix)
    beats = np.sum(margins(d) > 0, axis=1) == len(d) - 1
    return int(np.flatnonzero(beats)[0]) if beats.any() else -1


def smith_set(matrix: ArrayLike) -> Codes:
    """The smallest set whose members all beat everyone outside it by majority, best placed first.

    One candidate is the Condorcet winner; more are in a cycle, or level. Where every pair is
    level it is everyone.

    Args:
        matrix: (K, K), weight of the rankings that put the row before the column.

    Raises:
        StatisticsError: not K x K weights.
    """
    d = _square(matrix)
    lead = margins(d)
    # A member of the set beats everyone outside it, so it has more victories than any of them: the
    # set is a head of the order by Copeland's score, and the shortest head that beats the rest is it.
    order = np.argsort(-copeland_scores(d), kind="stable")
    for size in range(1, len(order)):
        if np.all(lead[np.ix_(order[:size], order[size:])] > 0):
            return order[:size].astype(np.intp)
    return order.astype(np.intp)


def majority_cycle(matrix: ArrayLike) -> Codes:
    """A shortest cycle of majorities, each beating the next and the last the first; empty if none.

    Args:
        matrix: (K, K), weight of the rankings that put the row before the column.

    Raises:
        StatisticsError: not K x K weights.
    """
    beats = margins(_square(matrix)) > 0
    cycles = [path for start in range(len(beats)) if (path := _round_trip(beats, start))]
    return np.array(min(cycles, key=len, default=[]), dtype=np.intp)


def _round_trip(beats: NDArray[np.bool_], start: int) -> list[int]:
    """The shortest way from a candidate back to it; empty where there is none."""
    paths = [[start]]
    on_paths = {start}
    while paths:
        longer = []
        for path in paths:
            for step in np.flatnonzero(beats[path[-1]]).tolist():
                if step == start:
                    return path
                if step not in on_paths:
                    on_paths.add(step)
                    longer.append([*path, step])
        paths = longer
    return []


def copeland_scores(d: Floats) -> Floats:
    """Pairwise victories plus half of the level pairs, (..., K); ``d`` (..., K, K).

    The diagonal of the margins is level with itself, and is taken off the count of level pairs.
    Source: Copeland 1951.
    """
    lead = margins(d)
    scores: Floats = np.sum(lead > 0, axis=-1) + (np.sum(lead == 0, axis=-1) - 1) / 2
    return scores


def schulze_scores(d: Floats) -> Floats:
    """Candidates beaten by a stronger path than the one back, (..., K); ``d`` (..., K, K).

    A path is as strong as its weakest majority, measured by winning votes. A beats B where its
    strongest path to B is stronger than the one back. That relation is transitive (Schulze
    2011), so the number of candidates beaten orders them as the relation does.
    """
    path = np.where(margins(d) > 0, d, 0.0)
    k = d.shape[-1]
    # Floyd-Warshall: after step ``via`` the strongest paths through candidates 0..via are known.
    for via in range(k):
        detour = np.minimum(path[..., :, via, None], path[..., None, via, :])
        path = np.maximum(path, detour)
    path[..., np.arange(k), np.arange(k)] = 0.0
    beaten: Floats = np.sum(margins(path) > 0, axis=-1).astype(float)
    return beaten


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
