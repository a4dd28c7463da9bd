"""Interval charts: a list of name, track and figure, which no screen is too narrow for.

The track is an SVG without a view box whose coordinates are percentages, so that words and dots
keep their size while the track takes the width there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.escape import for_html
from clash.pages.names import short_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

Tone = Literal["plain", "accent", "caution"]
_DOT = 6.5
_TICK = (4, 18)
_LETTER = 2.3
"""Width of a letter of a label in percent of a track of 300 pixels."""
_NEAR_END, _AT_END = 12.0, 1.0
"""Percent of the track: a label so near an end is aligned with it, a tick so near is the last."""


@dataclass(frozen=True)
class ChartRow:
    """One line of a chart.

    Attributes:
        estimate, low, high: in the unit of the axis; null where there is nothing to show, which
            leaves the track empty.
        figure: the estimate as text, such as ``61%``.
        bounds: the interval as text, such as ``[52, 69]``.
        note: a few words beside the name.
        mark: where a second estimate stands, drawn as a tick.
        tone: ``accent`` for what the sentence above is about, ``caution`` for what contradicts it.
    """

    name: str
    estimate: float | None
    low: float | None = None
    high: float | None = None
    figure: str = "–"
    bounds: str = ""
    note: str = ""
    mark: float | None = None
    tone: Tone = "plain"

    @property
    def values(self) -> list[float]:
        """Everything that the axis must hold."""
        ends = (self.estimate, self.low, self.high, self.mark)
        return [end for end in ends if end is not None and math.isfinite(end)]


@dataclass(frozen=True)
class Axis:
    """What the track spans.

    Attributes:
        ticks: values and their labels.
        reference: the value that the chart is read against, as "level" or "chance"; null for none.
        reference_label: what it means, in words.
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    reference: float | None = None
    reference_label: str = ""

    def position(self, value: float) -> float:
        """Where a value stands, in percent of the track."""
        share = (value - self.low) / (self.high - self.low)
        return 100 * min(max(share, 0.0), 1.0)


def share_axis(
    rows: Sequence[ChartRow], *, reference: float | None = 0.5, label: str = "50% = level"
) -> Axis:
    """An axis of shares that holds all values, and never leaves 0 to 1.

    It is symmetrical around the reference where that is one half; without one it ends at 1.
    """
    values = [*(value for row in rows for value in row.values)]
    values.append(1.0 if reference is None else reference)
    low, high = min(values), max(values)
    step = 0.2
    if reference is not None and math.isclose(reference, 0.5):
        reach = max(math.ceil(10 * max(0.5 - low, high - 0.5) - 1e-9), 1) / 10
        low, high = 0.5 - reach, 0.5 + reach
        step = {0.4: 0.2, 0.5: 0.25}.get(round(reach, 1), 0.1)
    else:
        low, high = math.floor(low * 5 + 1e-9) / 5, math.ceil(high * 5 - 1e-9) / 5
        high = max(high, low + 0.4) if low <= 0.6 else high
    low, high = max(low, 0.0), min(high, 1.0)
    ticks = tuple((v, f"{v:.0%}") for v in _steps(low, high, step))
    return Axis(low, high, ticks, reference, label)


def difference_axis(rows: Sequence[ChartRow], *, label: str = "0 = no difference") -> Axis:
    """An axis of differences of shares in points, symmetrical around zero."""
    values = [abs(value) for row in rows for value in row.values] or [0.1]
    reach = max(math.ceil(max(values) * 20 - 1e-9) / 20, 0.05)
    step = next(s for s in (0.05, 0.1, 0.2, 0.5, 1.0) if reach / s <= 3 or s == 1.0)
    reach = step * math.ceil(reach / step - 1e-9)
    ticks = tuple((v, _sign(v)) for v in _steps(-reach, reach, step))
    return Axis(-reach, reach, ticks, 0.0, label)


def _sign(share: float) -> str:
    return f"{100 * share:+.0f}".replace("-", "−") if share else "0"


def _steps(low: float, high: float, step: float) -> list[float]:
    count = math.floor((high - low) / step + 1e-6)
    return [round(low + step * i, 10) for i in range(count + 1)]


def interval_chart(
    rows: Sequence[ChartRow],
    axis: Axis,
    *,
    label: str,
    large: bool = False,
    mark_label: str = "",
) -> Markup:
    """The chart as HTML, for a page with the shared style sheet.

    Args:
        rows: its lines, in their order; names are shortened at the front where they are long.
        axis: what the track spans.
        label: what the chart shows, for people who hear it.
        large: whether it is the first chart of a page.
        mark_label: what the ticks of the rows mean; stands over the first of them.
    """
    from markupsafe import Markup

    names = short_names([row.name for row in rows])
    grid = "".join(_grid(axis))
    first_mark = next((row for row in rows if row.mark is not None), None)
    body = "".join(
        _row(row, names[row.name], axis, grid, mark_label if row is first_mark else "")
        for row in rows
    )
    kind = "chart large" if large else "chart"
    scale = f'<li class="scale" aria-hidden="true"><svg>{"".join(_scale(axis))}</svg></li>'
    # Values are escaped where they enter: names and words by for_html, numbers by their format.
    html = f'<ol class="{kind}" aria-label="{for_html(label)}">{body}{scale}</ol>'
    return Markup(html)  # noqa: S704


def _row(row: ChartRow, name: str, axis: Axis, grid: str, mark_label: str) -> str:
    title = f' title="{for_html(row.name)}"' if name != row.name else ""
    note = f" <small>{for_html(row.note)}</small>" if row.note else ""
    tone = "" if row.tone == "plain" else f' class="{row.tone}"'
    bounds = f" <span>{for_html(row.bounds)}</span>" if row.bounds else ""
    track = grid + "".join(_marks(row, axis, mark_label))
    return (
        f'<li{tone}><span class="who"{title}><bdi>{for_html(name)}</bdi>{note}</span>'
        f'<svg aria-hidden="true">{track}</svg>'
        f'<span class="says"><b>{for_html(row.figure)}</b>{bounds}</span></li>'
    )


def _grid(axis: Axis) -> Iterator[str]:
    for value, _ in axis.ticks:
        if axis.reference is None or not math.isclose(value, axis.reference, abs_tol=1e-9):
            yield f'<line class="grid" {_across(axis.position(value))} y1="0" y2="100%"/>'
    if axis.reference is not None:
        yield f'<line class="reference" {_across(axis.position(axis.reference))} y1="0" y2="100%"/>'


def _across(x: float) -> str:
    return f'x1="{x:.1f}%" x2="{x:.1f}%"'


def _marks(row: ChartRow, axis: Axis, mark_label: str) -> Iterator[str]:
    if row.low is not None and row.high is not None:
        ends = f'x1="{axis.position(row.low):.1f}%" x2="{axis.position(row.high):.1f}%"'
        yield f'<line class="interval" {ends} y1="50%" y2="50%"/>'
    if row.mark is not None:
        width, height = _TICK
        yield (
            f'<rect class="mark" x="{axis.position(row.mark):.1f}%" y="50%" width="{width}"'
            f' height="{height}" transform="translate({-width / 2:g} {-height / 2:g})"/>'
        )
    if row.estimate is not None:
        yield f'<circle class="dot" cx="{axis.position(row.estimate):.1f}%" cy="50%" r="{_DOT}"/>'
    if row.mark is not None and mark_label:
        x = axis.position(row.mark)
        yield f'<text x="{x:.1f}%" y="2" text-anchor="middle">{for_html(mark_label)}</text>'


def _scale(axis: Axis) -> Iterator[str]:
    """Labels of the ticks, but for those on which the label of the reference would lie."""
    reference_extent = (101.0, 101.0)
    if axis.reference is not None:
        x = axis.position(axis.reference)
        reference_extent = _extent(x, axis.reference_label)
        words = for_html(axis.reference_label)
        yield f'<text x="{x:.1f}%" y="1rem" text-anchor="{_anchor(x)}">{words}</text>'
    for value, label in axis.ticks:
        x = axis.position(value)
        low, high = _extent(x, label)
        if high < reference_extent[0] or low > reference_extent[1]:
            inner = "" if min(x, 100 - x) < _AT_END else ' class="inner"'
            anchor = _anchor(x)
            yield f'<text{inner} x="{x:.1f}%" y="1rem" text-anchor="{anchor}">{for_html(label)}</text>'


def _extent(x: float, label: str) -> tuple[float, float]:
    """From where to where a label reaches, in percent of a narrow track."""
    width = _LETTER * (len(label) + 1)
    start = {"start": x, "middle": x - width / 2, "end": x - width}[_anchor(x)]
    return start, start + width


def _anchor(x: float) -> str:
    return "start" if x < _NEAR_END else "end" if x > 100 - _NEAR_END else "middle"
