"""Every command, in a folder that a stranger made: it costs at most a refusal.

No file outside of the folder is touched, no process started, no server asked, and no key sent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clash.integrations import sql
from command_names import command_names
from hostile import stranger
from wire import WireServer

pytestmark = pytest.mark.timeout(600)

SECRET = "ghp_0123456789abcdefghij"
RUNS = tuple(f"runs/{name}" for name in ("linked", "piped", "written", "keys", "path", "spoilt"))
JUDGE = ("--run-id", "new", "--yes")
ENV = ("--env-file", "keys.env")
NOT_OF_THE_FOLDER = ("'fc-list'", "'/sbin/ldconfig'")
"""Programs by which libraries look for fonts and for themselves, whatever the folder holds."""
QUERY_PROCESS = f"[{sys.executable!r}, '-P', '-c', {sql.PROGRAM!r}]"
"""The process of ``clash query``; no part of its command is from the folder."""


def on_runs(*words: str) -> list[tuple[str, ...]]:
    """The words with each run of the stranger in place of RUN."""
    return [tuple(run if word == "RUN" else word for word in words) for run in RUNS]


COMMANDS: dict[str, list[tuple[str, ...]]] = {
    "demo": [("-q",)],
    "init": [(), ("--force",)],
    "doctor": [(), ("--ping",), ("--panel", "panel.yaml", "--ping"), ("--torture", "panel.yaml")],
    "query": [*on_runs("RUN", "select * from calls"), *on_runs("RUN", "select 1", "--json")],
    "schema": [
        ("panel",),
        ("--check", "bomb.yaml"),
        ("--check", "panel.yaml"),
        ("--as", "votes", "--check", "bomb.jsonl.gz"),
    ],
    "trust": [(), ("GITHUB_TOKEN", "https://a@evil.example\\@b")],
    "eval": [
        JUDGE,
        ("prompts.jsonl", "--panel", "panel.yaml", *JUDGE),
        ("prompts.jsonl", "--panel", "baseline", *JUDGE, *ENV),
        ("prompts.jsonl", "--panel", "baseline", "--yes", "-q"),
        ("prompts.jsonl", "--panel", "baseline", "--run-id", "../../away", "--yes"),
        ("prompts.jsonl", "--panel", "baseline", "--calibrator", "bomb.yaml", *JUDGE),
        ("bomb.yaml", "--panel", "baseline", *JUDGE),
        *on_runs("--replay", "RUN", "--yes", "-q"),
        *on_runs("prompts.jsonl", "--panel", "baseline", "--criteria-from", "RUN", "--dry-run"),
    ],
    "validate": [("bomb.jsonl.gz", "--panel", "baseline"), ("prompts.jsonl", *JUDGE)],
    "rerun": on_runs("RUN", "--yes", "-q"),
    "audit": [("bomb.jsonl.gz",), ("bomb.yaml",), (".",), *on_runs("RUN")],
    "favouritism": on_runs("RUN", "--yes", "-q"),
    "variance": on_runs("RUN", "--yes", "-q"),
    "redteam": [("panel.yaml", *JUDGE), ("baseline", "--attacks", "bomb.yaml"), *on_runs("RUN")],
    "resume": on_runs("RUN"),
    "merge": [*on_runs("RUN", "runs/honest"), *on_runs("RUN", "RUN"), ("runs", "--run-id", "../x")],
    "report": [
        *on_runs("RUN"),
        *on_runs("RUN", "--item", "q1"),
        *on_runs("RUN", "--card", "card.svg"),
        ("runs/keys", "--plots", "plots"),
    ],
    "review": [
        *on_runs("RUN", "--export-static", "page.html"),
        *on_runs("RUN", "--import", "deep.json"),
    ],
    "compare": on_runs("RUN", "runs/honest"),
    "choose": [*on_runs("RUN"), *on_runs("RUN", "--max-cost-per-call", "0.01", "--worth", "1")],
    "explain": [*on_runs("RUN"), *on_runs("RUN", "--item", "q1")],
    "gate": [
        *on_runs("RUN", "--min", "unanimity=0", "--allow-partial"),
        *on_runs("RUN", "--min", "unanimity=0", "--comment", "comment.md"),
    ],
    "runs": [()],
    "verify": [*on_runs("RUN"), *on_runs("RUN", "--signers", "prompts.jsonl")],
    "seal": on_runs("RUN"),
    "export": [*on_runs("RUN", "--votes"), *on_runs("RUN", "--csv"), *on_runs("RUN", "--parquet")],
    "aggregate": [("votes.jsonl",), ("bomb.jsonl.gz",), ("deep.json",), *on_runs("RUN")],
    "dependence": [("votes.jsonl", "--bootstrap", "20"), *on_runs("RUN", "--bootstrap", "20")],
    "diagnose": [("votes.jsonl",), *on_runs("RUN"), *on_runs("RUN", "--calibrate-judges", "--yes")],
    "prereg": [("prompts.jsonl", "--panel", "baseline"), ("--check", "deep.json")],
    "power": on_runs("--from", "RUN"),
    "calibrate": [("votes.jsonl", "--splits", "2", "--jobs", "1"), *on_runs("RUN", "--jobs", "1")],
    "simulate": [("semi-real", "--votes", "bomb.jsonl.gz", "--replications", "2")],
    "study ising": [("votes.jsonl", "--trials", "2"), ("bomb.jsonl.gz",), ("deep.json",)],
    "study fcps": [("votes.jsonl", "--splits", "2"), *on_runs("RUN", "--splits", "2")],
    "datasets list": [()],
    "datasets pull": [("mt-bench", "--base-url", "http://evil.example")],
    "datasets sample": [("bomb.jsonl.gz",), *on_runs("calibration-pairs", "--from", "RUN")],
    "datasets convert": [("deep.json", "--out", "out"), ("runs", "--out", "out")],
}


def allowed(command: str) -> set[object]:
    """Exit codes of a command that did what it is for, or refused to.

    1 says that a key is not confirmed, or that a figure is below its threshold; 3 that a run which is
    replayed has no answer to what is asked.
    """
    return {0, 2, 5} | {"doctor": {1}, "gate": {1}, "eval": {3}}.get(command, set())


def test_every_command_is_tried():
    """But for ``mcp``, which would read the driver's stdin, and ``view``, which serves until Ctrl-C.

    tests/integrations/test_mcp.py and tests/view have them.
    """
    assert command_names() == {*COMMANDS, "mcp", "view"}


@pytest.fixture(scope="module")
def server():
    with WireServer() as running:
        yield running


@pytest.fixture(scope="module")
def work_folder(tmp_path_factory):
    """A home with a file of the victim's, and the stranger's folder in it."""
    home = tmp_path_factory.mktemp("home")
    (home / "outside").mkdir()
    (home / "outside" / "victim").write_text(SECRET, encoding="utf-8")
    (home / "there").mkdir()
    stranger.lay_out(home / "there", home / "outside" / "victim", "http://evil.example/openai/v1")
    return home


@pytest.fixture(scope="module")
def results(work_folder, server):
    """What each command line did, all in one process and in the stranger's folder."""
    lines = [[*name.split(), *words] for name, many in COMMANDS.items() for words in many]
    environ = {
        "HOME": str(work_folder),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(sys.path),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",  # the space that threads of DuckDB reserve counts as memory
        "GITHUB_TOKEN": SECRET,
        "HF_TOKEN": SECRET,
        "OPENAI_API_KEY": SECRET[::-1],
        "HTTP_PROXY": f"http://127.0.0.1:{server.port}",
        "MPLCONFIGDIR": str(work_folder / "there" / "matplotlib"),
        "CLASH_CONFIG_DIR": str(work_folder / "config"),
    }
    before = state(work_folder)
    result = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("driver.py"))],
        input="".join(f"{json.dumps(words)}\n" for words in lines),
        capture_output=True,
        text=True,
        timeout=600,
        cwd=work_folder / "there",
        env=environ,
    )
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(lines), f"{lines[len(answers)]} ended the process\n{result.stderr}"
    return before, answers


def state(home: Path) -> dict[str, bytes | None]:
    """Every entry outside of the stranger's folder, with what it holds."""
    return {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None
        for path in home.rglob("*")
        if (home / "there") not in (path, *path.parents)
    }


def test_each_command_ends_with_a_refusal_at_most(results):
    _, answers = results
    worse = {
        tuple(answer["words"]): (answer["code"], answer["output"][-600:])
        for answer in answers
        if answer["code"] not in allowed(answer["words"][0]) or "Traceback" in answer["output"]
    }
    assert worse == {}


def test_no_file_outside_of_the_folder_is_touched(results, work_folder):
    before, _ = results
    assert state(work_folder) == before


def test_no_process_is_started_and_no_server_asked(results, server):
    _, answers = results
    events = {
        tuple(answer["words"]): event
        for answer in answers
        for event in answer["events"]
        if not any(program in event for program in (*NOT_OF_THE_FOLDER, QUERY_PROCESS))
    }
    assert events == {}
    assert server.calls == []


def test_nothing_of_the_victim_is_shown(results):
    _, answers = results
    assert [answer["words"] for answer in answers if SECRET in answer["output"]] == []


def test_no_command_takes_long(results):
    _, answers = results
    assert {tuple(a["words"]): a["seconds"] for a in answers if a["seconds"] > 20} == {}
