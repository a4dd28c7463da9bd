from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.option_groups import grouped
from clash.cli.options import (
    Access,
    ConfigFile,
    DryRun,
    ExcludeSelf,
    Looks,
    Models,
    Monitoring,
    NewJudgments,
    NewRun,
    Output,
    Prereg,
    RiskConfidence,
    Seed,
    Sequential,
    ShardOption,
    Until,
    Yes,
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
    exclude_self: ExcludeSelf = None,
    shard: ShardOption = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    prereg: Prereg = None,
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
    from clash.cli.dry_run import print_dry_run
    from clash.cli.outcome import print_result
    from clash.collect.resolve import read_config
    from clash.pipeline.execute import execute
    from clash.pipeline.prepare import prepare
    from clash.pipeline.prereg import read_plan
    from clash.pipeline.sequential_run import execute_until
    from clash.pipeline.stopping import check_controls, parse_rule
    from clash.providers.ray_cluster import cluster_connection

    settings = {
        **new.settings(),
        **judging.settings(),
        "candidates": [m.strip() for m in models.split(",") if m.strip()] if models else None,
        "aggregate.calibrator": None if calibrator is None else str(calibrator),
        "aggregate.max_risk": max_risk,
        "aggregate.risk_confidence": risk_confidence,
        "observers": {"none": []}.get(observers or "", observers),
        "repeat": repeat,
        "exclude_self": exclude_self,
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
    origin = Origin(labels=tuple(labels), registration=read_plan(prereg))
    options = RunOptions(environ, observer, run_id=new.run_id, origin=origin, yes=yes)
    if shard is not None:
        setup = setup.cut(shard)
    rule = None if until is None else parse_rule(until, sequential, looks)
    if rule is not None:
        check_controls(setup.plan.config)
    if dry_run:
        print_dry_run(
            setup.plan, environ, setup.notes, as_json=output.as_json, verbose=output.verbose
        )
        return
    with observer, cluster_connection(judging.cluster()):
        result = execute_until(setup, rule, options) if rule else execute(setup, options)
    print_result(result, output)
    raise typer.Exit(result.exit_code)
