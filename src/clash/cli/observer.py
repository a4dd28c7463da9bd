"""The terminal as the observer of a run: notes on stderr, questions, bars or plain lines."""

from __future__ import annotations

import sys
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from clash.cli.common import say, stderr
from clash.cli.streams import learn
from clash.pipeline.options import CostCounter, Observer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Self

    import anyio
    from rich.progress import TaskID

    from clash.collect.calling import Ask
    from clash.collect.run import Progress
    from clash.pipeline.options import Level
    from clash.records import Call
    from clash.secrets.redaction import Redactor

_STYLES: dict[Level, str] = {
    "detail": "dim",
    "progress": "dim",
    "notice": "yellow",
    "warning": "bold yellow",
}


class TerminalObserver(Observer):
    """Prints notes on stderr, asks a person who is there, shows progress, hears Ctrl-C.

    With ``quiet`` neither details nor progress are shown.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._notes: set[str] = set()

    def note(self, text: str, level: Level = "notice") -> None:
        """Print a line; the same detail or notice only once."""
        is_repeated = level in ("detail", "notice") and text in self._notes
        if is_repeated or (level == "detail" and self._quiet):
            return
        self._notes.add(text)
        say(text, style=_STYLES[level])

    def confirm(self, question: str, details: tuple[str, ...] = ()) -> bool | None:
        """Ask on the terminal; null where stdin or stderr is none.

        Raises:
            KeyboardInterrupt: the person pressed Ctrl-C.
        """
        import typer

        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            return None
        for number, line in enumerate(details):
            say(line, style="bold" if number else "bold yellow")
        try:
            return typer.confirm(question, err=True)
        except typer.Abort:
            raise KeyboardInterrupt from None

    def learn(self, redact: Redactor) -> None:
        """Keep these secrets out of stdout and stderr too."""
        learn(redact)

    def progress(self) -> AbstractContextManager[Progress]:
        """Bars on a terminal, a line now and then elsewhere."""
        if self._quiet:
            return super().progress()
        return ProgressBars() if stderr().is_terminal else nullcontext(ProgressLines())

    async def listen(self, stop: Callable[[], None], scope: anyio.CancelScope) -> None:
        """End the run at the first signal, at once at the second."""
        from clash.cli.signals import listen

        await listen(stop, scope)


class ProgressLines(CostCounter):
    """A line every few seconds, for logs."""

    EVERY_S = 5.0

    def __init__(self) -> None:
        super().__init__()
        self._n_done = self._failed = self._total = 0
        self._name = ""
        self._next = 0.0
        self._batches: dict[str, tuple[int, int]] = {}

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """Name the stage and what it has before it."""
        self._name, self._total = name, sum(totals.values())
        self._n_done = self._failed = 0
        self._next = time.monotonic() + self.EVERY_S

    def count_done(self, actor: str, *, failed: bool) -> None:  # noqa: ARG002 - part of the protocol
        """Count, and now and then print."""
        self._n_done += 1
        self._failed += failed
        if time.monotonic() >= self._next or self._n_done == self._total:
            self._next = time.monotonic() + self.EVERY_S
            self._print()

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Print what has changed."""
        if self._batches.get(model) != (n_done, n_rows):
            self._batches[model] = (n_done, n_rows)
            say(f"{model}: {n_done} of {n_rows} rows that are with the provider are done", style="")

    def _print(self) -> None:
        failures = f", {self._failed} failed" if self._failed else ""
        say(f"{self._name}: {self._n_done}/{self._total}{failures}, ${self.cost_usd:.4f}", style="")


class ProgressBars(CostCounter):
    """A bar for each model, and a line with money, calls in flight and failures."""

    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        super().__init__()
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=stderr(),
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._failed: dict[str, int] = {}
        self._head: TaskID | None = None
        self._stage = ""
        self._batches: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """A bar over all, and one for each model."""
        for task in [*self._tasks.values(), *([self._head] if self._head is not None else [])]:
            self._bars.remove_task(task)
        self._stage = name
        self._head = self._bars.add_task(name, total=sum(totals.values()), note="")
        self._failed = dict.fromkeys(totals, 0)
        self._tasks = {
            actor: self._bars.add_task(f"  {actor}", total=total, note="")
            for actor, total in totals.items()
        }

    def attempt_began(self, ask: Ask) -> None:
        """Show what is in flight."""
        super().attempt_began(ask)
        self._show()

    def attempt_ended(self, ask: Ask, call: Call) -> None:
        """Show money and errors."""
        super().attempt_ended(ask, call)
        self._show()

    def count_done(self, actor: str, *, failed: bool) -> None:
        """Move the bars."""
        self._failed[actor] = self._failed.get(actor, 0) + failed
        note = f"{self._failed[actor]} failed" if self._failed[actor] else ""
        if actor in self._tasks:
            self._bars.update(self._tasks[actor], advance=1, note=note)
        if self._head is not None:
            self._bars.update(self._head, advance=1)

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Show how far the batches are."""
        self._batches[model] = f"{model.rpartition('/')[2]} {n_done}/{n_rows}"
        self._show()

    def _show(self) -> None:
        if self._head is not None:
            errors = f" · {self.errors} attempts failed" if self.errors else ""
            batches = f" · batches: {', '.join(self._batches.values())}" if self._batches else ""
            note = f"${self.cost_usd:.4f} · {self.in_flight} in flight{errors}{batches}"
            self._bars.update(self._head, note=note)
