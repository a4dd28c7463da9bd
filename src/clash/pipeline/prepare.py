"""From what a user wrote to a run folder that is ready for its first call; nothing is spent yet."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from clash.collect.load import Prompts, load, recorded_prompts
from clash.collect.plan import (
    Plan,
    candidate_names,
    make_plan,
    not_observing,
    observing,
    self_votes,
    unwritten_responses,
)
from clash.collect.resolve import ResolvedConfig, replay_config, resolve
from clash.collect.shards import cut_plan, describe_shard, parse_shard
from clash.collect.templates import Templates
from clash.config import Config, Panel
from clash.datasets.controls import control_items, draw, read_controls
from clash.errors import ConfigError, RunFolderError
from clash.extras import require
from clash.files import run_files
from clash.files.inputs import without_gz
from clash.pipeline import keys
from clash.pipeline.price import check_cap
from clash.providers import redactor_for
from clash.providers.prices import OFFLINE, has_price
from clash.records import Criteria, Item, Judgment, Record, Response
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
from clash.store.stored import item_ids, parts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.collect.forecast import Forecast
    from clash.pipeline.options import Observer, Origin, RunOptions
    from clash.secrets.redaction import Redactor


@dataclass(frozen=True)
class RunSetup:
    """A run that could begin now."""

    plan: Plan
    resolution: ResolvedConfig
    prompts: Prompts

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to print before the run begins."""
        notes = (*self.resolution.notes, *self.prompts.warnings)
        return notes if self.plan.shard is None else (*notes, describe_shard(self.plan))

    def cut(self, shard: str) -> RunSetup:
        """One shard of it, as ``2/4``.

        Raises:
            ConfigError: it is not a shard, or has no item.
        """
        return replace(self, plan=cut_plan(self.plan, *parse_shard(shard)))


def prepare(
    config: Config,
    environ: Mapping[str, str],
    observer: Observer,
    *,
    prompts: Path | None = None,
    limit: int | None = None,
    replay: RunFolder | None = None,
) -> RunSetup:
    """Read the prompts that the user named and plan the run.

    A replay without prompts of its own takes the prompts and templates of that run.

    Raises:
        InputError: a file or an option is wrong.
    """
    path = prompts or (Path(config.prompts) if config.prompts else None)
    templates = None
    if path is not None:
        prompt_set = load(path, single=_is_single(config, replay))
    elif replay is not None:
        templates = Templates.from_manifest(replay.manifest().templates)
        prompt_set = prompts_of(replay)
    else:
        raise ConfigError(
            "no prompts", field="PROMPTS", hint="clash eval prompts.yaml, or prompts: in clash.yaml"
        )
    return assemble(
        config, prompt_set, environ, observer, limit=limit, replay=replay, templates=templates
    )


def _is_single(config: Config, replay: RunFolder | None) -> bool:
    """Whether each text is judged by itself; in a replay, as its run did."""
    if replay is None or config.judging.is_single:
        return config.judging.is_single
    return "judging" in replay.manifest().config


def assemble(
    config: Config,
    prompts: Prompts,
    environ: Mapping[str, str],
    observer: Observer,
    *,
    limit: int | None = None,
    replay: RunFolder | None = None,
    templates: Templates | None = None,
) -> RunSetup:
    """Plan what is to be done with these prompts, wherever they came from.

    A replay repeats the questions of its run, codes included, so it takes over its secret.
    """
    if replay is not None:
        config = replay_config(config, replay)
    resolution = resolve(config, environ)
    if limit is not None:
        prompts = prompts.first(limit)
    if config.blinding.controls and not any(item.control for item in prompts.items):
        prompts = _with_controls(prompts, config)
    redactor = _redactor(config, resolution, environ, observer)
    prompts = prompts.with_names(candidate_names(config, prompts)).without_secrets(redactor)
    templates = templates or Templates.load(config.templates, single=config.judging.is_single)
    plan = make_plan(
        config,
        resolution.panel,
        prompts,
        Templates(redactor.data(dict(templates.texts))),
        criteria_ref=resolution.criteria_ref,
        criteria_why=resolution.criteria_why,
        reused_criteria=_earlier_criteria(config),
        redactor=redactor,
        secret=secrets.token_hex(16) if replay is None else replay.manifest().secret,
    )
    notes = [*resolution.notes, *_plan_notes(plan)]
    return RunSetup(plan, replace(resolution, notes=notes), prompts)


def _plan_notes(plan: Plan) -> list[str]:
    """Notes on what to check before a run begins."""
    return [*not_observing(plan.config), *self_votes(plan), *unwritten_responses(plan)]


def _redactor(
    config: Config, resolution: ResolvedConfig, environ: Mapping[str, str], observer: Observer
) -> Redactor:
    """A redactor of the secrets of the environment and of every model that a run may call."""
    judges = [*resolution.panel.judges, *observing(config)]
    fallbacks = (ref for judge in judges for ref in judge.fallbacks)
    refs = [*judges, *fallbacks, *config.candidates]
    refs += [] if config.user is None else [config.user]
    criteria = [] if resolution.criteria_ref is None else [resolution.criteria_ref]
    redactor = redactor_for([*refs, *criteria], environ)
    observer.learn(redactor)
    return redactor


def secrets_of(config: Config, environ: Mapping[str, str], observer: Observer) -> Redactor:
    """A redactor of what a run of ``config`` must not hold in this environment."""
    return _redactor(config, resolve(config, environ), environ, observer)


def _with_controls(prompts: Prompts, config: Config) -> Prompts:
    """The prompts, and the control items that test the judges."""
    controls = draw(read_controls(), config.blinding.controls, config.seed)
    items, responses = control_items(controls)
    return prompts.with_records(chain(prompts.items, items), chain(prompts.responses, responses))


def _earlier_criteria(config: Config) -> dict[str, Criteria]:
    """Criteria of an earlier run, by item."""
    if config.criteria.reuse is None:
        return {}
    folder = RunFolder.open(config.criteria.reuse, out=config.out)
    return {record.item_id: record for record in folder.records(Criteria)}


def _still_reused(folder: RunFolder, config: Config) -> dict[str, Criteria]:
    """The criteria that a resumed run reuses and does not have yet.

    Raises:
        RunFolderError: the run that it names is none that lies beside it.
    """
    if config.criteria.reuse is None:
        return {}
    ready_ids = set(item_ids(folder.records(Criteria)))
    if ready_ids.issuperset(item_ids(folder.records(Item))):
        return {}
    earlier = folder.sibling(Path(config.criteria.reuse).name)
    earlier.manifest()
    return {record.item_id: record for record in earlier.criteria()}


def create_folder(setup: RunSetup, options: RunOptions, forecast: Forecast) -> RunWriter:
    """Create the run folder with everything that is known before the first call."""
    plan, origin = setup.plan, options.origin
    if origin.registration is not None and plan.config.judging.is_single:
        raise ConfigError(
            "a registration is about candidates, and this run judges each text by itself",
            field="--prereg",
        )
    manifest = _first_manifest(setup, options, forecast)
    labels = origin.labels
    if plan.shard is not None:
        labels = tuple(label for label in labels if label.item_id in plan.positions)
    records = chain(labels, origin.pool, _reused_criteria(plan, origin))
    inputs = (plan.items, plan.responses)
    lines = (
        (layout.FILE_OF[table.model], line)
        for table in inputs
        if table.is_encoded_here
        for line in table.lines()
    )
    old = chain.from_iterable(table for table in inputs if not table.is_encoded_here)
    out = options.out or Path(plan.config.out)
    return RunWriter.create(
        out, manifest.run, manifest, chain(old, records), lines=lines, redactor=plan.redactor
    )


def _first_manifest(setup: RunSetup, options: RunOptions, forecast: Forecast) -> Manifest:
    """The manifest as it is before the first call, signed and without secrets."""
    plan, prompts, origin = setup.plan, setup.prompts, options.origin
    config = _without_paths(plan.config).model_copy(update={"panel": plan.panel})
    # Hashed as they are written, which is without secrets.
    settings = plan.redactor.data(config.model_dump(mode="json"))
    panel = plan.redactor.data(plan.panel_record)
    templates = sha256_json(dict(plan.templates.texts))
    calibrator, doubts = _calibrator(config, panel["judges"], templates, options.observer)
    manifest = Manifest(
        run=options.run_id or new_run_id(_slug(setup)),
        kind=options.kind,
        parent=origin.parent,
        prompts=prompts.path.name,
        config=settings,
        panel=panel,
        candidates=[
            *(c.model_dump(mode="json") for c in plan.candidates),
            *map(dict, origin.candidates),
        ],
        dataset=dict(origin.dataset),
        templates=dict(plan.templates.texts),
        seeds={"seed": config.seed, **origin.seeds},
        secret=plan.secret,
        hashes={
            "config": sha256_json(settings),
            "panel": sha256_json(panel),
            "prompts": prompts.sha256,
            "templates": templates,
            **{f"template {n}": sha256_text(t) for n, t in plan.templates.texts.items()},
        },
        calibrator=calibrator,
        preregistration=origin.registration.sha256 if origin.registration else None,
        registration=origin.registration.as_json() if origin.registration else None,
        versions=versions(),
        git=git_state(),
        stopping=None if origin.stopping is None else dict(origin.stopping),
        shard=plan.shard,
        codecs=_codecs("zstd" if options.compress else plan.config.compress),
        counts=_initial_counts(plan, origin),
        forecast=forecast.summary(),
        started=now(),
        notes=[
            *([plan.shard.note] if plan.shard else []),
            *setup.resolution.notes,
            *prompts.warnings,
            *origin.notes,
            *doubts,
        ],
    )
    return keys.sign(without_secrets(manifest, plan.redactor), plan.refs(), options.environ)


def _codecs(codec: str | None) -> dict[str, str]:
    """How files of the run are compressed.

    Raises:
        MissingPackageError: the package that does it is not installed.
    """
    if codec is None:
        return {}
    require("zstandard", field="--compress", alternative="leave the option out")
    return {layout.CALLS: codec}


def _slug(setup: RunSetup) -> str:
    """The word in the id of a new run: the prompts file, and which shard of it."""
    stem, shard = without_gz(setup.prompts.path).stem, setup.plan.shard
    return stem if shard is None else f"{stem[:20]}-{shard.number}-of-{shard.of}"


def _reused_criteria(plan: Plan, origin: Origin) -> Iterator[Criteria]:
    """The criteria of an earlier run for every item, so that this folder no longer needs that one."""
    if not plan.reused_criteria:
        return
    pool = (pool_item.item.item_id for pool_item in origin.pool)
    for item_id in dict.fromkeys(chain(plan.positions, pool)):
        if item_id in plan.reused_criteria:
            yield plan.reused_criteria[item_id].model_copy(update={"call_id": None})


def _initial_counts(plan: Plan, origin: Origin) -> dict[str, int]:
    """Records written before the first call: a folder that holds fewer was cut short."""
    counts = {"items": len(plan.items), "injected": len(plan.responses)}
    return counts if origin.stopping is None else {**counts, "pool": len(origin.pool)}


def _without_paths(config: Config) -> Config:
    """Names instead of paths: the folder holds what they led to, and a path is of one machine."""
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
    config: Config, judges: Sequence[Mapping[str, Any]], templates: str, observer: Observer
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The calibrator that the configuration names, and doubts about its fit to this run.

    Raises:
        InputError: it was fitted on another panel or on other prompts, or cannot promise the risk.
    """
    if config.aggregate.calibrator is None:
        return None, ()
    from clash.analysis.calibration.calibrated_verdicts import check_run
    from clash.analysis.calibration.calibrator import RiskLimit, check_limit, read_calibrator

    path = Path(config.aggregate.calibrator)
    calibrator = read_calibrator(path)
    if config.aggregate.max_risk is not None:
        limit = RiskLimit(config.aggregate.max_risk, config.aggregate.risk_confidence)
        check_limit(calibrator, limit, str(path))
    doubts = check_run(calibrator, judges, templates, str(path))
    for doubt in doubts:
        observer.note(doubt)
    return calibrator.as_json(), doubts


def prompts_of(folder: RunFolder) -> Prompts:
    """The prompts of a run, with the responses that came with them."""
    name = Path(folder.manifest().prompts or layout.ITEMS)
    return recorded_prompts(folder, name, seal_file(folder.path / layout.ITEMS).sha256)


def replan(
    folder: RunFolder,
    environ: Mapping[str, str],
    observer: Observer,
    limits: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a run, from its folder alone; ``limits`` replaces those that are not null.

    Raises:
        ConfigError: the limits cannot hold.
        RunFolderError: the folder lost records that cannot be made again.
    """
    manifest = folder.manifest()
    check_inputs(folder)
    config = Config.model_validate(manifest.config)
    caps = config.limits.with_changes({"max_cost": manifest.max_cost}).with_changes(limits or {})
    config = config.model_copy(update={"limits": caps})
    if not isinstance(config.panel, Panel):
        raise ConfigError("names no panel", path=folder.path / layout.MANIFEST, field="config")
    resolution = resolve(config, environ)
    plan = make_plan(
        config.model_copy(update={"repeat": 1}),
        config.panel,
        prompts_of(folder),
        Templates.from_manifest(manifest.templates),
        criteria_ref=resolution.criteria_ref,
        criteria_why=resolution.criteria_why,
        reused_criteria=_still_reused(folder, config),
        redactor=_redactor(config, resolution, environ, observer),
        secret=manifest.secret,
        shard=manifest.shard,
    )
    if any(ref.provider not in OFFLINE for ref in plan.refs()):
        check_calls(folder)
    check_cap(sorted({r.model for r in plan.refs() if not has_price(r)}), config.limits)
    keys.recall(manifest, environ)
    keys.check(plan.refs(), environ, observer)
    return plan


def injected_only(config: Config) -> Config:
    """The configuration without anyone who would generate a response or judge its own."""
    from clash.config import Observers

    return config.model_copy(
        update={
            "prompts": None,
            "candidates": [],
            "repeat": 1,
            "observers": config.observers
            if isinstance(config.observers.judges, list)
            else Observers(judges=[]),
        }
    )


# -- whether a run folder still holds what a resumed run cannot make again ------------------------
# Criteria, responses that a candidate wrote, pages and judgments follow from the calls, so that a
# line of theirs that was lost is written again without a call. Items, given responses and calls
# follow from nothing else in the folder.


def check_inputs(folder: RunFolder) -> None:
    """Refuse to resume a run that lost its inputs.

    Raises:
        RunFolderError: names the file, how much of it is lost, and what can be done.
    """
    counts = folder.manifest().counts
    responses = parts(folder.records(Response), _Source)
    n_responses = sum(response.source == "injected" for response in responses)
    present = {
        layout.ITEMS: (len(folder.records(Item)), counts.get("items"), "items"),
        layout.RESPONSES: (n_responses, counts.get("injected"), "given responses"),
        layout.POOL: (len(folder.pool()), counts.get("pool"), "items"),
    }
    for name, (number, total, noun) in present.items():
        if total is not None and number < total:
            raise _loss_error(folder, name, f"holds {number} of {total} {noun}")


def check_calls(folder: RunFolder) -> None:
    """Refuse to pay again for answers that a crash cannot have lost.

    A run that had ended lost none. One that lost its machine may have lost those that were in
    flight in the last moments, and asks them again.

    Raises:
        RunFolderError: as :func:`check_inputs`.
    """
    path, manifest = folder.path / layout.CALLS, folder.manifest()
    number = seal_file(path).lines if run_files.is_file(path) else 0
    seal = manifest.files.get(layout.CALLS)
    if seal is not None and number < seal.lines:
        raise _loss_error(folder, layout.CALLS, f"holds {number} of {seal.lines} calls")
    missing_calls = _named_calls(folder)
    missing_calls.difference_update(call.call_id for call in folder.call_summaries())
    in_flight = manifest.config.get("limits", {}).get("concurrency", 0)
    if seal is None and len(missing_calls) > (in_flight if number else 0):
        raise _loss_error(
            folder, layout.CALLS, f"lacks {len(missing_calls)} calls that other files refer to"
        )


def _named_calls(folder: RunFolder) -> set[str]:
    """The calls that responses, criteria and judgments come from."""
    models: tuple[type[Record], ...] = (Response, Criteria, Judgment)
    sources = (parts(folder.records(model), _CallId) for model in models)
    return {record.call_id for record in chain(*sources) if record.call_id is not None}


class _Source(msgspec.Struct, gc=False):
    """Where a response comes from."""

    source: str


class _CallId(msgspec.Struct, gc=False):
    """The call that a record was read from; null where it needed none."""

    call_id: str | None = None


def _loss_error(folder: RunFolder, name: str, count: str) -> RunFolderError:
    calls = sum(1 for _ in run_files.lines(folder.path / layout.CALLS))
    if calls or name == layout.CALLS:
        hint = f"restore {name} from a copy of the run; do not remove the folder, it holds {calls} calls"
    else:
        hint = "no call was made; remove the folder and start the run again"
    return RunFolderError(f"{folder.path / name}: {count}; the rest is lost\n  fix: {hint}")
