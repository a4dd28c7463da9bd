from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from clash.cli.option_groups import grouped
from clash.cli.options import (
    Access,
    Compress,
    Monitoring,
    Out,
    Output,
    Prereg,
    RepeatCalls,
    ReportFile,
    Yes,
)
from clash.errors import ConfigError
from clash.pipeline.options import RunOptions

_STABLE = 31


@grouped
def rerun(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(
            help="A run folder, a run id under --out, or `latest`; several with --compare.",
            metavar="RUN…",
        ),
    ],
    times: Annotated[int, typer.Option("--times", min=1, help="Number of reruns.")] = 1,
    only_targets: Annotated[
        bool,
        typer.Option(
            "--targeted",
            help="Only items that were wrong in every run, unstable, or stable with low "
            "confidence.",
        ),
    ] = False,
    stable: Annotated[
        int,
        typer.Option(
            "--stable",
            min=0,
            help="With --targeted: number of stable items to take, least confident first.",
        ),
    ] = _STABLE,
    regenerate: Annotated[
        bool, typer.Option("--regenerate", help="Fresh responses too: end-to-end stability.")
    ] = False,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep",
            help="Parts of the run that stay as they are: criteria, shuffle, responses; comma "
            "separated. The others are drawn anew; responses only with --regenerate.",
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Report on these existing runs; make no call.")
    ] = False,
    panel: Annotated[
        str | None,
        typer.Option(
            "--panel", "-p", help="Panel to judge with, for a run converted from another tool."
        ),
    ] = None,
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="US dollars, for each rerun.")
    ] = None,
    calls: RepeatCalls,
    compress: Compress = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show the plan of one rerun and its price; make no call."),
    ] = False,
    yes: Yes = False,
    to: ReportFile = None,
    prereg: Prereg = None,
    access: Access,
    monitoring: Monitoring,
    output: Output,
) -> None:
    """Judge the same items again with fresh seeds, and report how often the panel repeats itself.

    `clash rerun RUN --times 2` · `clash rerun RUN --targeted` · `clash rerun --compare A B C` ·
    `clash rerun RUN --keep criteria,shuffle` (only the judges' own noise is left)
    """
    from clash.cli.dry_run import print_dry_run
    from clash.cli.retest import print_reruns, print_retest
    from clash.pipeline.prereg import read_plan
    from clash.pipeline.rerun import (
        RerunOptions,
        execute_reruns,
        keeping,
        next_number,
        plan_rerun,
        reruns,
        targeted_items,
    )
    from clash.pipeline.sources import open_run
    from clash.providers.ray_cluster import cluster_connection

    cluster = calls.cluster()
    observer = monitoring.observer(output)
    folders = [open_run(run, out, observer) for run in runs]
    parent = folders[0]
    if compare:
        if len(folders) == 1:
            folders += reruns(parent)
        print_retest(folders, output, to)
        return
    if len(folders) > 1:
        raise ConfigError("one run at a time", field="RUN", hint="--compare takes several")
    changes = RerunOptions(
        regenerate=regenerate,
        panel=panel,
        registration=read_plan(prereg),
        limits={"max_cost": max_cost, **calls.limits()},
    )
    parts = [part.strip() for part in (keep or "").split(",") if part.strip()]
    changes = keeping(parent, parts, changes)
    if only_targets:
        items, note = targeted_items(parent, stable)
        changes = replace(changes, only=items, notes=(*changes.notes, note))
    options = RunOptions(access.environ(), observer, yes=yes, compress=compress)
    if dry_run:
        plan = plan_rerun(parent, next_number(parent), changes, options).setup.plan
        print_dry_run(plan, options.environ, output)
        return
    with observer, cluster_connection(cluster):
        results = execute_reruns(parent, times, changes, options)
    print_reruns(parent, results, output, to)
    raise typer.Exit(max(result.exit_code for result in results))
