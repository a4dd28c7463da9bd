"""Calls made by actors on a Ray cluster of four nodes, which are killed while they work.

``CLASH_TEST_RAY=1 pytest -n0 tests/e2e/test_ray.py``: not part of the suite, for a cluster takes half a
minute to start and 2 GB of memory.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clash.extras import is_installed
from e2e.lab import PRICE, Lab
from e2e.worker_runs import CALLS, WORDS, lay, verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray.cluster_utils import Cluster

STORE_BYTES = 80_000_000
NODE = {"num_cpus": 1, "object_store_memory": STORE_BYTES}

pytestmark = [
    pytest.mark.skipif(not is_installed("ray"), reason="the extra ray is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="Ray clusters need Linux or macOS"),
    pytest.mark.skipif(
        Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free < 8 * STORE_BYTES,
        reason="/dev/shm is too small for four object stores",
    ),
    pytest.mark.skipif("CLASH_TEST_RAY" not in os.environ, reason="runs with CLASH_TEST_RAY=1"),
]


@pytest.fixture(scope="module")
def head(server) -> Iterator[Cluster]:
    """A cluster whose head does no work."""
    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", **server.environ()}
    os.environ.pop("RAY_ADDRESS", None)
    from ray.cluster_utils import Cluster

    running = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    try:
        yield running
    finally:
        running.shutdown()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def cluster(head) -> Cluster:
    """The head and four nodes."""
    while len(head.worker_nodes) < 4:
        head.add_node(wait=len(head.worker_nodes) == 3, **NODE)
    return head


@pytest.fixture
def lab(tmp_path, server) -> Lab:
    server.clear()
    server.latency_s = 0.0
    lab = Lab(tmp_path, server, {**server.environ(), "PYTHONWARNINGS": ""})
    lay(lab)
    return lab


def test_killed_nodes_lose_nothing_and_pay_for_nothing_twice(lab, alone, cluster):
    rng = random.Random(1)
    lab.server.latency_s = 0.1
    flags = ("--concurrency", 6, "--ray", cluster.address)
    process = lab.start("eval", *WORDS, "--run-id", "run", "--yes", "--json", *flags)
    for moment in (5, 15):
        lab.wait_for(lambda moment=moment: len(lab.server.calls) > moment, process)
        node = rng.choice(sorted(cluster.worker_nodes, key=lambda node: node.unique_id))
        cluster.remove_node(node, allow_graceful=False)
    out, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    assert json.loads(out)  # and nothing of what Ray says of its nodes
    run = lab.folder()
    assert len(cluster.worker_nodes) == 2
    assert verdicts(run) == verdicts(alone)
    assert len(run.answered()) == len(set(run.answered())) == CALLS
    # At each kill, no more is lost than was in flight.
    assert lab.server.count(is_paid=True) <= CALLS + 2 * 6
    assert lab.here("verify", "runs/run").code == 0


def test_the_budget_holds_for_all_nodes_and_a_killed_broker_is_resumed(lab, alone, cluster):
    words = (*WORDS, "--allow-unknown-price", "--concurrency", 6, "--ray", cluster.address)
    dearest = max(line["usd"] for line in alone.lines("reservations"))
    cap = round(dearest + alone.manifest["cost_usd"] / 3, 6)
    result = lab("eval", *words, "--run-id", "run", "--yes", "--max-cost", cap)
    assert result.code == 3, result.err
    assert 0 < lab.folder().manifest["cost_usd"] <= cap
    n_paid = lab.server.count(is_paid=True)
    lab.server.latency_s = 0.3
    process = lab.start("resume", "runs/run", "--max-cost", 1, "--ray", cluster.address)
    lab.wait_for(lambda: len(lab.server.calls) > n_paid + 6, process)
    process.kill()
    process.communicate()
    lab.server.latency_s = 0.0
    run = lab.resume("--max-cost", 1, "--ray", cluster.address)
    assert verdicts(run) == verdicts(alone)
    assert len(run.answered()) == len(set(run.answered())) == CALLS
    assert lab.server.count(is_paid=True) <= CALLS + 6


def test_a_key_goes_to_the_cluster_only_where_it_is_told_to(lab, cluster):
    """A node that lacks a key is named before any call; a key that is sent is in no log."""
    key = lab.environ["COMPATIBLE_API_KEY"]
    lab.panel({"model": "compatible/a", "api_key_env": "OWN_KEY", "price": PRICE})
    lab.prompts(2)
    words = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none", "--yes")
    result = lab(*words, "--ray", cluster.address, OWN_KEY=key)
    assert result.code == 2
    assert "a node of the cluster lacks OWN_KEY, or has another value of it" in result.err
    assert "--ray-send-keys" in result.err
    assert lab.server.count() == 0
    result = lab(*words, "--ray", cluster.address, "--ray-send-keys", OWN_KEY=key)
    assert result.code == 0, result.err
    assert {call.headers["authorization"] for call in lab.server.calls} == {f"Bearer {key}"}
    logs = [*Path("/tmp/ray/session_latest/logs/").rglob("*.*"), *lab.path.rglob("*.json*")]
    assert not [file for file in logs if file.is_file() and key.encode() in file.read_bytes()]


def test_ctrl_c_finishes_what_is_in_flight(lab, alone, cluster):
    lab.server.latency_s = 0.5
    flags = ("--concurrency", 6, "--ray", cluster.address)
    process = lab.start("eval", *WORDS, "--run-id", "run", "--yes", *flags, preexec_fn=os.setpgrp)
    lab.wait_for(lambda: len(lab.server.calls) > 8, process)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=240)
    assert process.returncode == 130
    run = lab.folder()
    assert len(run.answered()) == len(run.lines("calls")) == lab.server.count(is_paid=True)
    lab.server.latency_s = 0.0
    assert verdicts(lab.resumed("--workers", 1)) == verdicts(alone)


@pytest.mark.parametrize(
    "words",
    [
        ("calibrate", "votes.jsonl", "--splits", 4, "--json"),
        ("simulate", "hypotheses", "--replications", 3, "--json"),
        ("power", "--for", "paired", "--simulate", "--replications", 50, "--json"),
    ],
    ids=lambda words: words[0],
)
def test_computations_give_the_same_numbers_on_a_cluster(lab, cluster, words):
    write_votes(lab.path / "votes.jsonl")
    result = lab.here(*words)
    ray_result = lab(*words, "--ray", cluster.address)
    assert result.code == ray_result.code == 0, ray_result.err
    assert ray_result.out == result.out


def write_votes(path: Path) -> None:
    rng = random.Random(0)
    lines = []
    for item in range(60):
        label = rng.randint(0, 1)
        for judge in range(3):
            vote = label if rng.random() < 0.8 else 1 - label
            lines.append({"item": f"q{item}", "judge": f"j{judge}", "vote": vote, "label": label})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere", "is no address of a Ray cluster"),
        ("ray://127.0.0.1:10001", "is no address of a Ray cluster"),
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
    ],
)
def test_an_address_without_a_cluster_is_an_error_in_two_lines(lab, address, message):
    result = lab("eval", *WORDS, "--yes", "--ray", address)
    assert result.code == 2
    lines = [line for line in result.err.splitlines() if "--ray" in line or "fix" in line]
    assert message in lines[0]
    assert "fix:" in lines[1]
    assert not (lab.path / "runs").exists()


def test_no_file_names_a_cluster(lab):
    lab.write("clash.yaml", {"limits": {"ray": "local"}})
    result = lab.here("eval", *WORDS, "--yes")
    assert result.code == 2
    assert "clash.yaml:2: limits.ray: a Ray cluster is named on the command line only" in result.err
