"""A run from its plan to its end: what ``eval``, ``demo``, ``validate``, ``resume`` share."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import anyio

from clash.cli.common import say
from clash.cli.progress import watcher
from clash.collect.forecast import price
from clash.collect.run import CollectOutcome, collect
from clash.collect.schedule import Stop
from clash.errors import ClashError
from clash.pipeline import finish as ending
from clash.pipeline import keys
from clash.pipeline import price as estimate
from clash.pipeline.finish import INTERRUPTED
from clash.pipeline.prepare import begin
from clash.pipeline.signals import listen
from clash.providers import BATCHING
from clash.providers.prices import OFFLINE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clash.collect.plan import Plan
    from clash.collect.run import New
    from clash.config import Config
    from clash.pipeline.finish import Finished
    from clash.pipeline.prepare import Origin, Prepared
    from clash.records import Kind
    from clash.store.folder import RunWriter


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
    finished = judge(
        made,
        environ,
        kind=kind,
        out=out,
        run_id=run_id,
        origin=origin,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        quiet=quiet,
    )
    if finished is None:
        return 0
    ending.tell(finished, as_json=as_json, whole=whole, quiet=quiet)
    return finished.exit_code


def judge(
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
) -> Finished | None:
    """Price the plan and run it; a dry run prints the price, and there is nothing to return."""
    forecast = price(made.plan)
    if dry_run:
        estimate.tell(forecast, made.plan, environ, as_json=as_json)
        return None
    keys.check(made.plan.refs(), environ, quiet=quiet or as_json)
    for note in (*made.resolved.notes, *made.prompts.warnings, *_live(made.plan)):
        say(note, style="yellow")
    estimate.check(forecast, made.plan, yes=yes, quiet=quiet or as_json)
    with begin(
        made, environ, kind=kind, out=out, run_id=run_id, origin=origin, forecast=forecast
    ) as writer:
        return carry_on(writer, made.plan, environ, quiet=quiet or as_json)


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


def _live(plan: Plan) -> list[str]:
    """What ``--batch`` does not reach, in a line."""
    live = sorted({r.model for r in plan.refs() if r.provider not in (*BATCHING, *OFFLINE)})
    if not (plan.config.limits.batch and live):
        return []
    return [f"asked live, since only {', '.join(BATCHING)} have a batch API: {', '.join(live)}"]


def carry_on(
    writer: RunWriter,
    made: Plan,
    environ: Mapping[str, str],
    *,
    quiet: bool,
    new: New | None = None,
) -> Finished:
    """Collect what is missing, then aggregate, report and seal, whatever happened.

    Args:
        writer: the run.
        made: what it does.
        environ: where keys are.
        quiet: show no progress.
        new: as for :func:`clash.collect.run.collect`.
    """
    started = time.monotonic()
    writer.redactor = made.redactor
    manifest = writer.manifest().model_copy(update={"status": "running", "files": {}, "seal": None})
    writer.save(manifest)
    with watcher(quiet=quiet) as progress:
        try:
            collected = anyio.run(_collect, made, writer, environ, progress, new)
        except BaseExceptionGroup as group:
            raise _ours(group) from None
    wall = manifest.wall_s + time.monotonic() - started
    return ending.conclude(
        writer, manifest.model_copy(update={"wall_s": round(wall, 3)}), collected
    )


def _ours(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error in a group that has a message; the group itself where it is a bug."""
    expected, bugs = group.split((ClashError, OSError))
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
    new: New | None,
) -> CollectOutcome:
    stop = Stop()

    def interrupt() -> None:
        stop.now(INTERRUPTED, leaves=True)
        say("finishing the calls in flight; Ctrl-C again stops at once", style="yellow")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen, interrupt, tasks.cancel_scope)
        collected = await collect(made, writer, environ, progress, stop, new=new)
        tasks.cancel_scope.cancel()
        return collected
    return CollectOutcome({}, INTERRUPTED)  # the scope swallowed the second Ctrl-C
