"""A rerun simulation on the terminal, as JSON and as figures."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from clash.report.plots import Curve, curves, save

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from clash.analysis.simulations import Experiment, Plot, Row, Simulation
    from clash.analysis.simulations.findings import Line

STANDING = {"agrees": "[green]agrees[/]", "differs": "[red]differs[/]", "no figure": ""}


def as_json(simulation: Simulation) -> dict[str, Any]:
    """Everything the terminal shows, and the points of every curve."""
    record = asdict(simulation)
    record["rows"] = [
        {**asdict(row), "distance_se": row.distance, "standing": row.standing}
        for row in simulation.rows
    ]
    return record


def show(simulation: Simulation, console: Console) -> None:
    """Print setting, figures side by side, and what follows."""
    from rich.table import Table

    console.print(f"\n[bold]{simulation.title}[/]  ({simulation.name}; {simulation.source})")
    setting = {
        **simulation.setting,
        "seed": str(simulation.seed),
        "replications": str(simulation.replications),
    }
    console.print("; ".join(f"{key} {value}" for key, value in setting.items()), style="dim")
    table = Table("figure", "paper", "ours", "s.e.", "apart by", "", "note")
    for column in table.columns[1:5]:
        column.justify = "right"
    for row in simulation.rows:
        table.add_row(*_cells(row), row.note)
    console.print(table)
    for finding in simulation.findings:
        console.print(f"• {finding}")


def _cells(row: Row) -> list[str]:
    return [
        row.quantity,
        "" if row.paper is None else _number(row.paper),
        _number(row.ours),
        "exact" if row.se is None else _number(row.se),
        "" if row.distance is None else f"{row.distance:.1f} s.e.",
        STANDING[row.standing],
    ]


def _number(value: float) -> str:
    """Four digits after the point, or scientific where that would say nothing."""
    return f"{value:.4f}" if value == 0 or abs(value) >= 5e-4 else f"{value:.2e}"


def listing(experiments: Mapping[str, Experiment], console: Console) -> None:
    """What can be rerun."""
    from rich.table import Table

    table = Table("name", "shows", "source", "replications")
    for name, experiment in experiments.items():
        table.add_row(name, experiment.shows, experiment.source, str(experiment.replications))
    console.print(table)


def markdown(simulation: Simulation) -> str:
    """The figures as a Markdown table."""
    lines = [
        "| figure | paper | ours | s.e. | apart by | |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    plain = {name: name if name != "no figure" else "" for name in STANDING}
    for row in simulation.rows:
        cells = [*_cells(row)[:-1], plain[row.standing]]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def write_plots(simulation: Simulation, folder: Path) -> list[Path]:
    """Every plot as SVG and PNG; the paths written."""
    written: list[Path] = []
    for plot in simulation.plots:
        written += save(_figure(plot), folder, plot.name)
    return written


def _figure(plot: Plot) -> Any:  # noqa: ANN401 - a matplotlib figure, which is imported on use
    return curves(
        [[_curve(line) for line in panel] for panel in plot.panels],
        titles=plot.titles,
        x_label=plot.x_label,
        y_label=plot.y_label,
        log_x=plot.log_x,
    )


def _curve(line: Line) -> Curve:
    return Curve(line.name, line.x, line.y, line.errors, "level" if line.level else "line")
