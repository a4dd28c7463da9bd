from __future__ import annotations

from pathlib import Path

import typer

from clash.cli.common import environment
from clash.cli.option_groups import grouped
from clash.cli.options import EnvFile, Out, Output, RunId, RunsArgument
from clash.cli.sources import open_run


@grouped
def merge(
    *,
    shards: RunsArgument,
    out: Out = Path("runs"),
    run_id: RunId = None,
    env_file: EnvFile = None,
    output: Output,
) -> None:
    """Join the shards of a run (`--shard`) into the folder that one process would have written.

    `clash merge runs/night-* --run-id night`

    No call is made. A shard that is missing, given twice, of another run, unfinished or changed
    after its seal is refused.
    """
    from clash.cli.outcome import print_result
    from clash.cli.watch import RunObserver
    from clash.pipeline import merge as shard_merge

    observer = RunObserver(quiet=output.is_silent, watch=False)
    folders = [open_run(shard, out) for shard in shards]
    with observer:
        result = shard_merge.merge(
            folders, environment(env_file, None), observer, out=out, run_id=run_id
        )
    print_result(result, output)
    raise typer.Exit(result.exit_code)
