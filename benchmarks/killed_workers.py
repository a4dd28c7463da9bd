"""Many judgments on worker processes that are killed, against a server that enforces a rate.

``python benchmarks/killed_workers.py`` judges items with three judges through the OpenAI SDK (or with
``--panel http`` through our own HTTP) twice: in one process, and with ``--workers``. In the second run workers are killed and stopped at random
moments, ``--max-cost`` ends the run half-way, the broker is killed too, and ``clash resume`` goes on.
Then it compares the two runs and prints what holds, and what each process took of the machine.

A million judgments take hours on two cores: ``--judgments 12000`` takes some minutes. What a check
finds is the same at any size; nothing is left out at a smaller one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import harness
from harness import CLASH, start
from orchestration import JUDGES, heading, records, show, write_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Running, Server

BROKER_ENDED = -signal.SIGKILL
BUDGET_SPENT = 3


@dataclass
class Watch:
    """Looks at the processes of a run, and kills or stops some of its workers at random moments.

    Attributes:
        peak_mb: the most resident memory, by process id, and what each process was.
        killed: how many workers were killed, and ``stopped`` how many were stopped for good.
    """

    running: Running
    rng: random.Random
    every_s: float | None
    peak_mb: dict[int, tuple[str, float]] = field(default_factory=dict)
    killed: int = 0
    stopped: int = 0

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        pid = self.running.process.pid
        next_at = self._next()
        while not self._over.wait(0.2):
            workers = list(workers_of(pid))
            for process, kind in ((pid, "process of the run"), *((w, "worker") for w in workers)):
                mb = resident_mb(process)
                self.peak_mb[process] = kind, max(mb, self.peak_mb.get(process, ("", 0.0))[1])
            if workers and time.monotonic() > next_at:
                next_at = self._next()
                with suppress(ProcessLookupError):
                    self._hit(self.rng.choice(workers))

    def _hit(self, worker: int) -> None:
        # One in six hangs for good, which is noticed after half a minute.
        hangs = self.rng.random() < 1 / 6
        os.kill(worker, signal.SIGSTOP if hangs else signal.SIGKILL)
        self.stopped += hangs
        self.killed += not hangs

    def _next(self) -> float:
        if self.every_s is None:
            return float("inf")
        return time.monotonic() + self.rng.uniform(0.5, 1.5) * self.every_s


def workers_of(pid: int) -> Iterator[int]:
    """The worker processes of a process, those that are stopped left out."""
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, tasks.read_text().split()):
                with suppress(OSError):
                    is_worker = b"worker_process" in Path(f"/proc/{child}/cmdline").read_bytes()
                    state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                    if is_worker and state not in "TZ":
                        yield child


def resident_mb(pid: int) -> float:
    """Resident memory; 0 of a process that has ended."""
    with suppress(OSError, IndexError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return 0.0


@dataclass(frozen=True)
class Leg:
    """One process of a run, from its start to its end."""

    code: int
    wall_s: float
    cpu_s: float
    watch: Watch


def leg(
    words: list[str],
    folder: Path,
    wire: Server,
    *,
    rng: random.Random,
    every_s: float | None = None,
    killed_after_s: float | None = None,
) -> Leg:
    """Run a command to its end, or until the broker is killed."""
    running = start([*CLASH, *words], folder, wire.environ)
    timer = threading.Timer(killed_after_s or 0, running.kill)
    if killed_after_s is not None:
        timer.start()
    with Watch(running, rng, every_s) as watch:
        used = running.wait()
    timer.cancel()
    if used.code not in (0, BUDGET_SPENT, BROKER_ENDED):
        sys.exit(f"{' '.join(words)} ended with {used.code}\n{used.out}")
    return Leg(used.code, used.wall_s, used.cpu_s, watch)


def lower_prices(panel_file: Path) -> None:
    """Price each judge near what the server bills.

    A call that is in flight or lost counts at its worst case. At list prices that is some thousand times
    the bill of this server: the cap would leave room for three calls in flight, and a few kills would
    end the run.
    """
    panel = yaml.safe_load(panel_file.read_text(encoding="utf-8"))
    for judge in panel["judges"]:
        judge["price"] = {"input": 0.1, "output": 0.1}
    panel_file.write_text(yaml.safe_dump(panel), encoding="utf-8")


# -- what the two runs say ------------------------------------------------------------------------


@dataclass(frozen=True)
class Books:
    """What a run folder says of its calls.

    Attributes:
        answered: how often each call was answered.
        lost: attempts that ended without an answer though they may have been billed, and
            reservations of attempts of which nothing else is known.
        spent_usd: answered attempts at their price, lost ones at their worst case.
        rate_limits: attempts that were answered 429.
    """

    answered: Counter[str]
    lost: int
    spent_usd: float
    rate_limits: int

    @classmethod
    def read(cls, run: Path) -> Books:
        counts: Counter[str] = Counter()
        ended_calls, n_lost, usd, rate_limits = set(), 0, 0.0, 0
        for call in records(run, "calls.jsonl"):
            ended_calls.add((call["call_id"], call["attempt"]))
            cost = call["cost_usd"]
            if call["outcome"] != "error":
                counts[call["call_id"]] += 1
            n_lost += call["outcome"] == "error" and cost is None
            rate_limits += call.get("error_class") == "rate_limit"
            usd += call.get("cost_bound_usd") or 0.0 if cost is None else cost
        for entry in records(run, "reservations.jsonl"):
            if (entry["call_id"], entry["attempt"]) not in ended_calls:
                n_lost += 1
                usd += entry["usd"]
        return cls(counts, n_lost, usd, rate_limits)


def manifest(run: Path) -> dict[str, Any]:
    """The manifest of a run."""
    return json.loads((run / "manifest.json").read_text(encoding="utf-8"))


def money_spent(run: Path) -> float:
    """Dollars that a run says it has spent, or may have."""
    return Books.read(run).spent_usd


def checks(
    folder: Path, cap: float, spent_at_cap: float, journal: dict[str, Any]
) -> Iterator[tuple[str, str, bool]]:
    """What is to hold, what the two runs say of it, and whether it does."""
    alone, many = folder / "runs" / "alone", folder / "runs" / "many"
    is_same = (alone / "verdicts.jsonl").read_bytes() == (many / "verdicts.jsonl").read_bytes()
    lines = sum(1 for _ in records(many, "verdicts.jsonl"))
    books, answered_alone = Books.read(many), len(Books.read(alone).answered)
    finding = f"{lines:,} verdicts; {answered_alone:,} calls answered in one process"
    yield "verdicts byte-identical to one process", finding, is_same
    twice = sum(count > 1 for count in books.answered.values())
    finding = f"{len(books.answered):,} calls answered, {twice} of them twice"
    yield "no answered call made again", finding, not twice
    beyond = journal["paid"] - sum(books.answered.values())
    finding = f"{beyond} paid and lost, {books.lost} recorded as lost"
    yield "what the server billed beyond is on record", finding, beyond <= books.lost
    finding = f"${spent_at_cap:.4f} of ${cap:.4f} when it stopped the run"
    yield "--max-cost never passed", finding, spent_at_cap <= cap
    share = journal["avoidable"] / journal["calls"]
    finding = f"{journal['avoidable']:,} ({share:.2%}), of {journal['refused']:,} in all"
    finding += f" ({journal['refused'] / journal['calls']:.2%} of {journal['calls']:,} requests)"
    yield "under 1% of requests answered 429 that were avoidable", finding, share < 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judgments", type=int, default=1_000_000)
    parser.add_argument("--panel", choices=("openai", "http"), default="openai")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds of an answer")
    parser.add_argument("--rate", type=float, default=100, help="requests a second of an account")
    parser.add_argument("--kill-every", type=float, default=15, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    harness.LONGEST_S = 10**6
    rng = random.Random(options.seed)
    items = options.judgments // JUDGES
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_inputs(folder, items)
        if options.panel == "http":
            lower_prices(folder / "http.yaml")
        common = ["--concurrency", str(options.concurrency)]
        judgments = [
            "eval",
            f"items-{items}.jsonl",
            "--panel",
            f"{options.panel}.yaml",
            "--yes",
            *common,
        ]
        serve = ("--forgetful", "--per-second", str(options.rate))
        legs: list[tuple[str, Leg]] = []
        with harness.server(options.latency, *serve) as wire:
            legs.append(
                ("one process", leg([*judgments, "--run-id", "alone"], folder, wire, rng=rng))
            )
            journal_alone = wire.journal()
        cap = 0.4 * money_spent(folder / "runs" / "alone")
        workers = ["--workers", str(options.workers), *common]
        with harness.server(options.latency, *serve) as wire:
            hits: dict[str, Any] = {"rng": rng, "every_s": options.kill_every}
            first = [*judgments, "--run-id", "many", *workers[:2], "--max-cost", f"{cap:.6f}"]
            legs.append(("workers, to the cap", leg(first, folder, wire, **hits)))
            spent_at_cap = money_spent(folder / "runs" / "many")
            on = ["resume", "many", *workers, "--max-cost", f"{100 * cap:.6f}"]
            third = legs[0][1].wall_s * 0.2
            leg_with_kills = leg(on, folder, wire, **hits, killed_after_s=third)
            legs.append(("workers, broker killed", leg_with_kills))
            legs.append(("workers, to the end", leg(on, folder, wire, **hits)))
            journal = wire.journal()
        print(f"\n{items * JUDGES:,} judgments, load {os.getloadavg()[0]:.1f}\n")
        print_legs(legs)
        print_checks(list(checks(folder, cap, spent_at_cap, journal)), journal_alone)


def print_legs(legs: list[tuple[str, Leg]]) -> None:
    """A row for each process that was started: time, CPU, kills and memory."""
    heading(
        (
            "leg",
            "exit code",
            "s",
            "CPU s",
            "workers killed",
            "stopped",
            "MB, run",
            "MB, each worker",
        )
    )
    for name, entry in legs:
        peaks = entry.watch.peak_mb.values()
        own_mb = max(mb for kind, mb in peaks if kind != "worker")
        workers = sorted(mb for kind, mb in peaks if kind == "worker" and mb)
        spread = f"{workers[0]:.0f} to {workers[-1]:.0f} ({len(workers)})" if workers else "–"
        code = "killed" if entry.code == BROKER_ENDED else str(entry.code)
        show((name, code, f"{entry.wall_s:.0f}", f"{entry.cpu_s:.0f}", f"{entry.watch.killed}",
              f"{entry.watch.stopped}", f"{own_mb:.0f}", spread))  # fmt: skip


def print_checks(findings: list[tuple[str, str, bool]], alone: dict[str, Any]) -> None:
    """A row for each check.

    Raises:
        SystemExit: one does not hold.
    """
    print()
    heading(("check", "found", "holds"))
    for name, text, holds in findings:
        show((name, text, "yes" if holds else "NO"))
    share = alone["refused"] / alone["calls"]
    print(f"\nIn one process {share:.2%} of the requests were answered 429.")
    if not all(holds for _, _, holds in findings):
        sys.exit(1)


if __name__ == "__main__":
    main()
