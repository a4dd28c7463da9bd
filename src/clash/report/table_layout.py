"""Tables as lines of text, for a terminal of any width, and as Markdown.

No figure is ever cut and no row loses its name. Where a table does not fit, prose is wrapped and
long names are shortened at the front; then the columns that a table declares dispensable go, and a
note says which; then rows and columns change places; and at last each row becomes a block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from clash.escape import for_markdown, for_terminal
from clash.pages.names import short_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.report.tables import Table

_GAP = "  "
_LEAST_NAME = 14
"""Cells below which a name is not shortened for the sake of a column."""
_LEAST_PROSE = 18
"""Cells below which prose is not wrapped."""
_MOST_PROSE = 60
"""Cells to which prose is wrapped where there is no width to keep to."""
_INDENT = "  "


@dataclass(frozen=True)
class TableLines:
    """A table as text.

    Attributes:
        header: the headings and the rule below them; empty for a list of names and values.
        body: one line or more for each row.
        missing_columns: headings of the columns for which there was no room.
    """

    header: list[str]
    body: list[str]
    missing_columns: list[str]


def text_lines(table: Table, width: int | None) -> TableLines:
    """A table as lines of at most ``width`` cells; null for a reader without a width.

    A single word that is longer than the width, such as a hash, is the only thing that is broken.
    """
    grid = _Grid.of(table)
    if width is None:
        return grid.lines(grid.natural_widths(_MOST_PROSE))
    absent: list[int] = []
    for column in (None, *table.optional):
        if column is not None:
            absent.append(column)
        part = grid.without(absent)
        widths = part.fit(width)
        if widths is not None:
            missing_columns = [grid.columns[index] for index in absent]
            return replace(part.lines(widths), missing_columns=missing_columns)
    if any(grid.columns):
        sideways = grid.transpose()
        widths = sideways.fit(width)
        if widths is not None:
            return sideways.lines(widths)
    return TableLines([], list(grid.blocks(width)), [])


def markdown_lines(table: Table) -> list[str]:
    """A table as Markdown; all its columns, for a page scrolls."""
    rules = (" ---: " if i in table.numeric else " --- " for i in range(len(table.columns)))
    return [
        _markdown_row(table.columns),
        f"|{'|'.join(rules)}|",
        *map(_markdown_row, table.rows),
    ]


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(for_markdown, cells))} |"


@dataclass(frozen=True)
class _Grid:
    """Escaped cells, and what may be done to the columns.

    Attributes:
        numeric: columns of figures, which stay whole.
        names: columns whose cells are single words: these may be shortened, others are wrapped.
    """

    columns: list[str]
    rows: list[list[str]]
    numeric: frozenset[int]
    names: frozenset[int]

    @classmethod
    def of(cls, table: Table) -> _Grid:
        rows = [[_one_line(cell) for cell in row] for row in table.rows]
        columns = [_one_line(column) for column in table.columns]
        words = frozenset(
            index
            for index in range(len(columns))
            if index not in table.numeric and not any(" " in row[index].strip() for row in rows)
        )
        return cls(columns, rows, table.numeric, words)

    def without(self, absent: Sequence[int]) -> _Grid:
        """The grid less some columns."""
        columns = [index for index in range(len(self.columns)) if index not in absent]
        new_index = {old: new for new, old in enumerate(columns)}
        return _Grid(
            [self.columns[index] for index in columns],
            [[row[index] for index in columns] for row in self.rows],
            frozenset(new_index[index] for index in self.numeric if index in new_index),
            frozenset(new_index[index] for index in self.names if index in new_index),
        )

    def transpose(self) -> _Grid:
        """Rows as columns; the names of the rows become headings."""
        table = [list(cells) for cells in zip(self.columns, *self.rows, strict=True)]
        head, body = table[0], table[1:]
        numeric = frozenset(range(1, len(head)))
        return _Grid(head, body, numeric, frozenset())

    def natural_widths(self, most_prose: int | None = None) -> list[int]:
        """The widths at which nothing is shortened; prose at most ``most_prose``."""
        widths = []
        for index, column in enumerate(self.columns):
            widest = max((cell_len(row[index]) for row in self.rows), default=0)
            if most_prose and index not in self.numeric and index not in self.names:
                widest = min(widest, most_prose)
            widths.append(max(widest, cell_len(column)))
        return widths

    def fit(self, width: int) -> list[int] | None:
        """Widths that add up to no more than ``width``; null where there are none."""
        widths = self.natural_widths()
        gaps = len(_GAP) * (len(widths) - 1)
        if sum(widths) + gaps <= width:
            return widths
        for index in range(len(widths)):
            # A heading may be wrapped over two lines, its words may not be cut.
            if index in self.numeric:
                figures = max((cell_len(row[index]) for row in self.rows), default=0)
                words = max((cell_len(word) for word in self.columns[index].split()), default=0)
                widths[index] = max(figures, words)
        least = [self._least(index, widths[index]) for index in range(len(widths))]
        if sum(least) + gaps > width:
            return None
        flexible = [i for i in range(len(widths)) if least[i] < widths[i]]
        while sum(widths) + gaps > width:
            # The widest gives way first, so that short names stay whole.
            widest = max((i for i in flexible if widths[i] > least[i]), key=lambda i: widths[i])
            widths[widest] -= 1
        return widths

    def _least(self, index: int, width: int) -> int:
        """The least width of a column."""
        if index in self.numeric:
            return width
        heading = max((cell_len(word) for word in self.columns[index].split()), default=0)
        if index in self.names:
            least = max(_LEAST_NAME, heading)
            while least < width and not self._is_distinct(index, least):
                least += 1
            return min(width, least)
        words = (word for row in self.rows for word in row[index].split())
        longest = max((cell_len(word) for word in words), default=0)
        return min(width, max(heading, longest, _LEAST_PROSE))

    def _is_distinct(self, index: int, width: int) -> bool:
        """Whether every name of a column can be shortened to ``width``."""
        texts_by_name = short_names((row[index] for row in self.rows), width)
        return all(cell_len(text) <= width for text in texts_by_name.values())

    def lines(self, widths: Sequence[int]) -> TableLines:
        """The grid as text."""
        short = {
            index: short_names((row[index] for row in self.rows), widths[index])
            for index in self.names
        }
        body: list[str] = []
        for row in self.rows:
            cells = [
                [short[index][cell]] if index in short else wrap(cell, widths[index])
                for index, cell in enumerate(row)
            ]
            body += self._block(cells, widths)
        if not any(self.columns):
            return TableLines([], body, [])
        headings = [wrap(column, width) for column, width in zip(self.columns, widths, strict=True)]
        height = max(len(cell) for cell in headings)
        headings = [[""] * (height - len(cell)) + cell for cell in headings]
        rule = "─" * (sum(widths) + len(_GAP) * (len(widths) - 1))
        return TableLines([*self._block(headings, widths), rule], body, [])

    def _block(self, cells: Sequence[Sequence[str]], widths: Sequence[int]) -> Iterator[str]:
        for line in range(max(len(cell) for cell in cells)):
            parts = []
            for index, cell in enumerate(cells):
                text = cell[line] if line < len(cell) else ""
                pad = " " * (widths[index] - cell_len(text))
                parts.append(pad + text if index in self.numeric else text + pad)
            yield _GAP.join(parts).rstrip()

    def blocks(self, width: int) -> Iterator[str]:
        """Each row below the other: its name, then a line for each column that says something."""
        headings = [column or "" for column in self.columns]
        widest = max((cell_len(column) for column in headings[1:]), default=0)
        for row in self.rows:
            yield from wrap(row[0] or headings[0], width)
            for heading, cell in zip(headings[1:], row[1:], strict=True):
                if not cell:
                    continue
                lead = f"{_INDENT}{set_cell_size(heading, widest)}{_GAP}" if widest else _INDENT
                if cell_len(lead) > width // 2:
                    lead = _INDENT
                    yield f"{_INDENT}{heading}:"
                first, *more = wrap(cell, width - cell_len(lead)) or [""]
                yield f"{lead}{first}"
                for line in more:
                    yield " " * cell_len(lead) + line


def _one_line(cell: str) -> str:
    """A cell without line breaks; the blanks before it show that it belongs to the row above."""
    text = for_terminal(cell)
    indent = len(text) - len(text.lstrip(" "))
    return " " * indent + " ".join(text.split())


def wrap(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` cells, broken at blanks; longer words are broken.

    The blanks at the beginning stay: they are the indentation of code.
    """
    if cell_len(text) <= width:
        return [text]
    indent = " " * min(len(text) - len(text.lstrip(" ")), width // 2)
    lines, line = [], ""
    first, *words = text.strip(" ").split(" ")
    for word in (f"{indent}{first}", *words):
        remainder = word
        if line and cell_len(line) + 1 + cell_len(remainder) <= width:
            line = f"{line} {remainder}"
            continue
        if line:
            lines.append(line)
        while cell_len(remainder) > width:
            size = _cut(remainder, width)
            lines.append(remainder[:size])
            remainder = remainder[size:]
        line = remainder
    return [*lines, line] if line else lines


def _cut(word: str, width: int) -> int:
    """How many characters of a word fill at most ``width`` cells; at least one."""
    size = 1
    while size < len(word) and cell_len(word[: size + 1]) <= width:
        size += 1
    return size
