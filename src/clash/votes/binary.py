"""Votes as the models of an unknown truth read them: two sides, a row for each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.patterns import MISSING, TIE, Patterns, Ties, collapse

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clash.stats.typing import Floats, VoteCodes
    from clash.votes import Votes


Copies = Literal["merge", "separate"]


@dataclass(frozen=True)
class MethodTable:
    """Votes as the binary models read them.

    Attributes:
        items: item of each row (N).
        codes: int8 (N, J): 0, 1, -1 missing, 2 a tie.
        truth: (N,), 1, 0 or 0.5 (a tie), NaN where there is no label.
        groups: (N,) codes 0..G-1 of what errors are shared in.
        families: of each judge; null where none is known.
        shown: the votes with every copy of an item as a row, and its order; null where the
            order is not known.
        given: labels enter the fits.
        notes: how ties, scores and copies were read.
    """

    items: tuple[str, ...]
    codes: VoteCodes
    truth: Floats
    groups: NDArray[np.intp]
    families: tuple[str, ...] | None
    shown: PresentedVotes | None
    ties: Ties
    given: bool
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        votes: Votes,
        threshold: float | None = None,
        ties: Ties = "half",
        *,
        use_labels: bool = False,
        copies: Copies = "merge",
    ) -> MethodTable:
        """Read votes: scores cut in two, copies of an item merged, outcomes as codes."""
        notes: list[str] = []
        sides, truth = _two_sides(votes, threshold, notes)
        rows = _Rows(votes.items, sides, truth, votes.groups)
        merged = _merge_copies(rows, notes) if copies == "merge" else rows
        codes = _vote_codes(merged.matrix)
        tied = float((codes == TIE).sum() / max(1, (codes != MISSING).sum()))
        if tied:
            read = "half a vote either way" if ties == "half" else "no vote"
            notes.append(f"{tied:.0%} of the votes are ties, read as {read} (--ties)")
        n_groups = len(np.unique(merged.groups))
        if n_groups < len(merged.items):
            notes.append(
                f"{len(merged.items)} rows in {n_groups} groups (pairs of one ranking, repeats of a"
                " prompt): intervals draw whole groups, models take the rows for independent"
            )
        return cls(
            merged.items,
            codes,
            merged.truth,
            merged.groups,
            _families(votes),
            _presented_votes(votes, rows, merged),
            ties,
            use_labels,
            tuple(notes),
        )

    @property
    def tied(self) -> NDArray[np.bool_]:
        """(N,), rows in which some judge said that the sides are equal."""
        return np.asarray((self.codes == TIE).any(axis=1))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(N,), rows with a label."""
        return ~np.isnan(self.truth)

    @property
    def decisive(self) -> NDArray[np.bool_]:
        """(N,), rows whose label is a side."""
        return np.isin(self.truth, (0.0, 1.0))

    def patterns(self, hidden: NDArray[np.bool_] | None = None) -> Patterns:
        """The votes collapsed, with the labels that may be seen."""
        if not self.given:
            return collapse(self.codes, ties=self.ties)
        seen = self.decisive if hidden is None else self.decisive & ~hidden
        labels = np.where(seen, np.nan_to_num(self.truth), MISSING).astype(np.int8)
        return collapse(self.codes, labels=labels, ties=self.ties)


@dataclass(frozen=True)
class PresentedVotes:
    """Votes by presentation.

    Attributes:
        codes: int8 (M, J), a row for each copy.
        swapped: (M,), the copy was shown in reverse.
        row: (M,), the row of the table that it is a copy of.
    """

    codes: VoteCodes
    swapped: NDArray[np.bool_]
    row: NDArray[np.intp]


@dataclass(frozen=True)
class _Rows:
    items: tuple[str, ...]
    matrix: Floats
    truth: Floats
    groups: NDArray[np.intp]


def _two_sides(votes: Votes, threshold: float | None, notes: list[str]) -> tuple[Floats, Floats]:
    if votes.kind != "numeric":
        return votes.matrix, votes.labels
    cut = _middle(votes.matrix, votes.labels) if threshold is None else threshold
    notes.append(f"scores from {cut:g} on are side 1, below it side 0 (--threshold)")
    return _cut_scores(votes.matrix, cut), _cut_scores(votes.labels, cut)


def _vote_codes(matrix: Floats) -> VoteCodes:
    codes = np.full(matrix.shape, MISSING, np.int8)
    for value, code in ((0.0, 0), (1.0, 1), (0.5, TIE)):
        codes[matrix == value] = code
    return codes


def _merge_copies(rows: _Rows, notes: list[str]) -> _Rows:
    """One row for each item: the side that a judge took more often, a tie where neither."""
    names, first, row = np.unique(rows.items, return_index=True, return_inverse=True)
    if len(names) == len(rows.items):
        return rows
    notes.append(
        f"{len(rows.items)} rows are copies of {len(names)} items (both orders, repeats): each"
        " judge has one say, the side it took more often"
    )
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    row = place[row]
    total, seen = np.zeros((2, len(names), rows.matrix.shape[1]))
    np.add.at(total, row, np.nan_to_num(rows.matrix))
    np.add.at(seen, row, ~np.isnan(rows.matrix))
    mean = np.divide(total, seen, out=np.full(total.shape, np.nan), where=seen > 0)
    side = np.where(np.isnan(mean), np.nan, 0.5 + 0.5 * np.sign(mean - 0.5))
    kept = first[order]
    truth = rows.truth[kept].copy()
    known = ~np.isnan(rows.truth)
    truth[row[known]] = rows.truth[known]
    groups = np.unique(rows.groups[kept], return_inverse=True)[1]
    return _Rows(tuple(rows.items[i] for i in kept), side, truth, groups.astype(np.intp))


def _presented_votes(votes: Votes, rows: _Rows, merged: _Rows) -> PresentedVotes | None:
    if not set(votes.presentations) <= {"orig", "swap"}:
        return None
    swapped = np.array([shown == "swap" for shown in votes.presentations])
    if len(merged.items) == len(rows.items):
        return PresentedVotes(_vote_codes(rows.matrix), swapped, np.arange(len(rows.items)))
    place = {item: index for index, item in enumerate(merged.items)}
    return PresentedVotes(
        _vote_codes(rows.matrix), swapped, np.array([place[item] for item in rows.items])
    )


def _middle(matrix: Floats, truth: Floats) -> float:
    known = np.concatenate([matrix[~np.isnan(matrix)], truth[~np.isnan(truth)]])
    if not len(known):
        raise StatisticsError("there is no vote")
    return float((known.min() + known.max()) / 2)


def _cut_scores(values: Floats, cut: float) -> Floats:
    return np.where(np.isnan(values), np.nan, (values >= cut).astype(float))


def _families(votes: Votes) -> tuple[str, ...] | None:
    """A family for each judge; null where none is known. A judge without one is its own."""
    if not any(votes.families):
        return None
    return tuple(f or judge for f, judge in zip(votes.families, votes.judges, strict=True))
