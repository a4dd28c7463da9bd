from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, print_line
from clash.cli.options import AsJson, Out, RunsArgument, UseLabels
from clash.cli.sources import open_runs
from clash.errors import ConfigError


def export(
    runs: RunsArgument,
    votes: Annotated[
        bool, typer.Option("--votes", help="Votes: one JSON line for each judge and item.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Verdicts as CSV.")] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Judgments as Parquet, unblinded.")
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option("--to", help="File to write, or - for stdout. Default: in the run folder."),
    ] = None,
    observers: Annotated[bool, typer.Option("--observers", help="Include observers.")] = False,
    use_labels: UseLabels = True,
    out: Out = Path("runs"),
    as_json: AsJson = False,
) -> None:
    """Export a run: votes (JSONL), verdicts (CSV) or judgments (Parquet).

    Several runs with the same settings, such as the shards of one, are exported as one.
    """
    from clash.analysis import exports

    on: dict[exports.Format, bool] = {"votes": votes, "csv": csv, "parquet": parquet}
    formats = [name for name, flag in on.items() if flag]
    if len(formats) != 1:
        raise ConfigError("choose one", field="export", hint="--votes, --csv or --parquet")
    if to is None and out.suffix and not out.is_dir():
        raise ConfigError(
            f"{out} is no folder of runs", field="--out", hint=f"--to {out} names the file to write"
        )
    folder = open_runs(runs, out)
    if len(runs) > 1 and to is None:
        raise ConfigError("several runs have no common folder", field="--to", hint="name a file")
    file = exports.write(folder, formats[0], to, observers=observers, use_labels=use_labels)
    if to is not None and str(to) == "-":
        return
    if as_json:
        print_json(
            {
                "run": str(folder.path),
                "format": formats[0],
                "written": str(file.path),
                "rows": file.rows,
            }
        )
    else:
        print_line(f"wrote {file.path} ({file.rows} rows)")
