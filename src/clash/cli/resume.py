from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import (
    AsJson,
    Batch,
    EnvFile,
    Metrics,
    Otel,
    Out,
    Quiet,
    Ray,
    RaySendKeys,
    RunArgument,
    RunConcurrency,
    TrustHost,
    Verbose,
    Watch,
    Workers,
    ray_cluster,
)


def resume(
    run: RunArgument,
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="New spending cap for the whole run.")
    ] = None,
    concurrency: RunConcurrency = None,
    workers: Workers = None,
    ray: Ray = None,
    ray_send_keys: RaySendKeys = False,
    batch: Batch = None,
    cancel_batches: Annotated[
        bool,
        typer.Option(
            "--cancel-batches",
            help="Cancel the batches that a provider still has, keep finished rows, and make no "
            "more calls.",
        ),
    ] = False,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    watch: Watch = False,
    otel: Otel = False,
    metrics: Metrics = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Finish an interrupted run; calls that were answered are not paid again.

    Waits for batches that a provider still has. A run with a stopping rule (`eval --until`)
    continues under it.
    """
    from clash.cli.common import environment, say
    from clash.cli.outcome import print_result
    from clash.cli.watch import RunObserver
    from clash.pipeline.sequential_run import resume_run
    from clash.pipeline.sources import open_run
    from clash.providers.ray_cluster import cluster_connection

    cluster = ray_cluster(ray, send_keys=ray_send_keys)
    environ = environment(env_file, trust_host)
    observer = RunObserver(quiet=quiet or as_json, watch=watch, otel=otel, metrics=metrics)
    folder = open_run(run, out, observer)
    if cancel_batches and all(batch.state == "ended" for batch in folder.batches()):
        say("no batch of this run is with a provider", style="")
        raise typer.Exit
    with observer, cluster_connection(cluster):
        result = resume_run(
            folder,
            environ,
            observer,
            {
                "max_cost": max_cost,
                "concurrency": concurrency,
                "batch": batch,
                "workers": workers,
                "ray": cluster,
            },
            cancel_batches=cancel_batches,
        )
    print_result(result, as_json=as_json, verbose=verbose, quiet=quiet)
    raise typer.Exit(result.exit_code)
