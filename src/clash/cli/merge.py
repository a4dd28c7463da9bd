from __future__ import annotations

from pathlib import Path

import typer

from clash.cli.options import AsJson, EnvFile, Out, Quiet, RunId, RunsArgument, Verbose


def merge(
    shards: RunsArgument,
    out: Out = Path("runs"),
    run_id: RunId = None,
    env_file: EnvFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Join the shards of a run (`eval --shard`) into the folder that one process would have written.

    `clash merge runs/night-* --run-id night`

    No call is made. A shard that is missing, given twice, of another run, unfinished or changed
    after its seal is refused.
    """
    from clash.cli.common import environment
    from clash.cli.outcome import print_result
    from clash.cli.sources import open_run
    from clash.cli.watch import RunObserver
    from clash.pipeline import merge as shard_merge

    observer = RunObserver(quiet=quiet or as_json, watch=False)
    folders = [open_run(shard, out) for shard in shards]
    with observer:
        result = shard_merge.merge(
            folders, environment(env_file, None), observer, out=out, run_id=run_id
        )
    print_result(result, as_json=as_json, verbose=verbose, quiet=quiet)
    raise typer.Exit(result.exit_code)
