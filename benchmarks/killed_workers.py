"""Many judgments on workers that are killed, against a server that enforces a rate.

``python benchmarks/killed_workers.py`` judges items with three judges through the OpenAI SDK (or with
``--panel http`` through our own HTTP) twice: in one process, and with ``--workers``. In the second run
workers are killed and stopped at random moments, ``--max-cost`` ends the run half-way, the broker is
killed too, and ``clash resume`` goes on. Then it compares the two runs and prints what holds, and what
each process took of the machine. With ``--ray`` the workers are on a Ray cluster of this machine, a head
that does no work and four nodes of one CPU, and whole nodes are killed and replaced.

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import harness
from harness import CLASH, ROOT, start
from orchestration import JUDGES, heading, records, show, write_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from harness import Running, Server

BROKER_ENDED = -signal.SIGKILL
BUDGET_SPENT = 3
NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
"""A Ray node."""
N_NODES = 4


@dataclass
class Workers:
    """Where the workers of a run are.

    Attributes:
        name: what the table calls them.
        options: of the command line, after ``eval`` and ``resume``.
        pids: the processes of the workers of a run, by the process of the run.
        kill: ends one of them at random.
    """

    name: str
    options: list[str]
    pids: Callable[[int], Iterator[int]]
    kill: Callable[[list[int], random.Random], None]


@contextmanager
def local_workers(count: int) -> Iterator[Workers]:
    """Worker processes of this machine, of which one in six hangs for good instead.

    That is noticed after half a minute.
    """

    def kill(pids: list[int], rng: random.Random) -> None:
        with suppress(ProcessLookupError):
            is_hung = rng.random() < 1 / 6
            os.kill(rng.choice(pids), signal.SIGSTOP if is_hung else signal.SIGKILL)

    yield Workers("workers", ["--workers", str(count)], child_workers, kill)


@contextmanager
def ray_workers(environ: dict[str, str]) -> Iterator[Workers]:
    """Actors on the nodes of a Ray cluster of this machine; a killed node is replaced by another."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": f"{ROOT / 'src'}", **environ}
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})

    def kill(_: list[int], rng: random.Random) -> None:
        nodes = sorted(cluster.worker_nodes, key=lambda node: node.unique_id)
        cluster.remove_node(rng.choice(nodes), allow_graceful=False)
        # On a busy machine a node may not come up in time; the next kill then starts two.
        with suppress(Exception):
            while len(cluster.worker_nodes) < N_NODES:
                cluster.add_node(wait=False, **NODE)

    try:
        for _ in range(N_NODES):
            cluster.add_node(**NODE)
        yield Workers(f"{N_NODES} Ray nodes", ["--ray", cluster.address], lambda _: actors(), kill)
    finally:
        cluster.shutdown()


@dataclass
class Kills:
    """When which workers are killed.

    Attributes:
        workers: null where none is.
        every_s: seconds between two kills, on average.
    """

    workers: Workers | None
    rng: random.Random
    every_s: float

    def pause(self) -> float:
        """Seconds until the next."""
        return self.rng.uniform(0.5, 1.5) * self.every_s


@dataclass
class Observation:
    """What the processes of a run took, and what was done to them.

    Attributes:
        peak_mb: the most resident memory, by process id, and what each process was.
        n_kills: how many workers, or nodes, were killed or stopped for good.
    """

    peak_mb: dict[int, tuple[str, float]] = field(default_factory=dict)
    n_kills: int = 0

    def look(self, pid: int, kind: str) -> None:
        """Note the memory of a process."""
        self.peak_mb[pid] = kind, max(resident_mb(pid), self.peak_mb.get(pid, ("", 0.0))[1])


def watch(running: Running, kills: Kills) -> Observation:
    """Look at the processes of a run and kill some of its workers, until it has ended.

    It runs in the main thread, the only one in which Ray can start a node.
    """
    observation, pid = Observation(), running.process.pid
    next_at = time.monotonic() + kills.pause()
    # WNOWAIT leaves the ended process to `Running.wait`, which reads what it used.
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.2)
        workers = list(kills.workers.pids(pid)) if kills.workers else []
        observation.look(pid, "process of the run")
        for worker in workers:
            observation.look(worker, "worker")
        if kills.workers and workers and time.monotonic() > next_at:
            kills.workers.kill(workers, kills.rng)
            observation.n_kills += 1
            next_at = time.monotonic() + kills.pause()
    return observation


def child_workers(pid: int) -> Iterator[int]:
    """The worker processes of a process, those that are stopped left out."""
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, tasks.read_text().split()):
                with suppress(OSError):
                    is_worker = b"worker_process" in Path(f"/proc/{child}/cmdline").read_bytes()
                    state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
                    if is_worker and state not in "TZ":
                        yield child


def actors() -> Iterator[int]:
    """The processes of clash's actors on the Ray nodes of this machine."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if file.read_bytes().startswith(b"ray::ClashWorker"):
                yield int(file.parent.name)


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
    observation: Observation


def leg(
    words: list[str],
    folder: Path,
    wire: Server,
    *,
    kills: Kills,
    killed_after_s: float | None = None,
) -> Leg:
    """Run a command to its end, or until the broker is killed."""
    running = start([*CLASH, *words], folder, wire.environ)
    timer = threading.Timer(killed_after_s or 0, running.kill)
    if killed_after_s is not None:
        timer.start()
    observation = watch(running, kills)
    usage = running.wait()
    timer.cancel()
    if usage.code not in (0, BUDGET_SPENT, BROKER_ENDED):
        sys.exit(f"{' '.join(words)} ended with {usage.code}\n{usage.out}")
    return Leg(usage.code, usage.wall_s, usage.cpu_s, observation)


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
        for record in records(run, "reservations.jsonl"):
            if (record["call_id"], record["attempt"]) not in ended_calls:
                n_lost += 1
                usd += record["usd"]
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
    parser.add_argument("--ray", action="store_true", help="on four Ray nodes, in place of workers")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds of an answer")
    parser.add_argument("--rate", type=float, default=100, help="requests a second of an account")
    parser.add_argument("--kill-every", type=float, default=15, help="seconds between two kills")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    harness.LONGEST_S = 10**6
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        n_items = options.judgments // JUDGES
        write_inputs(folder, n_items)
        if options.panel == "http":
            lower_prices(folder / "http.yaml")
        flight = ["--concurrency", str(options.concurrency)]
        words = [f"items-{n_items}.jsonl", "--panel", f"{options.panel}.yaml", "--yes", *flight]
        alone, journal_alone = judge_alone(["eval", *words], folder, options)
        cap = 0.4 * money_spent(folder / "runs" / "alone")
        legs, journal, spent_at_cap = judge_with_kills(words, folder, options, cap, alone.wall_s)
        print(f"\n{n_items * JUDGES:,} judgments, load {os.getloadavg()[0]:.1f}\n")
        print_legs([("one process", alone), *legs])
        print_checks(list(checks(folder, cap, spent_at_cap, journal)), journal_alone)


def serve(options: argparse.Namespace) -> AbstractContextManager[Server]:
    """A server that enforces the rate."""
    return harness.server(options.latency, "--forgetful", "--per-second", str(options.rate))


def judge_alone(
    words: list[str], folder: Path, options: argparse.Namespace
) -> tuple[Leg, dict[str, Any]]:
    """The run of one process, and what its server counted."""
    kills = Kills(None, random.Random(options.seed), options.kill_every)
    with serve(options) as wire:
        return leg([*words, "--run-id", "alone"], folder, wire, kills=kills), wire.journal()


def judge_with_kills(
    words: list[str], folder: Path, options: argparse.Namespace, cap: float, alone_s: float
) -> tuple[list[tuple[str, Leg]], dict[str, Any], float]:
    """The run that is killed again and again: to the cap, until the broker is killed, to the end.

    Returns:
        Its legs, what its server counted, and the money that was spent when it met the cap.
    """
    with (
        serve(options) as wire,
        ray_workers(dict(wire.environ))
        if options.ray
        else local_workers(options.workers) as workers,
    ):
        kills = Kills(workers, random.Random(options.seed), options.kill_every)
        first = ["eval", *words, "--run-id", "many", *workers.options, "--max-cost", f"{cap:.6f}"]
        legs = [(f"{workers.name}, to the cap", leg(first, folder, wire, kills=kills))]
        spent_at_cap = money_spent(folder / "runs" / "many")
        flight = ["--concurrency", str(options.concurrency), "--max-cost", f"{100 * cap:.6f}"]
        on = ["resume", "many", *workers.options, *flight]
        killed = leg(on, folder, wire, kills=kills, killed_after_s=0.2 * alone_s)
        legs.append((f"{workers.name}, broker killed", killed))
        legs.append((f"{workers.name}, to the end", leg(on, folder, wire, kills=kills)))
        return legs, wire.journal(), spent_at_cap


def print_legs(legs: list[tuple[str, Leg]]) -> None:
    """A row for each process that was started: time, CPU, kills and memory."""
    heading(("leg", "exit code", "s", "CPU s", "killed", "MB, run", "MB, each worker"))
    for name, part in legs:
        peaks = part.observation.peak_mb.values()
        own_mb = max(mb for kind, mb in peaks if kind != "worker")
        workers = sorted(mb for kind, mb in peaks if kind == "worker" and mb)
        spread = f"{workers[0]:.0f} to {workers[-1]:.0f} ({len(workers)})" if workers else "–"
        code = "killed" if part.code == BROKER_ENDED else str(part.code)
        show((name, code, f"{part.wall_s:.0f}", f"{part.cpu_s:.0f}", f"{part.observation.n_kills}",
              f"{own_mb:.0f}", spread))  # fmt: skip


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
