"""``clash explain`` answers on one screen, for every kind of run, and for one item step by step."""

from __future__ import annotations

import json
import shutil

import pytest

import clash
from clash.cli.app import run

TIDES = "The moon pulls the water of the sea towards it. Tides follow every day."
PROMPTS = [
    {
        "id": f"q{i}",
        "prompt": f"Question {i} about tides?",
        "tags": ["even" if i % 2 == 0 else "odd"],
        "label": "long" if i < 4 else "short",
        "responses": {"long": f"{TIDES} Day {i}.", "short": f"Ask {i}."},
    }
    for i in range(6)
]


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    return clash.evaluate(PROMPTS, panel="baseline", criteria="none", out=out, run_id="made")


def explain(votes, capsys, *options):
    code = run(["explain", votes.path.name, "--out", str(votes.path.parent), *options])
    return code, capsys.readouterr()


def test_the_first_screen_answers_first_and_is_short(judged_run, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, output = explain(judged_run, capsys)
    lines = output.out.splitlines()
    assert code == 0
    assert lines[0] == "long wins: 100% [61, 100] against short (p = 0.03)."
    assert any(line.startswith("Changed verdicts on 1 of 6 items would make") for line in lines)
    assert len(lines) <= 20
    assert max(map(len, lines[:-1])) <= 80  # the last is a command, which is never broken
    assert "--item" in lines[-1]
    _, quiet = explain(judged_run, capsys, "-q")
    assert len(quiet.out.splitlines()) <= 2


def test_what_is_of_the_panel_alone_says_so_where_labels_decide(tmp_path, capsys):
    prompts = [
        {
            "id": f"q{n}",
            "prompt": f"Question {n} about tides?",
            "responses": {"long": f"{TIDES} Day {n}.", "short": f"Ask {n}."},
            "label": "long" if n % 3 else "short",
        }
        for n in range(12)
    ]
    votes = clash.evaluate(prompts, panel="baseline", criteria="none", out=tmp_path, run_id="one")
    _, output = explain(votes, capsys)
    text = " ".join(output.out.split())
    assert "eople would prefer" in text.partition(".")[0]
    assert "By the panel alone: changed verdicts on " in text
    _, output = explain(votes, capsys, "-v")
    assert "By the panel alone: changed verdicts on " in " ".join(output.out.split())


def test_the_library_returns_what_the_command_prints(judged_run, capsys):
    result = clash.explain(judged_run)
    code, output = explain(judged_run, capsys, "--json")
    document = json.loads(output.out)
    assert code == 0
    assert document.pop("clash") == clash.__version__
    assert document == json.loads(json.dumps(result.to_dict()))
    assert document["leader"] == "long"
    assert [flip["conclusion"] for flip in document["flips"]][:2] == ["level", "level"]
    assert {line["name"] for line in document["categories"]} == {"even", "odd"}
    assert document["agreement"]["n"] == 6
    assert list(result.to_frame("Without one judge")["judge"]) == [
        line["name"] for line in document["judges"]
    ]
    assert "insignificant" in result._repr_html_()


def test_an_item_is_explained_from_prompt_to_cost(judged_run, capsys):
    code, output = explain(judged_run, capsys, "--item", "q5")
    assert code == 0
    for text in (
        "Question 5 about",
        "A0 = ",
        "label: short (disagrees)",
        "weight x points",
        "$0.00",
    ):
        assert text in output.out
    steps = clash.explain(judged_run, "q5")
    scores = steps.findings.verdict.scores
    for candidate, score in scores.items():
        parts = (line.weight * line.points[candidate] for line in steps.findings.contributions)
        assert sum(parts) == pytest.approx(score)
    assert {call.actor for call in steps.findings.calls} == {
        judgment.judge for judgment in steps.findings.judgments
    }
    assert all(call.cost_usd == 0 for call in steps.findings.calls)


def test_a_mistyped_item_is_refused_with_the_nearest(judged_run, capsys):
    code, output = explain(judged_run, capsys, "--item", "Q55")
    assert code == 2
    assert 'did you mean "q5"?' in output.err


def test_validate_and_rerun_are_explained(judged_run, tmp_path):
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(prompt) + "\n" for prompt in PROMPTS), encoding="utf-8")
    validation = clash.validate(file, panel="baseline", criteria="none", out=tmp_path)
    lines = clash.explain(validation).headlines
    assert lines[0].startswith("The panel agrees with people on 4 of 6")
    assert "clear winner" not in " ".join(lines)  # a validation asks about the panel
    clash.rerun(judged_run)
    (again,) = (
        path for path in judged_run.path.parent.iterdir() if path.name != judged_run.path.name
    )
    assert clash.explain(again).findings.kind == "rerun"


def test_a_run_cut_short_is_explained_by_what_it_has(judged_run, tmp_path):
    path = tmp_path / "cut"
    shutil.copytree(judged_run.path, path)
    judgments = path / "judgments.jsonl"
    lines = judgments.read_text(encoding="utf-8").splitlines(keepends=True)
    judgments.write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    findings = clash.explain(path).findings
    assert 0 < findings.n_items < 6
    assert findings.flip("change", "level").items == (findings.wins - findings.losses + 1) // 2
    assert clash.explain(path, "q5").headlines[0].startswith("q5: no verdict")
