"""Killed at any moment, stopped by hand once or twice: resumed to the same verdicts, nothing twice."""

from __future__ import annotations

import math
import os
import random
import re
import shutil
import signal
import time
from typing import TYPE_CHECKING

import pytest

from clash import assets
from clash.cli import app as cli
from clash.store.folder import RunFolder
from e2e.lab import PRICE, Folder, Lab
from wire import faults

if TYPE_CHECKING:
    from subprocess import Popen

    from wire import WireServer

WORDS = ("prompts.yaml", "--models", "compatible/ada,compatible/bob", "--panel", "panel.yaml")
CALLS = 2 * 5 + 5 + (3 + 2) * 5
"""Responses, criteria, and judgments of three judges and two observers on five items."""


needs_terminal = pytest.mark.skipif(os.name == "nt", reason="signals and terminals of POSIX")


def lay(lab: Lab) -> None:
    lab.prompts(5, candidates=())
    lab.panel(
        *({"model": f"compatible/{name}", "price": PRICE} for name in "abc"),
        criteria="compatible/writer",
    )


@pytest.fixture(scope="module")
def reference_run(tmp_path_factory: pytest.TempPathFactory, server: WireServer) -> Folder:
    lab = Lab(tmp_path_factory.mktemp("undisturbed"), server, server.environ("compatible"))
    lay(lab)
    run = lab.judged(*WORDS)
    assert len(run.lines("calls")) == CALLS
    return run


def verdicts(run: Folder) -> bytes:
    return (run.path / "verdicts.jsonl").read_bytes()


# -- kill -9 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("draw", range(4))
def test_killed_at_any_moment_a_run_comes_to_the_same_verdicts(lab, reference_run, draw):
    rng = random.Random(draw)
    lay(lab)
    lab.server.latency_s = 0.05
    moments = sorted(rng.sample(range(CALLS), 2))
    words = ("eval", *WORDS, "--run-id", "run", "--yes", "--concurrency", 6)
    for moment in moments:
        process = lab.start(*words)
        calls = lab.server.calls
        lab.wait_for(lambda calls=calls, moment=moment: len(calls) > moment, process)
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        words = ("resume", "runs/run", "--concurrency", 6)
    lab.server.latency_s = 0.0
    run = lab.resumed()
    assert verdicts(run) == verdicts(reference_run)
    assert len(run.answered()) == len(set(run.answered())) == CALLS
    # What was in flight at a kill is lost, and only that.
    assert CALLS <= lab.server.count(is_paid=True) <= CALLS + 2 * 6
    assert run.manifest["status"] == "complete"
    assert lab.here("verify", "runs/run").code == 0


def test_killed_while_the_folder_is_made_a_run_is_whole_or_refused(lab):
    """Never a smaller run in silence."""
    lab.prompts(400)
    process = lab.start("eval", "prompts.yaml", "--run-id", "run")
    items = lab.path / "runs" / "run" / "items.jsonl"
    lab.wait_for(lambda: items.exists() and items.stat().st_size > 0, process)
    process.kill()
    process.communicate()
    result = lab("resume", "runs/run", "--quiet")
    if result.code == 0:
        assert len(lab.folder().lines("verdicts")) == 400
    else:
        assert result.code == 2
        assert "before it had written down what it is to judge" in result.err


# -- torn files -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory, server: WireServer) -> Folder:
    """A complete run of the baseline judges, which needs no server."""
    lab = Lab(tmp_path_factory.mktemp("offline"), server)
    return lab.judged(assets.path("datasets", "quickstart.yaml"), "--limit", 4)


def shorten(run: Folder, name: str, by: int) -> None:
    file = run.path / f"{name}.jsonl"
    file.write_bytes(file.read_bytes()[:-by])


@pytest.mark.parametrize("name", ["blinding", "criteria", "calls", "judgments"])
@pytest.mark.parametrize("by", [1, 2, 40, 10_000])
def test_a_run_whose_file_was_torn_is_resumed_to_the_same_verdicts(offline, tmp_path, name, by):
    run = Folder(shutil.copytree(offline.path, tmp_path / "run"))
    shorten(run, name, by)
    assert cli.run(["resume", str(run.path), "--quiet"]) == 0
    assert verdicts(run) == verdicts(offline)
    assert len(run.lines(name)) >= len(offline.lines(name))
    assert cli.run(["verify", str(run.path)]) == 0


def test_all_files_torn_at_once_are_mended_too(offline, tmp_path):
    run = Folder(shutil.copytree(offline.path, tmp_path / "run"))
    for name in ("blinding", "criteria", "calls", "judgments", "verdicts"):
        shorten(run, name, 30)
    assert cli.run(["resume", str(run.path), "--quiet"]) == 0
    assert verdicts(run) == verdicts(offline)
    assert cli.run(["verify", str(run.path)]) == 0


@pytest.mark.parametrize("name", ["items", "responses"])
def test_what_was_given_and_is_lost_cannot_be_made_again(offline, tmp_path, capsys, name):
    run = Folder(shutil.copytree(offline.path, tmp_path / "run"))
    shorten(run, name, 30)
    assert cli.run(["resume", str(run.path)]) == 2
    assert f"restore {name}.jsonl from a copy" in capsys.readouterr().err


# -- one writer -------------------------------------------------------------------------------------


def test_a_second_writer_is_turned_away_until_the_first_has_died(lab):
    lab.prompts(1)
    lab.server.latency_s = 60
    lab.panel({"model": "compatible/a", "price": PRICE})
    process = lab.start("eval", "prompts.yaml", "--panel", "panel.yaml", "--run-id", "run")
    lab.wait_for(lambda: lab.server.in_work > 0, process)
    second = lab.here("resume", "runs/run")
    assert second.code == 2
    assert "another process is writing to this run" in second.err
    assert lab.server.count() == 1
    process.kill()
    process.communicate()
    lab.server.latency_s = 0
    assert lab.resumed().manifest["status"] == "complete"
    assert not (lab.path / "runs" / "run" / ".lock").exists()


# -- Ctrl-C -----------------------------------------------------------------------------------------


def test_ctrl_c_once_finishes_what_is_in_flight_and_begins_nothing_more(lab, reference_run):
    lay(lab)
    server = lab.server
    server.latency_s = 0.1
    process = lab.start("eval", *WORDS, "--run-id", "run", "--concurrency", 4)
    lab.wait_for(lambda: len(server.calls) >= CALLS // 2, process)
    server.latency_s = 2.0  # time enough for the signal to be heard
    n_calls = len(server.calls)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert re.search(r"finishing \d calls? in flight; press Ctrl-C again to stop now", err)
    assert out.startswith("Stopped after ")
    assert "Next    clash resume latest" in out
    run = lab.folder()
    # The signal is a moment on its way: where a call ends just then, another may go out.
    assert len(server.calls) <= n_calls + 4
    assert len(run.answered()) == server.count(is_paid=True) == len(server.calls) < CALLS
    assert run.manifest["status"] == "partial"
    assert lab.here("verify", "runs/run").code == 0

    server.latency_s = 0.0
    run = lab.resumed()
    assert verdicts(run) == verdicts(reference_run)
    assert server.count(is_paid=True) == len(run.answered()) == CALLS
    assert server.paid_twice() == []


def stop_at_once(process: Popen[str]) -> None:
    """Press Ctrl-C, and again once the process has answered."""
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while "Ctrl-C again" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=240)
    assert process.returncode == 130


def test_a_run_that_is_stopped_before_it_has_criteria_is_verified(lab):
    lay(lab)
    server = lab.server
    server.misbehave(faults.hang(60), model="writer", times=math.inf)
    process = lab.start("eval", *WORDS, "--run-id", "run", "--concurrency", 4)
    lab.wait_for(lambda: server.count(model="writer") == 4, process)
    stop_at_once(process)
    run = lab.folder()
    assert run.lines("responses")
    assert run.lines("criteria") == []
    result = lab.here("verify", "run")
    assert result.code == 0, result.out


def test_a_stopped_rerun_goes_on_to_the_answer_of_a_rerun(lab):
    lay(lab)
    lab.judged(*WORDS)
    server = lab.server
    n_calls = len(server.calls)
    server.latency_s = 0.1
    process = lab.start("rerun", "run", "--yes", "--concurrency", 4)
    lab.wait_for(lambda: len(server.calls) >= n_calls * 3 // 2, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "Not judged yet" in out
    assert "Next    clash resume latest" in out

    server.latency_s = 0.0
    result = lab.here("resume", "run-r1")
    assert result.code == 0, result.err
    assert result.out.startswith("The panel repeats itself on ")
    assert "Not judged yet" not in result.out
    assert "clash resume" not in result.out
    # What stands beside the run is of all items too.
    assert lab.here("verify", "run-r1").code == 0


def test_a_rerun_that_is_stopped_before_a_verdict_shows_how_it_ended(lab):
    lay(lab)
    lab.judged(*WORDS)
    lab.server.misbehave(faults.unauthorized(), times=math.inf)
    result = lab.here("rerun", "run", "--yes", "--json")
    assert result.code
    assert result.json["coverage"]["decided"] == 0


def test_ctrl_c_does_not_wait_for_a_retry(lab):
    lab.prompts(1)
    lab.server.misbehave(faults.rate_limit("100"), model="a")
    lab.panel({"model": "compatible/a", "price": PRICE})
    words = ("prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")
    process = lab.start("eval", *words, "--run-id", "run")
    lab.wait_for(lambda: bool(lab.server.calls and lab.server.calls[0].status), process)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert [a["error_class"] for a in lab.folder().attempts("a")] == ["rate_limit"]
    assert lab.folder().lines("judgments") == []
    run = lab.resumed()
    assert [a["attempt"] for a in run.attempts("a")] == [1, 2]


def test_ctrl_c_twice_stops_at_once_and_the_run_can_be_resumed(lab, reference_run):
    lay(lab)
    lab.server.latency_s = 60
    process = lab.start("eval", *WORDS, "--run-id", "run", "--concurrency", 4)
    lab.wait_for(lambda: lab.server.in_work == 4, process)
    stop_at_once(process)
    assert lab.folder().lines("calls") == []
    lab.server.latency_s = 0.0
    assert verdicts(lab.resumed()) == verdicts(reference_run)


# -- a termination, a closed terminal ---------------------------------------------------------------


def _terminal(slave: int) -> None:
    import fcntl
    import termios

    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


@needs_terminal
def test_a_terminal_that_is_closed_ends_a_run_as_ctrl_c_does(lab, reference_run):
    lay(lab)
    server = lab.server
    server.latency_s = 0.5
    master, slave = os.openpty()
    words = ("eval", *WORDS, "--run-id", "run", "--concurrency", 4, "--yes", "-q")
    process = lab.start(*words, on=slave, preexec_fn=lambda: _terminal(slave))
    os.close(slave)
    lab.wait_for(lambda: len(server.calls) >= CALLS // 2, process)
    os.close(master)
    assert process.wait(timeout=240) == 130
    run = lab.folder()
    assert len(run.answered()) == server.count(is_paid=True) < CALLS
    assert run.manifest["status"] == "partial"
    server.latency_s = 0.0
    assert verdicts(lab.resumed()) == verdicts(reference_run)
    assert server.paid_twice() == []


@needs_terminal
def test_nohup_outlives_its_terminal(lab, reference_run):
    lay(lab)
    lab.server.latency_s = 0.1

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    process = lab.start("eval", *WORDS, "--run-id", "run", preexec_fn=ignore)
    lab.wait_for(lambda: len(lab.server.calls) >= CALLS // 2, process)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    assert verdicts(lab.folder()) == verdicts(reference_run)


_STUCK = """
import sys, time
from clash.cli import signals
from clash.cli.app import run
from clash.collect import judge

def never(*_, **__):
    print("stuck", flush=True)
    while True:
        pass

judge.parse = never
signals.GRACE_S = float(sys.argv[1])
sys.exit(run(sys.argv[2:]))
"""


@needs_terminal
@pytest.mark.parametrize(("grace", "signals"), [(0.2, 1), (600.0, 2)], ids=["once", "twice"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_hears_no_signal_is_ended_all_the_same(lab, grace, signals, number):
    """As where one answer takes long to parse: the event loop hears nothing then."""
    lay(lab)
    words = ("eval", *WORDS, "--run-id", "run", "--yes", "-q")
    process = lab.start(*words, program=("-c", _STUCK, grace))
    assert process.stdout is not None
    assert process.stdout.readline() == "stuck\n"
    for _ in range(signals):
        process.send_signal(number)
        time.sleep(0.7)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "`clash resume` goes on" in err
    before = lab.folder().answered()
    run = lab.resumed()
    assert run.manifest["status"] == "complete"
    # What was in flight is asked again, as after any kill; what was answered is not.
    assert before == run.answered()[: len(before)]
    assert len(set(run.answered())) == len(run.answered())


def test_a_lock_on_a_removed_file_is_no_lock(offline, tmp_path):
    """A writer that waited for the file of the last one must not write beside the next one."""
    path = shutil.copytree(offline.path, tmp_path / "run")
    with RunFolder(path).write():
        assert (path / ".lock").exists()
        with pytest.raises(Exception, match="another process"):
            RunFolder(path).write()
    assert not (path / ".lock").exists()
    RunFolder(path).write().close()
