from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import say
from clash.cli.option_groups import grouped
from clash.cli.options import Access, Monitoring, Out, Output, RepeatCalls, RunArgument


@grouped
def resume(
    *,
    run: RunArgument,
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="New spending cap for the whole run.")
    ] = None,
    calls: RepeatCalls,
    cancel_batches: Annotated[
        bool,
        typer.Option(
            "--cancel-batches",
            help="Cancel the batches that a provider still has, keep finished rows, and make no "
            "more calls.",
        ),
    ] = False,
    access: Access,
    monitoring: Monitoring,
    output: Output,
) -> None:
    """Finish an interrupted run; calls that were answered are not paid again.

    Waits for batches that a provider still has. A run with a stopping rule (`eval --until`)
    continues under it. A rerun ends with what `clash rerun` prints. Of a complete run nothing is asked; -q, -v and --json compute its result
    again, which takes as long as `clash report`.
    """
    from clash.cli.outcome import print_next, print_result, reference
    from clash.cli.retest import print_reruns
    from clash.pipeline.finish import is_settled
    from clash.pipeline.rerun import parent_of
    from clash.pipeline.sequential_run import resume_run
    from clash.pipeline.sources import open_run
    from clash.providers.ray_cluster import cluster_connection
    from clash.report.headline import NextStep

    cluster = calls.cluster()
    environ = access.environ()
    observer = monitoring.observer(output)
    folder = open_run(run, out, observer)
    if cancel_batches and all(batch.state == "ended" for batch in folder.batches()):
        say("no batch of this run is with a provider", style="")
        raise typer.Exit
    limits = {"max_cost": max_cost, **calls.limits()}
    is_changed = cancel_batches or any(limit is not None for limit in limits.values())
    shows_figures = output.verbose or output.quiet or output.as_json
    if not (is_changed or shows_figures) and is_settled(folder, environ, observer):
        say(f"{folder.path}: complete and unchanged since it was sealed, nothing to ask", style="")
        command = f"clash report {reference(folder.path)}"
        print_next([NextStep(command, "compute its result again and show it")])
        raise typer.Exit
    with observer, cluster_connection(cluster):
        result = resume_run(
            folder,
            environ,
            observer,
            limits,
            cancel_batches=cancel_batches,
        )
    parent = parent_of(folder)
    if parent is None:
        print_result(result, output)
    else:
        print_reruns(parent, [result], output)
    raise typer.Exit(result.exit_code)
