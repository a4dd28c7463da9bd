"""A rerun simulation as a table, JSON and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from clash.analysis.serialize import to_dict
from clash.report.plots import PlotCurve, curves, save
from clash.report.regime_figures import map_json, regime_figure
from clash.report.tables import Table
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure

    from clash.reproduction.simulations import Experiment
    from clash.reproduction.simulations.experiment import (
        CurvePlot,
        PaperComparison,
        RiskCurve,
        Simulation,
    )
    from clash.stats.intervals import Interval

SMALL = 0.01


def as_json(simulation: Simulation) -> dict[str, Any]:
    """Everything the terminal shows, and the points of every curve."""
    maps = [
        {
            "name": map_plot.name,
            "maps": {t: map_json(m) for t, m in zip(map_plot.titles, map_plot.maps, strict=True)},
        }
        for map_plot in simulation.maps
    ]
    return {**to_dict(simulation), "maps": maps}


def headline(simulation: Simulation) -> str:
    """How many of the paper's figures are found again; without such figures, what was simulated."""
    standings = [row.standing for row in simulation.rows if row.standing != "no figure"]
    if not standings:
        return f"{simulation.title}."
    n_agreeing, figures = standings.count("agrees"), plural(len(standings), "figure")
    return f"{n_agreeing} of the paper's {figures} reproduced."


def table(simulation: Simulation) -> Table:
    """The paper's figures and ours side by side, or results by design and size."""
    if simulation.cells:
        return _design_table(simulation)
    columns = ["", "paper", "ours", "s.e.", "apart by", ""]
    rows = [_cells(row) for row in simulation.rows]
    return Table(simulation.title, columns, rows, frozenset({1, 2, 3, 4}), brief=True)


def _design_table(simulation: Simulation) -> Table:
    rows = [
        {
            "design": cell.design,
            "items": cell.n_items,
            "majority": f"{100 * cell.majority:.1f}",
            "Dawid-Skene": f"{100 * cell.dawid_skene:.1f}",
            "auto": f"{100 * cell.auto:.1f}",
            "best member": f"{100 * cell.best_member_accuracy:.1f} {cell.best_member}",
            "oracle": f"{100 * cell.oracle:.1f}",
            "auto - majority": _points(cell.against_majority),
            "auto - best member": _points(cell.against_member),
            "log-loss - share's": _signed_interval(cell.log_loss_against_share, 3, 1.0),
            "below / above": f"{cell.panels_below} / {cell.panels_above}",
            "votes tell / do not": f"{cell.panels_that_tell} / {cell.panels_that_do_not_tell}",
            "auto - best where they tell": "-"
            if cell.against_member_where_votes_tell is None
            else _points(cell.against_member_where_votes_tell),
        }
        for cell in simulation.cells
    ]
    notes = (
        "best member: the model of auto's menu, or majority, that is right most often here, known "
        "only in hindsight; oracle: Bayes' rule under the law that drew the votes; below / above: "
        "panels on which auto differs from majority by 1.96 standard errors over their items; votes tell: "
        "panels on which every model that is right a point less often than the best, both fitted to the law of "
        "the votes itself, is expected to be two standard errors behind on as many items; on panels that are "
        "neither majority is within a point of the best",
    )
    return Table.of(simulation.title, rows, notes=notes, brief=True)


def _points(interval: Interval) -> str:
    return _signed_interval(interval, 1, 100.0)


def _signed_interval(interval: Interval, digits: int, scale: float) -> str:
    """An estimate with its interval; + 0.0 keeps a rounded zero from having a minus sign."""
    estimate, low, high = (
        round(scale * x, digits) + 0.0 for x in (interval.estimate, interval.low, interval.high)
    )
    return f"{estimate:+.{digits}f} [{low:+.{digits}f}, {high:+.{digits}f}]"


def setting(simulation: Simulation) -> str:
    """Name, source and settings of the simulation, in one sentence."""
    parts = {
        **simulation.setting,
        "seed": str(simulation.seed),
        "replications": str(simulation.replications),
    }
    listing_of_parts = "; ".join(f"{name}: {value}" for name, value in parts.items())
    after = "" if simulation.cells else f", after {simulation.source}"
    return f"{simulation.name}{after}; {listing_of_parts}"


def _cells(row: PaperComparison) -> list[str]:
    standing = "" if row.standing == "no figure" else row.standing
    return [
        row.quantity,
        "" if row.paper is None else _number(row.paper),
        _number(row.ours),
        "exact" if row.se is None else f"{row.se:.2g}",
        "" if row.distance is None else f"{row.distance:.1f} s.e.",
        f"{standing}: {row.note}" if row.note and standing == "differs" else standing,
    ]


def _number(value: float) -> str:
    """Four decimals; four significant digits below 0.01."""
    return f"{value:.4f}" if value == 0 or abs(value) >= SMALL else f"{value:.4g}"


def listing(experiments: Mapping[str, Experiment]) -> Table:
    """What can be rerun."""
    rows = [
        {
            "name": name,
            "shows": experiment.shows,
            "source": experiment.source,
            "replications": experiment.replications,
        }
        for name, experiment in experiments.items()
    ]
    return Table.of("Simulations", rows, text=("shows", "source"))


def write_plots(simulation: Simulation, folder: Path) -> list[Path]:
    """Every plot and map as SVG and PNG; the paths written."""
    paths: list[Path] = []
    for plot in simulation.plots:
        paths += save(figure(plot), folder, plot.name)
    for map_plot in simulation.maps:
        paths += save(regime_figure(map_plot.maps, map_plot.titles), folder, map_plot.name)
    return paths


def figure(plot: CurvePlot) -> Figure:
    """Panels of curves side by side."""
    return curves(
        [[_curve(line) for line in panel] for panel in plot.panels],
        titles=plot.titles,
        x_label=plot.x_label,
        y_label=plot.y_label,
        log_x=plot.log_x,
    )


def _curve(line: RiskCurve) -> PlotCurve:
    style: Literal["level", "line"] = "level" if line.level else "line"
    return PlotCurve(line.name, line.x, line.y, line.errors, style, line.colour)
