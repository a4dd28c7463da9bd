from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import AsJson, Out


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Two run folders or ids under --out, or more.", metavar="RUN RUN…"),
    ],
    out: Out = Path("runs"),
    every_record: Annotated[
        bool,
        typer.Option(
            "--every-record",
            help="Pool items that stand in several runs as often as they do, as some papers did.",
        ),
    ] = False,
    to: Annotated[
        Path | None, typer.Option("--to", help="Write the report here: .md or .json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs with a test, not only a difference: paired where they share items."""
    from clash.analysis.compare import compare as compared
    from clash.analysis.rundata import RunData
    from clash.cli.common import open_run, print_json, stdout
    from clash.cli.documents import write_report
    from clash.errors import ConfigError
    from clash.report.compare import tables
    from clash.report.terminal import print_tables

    if len(runs) < 2:
        raise ConfigError("a comparison takes two runs", field="RUN", hint="name a second one")
    folders = [open_run(run, out) for run in runs]
    found = compared([RunData.load(folder) for folder in folders], every_record=every_record)
    made, paths = tables(found), [str(folder.path) for folder in folders]
    title = "Comparison of runs"
    written = [write_report(to, title, found.as_json(), made, paths)] if to is not None else []
    if as_json:
        print_json({"folders": paths, **found.as_json(), "written": written})
        return
    print_tables(stdout(), made)
    for path in written:
        stdout().print(f"\nwrote {path}", soft_wrap=True, markup=False)
