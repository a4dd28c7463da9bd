"""Small pictures made of rectangles, lines, dots and words, written as SVG or PNG.

A picture says what lies where and in which tone; the theme gives each tone its colour. An SVG
needs no plotting library, loads nothing, and names fonts that systems have.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Literal

from clash.escape import for_xml
from clash.extras import require
from clash.pages import COLOURS

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.artist import Artist

    from clash.pages.tokens import Theme

Anchor = Literal["start", "middle", "end"]
STEPS = 10
"""Heat is drawn in steps 0 to 10: tones ``seq-0`` (none) to ``seq-10``, ``div-5`` is even."""
_FAMILY = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans',sans-serif"
_FONTS = (
    *(
        "Inter",
        "Segoe UI",
        "Helvetica Neue",
        "Arial",
        "Liberation Sans",
        "Noto Sans",
        "DejaVu Sans",
    ),
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "PingFang SC", "Microsoft YaHei"),
)

_ENDS: dict[Theme, dict[str, tuple[str, ...]]] = {
    theme: {
        "seq": (colours["paper"], colours["accent"]),
        "div": (colours["grey"], colours["paper"], colours["accent"]),
    }
    for theme, colours in COLOURS.items()
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
    tone: str = "hairline"
    width: float = 1
    is_dashed: bool = False


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
    bold: bool = False


Shape = Rect | StraightLine | Dot | Word


@dataclass(frozen=True)
class Picture:
    """A picture, in pixels.

    Attributes:
        name: of a file.
        title: what it shows, in a few words; :func:`with_title` writes it over the shapes.
        description: what it shows, for someone who does not see it.
        left: where its left edge is, in the coordinates of the shapes; ``top`` likewise.
    """

    name: str
    title: str
    description: str
    width: float
    height: float
    shapes: tuple[Shape, ...]
    left: float = 0
    top: float = 0


def with_title(picture: Picture) -> Picture:
    """The picture with its title above it and a margin around both."""
    heading = Word(0, -16, picture.title, size=15)
    width = max(picture.width, 8.5 * len(picture.title)) + 32
    return replace(
        picture, width=width, height=picture.height + 56, left=-16, top=-40,
        shapes=(heading, *picture.shapes),
    )  # fmt: skip


def heat(scale: Literal["seq", "div"], share: float) -> str:
    """The tone of a cell, for a share between 0 and 1."""
    return f"{scale}-{round(min(max(share, 0.0), 1.0) * STEPS)}"


def palette(theme: Theme) -> dict[str, str]:
    """Every tone as a colour.

    The tones are the roles of the colours of pages, ``soft`` (a pale accent) and the steps of heat;
    ``X-text`` is what is readable on ``X``.
    """
    colours = dict(COLOURS[theme])
    colours["soft"] = _between((colours["paper"], colours["accent"]), 0.4)
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


def svg(picture: Picture, theme: Theme = "light") -> str:
    """The picture as an SVG file."""
    x, y, width, height = picture.left, picture.top, picture.width, picture.height
    colours = palette(theme)
    shapes = (Rect(x, y, width, height, "paper"), *picture.shapes)
    body = "".join(_markup(shape, colours[shape.tone]) for shape in shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="{x:g} {y:g} {width:g} {height:g}" role="img" font-family="{_FAMILY}">'
        f"<title>{_safe(picture.title)}</title><desc>{_safe(picture.description)}</desc>"
        f"{body}</svg>\n"
    )


def _markup(shape: Shape, colour: str) -> str:
    match shape:
        case Rect(x, y, width, height):
            return (
                f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
                f' fill="{colour}"/>'
            )
        case StraightLine(x1, y1, x2, y2, _, width, dashed):
            end = ' stroke-dasharray="4 3"' if dashed else ' stroke-linecap="round"'
            return (
                f'<path d="M{_n(x1)} {_n(y1)}L{_n(x2)} {_n(y2)}" stroke="{colour}"'
                f' stroke-width="{_n(width)}"{end}/>'
            )
        case Dot(x, y, radius):
            return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" fill="{colour}"/>'
        case Word(x, y, text, anchor, _, size, bold):
            weight = ' font-weight="650"' if bold else ""
            side = "" if anchor == "start" else f' text-anchor="{anchor}"'
            return (
                f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"{weight}{side}'
                f' fill="{colour}">{_safe(text)}</text>'
            )


def _safe(text: str) -> str:
    return escape(for_xml(text))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def png(picture: Picture, theme: Theme = "light", *, dpi: int = 200) -> bytes:
    """The picture as PNG; at 100 dots per inch it is as large as the SVG.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    require("matplotlib")
    import warnings
    from io import BytesIO

    from matplotlib import font_manager, rc_context
    from matplotlib.figure import Figure

    x, y, width, height = picture.left, picture.top, picture.width, picture.height
    colours = palette(theme)
    present = set(font_manager.get_font_names())
    fonts = [name for name in _FONTS if name in present]
    with rc_context({"font.family": fonts, "text.parse_math": False}), warnings.catch_warnings():
        # A letter that no font has is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        figure = Figure((width / 100, height / 100), dpi, facecolor=colours["paper"])
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(x, x + width)
        axes.set_ylim(y + height, y)
        axes.set_axis_off()
        for order, shape in enumerate(picture.shapes):
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
            dash = (0, (4 / width, 3 / width)) if dashed else "-"
            return Line2D([x1, x2], [y1, y2], color=colour, linewidth=width * points, ls=dash,
                          solid_capstyle="round")  # fmt: skip
        case Dot(x, y, radius):
            return Circle((x, y), radius, color=colour, linewidth=0)
        case Word(x, y, text, anchor, _, size, bold):
            side = {"start": "left", "middle": "center", "end": "right"}[anchor]
            return Text(x, y, for_xml(text), color=colour, fontsize=size * points, ha=side,
                        va="baseline", fontweight="bold" if bold else "normal")  # fmt: skip


def save(pictures: list[Picture], folder: Path) -> list[Path]:
    """Write each picture with its title as ``NAME.svg`` and ``NAME.png`` into ``folder``."""
    require("matplotlib")  # before the first SVG is written
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for picture in map(with_title, pictures):
        vector, raster = (folder / f"{picture.name}.{kind}" for kind in ("svg", "png"))
        vector.write_text(svg(picture), encoding="utf-8", newline="\n")
        raster.write_bytes(png(picture))
        paths += [vector, raster]
    return paths
