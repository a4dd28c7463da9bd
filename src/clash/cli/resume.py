from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import AsJson, Batch, EnvFile, Out, Quiet, RunArgument, TrustHost, Verbose


def resume(
    run: RunArgument,
    out: Out = Path("runs"),
    max_cost: Annotated[
        float | None, typer.Option("--max-cost", min=0, help="A new cap, on the whole run.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-j", min=1, help="Most calls in flight.")
    ] = None,
    batch: Batch = None,
    cancel_batches: Annotated[
        bool,
        typer.Option(
            "--cancel-batches",
            help="Cancel the batches that are with a provider, keep the rows that are through, and"
            " ask nothing more.",
        ),
    ] = False,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Finish an interrupted run: answered calls are not made again, failed ones are.

    Batches that are with a provider are waited for and fetched. A run with a stopping rule (`eval --until`) goes on with it.
    """
    from clash.cli.common import open_run, say
    from clash.collect.resolve import load_environ
    from clash.pipeline import execute as pipeline
    from clash.pipeline import finish as ending
    from clash.pipeline import prepare as beginning
    from clash.pipeline.sequential import goes_on, resume_until

    environ = load_environ(os.environ, env_file, trust_host or ())
    folder = open_run(run, out)
    given = {"max_cost": max_cost, "concurrency": concurrency, "batch": batch}
    limits = {name: value for name, value in given.items() if value is not None}
    if cancel_batches and all(batch.state == "ended" for batch in folder.batches()):
        say("no batch of this run is with a provider", style="")
        raise typer.Exit
    silent = quiet or as_json
    with folder.write() as writer:
        if cancel_batches:
            made = beginning.replan(writer, environ, limits, quiet=silent)
            finished = pipeline.carry_on(writer, made, environ, quiet=silent, new="none")
        elif goes_on(writer.manifest()):
            finished = resume_until(writer, environ, limits, quiet=silent)
        else:
            made = beginning.replan(writer, environ, limits, quiet=silent)
            finished = pipeline.carry_on(writer, made, environ, quiet=silent)
    ending.tell(finished, as_json=as_json, whole=verbose, quiet=quiet)
    raise typer.Exit(finished.exit_code)
