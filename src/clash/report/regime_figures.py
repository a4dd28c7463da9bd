"""Pictures of a calibration: the regime map, the gain of each further judge, and the risk curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import to_dict
from clash.extras import require
from clash.report.plots import STYLE, save

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from clash.analysis.calibration.regimes import PanelRegimes
    from clash.analysis.calibration.risk import RiskByLabels
    from clash.stats.selection.regime import JudgeSteps, RegimeCell, RegimeMap

SHORT = {
    "majority": "majority",
    "mean-isotonic": "mean",
    "one-coin-isotonic": "one-coin",
    "dawid-skene-isotonic": "D-S",
    "ridge-isotonic": "ridge",
    "logistic": "logistic",
    "anchored-logistic": "anchored",
    "averaged": "averaged",
    "ridge-pairwise": "ridge ×",
    "logistic-pairwise": "logistic ×",
    "ising-temperature": "Ising",
    "joint-table": "TABLE",
    "joint-table-global": "TABLE",
    "hierarchical-backoff": "backoff",
    "residual-shrinkage": "hybrid",
}
LEAST_SCALE = 0.005
WIDTH, HEIGHT = 0.74, 0.37
"""Inches of a cell: two lines of text."""
KEY = (
    "name: the family with the lowest test error; number: the gap, in brackets where it is "
    "within two standard errors of 0"
)


def write_plots(regimes: PanelRegimes, risk: RiskByLabels, folder: Path) -> list[Path]:
    """The map, the stopping diagnostic and the risk curve as SVG and PNG; the paths written."""
    paths = save(regime_figure([regimes.map], [regimes.title]), folder, "regime-map")
    if regimes.steps:
        paths += save(stopping_figure(regimes.steps), folder, "stopping")
    return paths + save(risk_figure(risk), folder, "risk")


def risk_figure(curve: RiskByLabels) -> Figure:
    """How many rows are answered by number of labels: a panel for each promise, a line for each risk."""
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    promises = (
        ("on_average", "the risk is kept on average"),
        ("with_confidence", f"the risk is kept with {curve.level:.0%} confidence"),
    )
    with rc_context(STYLE):
        figure = Figure(figsize=(8.8, 3.4), layout="constrained")
        axes = figure.subplots(1, len(promises), sharey=True)
        for axis, (name, title) in zip(axes, promises, strict=True):
            for max_risk in sorted({step.max_risk for step in curve.steps}):
                steps = [step for step in curve.steps if step.max_risk == max_risk]
                labels = [step.labels for step in steps]
                shares = [getattr(step, name) for step in steps]
                axis.plot(labels, shares, "-o", markersize=3, label=f"at most {max_risk:.0%} wrong")
            axis.axvline(curve.labels, linestyle="--", linewidth=0.9, color="0.4")
            axis.set_xscale("log")
            axis.set(title=title, xlabel="labels (dashed: those there are)", ylim=(-0.02, 1.02))
        axes[0].set_ylabel("share of rows answered")
        axes[0].legend(frameon=False, fontsize=7)
    return figure


def regime_figure(maps: Sequence[RegimeMap], titles: Sequence[str]) -> Figure:
    """Maps one above the other: who wins at each prefix and budget, coloured by scalar minus table.

    Red cells are the joint table's, blue ones a scalar family's; the name is that of the family
    with the least test error of all, the number the gap. It stands in brackets within two
    standard errors of none.
    """
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    gaps = [abs(cell.gap) for regime_map in maps for cell in regime_map.cells() if _has_gap(cell)]
    scale = max([LEAST_SCALE, *gaps])
    wide = WIDTH * max(len(m.budgets) for m in maps) + 1.7
    heights = [max(len(m.sizes), 3) for m in maps]
    tall = HEIGHT * sum(heights) + 0.75 * len(maps) + 0.4
    with rc_context(STYLE):
        figure = Figure(figsize=(max(wide, 5.6), tall), layout="constrained")
        axes = figure.subplots(len(maps), 1, squeeze=False, height_ratios=heights)[:, 0]
        images = [
            _map(axis, regime_map, title, scale)
            for axis, regime_map, title in zip(axes, maps, titles, strict=True)
        ]
        figure.colorbar(
            images[-1],
            ax=list(axes),
            shrink=min(1.0, 3 / tall),
            label="best scalar - joint table, test MSE",
        )
        figure.supxlabel(KEY, fontsize=6.5, x=0.01, ha="left")
    return figure


def map_json(regime_map: RegimeMap) -> list[dict[str, Any]]:
    """A map, cell by cell."""
    return [{**to_dict(cell), "clear": cell.clear} for cell in regime_map.cells()]


def _has_gap(cell: RegimeCell) -> bool:
    return not math.isnan(cell.gap)


def _map(axes: Axes, regime_map: RegimeMap, title: str, scale: float) -> AxesImage:
    import numpy as np

    gap = np.array(
        [[regime_map.cell(n, k).gap for n in regime_map.budgets] for k in regime_map.sizes]
    )
    image = axes.imshow(gap, cmap="RdBu_r", vmin=-scale, vmax=scale, aspect="auto", origin="lower")
    axes.set_facecolor("0.9")
    axes.set_xticks(range(len(regime_map.budgets)), [str(n) for n in regime_map.budgets])
    axes.set_yticks(range(len(regime_map.sizes)), [str(k) for k in regime_map.sizes])
    axes.tick_params(length=0)
    axes.set_xlabel("labels n")
    axes.set_ylabel("judges K")
    axes.set_title(title, loc="left")
    for spine in axes.spines.values():
        spine.set_visible(False)
    for x, n in enumerate(regime_map.budgets):
        for y, k in enumerate(regime_map.sizes):
            _write(axes, x, y, regime_map.cell(n, k), scale)
    return image


def _write(axes: Axes, x: int, y: int, cell: RegimeCell, scale: float) -> None:
    if cell.winner is None:
        return
    dark = _has_gap(cell) and abs(cell.gap) > 0.6 * scale
    style: dict[str, Any] = {"ha": "center", "va": "center", "color": "white" if dark else "black"}
    axes.text(x, y + 0.17, SHORT.get(cell.winner, cell.winner), size=6.5, **style)
    if _has_gap(cell):
        number = f"{cell.gap:+.3f}"
        text = number if cell.clear else f"({number})"
        axes.text(x, y - 0.2, text, size=6, **style)


def stopping_figure(families: Sequence[tuple[str, JudgeSteps]]) -> Figure:
    """What a judge more changes, against what it costs in patterns per label; a panel a family.

    The band holds the middle 80% of the steps, the line their median; below zero a judge helps.
    """
    require("matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(4.4 * len(families) + 0.4, 3.5), layout="constrained")
        axes = figure.subplots(1, len(families), squeeze=False, sharey=True)[0]
        for axis, (name, steps) in zip(axes, families, strict=True):
            _steps(axis, name, steps)
        axes[0].set_ylabel("change in test MSE from K to the next")
        figure.legend(
            *axes[0].get_legend_handles_labels(),
            loc="outside lower center",
            ncols=4,
            frameon=False,
            fontsize=7,
        )
    return figure


def _steps(axes: Axes, name: str, steps: JudgeSteps) -> None:
    helpful = float((steps.change < 0).mean()) if len(steps.change) else math.nan
    axes.scatter(
        steps.cost,
        steps.change,
        c=steps.k,
        cmap="viridis",
        s=7,
        alpha=0.5,
        linewidths=0,
        label="a step of a path in a split (lighter: later)",
    )
    bands = steps.bands()
    if bands:
        cost = [band.cost for band in bands]
        low, high = [band.low for band in bands], [band.high for band in bands]
        axes.fill_between(cost, low, high, color="0.5", alpha=0.25, linewidth=0, label="10 to 90%")
        middle = [band.middle for band in bands]
        axes.plot(cost, middle, "-o", color="black", linewidth=1.4, markersize=3, label="median")
    axes.axhline(0, linestyle="--", linewidth=0.9, color="0.4")
    axes.set_title(f"{name}: {helpful:.0%} of the steps help", loc="left")
    axes.set_xlabel("rise in H / n, effective patterns per label")
