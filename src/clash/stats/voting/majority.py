"""Majority and plurality of categorical votes, weighted or not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


@dataclass(frozen=True, slots=True)
class Majority:
    """Majority of two sides, for N items.

    Attributes:
        share: (N,), weighted share of the votes for side 1, a tie counting half; NaN where
            nobody voted.
        verdict: (N,), 1 or 0, 0.5 where the vote is tied, NaN where nobody voted.
        weight: (N,), summed weight of the judges that voted.
        unanimous: (N,), whether all judges that voted chose the same side.
        split: (N, 2), unweighted numbers of votes for side 1 and side 0.
    """

    share: Floats
    verdict: Floats
    weight: Floats
    unanimous: NDArray[np.bool_]
    split: NDArray[np.intp]


def majority(votes: ArrayLike, weights: ArrayLike | None = None) -> Majority:
    """The side with the most weight.

    Args:
        votes: (N, J); 1, 0, 0.5 for a tie, NaN for missing.
        weights: (J,), non-negative; 1 each where not given.

    Raises:
        StatisticsError: a vote that is not one of these, or bad weights.
    """
    table = np.asarray(votes, dtype=float)
    missing = np.isnan(table)
    if not np.all(missing | (table == 0) | (table == 1) | (table == 0.5)):
        raise StatisticsError("votes of a majority are 1, 0, 0.5 (a tie) or NaN (missing)")
    worth = np.where(missing, 0.0, weights_of_judges(weights, table.shape[1]))
    weight = worth.sum(axis=1)
    for_one = (np.where(missing, 0.0, table) * worth).sum(axis=1)
    share = np.divide(for_one, weight, out=np.full(len(table), np.nan), where=weight > 0)
    lead = for_one - weight / 2
    tied = np.abs(lead) <= 1e-9 * np.maximum(1.0, weight)
    verdict = np.where(tied, 0.5, (lead > 0).astype(float))
    verdict[weight == 0] = np.nan
    split = np.stack([(table == 1).sum(axis=1), (table == 0).sum(axis=1)], axis=1)
    n_votes = (~missing).sum(axis=1)
    unanimous = (split.max(axis=1) == n_votes) & (n_votes > 0)
    return Majority(share, verdict, weight, unanimous, split.astype(np.intp))


def weights_of_judges(weights: ArrayLike | None, n_judges: int) -> Floats:
    """(J,), one each where none are given.

    Raises:
        StatisticsError: another number of them, or one below 0.
    """
    worth = np.ones(n_judges) if weights is None else np.asarray(weights, dtype=float)
    if worth.shape != (n_judges,) or not np.all(worth >= 0):
        raise StatisticsError(f"expected {n_judges} weights >= 0, one for each judge")
    return worth


def credit(verdict: ArrayLike, label: ArrayLike) -> Floats:
    """Credit of each verdict, shape (N,): 1 right, 0 wrong, 0.5 for a tie where the label has a side.

    Args:
        verdict: (N,); 1, 0, 0.5 tied, NaN for none, which earns 0: it is a miss.
        label: (N,); 1 or 0, or 0.5, which a tied verdict matches and no other does. NaN gives
            NaN.
    """
    winner, truth = np.asarray(verdict, dtype=float), np.asarray(label, dtype=float)
    guess = (winner == 0.5) & (truth != 0.5)
    points = np.where(winner == truth, 1.0, np.where(guess, 0.5, 0.0))
    return np.where(np.isnan(truth), np.nan, points)


@dataclass(frozen=True, slots=True)
class Plurality:
    """Plurality of C classes, for N items.

    Attributes:
        counts: (N, C), weighted votes.
        winner: (N,), the class with most; -1 where tied or nobody voted.
        credit: (N, C), 1 divided among the tied best classes; 0 everywhere without votes.
    """

    counts: Floats
    winner: NDArray[np.intp]
    credit: Floats


def plurality(codes: ArrayLike, n_classes: int, weights: ArrayLike | None = None) -> Plurality:
    """The class with the most weight.

    Args:
        codes: (N, J) integers in 0..C-1, -1 for missing.
        n_classes: C.
        weights: (J,), non-negative; 1 each where not given.

    Raises:
        StatisticsError: a code out of range, or bad weights.
    """
    table = np.asarray(codes)
    if table.size and (table.min() < -1 or table.max() >= n_classes):
        raise StatisticsError(f"class codes lie in 0..{n_classes - 1}, or are -1 for missing")
    worth = weights_of_judges(weights, table.shape[1])
    counts = np.stack([(table == c) @ worth for c in range(n_classes)], axis=1)
    credit = share_among_best(counts)
    winner = np.where(credit.max(axis=1) == 1, counts.argmax(axis=1), -1)
    return Plurality(counts, winner.astype(np.intp), credit)


def share_among_best(counts: Floats) -> Floats:
    """1 divided among the columns with the most weight in each row; 0 in a row of zeros.

    Args:
        counts: (N, C), weighted votes. Sums of weights that differ by rounding are equal.
    """
    best = counts.max(axis=1, keepdims=True)
    top = (counts >= best - 1e-9 * np.maximum(1.0, best)) & (best > 0)
    share: Floats = top / np.maximum(top.sum(axis=1, keepdims=True), 1)
    return share
