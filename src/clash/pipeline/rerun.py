"""A run once more: the same items, fresh seeds, and the same responses or new ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.collect.load import Prompts
from clash.collect.plan import observing
from clash.collect.resolve import own_config, read_panel
from clash.collect.templates import Templates
from clash.config import Config, Observers, Panel
from clash.errors import ConfigError, InputError
from clash.pipeline import keys
from clash.pipeline import prepare as beginning
from clash.pipeline.prepare import Origin, Prepared
from clash.store import layout
from clash.store.folder import RunFolder, check_run_id, manifests
from clash.store.manifest import sha256_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from clash.analysis.prereg import Frozen
    from clash.records import Response
    from clash.store.manifest import Manifest


@dataclass(frozen=True)
class Again:
    """A rerun that could begin now."""

    prepared: Prepared
    origin: Origin
    name: str


def reruns(parent: RunFolder) -> list[RunFolder]:
    """The reruns of ``parent`` that lie beside it and have ended, in the order they were made."""
    name = parent.manifest().run
    ended = [
        (run, manifest)
        for run, manifest in manifests(parent.path.parent)
        if run.path != parent.path and manifest.parent == name and manifest.seal
    ]
    return [run for run, _ in sorted(ended, key=lambda pair: (_number(pair[1]), pair[1].started))]


def _number(manifest: Manifest) -> int:
    return manifest.seeds.get("number", 0)


def next_number(parent: RunFolder) -> int:
    """The number of the next rerun: seeds derive from it, so none is used twice."""
    name = _run_id(parent)
    beside = [manifest for _, manifest in manifests(parent.path.parent)]
    number = max([0, *(_number(m) for m in beside if m.parent == name)]) + 1
    while (parent.path.parent / f"{name}-r{number}").exists():
        number += 1
    return number


def _run_id(parent: RunFolder) -> str:
    """The id of a run, which the names of its reruns begin with."""
    return check_run_id(parent.manifest().run, f"{parent.path / layout.MANIFEST}: run")


def derived_seed(seed: int, number: int) -> int:
    """The seed of rerun ``number`` of a run with ``seed``: the same for the same two."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4])


def again(
    parent: RunFolder,
    environ: Mapping[str, str],
    number: int,
    *,
    regenerate: bool = False,
    only: Collection[str] | None = None,
    panel: str | None = None,
    limits: Mapping[str, Any] | None = None,
    notes: tuple[str, ...] = (),
    registration: Frozen | None = None,
) -> Again:
    """Plan rerun ``number`` of a run.

    Args:
        parent: the run.
        environ: where keys are.
        number: from 1.
        regenerate: ask the candidates for fresh responses.
        only: judge these items alone.
        panel: the panel to seat, for runs of other tools, whose judges clash cannot call.
        limits: replace some of the run's limits.
        notes: for the manifest.
        registration: the plan that the rerun is held to.

    Raises:
        InputError: there is nothing to judge again, or nothing to generate again.
    """
    manifest = parent.manifest()
    keys.recall(manifest, environ)
    seed = manifest.seeds.get("seed", 0)
    config = _config(parent, derived_seed(seed, number), panel, limits or {})
    responses = tuple(parent.responses())
    config, given = (
        _fresh(config, responses, parent) if regenerate else _same(config, responses, parent)
    )
    items = tuple(i for i in parent.items() if only is None or i.item_id in only)
    kept = {item.item_id for item in items}
    given = tuple(r for r in given if r.item_id in kept)
    prompts = Prompts(Path(manifest.prompts or "items.jsonl"), items, given, _hash(items, given))
    templates = Templates.from_manifest(manifest.templates) if manifest.templates else None
    prepared = beginning.assemble(config, prompts, environ, templates=templates)
    generated = {candidate.id for candidate in prepared.plan.candidates}
    known = manifest.candidates or manifest.config["candidates"]
    origin = Origin(
        labels=tuple(label for label in parent.labels() if label.item_id in kept),
        dataset={key: part for key, part in manifest.dataset.items() if key != "figures"},
        candidates=tuple(about for about in known if about["id"] not in generated),
        parent=manifest.run,
        seeds={"parent_seed": seed, "number": number},
        notes=notes,
        registration=registration,
    )
    return Again(prepared, origin, f"{_run_id(parent)}-r{number}")


def _config(parent: RunFolder, seed: int, panel: str | None, limits: Mapping[str, Any]) -> Config:
    """The configuration of a run, but for what was read from other files: its folder has that."""
    manifest = parent.manifest()
    told = {**own_config(parent), "prompts": None, "templates": None}
    # A run of another tool knows of its candidates only what they are called.
    told["candidates"] = [about for about in told.get("candidates", []) if "model" in about]
    config = Config.model_validate({**told, "seed": seed, "repeat": 1})
    seated = read_panel(panel, "file") if panel is not None else config.panel
    if not isinstance(seated, Panel):
        raise ConfigError(
            f"{manifest.run} names no panel that clash can call",
            field="--panel",
            hint="name one: --panel supreme-court",
        )
    return config.model_copy(
        update={"panel": seated, "limits": config.limits.model_copy(update=dict(limits))}
    )


def _same(
    config: Config, responses: tuple[Response, ...], parent: RunFolder
) -> tuple[Config, tuple[Response, ...]]:
    """Everything there is, injected; nobody generates, and whoever observed observes again."""
    if not any(response.text is not None for response in responses):
        raise InputError(
            "holds no response text, so nothing can be judged again",
            path=parent.path,
            hint="--compare shows how its reruns agree",
        )
    observers = Observers(
        judges=observing(config),
        role=config.observers.role,
        weight=config.observers.weight,
        panel_weight=config.observers.panel_weight,
    )
    injected = tuple(
        r.model_copy(update={"source": "injected", "call_id": None, "cost_usd": None})
        for r in responses
    )
    return config.model_copy(update={"candidates": [], "observers": observers}), injected


def _fresh(
    config: Config, responses: tuple[Response, ...], parent: RunFolder
) -> tuple[Config, tuple[Response, ...]]:
    """Only what was injected; the candidates write the rest anew."""
    if not config.candidates:
        raise InputError(
            "names no candidate that is a model, so no response can be generated again",
            path=parent.path,
            field="--regenerate",
            hint="leave --regenerate out: the same responses are judged again",
        )
    return config, tuple(r for r in responses if r.source == "injected")


def _hash(items: tuple[Any, ...], responses: tuple[Response, ...]) -> str:
    return sha256_json([part.model_dump(mode="json") for part in (*items, *responses)])
