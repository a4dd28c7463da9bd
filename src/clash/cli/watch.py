"""The terminal as observer of a run that others watch too: a page, a collector, a metrics file."""

from __future__ import annotations

import sys
import webbrowser
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Self

from clash.cli.common import say
from clash.cli.observer import TerminalObserver
from clash.extras import require
from clash.pipeline.options import CostCounter
from clash.secrets.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clash.collect.calling import PendingCall
    from clash.collect.run import Progress
    from clash.records import Call
    from clash.view.server import ViewServer


class RunObserver(TerminalObserver):
    """Watches runs for the terminal and whoever else wants to, while it is entered.

    On leaving, a page that is open is given the time to become the report.

    Args:
        quiet: show neither details nor progress.
        watch: serve a page of each run.
        otel: send spans to an OpenTelemetry collector.
        metrics: the file to write Prometheus metrics to; null writes none.

    Raises:
        MissingPackageError: the packages that ``otel`` or ``metrics`` need are not installed.
        ConfigError: the file cannot be written, or a variable of OpenTelemetry is wrong.
    """

    def __init__(
        self, *, quiet: bool, watch: bool, otel: bool = False, metrics: Path | None = None
    ) -> None:

        super().__init__(quiet=quiet)
        if otel:
            require("opentelemetry.sdk", field="--otel")
            from clash.integrations.telemetry import check_environment

            check_environment()
        if metrics is not None:
            require("prometheus_client", field="--metrics")
            from clash.integrations.metrics import check_file

            check_file(metrics)
        self._watch, self._otel, self._metrics = watch, otel, metrics
        self._server: ViewServer | None = None
        self._path: Path | None = None
        self._monitors: list[Progress] = []
        self._stack = ExitStack()
        self._redactor = Redactor()

    def learn(self, redact: Redactor) -> None:
        """Keep these secrets out of what others see too."""
        super().learn(redact)
        self._redactor = redact

    def run_opened(self, path: Path) -> None:
        """Begin to tell others of a run, unless they hear of it already."""
        if path == self._path:
            return
        self._path = path
        self._open_monitors(path)
        if self._watch:
            self._serve(path)

    def _open_monitors(self, path: Path) -> None:
        self._stack.close()  # the run before has ended
        self._monitors = []
        if self._otel:
            from clash.integrations.telemetry import Telemetry

            telemetry = Telemetry(path, self._redactor, self._warn)
            self._monitors.append(self._stack.enter_context(telemetry))
        if self._metrics is not None:
            from clash.integrations.metrics import MetricsFile

            file = MetricsFile(self._metrics, path.name, self._warn)
            self._monitors.append(self._stack.enter_context(file))

    def _warn(self, text: str) -> None:
        self.note(text, "warning")

    def _serve(self, path: Path) -> None:
        from clash.view.server import ViewServer

        if self._server is None:
            self._server = ViewServer(path.parent)
            self._server.__enter__()
        url = self._server.run_url(path)
        say(f"watch the run at {url}", style="bold")
        webbrowser.open(url)

    @contextmanager
    def progress(self) -> Iterator[Progress]:
        """What the terminal shows, and whoever else hears of the run."""
        with super().progress() as display:
            yield Audience([display, *self._monitors]) if self._monitors else display

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        if self._server is None:
            return
        try:
            if sys.exception() is None:
                self._server.linger()
        finally:
            self._server.__exit__()


class Audience(CostCounter):
    """Tells several listeners what one is told."""

    def __init__(self, listeners: list[Progress]) -> None:
        super().__init__()
        self._listeners = listeners

    def count_spent(self, usd: float) -> None:
        """Money of earlier processes."""
        super().count_spent(usd)
        for listener in self._listeners:
            listener.count_spent(usd)

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """A stage begins."""
        for listener in self._listeners:
            listener.stage_began(name, totals)

    def attempt_began(self, pending: PendingCall) -> None:
        """An attempt goes out."""
        super().attempt_began(pending)
        for listener in self._listeners:
            listener.attempt_began(pending)

    def attempt_ended(self, pending: PendingCall, call: Call) -> None:
        """An attempt ended."""
        super().attempt_ended(pending, call)
        for listener in self._listeners:
            listener.attempt_ended(pending, call)

    def count_done(self, actor: str, *, is_failure: bool) -> None:
        """A piece of work ended."""
        for listener in self._listeners:
            listener.count_done(actor, is_failure=is_failure)

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """A batch was looked after."""
        for listener in self._listeners:
            listener.batch_polled(model, n_done, n_rows)
