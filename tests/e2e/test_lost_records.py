"""What one file of a run lost is written again from the others, or the message says what to do."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from clash.store import layout
from e2e.lab import PRICE, Folder, Lab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from wire import WireServer

WORDS = ("prompts.yaml", "--models", "compatible/ada,compatible/bob", "--panel", "panel.yaml")
ITEMS = 3
CALLS = 2 * ITEMS + ITEMS + (2 + 2) * ITEMS
"""Responses, criteria, and judgments of two judges and two observers."""

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "last line lost": lambda data: b"".join(data.splitlines(keepends=True)[:-1]),
    "last line cut": lambda data: data[: -max(2, len(data.splitlines()[-1]) // 2)],
    "first line lost": lambda data: b"".join(data.splitlines(keepends=True)[1:]),
    "emptied": lambda _: b"",
}


def lay(lab: Lab) -> None:
    lab.prompts(ITEMS, candidates=())
    lab.panel(
        *({"model": f"compatible/{name}", "price": PRICE} for name in "ab"),
        criteria="compatible/writer",
    )


@dataclass(frozen=True)
class Runs:
    """A run that has ended, and the same run killed when two thirds of its calls were made."""

    finished: Folder
    killed: Folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, server: WireServer) -> Runs:
    lab = Lab(tmp_path_factory.mktemp("runs"), server, server.environ("compatible"))
    server.clear()
    lay(lab)
    finished_run = lab.judged(*WORDS, run="finished")
    server.clear()
    server.latency_s = 0.1
    words = ("eval", *WORDS, "--run-id", "killed", "--yes", "-q", "--concurrency", 2)
    process = lab.start(*words)
    lab.wait_for(lambda: server.count(is_paid=True) >= CALLS * 2 // 3, process)
    process.kill()
    process.communicate()
    server.latency_s = 0.0
    return Runs(finished_run, lab.folder("killed"))


def damage(run: Folder, name: str, how: str) -> int:
    """Damage a file; returns how many of its lines were lost."""
    path = run.path / name
    data = path.read_bytes()
    if how == "deleted":
        path.unlink()
        return data.count(b"\n")
    path.write_bytes(DAMAGES[how](data))
    return data.count(b"\n") - path.read_bytes().count(b"\n")


def resume_here(lab: Lab, run: Folder) -> Folder:
    lay(lab)
    shutil.copytree(run.path, lab.path / "runs" / "run")
    return lab.folder()


def check_refusal(err: str, path: Path) -> None:
    """The message names the file and says what to do."""
    assert err.count("error: ") == 1
    assert path.name in err
    assert re.search(r"fix: [\w`]", err)


@pytest.mark.parametrize("how", [*DAMAGES, "deleted"])
@pytest.mark.parametrize("name", layout.COLLECTED_FILES)
@pytest.mark.parametrize("state", ["finished", "killed"])
def test_a_damaged_run_is_completed_without_paying_twice_or_says_what_to_do(
    lab, runs, state, name, how
):
    run = resume_here(lab, getattr(runs, state))
    if how != "deleted" and not (run.path / name).read_bytes():
        pytest.skip("the file was empty when the run was killed")
    answered_ids = set(run.answered())
    lines = damage(run, name, how)
    report = lab.here("report", "runs/run")
    assert report.code in (0, 2), report.err
    if report.code == 2:
        check_refusal(report.err, run.path / name)
    assert lab.here("aggregate", "runs/run").code in (0, 2)
    result = lab.here("resume", "runs/run", "-q")
    for_good = state == "finished" or how in ("emptied", "deleted")
    if name == layout.ITEMS or (name == layout.CALLS and for_good):
        assert result.code == 2, (result.out, result.err)
        check_refusal(result.err, run.path / name)
        assert lab.server.count() == 0
        return
    assert result.code == 0, result.err
    assert (run.path / "verdicts.jsonl").read_bytes() == (
        runs.finished.path / "verdicts.jsonl"
    ).read_bytes()
    # A lost line of calls.jsonl is a lost answer; nothing else is asked again.
    n_allowed = CALLS - len(answered_ids) + (lines if name == layout.CALLS else 0)
    assert lab.server.count() <= n_allowed
    if name != layout.CALLS:
        assert len(set(run.answered())) == len(run.answered()) == CALLS
        assert lab.here("verify", "runs/run").code == 0


@pytest.mark.parametrize("how", ["emptied", "deleted", "last line cut"])
@pytest.mark.parametrize("state", ["finished", "killed"])
def test_without_its_manifest_a_run_says_what_is_at_stake(lab, runs, state, how):
    run = resume_here(lab, getattr(runs, state))
    damage(run, layout.MANIFEST, how)
    for words in (("resume", "runs/run"), ("report", "runs/run"), ("eval", *WORDS)):
        more = ("--run-id", "run", "--yes") if words[0] == "eval" else ()
        result = lab.here(*words, *more)
        assert result.code == 2
        check_refusal(result.err, run.path / layout.MANIFEST)
        assert "start the run again" not in result.err  # it was paid for
    assert lab.server.count() == 0


# -- the first milliseconds -------------------------------------------------------------------------


def begun_run(lab: Lab, *names: str) -> Path:
    """A folder as earlier versions left it when they were killed before the first call."""
    lay(lab)
    run = lab.path / "runs" / "run"
    run.mkdir(parents=True)
    for name in names:
        (run / name).touch()
    return run


def test_an_empty_folder_is_not_in_the_way(lab):
    begun_run(lab)
    assert lab.judged(*WORDS).manifest["status"] == "complete"


@pytest.mark.parametrize(
    "names",
    [(layout.CALLS,), layout.COLLECTED_FILES, (*layout.COLLECTED_FILES, layout.MANIFEST)],
    ids=len,
)
def test_a_run_that_never_began_may_be_removed(lab, names):
    run = begun_run(lab, *names)
    for words in (("resume", "run"), ("eval", *WORDS, "--run-id", "run", "--yes")):
        result = lab.here(*words)
        assert result.code == 2
        check_refusal(result.err, run / layout.MANIFEST)
        assert f"remove {run.relative_to(lab.path)} and start the run again" in result.err
    shutil.rmtree(run)
    assert lab.judged(*WORDS).manifest["status"] == "complete"


def test_a_run_with_its_manifest_and_not_all_items_says_that_no_call_was_made(lab, runs):
    run = resume_here(lab, runs.killed)
    for name in layout.COLLECTED_FILES:
        (run.path / name).write_bytes(b"")
    result = lab.here("resume", "run")
    assert result.code == 2
    assert f"holds 0 of {ITEMS} items" in result.err
    assert "no call was made; remove the folder and start the run again" in result.err


def test_a_run_that_is_killed_while_it_is_made_is_not_there(lab):
    """Everything known before the first call is on the disk before the folder has its name."""
    lay(lab)
    script = (
        "import os, sys; from pathlib import Path; from clash.cli.app import run\n"
        "count = iter(range(10 ** 6)); real = os.write\n"
        "def write(fd, data):\n"
        "    if next(count) == int(sys.argv[1]): os._exit(9)\n"
        "    return real(fd, data)\n"
        "os.write = write\n"
        "sys.exit(run(sys.argv[2:]))"
    )
    words = ("eval", *WORDS, "--run-id", "run", "--yes", "-q")
    for moment in range(0, ITEMS + 1, 2):
        with lab.start(*words, program=("-c", script, moment)) as process:
            process.communicate(timeout=240)
        run = lab.path / "runs" / "run"
        if run.exists():
            assert len(lab.folder().lines("items")) == ITEMS
            shutil.rmtree(run)
    assert lab.here("runs", "--json").json["runs"] == []
    assert lab.judged(*WORDS).manifest["status"] == "complete"


def test_a_lost_response_whose_call_is_lost_too_is_named(lab, runs):
    run = resume_here(lab, runs.killed)
    generated_call = next(c for c in run.lines("calls") if c["purpose"] == "generate")
    for name in ("calls", "responses"):
        path = run.path / f"{name}.jsonl"
        lines = [
            line
            for line in path.read_text(encoding="utf-8").splitlines(keepends=True)
            if json.loads(line)["call_id"] != generated_call["call_id"]
        ]
        path.write_text("".join(lines), encoding="utf-8")
    result = lab.here("resume", "run")
    assert result.code == 2
    candidate, item = generated_call["candidate"], generated_call["item_id"]
    assert f"responses.jsonl: lacks the response of {candidate!r} to {item!r}" in result.err
    assert lab.server.count() == 0
