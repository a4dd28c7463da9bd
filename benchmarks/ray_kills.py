"""One run on a Ray cluster of four nodes that are killed at random, beside the run of one process.

``python benchmarks/ray_kills.py`` starts a cluster of this machine (a head that does no work and
four nodes of one CPU), has ``clash eval`` judge items against a loopback server, kills a random node
every few seconds and starts another in its place. It prints calls, kills, what was paid for and
recorded, memory, and whether the verdicts are byte for byte those of one process; it ends with 1
where they are not, or where an answer was paid for again that was recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from harness import CLASH, ROOT, Used, run, server, start

if TYPE_CHECKING:
    from ray.cluster_utils import Cluster

    from harness import Running

NODE = {"num_cpus": 1, "object_store_memory": 80_000_000}
N_NODES, JUDGES = 4, 3


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--items", type=int, default=1000)
    arguments.add_argument("--latency", type=float, default=0.5, help="seconds of an answer")
    arguments.add_argument("--concurrency", type=int, default=64)
    arguments.add_argument("--every", type=float, default=5.0, help="seconds between two kills")
    arguments.add_argument("--seed", type=int, default=0)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name, server(options.latency) as judges:
        folder = Path(name)
        write_inputs(folder, options.items)
        environ = {**judges.environ, "PYTHONPATH": f"{ROOT / 'src'}"}
        words = ("eval", "prompts.jsonl", "--panel", "panel.yaml", "--criteria", "none", "--yes")
        command = (*CLASH, *words, "--concurrency", str(options.concurrency), "--quiet")
        alone = run((*command, "--run-id", "alone"), folder, environ)
        paid_before = judges.journal()["paid"]
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", **environ}
        from ray.cluster_utils import Cluster

        cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
        try:
            for _ in range(N_NODES):
                cluster.add_node(**NODE)
            words = ("--run-id", "ray", "--ray", cluster.address)
            running = start((*command, *words), folder, environ)
            n_kills = kill_nodes(cluster, running, options.every, random.Random(options.seed))
            spread = running.wait()
        finally:
            cluster.shutdown()
        if spread.code:
            print(spread.out, file=sys.stderr)
            return 1
        n_paid = paid_before, judges.journal()["paid"] - paid_before
        return report(folder / "runs", alone, spread, n_kills, n_paid)


def write_inputs(folder: Path, n_items: int) -> None:
    """Items with two responses each, and a panel of three models of one server."""
    lines = [
        {
            "id": f"q{i}",
            "prompt": f"Question {i}?",
            "responses": {"ada": f"Ada says {i * 7}.", "bob": f"Bob says {i * 3}, at length."},
        }
        for i in range(n_items)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "prompts.jsonl").write_text(text, encoding="utf-8")
    price = {"input": 1.0, "output": 10.0}
    models = [{"id": name, "model": f"compatible/{name}", "price": price} for name in "abc"]
    panel = json.dumps({"name": "three", "judges": models})
    (folder / "panel.yaml").write_text(panel, encoding="utf-8")


def kill_nodes(cluster: Cluster, running: Running, every_s: float, rng: random.Random) -> int:
    """Kill a random node every so many seconds and start another in its place, until the run ends.

    Returns:
        How many were killed.
    """
    n_kills, next_kill = 0, time.monotonic() + every_s
    # Looked at and left there: who waits for the process learns what it used.
    while os.waitid(os.P_PID, running.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.1)
        if time.monotonic() > next_kill:
            nodes = sorted(cluster.worker_nodes, key=lambda node: node.unique_id)
            cluster.remove_node(rng.choice(nodes), allow_graceful=False)
            cluster.add_node(wait=False, **NODE)
            n_kills, next_kill = n_kills + 1, time.monotonic() + every_s
    return n_kills


def report(runs: Path, alone: Used, spread: Used, n_kills: int, n_paid: tuple[int, int]) -> int:
    calls = [json.loads(line) for line in (runs / "ray" / "calls.jsonl").open(encoding="utf-8")]
    answers = Counter(call["call_id"] for call in calls if call["outcome"] != "error")
    n_lost = sum(call["error_class"] == "connection" for call in calls)
    n_twice = sum(n - 1 for n in answers.values())
    files = [(runs / name / "verdicts.jsonl").read_bytes() for name in ("alone", "ray")]
    is_same = files[0] == files[1]
    print(f"{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores")
    print("| | one process | four Ray nodes |\n| --- | --- | --- |")
    rows = [
        ("nodes killed", 0, n_kills),
        ("calls answered", len(answers), len(answers)),
        ("attempts lost with a node", 0, n_lost),
        ("answers paid for", *n_paid),
        ("recorded answers paid for twice", 0, n_twice),
        ("s from start to end", f"{alone.wall_s:.0f}", f"{spread.wall_s:.0f}"),
        ("CPU ms a call, the process of the run", *(f"{1e3 * used.cpu_s / len(answers):.1f}" for used in (alone, spread))),
        ("MB of the process of the run", f"{alone.peak_mb:.0f}", f"{spread.peak_mb:.0f}"),
        ("verdicts", "", "the same bytes" if is_same else "DIFFERENT"),
    ]  # fmt: skip
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    return 0 if is_same and not n_twice and n_paid[1] <= len(answers) + n_lost else 1


if __name__ == "__main__":
    raise SystemExit(main())
