from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import say
from clash.cli.option_groups import grouped
from clash.cli.options import Access, Monitoring, Out, Output, RepeatCalls, RunArgument

if TYPE_CHECKING:
    from clash.pipeline.finish import CompleteRun


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
    continues under it.
    """
    from clash.cli.outcome import print_result
    from clash.pipeline.finish import complete_run
    from clash.pipeline.sequential_run import resume_run
    from clash.pipeline.sources import open_run
    from clash.providers.ray_cluster import cluster_connection

    cluster = calls.cluster()
    environ = access.environ()
    observer = monitoring.observer(output)
    folder = open_run(run, out, observer)
    if cancel_batches and all(batch.state == "ended" for batch in folder.batches()):
        say("no batch of this run is with a provider", style="")
        raise typer.Exit
    limits = {"max_cost": max_cost, **calls.limits()}
    is_changed = cancel_batches or any(limit is not None for limit in limits.values())
    if not (is_changed or output.verbose):
        run_at_end = complete_run(folder, environ, observer)
        if run_at_end is not None:
            _print_complete(run_at_end, output)
            raise typer.Exit
    with observer, cluster_connection(cluster):
        result = resume_run(
            folder,
            environ,
            observer,
            limits,
            cancel_batches=cancel_batches,
        )
    print_result(result, output)
    raise typer.Exit(result.exit_code)


def _print_complete(run: CompleteRun, output: Output) -> None:
    """Print what a complete run says, which is what its report says."""
    from clash.cli.common import print_json, say, stdout
    from clash.report.terminal import print_line

    if output.as_json:
        print_json(run.summary)
        return
    answer, evidence = run.headline
    for line in (answer,) if output.quiet else (answer, evidence):
        print_line(stdout(), line)
    if not output.quiet:
        say(
            "complete and unchanged since it was sealed: nothing is left to ask;"
            " `clash verify` computes it again",
            style="",
        )
