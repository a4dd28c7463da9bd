"""Bars: plain ones for amounts, stacked ones for counts that make up a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.escape import for_html
from clash.pages.names import short_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from clash.pages.charts import Tone

Kind = Literal["disagree", "agree", "unknown"]
_HEIGHTS: dict[Kind, int] = {"disagree": 22, "agree": 12, "unknown": 12}
"""The parts of a stack differ in height and filling, not in colour alone."""


@dataclass(frozen=True)
class BarRow:
    """An amount: ``value`` sets the length, ``figure`` says it, ``note`` stands beside the name."""

    name: str
    value: float
    figure: str
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True)
class Part:
    """A part of a stack: what it is, and how many."""

    kind: Kind
    count: int


@dataclass(frozen=True)
class StackRow:
    """Counts that make up a whole; its length is the whole's."""

    name: str
    parts: tuple[Part, ...]
    figure: str
    note: str = ""

    @property
    def total(self) -> int:
        """All counts together."""
        return sum(part.count for part in self.parts)


def bar_chart(rows: Sequence[BarRow], *, label: str) -> Markup:
    """Amounts as bars from zero; for people who hear it, a list of names and figures."""
    most = max((row.value for row in rows), default=0.0) or 1.0
    bars = [
        f'<rect class="bar-fill" x="0" y="50%" width="{100 * row.value / most:.1f}%" height="14"'
        ' transform="translate(0 -7)"/>'
        for row in rows
    ]
    return _chart(rows, bars, label)


def stack_chart(rows: Sequence[StackRow], *, label: str) -> Markup:
    """Counts as stacked bars that share one scale."""
    most = max((row.total for row in rows), default=0) or 1
    return _chart(rows, ["".join(_stack(row, most)) for row in rows], label)


def _stack(row: StackRow, most: int) -> Iterator[str]:
    left = 0.0
    for part in row.parts:
        width = 100 * part.count / most
        height = _HEIGHTS[part.kind]
        if part.count:
            yield (
                f'<rect class="{part.kind}" x="{left:.2f}%" y="50%" width="{max(width - 0.4, 0.4):.2f}%"'
                f' height="{height}" transform="translate(0 {-height / 2:g})"/>'
            )
        left += width


def _chart(rows: Sequence[BarRow | StackRow], tracks: Sequence[str], label: str) -> Markup:
    from markupsafe import Markup

    names = short_names([row.name for row in rows])
    lines = [_line(row, names[row.name], track) for row, track in zip(rows, tracks, strict=True)]
    html = f'<ol class="chart bars" aria-label="{for_html(label)}">{"".join(lines)}</ol>'
    return Markup(html)  # noqa: S704 - every text in it went through for_html


def _line(row: BarRow | StackRow, name: str, track: str) -> str:
    title = f' title="{for_html(row.name)}"' if name != row.name else ""
    note = f" <small>{for_html(row.note)}</small>" if row.note else ""
    tone = row.tone if isinstance(row, BarRow) else "plain"
    return (
        f'<li class="{tone}"><span class="who"{title}><bdi>{for_html(name)}</bdi>{note}</span>'
        f'<svg aria-hidden="true">{track}</svg>'
        f'<span class="says"><b>{for_html(row.figure)}</b></span></li>'
    )
