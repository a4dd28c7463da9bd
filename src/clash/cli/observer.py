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

    from clash.collect.calling import PendingCall
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
_VERBS = {
    "responses and criteria": "generating",
    "criteria": "writing criteria",
    "judgments": "judging",
}
_CENTS_FROM = 0.1
_WIDE = 100
"""Columns from which there is a row for each model."""
_MOST_ROWS = 8
_NAME_WIDTH = 28
_MOST_BAR, _LEAST_BAR = 40, 8
_ROOM_BESIDE_BAR = 56


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
        self._n_done = self._n_failed = self._total = 0
        self._name = ""
        self._next = 0.0
        self._batches: dict[str, tuple[int, int]] = {}

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """Name the stage and what it has before it."""
        self._name, self._total = _VERBS.get(name, name), sum(totals.values())
        self._n_done = self._n_failed = 0
        self._next = time.monotonic() + self.EVERY_S

    def count_done(self, actor: str, *, is_failure: bool) -> None:  # noqa: ARG002 - part of the protocol
        """Count, and now and then print."""
        self._n_done += 1
        self._n_failed += is_failure
        if time.monotonic() >= self._next or self._n_done == self._total:
            self._next = time.monotonic() + self.EVERY_S
            self._print()

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Print what has changed."""
        if self._batches.get(model) != (n_done, n_rows):
            self._batches[model] = (n_done, n_rows)
            say(f"{model}: {n_done} of {n_rows} rows that are with the provider are done", style="")

    def _print(self) -> None:
        say(
            f"{self._name} {self._n_done:,}/{self._total:,}"
            f" · {_note(self.cost_usd, self._n_failed, {})}",
            style="",
        )


def _note(cost_usd: float, n_failed: int, batches: Mapping[str, str]) -> str:
    """What is known beside how far a stage is: ``$0.12 · 3 failed``."""
    has_cents = cost_usd >= _CENTS_FROM or not cost_usd
    parts = [f"${cost_usd:.2f}" if has_cents else f"${cost_usd:.4f}"]
    if n_failed:
        parts.append(f"{n_failed} failed")
    parts += [f"batch {name} {state}" for name, state in batches.items()]
    return " · ".join(parts)


class ProgressBars(CostCounter):
    """One line over all work, with money, failures and the time left.

    A terminal of 100 columns or more has a row for each model too.
    """

    def __init__(self) -> None:
        from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
        from rich.text import Text

        class Remaining(ProgressColumn):
            """The note of a task, and the time left."""

            def render(self, task: Task) -> Text:
                left = task.time_remaining
                if left is None or task.finished:
                    return Text(task.fields["note"])
                minutes, seconds = divmod(int(left), 60)
                return Text(f"{task.fields['note']} · {minutes}:{seconds:02} left".lstrip(" ·"))

        super().__init__()
        console = stderr()
        self._is_wide = console.width >= _WIDE
        bar_width = min(_MOST_BAR, max(_LEAST_BAR, console.width - _ROOM_BESIDE_BAR))
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=bar_width),
            Remaining(),
            console=console,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._n_failed: dict[str, int] = {}
        self._n_done: dict[str, int] = {}
        self._names: dict[str, str] = {}
        self._head: TaskID | None = None
        self._stage = ""
        self._totals: dict[str, int] = {}
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
        """A bar over all, and one for each model where there is room."""
        from clash.pages.names import short_names

        for task in [*self._tasks.values(), *([self._head] if self._head is not None else [])]:
            self._bars.remove_task(task)
        self._stage, self._totals = _VERBS.get(name, name), dict(totals)
        self._n_failed, self._n_done = dict.fromkeys(totals, 0), dict.fromkeys(totals, 0)
        self._names = short_names(totals, _NAME_WIDTH)
        self._head = self._bars.add_task("", total=sum(totals.values()), note="")
        has_rows = self._is_wide and 1 < len(totals) <= _MOST_ROWS
        self._tasks = {
            actor: self._bars.add_task(self._row(actor), total=total, note="")
            for actor, total in (totals.items() if has_rows else ())
        }
        self._show()

    def _row(self, actor: str) -> str:
        return f"  {self._names[actor]} {self._n_done[actor]:,}/{self._totals[actor]:,}"

    def attempt_ended(self, pending: PendingCall, call: Call) -> None:
        """Show money."""
        super().attempt_ended(pending, call)
        self._show()

    def count_done(self, actor: str, *, is_failure: bool) -> None:
        """Move the bars."""
        self._n_done[actor] = self._n_done.get(actor, 0) + 1
        self._n_failed[actor] = self._n_failed.get(actor, 0) + is_failure
        if actor in self._tasks:
            n_failed = self._n_failed[actor]
            note = f"{n_failed} failed" if n_failed else ""
            self._bars.update(
                self._tasks[actor], advance=1, note=note, description=self._row(actor)
            )
        if self._head is not None:
            self._bars.update(self._head, advance=1)
        self._show()

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Show how far the batches are."""
        self._batches[model.rpartition("/")[2]] = f"{n_done}/{n_rows}"
        self._show()

    def _show(self) -> None:
        if self._head is not None:
            n_done, total = sum(self._n_done.values()), sum(self._totals.values())
            note = _note(self.cost_usd, sum(self._n_failed.values()), self._batches)
            description = f"{self._stage} {n_done:,}/{total:,}"
            self._bars.update(self._head, note=note, description=description)
