from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.cli.common import print_json, print_tables, print_text, print_written
from clash.cli.options import AsJson, Judges, Ray, Seed, ray_cluster
from clash.errors import ConfigError, one_of
from clash.extras import require

if TYPE_CHECKING:
    from clash.reproduction.simulations.experiment import Simulation
    from clash.votes import Votes


def simulate(
    name: Annotated[
        str | None, typer.Argument(help="Simulation to run, or `all`; see --list.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="List the simulations and exit.")
    ] = False,
    replications: Annotated[
        int | None,
        typer.Option(min=2, help="Monte Carlo replications; default: few, for a first look."),
    ] = None,
    votes: Annotated[
        list[Path] | None,
        typer.Option(
            "--votes", help="Votes file whose patterns semi-real samples from; may be repeated."
        ),
    ] = None,
    judges: Judges = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for figures (SVG, PNG) and simulations.json."),
    ] = None,
    plots: Annotated[
        Path | None, typer.Option("--plots", help="Folder for the figures alone, SVG and PNG.")
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            max=64,
            help="Processes that share the replications; default: one.",
        ),
    ] = None,
    ray: Ray = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Rerun the papers' simulations and print the results beside the published figures.

    `clash simulate semi-real --votes votes.jsonl`

    `clash simulate designs --replications 8 --jobs 4`
    """
    from clash.analysis.tasks import on_processes
    from clash.integrations.ray_tasks import tasks_on
    from clash.report import simulations as report
    from clash.reproduction.simulations import EXPERIMENTS, ON_VOTES

    experiments = {**EXPERIMENTS, **ON_VOTES}
    if show_list and as_json:
        print_json({"simulations": {key: e.shows for key, e in experiments.items()}})
        return
    if show_list:
        print_tables([report.listing(experiments)])
        return
    if out is not None or plots is not None:
        require("matplotlib", field="--out" if plots is None else "--plots")
    if ray is not None and jobs is not None:
        raise ConfigError("the cluster has its own processes", field="--jobs", hint="leave it out")
    names = _choose(name, list(experiments), votes)
    if (ray or jobs) and not any(experiments[key].spreads for key in names):
        raise ConfigError(
            f"{names[0]} is exact and has nothing to share",
            field="--ray" if ray else "--jobs",
            hint="leave it out; shared among processes are "
            + ", ".join(key for key, e in experiments.items() if e.spreads),
        )
    seed = seed or 0
    panels = _panels(votes or [], judges) if set(names) & set(ON_VOTES) else []
    with tasks_on(ray_cluster(ray, send_keys=False)), on_processes(jobs or 1):
        results = [
            experiments[key].run(
                seed,
                replications or experiments[key].replications,
                *([panels] if key in ON_VOTES else []),
            )
            for key in names
        ]
    record = {"simulations": [report.as_json(result) for result in results]}
    paths = [] if out is None else _write(out, record, results)
    if plots is not None:
        paths += [str(p) for result in results for p in report.write_plots(result, plots)]
    if as_json:
        print_json({**record, "written": paths})
        return
    _print(results, paths)


def _panels(files: list[Path], judges: str | None) -> list[Votes]:
    from clash.votes import read_votes

    return [read_votes(file, judges=judges) for file in files]


def _choose(name: str | None, names: list[str], votes: list[Path] | None) -> list[str]:
    """What to run: of ``all``, those on votes only where there are votes."""
    from clash.reproduction.simulations import ON_VOTES

    if name == "all":
        return [key for key in names if votes or key not in ON_VOTES]
    if name not in names:
        raise ConfigError(
            "name a simulation" if name is None else f"there is no simulation {name!r}",
            field="NAME",
            hint=one_of(name or "", names, beside="or all"),
        )
    if name in ON_VOTES and not votes:
        raise ConfigError(
            f"{name} needs real votes", field="--votes", hint="--votes FILE, or several"
        )
    if votes and name not in ON_VOTES:
        raise ConfigError(
            f"{name} does not use votes", field="--votes", hint=f"only {', '.join(ON_VOTES)} does"
        )
    return [name]


def _write(out: Path, record: dict[str, Any], results: list[Simulation]) -> list[str]:
    import json

    from clash.report import simulations as report
    from clash.report.report_file import write_text

    path = out / "simulations.json"
    write_text(path, json.dumps(record, indent=1) + "\n")
    figures = [figure for result in results for figure in report.write_plots(result, out)]
    return [str(path), *map(str, figures)]


def _print(results: list[Simulation], paths: list[str]) -> None:
    from clash.report import simulations as report

    for result in results:
        print_text(report.headline(result))
        for finding in result.findings:
            print_text(f"• {finding}", indent=1)
        print_tables([report.table(result)])
        print_text(report.setting(result), style="dim", indent=2)
    print_written(paths)
