"""From what a user wrote to a run folder that is ready for its first call: nothing is spent yet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.cli.common import say
from clash.cli.guard import learn
from clash.collect.load import Prompts, load
from clash.collect.plan import Plan, make_plan, observing, self_votes
from clash.collect.resolve import ResolvedConfig, read_config, replay_config, resolve
from clash.collect.templates import Templates
from clash.config import Config, Panel
from clash.datasets.controls import control_items, draw, read_controls
from clash.errors import ConfigError
from clash.files.inputs import without_gz
from clash.pipeline import keys
from clash.pipeline import price as estimate
from clash.pipeline.losses import check_calls, check_given
from clash.providers import redactor_for
from clash.providers.prices import OFFLINE, has_price
from clash.store import layout
from clash.store.folder import RunFolder, RunWriter, new_run_id
from clash.store.git import git_state
from clash.store.manifest import (
    Manifest,
    now,
    seal_file,
    sha256_json,
    sha256_text,
    versions,
)
from clash.store.secrecy import without_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.prereg import Frozen
    from clash.collect.forecast import Forecast
    from clash.records import Criteria, Kind, Label, Pooled
    from clash.secrets.redaction import Redactor


@dataclass(frozen=True)
class Prepared:
    """A run that could begin now."""

    plan: Plan
    resolved: ResolvedConfig
    prompts: Prompts


@dataclass(frozen=True)
class Origin:
    """What a run has beside its plan, for its manifest and ``labels.jsonl``.

    Attributes:
        labels: people's decisions.
        dataset: where these come from.
        candidates: what is known of injected candidates.
        parent: the run that this one repeats.
        seeds: beside the run's own.
        registration: the plan that the run is held to.
        stopping: the rule of ``--until``; ``pool`` the items it may come to.
    """

    labels: tuple[Label, ...] = ()
    dataset: Mapping[str, Any] = field(default_factory=dict)
    candidates: tuple[Mapping[str, Any], ...] = ()
    parent: str | None = None
    seeds: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    registration: Frozen | None = None
    stopping: Mapping[str, Any] | None = None
    pool: tuple[Pooled, ...] = ()


def prepare(
    config_file: Path | None,
    overrides: Mapping[str, Any],
    environ: Mapping[str, str],
    *,
    prompts: Path | None = None,
    limit: int | None = None,
    replay: RunFolder | None = None,
    ignore_config: bool = False,
) -> Prepared:
    """Read everything that a user wrote, and refuse it where it is wrong: nothing is spent yet.

    A replay without prompts of its own is of the prompts and templates of that run.

    Raises:
        InputError: a file or an option is wrong.
    """
    config = read_config(config_file, overrides, ignore_file=ignore_config)
    path = prompts or (Path(config.prompts) if config.prompts else None)
    if path is None and replay is not None:
        templates = Templates.from_manifest(replay.manifest().templates)
        return assemble(
            config, recorded(replay), environ, limit=limit, replay=replay, templates=templates
        )
    if path is None:
        raise ConfigError(
            "no prompts", field="PROMPTS", hint="clash eval prompts.yaml, or prompts: in clash.yaml"
        )
    return assemble(config, load(path), environ, limit=limit, replay=replay)


def assemble(
    config: Config,
    loaded: Prompts,
    environ: Mapping[str, str],
    *,
    limit: int | None = None,
    replay: RunFolder | None = None,
    templates: Templates | None = None,
) -> Prepared:
    """Put configuration and prompts together, whatever the prompts came from.

    A replay puts the questions of its run, codes included, so it has the secret of that run.
    """
    if replay is not None:
        config = replay_config(config, replay)
    resolved = resolve(config, environ)
    if limit is not None:
        loaded = loaded.first(limit)
    if config.blinding.controls and not any(item.control for item in loaded.items):
        loaded = _with_controls(loaded, config)
    redactor = _redactor(config, resolved, environ)
    loaded = loaded.without_secrets(redactor)
    templates = templates or Templates.load(config.templates)
    made = make_plan(
        config,
        resolved.panel,
        loaded,
        Templates(redactor.data(dict(templates.texts))),
        criteria_ref=resolved.criteria_ref,
        criteria_why=resolved.criteria_why,
        reused_criteria=_reused(config),
        redactor=redactor,
        secret=secrets.token_hex(16) if replay is None else replay.manifest().secret,
    )
    notes = [*resolved.notes, *self_votes(made)]
    return Prepared(made, replace(resolved, notes=notes), loaded)


def _redactor(config: Config, resolved: ResolvedConfig, environ: Mapping[str, str]) -> Redactor:
    """Knows the secrets of the environment and of every model that a run may call."""
    judges = [*resolved.panel.judges, *observing(config)]
    fallbacks = (ref for judge in judges for ref in judge.fallbacks)
    refs = [*judges, *fallbacks, *config.candidates]
    criteria = [] if resolved.criteria_ref is None else [resolved.criteria_ref]
    known = redactor_for([*refs, *criteria], environ)
    learn(known)
    return known


def _with_controls(prompts: Prompts, config: Config) -> Prompts:
    """The prompts, and the control items that test the judges."""
    attacked = draw(read_controls(), config.blinding.controls, config.seed)
    items, responses = control_items(attacked)
    return replace(
        prompts,
        items=(*prompts.items, *items),
        responses=(*prompts.responses, *responses),
    )


def _reused(config: Config) -> dict[str, Criteria]:
    """Criteria of an earlier run, by item."""
    if config.criteria.reuse is None:
        return {}
    folder = RunFolder.open(config.criteria.reuse, out=config.out)
    return {record.item_id: record for record in folder.criteria()}


def _still_reused(folder: RunFolder, config: Config) -> dict[str, Criteria]:
    """As :func:`_reused`, for a run whose folder says what it reuses: the criteria it lacks.

    Raises:
        RunFolderError: the run that it names is none that lies beside it.
    """
    written = {record.item_id for record in folder.criteria()}
    if config.criteria.reuse is None or all(i.item_id in written for i in folder.items()):
        return {}
    earlier = folder.sibling(Path(config.criteria.reuse).name)
    earlier.manifest()
    return {record.item_id: record for record in earlier.criteria()}


def begin(
    prepared: Prepared,
    environ: Mapping[str, str],
    *,
    kind: Kind,
    out: Path,
    run_id: str | None = None,
    origin: Origin | None = None,
    forecast: Forecast | None = None,
) -> RunWriter:
    """Make the run folder, with everything in it that is known before the first call."""
    made, prompts, origin = prepared.plan, prepared.prompts, origin or Origin()
    config = _without_places(made.config).model_copy(update={"panel": made.panel})
    # Hashed as they are written, which is without secrets.
    settings = made.redactor.data(config.model_dump(mode="json"))
    panel = made.redactor.data(made.panel_record)
    name = run_id or new_run_id(without_gz(prompts.path).stem)
    templates = sha256_json(dict(made.templates.texts))
    calibrator, doubts = _calibrator(config, panel["judges"], templates)
    manifest = Manifest(
        run=name,
        kind=kind,
        parent=origin.parent,
        prompts=prompts.path.name,
        config=settings,
        panel=panel,
        candidates=[
            *(c.model_dump(mode="json") for c in made.candidates),
            *map(dict, origin.candidates),
        ],
        dataset=dict(origin.dataset),
        templates=dict(made.templates.texts),
        seeds={"seed": config.seed, **origin.seeds},
        secret=made.secret,
        hashes={
            "config": sha256_json(settings),
            "panel": sha256_json(panel),
            "prompts": prompts.sha256,
            "templates": templates,
            **{f"template {n}": sha256_text(t) for n, t in made.templates.texts.items()},
        },
        calibrator=calibrator,
        preregistration=origin.registration.sha256 if origin.registration else None,
        registration=origin.registration.as_json() if origin.registration else None,
        versions=versions(),
        git=git_state(),
        stopping=None if origin.stopping is None else dict(origin.stopping),
        counts=_promised(made, origin),
        forecast=None if forecast is None else forecast.summary(),
        started=now(),
        notes=[*prepared.resolved.notes, *prompts.warnings, *origin.notes, *doubts],
    )
    manifest = keys.sign(without_secrets(manifest, made.redactor), made.refs(), environ)
    criteria = _reused_criteria(made, origin)
    records = (*made.items, *made.responses, *origin.labels, *origin.pool, *criteria)
    return RunWriter.create(out, name, manifest, records, redactor=made.redactor)


def _reused_criteria(made: Plan, origin: Origin) -> Iterator[Criteria]:
    """The criteria of an earlier run for every item, so that this folder no longer needs that one."""
    items = (*made.items, *(pooled.item for pooled in origin.pool))
    for item_id in dict.fromkeys(item.item_id for item in items):
        if item_id in made.reused_criteria:
            yield made.reused_criteria[item_id].model_copy(update={"call_id": None})


def _promised(made: Plan, origin: Origin) -> dict[str, int]:
    """Records that are written before the first call: fewer of them are a run cut short."""
    counts = {"items": len(made.items), "injected": len(made.responses)}
    return counts if origin.stopping is None else {**counts, "pool": len(origin.pool)}


def _without_places(config: Config) -> Config:
    """Names instead of paths: what they led to is in the folder, and a path is of one machine."""
    update: dict[str, Any] = {
        name: Path(value).name
        for name in ("prompts", "templates")
        if (value := getattr(config, name)) is not None
    }
    if config.criteria.reuse is not None:
        run = RunFolder.find(config.criteria.reuse, out=config.out).path.resolve().name
        update["criteria"] = config.criteria.model_copy(update={"reuse": run})
    return config.model_copy(update=update)


def _calibrator(
    config: Config, judges: Sequence[Mapping[str, Any]], templates: str
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The calibrator that the configuration names, and what speaks against it.

    Raises:
        InputError: it was fitted on another panel, or on other prompts.
    """
    if config.aggregate.calibrator is None:
        return None, ()
    from clash.analysis.calibration.calibrated_verdicts import for_run
    from clash.analysis.calibration.calibrator import read_calibrator

    path = Path(config.aggregate.calibrator)
    found = read_calibrator(path)
    doubts = for_run(found, judges, templates, str(path))
    for doubt in doubts:
        say(doubt, style="yellow")
    return found.as_json(), doubts


def recorded(folder: RunFolder) -> Prompts:
    """The prompts of a run, with the responses that came with them."""
    name = Path(folder.manifest().prompts or layout.ITEMS)
    injected = tuple(r for r in folder.responses() if r.source == "injected")
    sealed = seal_file(folder.path / layout.ITEMS)
    return Prompts(name, tuple(folder.items()), injected, sealed.sha256)


def replan(
    folder: RunFolder,
    environ: Mapping[str, str],
    limits: Mapping[str, Any] | None = None,
    *,
    quiet: bool = True,
) -> Plan:
    """The plan of a run, from its folder alone; ``limits`` replaces some of its limits.

    Raises:
        ConfigError: the limits cannot be held.
        RunFolderError: the folder lost what cannot be made again.
    """
    manifest = folder.manifest()
    check_given(folder)
    config = Config.model_validate(manifest.config)
    if limits:
        changed = config.limits.model_copy(update=dict(limits))
        config = config.model_copy(update={"limits": changed})
    if not isinstance(config.panel, Panel):
        raise ConfigError("names no panel", path=folder.path / layout.MANIFEST, field="config")
    resolved = resolve(config, environ)
    prompts = recorded(folder)
    made = make_plan(
        config.model_copy(update={"repeat": 1}),
        config.panel,
        prompts,
        Templates(manifest.templates),
        criteria_ref=resolved.criteria_ref,
        criteria_why=resolved.criteria_why,
        reused_criteria=_still_reused(folder, config),
        redactor=_redactor(config, resolved, environ),
        secret=manifest.secret,
    )
    if any(ref.provider not in OFFLINE for ref in made.refs()):
        check_calls(folder)
    estimate.check_cap(sorted({r.model for r in made.refs() if not has_price(r)}), config.limits)
    keys.recall(manifest, environ)
    keys.check(made.refs(), environ, quiet=quiet)
    return made
