"""Votes as models of two sides read them: outcomes 0, 1 or tie, a row for each item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.latent.patterns import MISSING, TIE, Patterns, Ties, collapse

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index, VoteCodes
    from clash.votes import Votes


Copies = Literal["merge", "separate"]


@dataclass(frozen=True)
class MethodTable:
    """Votes as the models of two sides read them.

    Attributes:
        items: item of each row (N).
        codes: int8 (N, J): 0, 1, -1 missing, 2 a tie.
        truth: (N,), 1, 0 or 0.5 (a tie), NaN where there is no label.
        groups: (N,) codes 0..G-1 of what errors are shared in.
        judges: (J,), the columns of the votes that these are, in order.
        families: of each judge; null where none is known.
        presentation_rows: the votes with every copy of an item as a row, and its order; null where the
            order is not known.
        ties: a tied vote is half a vote for either side, or no vote.
        uses_labels: labels enter the fits.
        notes: how ties, scores and copies were read.
    """

    items: tuple[str, ...]
    codes: VoteCodes
    truth: Floats
    groups: Index
    judges: Index
    families: tuple[str, ...] | None
    presentation_rows: PresentedVotes | None = None
    ties: Ties = "half"
    uses_labels: bool = False
    notes: tuple[str, ...] = ()

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
        unique_rows = _merge_copies(rows, notes) if copies == "merge" else rows
        codes = _vote_codes(unique_rows.matrix)
        tied = float((codes == TIE).sum() / max(1, (codes != MISSING).sum()))
        if tied:
            read = "half a vote for each side" if ties == "half" else "no vote"
            notes.append(f"{tied:.0%} of the votes are ties, read as {read}")
        n_groups = len(np.unique(unique_rows.groups))
        if n_groups < len(unique_rows.items):
            notes.append(
                f"{len(unique_rows.items)} rows in {n_groups} groups (pairs of one ranking, "
                "repeats of a"
                " prompt): intervals draw whole groups, models assume independent rows"
            )
        return cls(
            items=unique_rows.items,
            codes=codes,
            truth=unique_rows.truth,
            groups=unique_rows.groups,
            judges=np.arange(len(votes.judges)),
            families=_families(votes),
            presentation_rows=_presented_votes(votes, rows, unique_rows),
            ties=ties,
            uses_labels=use_labels,
            notes=tuple(notes),
        )

    @property
    def tied(self) -> Bools:
        """(N,), rows with at least one tied vote."""
        return np.asarray((self.codes == TIE).any(axis=1))

    @property
    def labelled(self) -> Bools:
        """(N,), rows with a label."""
        return ~np.isnan(self.truth)

    @property
    def decisive(self) -> Bools:
        """(N,), rows whose label is a side."""
        return np.isin(self.truth, (0.0, 1.0))

    @property
    def groups_by_name(self) -> Index:
        """(N,), the groups numbered by their first item's name: the same in any order of rows."""
        rank = np.argsort(np.argsort(np.array(self.items), kind="stable"), kind="stable")
        first = np.full(int(self.groups.max()) + 1, len(rank))
        np.minimum.at(first, self.groups, rank)
        return np.unique(first[self.groups], return_inverse=True)[1].astype(np.intp)

    def only_decisive(self) -> MethodTable:
        """The rows whose label is a side, groups numbered anew."""
        rows = self.decisive
        return replace(
            self,
            items=tuple(self.items[row] for row in np.flatnonzero(rows)),
            codes=self.codes[rows],
            truth=self.truth[rows],
            groups=np.unique(self.groups[rows], return_inverse=True)[1].astype(np.intp),
            presentation_rows=None,
        )

    def only_voting(self) -> MethodTable:
        """The judges that voted at all; all of them where none did."""
        columns = np.flatnonzero((self.codes != MISSING).any(axis=0))
        if not len(columns):
            return self
        copies = self.presentation_rows
        return replace(
            self,
            codes=self.codes[:, columns],
            judges=self.judges[columns],
            families=None if self.families is None else tuple(self.families[k] for k in columns),
            presentation_rows=copies and replace(copies, codes=copies.codes[:, columns]),
        )

    def patterns(self, held_out: Bools | None = None) -> Patterns:
        """The votes collapsed, with the labels that may be seen.

        Args:
            held_out: (N,), rows whose label is not to be seen.
        """
        if not self.uses_labels:
            return collapse(self.codes, ties=self.ties)
        visible = self.decisive if held_out is None else self.decisive & ~held_out
        labels = np.where(visible, np.nan_to_num(self.truth), MISSING).astype(np.int8)
        return collapse(self.codes, labels=labels, ties=self.ties)


@dataclass(frozen=True)
class PresentedVotes:
    """Votes by presentation.

    Attributes:
        codes: int8 (M, J), a row for each copy.
        is_reversed: (M,), whether the copy was shown in reverse order.
        row: (M,), the row of the table that it is a copy of.
    """

    codes: VoteCodes
    is_reversed: Bools
    row: Index


@dataclass(frozen=True)
class _Rows:
    items: tuple[str, ...]
    matrix: Floats
    truth: Floats
    groups: Index


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
        f"{len(rows.items)} rows are copies of {len(names)} items (both orders, repeats): each "
        "judge has one vote, the side it chose more often"
    )
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    row = rank[row]
    total, n_votes = np.zeros((2, len(names), rows.matrix.shape[1]))
    np.add.at(total, row, np.nan_to_num(rows.matrix))
    np.add.at(n_votes, row, ~np.isnan(rows.matrix))
    mean = np.divide(total, n_votes, out=np.full(total.shape, np.nan), where=n_votes > 0)
    # The majority of a judge's own copies: sign -1, 0, 1 becomes side 0, a tie, side 1.
    side = np.where(np.isnan(mean), np.nan, 0.5 + 0.5 * np.sign(mean - 0.5))
    first_rows = first[order]
    truth = rows.truth[first_rows].copy()
    has_label = ~np.isnan(rows.truth)
    truth[row[has_label]] = rows.truth[has_label]
    groups = np.unique(rows.groups[first_rows], return_inverse=True)[1]
    return _Rows(tuple(rows.items[i] for i in first_rows), side, truth, groups.astype(np.intp))


def _presented_votes(votes: Votes, rows: _Rows, unique_rows: _Rows) -> PresentedVotes | None:
    if not set(votes.presentations) <= {"orig", "swap"}:
        return None
    reversed_order = np.array([order == "swap" for order in votes.presentations])
    if len(unique_rows.items) == len(rows.items):
        return PresentedVotes(_vote_codes(rows.matrix), reversed_order, np.arange(len(rows.items)))
    row_of = {item: index for index, item in enumerate(unique_rows.items)}
    return PresentedVotes(
        _vote_codes(rows.matrix), reversed_order, np.array([row_of[item] for item in rows.items])
    )


def _middle(matrix: Floats, truth: Floats) -> float:
    values = np.concatenate([matrix[~np.isnan(matrix)], truth[~np.isnan(truth)]])
    if not len(values):
        raise StatisticsError("there is no vote")
    return float((values.min() + values.max()) / 2)


def _cut_scores(values: Floats, cut: float) -> Floats:
    return np.where(np.isnan(values), np.nan, (values >= cut).astype(float))


def _families(votes: Votes) -> tuple[str, ...] | None:
    """A family for each judge; null where none is known. A judge without one is its own."""
    if not any(votes.families):
        return None
    return tuple(f or judge for f, judge in zip(votes.families, votes.judges, strict=True))
