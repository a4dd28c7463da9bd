"""Run a plan: approve its price, open the run folder, collect what is missing, finish."""

from __future__ import annotations

import shlex
import time
from types import MappingProxyType
from typing import TYPE_CHECKING

import anyio

from clash.collect.forecast import price
from clash.collect.run import CollectOutcome, collect
from clash.collect.schedule import Stop
from clash.errors import ClashError
from clash.pipeline import keys
from clash.pipeline.finish import INTERRUPTED, finish
from clash.pipeline.options import CostCounter
from clash.pipeline.prepare import create_folder
from clash.pipeline.price import approve
from clash.providers import BATCHING
from clash.providers.prices import OFFLINE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.collect.forecast import Forecast
    from clash.collect.plan import Plan
    from clash.collect.run import New
    from clash.pipeline.finish import RunResult
    from clash.pipeline.options import Observer, RunOptions
    from clash.pipeline.prepare import RunSetup
    from clash.store.folder import RunWriter


def execute(setup: RunSetup, options: RunOptions) -> RunResult:
    """Run a plan from the price to the sealed folder.

    Raises:
        ConfigError: a key is missing, or the price was not agreed to; nothing has been spent.
    """
    forecast = start(setup, options)
    with create_folder(setup, options, forecast) as writer:
        return carry_on(writer, setup.plan, options.environ, options.observer)


def start(setup: RunSetup, options: RunOptions) -> Forecast:
    """Check the keys, pass on the notes of the preparation, and have the price approved."""
    plan, observer = setup.plan, options.observer
    keys.check(plan.refs(), options.environ, observer)
    for note in (*setup.notes, *options.origin.notes, *_live_models(plan)):
        observer.note(note)
    forecast = price(plan)
    approve(forecast, plan, observer, yes=options.yes)
    return forecast


def _live_models(plan: Plan) -> list[str]:
    """Models that ``--batch`` does not reach, in one line."""
    live = sorted({r.model for r in plan.refs() if r.provider not in (*BATCHING, *OFFLINE)})
    if not (plan.config.limits.batch and live):
        return []
    return [f"asked live, since only {', '.join(BATCHING)} have a batch API: {', '.join(live)}"]


def carry_on(
    writer: RunWriter,
    plan: Plan,
    environ: Mapping[str, str],
    observer: Observer,
    *,
    new: New | None = None,
    stop_reasons: Mapping[str, str] = MappingProxyType({}),
) -> RunResult:
    """Collect what is missing, then aggregate, report and seal, whatever happened.

    Args:
        writer: the run.
        plan: what it does.
        environ: where keys are.
        observer: watches, and may end it early.
        new: how questions are asked that nobody has asked yet, as for
            :func:`clash.collect.run.collect`.
        stop_reasons: models that are not asked again, likewise.
    """
    start_time = time.monotonic()
    writer.redactor = plan.redactor
    manifest, cap = writer.manifest(), plan.config.limits.max_cost
    has_cap_of_start = cap == manifest.config.get("limits", {}).get("max_cost")
    manifest = manifest.model_copy(
        update={
            "status": "running",
            "files": {},
            "seal": None,
            "max_cost": None if has_cap_of_start else cap,
        }
    )
    writer.save(manifest)
    observer.run_opened(writer.path)
    try:
        outcome = anyio.run(_collect, writer, plan, environ, observer, new, stop_reasons)
    except BaseExceptionGroup as group:
        raise _expected_error(group) from None
    wall_s = round(manifest.wall_s + time.monotonic() - start_time, 3)
    try:
        return finish(writer, manifest.model_copy(update={"wall_s": wall_s}), outcome)
    except KeyboardInterrupt:
        observer.note(
            "stopped at once; every finished call is in the folder, and "
            f"`clash resume {shlex.quote(str(writer.path))}` goes on"
        )
        raise


async def _collect(
    writer: RunWriter,
    plan: Plan,
    environ: Mapping[str, str],
    observer: Observer,
    new: New | None,
    stop_reasons: Mapping[str, str],
) -> CollectOutcome:
    stop = Stop()

    with observer.progress() as progress:

        def interrupt() -> None:
            stop.now(INTERRUPTED, leaves=True)
            n = progress.in_flight if isinstance(progress, CostCounter) else 0
            calls = "1 call" if n == 1 else f"{n} calls"
            observer.note(f"finishing {calls} in flight; press Ctrl-C again to stop now")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(observer.listen, interrupt, tasks.cancel_scope)
            outcome = await collect(
                plan, writer, environ, progress, stop, new=new, stop_reasons=stop_reasons
            )
            tasks.cancel_scope.cancel()
            return outcome
    return CollectOutcome({}, INTERRUPTED)  # the second Ctrl-C cancelled the scope


def _expected_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error of a group that has a message; where it holds bugs, the one or all of them."""
    errors, bugs = group.split((ClashError, OSError))
    first: BaseException = group if bugs is not None or errors is None else errors
    while isinstance(first, BaseExceptionGroup) and (bugs is None or len(first.exceptions) == 1):
        first = first.exceptions[0]
    return first
