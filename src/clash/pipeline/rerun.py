"""Plan and execute reruns: the same items, fresh seeds, and the same responses or new ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from clash.collect.load import Prompts
from clash.collect.plan import observing
from clash.collect.resolve import own_config, read_panel
from clash.collect.templates import Templates
from clash.config import Config, CriteriaConfig, Observers, Panel
from clash.errors import ConfigError, InputError, one_of
from clash.files import run_files
from clash.pipeline import keys
from clash.pipeline.execute import execute
from clash.pipeline.options import Origin, RunOptions
from clash.pipeline.prepare import RunSetup, assemble
from clash.store import layout
from clash.store.folder import RunFolder, check_run_id, manifests
from clash.store.manifest import sha256_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from clash.analysis.prereg import FrozenRegistration
    from clash.analysis.retest import Retest
    from clash.pipeline.finish import RunResult
    from clash.records import Response
    from clash.store.manifest import Manifest


FUTILE = (130, 4)
"""Exit codes after which a further rerun makes no sense: interrupted, refused."""
Part = Literal["criteria", "shuffle", "responses"]
"""What a rerun can keep of its run; what it does not keep is drawn anew."""


_NO_CALL = {"call_id": None, "user_call_id": None, "cost_usd": None}
"""What an injected turn lacks."""


@dataclass(frozen=True)
class RerunOptions:
    """What a rerun does differently from its run.

    Attributes:
        regenerate: ask the candidates for fresh responses.
        shuffle: number of the shuffle: 0 is that of the run; null is that of the rerun's number.
        criteria: the run whose criteria are kept; null has them written anew, unless the run took
            its own over from another.
        derive: have them written anew all the same.
        author: the model that writes criteria; null is that of the run.
        responses: the run whose responses are judged; null is the run itself.
        show_names: tell the judges who wrote each response.
        seeds: for the manifest, beside the seed of the run and the number.
        only: judge these items alone.
        panel: the panel that judges, for runs of other tools, whose judges clash cannot call.
        limits: replace those of the run that are not null.
        notes: for the manifest.
        registration: the plan that the rerun is held to.
    """

    regenerate: bool = False
    shuffle: int | None = None
    criteria: RunFolder | None = None
    derive: bool = False
    author: str | None = None
    responses: RunFolder | None = None
    show_names: bool = False
    seeds: Mapping[str, int] = field(default_factory=dict)
    only: Collection[str] | None = None
    panel: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    registration: FrozenRegistration | None = None


def keeping(parent: RunFolder, parts: Collection[str], rerun: RerunOptions) -> RerunOptions:
    """A rerun that keeps these parts of its run; the manifest says which.

    Raises:
        ConfigError: there is no such part, or it is kept and generated again.
    """
    for part in parts:
        if part not in get_args(Part):
            raise ConfigError(
                f'"{part}" cannot be kept', field="--keep", hint=one_of(part, get_args(Part))
            )
    if not parts:
        return rerun
    if rerun.regenerate and "responses" in parts:
        raise ConfigError(
            "responses cannot be kept and generated again",
            field="--keep",
            hint="leave out --regenerate, or responses",
        )
    names = [part for part in get_args(Part) if part in parts]
    return replace(
        rerun,
        shuffle=0 if "shuffle" in parts else None,
        criteria=parent if "criteria" in parts else None,
        notes=(*rerun.notes, f"kept: {', '.join(names)}"),
    )


@dataclass(frozen=True)
class Rerun:
    """A rerun that is ready to begin."""

    setup: RunSetup
    origin: Origin
    name: str


def reruns(parent: RunFolder) -> list[RunFolder]:
    """The reruns of ``parent`` that lie beside it and have ended, in the order they were made.

    Not those whose judges were told the names: they repeat another experiment.
    """
    name = parent.manifest().run
    pairs = [
        (run, manifest)
        for run, manifest in manifests(parent.path.parent)
        if run.path != parent.path
        and manifest.parent == name
        and manifest.seal
        and not manifest.config.get("blinding", {}).get("show_names")
    ]
    return [run for run, _ in sorted(pairs, key=lambda pair: (_number(pair[1]), pair[1].started))]


def parent_of(folder: RunFolder) -> RunFolder | None:
    """The run beside ``folder`` that it is an ended rerun of; null where there is none."""
    name = folder.manifest().parent
    if name is None:
        return None
    for run, manifest in manifests(folder.path.parent):
        if manifest.run == name and any(rerun.path == folder.path for rerun in reruns(run)):
            return run
    return None


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


def targeted_items(parent: RunFolder, stable: int) -> tuple[set[str], str]:
    """The items of a run that are worth judging again, and a note of which they are.

    These are the items that were wrong in every run, the unstable ones, and the ``stable`` least
    confident of the others; among equals the seed of the run draws lots.

    Raises:
        InputError: the run was judged once only, or no item qualifies for another judgment.
    """
    import numpy as np

    from clash.analysis.retest.align import align
    from clash.analysis.retest.targeted import targets
    from clash.analysis.rundata import RunData

    once = InputError(
        "was judged once only: unstable items can only be found with two runs",
        path=parent.path,
        field="--targeted",
        hint=f"clash rerun {parent.path} first",
    )
    later = reruns(parent)
    if not later:
        raise once
    table = align([RunData.load(run) for run in (parent, *later)])
    if len(table.complete_runs) < 2:
        raise once
    seed = parent.manifest().seeds.get("seed", 0)
    # The same runs, the same draw: what a dry run shows is what is judged.
    rng = np.random.default_rng([seed, len(table.complete_runs)])
    target = targets(table, stable, rng)
    if not len(target.indices):
        raise InputError(
            "no item qualifies for another judgment", path=parent.path, field="--targeted"
        )
    counts = {
        "stably incorrect": len(target.stably_incorrect),
        "unstable": len(target.unstable),
        "least confident stable": len(target.low_confidence),
    }
    parts = ", ".join(f"{count} {name}" for name, count in counts.items())
    if target.n_level_taken < target.n_level:
        parts += f" ({target.n_level_taken} of {target.n_level} equals by lot, seed {seed})"
    names = ", ".join(table.names[run] for run in table.complete_runs)
    items = {table.items[row] for row in target.indices}
    return items, f"targeted: {parts}, by the runs {names}"


def execute_reruns(
    parent: RunFolder, times: int, rerun: RerunOptions, options: RunOptions
) -> list[RunResult]:
    """Rerun ``times`` times, one after the other; an interruption or a refusal ends it."""
    results: list[RunResult] = []
    for _ in range(times):
        plan = plan_rerun(parent, next_number(parent), rerun, options)
        result = execute(
            plan.setup,
            replace(
                options,
                kind="rerun",
                out=parent.path.parent,
                run_id=plan.name,
                origin=plan.origin,
            ),
        )
        results.append(result)
        options.observer.note(f"run: {result.folder.path} ({result.manifest.status})", "progress")
        if result.exit_code in FUTILE:
            break
    return results


def plan_rerun(parent: RunFolder, number: int, rerun: RerunOptions, options: RunOptions) -> Rerun:
    """Plan rerun ``number`` (from 1) of a run.

    Raises:
        InputError: there is nothing to judge again, or nothing to generate again.
    """
    manifest = parent.manifest()
    keys.recall(manifest, options.environ)
    seed = manifest.seeds.get("seed", 0)
    config = _config(parent, _shuffle_seed(manifest, number, rerun), rerun)
    responses = tuple((rerun.responses or parent).responses())
    adapt = _regenerating if rerun.regenerate else _reusing
    config, answers = adapt(config, responses, parent)
    items = tuple(i for i in parent.items() if rerun.only is None or i.item_id in rerun.only)
    ids = {item.item_id for item in items}
    answers = tuple(r for r in answers if r.item_id in ids)
    path = Path(manifest.prompts or layout.ITEMS)
    prompts = Prompts(path, items, answers, _hash(items, answers))
    templates = Templates.from_manifest(manifest.templates) if manifest.templates else None
    setup = assemble(config, prompts, options.environ, options.observer, templates=templates)
    generated_ids = {candidate.id for candidate in setup.plan.candidates}
    candidates = manifest.candidates or manifest.config["candidates"]
    origin = Origin(
        labels=tuple(label for label in parent.labels() if label.item_id in ids),
        dataset={key: part for key, part in manifest.dataset.items() if key != "figures"},
        candidates=tuple(
            settings for settings in candidates if settings["id"] not in generated_ids
        ),
        parent=manifest.run,
        seeds={"parent_seed": seed, "number": number, **rerun.seeds},
        notes=rerun.notes,
        registration=rerun.registration,
    )
    return Rerun(setup, origin, f"{_run_id(parent)}-r{number}")


def _shuffle_seed(manifest: Manifest, number: int, rerun: RerunOptions) -> int:
    """The seed that the shuffles of a rerun follow from.

    Raises:
        ConfigError: the shuffles are to be those of a run that does not follow from a seed.
    """
    seed = manifest.seeds.get("seed")
    if rerun.shuffle != 0:
        return derived_seed(seed or 0, number if rerun.shuffle is None else rerun.shuffle)
    if seed is None:
        raise ConfigError(
            f"{manifest.run} comes from another tool, and its shuffle cannot be repeated",
            field="--keep",
            hint="leave out shuffle",
        )
    return seed


def _config(parent: RunFolder, seed: int, rerun: RerunOptions) -> Config:
    """The configuration of a run, without what it read from other files: its folder has that."""
    manifest = parent.manifest()
    settings = {**own_config(parent), "prompts": None, "templates": None}
    # A run of another tool knows of its candidates only their names.
    settings["candidates"] = [c for c in settings.get("candidates", []) if "model" in c]
    config = Config.model_validate({**settings, "seed": seed, "repeat": 1})
    panel = read_panel(rerun.panel, "file") if rerun.panel is not None else config.panel
    if not isinstance(panel, Panel):
        raise ConfigError(
            f"{manifest.run} names no panel that clash can run",
            field="--panel",
            hint="name one: --panel supreme-court",
        )
    update: dict[str, Any] = {"panel": panel, "limits": config.limits.with_changes(rerun.limits)}
    if rerun.show_names:
        update["blinding"] = config.blinding.model_copy(update={"show_names": True})
    if rerun.author is not None:
        criteria = CriteriaConfig(model=rerun.author, options=config.criteria.options)
        update["criteria"] = criteria.chosen_by("owner")
    elif rerun.criteria is not None or rerun.derive:
        reuse = None if rerun.criteria is None else str(rerun.criteria.path)
        update["criteria"] = config.criteria.model_copy(update={"reuse": reuse})
    return config.model_copy(update=update)


def _reusing(
    config: Config, responses: tuple[Response, ...], parent: RunFolder
) -> tuple[Config, tuple[Response, ...]]:
    """Inject every response; nobody generates, and the same observers observe."""
    if not any(response.text is not None for response in responses):
        raise InputError(
            "contains no response text, so nothing can be judged again",
            path=parent.path,
            hint="--compare shows how its reruns agree",
        )
    observers = Observers(
        judges=observing(config),
        role=config.observers.role,
        weight=config.observers.weight,
        panel_weight=config.observers.panel_weight,
    )
    injections = tuple(
        r.model_copy(
            update={
                "source": "injected",
                "call_id": None,
                "cost_usd": None,
                "turns": [turn.model_copy(update=_NO_CALL) for turn in r.turns],
            }
        )
        for r in responses
    )
    return config.model_copy(update={"candidates": [], "observers": observers}), injections


def _regenerating(
    config: Config, responses: tuple[Response, ...], parent: RunFolder
) -> tuple[Config, tuple[Response, ...]]:
    """Inject what the run injected; the candidates write the rest again."""
    if not config.candidates:
        raise InputError(
            "has no candidate that is a model, so no response can be generated again",
            path=parent.path,
            field="--regenerate",
            hint="leave --regenerate out: the same responses are judged again",
        )
    return config, tuple(r for r in responses if r.source == "injected")


def _hash(items: tuple[Any, ...], responses: tuple[Response, ...]) -> str:
    return sha256_json([part.model_dump(mode="json") for part in (*items, *responses)])


def write_retest(folder: RunFolder, folders: Sequence[RunFolder], findings: Retest) -> list[Path]:
    """Write how far the runs ``folders`` agree into one of them, as JSON and Markdown.

    Returns:
        The files written.
    """
    from clash.analysis.serialize import to_dict
    from clash.report.report_file import render_report
    from clash.report.retest import tables, title_of

    # Names, not paths: a folder is read elsewhere too.
    names = [run.path.name for run in folders]
    paths = [folder.path / name for name in (layout.RETEST_JSON, layout.RETEST_MD)]
    for path in paths:
        text = render_report(
            path.suffix, title_of(names), to_dict(findings), tables(findings), names
        )
        run_files.replace(path, text.encode())
    return paths
