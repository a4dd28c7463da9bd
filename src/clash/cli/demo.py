from __future__ import annotations

import os
from pathlib import Path

import typer

from clash.cli.observer import TerminalObserver
from clash.cli.option_groups import grouped
from clash.cli.options import Out, Output, RunId
from clash.pipeline.options import RunOptions


@grouped
def demo(
    *,
    out: Out = Path("runs"),
    run_id: RunId = None,
    output: Output,
) -> None:
    """Try clash in seconds, without a key: 32 prompts with ready responses, judged offline."""
    from clash import assets
    from clash.analysis.explanation.disagreements import longer_choices
    from clash.analysis.rundata import RunData
    from clash.cli.outcome import print_result
    from clash.collect.resolve import KEYLESS_PANEL, read_config
    from clash.pipeline.execute import execute
    from clash.pipeline.prepare import prepare
    from clash.report.explanation import demo_lesson
    from clash.report.headline import NextStep

    # A clash.yaml that happens to lie here is not part of the demonstration.
    config = read_config(None, {"panel": KEYLESS_PANEL}, ignore_file=True)
    options = RunOptions(
        os.environ, TerminalObserver(quiet=output.is_silent), out=out, run_id=run_id
    )
    prompts = assets.path("datasets", "quickstart.yaml")
    setup = prepare(config, {}, options.observer, prompts=prompts)
    result = execute(setup, options)
    step = NextStep("clash init", "use your own prompts and keys")
    lesson = demo_lesson(longer_choices(RunData.load(result.folder)))
    print_result(result, output, steps=[step], lesson=lesson)
    raise typer.Exit(result.exit_code)
