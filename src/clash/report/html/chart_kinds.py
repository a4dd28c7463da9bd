"""Two kinds of pictures that most charts are: shares with intervals, and matrices of heat."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.escape import clip
from clash.report.formats import percent
from clash.report.html.drawing import Dot, Picture, Rect, StraightLine, Word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.report.html.drawing import Shape
    from clash.stats.intervals import Interval

WIDTH = 640
MOST_ROWS = 40
MOST_CELLS = 14
_ROW = 26
_LETTER = 6.8
_CELL = 54


def forest(
    name: str,
    title: str,
    rows: Sequence[tuple[str, Interval]],
    *,
    mark: float | None = None,
    mark_name: str = "",
) -> Picture | None:
    """Shares between 0 and 1 as dots with intervals, a row each."""
    rows = [(label, i) for label, i in rows if not math.isnan(i.estimate)][:MOST_ROWS]
    if not rows:
        return None
    left, right = _room([label for label, _ in rows]), WIDTH - 120
    bottom = 8 + _ROW * len(rows)

    def x(share: float) -> float:
        return left + (right - left) * min(max(share, 0.0), 1.0)

    shapes: list[Shape] = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        shapes += [
            StraightLine(x(tick), 4, x(tick), bottom),
            Word(x(tick), bottom + 16, f"{tick:.0%}", "middle", "muted", 11),
        ]
    if mark is not None:
        shapes.append(StraightLine(x(mark), 4, x(mark), bottom, "muted", 1.5, dashed=True))
        shapes.append(Word(x(mark), bottom + 32, f"- - {mark_name}", "middle", "muted", 11))
    for index, (label, interval) in enumerate(rows):
        y = 8 + _ROW * (index + 0.5)
        shapes += [
            Word(left - 16, y + 4, clip(label, 26), "end"),
            StraightLine(x(interval.low), y, x(interval.high), y, "accent", 2),
            Dot(x(interval.estimate), y, 4.5),
            Word(right + 14, y + 4, percent(interval), size=11.5, tone="muted"),
        ]
    description = "; ".join(f"{label} {percent(i)}" for label, i in rows)
    height = bottom + (40 if mark is not None else 24)
    return Picture(name, title, description, WIDTH, height, tuple(shapes))


def _room(names: Sequence[str]) -> float:
    """The width that names need, clip as they are."""
    return 30 + _LETTER * max(len(clip(name, 26)) for name in names)


def matrix(
    name: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cell: Callable[[str, str], float | None],
    *,
    write: str,
    shade: Callable[[float], str],
) -> Picture:
    """Cells with a shade and a number; the columns are numbered, their names stand above."""
    square = rows == columns
    keys = [f"{i}" for i in range(1, len(columns) + 1)]
    legend = [] if square else [f"{k}  {clip(c, 60)}" for k, c in zip(keys, columns, strict=True)]
    top = 24.0 + 17 * len(legend) + (8 if legend else 0)
    left = _room(rows) + (18 if square else 0)
    shapes: list[Shape] = [
        Word(0, 14 + 17 * i, text, tone="muted", size=11.5) for i, text in enumerate(legend)
    ]
    descriptions = []
    for j, key in enumerate(keys):
        shapes.append(Word(left + _CELL * (j + 0.5), top - 7, key, "middle", "muted"))
    for i, row in enumerate(rows):
        y = top + _ROW * i
        label = f"{clip(row, 26)}  {keys[i]}" if square else clip(row, 26)
        shapes.append(Word(left - 10, y + 17, label, "end"))
        for j, column in enumerate(columns):
            value = cell(row, column)
            has_value = value is not None and not math.isnan(value)
            tone = shade(value) if has_value and value is not None else "none"
            shapes.append(Rect(left + _CELL * j, y, _CELL - 2, _ROW - 2, tone))
            if has_value:
                text = write.format(value)
                middle = left + _CELL * (j + 0.5) - 1
                shapes.append(Word(middle, y + 16, text, "middle", f"{tone}-text", 11.5))
                descriptions.append(f"{row}, {column}: {text}")
    width = max(left + _CELL * len(columns), 460 if legend else 0)
    return Picture(
        name, title, "; ".join(descriptions), width, top + _ROW * len(rows) + 4, tuple(shapes)
    )
