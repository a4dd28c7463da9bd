"""Ctrl-C, a termination, a closed terminal: how a run is told to stop, and stops for certain."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERRUPTED = 130
"""The exit code of a run that was told to stop."""
GRACE_S = 5.0
"""How long a signal may stay unheard: while one text is parsed, the event loop hears nothing."""
_TWICE_S = 0.5
"""Signals closer than this are one: a terminal and a wrapper both send it."""
_ENDING = b"clash: stopped at once; every finished call is in the run folder, and `clash resume` goes on\n"


async def listen(stop: Callable[[], None], scope: anyio.CancelScope) -> None:
    """Call ``stop`` at the first signal and cancel ``scope`` at the second."""
    try:
        with anyio.open_signal_receiver(*_signals()) as signals, _watchdog(*_signals()) as disarm:
            is_stopping = False
            async for _ in signals:
                disarm()
                if is_stopping:
                    scope.cancel()
                    return
                is_stopping = True
                stop()
    except NotImplementedError:  # pragma: no cover - Windows raises KeyboardInterrupt by itself
        return


def _signals() -> list[signal.Signals]:
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    signals = [getattr(signal, name) for name in names if hasattr(signal, name)]
    # `nohup` leaves SIGHUP ignored, for a run that is to outlive its terminal.
    hangups = [s for s in signals if s.name == "SIGHUP" and signal.getsignal(s) == signal.SIG_IGN]
    return [number for number in signals if number not in hangups]


@contextmanager
def _watchdog(*signals: signal.Signals) -> Iterator[Callable[[], None]]:
    """End the process where a signal stays unheard; yields what says that one was heard.

    The event loop learns of a signal by a byte in a pipe, which it reads between two steps. Python
    itself calls a handler between two instructions, and so within a step that takes long.
    """
    unheard: float | None = None

    def disarm() -> None:
        nonlocal unheard
        unheard = None
        signal.setitimer(signal.ITIMER_REAL, 0)

    def arrives(_signal: int, _frame: object) -> None:
        nonlocal unheard
        if unheard is None:
            unheard = time.monotonic()
            signal.setitimer(signal.ITIMER_REAL, GRACE_S)
        elif time.monotonic() - unheard > _TWICE_S:
            end()

    def end(*_: object) -> None:
        os.write(2, _ENDING)
        os._exit(INTERRUPTED)

    before = signal.signal(signal.SIGALRM, end)
    for number in signals:
        signal.signal(number, arrives)
    try:
        yield disarm
    finally:
        disarm()
        signal.signal(signal.SIGALRM, before)
