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
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_POLL_S = 0.1


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
