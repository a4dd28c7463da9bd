"""A scatter of named points, drawn only where every name finds room on a phone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from clash.escape import for_html

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markupsafe import Markup

    from clash.pages.charts import Axis, Tone

NARROW = 350
"""Pixels of the narrowest screen on which names must not collide."""
_HEIGHT, _TOP, _BOTTOM = 336, 12, 288
_LEFT, _LETTER, _LINE, _DOT = 44, 7.4, 16, 8
_MOST = 12
_TICKS_APART = 0.17
"""Share of the axis between two prices, so that their labels do not meet on a narrow screen."""


@dataclass(frozen=True)
class ScatterPoint:
    """A point: what it is called, where it stands, the interval of its height.

    Attributes:
        caption: a second line under the name, such as its price.
        front: whether nothing beats it on both axes.
    """

    name: str
    caption: str
    x: float
    y: float
    low: float
    high: float
    front: bool = False
    tone: Tone = "plain"


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, box: _Box) -> bool:
        return (
            self.left < box.right
            and box.left < self.right
            and self.top < box.bottom
            and box.top < self.bottom
        )


def scatter_chart(
    points: Sequence[ScatterPoint], across: Axis, up: Axis, *, label: str, title: str
) -> Markup | None:
    """Points over two axes; null where the names would collide on a narrow screen.

    Args:
        points: what to draw; fewer than three are no scatter.
        across: the horizontal axis, which has its own scale: values are placed as they are.
        up: the vertical axis.
        label: what the chart shows, for people who hear it.
        title: of the horizontal axis.
    """
    from markupsafe import Markup

    if not 3 <= len(points) <= _MOST:
        return None
    sides = _sides(points, across, up)
    if sides is None:
        return None
    shapes = [*_axes(across, up, title), *_front(points, across, up)]
    for point, side in zip(points, sides, strict=True):
        shapes += _point(point, side, across, up)
    html = f'<svg class="scatter" role="img" aria-label="{for_html(label)}">{"".join(shapes)}</svg>'
    return Markup(html)  # noqa: S704 - every text in it went through for_html


def _percent(point: ScatterPoint, across: Axis) -> float:
    """Percent of the whole width: the left margin is room for the labels of the axis."""
    margin = 100 * _LEFT / NARROW
    return margin + (100 - margin) * across.position(point.x) / 100


def _height(value: float, up: Axis) -> float:
    return _BOTTOM - (_BOTTOM - _TOP) * up.position(value) / 100


def _sides(points: Sequence[ScatterPoint], across: Axis, up: Axis) -> list[int] | None:
    """For each point, whether its name stands right (1) or left (-1) of it, so that none collide."""
    centres = [(_percent(p, across) * NARROW / 100, _height(p.y, up)) for p in points]
    dots = [_Box(x - _DOT, y - _DOT, x + _DOT, y + _DOT) for x, y in centres]
    labels: list[_Box] = []
    sides: list[int] = []
    for index, (x, y) in enumerate(centres):
        width = _LETTER * max(len(points[index].name), len(points[index].caption))
        obstacles = [*labels, *dots[:index], *dots[index + 1 :]]
        for side in (1, -1):
            start = x + 12 if side == 1 else x - 12 - width
            box = _Box(start, y - _LINE, start + width, y + _LINE)
            inside = box.left >= _LEFT and box.right <= NARROW
            if inside and not any(box.meets(obstacle) for obstacle in obstacles):
                labels.append(box)
                sides.append(side)
                break
        else:
            return None
    return sides


def _axes(across: Axis, up: Axis, title: str) -> Iterator[str]:
    margin = 100 * _LEFT / NARROW
    for value, label in up.ticks:
        y = _height(value, up)
        yield f'<line class="grid" x1="{margin:.1f}%" x2="100%" y1="{y:.0f}" y2="{y:.0f}"/>'
        yield f'<text x="0" y="{y + 4:.0f}">{for_html(label)}</text>'
    for value, label in across.ticks:
        x = margin + (100 - margin) * across.position(value) / 100
        anchor = "end" if x > 95 else "middle"
        yield f'<text x="{x:.1f}%" y="{_BOTTOM + 20}" text-anchor="{anchor}">{for_html(label)}</text>'
    yield f'<text class="name" x="100%" y="{_HEIGHT - 6}" text-anchor="end">{for_html(title)}</text>'


def _front(points: Sequence[ScatterPoint], across: Axis, up: Axis) -> Iterator[str]:
    """The front as steps between the points that nothing beats."""
    front = sorted((p for p in points if p.front), key=lambda p: (p.x, p.y))
    for first, second in pairwise(front):
        x1, x2 = _percent(first, across), _percent(second, across)
        y1, y2 = _height(first.y, up), _height(second.y, up)
        yield f'<line class="reference" x1="{x1:.1f}%" x2="{x2:.1f}%" y1="{y1:.0f}" y2="{y1:.0f}"/>'
        yield f'<line class="reference" x1="{x2:.1f}%" x2="{x2:.1f}%" y1="{y1:.0f}" y2="{y2:.0f}"/>'


def _point(point: ScatterPoint, side: int, across: Axis, up: Axis) -> Iterator[str]:
    x, y = _percent(point, across), _height(point.y, up)
    low, high = _height(point.low, up), _height(point.high, up)
    anchor = "start" if side == 1 else "end"
    yield f'<g class="{point.tone}">'
    yield f'<line class="interval" x1="{x:.1f}%" x2="{x:.1f}%" y1="{low:.0f}" y2="{high:.0f}"/>'
    yield f'<circle class="dot" cx="{x:.1f}%" cy="{y:.0f}" r="6.5"/>'
    for shift, words, kind in ((-2, point.name, ' class="name"'), (14, point.caption, "")):
        yield (
            f'<text{kind} x="{x:.1f}%" y="{y + shift:.0f}" dx="{12 * side}" text-anchor="{anchor}">'
            f"{for_html(words)}</text>"
        )
    yield "</g>"


def price_axis(prices: Sequence[float]) -> Axis:
    """A logarithmic axis of prices above zero, with ticks at 1, 2 and 5 times powers of ten.

    Places are logarithms: give ``log10`` of a price as ``x``. No two ticks have the same label.
    """
    from clash.pages.charts import Axis

    low, high = math.log10(min(prices)), math.log10(max(prices))
    pad = max((high - low) * 0.12, 0.15)
    low, high = low - pad, high + pad
    ticks = [
        (math.log10(step * 10.0**power), step * 10.0**power)
        for power in range(math.floor(low), math.ceil(high) + 1)
        for step in (1, 2, 5)
        if low <= math.log10(step * 10.0**power) <= high
    ]
    apart: list[tuple[float, str]] = []
    for logarithm, price in ticks:
        if not apart or logarithm - apart[-1][0] >= _TICKS_APART * (high - low):
            apart.append((logarithm, f"${price:,.0f}" if price >= 1 else dollars(price)))
    return Axis(low, high, tuple(apart))


def dollars(usd: float) -> str:
    """A price with the digits that tell it from another: ``$1,200``, ``$6.40``, ``$0.0071``."""
    if usd == 0:
        return "$0"
    if usd >= 100:
        return f"${usd:,.0f}"
    if usd >= 1:
        return f"${usd:.2f}"
    digits = 1 - math.floor(math.log10(usd))
    return f"${usd:.{digits}f}"
