"""Borda counts of rankings with ties, weights and missing judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.voting.condorcet import places
from clash.stats.voting.majority import weights_of_judges

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


@dataclass(frozen=True, slots=True)
class BordaResult:
    """The Borda outcome of one item, or of many along leading axes.

    Attributes:
        scores: (..., K), weighted points over the judges that ranked.
        points: (..., J, K), unweighted; NaN for a missing judge.
        places: (..., K), 1 is best, tied candidates share the better place.
        winner: (...), index of the only best candidate; -1 where tied or nobody ranked.
        weight: (...), summed weight of the judges that ranked.
        margin: (...), lead of the first over the second score relative to the greatest
            possible, in [0, 1]; 0 where tied or nobody ranked.
    """

    scores: Floats
    points: Floats
    places: NDArray[np.intp]
    winner: NDArray[np.intp]
    weight: Floats
    margin: Floats


def borda(ranks: ArrayLike, weights: ArrayLike | None = None) -> BordaResult:
    """Sum of K - rank over the judges; tied candidates share the points of their places.

    With K = 2 that is 1 for the winner, 0 for the loser and 0.5 each for a tie, so the outcome
    is the weighted majority. A tie of scores is reported as a tie: no label order breaks it.

    Args:
        ranks: (J, K) or (..., J, K); smaller is better, only the order within a judge counts,
            equal numbers are a tie. A row that is all NaN is a judge that did not vote.
        weights: (J,), non-negative; 1 each where not given.

    Raises:
        StatisticsError: fewer than two candidates, a row that is partly NaN, or weights that
            are negative or of the wrong length.
    """
    table = np.asarray(ranks, dtype=float)
    if table.ndim < 2 or table.shape[-1] < 2:
        raise StatisticsError(f"ranks of shape {table.shape}: expected (J, K) with K >= 2")
    missing = np.isnan(table)
    absent = missing.all(axis=-1)
    if np.any(missing.any(axis=-1) & ~absent):
        raise StatisticsError("a judge ranked only some of the candidates")
    worth = weights_of_judges(weights, table.shape[-2])
    points = borda_points(table)
    judge_weights = np.where(absent, 0.0, worth)
    scores = np.sum(np.where(absent[..., None], 0.0, points) * judge_weights[..., None], axis=-2)
    return _outcome(scores, points, judge_weights.sum(axis=-1))


def borda_pairwise(ranks: ArrayLike, weights: ArrayLike | None = None) -> BordaResult:
    """Borda scores where some judges ranked only some of the candidates.

    A candidate's score is the sum over its opponents of the weighted share of judges that prefer it,
    among those that ranked both, times the weight of all judges that ranked anything. On complete
    rankings that is the Borda score. A judge that left a candidate out thus has no influence on its
    pairs, where plain points would count the missing place as a lost one. A pair that nobody ranked
    counts half for each.

    Args:
        ranks: (J, K); smaller is better, NaN where a judge left a candidate out.
        weights: (J,), non-negative; 1 each where not given.
    """
    table = np.asarray(ranks, dtype=float)
    worth = weights_of_judges(weights, table.shape[-2])
    row, column = table[:, :, None], table[:, None, :]
    wins = np.einsum("j,jab->ab", worth, (row < column) + 0.5 * (row == column))
    games = np.einsum("j,jab->ab", worth, ~(np.isnan(row) | np.isnan(column)))
    share = np.where(games > 0, wins / np.where(games > 0, games, 1.0), 0.5)
    weight = worth[~np.isnan(table).all(axis=1)].sum()
    scores = (share.sum(axis=1) - np.diag(share)) * weight
    return _outcome(scores, borda_points(table), weight)


def borda_points(ranks: Floats) -> Floats:
    """Points of each judge, same shape as ``ranks``: candidates beaten plus half of those tied."""
    row, column = ranks[..., :, None], ranks[..., None, :]
    beaten = np.sum((row < column) + 0.5 * (row == column), axis=-1) - 0.5
    return np.where(np.isnan(ranks), np.nan, beaten)


def _outcome(scores: Floats, points: Floats, weight: Floats) -> BordaResult:
    n_candidates = scores.shape[-1]
    # Scores are sums of weights: equal up to rounding is a tie.
    slack = 1e-9 * np.maximum(1.0, np.abs(scores).max(axis=-1))
    ranks = places(scores, slack[..., None, None])
    alone = (np.sum(ranks == 1, axis=-1) == 1) & (weight > 0)
    winner = np.where(alone, np.argmax(scores, axis=-1), -1)
    top = np.sort(scores, axis=-1)
    lead = np.where(alone, top[..., -1] - top[..., -2], 0.0)
    # A candidate that is always first leads most where the others share the rest evenly.
    greatest = np.where(weight > 0, weight, 1.0) * n_candidates / 2
    return BordaResult(scores, points, ranks, winner.astype(np.intp), weight, lead / greatest)
