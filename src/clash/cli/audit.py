from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, print_tables, print_text, print_written
from clash.cli.option_groups import grouped
from clash.cli.options import Output, ReportFile, RunsFolder
from clash.cli.sources import open_run


@grouped
def audit(
    *,
    source: Annotated[
        Path,
        typer.Argument(
            help="A run, its id, or `latest`; a folder or file of another tool's results; or a votes "
            "file or judgments table.",
            metavar="RUN|FOLDER|FILE",
        ),
    ],
    figures: Annotated[
        list[str] | None,
        typer.Option(
            "--published",
            metavar="NAME=VALUE",
            help="A published figure to check: concordance, kappa or n; repeat for several.",
        ),
    ] = None,
    to: ReportFile = None,
    runs: RunsFolder = Path("runs"),
    output: Output,
) -> None:
    """Check a published evaluation for seven flaws, and correct its headline.

    Repeats, retries, ties by slot, pseudo-replication, kappa = 2p-1, dropped failures, no baselines:
    `clash audit votes.jsonl --published concordance=0.88 --published kappa=0.76 -v`
    """
    from clash.pipeline.published import audit_published, audits_json, parse_figures
    from clash.report import published as report
    from clash.report.report_file import write_report

    if not source.exists() and (source.name == "latest" or (runs / source).is_dir()):
        source = open_run(source, runs).path
    audits = audit_published(source, parse_figures(figures or ()))
    record = audits_json(audits)
    if to is not None:
        tables = [table for a in audits for table in report.tables(a, verbose=True)]
        write_report(to, report.TITLE, record, tables, [a.name for a in audits])
    if output.as_json:
        print_json({"source": str(source), **record})
        return
    for evaluation in audits:
        print_text(report.headline(evaluation), style="bold")
        if not output.quiet:
            print_tables(report.tables(evaluation, verbose=output.verbose))
    if to is not None and not output.quiet:
        print_written([to])
