from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import (
    AsJson,
    Batch,
    BothOrders,
    Compress,
    Concurrency,
    ConfigFile,
    CriteriaFrom,
    CriteriaMode,
    DryRun,
    EnvFile,
    ExcludeSelf,
    Labels,
    Looks,
    MaxCost,
    Method,
    Metrics,
    MinConfidence,
    Models,
    Otel,
    OutOrConfig,
    PanelName,
    PerJudge,
    Prereg,
    QuestionOption,
    Quiet,
    Ray,
    RaySendKeys,
    RiskConfidence,
    RunId,
    Scale,
    Seed,
    Sequential,
    TrustHost,
    UnknownPrice,
    Until,
    Verbose,
    Watch,
    Workers,
    Yes,
    judging_settings,
    ray_cluster,
)


def evaluate(
    prompts: Annotated[
        Path | None,
        typer.Argument(
            help="Prompts: YAML, JSONL, CSV, text, or a folder.", envvar="CLASH_PROMPTS"
        ),
    ] = None,
    models: Models = None,
    panel: PanelName = None,
    out: OutOrConfig = None,
    run_id: RunId = None,
    method: Method = None,
    min_confidence: MinConfidence = None,
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
    max_cost: MaxCost = None,
    allow_unknown_price: UnknownPrice = False,
    concurrency: Concurrency = None,
    workers: Workers = None,
    ray: Ray = None,
    ray_send_keys: RaySendKeys = False,
    compress: Compress = False,
    batch: Batch = None,
    criteria: CriteriaMode = None,
    criteria_from: CriteriaFrom = None,
    text_labels: Labels = None,
    scale: Scale = None,
    question: QuestionOption = None,
    both_orders: BothOrders = None,
    per_judge: PerJudge = None,
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
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Only every N-th item, from item I on: 2/4 is the second of four shards. Run each "
            "in a process of its own, then `clash merge` joins them. --max-cost is that of the "
            "whole run; a shard spends its share.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    prereg: Prereg = None,
    until: Until = None,
    sequential: Sequential = "always-valid",
    looks: Looks = 5,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    seed: Seed = None,
    watch: Watch = False,
    otel: Otel = False,
    metrics: Metrics = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge candidates on your prompts: generate or inject, blind, judge, aggregate, report.

    `clash eval prompts.yaml --models openai/a,anthropic/b --panel supreme-court`
    """
    from clash.cli.common import environment
    from clash.cli.dry_run import print_dry_run
    from clash.cli.outcome import print_result
    from clash.cli.watch import RunObserver
    from clash.collect.resolve import read_config
    from clash.pipeline.execute import execute
    from clash.pipeline.options import Origin, RunOptions
    from clash.pipeline.prepare import prepare
    from clash.pipeline.prereg import read_plan
    from clash.pipeline.sequential_run import execute_until
    from clash.pipeline.sources import open_run
    from clash.pipeline.stopping import check_controls, parse_rule
    from clash.providers.ray_cluster import cluster_connection

    cluster = ray_cluster(ray, send_keys=ray_send_keys)
    settings = {
        "candidates": [m.strip() for m in models.split(",") if m.strip()] if models else None,
        "panel": panel,
        "aggregate.method": method,
        "aggregate.min_confidence": min_confidence,
        "aggregate.calibrator": None if calibrator is None else str(calibrator),
        "aggregate.max_risk": max_risk,
        "aggregate.risk_confidence": risk_confidence,
        "limits.max_cost": max_cost,
        "limits.allow_unknown_price": allow_unknown_price or None,
        "limits.concurrency": concurrency,
        "limits.workers": workers,
        "limits.ray": cluster,
        "compress": "zstd" if compress else None,
        "limits.batch": batch,
        "criteria.mode": criteria,
        "criteria.reuse": criteria_from,
        **judging_settings(text_labels, scale, question),
        "blinding.both_orders": both_orders,
        "exclude_self": exclude_self,
        "blinding.per_judge": per_judge,
        "observers": {"none": []}.get(observers or "", observers),
        "repeat": repeat,
        "seed": seed,
        "out": None if out is None else str(out),
    }
    environ = environment(env_file, trust_host)
    observer = RunObserver(quiet=quiet or as_json, watch=watch, otel=otel, metrics=metrics)
    earlier = open_run(replay, out or Path("runs"), observer) if replay else None
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
    options = RunOptions(environ, observer, run_id=run_id, origin=origin, yes=yes)
    if shard is not None:
        setup = setup.cut(shard)
    rule = None if until is None else parse_rule(until, sequential, looks)
    if rule is not None:
        check_controls(setup.plan.config)
    if dry_run:
        print_dry_run(setup.plan, environ, setup.notes, as_json=as_json, verbose=verbose)
        return
    with observer, cluster_connection(cluster):
        result = execute_until(setup, rule, options) if rule else execute(setup, options)
    print_result(result, as_json=as_json, verbose=verbose, quiet=quiet)
    raise typer.Exit(result.exit_code)
