"""Labelled items for a panel to judge: load a data set, draw from it, and plan the run."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from clash.collect.load import Prompts, load
from clash.datasets import catalogue, loaders, published_models
from clash.datasets.dataset import Dataset, Exclusion, labels_path, read_labels, to_prompts
from clash.datasets.sampling import SamplingRules, paper_rules, to_exclusions
from clash.datasets.sampling import sample as draw_sample
from clash.documents import read_yaml
from clash.errors import InputError
from clash.files import run_files
from clash.files.inputs import without_gz
from clash.pipeline.options import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.datasets.sampling import DatasetSample, Stratum
    from clash.documents import Document
    from clash.records import Item

RuleSet = Literal["paper", "clear", "all"]
SAMPLE_SEED = 42
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Draw:
    """How labelled items are drawn from a data set.

    Attributes:
        n: how many; null is all.
        rules: inclusion rules; null is ``paper`` for a data set and ``all`` for a file.
        stratify: draw in proportion to this attribute.
        cache: the folder of downloaded data sets.
        keep_repeats: judge items again that show what an earlier one shows.
        single: each text is judged by itself, so that labels are of texts.
    """

    n: int | None = None
    seed: int = SAMPLE_SEED
    rules: RuleSet | None = None
    stratify: Stratum | None = None
    cache: Path | None = None
    keep_repeats: bool = False
    single: bool = False


def draw_labelled(name: str, draw: Draw) -> DatasetSample:
    """Draw labelled items from a data set by name, or from a file.

    Raises:
        InputError: there is no such data set, it holds no label, or too few items.
    """
    dataset = _load(name, draw)
    if not any(map(_is_labelled, dataset.items)):
        raise InputError(
            "contains no labels, so agreement cannot be measured",
            path=name,
            hint="give each item a label, or use `clash eval`"
            if draw.single
            else "give each item a label (a candidate, or tie), or use `clash eval`",
        )
    rules = replace(
        sampling_rules(dataset.name, draw.rules or ("all" if Path(name).exists() else "paper")),
        n=draw.n,
        seed=draw.seed,
        stratify=draw.stratify,
        keep_repeats=draw.keep_repeats,
    )
    labelled_items = dataset.only(
        {item.item_id for item in dataset.items if _is_labelled(item)},
        [Exclusion(item.item_id, "no label") for item in dataset.items if not _is_labelled(item)],
    )
    return draw_sample(labelled_items, rules, np.random.default_rng(draw.seed))


def _is_labelled(item: Item) -> bool:
    return item.label is not None or bool(item.text_labels)


def _load(name: str, draw: Draw) -> Dataset:
    path = Path(name)
    is_prompts = path.is_file() and draw.single
    if not is_prompts and without_gz(path).suffix.lower() not in _YAML:
        return loaders.load(name, cache=draw.cache)
    prompts = load(path, single=draw.single)
    labels = labels_path(path)
    return Dataset(
        name=without_gz(path).stem,
        source=path.name,
        licence="as its file says",
        items=tuple(prompts.items),
        responses=tuple(prompts.responses),
        labels=read_labels(labels) if labels.is_file() else (),
        notes=prompts.warnings,
    )


def sampling_rules(dataset: str, rules: RuleSet) -> SamplingRules:
    """The inclusion rules of that name for a data set."""
    match rules:
        case "paper":
            return paper_rules(dataset)
        case "clear":
            return SamplingRules(clear_winner=True)
        case "all":
            return SamplingRules()


def write_sample(sample: DatasetSample, path: Path | None = None) -> dict[str, str]:
    """Write a sample as a prompts file, with its labels, exclusions and account beside it.

    Args:
        sample: the sample.
        path: the prompts file; null names it by data set, size and seed.

    Returns:
        The path of each file by what it holds.
    """
    dataset = sample.dataset
    if path is None:
        path = Path(f"{dataset.name}-{len(dataset.items)}-seed{sample.rules.seed}.jsonl")
    stem = path.name.rpartition(".")[0] or path.name
    labels = (label.model_dump_json(exclude_defaults=True) for label in dataset.labels)
    files: dict[str, tuple[Path, Iterable[str]]] = {
        "prompts": (path, to_prompts(dataset)),
        "labels": (labels_path(path), labels),
        "excluded": (path.with_name(f"{stem}.excluded.jsonl"), to_exclusions(dataset.exclusions)),
        "account": (path.with_name(f"{stem}.sample.json"), [sample.summary()]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    for file, lines in files.values():
        # Some of these names are ours and not the user's, so no link that bears one is followed.
        run_files.replace(file, "".join(f"{line}\n" for line in lines).encode("utf-8"))
    return {name: str(file) for name, (file, _) in files.items()}


def sample_prompts(sample: DatasetSample) -> Prompts:
    """A sample as a prompts file would hold it, with notes on what was left out."""
    dataset = sample.dataset
    digest = hashlib.sha256()
    for line in to_prompts(dataset):
        digest.update(f"{line}\n".encode())
    left_out = {k: v for k, v in sample.counts.items() if k not in ("items", "admitted", "drawn")}
    notes = [f"left out: {count} ({reason})" for reason, count in left_out.items()]
    notes += [f"the source does not say, so not applied: {name}" for name in sample.open_rules]
    return Prompts(
        Path(dataset.name),
        dataset.items,
        dataset.responses,
        digest.hexdigest(),
        (*dataset.notes, *notes),
    )


def sample_origin(sample: DatasetSample, tiers: Path | None) -> Origin:
    """Labels, data set and candidates of a sample, for the manifest of its run."""
    dataset = sample.dataset
    known_dataset = catalogue.find_in_text(dataset.name)
    return Origin(
        labels=dataset.labels,
        dataset={
            "name": dataset.name,
            "source": dataset.source,
            "licence": dataset.licence,
            "rules": sample.rules.record(),
            "counts": dict(sample.counts),
            "published": [ref.model_dump() for ref in known_dataset.published]
            if known_dataset
            else [],
        },
        candidates=tuple(_describe_candidates(dataset.candidates, tiers)),
    )


def _describe_candidates(candidates: Iterable[str], tiers: Path | None) -> list[dict[str, Any]]:
    """Family, tier and rating of each candidate: the shipped ones under those of the file."""
    overrides: dict[str, Any] = {}
    if tiers is not None:
        document = read_yaml(tiers)
        if not isinstance(document.value, dict):
            raise document.error("expected candidate: tier", hint="gpt-4: strong")
        for name, tier in document.value.items():
            overrides[str(name)] = _tier_entry(tier, document, str(name))
    return [{**published_models.describe(name), **overrides.get(name, {})} for name in candidates]


def _tier_entry(tier: object, document: Document, name: str) -> dict[str, Any]:
    if isinstance(tier, str):
        return {"tier": tier}
    if isinstance(tier, dict) and set(tier) <= {"tier", "elo", "family"}:
        return tier
    raise document.error("expected a tier, or tier, elo and family", name)
