"""Votes collapsed to patterns, and labels that a fit may use or that only a test may.

A family of maps needs, for each pattern of votes, the number of labelled rows and the sum of their
targets. Rows are collapsed to patterns once; a prefix of judges collapses the patterns further.

A target has C columns: one for two sides (P(side 1)) and for scores (scaled to [0, 1]), three
for sides and ties (side 0, tie, side 1).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.selection.calibration_gap import MeasuredBlock, calibration_gap
from clash.stats.selection.metrics import (
    Loss,
    Metrics,
    Reliability,
    confidence,
    credits_of,
    losses,
    measure,
    reliability,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats, Index

Target = Literal["binary", "three", "scalar"]

NO_VOTE = -1
BINS = 5
"""Levels that a score is rounded to as a value of a joint pattern."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Distinct vote patterns of some judges, in the order of the path.

    Attributes:
        values: (P, K), votes in [0, 1] (0.5 a tie), NaN where there is none.
        codes: int16 (P, K), the outcome of each vote, ``NO_VOTE`` where there is none.
        target: what is predicted.
        of_pattern: (P_all,), the cell of each pattern of the whole panel.
        prefix_entries: cache, by number of judges k, of the entries of the table of the first k.
    """

    values: Floats
    codes: npt.NDArray[np.int16]
    target: Target
    of_pattern: Index
    prefix_entries: dict[int, Index] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_classes(self) -> int:
        """C."""
        return 3 if self.target == "three" else 1

    @property
    def for_class(self) -> Floats:
        """(P, K, C), each vote as an indicator of the classes (or the vote itself, C = 1); NaN where missing."""
        if self.target != "three":
            return self.values[:, :, None]
        votes: Floats = (self.values[:, :, None] == np.array([0.0, 0.5, 1.0])).astype(float)
        votes[np.isnan(self.values)] = np.nan
        return votes

    @property
    def design(self) -> Floats:
        """(P, K) sides from -1 to 1, and for three classes K columns of ties; 0 without a vote."""
        side = np.nan_to_num(2 * self.values - 1)
        tied = (self.values == 0.5).astype(float)
        return np.asarray(np.hstack([side, tied]) if self.target == "three" else side)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Labelled rows by cell, sufficient for every fit.

    Attributes:
        n: (P,), labelled rows.
        s: (P, C), sum of their targets.
        votes: (P,), rows whose votes may be used, labelled or not.
    """

    n: Floats
    s: Floats
    votes: Floats

    @property
    def size(self) -> float:
        """Labelled rows."""
        return float(self.n.sum())

    @property
    def base(self) -> Floats:
        """(C,), mean target, after one row more with the target in the middle."""
        c = self.s.shape[1]
        prior = 0.5 if c == 1 else 1 / c
        return np.asarray((self.s.sum(axis=0) + prior) / (self.size + 1))

    @property
    def mean(self) -> Floats:
        """(P, C), mean target of each cell; 0 where it is empty."""
        return np.asarray(self.s / np.maximum(self.n, 1e-300)[:, None] * (self.n > 0)[:, None])

    def on(self, cells: Cells) -> Evidence:
        """The same evidence, by the cells of some judges."""
        size = len(cells.values)
        gather = cells.of_pattern
        columns = [sum_by(gather, column, size) for column in self.s.T]
        return Evidence(
            sum_by(gather, self.n, size),
            np.column_stack(columns),
            sum_by(gather, self.votes, size),
        )


@dataclass(frozen=True, slots=True)
class LabelledRows:
    """Rows whose labels a fit or a choice may use.

    Attributes:
        pattern: (n,), pattern of the whole panel.
        y: (n, C), targets.
        group: (n,), rows of one source.
    """

    pattern: Index
    y: Floats
    group: Index

    def take(self, rows: npt.NDArray[np.bool_] | Index) -> LabelledRows:
        """Some of the rows."""
        return LabelledRows(self.pattern[rows], self.y[rows], self.group[rows])

    def evidence(self, n_patterns: int, votes: Floats | None = None) -> Evidence:
        """Counts and sums by pattern of the whole panel."""
        n = np.bincount(self.pattern, minlength=n_patterns).astype(float)
        s = np.column_stack([sum_by(self.pattern, y, n_patterns) for y in self.y.T])
        return Evidence(n, s, n if votes is None else votes)

    def losses(self, p: Floats, loss: Loss) -> Floats:
        """(n,), the loss of each row under predictions by pattern (P, C)."""
        return losses(p[self.pattern], self.y, loss)

    def credits(self, p: Floats) -> Floats:
        """(n,), credit of the verdict on each row, under predictions by pattern (P, C)."""
        return credits_of(p[self.pattern], self.y)


@dataclass(frozen=True, slots=True)
class SealedRows:
    """The test block: its labels are used only to measure given predictions.

    No fit takes ``SealedRows``, and they never return a label.
    """

    _rows: LabelledRows = field(repr=False)

    @property
    def n(self) -> int:
        """Rows."""
        return len(self._rows.pattern)

    @property
    def patterns(self) -> Index:
        """(n,), the votes of its rows, which are no secret."""
        return self._rows.pattern

    def measure(self, p: Floats, verdict: Floats | None = None) -> Metrics:
        """Every metric of predictions by pattern, shape (P, C)."""
        shares = None if verdict is None else verdict[self._rows.pattern]
        return measure(p[self._rows.pattern], self._rows.y, shares)

    def gains(self, p: Floats, baseline: Floats) -> Floats:
        """(n,), credit of the verdicts of p minus that of the verdicts of ``baseline``, by row."""
        return self._rows.credits(p) - self._rows.credits(baseline)

    @classmethod
    def together(cls, blocks: Sequence[SealedRows]) -> SealedRows:
        """Several blocks as one; the patterns of block i are moved up by i times ``stride``.

        A block of a few dozen rows has an expected calibration error of mostly noise; several
        have less.
        """
        parts = [block._rows for block in blocks]  # noqa: SLF001 - our own
        stride = cls.stride(blocks)
        pattern = np.concatenate([p.pattern + i * stride for i, p in enumerate(parts)])
        y = np.concatenate([p.y for p in parts])
        return cls(LabelledRows(pattern, y, np.concatenate([p.group for p in parts])))

    @classmethod
    def stride(cls, blocks: Sequence[SealedRows]) -> int:
        """How far apart the patterns of blocks lie that are put together."""
        return 1 + max(int(block.patterns.max(initial=0)) for block in blocks)

    def reliability(self, p: Floats, rng: np.random.Generator) -> Reliability:
        """Calibration error of predictions by pattern, and its value by chance."""
        rows = self._rows
        return reliability(p[rows.pattern], rows.y, rows.group, rng)

    @staticmethod
    def calibration_gap(
        blocks: Sequence[SealedRows], predictions: Sequence[Floats], rng: np.random.Generator
    ) -> Interval:
        """Calibration error of one map, over blocks that each have their own (P, C) by pattern."""
        rows = [block._rows for block in blocks]  # noqa: SLF001 - our own
        return calibration_gap(
            [
                MeasuredBlock(p[part.pattern], part.y, part.group)
                for part, p in zip(rows, predictions, strict=True)
            ],
            rng,
        )

    def verdict_errors(
        self, p: Floats, rng: np.random.Generator
    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """Confidence in the verdict, and whether it is wrong, for one random row of each source."""
        order = rng.permutation(self.n)
        sample = self._rows.take(order[np.unique(self._rows.group[order], return_index=True)[1]])
        return confidence(p)[sample.pattern], sample.credits(p) < 1

    def mse(self, p: Floats) -> float:
        """Mean squared error of predictions by pattern."""
        return float(self._rows.losses(p, "mse").mean())


@dataclass(frozen=True)
class PanelVotes:
    """Votes and targets of the rows of a panel, collapsed to patterns.

    Attributes:
        values: (P, J), votes of each pattern in [0, 1], NaN where there is none.
        codes: (P, J), their outcomes.
        pattern: (N,), the pattern of each row.
        target: what labels are.
        has_label: (N,), whether the row has a label.
        group: (N,), code of each row's source; rows of one source stay in one block.
        item: (N,), code of each row's item; the rows of an item are of one source, and a person
            labels them at once.
    """

    values: Floats
    codes: npt.NDArray[np.int16]
    pattern: Index
    target: Target
    has_label: npt.NDArray[np.bool_]
    group: Index
    _y: Floats = field(repr=False)
    item: Index
    _cells: dict[tuple[int, ...], Cells] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        votes: npt.ArrayLike,
        labels: npt.ArrayLike,
        groups: npt.ArrayLike,
        target: Target,
        items: npt.ArrayLike | None = None,
    ) -> PanelVotes:
        """Collapse votes (N, J) and labels (N,), both in [0, 1], NaN where there is none.

        Without ``items``, each row is an item.

        Raises:
            StatisticsError: shapes that differ, values outside [0, 1], labels that are not of
                the target, or no votes.
        """
        table, y = np.asarray(votes, float), np.asarray(labels, float)
        group = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.intp)
        _check(table, y, group, target)
        first, inverse = _collapse(_fine(table))
        has_label = ~np.isnan(y)
        return cls(
            table[first],
            outcome_codes(table)[first],
            inverse,
            target,
            has_label,
            group,
            _targets(y, target),
            _item_codes(items, group),
        )

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.pattern)

    @property
    def n_judges(self) -> int:
        """J."""
        return int(self.values.shape[1])

    @property
    def n_patterns(self) -> int:
        """P."""
        return len(self.values)

    @property
    def n_classes(self) -> int:
        """C."""
        return 3 if self.target == "three" else 1

    def cells(self, judges: Sequence[int]) -> Cells:
        """The distinct patterns of these judges' votes; cached, since all splits share them."""
        key = tuple(judges)
        if key not in self._cells:
            columns = list(key)
            first, inverse = _collapse(_fine(self.values[:, columns]))
            self._cells[key] = Cells(
                self.values[first][:, columns], self.codes[first][:, columns], self.target, inverse
            )
        return self._cells[key]

    def rows(self, index: Index) -> LabelledRows:
        """Labelled rows to fit to or choose by.

        Raises:
            StatisticsError: one of them has no label.
        """
        if not self.has_label[index].all():
            raise StatisticsError("a row without a label cannot be learned from")
        return LabelledRows(self.pattern[index], self._y[index], self.group[index])

    def seal(self, index: Index) -> SealedRows:
        """Labelled rows to measure on only."""
        return SealedRows(self.rows(index))

    def votes(self, index: Index) -> Floats:
        """(P,), how often each pattern occurs among some rows, labelled or not."""
        return np.bincount(self.pattern[index], minlength=self.n_patterns).astype(float)


def sum_by(cell: Index, weights: Floats, size: int) -> Floats:
    """(size,), sum of the weights of each cell."""
    return np.asarray(np.bincount(cell, weights, size), np.float64)


def outcome_codes(table: Floats) -> npt.NDArray[np.int16]:
    """Votes in [0, 1] as outcomes: their own values where these are few, else ``BINS`` levels."""
    missing = np.isnan(table)
    values = np.where(missing, 0.0, table)
    few = np.isin(values, (0.0, 0.5, 1.0)).all()
    levels = 3 if few else BINS
    return np.where(missing, NO_VOTE, np.round(values * (levels - 1))).astype(np.int16)


def _fine(table: Floats) -> npt.NDArray[np.int16]:
    """Votes to four decimals, as codes: scores that differ by less are the same."""
    missing = np.isnan(table)
    return np.where(missing, NO_VOTE, np.round(np.where(missing, 0.0, table) * 10_000)).astype(
        np.int16
    )


def _collapse(codes: npt.NDArray[np.int16]) -> tuple[Index, Index]:
    keys = np.ascontiguousarray(codes).view(np.dtype((np.void, codes.shape[1] * 2))).ravel()
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first.astype(np.intp), inverse.astype(np.intp)


def _item_codes(items: npt.ArrayLike | None, group: Index) -> Index:
    """Codes of items within their sources; without items, of rows."""
    if items is None:
        return np.arange(len(group))
    codes = np.unique(np.asarray(items), return_inverse=True)[1]
    key = group * (int(codes.max(initial=0)) + 1) + codes
    return np.asarray(np.unique(key, return_inverse=True)[1], np.intp)


def _targets(y: Floats, target: Target) -> Floats:
    if target != "three":
        return y[:, None]
    return np.where(np.isnan(y)[:, None], np.nan, y[:, None] == np.array([0.0, 0.5, 1.0]))


def _check(table: Floats, y: Floats, group: Index, target: Target) -> None:
    if table.ndim != 2 or 0 in table.shape or y.shape != (len(table),) or len(group) != len(y):
        raise StatisticsError(f"votes {table.shape}, labels {y.shape}, groups {group.shape}")
    for values, name in ((table, "votes"), (y, "labels")):
        if np.any((values < 0) | (values > 1)):
            raise StatisticsError(f"{name} lie in [0, 1]")
    values_allowed = {"binary": (0.0, 1.0), "three": (0.0, 0.5, 1.0)}.get(target)
    if values_allowed is not None and not np.isin(y[~np.isnan(y)], values_allowed).all():
        raise StatisticsError(f"labels of a {target} target are {values_allowed}")
