from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import (
    print_json,
    print_line,
    print_screen,
    print_tables,
    print_text,
    terminal_width,
)
from clash.cli.option_groups import grouped
from clash.cli.options import Out, Output, RunArgument, UseLabels
from clash.cli.sources import open_run


@grouped
def explain(
    *,
    run: RunArgument,
    out: Out = Path("runs"),
    item: Annotated[
        str | None, typer.Option("--item", help="Explain this item, from prompt to verdict.")
    ] = None,
    use_labels: UseLabels = True,
    output: Output,
) -> None:
    """Explain a decision: which items and judges it rests on, and what would change it."""
    from clash.analysis.serialize import to_dict
    from clash.cli.outcome import print_item, reference
    from clash.pipeline.explain import explain_item, explain_run
    from clash.report import explanation as report
    from clash.report.headline import run_headline

    folder = open_run(run, out)
    if item is not None:
        print_item(folder.path, explain_item(folder, item), output)
        return
    result = explain_run(folder, use_labels=use_labels)
    if output.as_json:
        record = {**to_dict(result.explanation), "labels": to_dict(result.labels)}
        print_json({**record, "run": str(folder.path)})
        return
    name = reference(folder.path)
    headline = run_headline(result.findings, name)
    if output.quiet:
        print_line(headline.text)
    elif output.verbose:
        for line in report.headlines(result.explanation, headline):
            print_text(line)
        print_tables(report.tables(result.explanation))
        if result.labels.labelled or result.labels.n_unknown_items:
            print_text(f"labels: {result.labels.sentence}")
    else:
        width = terminal_width()
        screen = report.explanation_screen(result.explanation, headline, width, name, result.labels)
        print_screen(screen)
