"""Run blocking work beside an event loop: a notebook's, or that of an application.

The pipeline starts an event loop of its own. It therefore runs in a thread, and the caller waits.
Ctrl-C (or a notebook's interrupt) ends the run as it does on the command line: calls in flight are
finished, the folder is sealed, and ``KeyboardInterrupt`` is raised. A second Ctrl-C gives up the
calls in flight.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from clash.library.arguments import (
    EvaluateArguments,
    ProgressCallback,
    RerunArguments,
    ValidateArguments,
    in_python,
    python_messages,
)
from clash.pipeline.options import CostCounter, Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from clash.collect.run import Progress
    from clash.pipeline.options import Level
    from clash.records import Call

T = TypeVar("T")
_POLL_S = 0.1
ARGUMENTS = frozenset(
    {"prompts", "candidates", "panel", "dataset", "run", "times"}
    | EvaluateArguments.__annotations__.keys()
    | ValidateArguments.__annotations__.keys()
    | RerunArguments.__annotations__.keys()
)
"""Of the functions that lead a run."""


class Interrupts:
    """How the caller of a thread tells it to end.

    Attributes:
        soon: set at the first interrupt: finish the calls in flight.
        at_once: set at the second: give them up.
    """

    def __init__(self) -> None:
        self.soon = threading.Event()
        self.at_once = threading.Event()


def run_blocking(work: Callable[[], T], interrupts: Interrupts) -> T:
    """Run ``work`` in a thread and wait for it.

    Args:
        work: what to run.
        interrupts: set where the caller is interrupted; the work ends then.

    Raises:
        KeyboardInterrupt: the caller was interrupted; the work has ended by then.
    """
    future = _start(work)
    try:
        return future.result()
    except KeyboardInterrupt:
        interrupts.soon.set()
        try:
            future.result()
        except KeyboardInterrupt:
            interrupts.at_once.set()
            future.result()
        raise


async def run_async(work: Callable[[], T], interrupts: Interrupts) -> T:
    """As :func:`run_blocking`, awaited; a cancellation interrupts the work."""
    future = asyncio.wrap_future(_start(work))
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        interrupts.soon.set()
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError:
            interrupts.at_once.set()
            await asyncio.wait([future])
        raise


def _forget_event_loop() -> None:
    """Say to anyio that none runs here: it notes the caller's in the context that we copied."""
    try:
        from sniffio import current_async_library_cvar
    except ImportError:
        return  # then it asks asyncio instead
    current_async_library_cvar.set(None)


def _start(work: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()
    context = contextvars.copy_context()
    context.run(_forget_event_loop)

    def target() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            future.set_exception(error)

    threading.Thread(target=target, name="clash", daemon=True).start()
    return future


# -- the runs of the library ----------------------------------------------------------------------


class _ProgressCallback(CostCounter):
    """Tells a callback how far the run is."""

    def __init__(self, callback: Callable[[str, int, int, float], None]) -> None:
        super().__init__()
        self._callback = callback
        self._stage, self._n_done, self._total = "", 0, 0

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        self._stage, self._n_done, self._total = name, 0, sum(totals.values())
        self._tell()

    def attempt_ended(self, pending: Any, call: Call) -> None:  # noqa: ANN401 - a PendingCall
        super().attempt_ended(pending, call)
        self._tell()

    def count_done(self, actor: str, *, is_failure: bool) -> None:  # noqa: ARG002 - part of the protocol
        self._n_done += 1
        self._tell()

    def _tell(self) -> None:
        self._callback(self._stage, self._n_done, self._total, self.cost_usd)


class LibraryObserver(Observer):
    """Keeps the notes for :attr:`Run.warnings`, reports progress to a callback, can be interrupted."""

    def __init__(self, callback: ProgressCallback | None = None) -> None:
        self.interrupts = Interrupts()
        self.notes: list[str] = []
        self._callback = callback

    def note(self, text: str, level: Level = "notice") -> None:
        """Keep notices and warnings."""
        note = in_python(text, ARGUMENTS)
        if level in ("notice", "warning") and note not in self.notes:
            self.notes.append(note)

    def progress(self) -> AbstractContextManager[Progress]:
        """Report to the callback, where there is one."""
        return (
            super().progress()
            if self._callback is None
            else nullcontext(_ProgressCallback(self._callback))
        )

    async def listen(self, stop: Callable[[], None], scope: anyio.CancelScope) -> None:
        """Stop the run once the caller is interrupted, at once where that happens again."""
        await _until(self.interrupts.soon)
        stop()
        await _until(self.interrupts.at_once)
        scope.cancel()


async def _until(event: threading.Event) -> None:
    # Another thread sets it, which an event of this loop would not hear.
    while not event.is_set():  # noqa: ASYNC110
        await anyio.sleep(_POLL_S)


@dataclass(frozen=True)
class LibraryWork:
    """A call of the library that leads a run: what it does, and who hears of it."""

    run: Callable[[], Any]
    observer: LibraryObserver

    def blocking(self) -> Any:  # noqa: ANN401 - what the work returns
        """Do the work and wait for it; errors name the arguments of the library."""
        with python_messages(ARGUMENTS):
            return run_blocking(self.run, self.observer.interrupts)

    async def wait_async(self) -> Any:  # noqa: ANN401 - what the work returns
        """As :meth:`blocking`, awaited."""
        with python_messages(ARGUMENTS):
            return await run_async(self.run, self.observer.interrupts)
