"""A name that does not exist is answered by the nearest one that does."""

from __future__ import annotations

from pathlib import Path

import pytest

from clash.analysis.figures import is_figure_name
from clash.analysis.findings import compute_findings, figures
from clash.analysis.rundata import RunData
from clash.cli.app import run
from clash.store.folder import RunFolder


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    assert run(["demo", "--out", str(folder), "--run-id", "demo", "-q"]) == 0
    return folder / "demo"


@pytest.fixture(autouse=True)
def _in_a_clean_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("prompts.yaml").write_text("[{prompt: a, responses: {x: a, y: b}}]", encoding="utf-8")
    Path("clash.yaml").write_text("limits: {}\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "problem", "nearest"),
    [
        ("gate RUN --min concordanc=1", "no figure is called 'concordanc'", "concordance"),
        ("eval prompts.yaml --panel suprem-court", "no panel 'suprem-court'", "supreme-court"),
        ("validate mt-bnch", "'mt-bnch'", "mt-bench"),
        ("aggregate RUN --method dawid-skeen", "no method 'dawid-skeen'", "dawid-skene"),
        ("simulate three-judge", "no simulation 'three-judge'", "three-judges"),
    ],
)
def test_the_nearest_name_is_suggested(demo, capsys, words, problem, nearest):
    assert run([str(demo) if word == "RUN" else word for word in words.split()]) == 2
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert first.startswith("error: ")
    assert problem in first
    assert second.startswith(f'fix: did you mean "{nearest}"?')


@pytest.mark.parametrize(
    ("text", "message", "fix"),
    [
        ("limits:\n  max_cots: 1", "clash.yaml:2: limits: unknown key", '"max_cost"'),
        ("criteria: {modell: openai/x}", "clash.yaml:1: criteria: unknown key", '"model"'),
        ("candidates:\n- {modl: a/b}", "clash.yaml:2: candidates[0]: unknown key", '"model"'),
        ("sede: 3", 'clash.yaml:1: unknown key "sede"', '"seed"'),
    ],
)
def test_a_misspelt_key_is_answered_with_file_line_and_the_right_one(capsys, text, message, fix):
    Path("clash.yaml").write_text(text, encoding="utf-8")
    assert run(["eval", "prompts.yaml", "--dry-run"]) == 2
    first, second = capsys.readouterr().err.splitlines()[:2]
    assert message in first
    assert second == f"fix: did you mean {fix}?"


def test_every_figure_of_a_run_has_a_name_that_a_gate_accepts(demo):
    names = figures(compute_findings(RunData.load(RunFolder.open(demo))))
    assert len(names) > 50
    assert [name for name in names if not is_figure_name(name)] == []


def test_a_figure_that_this_run_lacks_fails_the_gate_and_is_no_misspelling(demo, capsys):
    assert run(["gate", str(demo), "--min", "win_rate.absent=0.1"]) == 1
    assert "not a figure of this run" in capsys.readouterr().out


def test_one_missing_key_is_one_row(capsys, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    models = "openrouter/a/b,openrouter/a/c"  # the panel needs that key too
    assert run(["doctor", "--panel", "supreme-court", "--models", models]) == 1
    bad = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("bad")]
    assert len(bad) == 1
    assert "OPENROUTER_API_KEY" in bad[0]


def test_doctor_says_how_to_mend_what_is_bad_within_the_width(capsys, monkeypatch):
    monkeypatch.delenv("OPENROUTER_API_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    assert run(["doctor", "--panel", "supreme-court"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    at = next(i for i, line in enumerate(lines) if line.startswith("bad  OPENROUTER_API_KEY  "))
    assert any(line.startswith("     fix: export OPENROUTER_API_KEY=") for line in lines[at:])
