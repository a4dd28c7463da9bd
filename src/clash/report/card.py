"""The verdict card: headline, interval chart and evidence in a picture of 1200 x 630.

For a README, a slide, a pull request. The SVG loads nothing and names fonts that systems have; the
text is measured with the widths of DejaVu Sans, the widest of them, so that it fits in each.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from clash.errors import ConfigError
from clash.escape import for_xml
from clash.extras import require
from clash.pages.names import short_names
from clash.report.answer_chart import AnswerChart
from clash.report.drawing import Dot, Picture, StraightLine, Word, png, svg
from clash.report.formats import plural
from clash.report.headline import run_headline
from clash.wording import with_whole_figures

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clash.analysis.findings import Findings
    from clash.pages import Axis, ChartRow
    from clash.pages.tokens import Theme
    from clash.report.drawing import Shape
    from clash.report.headline import Headline

WIDTH, HEIGHT = 1200, 630
_LEFT, _RIGHT = 72, 1128
_FIGURE_X, _TRACK_END = 964, 850
_CHART_END, _RULE_Y, _FOOT_Y = 516, 544, 590
_MOST_ROWS = 6
_LEAST_PITCH = 32
_NAME_ROOM = 400
_SIZES = ((58, 2), (52, 2), (46, 2), (40, 2), (44, 3), (40, 3), (36, 3), (32, 3), (28, 3))
"""Sizes of the headline, and the most lines in each."""
# Hundredths of an em of the letters from blank to tilde, in DejaVu Sans and DejaVu Sans Bold.
_REGULAR = (32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64,
            64, 64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56,
            86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63,
            55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59,
            59, 52, 64, 34, 64, 84)  # fmt: skip
_BOLD = (35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70,
         70, 70, 70, 40, 40, 84, 84, 84, 58, 100, 77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100,
         84, 85, 73, 85, 77, 72, 68, 81, 77, 110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67, 72, 59, 72,
         68, 44, 72, 71, 34, 34, 67, 34, 104, 71, 69, 72, 72, 49, 60, 48, 71, 65, 92, 65, 65, 58, 71,
         37, 71, 84)  # fmt: skip


@dataclass(frozen=True)
class Card:
    """What a card shows.

    Attributes:
        source: whose answer it is: the prompts, or the run.
        facts: over how much: prompts, judges, labels.
        chart: what the answer rests on.
    """

    source: str
    facts: str
    headline: Headline
    chart: AnswerChart

    @property
    def description(self) -> str:
        """The chart in words, for someone who does not see it."""
        rows = (f"{row.name} {row.figure} {row.bounds}".strip() for row in self.chart.rows)
        return f"{self.chart.measure}, 95% intervals: {', '.join(rows)}. {self.facts}."


def verdict_card(findings: Findings, source: str | None = None) -> Card:
    """The card of a run.

    Args:
        findings: of the run.
        source: the name of the prompts; by default the id of the run.
    """
    judges = sum(judge.role == "voting" for judge in findings.judges)
    noun = "item" if findings.kind == "validate" else "prompt"
    labels = findings.label_concordance
    facts = [plural(findings.coverage.items, noun), plural(judges, "judge")]
    if labels is not None:
        facts.append(plural(labels.n, "human label"))
    return Card(
        source or findings.run,
        " · ".join(facts),
        run_headline(findings),
        AnswerChart.of(findings),
    )


def write_card(card: Card, path: Path, theme: Theme = "light") -> None:
    """Write a card as the ending of the path says.

    Raises:
        ConfigError: as :func:`check_card_path`.
    """
    check_card_path(path)
    picture = card_picture(card)
    is_svg = path.suffix.lower() == ".svg"
    data = svg(picture, theme).encode() if is_svg else png(picture, theme, dpi=100)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def check_card_path(path: Path) -> None:
    """Refuse a path before a card is computed for it.

    Raises:
        ConfigError: another ending than .svg or .png.
        MissingPackageError: a PNG without matplotlib.
    """
    if path.suffix.lower() not in (".svg", ".png"):
        message = f"no card ends in {path.suffix!r}"
        raise ConfigError(message, field="--card", hint=".svg or .png")
    if path.suffix.lower() == ".png":
        require("matplotlib", field="--card", alternative="write an .svg")


# -- layout ----------------------------------------------------------------------------------------


def card_picture(card: Card) -> Picture:
    """The card as a picture."""
    shapes = tuple(_shapes(card))
    return Picture("card", card.headline.text, card.description, WIDTH, HEIGHT, shapes)


def _shapes(card: Card) -> Iterator[Shape]:
    yield Word(_LEFT, 82, "clash", size=26, bold=True)
    facts_width = _width(card.facts, 22)
    room = _RIGHT - _LEFT - 92 - facts_width - 40
    yield Word(_LEFT + 92, 82, _from_end(card.source, 26, room), tone="ink-2", size=26)
    yield Word(_RIGHT, 82, card.facts, "end", "ink-2", 22)
    lines, size = _headline_lines(card.headline.text)
    y = 110.0
    for line in lines:
        y += size * 1.14
        yield Word(_LEFT, y, line, size=size, bold=True)
    against = card.headline.contradiction or ""
    y += 14 if against else 0
    for line in _two_lines(against, 24, _RIGHT - _LEFT):
        y += 32
        yield Word(_LEFT, y, line, tone="caution", size=24, bold=True)
    yield from _chart(card.chart, y + 48)
    yield StraightLine(_LEFT, _RULE_Y, _RIGHT, _RULE_Y, "hairline", 2)
    yield from _foot(card)


def _headline_lines(text: str) -> tuple[list[str], int]:
    """The headline in at most three lines, in the largest size that does."""
    room, lines = _RIGHT - _LEFT, [text]
    for size, most in _SIZES:
        lines = _even(_wrap(text, size, room), size, room)
        if len(lines) <= most:
            return lines, size
    return [*lines[:2], _to_end(" ".join(lines[2:]), size, room)], size


def _two_lines(text: str, size: int, room: float) -> list[str]:
    lines = _wrap(text, size, room)
    if len(lines) > 2:
        return [lines[0], _to_end(" ".join(lines[1:]), size, room)]
    return _even(lines, size, room)


def _chart(chart: AnswerChart, top: float) -> Iterator[Shape]:
    if not chart.rows:
        return
    room = max(1, int((_CHART_END - top - 24) / _LEAST_PITCH))
    first = chart.first(min(room, _MOST_ROWS))
    rows, axis = first.rows, first.axis
    n_more = len(chart.rows) - len(rows)
    pitch = min(50.0, (_CHART_END - top - 24) / len(rows))
    top = max(top, _CHART_END - 24 - pitch * len(rows))
    size = 28 if pitch >= 44 else 24
    names, size = _names([row.name for row in rows], size)
    start = _LEFT + max(_width(name, size, bold=True) for name in names.values()) + 32
    ends = (start, float(_TRACK_END))
    reference, words = _x_position(axis, chart.reference[0], ends), chart.reference[1]
    yield Word(_LEFT, top + 8, chart.measure, tone="ink-2", size=22)
    label_x = max(reference, _LEFT + _width(chart.measure, 22) + 24 + _width(words, 22) / 2)
    yield Word(label_x, top + 8, words, "middle", "ink-2", 22)
    if n_more:
        yield Word(_RIGHT, top + 8, f"and {n_more} more", "end", "ink-2", 22)
    bottom = top + 24 + pitch * len(rows)
    yield StraightLine(reference, top + 22, reference, bottom - 6, "grey", 2, is_dashed=True)
    for number, row in enumerate(rows):
        y = top + 24 + pitch * (number + 0.5)
        yield from _chart_row(row, names[row.name], axis, ends, y, size)


def _chart_row(
    row: ChartRow, name: str, axis: Axis, ends: tuple[float, float], y: float, size: int
) -> Iterator[Shape]:
    is_plain = row.tone == "plain"
    tone = "ink" if is_plain else row.tone
    base = y + size * 0.36
    yield Word(_LEFT, base, name, tone=tone, size=size, bold=not is_plain)
    if row.estimate is None:
        yield Word(_RIGHT, base, row.note, "end", "ink-2", size - 4)
        return
    if row.low is not None and row.high is not None:
        low, high = (_x_position(axis, end, ends) for end in (row.low, row.high))
        yield StraightLine(low, y, high, y, "grey" if is_plain else tone, 5)
    yield Dot(_x_position(axis, row.estimate, ends), y, 11, "ink-2" if is_plain else tone)
    yield Word(_FIGURE_X, base, row.figure, "end", tone, size, bold=True)
    yield Word(_RIGHT, base, row.bounds, "end", "ink-2", size)


def _x_position(axis: Axis, value: float, ends: tuple[float, float]) -> float:
    return ends[0] + (ends[1] - ends[0]) * axis.position(value) / 100


def _foot(card: Card) -> Iterator[Shape]:
    """The evidence, whole, or what the intervals are."""
    for words in (card.headline.evidence, f"{card.chart.measure}, 95% intervals"):
        for size in (24, 22, 20, 18, 16):
            if words and _width(words, size) <= _RIGHT - _LEFT:
                yield Word(_LEFT, _FOOT_Y, words, tone="ink-2", size=size)
                return


def _names(names: Sequence[str], size: int) -> tuple[dict[str, str], int]:
    """Names shortened at the front, all of them apart, and the size in which they fit the column."""
    for smaller in (size, 24, 20):
        for characters in range(36, 11, -2):
            short = short_names(names, characters)
            if all(_width(name, smaller, bold=True) <= _NAME_ROOM for name in short.values()):
                return short, smaller
    return {name: _from_end(name, 20, _NAME_ROOM) for name in names}, 20


# -- text that fits --------------------------------------------------------------------------------


def _width(text: str, size: float, *, bold: bool = False) -> float:
    """Pixels that a text takes at most."""
    widths = _BOLD if bold else _REGULAR
    return sum(_em(letter, widths) for letter in for_xml(text)) * size


def _em(letter: str, widths: Sequence[int]) -> float:
    if " " <= letter <= "~":
        return widths[ord(letter) - 32] / 100
    if unicodedata.combining(letter):
        return 0.0
    return 1.4 if ord(letter) > 0xFFFF else 1.05


def _wrap(text: str, size: int, room: float) -> list[str]:
    """Bold words in lines; a word that is too long for a line is cut at its front."""
    lines: list[str] = []
    words = with_whole_figures(text).split(" ")
    for word in (_from_end(word, size, room, bold=True) for word in words if word):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and _width(longer, size, bold=True) <= room:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _even(lines: list[str], size: int, room: float) -> list[str]:
    """Lines of about the same length: no last line of one word."""
    lines = list(lines)
    for before, after in reversed(list(pairwise(range(len(lines))))):
        while True:
            head, _, word = lines[before].rpartition(" ")
            longer = f"{word} {lines[after]}"
            if not head or _width(longer, size, bold=True) > min(
                room, _width(head, size, bold=True)
            ):
                break
            lines[before], lines[after] = head, longer
    return lines


def _from_end(text: str, size: int, room: float, *, bold: bool = False) -> str:
    """The text without its front, as far as there is room."""
    if _width(text, size, bold=bold) <= room:
        return text
    start = 1
    while start < len(text) and _width(f"…{text[start:]}", size, bold=bold) > room:
        start += 1
    return f"…{text[start:]}"


def _to_end(text: str, size: int, room: float) -> str:
    """The bold text without its end, as far as there is room."""
    if _width(text, size, bold=True) <= room:
        return text
    stop = len(text) - 1
    while stop and _width(f"{text[:stop]}…", size, bold=True) > room:
        stop -= 1
    return f"{text[:stop].rstrip()}…"
