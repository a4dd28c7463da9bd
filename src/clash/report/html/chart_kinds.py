"""The kinds of charts of a report, as data: a page shows them as HTML, a file as a picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.escape import clip
from clash.pages import short_names
from clash.report.drawing import Dot, Picture, Rect, StraightLine, Word
from clash.report.formats import percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.report.drawing import Shape
    from clash.stats.intervals import Interval

WIDTH = 640
MOST_ROWS = 40
MOST_CELLS = 14
_ROW = 26
_LETTER = 6.8
_CELL = 54
_LETTERS = 26


@dataclass(frozen=True)
class Forest:
    """Shares between 0 and 1 with intervals, a row each.

    Attributes:
        name: of the file that it is saved as.
        mark: the share that they are read against, and what it means; null for none.
    """

    name: str
    title: str
    rows: tuple[tuple[str, Interval], ...]
    mark: float | None = None
    mark_name: str = ""

    def picture(self) -> Picture:
        """The chart as a picture."""
        return _draw_forest(self)


@dataclass(frozen=True)
class Matrix:
    """Numbers by row and column, with a shade each.

    Attributes:
        cells: by row and column; absent where there is no number.
        form: how a number is written, such as ``{:.0%}``.
        shade: the tone of a number, of :func:`clash.report.drawing.heat`.
    """

    name: str
    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], float]
    form: str
    shade: Callable[[float], str]

    def picture(self) -> Picture:
        """The chart as a picture."""
        return _draw_matrix(self)


Chart = Forest | Matrix | Picture


def forest(
    name: str,
    title: str,
    rows: Sequence[tuple[str, Interval]],
    *,
    mark: float | None = None,
    mark_name: str = "",
) -> Forest | None:
    """Shares with intervals; null without one."""
    intervals = tuple((label, i) for label, i in rows if not math.isnan(i.estimate))[:MOST_ROWS]
    return Forest(name, title, intervals, mark, mark_name) if intervals else None


def _draw_forest(chart: Forest) -> Picture:
    rows, mark = chart.rows, chart.mark
    names = short_names([label for label, _ in rows], _LETTERS)
    left, right = _room(list(names.values())), WIDTH - 120
    bottom = 8 + _ROW * len(rows)

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0.0), 1.0)

    shapes: list[Shape] = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        shapes += [
            StraightLine(x(tick), 4, x(tick), bottom),
            Word(x(tick), bottom + 16, f"{tick:.0%}", "middle", "ink-2", 11),
        ]
    if mark is not None:
        shapes.append(StraightLine(x(mark), 4, x(mark), bottom, "ink-2", 1.5, is_dashed=True))
        shapes.append(Word(x(mark), bottom + 32, f"- - {chart.mark_name}", "middle", "ink-2", 11))
    for index, (label, interval) in enumerate(rows):
        y = 8 + _ROW * (index + 0.5)
        shapes += [
            Word(left - 16, y + 4, names[label], "end"),
            StraightLine(x(interval.low), y, x(interval.high), y, "accent", 2),
            Dot(x(interval.estimate), y, 4.5),
            Word(right + 14, y + 4, percent(interval), size=11.5, tone="ink-2"),
        ]
    description = "; ".join(f"{label} {percent(i)}" for label, i in rows)
    height = bottom + (40 if mark is not None else 24)
    return Picture(chart.name, chart.title, description, WIDTH, height, tuple(shapes))


def _room(names: Sequence[str]) -> float:
    """The width that shortened names need."""
    return 30 + _LETTER * max(map(len, names))


def _draw_matrix(chart: Matrix) -> Picture:
    """Cells with a shade and a number; the columns are numbered, their names stand above."""
    rows, columns = chart.rows, chart.columns
    names = short_names(rows, _LETTERS)
    square = rows == columns
    keys = [f"{i}" for i in range(1, len(columns) + 1)]
    legend = [] if square else [f"{k}  {clip(c, 60)}" for k, c in zip(keys, columns, strict=True)]
    top = 24.0 + 17 * len(legend) + (8 if legend else 0)
    left = _room(list(names.values())) + (18 if square else 0)
    shapes: list[Shape] = [
        Word(0, 14 + 17 * i, text, tone="ink-2", size=11.5) for i, text in enumerate(legend)
    ]
    descriptions = []
    for j, key in enumerate(keys):
        shapes.append(Word(left + _CELL * (j + 0.5), top - 7, key, "middle", "ink-2"))
    for i, row in enumerate(rows):
        y = top + _ROW * i
        label = f"{names[row]}  {keys[i]}" if square else names[row]
        shapes.append(Word(left - 10, y + 17, label, "end"))
        for j, column in enumerate(columns):
            value = chart.cells.get((row, column))
            tone = "wash" if value is None else chart.shade(value)
            shapes.append(Rect(left + _CELL * j, y, _CELL - 2, _ROW - 2, tone))
            if value is not None:
                text = chart.form.format(value)
                middle = left + _CELL * (j + 0.5) - 1
                shapes.append(Word(middle, y + 16, text, "middle", f"{tone}-text", 11.5))
                descriptions.append(f"{row}, {column}: {text}")
    width = max(left + _CELL * len(columns), 460 if legend else 0)
    height = top + _ROW * len(rows) + 4
    words = "; ".join(descriptions)
    return Picture(chart.name, chart.title, words, width, height, tuple(shapes))
