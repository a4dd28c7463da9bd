"""``clash diagnose`` on votes and on a run, for people and for programs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clash.cli.app import run
from clash.votes import VoteRow, write_votes


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """A judge that follows the label, one that inverts it, one that always ties."""
    path = tmp_path / "votes.jsonl"
    opposite = {"A": "B", "B": "A"}
    with path.open("w") as file:
        for i in range(80):
            label = "AB"[i % 2]
            good = label if i % 10 else opposite[label]
            fair = label if i % 7 else opposite[label]
            ballots = {"good": good, "fair": fair, "wrong": opposite[good], "shy": "tie"}
            for judge, vote in ballots.items():
                line = {"item": f"q{i}", "judge": judge, "vote": vote, "label": label}
                file.write(json.dumps(line) + "\n")
    return path


def test_votes_are_diagnosed(votes: Path, capsys) -> None:
    assert run(["diagnose", str(votes), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {m["judge"]: m["action"] for m in record["recommendations"]} == {
        "good": "keep", "fair": "keep", "wrong": "replace", "shy": "replace",
    }  # fmt: skip
    assert record["run"] is None
    assert record["thresholds"]["derived"] == pytest.approx(1 / 3)


def test_the_terminal_says_what_to_do_and_why(votes: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert (
        run(["diagnose", str(votes), "--candidates", "4", "--simulate", "--replications", "20"])
        == 0
    )
    out = capsys.readouterr().out
    assert "points the wrong way" in out
    assert "takes away" in out
    assert "without it, ties modelled" in out


def test_labels_are_not_said_to_measure_the_people_whose_votes_they_are(votes, capsys) -> None:
    people = votes.with_name("people.jsonl")
    people.write_text(votes.read_text().replace('"judge"', '"family": "human", "judge"'))
    assert run(["diagnose", str(people), "--json"]) == 0
    summary = " ".join(json.loads(capsys.readouterr().out)["summary"])
    assert "They do not measure people, of whose votes labels are made." in summary
    assert "labels on 30 items would tell" not in summary.lower()


def test_a_run_adds_cost_length_scale_and_effects(tmp_path: Path, capsys) -> None:
    quickstart = Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml"
    assert run(["eval", str(quickstart), "--out", str(tmp_path), "--run-id", "r", "-q"]) == 0
    capsys.readouterr()
    assert run(["diagnose", "r", "--runs", str(tmp_path), "--json"]) == 0
    actual_run = json.loads(capsys.readouterr().out)["run"]
    judges = {judge["judge"]: judge for judge in actual_run["judges"]}
    assert judges["longest"]["longer"]["interval"]["estimate"] == 1
    assert judges["structure"]["scale"]["restricted"]
    assert {"half", "corrected", "weighted"} <= actual_run["effects"][0].keys()
    spread = [
        max(abs(e[name]["estimate"]) for e in actual_run["effects"])
        for name in ("half", "corrected")
    ]
    assert spread[1] > spread[0]  # ties as half wins shrink effects


def test_known_gaps_are_made_judged_fitted_and_drawn(tmp_path: Path, capsys) -> None:
    """The judge that counts words sees truncation and padding, and no error of fact."""
    quickstart = Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml"
    arguments = ["diagnose", str(quickstart), "--calibrate-judges", "--sources", "8", "-y", "-q"]
    arguments += ["--runs", str(tmp_path), "--plot", str(tmp_path / "plot"), "--json"]
    assert run(arguments) == 0
    record = json.loads(capsys.readouterr().out)
    hits = {
        (hit["kind"], hit["gap"]): hit
        for judge in record["calibration"]
        if judge["judge"] == "longest"
        for hit in judge["hits"]
    }
    assert hits["truncated", 0.5]["better"]["estimate"] == 1
    assert hits["padded", 0.5]["better"]["estimate"] == 0
    assert hits["identical", 0.0]["tie"]["estimate"] == 1
    assert [Path(path).suffix for path in record["written"]] == [".svg", ".png"]
    assert all(Path(path).stat().st_size > 1000 for path in record["written"])


def test_known_gaps_can_be_priced_without_a_call(tmp_path: Path, capsys) -> None:
    quickstart = Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml"
    arguments = ["diagnose", str(quickstart), "--calibrate-judges", "--dry-run", "--json"]
    assert run([*arguments, "--runs", str(tmp_path), "--sources", "3"]) == 0
    assert json.loads(capsys.readouterr().out)
    assert [path.suffix for path in tmp_path.iterdir()] == [".jsonl"]


def test_the_advice_follows_the_answer_and_verbose_has_every_table(votes: Path, capsys) -> None:
    assert run(["diagnose", str(votes)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"^(Replace|Down-weight|Keep) ", text, re.MULTILINE)
    assert "Judges: how often right" not in text
    assert run(["diagnose", str(votes), "-v"]) == 0
    assert "Judges: how often right" in capsys.readouterr().out


def test_judges_that_always_say_the_same_are_not_said_to_disagree(tmp_path: Path, capsys) -> None:
    path = tmp_path / "v.jsonl"
    write_votes(path, [VoteRow(f"q{i}", f"j{j}", "A") for i in range(40) for j in range(3)])
    assert run(["diagnose", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "every vote is for the same side" in text
    assert "agree on too little" not in text
    assert "Keep" not in text
