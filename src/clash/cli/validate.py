from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from clash.cli.datasets import Cache, RuleSet, Stratify

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.collect.load import Prompts
    from clash.datasets.dataset import Dataset
    from clash.datasets.sampling import DatasetSample, SamplingRules
    from clash.pipeline.prepare import Origin

_YAML = (".yaml", ".yml")
_SAMPLE_SEED = 42


def validate(
    dataset: Annotated[
        str,
        typer.Argument(
            help="A name of `clash datasets list`, or a file of labelled pairs or prompts.",
            metavar="DATASET",
        ),
    ],
    n: Annotated[
        int | None, typer.Option("--n", "-n", min=1, help="How many items to draw; default: all.")
    ] = None,
    sample_seed: Annotated[
        int, typer.Option("--sample-seed", help="Seed of the draw.")
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
        Stratify | None, typer.Option("--stratify", help="Draw in proportion to this.")
    ] = None,
    tiers: Annotated[
        Path | None,
        typer.Option("--tiers", help="YAML: tier (or tier, elo, family) by candidate."),
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
    replay: Annotated[
        str | None, typer.Option("--replay", help="Answer from this run's calls: no network, free.")
    ] = None,
    exclude_self: ExcludeSelf = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Plan and price; make no call.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    prereg: Prereg = None,
    cache: Cache = None,
    config: ConfigFile = None,
    env_file: EnvFile = None,
    trust_host: TrustHost = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Hold a panel against people: judge labelled pairs blind, then report the concordance.

    `clash validate mt-bench --n 100 --panel supreme-court`
    """
    from clash.cli.common import open_run
    from clash.cli.prereg import registered
    from clash.collect.resolve import load_environ, read_config
    from clash.pipeline import execute as pipeline
    from clash.pipeline import prepare as beginning

    environ = load_environ(os.environ, env_file, trust_host or ())
    overrides: dict[str, Any] = {
        "panel": panel,
        "aggregate.method": method,
        "limits.max_cost": max_cost,
        "limits.allow_unknown_price": allow_unknown_price or None,
        "limits.concurrency": concurrency,
        "limits.batch": batch,
        "criteria.mode": criteria,
        "criteria.reuse": criteria_from,
        "blinding.both_orders": both_orders,
        "exclude_self": exclude_self,
        "blinding.per_judge": per_judge,
        "seed": seed,
        "out": str(out) if out is not None else None,
    }
    drawn = _drawn(dataset, cache, rules, n=n, seed=sample_seed, stratify=stratify)
    earlier = open_run(replay, out or Path("runs")) if replay else None
    made = beginning.assemble(
        pipeline.injected_only(read_config(config, overrides)),
        _prompts(drawn),
        environ,
        replay=earlier,
    )
    raise typer.Exit(
        pipeline.launch(
            made,
            environ,
            kind="validate",
            out=Path(made.plan.config.out),
            run_id=run_id,
            origin=replace(_origin(drawn, tiers), registration=registered(prereg)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
            quiet=quiet,
            whole=verbose,
        )
    )


def _drawn(
    name: str,
    cache: Path | None,
    chosen: RuleSet | None,
    *,
    n: int | None,
    seed: int,
    stratify: Stratify | None,
) -> DatasetSample:
    """The labelled items to judge.

    Raises:
        InputError: there is no such data set, it holds no label, or too few items.
    """
    import numpy as np

    from clash.datasets.dataset import Exclusion
    from clash.datasets.sampling import sample
    from clash.errors import InputError

    loaded = _loaded(name, cache)
    if not any(item.label for item in loaded.items):
        raise InputError(
            "holds no label, so there is nobody to agree with",
            path=name,
            hint="give each item a label (a candidate, or tie), or use `clash eval`",
        )
    wanted = replace(
        _rules(loaded, chosen, is_file=Path(name).exists()),
        n=n,
        seed=seed,
        stratify=stratify.value if stratify else None,
    )
    labelled = loaded.only(
        {item.item_id for item in loaded.items if item.label},
        [Exclusion(item.item_id, "no label") for item in loaded.items if not item.label],
    )
    return sample(labelled, wanted, np.random.default_rng(seed))


def _loaded(name: str, cache: Path | None) -> Dataset:
    from clash.collect.load import load
    from clash.datasets import loaders
    from clash.datasets.dataset import Dataset, labels_path, read_labels
    from clash.files.inputs import without_gz

    path = Path(name)
    if without_gz(path).suffix.lower() not in _YAML:
        return loaders.load(name, cache=cache)
    prompts = load(path)
    beside = labels_path(path)
    return Dataset(
        name=without_gz(path).stem,
        source=path.name,
        licence="as its file says",
        items=prompts.items,
        responses=prompts.responses,
        labels=read_labels(beside) if beside.is_file() else (),
        notes=prompts.warnings,
    )


def _rules(loaded: Dataset, chosen: RuleSet | None, *, is_file: bool) -> SamplingRules:
    from clash.datasets.sampling import SamplingRules, paper_rules

    match chosen or (RuleSet.all if is_file else RuleSet.paper):
        case RuleSet.paper:
            return paper_rules(loaded.name)
        case RuleSet.clear:
            return SamplingRules(clear_winner=True)
        case RuleSet.all:
            return SamplingRules()


def _prompts(drawn: DatasetSample) -> Prompts:
    from clash.collect.load import Prompts
    from clash.datasets.dataset import to_prompts

    dataset = drawn.dataset
    digest = hashlib.sha256()
    for line in to_prompts(dataset):
        digest.update(f"{line}\n".encode())
    left_out = {k: v for k, v in drawn.counts.items() if k not in ("items", "admitted", "drawn")}
    told = [f"left out: {count} ({reason})" for reason, count in left_out.items()]
    told += [f"the source does not say, so not applied: {name}" for name in drawn.unanswered]
    return Prompts(
        Path(dataset.name), dataset.items, dataset.responses, digest.hexdigest(),
        (*dataset.notes, *told),
    )  # fmt: skip


def _origin(drawn: DatasetSample, tiers: Path | None) -> Origin:
    from clash.datasets import catalogue
    from clash.pipeline.prepare import Origin

    dataset = drawn.dataset
    entry = catalogue.find_in_text(dataset.name)
    return Origin(
        labels=dataset.labels,
        dataset={
            "name": dataset.name,
            "source": dataset.source,
            "licence": dataset.licence,
            "rules": asdict(drawn.rules),
            "counts": dict(drawn.counts),
            "published": [ref.model_dump() for ref in entry.published] if entry else [],
        },
        candidates=tuple(_known(dataset.candidates, tiers)),
    )


def _known(candidates: Iterable[str], tiers: Path | None) -> list[dict[str, Any]]:
    """Family, tier and rating of each candidate: as clash knows them, then as the file says."""
    from clash.datasets import published_models
    from clash.documents import read_yaml

    told: dict[str, Any] = {}
    if tiers is not None:
        document = read_yaml(tiers)
        if not isinstance(document.value, dict):
            raise document.error("expected candidate: tier", hint="gpt-4: strong")
        for name, about in document.value.items():
            told[str(name)] = _about(about, document, str(name))
    return [{**published_models.describe(name), **told.get(name, {})} for name in candidates]


def _about(about: object, document: Any, name: str) -> dict[str, Any]:  # noqa: ANN401 - a Document
    if isinstance(about, str):
        return {"tier": about}
    if isinstance(about, dict) and set(about) <= {"tier", "elo", "family"}:
        return about
    raise document.error("expected a tier, or tier, elo and family", name)
