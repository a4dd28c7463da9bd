from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.new_run import Execution, NewJudgments, NewRun
from clash.cli.option_groups import grouped
from clash.cli.options import (
    Access,
    ConfigFile,
    Looks,
    Models,
    Monitoring,
    Output,
    RiskConfidence,
    Seed,
    Sequential,
    Until,
)
from clash.pipeline.options import Origin, RunOptions


@grouped
def evaluate(
    *,
    prompts: Annotated[
        Path | None,
        typer.Argument(
            help="Prompts: YAML, JSONL, CSV, text, or a folder.", envvar="CLASH_PROMPTS"
        ),
    ] = None,
    models: Models = None,
    new: NewRun,
    calibrator: Annotated[
        Path | None,
        typer.Option(
            "--calibrator", help="Decide verdicts by this file, written by `clash calibrate`."
        ),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(
            "--max-risk",
            help="Largest share of wrong verdicts to accept; other items are left for review.",
        ),
    ] = None,
    risk_confidence: RiskConfidence = None,
    judging: NewJudgments,
    observers: Annotated[
        str | None, typer.Option("--observers", help="candidates (the default) or none.")
    ] = None,
    repeat: Annotated[
        int | None,
        typer.Option("--repeat", min=1, help="Generate and judge each item this many times."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Only the first items.")
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            help="Answer from the recorded calls of this run: no network, no cost. Its settings "
            "apply, and its prompts if none are given.",
        ),
    ] = None,
    execution: Execution,
    until: Until = None,
    sequential: Sequential = "always-valid",
    looks: Looks = 5,
    config: ConfigFile = None,
    access: Access,
    seed: Seed = None,
    monitoring: Monitoring,
    output: Output,
) -> None:
    """Judge candidates on your prompts: generate or inject, blind, judge, aggregate, report.

    `clash eval prompts.yaml --models openai/a,anthropic/b --panel supreme-court`
    """
    from clash.collect.resolve import read_config
    from clash.pipeline.prepare import prepare
    from clash.pipeline.prereg import read_plan
    from clash.pipeline.stopping import parse_rule

    settings = {
        **new.settings(),
        **judging.settings(),
        "candidates": [m.strip() for m in models.split(",") if m.strip()] if models else None,
        "aggregate.calibrator": None if calibrator is None else str(calibrator),
        "aggregate.max_risk": max_risk,
        "aggregate.risk_confidence": risk_confidence,
        "observers": {"none": []}.get(observers or "", observers),
        "repeat": repeat,
        "exclude_self": execution.exclude_self,
        "seed": seed,
    }
    environ = access.environ()
    observer = monitoring.observer(output)
    earlier = new.open_replay(replay, observer)
    setup = prepare(
        read_config(config, settings),
        environ,
        observer,
        prompts=prompts,
        limit=limit,
        replay=earlier,
    )
    labels = earlier.labels() if earlier is not None and prompts is None else ()
    origin = Origin(labels=tuple(labels), registration=read_plan(execution.prereg))
    options = RunOptions(environ, observer, run_id=new.run_id, origin=origin, yes=execution.yes)
    rule = None if until is None else parse_rule(until, sequential, looks)
    code = execution.carry_out(
        setup, options, observer, output, cluster=judging.cluster(), rule=rule
    )
    raise typer.Exit(code)
