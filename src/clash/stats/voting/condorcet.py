"""Rankings from pairwise majorities: Copeland and Schulze; who beats whom, and cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


_EVEN = 1e-9
"""Sums of weights that differ by less, relative to the larger, are equal."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """A ranking of K candidates.

    Attributes:
        places: (K,), 1 is best, tied candidates share the better place.
        scores: (K,), what the places are by; larger is better.
        winner: index of the only best candidate, -1 where tied.
    """

    places: Codes
    scores: Floats
    winner: int


def pairwise(ranks: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Weight of the judges that prefer the row to the column, (K, K); a tie is half each.

    Args:
        ranks: (J, K), smaller is better, equal is tied; NaN is unranked, and says nothing of
            its pairs.
        weights: (J,), non-negative; 1 each where not given.

    Raises:
        StatisticsError: not (J, K) with K >= 2, or bad weights.
    """
    table = np.asarray(ranks, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise StatisticsError(f"ranks of shape {table.shape}: expected (J, K) with K >= 2")
    worth = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=float)
    if worth.shape != (len(table),) or not np.all(worth >= 0):
        raise StatisticsError(f"expected {len(table)} weights >= 0, one for each judge")
    mine, other = table[:, :, None], table[:, None, :]
    prefers: Floats = np.einsum("j,jab->ab", worth, (mine < other) + 0.5 * (mine == other))
    np.fill_diagonal(prefers, 0.0)
    return prefers


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


def places(scores: Floats, slack: float = 1e-9) -> Codes:
    """Places by score, (..., K): 1 is best, tied candidates share the better place.

    Args:
        scores: (..., K), larger is better; NaN takes no place, 0.
        slack: scores that differ by less are equal.
    """
    better = scores[..., None, :] > scores[..., :, None] + slack
    return np.where(np.isnan(scores), 0, 1 + np.sum(better, axis=-1)).astype(np.intp)


def ranked(scores: Floats) -> Ranking:
    """A ranking by score, (K,)."""
    found = places(scores)
    top = np.flatnonzero(found == 1)
    return Ranking(found, scores, int(top[0]) if len(top) == 1 else -1)


def condorcet_winner(matrix: ArrayLike) -> int:
    """The candidate that beats every other by majority, -1 where there is none.

    Args:
        matrix: (K, K), see :func:`pairwise`.

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
        matrix: (K, K), see :func:`pairwise`.

    Raises:
        StatisticsError: not K x K weights.
    """
    lead = margins(_square(matrix))
    order = np.argsort(-copeland_scores(lead), kind="stable")
    # By Copeland's score the set is a head of the order: each of it beats all that follow.
    for size in range(1, len(order)):
        if np.all(lead[np.ix_(order[:size], order[size:])] > 0):
            return order[:size].astype(np.intp)
    return order.astype(np.intp)


def majority_cycle(matrix: ArrayLike) -> Codes:
    """A shortest cycle of majorities, each beating the next and the last the first; empty if none.

    Args:
        matrix: (K, K), see :func:`pairwise`.

    Raises:
        StatisticsError: not K x K weights.
    """
    beats = margins(_square(matrix)) > 0
    found = [path for start in range(len(beats)) if (path := _round_trip(beats, start))]
    return np.array(min(found, key=len, default=[]), dtype=np.intp)


def _round_trip(beats: NDArray[np.bool_], start: int) -> list[int]:
    """The shortest way from a candidate back to it; empty where there is none."""
    paths = [[start]]
    reached = {start}
    while paths:
        longer = []
        for path in paths:
            for step in np.flatnonzero(beats[path[-1]]).tolist():
                if step == start:
                    return path
                if step not in reached:
                    reached.add(step)
                    longer.append([*path, step])
        paths = longer
    return []


def copeland(matrix: ArrayLike) -> Ranking:
    """By pairwise victories, a tied pair counting half for both (Copeland 1951).

    Args:
        matrix: (K, K), see :func:`pairwise`.

    Raises:
        StatisticsError: not K x K weights.
    """
    return ranked(copeland_scores(margins(_square(matrix))))


def copeland_scores(lead: Floats) -> Floats:
    """Victories, and half of the pairs that are level, (..., K); see :func:`margins`."""
    scores: Floats = np.sum(lead > 0, axis=-1) + (np.sum(lead == 0, axis=-1) - 1) / 2
    return scores


def schulze(matrix: ArrayLike) -> Ranking:
    """By the strongest path of majorities (Schulze 2011, winning votes).

    A beats B where its strongest path to B is stronger than the one back; the scores are the
    candidates beaten, which order the candidates as the relation does, for it is transitive.

    Args:
        matrix: (K, K), see :func:`pairwise`.

    Raises:
        StatisticsError: not K x K weights.
    """
    return ranked(schulze_scores(_square(matrix)))


def schulze_scores(d: Floats) -> Floats:
    """Candidates beaten by a stronger path than the one back, (..., K); ``d`` (..., K, K)."""
    path = np.where(margins(d) > 0, d, 0.0)
    k = d.shape[-1]
    for via in range(k):
        there = np.minimum(path[..., :, via, None], path[..., None, via, :])
        path = np.maximum(path, there)
    path[..., np.arange(k), np.arange(k)] = 0.0
    beaten: Floats = np.sum(margins(path) > 0, axis=-1).astype(float)
    return beaten
