"""Small pictures made of rectangles, lines, dots and words.

One description serves three: SVG in a page (coloured by its style sheet, so that light, dark and
paper each look right), SVG on its own, and PNG. The first two need no plotting library, whose
import would take longer than everything else in a report.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

from clash.escape import visible
from clash.extras import require
from clash.pages import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.artist import Artist

    from clash.pages.tokens import Theme

Anchor = Literal["start", "middle", "end"]
STEPS = 10
"""Heat is drawn in steps 0 to 10: classes ``seq-0`` (none) to ``seq-10``, ``div-5`` is even."""

_ENDS: dict[Theme, dict[str, tuple[str, ...]]] = {
    theme: {
        "seq": (colours["paper"], colours["accent"]),
        "div": (colours["grey"], colours["paper"], colours["accent"]),
    }
    for theme, colours in COLOURS.items()
}


def _flat(theme: Theme) -> dict[str, str]:
    """The tones of shapes, by the roles of the colours of pages."""
    colours = COLOURS[theme]
    accent, paper = colours["accent"], colours["paper"]
    return {
        "ink": colours["ink"],
        "muted": colours["ink-2"],
        "grid": colours["hairline"],
        "accent": accent,
        "soft": _between((paper, accent), 0.4),
        "bad": colours["caution"],
        "none": colours["wash"],
    }


@dataclass(frozen=True)
class Rect:
    """A filled rectangle; ``x`` and ``y`` are its upper left corner."""

    x: float
    y: float
    width: float
    height: float
    tone: str


@dataclass(frozen=True)
class StraightLine:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    tone: str = "grid"
    width: float = 1
    dashed: bool = False


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    tone: str = "accent"


@dataclass(frozen=True)
class Word:
    """A line of text; ``y`` is its base line."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"
    tone: str = "ink"
    size: float = 12


Shape = Rect | StraightLine | Dot | Word


@dataclass(frozen=True)
class Picture:
    """A picture, in pixels from the upper left corner.

    Attributes:
        name: of a file.
        title: over it; not among the shapes, for a page writes it itself.
        description: what it shows, for someone who does not see it.
    """

    name: str
    title: str
    description: str
    width: float
    height: float
    shapes: tuple[Shape, ...]


def heat(scale: Literal["seq", "div"], share: float) -> str:
    """The tone of a cell, for a share between 0 and 1."""
    return f"{scale}-{round(min(max(share, 0.0), 1.0) * STEPS)}"


def palette(theme: Theme) -> dict[str, str]:
    """Every tone as a colour; ``X-text`` is what is readable on ``X``."""
    colours = _flat(theme)
    for scale, ends in _ENDS[theme].items():
        for step in range(STEPS + 1):
            colour = _between(ends, step / STEPS)
            colours[f"{scale}-{step}"] = colour
            colours[f"{scale}-{step}-text"] = "#000000" if _light(colour) else "#ffffff"
    return colours


def _between(ends: tuple[str, ...], share: float) -> str:
    position = share * (len(ends) - 1)
    left = min(int(position), len(ends) - 2)
    low, high = (_channels(ends[left + i]) for i in (0, 1))
    channels = (a + (b - a) * (position - left) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{round(channel):02x}" for channel in channels)


def _channels(colour: str) -> list[int]:
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _light(colour: str) -> bool:
    """Whether black is easier to read on it than white, by relative luminance."""
    linear = [(c / 255 / 12.92) if c < 11 else ((c / 255 + 0.055) / 1.055) ** 2.4
              for c in _channels(colour)]  # fmt: skip
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179


def style(theme: Theme, within: str = ".plot") -> str:
    """The tones as rules of a style sheet."""
    tones = palette(theme)
    fills = (f"{within} .{tone}{{fill:{colour}}}" for tone, colour in tones.items())
    strokes = (f"{within} line.{tone}{{stroke:{tones[tone]}}}" for tone in _flat(theme))
    return "".join((*fills, *strokes))


def svg(picture: Picture) -> str:
    """The picture as an SVG file, with its title in it."""
    description = f"<title>{_safe(picture.title)}</title><desc>{_safe(picture.description)}</desc>"
    x, y, width, height = _frame(picture)
    shapes = (Rect(x, y, width, height, "paper"), _heading(picture), *picture.shapes)
    rules = style("light") + ".plot .paper{fill:#fff}.plot text{font-family:sans-serif}"
    head = f'{_opening_tag(x, y, width, height)} xmlns="http://www.w3.org/2000/svg"'
    body = "".join(map(_markup, shapes))
    return f"{head}>{description}<style>{rules}</style>{body}</svg>\n"


def _opening_tag(x: float, y: float, width: float, height: float) -> str:
    box = f'viewBox="{x:g} {y:g} {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg class="plot" role="img" {box}'


def _frame(picture: Picture) -> tuple[float, float, float, float]:
    """Corner and size with a margin, and room for the title."""
    width = max(picture.width, 8.5 * len(picture.title))
    return -16, -40, width + 32, picture.height + 56


def _heading(picture: Picture) -> Word:
    return Word(0, -16, picture.title, size=15)


def _markup(shape: Shape) -> str:
    match shape:
        case Rect(x, y, width, height, tone):
            return (
                f'<rect class="{tone}" x="{_n(x)}" y="{_n(y)}" width="{_n(width)}"'
                f' height="{_n(height)}"/>'
            )
        case StraightLine(x1, y1, x2, y2, tone, width, dashed):
            dash = ' stroke-dasharray="4 3"' if dashed else ""
            return (
                f'<line class="{tone}" x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
                f' stroke-width="{_n(width)}"{dash}/>'
            )
        case Dot(x, y, radius, tone):
            return f'<circle class="{tone}" cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"/>'
        case Word(x, y, text, anchor, tone, size):
            return (
                f'<text class="{tone}" x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"'
                f' font-size="{_n(size)}">{_safe(text)}</text>'
            )


def _safe(text: str) -> str:
    return escape(visible(text))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def png(picture: Picture) -> bytes:
    """The picture as PNG, at twice its size."""
    require("matplotlib")
    from io import BytesIO

    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"font.family": "DejaVu Sans", "text.parse_math": False}):
        x, y, width, height = _frame(picture)
        figure = Figure(figsize=(width / 100, height / 100), dpi=200)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(x, x + width)
        axes.set_ylim(y + height, y)
        axes.set_axis_off()
        colours = palette("light")
        for order, shape in enumerate((_heading(picture), *picture.shapes)):
            # In the order given, as in SVG: left to itself, lines lie over dots.
            axes.add_artist(_artist(shape, colours[shape.tone])).set_zorder(order)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _artist(shape: Shape, colour: str) -> Artist:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Circle, Rectangle
    from matplotlib.text import Text

    points = 72 / 100  # of a pixel at 100 dots per inch
    match shape:
        case Rect(x, y, width, height):
            return Rectangle((x, y), width, height, color=colour, linewidth=0)
        case StraightLine(x1, y1, x2, y2, _, width, dashed):
            dash = "--" if dashed else "-"
            return Line2D([x1, x2], [y1, y2], color=colour, linewidth=width * points, ls=dash)
        case Dot(x, y, radius):
            return Circle((x, y), radius, color=colour, linewidth=0)
        case Word(x, y, text, anchor, _, size):
            side = {"start": "left", "middle": "center", "end": "right"}[anchor]
            return Text(x, y, text, color=colour, fontsize=size * points * 0.94, ha=side,
                        va="baseline")  # fmt: skip


def save(pictures: list[Picture], folder: Path) -> list[Path]:
    """Write each picture as ``NAME.svg`` and ``NAME.png`` into ``folder``, making it."""
    require("matplotlib")  # before the first SVG is written
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for picture in pictures:
        vector, raster = (folder / f"{picture.name}.{kind}" for kind in ("svg", "png"))
        vector.write_text(svg(picture), encoding="utf-8", newline="\n")
        raster.write_bytes(png(picture))
        paths += [vector, raster]
    return paths
