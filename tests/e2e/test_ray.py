"""Calls made by actors on a Ray cluster of four nodes, which are killed while they work.

``pytest -n0 -m ray tests/e2e/test_ray.py``: not part of the suite, for a cluster takes half a minute
to start and 2 GB of memory.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clash.extras import is_installed
from e2e.lab import PRICE, Folder, Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ray.cluster_utils import Cluster

WORDS = ("prompts.yaml", "--models", "compatible/ada,compatible/bob", "--panel", "panel.yaml")
CALLS = 2 * 6 + 6 + (3 + 2) * 6
"""Responses, criteria, and judgments of three judges and two observers on six items."""
STORE_BYTES = 80_000_000
NODE = {"num_cpus": 1, "object_store_memory": STORE_BYTES}

pytestmark = [
    pytest.mark.skipif(not is_installed("ray"), reason="the extra ray is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="Ray clusters need Linux or macOS"),
    pytest.mark.skipif(
        Path("/dev/shm").is_dir() and shutil.disk_usage("/dev/shm").free < 8 * STORE_BYTES,
        reason="/dev/shm is too small for four object stores",
    ),
    pytest.mark.ray,
]


@pytest.fixture(scope="module")
def cluster(server) -> Iterator[Cluster]:
    """A head that does no work, and four nodes."""
    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", **server.environ()}
    os.environ.pop("RAY_ADDRESS", None)
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "num_cpus": 0})
    try:
        for _ in range(4):
            cluster.add_node(**NODE)
        yield cluster
    finally:
        cluster.shutdown()
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture
def lab(tmp_path, server) -> Lab:
    server.clear()
    server.latency_s = 0.0
    lab = Lab(tmp_path, server, {**server.environ(), "PYTHONWARNINGS": ""})
    lay(lab)
    return lab


def lay(lab: Lab) -> None:
    lab.prompts(6, candidates=())
    voting = [{"model": f"compatible/{name}", "price": PRICE} for name in "abc"]
    lab.panel(*voting, criteria="compatible/writer")


@pytest.fixture(scope="module")
def alone(tmp_path_factory, server) -> Folder:
    """The run of one process."""
    server.clear()
    lab = Lab(tmp_path_factory.mktemp("alone"), server, server.environ())
    lay(lab)
    return lab.judged(*WORDS)


def verdicts(run: Folder) -> bytes:
    return (run.path / "verdicts.jsonl").read_bytes()


def test_killed_nodes_lose_nothing_and_pay_for_nothing_twice(lab, alone, cluster):
    rng = random.Random(1)
    lab.server.latency_s = 0.1
    flags = ("--concurrency", 6, "--ray", cluster.address)
    process = lab.start("eval", *WORDS, "--run-id", "run", "--yes", *flags)
    for moment in (5, 15):
        lab.wait_for(lambda moment=moment: len(lab.server.calls) > moment, process)
        node = rng.choice(sorted(cluster.worker_nodes, key=lambda node: node.unique_id))
        cluster.remove_node(node, allow_graceful=False)
    _, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    run = lab.folder()
    assert verdicts(run) == verdicts(alone)
    assert len(run.answered()) == len(set(run.answered())) == CALLS
    # At each kill, no more is lost than was in flight.
    assert lab.server.count(paid=True) <= CALLS + 2 * 6
    assert lab.here("verify", "runs/run").code == 0
