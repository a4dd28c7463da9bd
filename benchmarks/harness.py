"""The loopback server in a process of its own, and what a command costs that talks to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT = Path(__file__).parents[1]
CLASH = (sys.executable, "-m", "clash")
LONGEST_S = 180
"""No command runs for longer."""
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"}


@dataclass(frozen=True)
class Server:
    """A loopback server that is up.

    Attributes:
        environ: keys and addresses of every vendor.
    """

    port: int
    environ: Mapping[str, str]

    def journal(self) -> dict[str, Any]:
        """What it has seen so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/journal", timeout=60) as answer:
            return json.loads(answer.read())


@contextlib.contextmanager
def server(latency_s: float, *options: str) -> Iterator[Server]:
    """Serve with a fixed latency; ``options`` are those of ``python -m wire``."""
    command = [sys.executable, "-m", "wire", "--latency", str(latency_s), *options]
    environ = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environ, text=True)
    try:
        where = json.loads(process.stdout.readline())
        yield Server(where["port"], where["environ"])
    finally:
        process.terminate()
        process.wait()


@dataclass(frozen=True)
class ResourceUse:
    """What a command used.

    Attributes:
        cpu_s: user and system, children included.
        peak_mb: of its resident memory, as the kernel tells.
        samples: moments of ``time.time``, each with the resident memory in MB and the CPU seconds
            so far, children not included, where the system tells.
    """

    code: int
    out: str
    cpu_s: float
    wall_s: float
    peak_mb: float
    samples: Sequence[tuple[float, float, float]] = ()

    @property
    def own_cpu_s(self) -> float:
        """User and system, children not included, as last seen before the end."""
        return self.own_cpu_until(float("inf"))

    def own_cpu_until(self, moment: float) -> float:
        """User and system, children not included, before ``moment``."""
        return max((cpu_s for at, _, cpu_s in self.samples if at <= moment), default=0.0)

    def peak_until(self, moment: float) -> float:
        """The most resident memory seen before ``moment``."""
        return max((mb for at, mb, _ in self.samples if at <= moment), default=0.0)


@dataclass
class Running:
    """A command that is on."""

    process: subprocess.Popen[str]
    began: float = field(default_factory=time.perf_counter)
    samples: list[tuple[float, float, float]] = field(default_factory=list)
    _out: list[str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        for work in (self._read, self._sample):
            self._threads.append(threading.Thread(target=work, daemon=True))
            self._threads[-1].start()

    def _read(self) -> None:
        self._out.append(self.process.stdout.read())

    def _sample(self) -> None:
        statm = Path(f"/proc/{self.process.pid}/statm")
        stat = Path(f"/proc/{self.process.pid}/stat")
        # A file that is gone, or empty, is a process that has ended.
        with contextlib.suppress(OSError, IndexError):
            while True:
                resident = int(statm.read_text().split()[1]) * _PAGE / 2**20
                ticks = stat.read_text().rpartition(")")[2].split()[11:13]
                self.samples.append((time.time(), resident, sum(map(int, ticks)) / _TICKS))
                time.sleep(0.02)

    def kill(self) -> None:
        """End it at once."""
        self.process.send_signal(signal.SIGKILL)

    def wait(self) -> ResourceUse:
        """What it used, once it has ended."""
        watchdog = threading.Timer(LONGEST_S, self.kill)
        watchdog.start()
        _, status, usage = os.wait4(self.process.pid, 0)
        wall = time.perf_counter() - self.began
        watchdog.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        for thread in self._threads:
            thread.join(5)
        return ResourceUse(
            self.process.returncode,
            "".join(self._out),
            usage.ru_utime + usage.ru_stime,
            wall,
            usage.ru_maxrss / 1024,
            self.samples,
        )


def start(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], *, stderr: int | None = None
) -> Running:
    """Start a command in ``folder``; what it prints is kept, stderr only where not sent away."""
    return Running(
        subprocess.Popen(
            list(command),
            cwd=folder,
            env={**os.environ, **_ONE_THREAD, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if stderr is None else stderr,
            text=True,
        )
    )


def run(
    command: Sequence[str], folder: Path, environ: Mapping[str, str], *, stderr: int | None = None
) -> ResourceUse:
    """Run a command to its end.

    Raises:
        SystemExit: it failed; shows what it printed.
    """
    usage = start(command, folder, environ, stderr=stderr).wait()
    if usage.code:
        raise SystemExit(f"{' '.join(command)} ended with {usage.code}\n{usage.out}")
    return usage


@contextlib.contextmanager
def terminal() -> Iterator[int]:
    """The end of a pseudo-terminal that programs write to; what is written is thrown away."""
    own_end, other_end = os.openpty()

    def drain() -> None:
        with contextlib.suppress(OSError):
            while os.read(own_end, 1 << 16):
                pass

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield other_end
    finally:
        os.close(other_end)
        reader.join(5)
        os.close(own_end)
