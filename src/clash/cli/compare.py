from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import AsJson, Out, Quiet, ReportFile, Verbose


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="Two or more run folders, or run ids under --out.", metavar="RUN RUN…"),
    ],
    out: Out = Path("runs"),
    every_record: Annotated[
        bool,
        typer.Option(
            "--every-record",
            help="Count an item once for each run that has it, as some papers did.",
        ),
    ] = False,
    to: ReportFile = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compare runs with a significance test, paired where they share items."""
    from clash.analysis.compare import compare as compare_runs
    from clash.analysis.rundata import RunData
    from clash.analysis.serialize import to_dict
    from clash.cli.common import print_json, print_tables, print_written, stdout
    from clash.cli.sources import open_run
    from clash.errors import ConfigError
    from clash.report.compare import tables
    from clash.report.headline import comparison_headline
    from clash.report.report_file import write_report
    from clash.report.screens import comparison_screen
    from clash.report.terminal import print_line, print_screen, text_width

    if len(runs) < 2:
        raise ConfigError("a comparison needs two runs", field="RUN", hint="name a second one")
    folders = [open_run(run, out) for run in runs]
    names = [str(folder.path) for folder in folders]
    findings = compare_runs([RunData.load(folder) for folder in folders], every_record=every_record)
    report, record = tables(findings), to_dict(findings)
    if to is not None:
        write_report(to, "Comparison of runs", record, report, names)
    if as_json:
        print_json({"folders": names, **record, "written": [] if to is None else [str(to)]})
        return
    console = stdout()
    if quiet:
        print_line(console, comparison_headline(findings).text)
        return
    print_screen(console, comparison_screen(findings, text_width(console)))
    if verbose:
        print_tables(report)
    if to is not None:
        print_line(console)
        print_written([to])
