from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from e2e import worker_runs
from e2e.lab import Lab
from wire import WireServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.lab import Folder


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with WireServer() as running:
        yield running


@pytest.fixture
def lab(tmp_path: Path, server: WireServer) -> Lab:
    server.clear()
    server.latency_s = 0.0
    return Lab(tmp_path, server, server.environ())


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> None:
    """A shell that starts tests in the background leaves SIGINT ignored, for children too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def alone(tmp_path_factory, server) -> Folder:
    """The run of :mod:`e2e.worker_runs` by one process."""
    server.clear()
    lab = Lab(tmp_path_factory.mktemp("alone"), server, server.environ())
    worker_runs.lay(lab)
    return lab.judged(*worker_runs.WORDS)
