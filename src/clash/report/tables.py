"""The table of text that the terminal, Markdown and the page render."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def with_rows(tables: Iterable[Table | None]) -> list[Table]:
    """The tables that have a row, in their order."""
    return [table for table in tables if table is not None and table.rows]


def cut_note(n_rows: int, most: int = MOST_ROWS, file: str = "report.json") -> list[str]:
    """A note on the rows of a table beyond the first ``most``; none where all are shown."""
    return [f"{n_rows - most} more in {file}"] if n_rows > most else []
