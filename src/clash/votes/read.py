"""Votes files, and votes in memory, as a matrix: ids become codes, filters choose among them."""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from clash.errors import InputError
from clash.votes.lines import (
    VoteLine,
    holds_rankings,
    is_csv,
    line_number,
    pair_rows,
    read_lines,
    read_rankings,
)
from clash.votes.matrix import COLUMNS, SIDES, VoteKind, VoteRow, Votes, matches_globs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from clash.stats.typing import Floats

    Codes = NDArray[np.int32]

_MOST_CELLS = 250_000_000


class _NameCodes(dict[Any, int]):
    """Codes by name, in order of appearance; 7 and "7" are the same name."""

    def __init__(self) -> None:
        self.names: list[str | None] = []

    def __missing__(self, key: str | float | None) -> int:
        if key is None or isinstance(key, str):
            code = len(self.names)
            self.names.append(key)
        else:
            code = self[str(key)]
        self[key] = code
        return code


class _OutcomeCodes(dict[Any, int]):
    """Codes by raw vote or label. True and 1 are one key, so are 1 and 1.0."""

    def __init__(self, *, text: bool) -> None:
        self.text = text
        self.numbers: list[float] = []
        self.raw: list[object] = []

    def __missing__(self, key: object) -> int:
        self[key] = code = len(self.numbers)
        self.numbers.append(_number(key, text=self.text))
        self.raw.append(key)
        return code


def _number(key: object, *, text: bool) -> float:
    """A raw outcome as a float: NaN for missing, infinity for one that nobody can read."""
    if key is None:
        return math.nan
    if isinstance(key, str):
        if key in SIDES:
            return SIDES[key]
        if not text:
            return math.inf
        if key.strip().lower() in ("", "null", "none", "nan"):
            return math.nan
        try:
            number = float(key)
        except ValueError:
            return math.inf
        return number if math.isfinite(number) else math.inf
    return float(key) if isinstance(key, int | float) else math.inf


_ROWS = 4096
"""Votes that are coded together."""


class VoteColumns:
    """The columns of a votes file, and further ones with names, coded while it is read."""

    def __init__(self, *, text: bool, extra: Sequence[str] = ()) -> None:
        names = (*COLUMNS, *extra)
        self.ids = {name: _NameCodes() for name in names if name not in ("vote", "label")}
        self.outcomes = {name: _OutcomeCodes(text=text) for name in ("vote", "label")}
        self.codes = {name: array("i") for name in names}

    def add(self, rows: Sequence[Any]) -> None:
        """Code a chunk of lines."""
        for name, index in {**self.ids, **self.outcomes}.items():
            self.codes[name].extend(map(index.__getitem__, map(attrgetter(name), rows)))


@dataclass
class VoteTable:
    """Coded lines, and the names behind the codes."""

    file: Path | None
    codes: dict[str, Codes]
    names: dict[str, list[str | None]]
    values: dict[str, Floats]
    raw: dict[str, list[object]]
    lines: NDArray[np.intp] | None = None

    @classmethod
    def of(cls, columns: VoteColumns, file: Path | None) -> VoteTable:
        """The columns, once the outcomes are known to be readable.

        Raises:
            InputError: no votes, or one that is no outcome.
        """
        table = cls(
            file,
            {name: np.frombuffer(codes, np.int32) for name, codes in columns.codes.items()},
            {name: index.names for name, index in columns.ids.items()},
            {name: np.array(index.numbers) for name, index in columns.outcomes.items()},
            {name: index.raw for name, index in columns.outcomes.items()},
        )
        if not len(table.codes["item"]):
            if file is None:
                hint = "a run that was interrupted: `clash resume RUN` finishes it"
                raise InputError("there are no votes that can be used", hint=hint)
            raise InputError("holds no votes", path=file, hint="one vote a line")
        for name in ("vote", "label"):
            table._check_outcomes(name)
        return table

    def _check_outcomes(self, name: str) -> None:
        for code in np.flatnonzero(np.isinf(self.values[name])):
            at = int(np.flatnonzero(self.codes[name] == code)[0])
            self.fail(
                f"{self.raw[name][code]!r} is not an outcome",
                at,
                name,
                'write "A", "B" or "tie", 1 or 0, a number, or null for a judge that failed',
            )

    def fail(self, message: str, at: int, name: str, hint: str) -> NoReturn:
        """Refuse the file for a vote, by the number ``at`` of those that are left.

        Raises:
            InputError: always, with file, line and field.
        """
        raise InputError(
            message, path=self.file, line=self._line(at), field=name or None, hint=hint
        )

    def _line(self, at: int) -> int | None:
        if self.file is None or not self.file.is_file():
            return None
        return line_number(self.file, at if self.lines is None else int(self.lines[at]))

    def select(
        self,
        judges: list[str] | None,
        subset: list[str] | None,
        presentation: str | None,
        *,
        decisive: bool,
    ) -> VoteTable:
        """The lines that a command asked for."""
        is_kept = np.ones(len(self.codes["item"]), dtype=bool)
        filters = {"judge": judges, "subset": subset}
        filters["presentation"] = None if presentation is None else [presentation]
        for name, globs in filters.items():
            if globs is not None:
                is_kept &= self._matching(name, globs)[self.codes[name]]
                if not is_kept.any():
                    self._nothing_left(name, globs)
        if decisive:
            truth = self.values["label"][self.codes["label"]]
            is_kept &= (truth == 1) | (truth == 0)
            if not is_kept.any():
                raise InputError(
                    "no vote has a label A or B", path=self.file, hint="leave out --decisive"
                )
        if is_kept.all():
            return self
        codes = {name: column[is_kept] for name, column in self.codes.items()}
        return VoteTable(
            self.file, codes, self.names, self.values, self.raw, np.flatnonzero(is_kept)
        )

    def _matching(self, name: str, globs: list[str]) -> NDArray[np.bool_]:
        return np.array([matches_globs(text, globs) for text in self.names[name]], dtype=bool)

    def _nothing_left(self, name: str, globs: list[str]) -> NoReturn:
        names = sorted(text for text in self.names[name] if text is not None)
        listing = ", ".join(names[:12]) + (f", … ({len(names)} in all)" if len(names) > 12 else "")
        raise InputError(
            f"no vote is left after --{name}{'s' if name == 'judge' else ''} {','.join(globs)}",
            path=self.file,
            hint=f"there is: {listing}" if names else f"the file has no {name}",
        )

    def votes(self) -> Votes:
        """The matrix.

        Raises:
            InputError: a vote appears twice, an item has two labels, outcomes are of several
                kinds, or rows times judges do not fit in memory.
        """
        kind = self.kind("vote")
        judges, judge_of = self.judges()
        rows, n_rows = self.rows(judge_of, len(judges))
        if n_rows * len(judges) > _MOST_CELLS:
            raise InputError(
                f"{n_rows} rows by {len(judges)} judges do not fit in memory",
                path=self.file,
                hint="choose judges with --judges",
            )
        values = self._codes("vote")
        matrix = np.full((n_rows, len(judges)), np.nan)
        matrix[rows, judge_of] = values
        first = np.empty(n_rows, dtype=np.intp)
        first[rows[::-1]] = np.arange(len(rows))[::-1]
        labels = self._labels(first)
        groups, group_names = self._groups(first)
        n_failed = np.bincount(judge_of[np.isnan(values)], minlength=len(judges))
        return Votes(
            items=cast("tuple[str, ...]", self._text("item", first)),
            judges=judges,
            families=self._families(judge_of, len(judges)),
            matrix=matrix,
            kind=kind,
            labels=labels,
            label_kind=None if np.isnan(labels).all() else self.kind("label"),
            groups=groups,
            subsets=self._text("subset", first),
            presentations=self._text("presentation", first),
            repeats=self._text("repeat", first),
            failed=n_failed.astype(np.intp),
            source="" if self.file is None else str(self.file),
            group_names=group_names,
        )

    def _codes(self, name: str) -> Floats:
        return self.values[name][self.codes[name]]

    def _text(self, name: str, rows: NDArray[np.intp]) -> tuple[str | None, ...]:
        names = self.names[name]
        return tuple(names[code] for code in self.codes[name][rows].tolist())

    def judges(self) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """The judges, sorted, and which of them cast each vote."""
        present, codes = np.unique(self.codes["judge"]), _dense(self.codes["judge"].astype(np.intp))
        names = [str(self.names["judge"][code]) for code in present]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.intp)
        column = np.empty_like(order)
        column[order] = np.arange(len(order))
        return tuple(names[i] for i in order), column[codes]

    def _families(self, judge_of: NDArray[np.intp], n_judges: int) -> tuple[str | None, ...]:
        families: list[str | None] = [None] * n_judges
        names = self.names["family"]
        for pair in np.unique(judge_of * len(names) + self.codes["family"]).tolist():
            judge, code = divmod(pair, len(names))
            families[judge] = families[judge] or names[code]
        return tuple(families)

    def rows(self, judge_of: NDArray[np.intp], n_judges: int) -> tuple[NDArray[np.intp], int]:
        """The row of each vote (its item, presentation and repeat), and how many rows there are.

        Raises:
            InputError: a judge has two votes in one row.
        """
        one_order = self._merged_presentations()
        if one_order is not None:
            rows = self._row_codes(one_order)
            if not len(_first_duplicate(rows * n_judges + judge_of)):
                self.codes["presentation"] = one_order
                return rows, int(rows.max()) + 1
        rows = self._row_codes(self.codes["presentation"])
        duplicate = _first_duplicate(rows * n_judges + judge_of)
        if len(duplicate):
            self._duplicate(int(duplicate[0]), int(duplicate[1]))
        return rows, int(rows.max()) + 1

    def _row_codes(self, presentation: Codes) -> NDArray[np.intp]:
        key = self.codes["item"].astype(np.intp)
        for codes in (presentation, self.codes["repeat"]):
            key = key * (int(codes.max()) + 1) + codes
        return _dense(key)

    def _merged_presentations(self) -> Codes | None:
        """Presentations with ``both`` and missing ones as ``orig``; None where that changes nothing."""
        names = self.names["presentation"]
        one_order = [code for code, name in enumerate(names) if name in ("orig", "both", None)]
        if len(one_order) < 2:
            return None
        # A name that stands for them all: the report must not call a row "both" by chance.
        into = names.index("orig") if "orig" in names else one_order[0]
        table = np.arange(len(names), dtype=np.int32)
        table[one_order] = into
        return table[self.codes["presentation"]]

    def _duplicate(self, first: int, second: int) -> NoReturn:
        parts = [
            f"{name} {self.names[name][self.codes[name][second]]!r}"
            for name in ("item", "judge", "presentation", "repeat")
            if self.names[name][self.codes[name][second]] is not None
        ]
        line = self._line(first)
        where = "" if line is None else f", first in line {line}"
        self.fail(
            f"a second vote for {', '.join(parts)}{where}",
            second,
            "",
            "give repeated votes a different repeat, or keep one",
        )

    def _labels(self, first: NDArray[np.intp]) -> Floats:
        """The label of each row: that of its item, on whichever of its votes it is given."""
        truth, item = self._codes("label"), self.codes["item"]
        label_rows = np.flatnonzero(~np.isnan(truth))
        of_item = np.full(len(self.names["item"]), np.nan)
        of_item[item[label_rows[::-1]]] = truth[label_rows[::-1]]
        conflicts = label_rows[of_item[item[label_rows]] != truth[label_rows]]
        if len(conflicts):
            name = self.names["item"][item[conflicts[0]]]
            self.fail(
                f"item {name!r} has two labels",
                int(conflicts[0]),
                "label",
                "a label belongs to the item: write the same one on all its votes",
            )
        return of_item[item[first]]

    def _groups(self, first: NDArray[np.intp]) -> tuple[NDArray[np.intp], tuple[str, ...]]:
        """The code of each row's ``group``, or item where it has none, and their names."""
        group, item = self._text("group", first), self._text("item", first)
        index: dict[str, int] = {}
        names = (str(item[i]) if name is None else name for i, name in enumerate(group))
        codes = np.array([index.setdefault(name, len(index)) for name in names], dtype=np.intp)
        return codes, tuple(index)

    def kind(self, name: str) -> VoteKind:
        """The kind of the outcomes; from the whole file for scores, so that a filter does not change it.

        Raises:
            InputError: scores stand among sides.
        """
        values, raw = self.values[name], self.raw[name]
        words = [value for value in raw if isinstance(value, str) and value in SIDES]
        scores = [
            value
            for value, number in zip(raw, values.tolist(), strict=True)
            if value not in words and not math.isnan(number) and number not in (0.0, 1.0)
        ]
        if words and scores:
            code = raw.index(scores[0])
            where = np.flatnonzero(self.codes[name] == code)
            if len(where):
                self.fail(
                    f"the score {scores[0]!r} is mixed with outcomes such as {words[0]!r}",
                    int(where[0]),
                    name,
                    "put scores and sides in two files",
                )
        if scores:
            return "numeric"
        return "ternary" if np.any(self._codes(name) == 0.5) else "binary"


def _dense(key: NDArray[np.intp]) -> NDArray[np.intp]:
    """Keys as 0, 1, … in their order; by counting where that is cheaper than sorting."""
    size = int(key.max()) + 1
    if size > 8 * len(key):
        return np.unique(key, return_inverse=True)[1].astype(np.intp)
    present = np.zeros(size, dtype=bool)
    present[key] = True
    return (np.cumsum(present) - 1)[key].astype(np.intp)


def _first_duplicate(cells: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first two votes in one cell, in order; empty where no cell has two."""
    size = int(cells.max()) + 1
    if size <= 8 * len(cells) and np.bincount(cells).max() == 1:
        return np.zeros(0, dtype=np.intp)
    order = np.argsort(cells, kind="stable")
    repeats = np.flatnonzero(np.diff(cells[order]) == 0)
    return order[repeats[0] : repeats[0] + 2] if len(repeats) else repeats


def read_votes(
    path: str | Path,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
) -> Votes:
    """Read a votes file, JSONL or CSV by its name, plain or ``.gz``; a file of rankings as pairs.

    Rows are (item, presentation, repeat). A vote whose presentation is ``both``, or is not said,
    stands in the row of ``orig``, unless some judge has several of these for one item.

    Args:
        path: the file.
        judges: ids with wildcards (``gpt-*,*#s0``), comma separated or a list; None for all.
        subset: subsets with wildcards, likewise.
        presentation: the presentation to keep (``orig``, ``swap``).
        decisive: keep rows whose label is A or B (1 or 0) only.

    Raises:
        InputError: with file and line, where a line is not a vote, an outcome cannot be read, a
            vote appears twice, an item has two labels or scores are mixed with sides; without
            line, where nothing is left after the filter (with a list of what there is).
    """
    file = Path(path)
    if holds_rankings(file):
        filters = split_globs(judges), split_globs(subset), presentation
        return encode(pair_rows(read_rankings(file, *filters, decisive=decisive)), source=file)
    return (
        _table(file)
        .select(split_globs(judges), split_globs(subset), presentation, decisive=decisive)
        .votes()
    )


def _table(file: Path) -> VoteTable:
    columns = VoteColumns(text=is_csv(file))
    for rows in read_lines(file, VoteLine):
        columns.add(rows)
    return VoteTable.of(columns, file)


def encode(
    rows: Iterable[VoteRow],
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    source: Path | None = None,
) -> Votes:
    """Votes that are in memory, filtered as :func:`read_votes` does.

    Raises:
        InputError: as there, without lines.
    """
    columns, remaining = VoteColumns(text=False), iter(rows)
    while chunk := list(islice(remaining, _ROWS)):
        columns.add(chunk)
    table = VoteTable.of(columns, source)
    return table.select(
        split_globs(judges), split_globs(subset), presentation, decisive=decisive
    ).votes()


def split_globs(text: str | Sequence[str] | None) -> list[str] | None:
    """The patterns of a filter, given as a list or separated by commas; null for no filter."""
    if text is None:
        return None
    parts = text.split(",") if isinstance(text, str) else list(text)
    return [part.strip() for part in parts if part.strip()]
