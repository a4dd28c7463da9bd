"""Rankings from pairwise majorities: Copeland and Schulze; who beats whom, and cycles.

A table of preferences ``d`` holds in ``d[a, b]`` the weight of the rankings that put a before b, a
tie being half a preference either way. Every function here is of such tables alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


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
