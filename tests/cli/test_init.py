"""``clash init``: files that work as they are, for whatever keys exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from clash.cli.app import run
from clash.collect.resolve import read_config

KEYS = ("OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")


@pytest.fixture(autouse=True)
def _in_a_clean_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (*KEYS, "GOOGLE_API_KEY", "CLASH_MODELS", "CLASH_PANEL"):
        monkeypatch.delenv(name, raising=False)


def init(capsys, *words):
    assert run(["init", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("keys", "words", "providers"),
    [
        ((), (), {"openrouter"}),
        (KEYS[:1], (), {"openrouter"}),
        (KEYS[1:2], (), {"openai"}),
        (KEYS[2:3], (), {"anthropic"}),
        (KEYS[3:], (), {"google"}),
        (KEYS[1:], (), {"openai", "anthropic", "google"}),
        ((), ("--models", "openai/x,google/gemini-3.8-flash"), {"openai", "google"}),
        ((), ("--models", 'openai/a:b"c\\d,openrouter/o/x'), {"openai", "openrouter"}),
    ],
    ids=["none", "openrouter", "openai", "anthropic", "google", "natives", "named", "odd names"],
)
def test_what_is_written_works_with_the_keys_that_are_there(
    capsys, monkeypatch, keys, words, providers
):
    for key in keys:
        monkeypatch.setenv(key, "secret-of-a-test")
    result = init(capsys, *words)
    assert "secret-of-a-test" not in str(result)
    for path in result["written"]:
        assert "secret-of-a-test" not in Path(path).read_text(encoding="utf-8")
    config = read_config(None, {})
    assert {c.id: c.model for c in config.candidates} == result["candidates"]
    assert {c.provider for c in config.candidates} == providers
    assert bool(result["missing_keys"]) == (not keys)
    assert run(["eval", "--dry-run"]) == 0
    output = capsys.readouterr()
    # Of each: two prompts, one of two turns, and one more; the last has their responses.
    assert "5 answers" in output.out
    assert "has responses to" not in output.err  # no candidate that nobody writes for
    assert "votes on its own" not in output.err
    assert "price unknown" not in output.out or words
    assert ("Next  " in output.out) == bool(keys)


def test_the_workflow_passes_on_the_keys_that_the_models_need(capsys):
    init(capsys, "--models", "openai/a,anthropic/b")
    workflow = yaml.safe_load(Path(".github/workflows/clash.yaml").read_text(encoding="utf-8"))
    secrets = [step["env"] for step in workflow["jobs"]["eval"]["steps"] if "env" in step]
    assert secrets == [{key: f"${{{{ secrets.{key} }}}}" for key in KEYS[1:3]}]


def test_a_named_panel_is_written_by_its_name(capsys):
    result = init(capsys, "--panel", "baseline")
    assert (result["panel"], read_config(None, {}).panel.name) == ("baseline", "baseline")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--models", "openai/a"), "a comparison needs two models"),
        (("--models", "a,b"), "expected provider/model"),
        (("--panel", "suprem-court"), 'did you mean "supreme-court"?'),
    ],
)
def test_nothing_is_written_for_what_cannot_work(capsys, words, message):
    assert run(["init", *words]) == 2
    assert message in capsys.readouterr().err
    assert not Path("clash.yaml").exists()


def test_the_next_command_leads_into_the_folder(capsys):
    assert run(["init", "my project"]) == 0
    out = capsys.readouterr().out
    assert "Next  cd 'my project' && clash eval --dry-run" in out
    assert out.count("Next") == 1


def test_a_person_is_asked_until_the_answer_can_be_used(capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret-of-a-test")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    answers = iter(["one", "openai/a,openai/b"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert run(["init"]) == 0
    output = capsys.readouterr()
    assert "Keys that are set: OPENAI_API_KEY" in output.err
    assert "Not set: OPENROUTER_API_KEY, ANTHROPIC_API_KEY, GOOGLE_API_KEY" in output.err
    assert "expected provider/model" in output.err
    assert "secret-of-a-test" not in output.err + output.out
    assert [c.id for c in read_config(None, {}).candidates] == ["a", "b"]


def test_a_model_that_is_being_retired_is_named_with_its_successor(capsys):
    assert run(["init", "--models", "openai/gpt-4o,openai/gpt-6-luna"]) == 0
    assert "openai/gpt-4o is being retired (2027-01-14); fix: use openai/gpt-6-luna" in (
        capsys.readouterr().err
    )
