"""Calls made by worker processes: one folder, one budget, and nothing lost when any of them dies."""

from __future__ import annotations

import os
import pickle
import random
import signal
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest

from clash.config import Limits, ModelRef
from clash.providers import worker_process, workers
from clash.providers.base import Reply, Request
from clash.providers.retry import attempts
from clash.providers.workers import WorkerPool
from clash.records import Turn
from e2e.worker_runs import CALLS, WORDS, lay, verdicts
from wire import faults

pytestmark = pytest.mark.skipif(os.name == "nt", reason="workers inherit one end of a socket pair")


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def test_workers_change_nothing_in_the_run(lab, alone):
    lay(lab, "openai/gpt-4o-mini")
    run = lab.judged(*WORDS, "--workers", 2)
    assert verdicts(run) == verdicts(alone)
    assert run.manifest["config"].keys() == alone.manifest["config"].keys()
    assert "workers" not in run.manifest["config"]["limits"]
    assert lab.server.count(is_paid=True) == CALLS + 6 == len(run.answered())
    assert set(run.answered()) > set(alone.answered())
    assert lab.server.count(vendor="openai") == 6
    assert lab.here("verify", "runs/run").code == 0


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds children by /proc")
@pytest.mark.parametrize("draw", range(1))
def test_killed_workers_and_brokers_lose_nothing_and_pay_for_nothing_twice(lab, alone, draw):
    """Two workers are killed, then the broker; the resumed run comes to the same verdicts."""
    rng = random.Random(draw)
    lay(lab)
    lab.server.latency_s = 0.05
    flags = ("--concurrency", 6, "--workers", 2)
    process = lab.start("eval", *WORDS, "--run-id", "run", "--yes", *flags)
    for moment in sorted(rng.sample(range(5, 30), 2)):
        lab.wait_for(lambda moment=moment: len(lab.server.calls) > moment, process)
        os.kill(rng.choice(children(process.pid)), signal.SIGKILL)
    lab.wait_for(lambda: len(lab.server.calls) > 36, process)
    orphans = children(process.pid)
    process.kill()
    process.communicate()
    lab.server.latency_s = 0.0
    run = lab.resumed(*flags)
    assert verdicts(run) == verdicts(alone)
    assert len(run.answered()) == len(set(run.answered())) == CALLS
    # At each kill, no more is lost than was in flight.
    assert lab.server.count(is_paid=True) <= CALLS + 3 * 6
    assert run.manifest["status"] == "complete"
    assert lab.here("verify", "runs/run").code == 0
    lab.wait_for(lambda: not any(map(is_worker, orphans)), process)
    assert not any(map(is_worker, orphans))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds children by /proc")
def test_a_signal_to_every_process_loses_no_answer_in_flight(lab):
    """A cluster's time limit and a closed terminal tell workers too, and they go on answering."""
    lay(lab)
    lab.server.latency_s = 0.5
    flags = ("--concurrency", 6, "--workers", 2)
    process = lab.start("eval", *WORDS, "--run-id", "run", "--yes", *flags, preexec_fn=os.setpgrp)
    lab.wait_for(lambda: len(lab.server.calls) > 8, process)
    for pid in children(process.pid):
        os.kill(pid, signal.SIGTERM)
    os.killpg(process.pid, signal.SIGHUP)
    process.communicate()
    assert process.returncode == 130
    run = lab.folder()
    assert len(run.answered()) == len(run.lines("calls")) == lab.server.count(is_paid=True) > 8


def test_no_attempt_goes_to_a_worker_that_ended_while_another_started(monkeypatch):
    pool = WorkerPool({}, Limits(workers=2), lambda _: None)
    handles = []

    async def start():
        if len(handles) == 1:
            handles[0].is_gone = True
        handles.append(SimpleNamespace(pending={}, is_gone=False))
        return handles[-1]

    monkeypatch.setattr(pool, "_start_worker", start)
    assert anyio.run(pool.worker) is handles[1]
    assert len(handles) == 3


@pytest.mark.parametrize("late", ["never", "before the next attempt", "during the next attempt"])
def test_a_worker_that_hangs_hands_its_attempts_over(server, monkeypatch, late):
    """What it was asked is asked again; what it answers after all is taken once, and not paid again."""
    monkeypatch.setattr(workers, "BEAT_S", 0.02)
    monkeypatch.setattr(workers, "_SILENT_BEATS", 10**9)
    server.clear()
    server.latency_s = 0.0

    async def until(condition):
        while not condition():  # noqa: ASYNC110 - of another process
            await anyio.sleep(0.01)

    async def main():
        pool = WorkerPool(server.environ(), Limits(workers=2), lambda _: None)
        may_repeat = anyio.Event()
        replies = []

        async def call(number):
            request = Request((Turn(role="user", content=f"{number}"),), 10, item_id=f"{number}")
            async for attempt in attempts(sleep=lambda _: may_repeat.wait()):
                with attempt:
                    replies.append(await provider.complete(request))

        async with anyio.create_task_group() as tasks:
            pool.start(tasks)
            provider = pool.open(ModelRef(model="compatible/ada"))
            for number in range(2):
                tasks.start_soon(call, number)
            await until(lambda: len(replies) == 2)
            server.latency_s = 0.5
            for number in range(2, 6):
                tasks.start_soon(call, number)
            await until(lambda: server.count() == 6)
            hung = pool._workers[0]
            hung.process.send_signal(signal.SIGSTOP)
            monkeypatch.setattr(workers, "_SILENT_BEATS", 50)
            await until(lambda: hung.is_gone)
            monkeypatch.setattr(workers, "_SILENT_BEATS", 10**9)
            server.latency_s = 0.0
            if late == "before the next attempt":
                hung.process.send_signal(signal.SIGCONT)
                await until(lambda: not hung.overdue)
            if late == "during the next attempt":
                server.latency_s = 10_000.0
                may_repeat.set()
                await until(lambda: server.count() == 8)
                hung.process.send_signal(signal.SIGCONT)
            may_repeat.set()
            await until(lambda: len(replies) == 6)
            await pool.aclose()
            assert hung.process.poll() is not None
            tasks.cancel_scope.cancel()
        return replies

    assert len(anyio.run(main)) == 6
    assert server.count() == (6 if late == "before the next attempt" else 8)


def test_an_answer_that_no_worker_can_send_on_is_a_failed_attempt(monkeypatch):
    """A server nests its answer as deeply as a parser reads, and pickling reads less deeply."""
    nested_value: list[object] = []
    for _ in range(100_000):
        nested_value = [nested_value]

    async def complete(_):
        return Reply(text="x", outcome="ok", request={}, response=nested_value)

    provider = SimpleNamespace(complete=complete)
    monkeypatch.setattr("clash.providers.open_provider", lambda *_, **__: provider)
    maker = worker_process.AttemptMaker(worker_process.Settings({}, Limits()))
    attempt = worker_process.Attempt(7, 0, ModelRef(model="compatible/x"), None)
    message = anyio.run(maker.answer, attempt)
    outcome = pickle.loads(message[worker_process.HEAD.size :])
    assert outcome.number == 7
    assert outcome.failure[1]["error_class"] == "bad_payload"


def is_worker(pid: int) -> bool:
    try:
        return b"worker_process" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return False


def test_workers_share_one_budget(lab):
    """Whatever the workers do at the same time, the cap holds for them together."""
    lay(lab)
    once = lab.judged(*WORDS, "--allow-unknown-price", run="once")
    dearest = max(line["usd"] for line in once.lines("reservations"))
    cap = round(dearest + once.manifest["cost_usd"] / 3, 6)
    words = (*WORDS, "--allow-unknown-price", "--max-cost", cap, "--workers", 1)
    run = lab.judged(*words, code=3)
    assert 0 < run.manifest["cost_usd"] <= cap


def test_what_a_server_refuses_and_limits_reaches_the_broker(lab, alone):
    """A 429 is retried, and a model that stops for good stops for every worker."""
    lay(lab)
    lab.server.misbehave(faults.rate_limit("0.01"), model="a", times=2)
    lab.server.misbehave(faults.unauthorized(), model="c", times=1)
    run = lab.judged(*WORDS, "--workers", 2, "--concurrency", 1, code=4)
    errors = [call["error_class"] for call in run.lines("calls") if call["outcome"] == "error"]
    assert sorted(errors) == ["auth", "rate_limit", "rate_limit"]
    assert lab.server.count(model="c") == 1
    assert list(run.manifest["stopped"]) == ["compatible/c"]
    assert verdicts(lab.resumed("--workers", 2)) == verdicts(alone)


def test_workers_that_cannot_work_end_the_run_with_a_fix(lab, monkeypatch, tmp_path):
    lay(lab)
    result = lab(
        "eval", *WORDS, "--workers", 2, "--yes", CLASH_TEST="", PYTHONPATH=broken(tmp_path)
    )
    assert result.code == 2
    assert "worker processes ended before their first answer" in result.err
    assert "fix: leave out --workers" in result.err


def broken(folder: Path) -> str:
    """A path on which the program of the workers ends at once."""
    (folder / "sitecustomize.py").write_text(
        "import os, sys\nif any('worker_process' in word for word in sys.orig_argv): os._exit(1)\n"
    )
    return f"{folder}:{os.environ['PYTHONPATH']}" if "PYTHONPATH" in os.environ else str(folder)
