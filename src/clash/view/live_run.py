"""One run while it goes on: its journals read on, its counts, money, time and intervals."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from clash.pages import short_names
from clash.report.formats import money, percent
from clash.report.live import AGREEMENT_CAPTION, CAPTION, FILE_ORDER, RANDOM_ORDER, live_words
from clash.store.follow import FollowedFolder
from clash.wording import with_whole_figures

if TYPE_CHECKING:
    from pathlib import Path

    from clash.analysis.live import LiveFindings, LiveStanding
    from clash.analysis.rundata import RunData
    from clash.store.manifest import Manifest

_PAUSE = 4.0
"""A new computation waits so many times as long as the last one took: a watcher must not slow the
run that it watches."""
_RATE_S = 60.0
"""Seconds over which the speed of the run is measured."""
Phase = Literal["running", "ended", "stopped"]


@dataclass
class LiveRun:
    """A run that may go on, and what was computed of it last.

    Attributes:
        path: the run folder.
    """

    path: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _state: dict[str, Any] = field(default_factory=dict)
    _next: float = 0.0
    _history: deque[tuple[float, int]] = field(default_factory=deque)
    _n_judgments: int = 0
    _total: int = 0

    def __post_init__(self) -> None:
        self._folder = FollowedFolder(self.path)

    def phase(self) -> Phase:
        """Whether the run goes on, has ended, or was broken off without an end.

        Raises:
            RunFolderError: it is not a run.
        """
        if self._folder.is_being_written():
            return "running"
        return "ended" if self._folder.manifest().seal is not None else "stopped"

    def state(self) -> dict[str, Any]:
        """What the page shows now.

        Raises:
            RunFolderError: a record cannot be read.
        """
        with self._lock:
            phase = self.phase()
            if time.monotonic() >= self._next:
                self._compute()
            return {**self._state, "phase": phase, "status": self._folder.manifest().status}

    def _compute(self) -> None:
        """Read what was appended, and compute again if something was."""
        from clash.analysis.live import live_findings
        from clash.analysis.rundata import RunData

        began = time.monotonic()
        n_new = self._folder.refresh()
        if n_new or not self._state:
            run = RunData.load(self._folder)
            manifest = run.manifest
            findings = live_findings(run, manifest.counts.get("pool") or None)
            self._state = _page(findings, manifest) | self._progress(run)
        else:
            self._state = {**self._state, **self._time_left()}
        self._next = time.monotonic() + _PAUSE * (time.monotonic() - began)

    def _progress(self, run: RunData) -> dict[str, Any]:
        """Counts and money."""
        parts = [run] if run.controls is None else [run, run.controls]
        judgments = [judgment for part in parts for judgment in part.judgments]
        total = sum(part.n_pages for part in parts)
        n_answers = sum(
            use.calls for (purpose, _), use in run.usage.items() if purpose == "generate"
        )
        n_failed = sum(not judgment.is_usable for judgment in judgments)
        cost, most = sum(use.cost_usd for use in run.usage.values()), run.tally.bound_usd
        self._n_judgments, self._total = len(judgments), total
        self._history.append((time.monotonic(), len(judgments)))
        return {
            "judgments": f"{len(judgments):,} of {total:,}",
            "share": min(1.0, len(judgments) / total) if total else 0.0,
            "failed": f"{n_failed:,} failed" if n_failed else "",
            "answers": f"{n_answers:,} answers generated" if n_answers else "",
            "cost": money(cost),
            "pending": f"up to {money(most)} with calls in flight" if most > cost + 1e-9 else "",
            **self._time_left(),
        }

    def _time_left(self) -> dict[str, Any]:
        """The time left at the speed of the last minute; empty while that is unknown."""
        now = time.monotonic()
        while len(self._history) > 2 and now - self._history[1][0] > _RATE_S:
            self._history.popleft()
        if not self._history:
            return {"left": ""}
        (start, before), (_, after) = self._history[0], self._history[-1]
        if after <= before or now - start < 1:
            return {"left": ""}
        seconds = (self._total - self._n_judgments) * (now - start) / (after - before)
        return {"left": _duration(seconds) if self._total > self._n_judgments else ""}


def _page(findings: LiveFindings, manifest: Manifest) -> dict[str, Any]:
    words = live_words(findings)
    names = short_names([row.candidate for row in findings.standings])
    is_agreement = manifest.kind == "validate"
    is_leading = is_agreement or findings.state == "winner"
    return {
        "headline": with_whole_figures(words.headline),
        "evidence": words.evidence,
        "hint": words.hint,
        "known": findings.state in ("winner", "equal"),
        "prompts": f"{findings.n_judged:,} of {findings.items:,}",
        "rows": [
            _row(row, names[row.candidate], accent=is_leading and index == 0)
            for index, row in enumerate(findings.standings)
        ],
        "caption": AGREEMENT_CAPTION if is_agreement else CAPTION,
        "reference": "50%" if is_agreement else "50% = level",
        "order": RANDOM_ORDER if manifest.stopping else FILE_ORDER,
    }


def _row(row: LiveStanding, name: str, *, accent: bool) -> dict[str, Any]:
    rate = row.rate
    figure, _, bounds = percent(rate).partition(" ")
    return {
        "name": name,
        "title": row.candidate,
        "figure": figure,
        "bounds": bounds,
        "estimate": None if rate is None else 100 * rate.estimate,
        "low": None if rate is None else 100 * rate.low,
        "high": None if rate is None else 100 * rate.high,
        "accent": accent,
    }


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{max(1, round(seconds))} s left"
    return f"{minutes} min left" if minutes < 100 else f"{minutes / 60:.0f} h left"
