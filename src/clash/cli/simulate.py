from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def simulate(
    name: Annotated[
        str | None, typer.Argument(help="Which simulation; 'all' for every one. See --list.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the simulations and stop.")
    ] = False,
    replications: Annotated[
        int | None,
        typer.Option(min=2, help="Monte Carlo replications; default: enough for a first look."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for figures (SVG and PNG) and simulations.json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Rerun the published simulations and print them beside their figures."""
    from rich.console import Console

    from clash.analysis.simulations import EXPERIMENTS
    from clash.report import simulations as report

    if show_list:
        if as_json:
            _print_json({"simulations": {key: e.shows for key, e in EXPERIMENTS.items()}})
        else:
            report.listing(EXPERIMENTS, Console())
        return
    results = [
        experiment.run(seed, replications or experiment.replications)
        for experiment in (EXPERIMENTS[key] for key in _chosen(name, list(EXPERIMENTS)))
    ]
    record = {"simulations": [report.as_json(result) for result in results]}
    written = [] if out is None else _write(out, record)
    if out is not None:
        written += [path for result in results for path in report.write_plots(result, out)]
    if as_json:
        _print_json({**record, "written": [str(path) for path in written]})
        return
    console = Console()
    for result in results:
        report.show(result, console)
    for path in written:
        typer.echo(f"wrote {path}")


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


def _print_json(record: dict[str, Any]) -> None:
    import json

    from clash import __version__

    typer.echo(json.dumps({"clash": __version__, **record}))


def _write(out: Path, record: dict[str, Any]) -> list[Path]:
    import json

    out.mkdir(parents=True, exist_ok=True)
    path = out / "simulations.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return [path]
