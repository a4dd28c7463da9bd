"""From a plan to a finished run: what ``eval``, ``demo``, ``validate``, ``resume`` share."""

from __future__ import annotations

import json
import math
import signal
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from clash.cli import estimate
from clash.cli.common import print_json, say, stdout
from clash.cli.progress import watcher
from clash.collect.forecast import price
from clash.collect.load import Prompts, load
from clash.collect.plan import Plan, plan
from clash.collect.resolve import Resolved, read_config, replayed, resolve
from clash.collect.run import Collected, collect
from clash.collect.schedule import Stop
from clash.collect.templates import Templates
from clash.config import Config, Panel
from clash.errors import ClashError, ConfigError, RunFolderError
from clash.providers import require
from clash.providers.prices import known
from clash.report.terminal import show
from clash.store import layout
from clash.store.folder import RunFolder, RunWriter, new_run_id
from clash.store.manifest import (
    Manifest,
    git_state,
    now,
    sha256_json,
    sha256_text,
    versions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.findings import Findings
    from clash.analysis.prereg import Frozen
    from clash.analysis.rundata import RunData
    from clash.records import Criteria, Kind, Label

INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class Finished:
    """A run that has ended, one way or another.

    Attributes:
        interrupted: why it ended early, null where it did not.
    """

    folder: RunFolder
    manifest: Manifest
    findings: Findings
    exit_code: int
    interrupted: str | None


@dataclass(frozen=True)
class Prepared:
    """A run that could begin now."""

    plan: Plan
    resolved: Resolved
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
    """

    labels: tuple[Label, ...] = ()
    dataset: Mapping[str, Any] = field(default_factory=dict)
    candidates: tuple[Mapping[str, Any], ...] = ()
    parent: str | None = None
    seeds: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    registration: Frozen | None = None


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

    Raises:
        InputError: a file or an option is wrong.
    """
    config = read_config(config_file, overrides, ignore_file=ignore_config)
    path = prompts or (Path(config.prompts) if config.prompts else None)
    if path is None:
        raise ConfigError(
            "no prompts", field="PROMPTS", mend="clash eval prompts.yaml, or prompts: in clash.yaml"
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
    """Put configuration and prompts together, whatever the prompts came from."""
    if replay is not None:
        config = replayed(config, replay)
    resolved = resolve(config, environ)
    if limit is not None:
        loaded = loaded.first(limit)
    made = plan(
        config,
        resolved.panel,
        loaded,
        templates or Templates.load(config.templates),
        criteria_ref=resolved.criteria_ref,
        criteria_why=resolved.criteria_why,
        reused=_reused(config),
    )
    return Prepared(made, resolved, loaded)


def _reused(config: Config) -> dict[str, Criteria]:
    """Criteria of an earlier run, by item."""
    if config.criteria.reuse is None:
        return {}
    folder = RunFolder.open(config.criteria.reuse, out=config.out)
    return {record.item_id: record for record in folder.criteria()}


def launch(
    made: Prepared,
    environ: Mapping[str, str],
    *,
    kind: Kind,
    out: Path,
    run_id: str | None = None,
    origin: Origin | None = None,
    dry_run: bool = False,
    yes: bool = False,
    as_json: bool = False,
    quiet: bool = False,
    whole: bool = False,
) -> int:
    """Price the plan, run it, and tell."""
    forecast = price(made.plan)
    if dry_run:
        estimate.tell(forecast, made.plan, as_json=as_json)
        return 0
    for ref in made.plan.refs():
        require(ref, environ)
    for note in (*made.resolved.notes, *made.prompts.warnings):
        say(note, style="yellow")
    estimate.check(forecast, made.plan, yes=yes, quiet=quiet or as_json)
    with begin(made, kind=kind, out=out, run_id=run_id, origin=origin) as writer:
        finished = carry_on(writer, made.plan, environ, quiet=quiet or as_json)
    tell(finished, as_json=as_json, whole=whole, quiet=quiet)
    return finished.exit_code


def begin(
    prepared: Prepared,
    *,
    kind: Kind,
    out: Path,
    run_id: str | None = None,
    origin: Origin | None = None,
) -> RunWriter:
    """Make the run folder, with everything in it that is known before the first call."""
    made, prompts, origin = prepared.plan, prepared.prompts, origin or Origin()
    config = made.config.model_copy(update={"panel": made.panel})
    judges = [judge.model_dump(mode="json") for judge in made.judges]
    panel = {
        "name": made.panel.name,
        "quorum": made.quorum,
        "ties": made.panel.ties,
        "judges": judges,
    }
    name = run_id or new_run_id(prompts.path.stem)
    templates = sha256_json(dict(made.templates.texts))
    calibrator, doubts = _calibrator(config, judges, templates)
    manifest = Manifest(
        run=name,
        kind=kind,
        parent=origin.parent,
        prompts=prompts.path.name,
        config=config.model_dump(mode="json"),
        panel=panel,
        candidates=[
            *(c.model_dump(mode="json") for c in made.candidates),
            *map(dict, origin.candidates),
        ],
        dataset=dict(origin.dataset),
        templates=dict(made.templates.texts),
        seeds={"seed": config.seed, **origin.seeds},
        hashes={
            "config": sha256_json(config.model_dump(mode="json")),
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
        counts={"items": len(made.items), "injected": len(made.responses)},
        started=now(),
        notes=[*prepared.resolved.notes, *prompts.warnings, *origin.notes, *doubts],
    )
    writer = RunWriter.create(out, name, manifest)
    for record in (*made.items, *made.responses, *origin.labels):
        writer.append(record)
    return writer


def _calibrator(
    config: Config, judges: Sequence[Mapping[str, Any]], templates: str
) -> tuple[dict[str, Any] | None, tuple[str, ...]]:
    """The calibrator that the configuration names, and what speaks against it.

    Raises:
        InputError: it was fitted on another panel, or on other prompts.
    """
    if config.aggregate.calibrator is None:
        return None, ()
    from clash.analysis.calibration.calibrator import read_calibrator
    from clash.analysis.calibration.verdicts import for_run

    path = Path(config.aggregate.calibrator)
    found = read_calibrator(path)
    doubts = for_run(found, judges, templates, str(path))
    for doubt in doubts:
        say(doubt, style="yellow")
    return found.as_json(), doubts


def replan(
    folder: RunFolder, environ: Mapping[str, str], limits: Mapping[str, Any] | None = None
) -> Plan:
    """The plan of a run, from its folder alone; ``limits`` replaces some of its limits.

    Raises:
        ConfigError: the limits cannot be held.
        RunFolderError: the run was killed before all of its items were written.
    """
    manifest = folder.manifest()
    config = Config.model_validate(manifest.config)
    if limits:
        changed = config.limits.model_copy(update=dict(limits))
        config = config.model_copy(update={"limits": changed})
    if not isinstance(config.panel, Panel):
        raise ConfigError("names no panel", path=folder.path / layout.MANIFEST, field="config")
    resolved = resolve(config, environ)
    responses = [r for r in folder.responses() if r.source == "injected"]
    prompts = Prompts(folder.path / layout.ITEMS, tuple(folder.items()), tuple(responses), "")
    found = {"items": len(prompts.items), "injected": len(responses)}
    if any(manifest.counts.get(name, number) != number for name, number in found.items()):
        raise RunFolderError(
            f"{folder.path}: was killed before it had written down what it is to judge"
            f" ({found['items']} of {manifest.counts['items']} items,"
            f" {found['injected']} of {manifest.counts['injected']} given responses)"
            "\n  mend: nothing was spent; start it anew"
        )
    made = plan(
        config.model_copy(update={"repeat": 1}),
        config.panel,
        prompts,
        Templates(manifest.templates),
        criteria_ref=resolved.criteria_ref,
        criteria_why=resolved.criteria_why,
        reused=_reused(config),
    )
    estimate.check_cap(sorted({r.model for r in made.refs() if not known(r)}), config.limits)
    for ref in made.refs():
        require(ref, environ)
    return made


def carry_on(writer: RunWriter, made: Plan, environ: Mapping[str, str], *, quiet: bool) -> Finished:
    """Collect what is missing, then aggregate, report and seal, whatever happened."""
    started = time.monotonic()
    manifest = writer.manifest().model_copy(update={"status": "running", "files": {}, "seal": None})
    writer.save(manifest)
    with watcher(quiet=quiet) as progress:
        try:
            collected = anyio.run(_collect, made, writer, environ, progress)
        except BaseExceptionGroup as group:
            raise _ours(group) from None
    wall = manifest.wall_s + time.monotonic() - started
    return conclude(writer, manifest.model_copy(update={"wall_s": round(wall, 3)}), collected)


def _ours(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error of ours in a group, for its message; the group itself where it is a bug."""
    expected, bugs = group.split(ClashError)
    if bugs is not None or expected is None:
        return group
    first: BaseException = expected
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    return first


async def _collect(
    made: Plan,
    writer: RunWriter,
    environ: Mapping[str, str],
    progress: Any,  # noqa: ANN401 - a Progress
) -> Collected:
    stop = Stop()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_listen, stop, tasks.cancel_scope)
        collected = await collect(made, writer, environ, progress, stop)
        tasks.cancel_scope.cancel()
        return collected
    return Collected({}, INTERRUPTED)  # the scope swallowed the second Ctrl-C


async def _listen(stop: Stop, scope: anyio.CancelScope) -> None:
    """The first Ctrl-C lets calls in flight finish, the second does not wait for them."""
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            heard = False
            async for _ in signals:
                if heard:
                    scope.cancel()
                    return
                heard = True
                stop.now(INTERRUPTED)
                say("finishing the calls in flight; Ctrl-C again stops at once", style="yellow")
    except NotImplementedError:  # pragma: no cover - Windows raises KeyboardInterrupt by itself
        return


def conclude(writer: RunWriter, manifest: Manifest, collected: Collected) -> Finished:
    """Verdicts, report and seal."""
    # Only now: while a run judges, numpy and what stands on it would only take memory.
    from clash.analysis.findings import findings_of
    from clash.analysis.rundata import RunData

    data = RunData.load(writer)
    covered = _counts(data)
    code = _exit_code(data, covered, collected)
    manifest = manifest.model_copy(
        update={
            "status": _status(data, covered, collected),
            "ended": now(),
            "counts": {**manifest.counts, **covered},
            "stopped": collected.stopped,
        }
    )
    found = findings_of(replace(data, manifest=manifest))
    manifest.cost_usd, manifest.cost_is_lower_bound = found.cost_usd, found.cost_is_lower_bound
    write_report(writer, found, replace(data, manifest=manifest))
    sealed = writer.seal(manifest)
    return Finished(RunFolder(writer.path), sealed, found, code, collected.interrupted)


def write_report(writer: RunWriter, found: Findings, data: RunData) -> None:
    """The derived files, whole."""
    from clash.report import html, markdown

    verdicts = list(data.verdicts)
    writer.replace(layout.VERDICTS, verdicts)
    text = json.dumps(found.as_json(), indent=1, ensure_ascii=False, allow_nan=False)
    writer.replace_text(layout.REPORT_JSON, text + "\n")
    writer.replace_text(layout.REPORT_MD, markdown.document(found, verdicts))
    writer.replace_text(layout.REPORT_HTML, html.document(found, data, writer.path))


def _counts(data: RunData) -> dict[str, int]:
    voting = [j for j in data.judgments if j.role == "voting"]
    return {
        "items": len(data.items),
        "responses": sum(r.text is not None for r in data.responses),
        "judgments": len(data.judgments),
        "voting_expected": len(data.items) * len(data.rules.voting) * data.rules.presentations,
        "voting_usable": sum(j.ranking is not None for j in voting),
        "verdicts": sum(v.ranking is not None for v in data.verdicts),
        "calls": sum(use.calls for use in data.usage.values()),
        "attempts": sum(use.attempts for use in data.usage.values()),
    }


def _failed_share(counts: Mapping[str, int]) -> float:
    return 1 - counts["voting_usable"] / max(1, counts["voting_expected"])


def _too_many(data: RunData, counts: Mapping[str, int]) -> bool:
    allowed = float(data.manifest.config["limits"]["max_failed"])
    return _failed_share(counts) > allowed + 1e-12


def _exit_code(data: RunData, counts: Mapping[str, int], collected: Collected) -> int:
    if collected.interrupted == INTERRUPTED:
        return 130
    if collected.stopped:
        return 4
    if collected.interrupted is not None or _too_many(data, counts):
        return 3
    return 0


def _status(data: RunData, counts: Mapping[str, int], collected: Collected) -> str:
    if counts["verdicts"] == 0:
        return "failed" if collected.interrupted is None else "partial"
    if collected.interrupted or collected.stopped or _too_many(data, counts):
        return "partial"
    return "complete"


def tell(finished: Finished, *, as_json: bool, whole: bool, quiet: bool) -> None:
    """Print how it went, and where it is."""
    found, path = finished.findings, finished.folder.path
    if as_json:
        print_json(summary(finished))
    else:
        show(stdout(), found, whole=whole)
        stdout().print(f"\nrun: {path}", style="bold", soft_wrap=True)
        if not quiet and not whole:
            say(f"everything: {path / layout.REPORT_HTML}, or `clash report {path}`")
    for line in _afterword(finished):
        say(line, style="yellow")


def _afterword(finished: Finished) -> list[str]:
    path = finished.folder.path
    match finished.exit_code:
        case 130:
            return [f"interrupted; `clash resume {path}` goes on from here and pays nothing twice"]
        case 4:
            models = "; ".join(f"{m}: {why}" for m, why in finished.manifest.stopped.items())
            return [f"refused for good: {models}", f"mend that, then `clash resume {path}`"]
        case 3:
            if finished.interrupted is not None:
                return [finished.interrupted, f"`clash resume {path} --max-cost USD` goes on"]
            return [f"incomplete (see coverage); `clash resume {path}` tries what is missing"]
        case _:
            return []


def summary(finished: Finished) -> dict[str, Any]:
    """What ``--json`` says of a run."""
    report = finished.findings.as_json()
    return {
        "run": str(finished.folder.path),
        "status": finished.manifest.status,
        "exit_code": finished.exit_code,
        "winner": report["decision"]["winner"],
        "decision": report["decision"],
        "leaderboard": report["leaderboard"],
        "coverage": report["coverage"],
        "cost_usd": finished.manifest.cost_usd,
        "cost_is_lower_bound": finished.manifest.cost_is_lower_bound,
        "judges": report["judges"],
        "stopped": finished.manifest.stopped,
        "interrupted": finished.interrupted,
        **_concordance(finished.findings),
    }


def _concordance(found: Findings) -> dict[str, Any]:
    """What is added where people have spoken."""
    if found.concordance is None:
        return {}
    rate = found.concordance.headline.rate
    alone = {
        line.name: {"concordance": line.rate.of_judged.estimate, "judged": line.rate.judged}
        for line in found.concordance.methods
        if line.kind == "judge" and line.rate is not None
    }
    return {
        "concordance": rate.estimate,
        "kappa": _finite(found.concordance.kappas[0].interval.estimate),
        "kappas": {k.key: _finite(k.interval.estimate) for k in found.concordance.kappas},
        "ci": [rate.clustered.low, rate.clustered.high],
        "n": rate.n,
        "judges": [
            {**judge, **alone.get(judge["judge"], {})} for judge in found.as_json()["judges"]
        ],
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
