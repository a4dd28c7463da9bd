"""Figures as SVG text and PNG bytes; the same data gives the same SVG to the byte.

matplotlib is imported on use: it takes as long to load as everything else together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from clash.extras import require

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DOTS_PER_INCH = 144
MOST_CELLS_WITH_NUMBERS = 16
MOST_INSIDE = 7
MOST_TICKS = 7
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "clash",
    "svg.fonttype": "none",
    "text.parse_math": False,  # a name with two dollar signs is no formula
}


@dataclass(frozen=True)
class PlotCurve:
    """A line of a plot.

    Attributes:
        error: half the height of the error bar at each point, or how far it reaches below and how
            far above; null for none.
        style: ``line``, ``points``, ``joined`` (points with a line through them), or ``level`` (a
            dashed horizontal line).
        colour: its place among the colours; by default the next one.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    error: Sequence[float] | tuple[Sequence[float], Sequence[float]] | None = None
    style: Literal["line", "points", "joined", "level"] = "line"
    colour: int | None = None


def svg(figure: Figure) -> str:
    """The figure as SVG text, with no date in it."""
    from io import StringIO

    from matplotlib import rc_context

    buffer = StringIO()
    with rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def png(figure: Figure) -> bytes:
    """The figure as PNG bytes."""
    from io import BytesIO

    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png`` into ``folder``, making it; the two paths."""
    folder.mkdir(parents=True, exist_ok=True)
    vector, raster = folder / f"{name}.svg", folder / f"{name}.png"
    vector.write_text(svg(figure), encoding="utf-8")
    raster.write_bytes(png(figure))
    return [vector, raster]


def heat_map(
    matrix: npt.NDArray[np.float64],
    names: Sequence[str],
    *,
    title: str,
    unit: str,
    frames: Sequence[tuple[int, int]] = (),
) -> Figure:
    """A square matrix around zero: blue below, red above, grey where there is no value.

    Args:
        matrix: shape (n, n); NaN is no value.
        names: n names, for both axes.
        title: over the figure.
        unit: what the numbers are, beside the colour bar.
        frames: first row and the one after the last of blocks on the diagonal to be framed.
    """
    require("matplotlib")
    import numpy as np
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    n = len(names)
    scale = float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
    side = 2.6 + 0.34 * n
    with rc_context(STYLE):
        figure = Figure(figsize=(side + 0.9, side), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(matrix, cmap="RdBu_r", vmin=-scale, vmax=scale)
        axes.set_facecolor("0.88")
        axes.set_xticks(range(n), names, rotation=90)
        axes.set_yticks(range(n), names)
        axes.tick_params(length=0)
        axes.set_title(title, loc="left")
        if n <= MOST_CELLS_WITH_NUMBERS:
            _write_numbers(axes, matrix, scale)
        for begin, end in frames:
            corners = [begin - 0.5, end - 0.5, end - 0.5, begin - 0.5, begin - 0.5]
            sides = [begin - 0.5, begin - 0.5, end - 0.5, end - 0.5, begin - 0.5]
            axes.plot(corners, sides, color="black", linewidth=1.5, clip_on=False)
        figure.colorbar(image, ax=axes, shrink=0.8, label=unit)
    return figure


def _write_numbers(axes: Axes, matrix: npt.NDArray[np.float64], scale: float) -> None:
    for row, values in enumerate(matrix):
        for column, value in enumerate(values):
            if value == value:  # NaN has no number
                colour = "white" if abs(value) > 0.6 * scale else "black"
                axes.text(
                    column, row, f"{value:.2f}", ha="center", va="center", color=colour, size=6
                )


def curves(
    panels: Sequence[Sequence[PlotCurve]],
    *,
    titles: Sequence[str],
    x_label: str,
    y_label: str,
    log_x: bool = False,
    y_range: tuple[float, float] | None = None,
) -> Figure:
    """Panels of curves side by side, with one axis title for all and a legend each."""
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(4.6 * len(panels), 3.6), layout="constrained")
        for index, (panel, title) in enumerate(zip(panels, titles, strict=True), start=1):
            axes = figure.add_subplot(1, len(panels), index)
            for curve in panel:
                _draw(axes, curve)
            axes.set_title(title, loc="left")
            axes.set_xlabel(x_label)
            axes.set_ylabel(y_label)
            if log_x:
                axes.set_xscale("log")
                _tick_values(axes, panel)
            if y_range is not None:
                axes.set_ylim(*y_range)
            _legend(axes, len(panel))
    return figure


def _tick_values(axes: Axes, panel: Sequence[PlotCurve]) -> None:
    """The values of the curves as ticks: powers of ten say little of 50 to 700 labels."""
    values = sorted({float(x) for curve in panel for x in curve.x})
    every = -(-len(values) // MOST_TICKS) or 1
    ticks = values[::-1][::every][::-1]
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.set_xticks([], minor=True)


def _legend(axes: Axes, curves: int) -> None:
    """Inside the panel, or beside it where there are too many curves to leave it room."""
    if curves > MOST_INSIDE:
        axes.legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    else:
        axes.legend(frameon=False, fontsize=7)


def _draw(axes: Axes, curve: PlotCurve) -> None:
    colour = None if curve.colour is None else f"C{curve.colour}"
    if curve.style == "level":
        axes.axhline(curve.y[0], label=curve.name, linestyle="--", linewidth=0.9, color="0.4")
    elif curve.error is not None or curve.style in {"points", "joined"}:
        axes.errorbar(
            curve.x,
            curve.y,
            yerr=curve.error,
            label=curve.name,
            fmt="o-" if curve.style == "joined" else "o",
            markersize=3.5,
            linewidth=1.2,
            capsize=2,
            color=colour,
        )
    else:
        axes.plot(curve.x, curve.y, label=curve.name, linewidth=1.2, color=colour)
