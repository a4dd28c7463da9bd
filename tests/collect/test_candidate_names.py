"""What candidates are called, and candidates that nobody would have meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from clash.cli.app import run
from clash.collect.resolve import read_config
from clash.config import Config, short_names
from clash.store.folder import RunFolder

LUNA = "openrouter/openai/gpt-6-luna"


@pytest.fixture(autouse=True)
def _in_a_clean_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENROUTER_API_KEY", "CLASH_MODELS", "CLASH_PANEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("models", "names"),
    [
        ([LUNA, "openai/o3"], ["gpt-6-luna", "o3"]),
        (["openai/m", "anthropic/m"], ["openai/m", "anthropic/m"]),
        (["openai/m", "openrouter/openai/m"], ["openai/m", "openrouter/openai/m"]),
        (["openrouter/a/m:free", "openrouter/a/m"], ["m:free", "m"]),
        (["compatible/tie", "compatible/a/"], ["compatible/tie", "a/"]),
        (["openai/m", "openai/m"], ["openai/m", "openai/m"]),
    ],
)
def test_a_short_name_is_the_shortest_end_that_no_other_has(models, names):
    assert short_names(models) == names


def test_an_explicit_id_wins_and_is_never_taken():
    records = ["openai/m", {"model": "google/x", "id": "m"}, {"model": "google/y"}]
    assert [c.id for c in Config(candidates=records).candidates] == ["openai/m", "m", "y"]


def test_models_of_the_line_are_taken_as_the_file_describes_them():
    text = f"candidates: [{{model: {LUNA}, id: luna, options: {{max_tokens: 9}}}}, openai/o3]"
    Path("clash.yaml").write_text(text, encoding="utf-8")
    config = read_config(None, {"candidates": [LUNA, "o3", "google/new"]})
    candidates = [(c.id, c.model, c.options.max_tokens) for c in config.candidates]
    assert candidates == [("luna", LUNA, 9), ("o3", "openai/o3", None), ("new", "google/new", None)]
    assert [c.id for c in read_config(None, {"candidates": ["luna"]}).candidates] == ["luna"]


@pytest.mark.parametrize("name", ["tie", "both bad"])
def test_no_candidate_is_called_what_a_label_says_of_all(capsys, name):
    """Else every tie that people see would be its victory."""
    text = f"- prompt: Hm?\n  responses: {{{name}: one, good: two}}\n  label: tie\n"
    Path("prompts.yaml").write_text(text, encoding="utf-8")
    assert run(["eval", "prompts.yaml", "--panel", "baseline"]) == 2
    assert f"prompts.yaml: responses: a candidate is called {name!r}" in capsys.readouterr().err


def dry(capsys, prompts, models):
    Path("prompts.yaml").write_text(prompts, encoding="utf-8")
    words = ["--models", models, "--panel", "baseline", "--observers", "none", "--dry-run"]
    assert run(["eval", "prompts.yaml", *words]) == 0
    return capsys.readouterr()


def test_a_candidate_that_nobody_writes_for_is_named_with_the_model_that_it_may_be(capsys):
    prompts = "[{prompt: a, responses: {luna: x, old: z}}, {prompt: b}]"
    message = dry(capsys, prompts, f"{LUNA},openai/o3").err
    assert "luna has responses to 1 of 2 items" in message
    assert f"if it is {LUNA}, write `id: luna`" in message
    assert "old has responses to 1 of 2 items, and no model generates more" in message


@pytest.mark.parametrize("name", ["gpt-6-luna", LUNA])
def test_responses_under_the_model_or_its_short_name_are_that_candidate(capsys, name):
    prompts = f"[{{prompt: a, label: {name}, responses: {{{name}: x, other: y}}}}]"
    plan_text = dry(capsys, prompts, f"{LUNA},openai/o3")
    assert "1 answer," in plan_text.out  # of o3 alone
    assert "has responses to" not in plan_text.err


def test_a_whole_column_of_responses_under_a_name_of_its_own_is_no_mistake(capsys):
    prompts = "[{prompt: a, responses: {human: x}}, {prompt: b, responses: {human: y}}]"
    assert "human" not in dry(capsys, prompts, f"{LUNA},openai/o3").err


def test_records_keep_the_model_of_a_short_name(monkeypatch):
    Path("prompts.yaml").write_text("[{prompt: a, responses: {gpt-6-luna: x, b: y}}]")
    words = ["--models", LUNA, "--panel", "baseline", "--observers", "none", "--run-id", "r"]
    monkeypatch.setenv("OPENROUTER_API_KEY", "k" * 20)
    assert run(["eval", "prompts.yaml", *words, "-q"]) == 0
    candidates = RunFolder.open("r").manifest().candidates
    assert [(c["id"], c["model"]) for c in candidates] == [("gpt-6-luna", LUNA)]


def test_a_dry_run_without_a_key_prices_criteria_too(capsys):
    Path("prompts.yaml").write_text("[{prompt: a, responses: {x: a, y: b}}]")
    assert run(["eval", "prompts.yaml", "--panel", "supreme-court", "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "1 criteria, 3 judgments" in out
    assert "OPENROUTER_API_KEY -> openrouter.ai (not set)" in out
    assert "fix: set OPENROUTER_API_KEY" in out
