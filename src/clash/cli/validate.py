from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from clash.cli.completion import complete_datasets
from clash.cli.datasets import Cache, RuleSet, Stratify
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
    MaxCost,
    Method,
    Metrics,
    MinConfidence,
    Otel,
    OutOrConfig,
    PanelName,
    PerJudge,
    Prereg,
    QuestionOption,
    Quiet,
    Ray,
    RaySendKeys,
    RunId,
    Scale,
    Seed,
    TrustHost,
    UnknownPrice,
    Verbose,
    Watch,
    Workers,
    Yes,
    judging_settings,
    ray_cluster,
)

_SAMPLE_SEED = 42


def validate(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A name from `clash datasets list`, or a file of labelled pairs or prompts.",
            metavar="DATASET",
            autocompletion=complete_datasets,
        ),
    ],
    n: Annotated[
        int | None,
        typer.Option("--n", "-n", min=1, help="Number of items to sample; default: all."),
    ] = None,
    sample_seed: Annotated[
        int, typer.Option("--sample-seed", help="Seed of the sample.")
    ] = _SAMPLE_SEED,
    rules: Annotated[
        RuleSet | None,
        typer.Option(
            "--rules",
            help="paper: the published inclusion rules (default by name); clear: clear winners;"
            " all: whatever has a label (default for a file).",
        ),
    ] = None,
    stratify: Annotated[
        Stratify | None,
        typer.Option("--stratify", help="Keep the proportions of this field in the sample."),
    ] = None,
    keep_repeats: Annotated[
        bool,
        typer.Option(
            "--keep-repeats",
            help="Judge pairs again that repeat another one, prompt and responses alike.",
        ),
    ] = False,
    tiers: Annotated[
        Path | None,
        typer.Option("--tiers", help="YAML: tier (or tier, elo, family) by candidate."),
    ] = None,
    panel: PanelName = None,
    out: OutOrConfig = None,
    run_id: RunId = None,
    method: Method = None,
    min_confidence: MinConfidence = None,
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
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay", help="Answer from the recorded calls of this run: no network, no cost."
        ),
    ] = None,
    exclude_self: ExcludeSelf = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    prereg: Prereg = None,
    cache: Cache = None,
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
    """Check a panel against people: judge labelled pairs blind and report the agreement.

    `clash validate mt-bench --n 100 --panel supreme-court`
    """
    from clash.cli.common import environment
    from clash.cli.dry_run import print_dry_run
    from clash.cli.outcome import print_result
    from clash.cli.watch import RunObserver
    from clash.collect.resolve import read_config
    from clash.pipeline.execute import execute
    from clash.pipeline.options import RunOptions
    from clash.pipeline.prepare import assemble, injected_only
    from clash.pipeline.prereg import read_plan
    from clash.pipeline.sources import open_run
    from clash.pipeline.validation import Draw, draw_labelled, sample_origin, sample_prompts
    from clash.providers.ray_cluster import cluster_connection

    cluster = ray_cluster(ray, send_keys=ray_send_keys)
    settings = {
        "panel": panel,
        "aggregate.method": method,
        "aggregate.min_confidence": min_confidence,
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
        "seed": seed,
        "out": None if out is None else str(out),
    }
    environ = environment(env_file, trust_host)
    observer = RunObserver(quiet=quiet or as_json, watch=watch, otel=otel, metrics=metrics)
    own_config = injected_only(read_config(config, settings))
    draw = Draw(
        n,
        sample_seed,
        None if rules is None else rules.value,
        None if stratify is None else stratify.value,
        cache,
        keep_repeats,
        single=own_config.judging.is_single,
    )
    sample = draw_labelled(dataset, draw)
    earlier = open_run(replay, out or Path("runs"), observer) if replay else None
    setup = assemble(
        own_config,
        sample_prompts(sample),
        environ,
        observer,
        replay=earlier,
    )
    if dry_run:
        print_dry_run(setup.plan, environ, setup.notes, as_json=as_json, verbose=verbose)
        return
    origin = replace(sample_origin(sample, tiers), registration=read_plan(prereg))
    options = RunOptions(environ, observer, kind="validate", run_id=run_id, origin=origin, yes=yes)
    with observer, cluster_connection(cluster):
        result = execute(setup, options)
    print_result(result, as_json=as_json, verbose=verbose, quiet=quiet)
    raise typer.Exit(result.exit_code)
