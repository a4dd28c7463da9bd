from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import AsJson, Seed

if TYPE_CHECKING:
    from clash.analysis.simulations import Simulation


def simulate(
    name: Annotated[
        str | None, typer.Argument(help="Which simulation; `all` for every one. See --list.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the simulations and stop.")
    ] = False,
    replications: Annotated[
        int | None,
        typer.Option(min=2, help="Monte Carlo replications; default: enough for a first look."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for figures (SVG, PNG) and simulations.json."),
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Rerun the published simulations and print them beside their figures."""
    from clash.analysis.simulations import EXPERIMENTS
    from clash.cli.common import print_json, stdout
    from clash.report import simulations as report
    from clash.report.terminal import show_table

    if show_list and as_json:
        print_json({"simulations": {key: e.shows for key, e in EXPERIMENTS.items()}})
        return
    if show_list:
        show_table(stdout(), report.listing(EXPERIMENTS))
        return
    chosen = [EXPERIMENTS[key] for key in _chosen(name, list(EXPERIMENTS))]
    results = [e.run(seed or 0, replications or e.replications) for e in chosen]
    record = {"simulations": [report.as_json(result) for result in results]}
    written = [] if out is None else _write(out, record, results)
    if as_json:
        print_json({**record, "written": written})
        return
    _print(results, written)


def _chosen(name: str | None, known: list[str]) -> list[str]:
    from clash.errors import ConfigError

    if name == "all":
        return known
    if name not in known:
        raise ConfigError(
            "name a simulation" if name is None else f"there is no simulation {name!r}",
            field="NAME",
            mend=f"one of {', '.join(known)}, or all",
        )
    return [name]


def _write(out: Path, record: dict[str, Any], results: list[Simulation]) -> list[str]:
    import json

    from clash.report import simulations as report

    out.mkdir(parents=True, exist_ok=True)
    path = out / "simulations.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    figures = [figure for result in results for figure in report.write_plots(result, out)]
    return [str(path), *map(str, figures)]


def _print(results: list[Simulation], written: list[str]) -> None:
    from rich.padding import Padding
    from rich.text import Text

    from clash.cli.common import stdout
    from clash.report import simulations as report
    from clash.report.terminal import show_table

    console = stdout()
    for result in results:
        show_table(console, report.table(result))
        console.print(Padding(Text(report.setting(result), style="dim"), (0, 0, 1, 2)))
        for finding in result.findings:
            console.print(Padding(Text(f"• {finding}"), (0, 0, 0, 1)))
    for path in written:
        console.print(f"wrote {path}", soft_wrap=True, markup=False)
