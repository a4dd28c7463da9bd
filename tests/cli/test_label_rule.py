"""Labels that are there are used and said to be used; --no-labels leaves them out, everywhere."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from clash.cli.app import run
from command_names import command_names

COMMANDS = {
    "aggregate": ["--method", "auto,majority"],
    "dependence": ["--bootstrap", "20"],
    "diagnose": [],
    "power": ["--for", "paired"],
}


@pytest.fixture(scope="module")
def votes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three copies of one poor judge outvote two good ones: agreement tells the opposite of labels."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 400)
    source = np.where(rng.random(400) < 0.6, truth, 1 - truth)
    path = tmp_path_factory.mktemp("rule") / "votes.jsonl"
    with path.open("w") as file:
        for i, label in enumerate(truth.tolist()):
            for j in range(5):
                own, sure = (int(source[i]), 0.95) if j < 3 else (label, 0.8)
                vote = own if rng.random() < sure else 1 - own
                line = {"item": f"q{i}", "judge": f"j{j}", "vote": vote, "label": label}
                file.write(json.dumps(line) + "\n")
    return path


def _shown(command: str, votes: Path, *options: str) -> list[str]:
    source = ["--from", str(votes)] if command == "power" else [str(votes)]
    return [command, *source, *COMMANDS[command], *options]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_becomes_of_the_labels(command: str, votes: Path, capsys) -> None:
    assert run(_shown(command, votes)) == 0
    usage = " ".join(capsys.readouterr().out.split())
    assert (
        "400 of 400 rows have a label; the labels are used (--no-labels leaves them out)" in usage
    )
    assert run(_shown(command, votes, "--no-labels")) == 0
    left_out = " ".join(capsys.readouterr().out.split())
    assert "400 of 400 rows have a label; --no-labels leaves the labels out" in left_out


ON_RUNS = {
    "report": ["demo"],
    "gate": ["demo", "--min", "unanimity=0"],
    "explain": ["demo"],
    "compare": ["demo", "demo-again"],
    "choose": ["demo"],
}
WITHOUT_THE_FLAG = {
    "labels are what they are about": ("calibrate", "study ising", "study fcps", "audit", "review"),
    "they write a run, which `report` reads": (
        "eval",
        "validate",
        "resume",
        "merge",
        "demo",
        "seal",
    ),
    "they read no label": ("rerun", "favouritism", "variance", "redteam", "prereg", "simulate"),
    "they pass on what is there": ("runs", "verify", "query", "view", "mcp"),
    "they read neither votes nor runs": ("init", "doctor", "schema", "trust"),
    "they make data": ("datasets list", "datasets pull", "datasets sample", "datasets convert"),
}


def test_every_other_command_has_a_reason_to_lack_the_flag() -> None:
    exempt_names = {name for group in WITHOUT_THE_FLAG.values() for name in group}
    assert {*COMMANDS, *ON_RUNS, "export", *exempt_names} == command_names()
    assert not exempt_names & {*COMMANDS, *ON_RUNS, "export"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("demo", "demo-again"):
            assert run(["demo", "--run-id", name, "--quiet"]) == 0
    return folder


@pytest.mark.parametrize("command", ON_RUNS)
def test_every_command_on_a_run_can_leave_the_labels_out(command, runs, capsys, monkeypatch):
    monkeypatch.chdir(runs)
    records = []
    for options in ([], ["--no-labels"]):
        assert run([command, *ON_RUNS[command], *options, "--json"]) in (0, 1)
        labels = json.loads(capsys.readouterr().out)["labels"]
        records += labels if isinstance(labels, list) else [labels]
        assert run([command, *ON_RUNS[command], *options]) in (0, 1)
        records[-1]["shown"] = " ".join(capsys.readouterr().out.split())
    usage, left_out = records[0], records[-1]
    assert usage["used"]
    assert usage["labelled"] > 0
    assert left_out | {"shown": ""} == {**usage, "used": False, "shown": ""}
    assert "--no-labels leaves the labels out" in left_out["shown"]


def test_labels_turn_the_answer_about_a_panel_of_copies(votes: Path, capsys) -> None:
    assert run(_shown("dependence", votes, "--json")) == 0
    labelled_record = json.loads(capsys.readouterr().out)
    assert run(_shown("dependence", votes, "--json", "--no-labels")) == 0
    inferred_record = json.loads(capsys.readouterr().out)
    assert labelled_record["truth"]["method"] == "labels"
    assert labelled_record["effective"]["majority_accuracy"] < 0.7
    assert inferred_record["truth"]["available"] == 0
    assert inferred_record["panel"]["labels"] == {"rows": 400, "labelled": 400, "used": False}
    assert inferred_record["effective"]["majority_accuracy"] > 0.85


def test_an_export_leaves_labels_out_on_request(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo", "--run-id", "demo", "--quiet"]) == 0
    lines = {}
    for name, options in (("with", []), ("without", ["--no-labels"])):
        assert run(["export", "demo", "--votes", "--to", f"{name}.jsonl", *options]) == 0
        text = Path(f"{name}.jsonl").read_text("utf-8")
        lines[name] = [json.loads(line) for line in text.splitlines()]
    capsys.readouterr()
    assert any(line.get("label") is not None for line in lines["with"])
    assert all(line.get("label") is None for line in lines["without"])
    assert [line["vote"] for line in lines["with"]] == [line["vote"] for line in lines["without"]]
