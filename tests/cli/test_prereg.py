"""A plan is frozen, a run is held to it, and the report names every deviation; looks are paid."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clash.cli.app import run

QUICKSTART = str(Path(__file__).resolve().parents[2] / "datasets" / "quickstart.yaml")


@pytest.fixture
def plan(tmp_path: Path, capsys) -> Path:
    path = tmp_path / "plan.json"
    assert run(["prereg", QUICKSTART, "--primary", "birch", "--out", str(path)]) == 0
    capsys.readouterr()
    return path


def _report(folder: Path) -> dict:
    return json.loads((folder / "report.json").read_text())["preregistration"]


def test_a_run_that_keeps_the_plan_has_no_deviation(plan: Path, tmp_path: Path, capsys) -> None:
    base = ["--out", str(tmp_path), "--prereg", str(plan)]
    assert run(["eval", QUICKSTART, "--run-id", "kept", *base]) == 0
    assert re.search(r"Registration +kept", capsys.readouterr().out)
    report = _report(tmp_path / "kept")
    assert report["deviations"] == []
    manifest = json.loads((tmp_path / "kept" / "manifest.json").read_text())
    assert manifest["preregistration"] == report["sha256"] == json.loads(plan.read_text())["sha256"]
    assert run(["verify", str(tmp_path / "kept")]) == 0


def test_every_deviation_is_named(plan: Path, tmp_path: Path, capsys) -> None:
    base = ["--out", str(tmp_path), "--prereg", str(plan), "-v", "--seed", "7"]
    assert run(["eval", QUICKSTART, "--run-id", "other", "-n", "20", "--both-orders", *base]) == 0
    out = capsys.readouterr().out
    assert "Registration: 3 deviations" in out
    assert json.loads(plan.read_text())["sha256"] in out
    fields = {
        d["what"]: (d["planned"], d["done"]) for d in _report(tmp_path / "other")["deviations"]
    }
    assert fields == {
        "both orders": ("False", "True"),
        "seed": ("42", "7"),
        "prompts judged": ("32", "20"),
    }
    markdown = (tmp_path / "other" / "report.md").read_text()
    assert "seed | 42 | 7" in markdown
    page = (tmp_path / "other" / "report.html").read_text()
    assert '<details class="fold" id="registration">' in page
    assert page.index('id="registration"') < page.index('id="result"')
    assert "<th scope=row>prompts judged</th><td>32</td><td>20</td>" in page
    sealed_hash = json.loads(plan.read_text())["sha256"]
    assert all(sealed_hash in text for text in (markdown, page))


def test_a_plan_of_before_looks_were_registered_keeps_its_hash(plan: Path, tmp_path: Path) -> None:
    content = json.loads(plan.read_text())
    assert "looks" not in content["plan"]
    assert run(["prereg", "--check", str(plan)]) == 0


def test_other_looks_than_registered_are_a_deviation(tmp_path: Path, capsys) -> None:
    plan = tmp_path / "p.json"
    rule = ["--until", "ci<0.5", "--sequential", "pocock"]
    assert run(["prereg", QUICKSTART, "--out", str(plan), *rule, "--looks", "4"]) == 0
    assert "ci<0.5 (pocock, 4 looks)" in capsys.readouterr().out
    base = ["--out", str(tmp_path), "--prereg", str(plan), "-q", "--run-id", "u"]
    assert run(["eval", QUICKSTART, *rule, "--looks", "8", *base]) == 0
    assert _report(tmp_path / "u")["deviations"] == [
        {"what": "looks planned", "planned": "4", "done": "8"}
    ]


@pytest.mark.parametrize("outcome", ["points", "wins", "concordance"])
def test_the_report_gives_the_primary_outcome_at_the_registered_level(
    outcome: str, tmp_path: Path, capsys
) -> None:
    plan = tmp_path / "p.json"
    options = [] if outcome == "concordance" else ["--primary", "birch"]
    words = ["prereg", QUICKSTART, "--out", str(plan), "--alpha", "0.2", "--outcome", outcome]
    assert run([*words, *options]) == 0
    base = ["--out", str(tmp_path), "--run-id", "r", "--prereg", str(plan)]
    assert run(["eval", QUICKSTART, *base]) == 0
    assert re.search(rf"Primary outcome +{outcome}.*, 80% interval", capsys.readouterr().out)
    report = json.loads((tmp_path / "r" / "report.json").read_text())
    primary = report["preregistration"]["primary"]
    (birch,) = (row for row in report["leaderboard"] if row["candidate"] == "birch")
    beside = {
        "points": birch["points"],
        "wins": birch["win_rate"],
        "concordance": report["labelled"]["concordance"],
    }[outcome]
    assert primary["interval"]["estimate"] == pytest.approx(beside["estimate"])
    assert primary["interval"]["level"] == 0.8
    width = primary["interval"]["high"] - primary["interval"]["low"]
    assert width < 0.85 * (beside["high"] - beside["low"])
    deviations = {d["what"] for d in report["preregistration"]["deviations"]}
    assert deviations == {"alpha of the intervals"}


def test_reruns_are_held_to_it_too(plan: Path, tmp_path: Path, capsys) -> None:
    assert run(["eval", QUICKSTART, "--out", str(tmp_path), "--run-id", "a", "-q"]) == 0
    assert run(["rerun", "a", "--out", str(tmp_path), "--prereg", str(plan), "-q", "-y"]) == 0
    deviations = {d["what"] for d in _report(tmp_path / "a-r1")["deviations"]}
    assert "seed" in deviations
    assert _report(tmp_path / "a") is None


def test_a_changed_plan_is_refused(plan: Path, tmp_path: Path, capsys) -> None:
    content = json.loads(plan.read_text())
    content["plan"]["effect"] = 0.2
    plan.write_text(json.dumps(content))
    assert run(["eval", QUICKSTART, "--out", str(tmp_path), "--prereg", str(plan), "-q"]) == 2
    assert "was changed after it was frozen" in capsys.readouterr().err
    assert run(["prereg", "--check", str(plan)]) == 2


def test_a_plan_is_checked_and_not_overwritten(plan: Path, capsys) -> None:
    assert run(["prereg", "--check", str(plan), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["primary"] == "birch"
    assert run(["prereg", QUICKSTART, "--out", str(plan)]) == 2


@pytest.mark.parametrize(
    "wrong", [["--primary", "nobody"], ["--outcome", "luck"], ["--until", "soon"]], ids=str
)
def test_a_plan_that_binds_nothing_is_refused(wrong: list[str], tmp_path: Path, capsys) -> None:
    assert run(["prereg", QUICKSTART, "--out", str(tmp_path / "p.json"), *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err


def _stopping(folder: Path) -> dict:
    return json.loads((folder / "manifest.json").read_text())["stopping"]


@pytest.mark.parametrize("sequential", ["always-valid", "obrien-fleming", "pocock"])
def test_judging_ends_when_the_interval_is_narrow(sequential: str, tmp_path: Path, capsys) -> None:
    arguments = ["eval", QUICKSTART, "--out", str(tmp_path), "--run-id", "u", "-q"]
    assert run([*arguments, "--until", "ci<0.5", "--looks", "4", "--sequential", sequential]) == 0
    rule = _stopping(tmp_path / "u")
    assert rule["met"]
    assert rule["looks"][-1]["width"] < 0.5
    assert all(look["width"] >= 0.5 for look in rule["looks"][:-1])
    assert all(look["width"] > look["width_looked_at_once"] for look in rule["looks"])
    items = (tmp_path / "u" / "items.jsonl").read_text().splitlines()
    assert len(items) == rule["looks"][-1]["prompts"] < 32
    assert run(["verify", str(tmp_path / "u")]) == 0


def test_a_rule_that_is_never_met_ends_with_the_prompts(tmp_path: Path, capsys) -> None:
    arguments = ["eval", QUICKSTART, "--out", str(tmp_path), "--run-id", "u", "-q"]
    assert run([*arguments, "--until", "ci<0.001", "--looks", "2"]) == 0
    rule = _stopping(tmp_path / "u")
    assert not rule["met"]
    assert [look["prompts"] for look in rule["looks"]] == [16, 32]


def test_a_registered_rule_that_is_kept_is_no_deviation(tmp_path: Path, capsys) -> None:
    plan = tmp_path / "p.json"
    rule = ["--until", "ci<0.5", "--sequential", "pocock"]
    assert run(["prereg", QUICKSTART, "--primary", "birch", "--out", str(plan), *rule]) == 0
    arguments = ["eval", QUICKSTART, "--out", str(tmp_path), "--run-id", "u", "-q"]
    assert run([*arguments, *rule, "--prereg", str(plan)]) == 0
    assert _report(tmp_path / "u")["deviations"] == []
    assert _stopping(tmp_path / "u")["looks"][0]["candidate"] == "birch"
    last, primary = _stopping(tmp_path / "u")["looks"][-1], _report(tmp_path / "u")["primary"]
    assert (primary["interval"]["low"], primary["interval"]["high"]) == pytest.approx(
        (last["low"], last["high"])
    )
    assert primary["interval"]["method"] == "pocock"
    arguments = ["eval", QUICKSTART, "--out", str(tmp_path), "--run-id", "v", "-q"]
    assert run([*arguments, "--until", "ci<0.6", "--prereg", str(plan)]) == 0
    deviations = {d["what"] for d in _report(tmp_path / "v")["deviations"]}
    assert {"stopping rule", "price of peeking"} <= deviations
