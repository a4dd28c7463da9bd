"""The table of text that the terminal, Markdown and the page render."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CLUSTERED_LABEL = "95%, clustered"
"""Heading of a column of intervals that are clustered by question."""
MOST_ROWS = 40
"""Rows of a long table that are shown; the JSON of the report has them all."""


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        columns: headings; all empty for a list of names and values.
        rows: each as long as ``columns``.
        numeric: indices of the columns that are aligned to the right.
        notes: how to read the table, below it.
        brief: whether the table is shown in a notebook, where there is little room.
        optional: indices of columns that a narrow terminal may leave out, the first ones first.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: frozenset[int] = frozenset()
    notes: Sequence[str] = field(default_factory=tuple)
    brief: bool = False
    optional: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        title: str,
        rows: Iterable[Mapping[str, object]],
        *,
        text: Sequence[str] = (),
        notes: Sequence[str] = (),
        brief: bool = False,
        optional: Sequence[str] = (),
    ) -> Table:
        """A table of rows whose cells are named by their headings.

        Args:
            title: of the table.
            rows: all with the same headings, in one order; the first column names the row.
            text: further columns of words; the others are figures, aligned to the right.
            notes: how to read the table.
            brief: whether a notebook shows it.
            optional: columns that a narrow terminal may leave out, the first ones first.
        """
        lines = list(rows)
        columns = list(lines[0]) if lines else []
        words = {*columns[:1], *text}
        return cls(
            title,
            columns,
            [[str(cell) for cell in line.values()] for line in lines],
            frozenset(index for index, name in enumerate(columns) if name not in words),
            notes,
            brief,
            tuple(columns.index(name) for name in optional if name in columns),
        )


def with_rows(tables: Iterable[Table | None]) -> list[Table]:
    """The tables that have a row, in their order."""
    return [table for table in tables if table is not None and table.rows]


def cut_note(n_rows: int, most: int = MOST_ROWS, file: str = "report.json") -> list[str]:
    """A note on the rows of a table beyond the first ``most``; none where all are shown."""
    return [f"{n_rows - most} more in {file}"] if n_rows > most else []
