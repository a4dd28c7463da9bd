"""Items collapsed to their distinct vote patterns, so that a million cost what a few hundred do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index, VoteCodes

Ties = Literal["half", "missing"]

MISSING, TIE = -1, 2
CHUNK = 1 << 16
TABLE = 1 << 22
EXACT_FLOAT32, EXACT_FLOAT64 = 1 << 24, 1 << 53


@dataclass(frozen=True, slots=True)
class Patterns:
    """The distinct rows of a vote matrix, and how often each occurs.

    Attributes:
        votes: int8 of shape (n_patterns, n_judges): 0 or 1, -1 where the judge did not vote,
            2 for a tie, which counts as half a vote for each side.
        labels: int8 of shape (n_patterns,): the observed truth 0 or 1, -1 where unknown. Items
            that differ in their label are different patterns.
        counts: float of shape (n_patterns,): how many items (or how much weight) each has.
        inverse: int of shape (n_items,): the pattern of each item.
    """

    votes: VoteCodes
    labels: VoteCodes
    counts: Floats
    inverse: Index

    @property
    def n_items(self) -> int:
        """Items, whatever they weigh."""
        return len(self.inverse)

    @property
    def n_judges(self) -> int:
        """Columns of the vote matrix, whether or not they voted."""
        return int(self.votes.shape[1])

    @property
    def weight(self) -> float:
        """Total weight of the items."""
        return float(self.counts.sum())

    @property
    def for_one(self) -> Floats:
        """Votes for class 1, of shape (n_patterns, n_judges): 1, or 1/2 for a tie."""
        return np.where(self.votes == TIE, 0.5, self.votes == 1)

    @property
    def for_zero(self) -> Floats:
        """Votes for class 0, of shape (n_patterns, n_judges): 1, or 1/2 for a tie."""
        return np.where(self.votes == TIE, 0.5, self.votes == 0)

    @property
    def present(self) -> Bools:
        """Where a judge voted, of shape (n_patterns, n_judges)."""
        return np.asarray(self.votes != MISSING)

    @property
    def spins(self) -> Floats:
        """Votes as +1 and -1, of shape (n_patterns, n_judges); 0 for a tie or no vote."""
        return spins(self.votes)

    @property
    def vote_rates(self) -> Floats:
        """Share of each judge's votes for class 1, shape (n_judges,); a tie is half a vote.

        One vote is added to either side: the log-odds of a judge that never varies stay finite.
        """
        n_votes = self.counts @ self.present
        return np.asarray((self.counts @ self.for_one + 1) / (n_votes + 2))

    @property
    def missing_share(self) -> float:
        """Share of all votes that are missing, each item by its weight."""
        return 1 - float(self.counts @ self.present.mean(axis=1)) / self.weight

    def expand(self, per_pattern: Floats) -> Floats:
        """Values per pattern (first axis) as values per item."""
        return np.asarray(per_pattern[self.inverse], dtype=np.float64)

    def with_counts(self, counts: npt.ArrayLike) -> Patterns:
        """The same patterns with other counts: a bootstrap replicate or a fold."""
        return replace(self, counts=np.asarray(counts, dtype=np.float64))

    def without_ties(self) -> Patterns:
        """The same items with every tie read as no vote; patterns that coincide stay apart."""
        return replace(self, votes=np.where(self.votes == TIE, np.int8(MISSING), self.votes))

    def without_labels(self) -> Patterns:
        """The same items with every label hidden; patterns that now coincide stay apart."""
        return replace(self, labels=np.full_like(self.labels, MISSING))

    def resample(self, n_replicates: int, rng: np.random.Generator) -> Floats:
        """Bootstrap counts over items, of shape (n_replicates, n_patterns)."""
        share = self.counts / self.weight
        return rng.multinomial(round(self.weight), share, size=n_replicates).astype(np.float64)


def spins(votes: VoteCodes) -> Floats:
    """Votes as +1 and -1, 0 for a tie or no vote; same shape."""
    return np.asarray((votes == 1).astype(np.float64) - (votes == 0))


def collapse(
    votes: npt.ArrayLike,
    *,
    labels: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    ties: Ties = "half",
) -> Patterns:
    """Collapse a vote matrix to its distinct patterns.

    Args:
        votes: shape (n_items, n_judges); 0 and 1 are votes, -1 is no vote, 2 is a tie.
        labels: shape (n_items,); 0 and 1 where the truth is known, -1 elsewhere. Default: none.
        weights: shape (n_items,), not negative; an item's weight. Default: 1 each.
        ties: ``half`` keeps a tie as half a vote for each side: in every likelihood it contributes
            the mean of what its two resolutions would. ``missing`` reads it as no vote. A tie
            as an outcome of its own is a matter of ``multiclass``.

    Raises:
        StatisticsError: no items or judges, a value that is not one of the codes, or shapes that
            do not fit each other.
    """
    matrix = _check_votes(votes, ties)
    label_codes = _check_labels(labels, len(matrix), "labels")
    codes = row_codes(matrix, label_codes)
    first, inverse = distinct(codes)
    counts = np.bincount(inverse, _weights(weights, len(matrix)), minlength=len(first))
    pattern_labels = (
        np.full(len(first), MISSING, np.int8) if label_codes is None else label_codes[first]
    )
    return Patterns(matrix[first], pattern_labels, counts.astype(np.float64), inverse)


def _check_votes(votes: npt.ArrayLike, ties: Ties) -> VoteCodes:
    array = np.asarray(votes)
    if array.ndim != 2 or 0 in array.shape:
        raise StatisticsError(f"votes must be items x judges, at least 1 x 1, not {array.shape}")
    matrix = array if array.dtype == np.int8 else array.astype(np.int8)
    if matrix is not array and not np.array_equal(matrix, array):
        raise StatisticsError("votes must be whole numbers: 0, 1, -1 (no vote) or 2 (tie)")
    if matrix.min() < MISSING or matrix.max() > TIE:
        raise StatisticsError("votes must be 0, 1, -1 (no vote) or 2 (tie)")
    if ties == "missing" and matrix.max() == TIE:
        matrix = np.where(matrix == TIE, np.int8(MISSING), matrix)
    return matrix


def _check_labels(labels: npt.ArrayLike | None, n_items: int, name: str) -> VoteCodes | None:
    if labels is None:
        return None
    column = np.asarray(labels)
    if column.shape != (n_items,):
        raise StatisticsError(f"{name} must be one per item ({n_items}), not {column.shape}")
    if not np.isin(column, (MISSING, 0, 1)).all():
        raise StatisticsError(f"{name} must be 0, 1 or -1 (unknown)")
    return column.astype(np.int8)


def _weights(weights: npt.ArrayLike | None, n_items: int) -> Floats | None:
    if weights is None:
        return None
    column = np.asarray(weights, dtype=np.float64)
    if column.shape != (n_items,) or not np.isfinite(column).all() or (column < 0).any():
        raise StatisticsError("weights must be one finite, non-negative number per item")
    if not column.any():
        raise StatisticsError("every item weighs nothing")
    return column


def row_codes(matrix: VoteCodes, labels: VoteCodes | None) -> npt.NDArray[np.int64]:
    """One whole number per row, equal for equal rows and only for them."""
    lowest, highest = int(matrix.min()), int(matrix.max())
    base = max(highest - lowest + 1, 2)
    size = base ** matrix.shape[1] * (1 if labels is None else 3)
    if size > EXACT_FLOAT64:
        return _codes_by_sorting(matrix, labels)
    kind: np.dtype[Any] = np.dtype(np.float32 if size <= EXACT_FLOAT32 else np.float64)
    powers = np.power(float(base), np.arange(matrix.shape[1])).astype(kind)
    codes = np.empty(len(matrix), np.int64)
    for start in range(0, len(matrix), CHUNK):  # in pieces that stay in the cache
        rows = slice(start, start + CHUNK)
        # Products of small whole numbers; some BLAS kernels set the flag for lanes they do not use.
        with np.errstate(invalid="ignore"):
            codes[rows] = (matrix[rows].astype(kind) @ powers).astype(np.int64)
    codes -= lowest * int(powers.sum(dtype=np.float64))
    return codes if labels is None else codes * 3 + (labels + 1)


def _codes_by_sorting(matrix: VoteCodes, labels: VoteCodes | None) -> npt.NDArray[np.int64]:
    rows = matrix if labels is None else np.column_stack([matrix, labels])
    row_bytes = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.shape[1]))).ravel()
    return np.unique(row_bytes, return_inverse=True)[1].astype(np.int64)


def distinct(codes: npt.NDArray[np.int64]) -> tuple[Index, Index]:
    """Where each distinct code first occurs, and the rank of each item's code."""
    largest = int(codes.max()) + 1
    if largest > max(TABLE, 4 * len(codes)):
        _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        return first, inverse
    present = np.flatnonzero(np.bincount(codes, minlength=largest))
    rank = np.empty(largest, np.intp)
    rank[present] = np.arange(len(present))
    inverse = rank[codes]
    first = np.empty(len(present), np.intp)
    first[inverse[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first, inverse
