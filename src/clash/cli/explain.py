from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import AsJson, Out, Quiet, RunArgument, Verbose


def explain(
    run: RunArgument,
    out: Out = Path("runs"),
    item: Annotated[
        str | None, typer.Option("--item", help="Explain this item, from prompt to verdict.")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Explain a decision: which items and judges it rests on, and what would change it."""
    from clash.analysis.serialize import to_dict
    from clash.cli.common import print_json, print_lines, print_tables, stdout
    from clash.cli.sources import open_run
    from clash.pipeline.explain import explain_item, explain_run
    from clash.report import explanation as report
    from clash.report.headline import run_headline
    from clash.report.item_walk import print_walk

    folder = open_run(run, out)
    if item is not None:
        steps = explain_item(folder, item)
        if as_json:
            print_json({"run": str(folder.path), "item": to_dict(steps)})
        else:
            print_walk(stdout(), steps)
        return
    result = explain_run(folder)
    explanation = result.explanation
    if as_json:
        print_json({**to_dict(explanation), "run": str(folder.path)})
        return
    lines = report.headlines(explanation, run_headline(result.findings, run))
    print_lines(lines[:1] if quiet else lines)
    if quiet:
        return
    print_tables(report.tables(explanation) if verbose else report.brief_tables(explanation))
    if explanation.disagreements:
        first = explanation.disagreements[0].item_id
        stdout().print(f"\nNext  clash explain {run} --item {first}", soft_wrap=True)
