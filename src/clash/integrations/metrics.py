"""A run in figures that Prometheus reads: a text file, rewritten while the run goes on.

The file is what node_exporter's textfile collector reads; ``curl`` of a static server does as well.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, write_to_textfile

from clash.errors import ConfigError
from clash.pipeline.options import CostCounter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from clash.collect.calling import PendingCall
    from clash.records import Call

EVERY_S = 5.0
"""Seconds between two writes, at least."""
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320)
"""Upper ends of the bins of a call's duration, in seconds."""


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is made or spent.

    Raises:
        ConfigError: it is a folder, or its folder is missing or closed to us.
    """
    folder = path.parent
    if path.is_dir():
        problem, fix = "is a folder", "name a file in it"
    elif not folder.is_dir():
        problem, fix = f"{folder} is no folder", "create it first, or name another file"
    elif not os.access(folder, os.W_OK):
        problem, fix = f"{folder} cannot be written", "name a file in another folder"
    else:
        return
    raise ConfigError(f"{path}: {problem}", field="--metrics", hint=fix)


class MetricsFile(CostCounter):
    """Counts calls, tokens, money and work by model, and writes them to a file.

    Args:
        path: the file, which is replaced whole each time.
        run: the id of the run, a label of ``clash_run_info``.
        warn: is told, once, that the file can no longer be written. The run goes on.
    """

    def __init__(self, path: Path, run: str, warn: Callable[[str], None]) -> None:
        super().__init__()
        self._path = path
        self._warn = warn
        self._has_warned = False
        self._next = 0.0
        registry = self._registry = CollectorRegistry()
        Gauge("clash_run_info", "The run.", ["run"], registry=registry).labels(run).set(1)
        self._calls = Counter(
            "clash_calls",
            "Attempts that ended.",
            ["model", "purpose", "outcome"],
            registry=registry,
        )
        self._seconds = Histogram(
            "clash_call_seconds",
            "Time to the answer, of attempts that have one.",
            ["model", "purpose"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._tokens = Counter(
            "clash_tokens",
            "Tokens that providers reported.",
            ["model", "direction"],
            registry=registry,
        )
        self._cost = Gauge(
            "clash_cost_usd", "US dollars spent; the upper bound where unknown.", registry=registry
        )
        self._in_flight = Gauge("clash_calls_in_flight", "Attempts under way.", registry=registry)
        self._total = Gauge(
            "clash_stage_work", "Pieces of work of a stage.", ["stage"], registry=registry
        )
        self._stage_done = Gauge(
            "clash_stage_done", "Pieces of work that ended.", ["stage", "failed"], registry=registry
        )
        self._run_end = Gauge("clash_run_ended", "1 once the run has ended.", registry=registry)
        self._time = Gauge(
            "clash_written_seconds", "When this file was written, Unix time.", registry=registry
        )
        self._stage = ""

    def __enter__(self) -> Self:
        """Write the file for the first time.

        Raises:
            ConfigError: it cannot be written; nothing has been spent then.
        """
        try:
            self._write()
        except OSError as error:
            raise ConfigError(self._problem(error), field="--metrics") from None
        return self

    def __exit__(self, *_: object) -> None:
        self._run_end.set(1)
        self._rewrite()

    def stage_began(self, name: str, totals: Mapping[str, int]) -> None:
        """A stage begins, with so much work."""
        self._stage = name
        self._total.labels(name).set(sum(totals.values()))
        self._rewrite()

    def attempt_ended(self, pending: PendingCall, call: Call) -> None:
        """Count an attempt, its time, tokens and money."""
        super().attempt_ended(pending, call)
        self._calls.labels(call.model, call.purpose, call.outcome).inc()
        if call.outcome != "error" and call.latency_s is not None:
            self._seconds.labels(call.model, call.purpose).observe(call.latency_s)
        if call.tokens is not None:
            self._tokens.labels(call.model, "input").inc(call.tokens.input or 0)
            self._tokens.labels(call.model, "output").inc(call.tokens.output or 0)
        self._write_now_and_then()

    def count_done(self, actor: str, *, is_failure: bool) -> None:  # noqa: ARG002 - part of the protocol
        """Count a piece of work."""
        self._stage_done.labels(self._stage, str(is_failure).lower()).inc()
        self._write_now_and_then()

    def _write_now_and_then(self) -> None:
        if time.monotonic() >= self._next:
            self._rewrite()

    def _rewrite(self) -> None:
        """Write the file again; where that fails its time shows that it is old."""
        try:
            self._write()
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                self._warn(f"--metrics: {self._problem(error)}; the run goes on")

    def _write(self) -> None:
        self._next = time.monotonic() + EVERY_S
        self._cost.set(self.cost_usd)
        self._in_flight.set(self.in_flight)
        self._time.set(time.time())
        write_to_textfile(str(self._path), self._registry)

    def _problem(self, error: OSError) -> str:
        return f"{self._path}: cannot be written ({error.strerror or error})"
