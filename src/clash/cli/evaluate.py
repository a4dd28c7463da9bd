from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from clash.cli.common import (
    AsJson,
    Batch,
    ConfigFile,
    EnvFile,
    ExcludeSelf,
    Prereg,
    Quiet,
    RunId,
    Seed,
    TrustHost,
    Verbose,
)


def evaluate(
    prompts: Annotated[
        Path | None,
        typer.Argument(
            help="Prompts: YAML, JSONL, CSV, text, or a folder.", envvar="CLASH_PROMPTS"
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option("--models", "-m", envvar="CLASH_MODELS", help="Candidates: provider/model,…"),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option("--panel", "-p", envvar="CLASH_PANEL", help="Name or file of the panel."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", envvar="CLASH_OUT", help="Folder that runs land in."),
    ] = None,
    run_id: RunId = None,
    method: Annotated[
        str | None, typer.Option("--method", help="How judgments become verdicts.")
    ] = None,
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", help="A file of `clash calibrate`: verdicts by it."),
    ] = None,
    max_risk: Annotated[
        float | None,
        typer.Option(
            "--max-risk", help="Share of wrong verdicts to allow; the rest is left for review."
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", envvar="CLASH_MAX_COST", min=0, help="US dollars, a hard cap."),
    ] = None,
    allow_unknown_price: Annotated[
        bool, typer.Option("--allow-unknown-price", help="Call models whose price is unknown.")
    ] = False,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", "-j", envvar="CLASH_CONCURRENCY", min=1, help="Most calls in flight."
        ),
    ] = None,
    batch: Batch = None,
    criteria: Annotated[
        str | None, typer.Option("--criteria", help="dynamic, fixed or none.")
    ] = None,
    criteria_from: Annotated[
        str | None, typer.Option("--criteria-from", help="A run whose criteria are used again.")
    ] = None,
    both_orders: Annotated[
        bool | None, typer.Option("--both-orders", help="Each judge sees both orders.")
    ] = None,
    per_judge: Annotated[
        bool | None, typer.Option("--per-judge", help="A shuffle of its own for each judge.")
    ] = None,
    observers: Annotated[
        str | None, typer.Option("--observers", help="candidates (the default) or none.")
    ] = None,
    repeat: Annotated[
        int | None, typer.Option("--repeat", min=1, help="Generate and judge each item so often.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="Only the first items.")
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            help="Answer from this run's calls, with its settings and, where none are given, its"
            " prompts: no network, free.",
        ),
    ] = None,
    exclude_self: ExcludeSelf = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and price; make no call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    prereg: Prereg = None,
    until: Annotated[
        str | None,
        typer.Option("--until", help='Judge in batches until this holds, as "ci<0.1".'),
    ] = None,
    sequential: Annotated[
        str,
        typer.Option(
            "--sequential", help="How looks are paid for: always-valid, obrien-fleming, pocock."
        ),
    ] = "always-valid",
    looks: Annotated[
        int, typer.Option("--looks", min=1, max=50, help="Looks of --until, evenly spaced.")
    ] = 5,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Judge candidates on your prompts: generate or inject, blind, judge, aggregate, report.

    `clash eval prompts.yaml --models openai/a,anthropic/b --panel supreme-court`
    """
    from clash.cli.common import open_run
    from clash.cli.prereg import registered
    from clash.collect.resolve import load_environ
    from clash.errors import ConfigError
    from clash.pipeline import execute as pipeline
    from clash.pipeline import prepare as beginning
    from clash.pipeline.sequential import judge_until
    from clash.pipeline.stopping import rule_of

    environ = load_environ(os.environ, env_file, trust_host or ())
    overrides: dict[str, Any] = {
        "candidates": [m.strip() for m in models.split(",") if m.strip()] if models else None,
        "panel": panel,
        "aggregate.method": method,
        "aggregate.calibrator": None if calibrator is None else str(calibrator),
        "aggregate.max_risk": max_risk,
        "limits.max_cost": max_cost,
        "limits.allow_unknown_price": allow_unknown_price or None,
        "limits.concurrency": concurrency,
        "limits.batch": batch,
        "criteria.mode": criteria,
        "criteria.reuse": criteria_from,
        "blinding.both_orders": both_orders,
        "exclude_self": exclude_self,
        "blinding.per_judge": per_judge,
        "observers": {"none": []}.get(observers or "", observers),
        "repeat": repeat,
        "seed": seed,
        "out": str(out) if out is not None else None,
    }
    earlier = open_run(replay, out or Path("runs")) if replay else None
    made = beginning.prepare(
        config, overrides, environ, prompts=prompts, limit=limit, replay=earlier
    )
    labels = earlier.labels() if earlier is not None and prompts is None else ()
    origin = beginning.Origin(labels=tuple(labels), registration=registered(prereg))
    rule = None if until is None else rule_of(until, sequential, looks)
    if rule is not None and made.plan.config.blinding.controls:
        raise ConfigError(
            "control items cannot be added to a run that stops by --until",
            field="blinding.controls",
            hint="leave one of the two out; `clash redteam PANEL` tests the judges by itself",
        )
    if rule is not None and not dry_run:
        raise typer.Exit(
            judge_until(
                made,
                rule,
                environ,
                kind="eval",
                out=Path(made.plan.config.out),
                run_id=run_id,
                origin=origin,
                yes=yes,
                as_json=as_json,
                quiet=quiet,
                whole=verbose,
            )
        )
    raise typer.Exit(
        pipeline.launch(
            made,
            environ,
            origin=origin,
            kind="eval",
            out=Path(made.plan.config.out),
            run_id=run_id,
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
            quiet=quiet,
            whole=verbose,
        )
    )
