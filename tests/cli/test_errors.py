"""A mistake is one message with file, line, field and hint, exit code 2, and nothing spent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from clash.cli.app import run

PROMPTS = """\
- id: q1
  prompt: Which is it?
  responses: {ada: This one., bob: That one.}
"""
PANEL = """\
name: mine
judges:
  - id: a
    model: compatible/a
    base_url: http://127.0.0.1:9/v1
  - id: b
    model: openai/b
"""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    Path("prompts.yaml").write_text(PROMPTS, encoding="utf-8")
    Path("panel.yaml").write_text(PANEL, encoding="utf-8")


def refused(capsys, *words: str) -> str:
    """The message, and that there is nothing but the message."""
    assert run(words) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "Traceback" not in output.err
    assert output.err.count("error: ") == 1
    assert not Path("runs").exists()
    return output.err


def edited(name: str, old: str, new: str) -> None:
    file = Path(name)
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


EVAL = ("eval", "prompts.yaml", "--panel", "panel.yaml", "--criteria", "none")


@pytest.mark.parametrize(
    ("old", "new", "where", "what"),
    [
        (
            "  - id: a\n",
            "  - id: a\n    wieght: 2\n",
            'panel.yaml:4: judges[0]: unknown key "wieght"',
            'did you mean "weight"?',
        ),
        ("openai/b", "opnai/b", "panel.yaml:7: judges[1].model", "provider of openai, anthropic"),
        ("id: b", "id: a", "panel.yaml", "two judges have the id 'a'"),
        ("name: mine\n", "name: mine\nquorum: 3\n", "panel.yaml", "quorum 3 is more than"),
        (
            "  - id: b\n",
            "  - id: b\n    weight: heavy\n",
            "panel.yaml:7: judges[1].weight",
            "heavy",
        ),
        ("  - id: b\n", "  - id: b\n    role: juror\n", "panel.yaml:7: judges[1].role", "juror"),
        ("name: mine\n", "name: mine\nname: yours\n", "panel.yaml:2", "appears twice"),
        ("judges:\n", "judges: [\n", "panel.yaml:", "not valid YAML"),
        ("127.0.0.1:9/v1", "user:word@x/v1", "base_url", "password"),
    ],
    ids=["key", "provider", "twice", "quorum", "type", "role", "key twice", "yaml", "password"],
)
def test_a_wrong_panel_is_named_by_line_and_field(capsys, old, new, where, what, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    edited("panel.yaml", old, new)
    output = refused(capsys, *EVAL)
    assert where in output
    assert what in output


@pytest.mark.parametrize(
    "key", ["sk-proj-abcdefgh12345678", "AIzaSyA-1234567890abcdefg", "not a name!"]
)
def test_a_literal_key_is_refused_and_not_repeated(capsys, key):
    edited("panel.yaml", "  - id: b\n", f"  - id: b\n    api_key_env: '{key}'\n")
    output = refused(capsys, *EVAL)
    assert "panel.yaml:7: judges[1].api_key_env" in output
    assert "NAME of an environment variable" in output
    assert key not in output


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("api_key: KEY", 'judges[1]: unknown key "api_key"'),
        ("options: {headers: {Authorization: Bearer KEY}}", "options.headers"),
        ("options: {headers: {x-api-key: KEY}}", "options.headers"),
        ("base_url: 'https://example.org/v1?api_key=KEY'", "base_url"),
    ],
)
def test_a_key_that_would_land_in_the_folder_is_refused_and_not_repeated(
    capsys, monkeypatch, line, what
):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    edited("panel.yaml", "  - id: b\n", f"  - id: b\n    {line}\n".replace("KEY", "wire00secret00"))
    output = refused(capsys, *EVAL)
    assert what in output
    assert "wire00secret00" not in output


def test_a_missing_key_is_named_by_its_variable_before_a_folder_is_made(capsys):
    output = refused(capsys, *EVAL)
    assert "openai/b needs a key, and OPENAI_API_KEY is not set" in output
    assert "fix: export OPENAI_API_KEY=" in output


def test_an_address_that_is_missing_is_asked_for(capsys, monkeypatch):
    monkeypatch.delenv("COMPATIBLE_BASE_URL", raising=False)
    edited("panel.yaml", "    base_url: http://127.0.0.1:9/v1\n", "")
    assert "base_url: http://localhost:11434/v1" in refused(capsys, *EVAL)


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        ("- prompt: Hi\n  respnses: {}\n", 'prompts.yaml:2: unknown key "respnses"', "responses"),
        (
            "- prompt: ''\n  responses: {a: x, b: y}\n",
            "prompts.yaml",
            "the prompt is empty\nfix: write what",
        ),
        ("- {id: x, prompt: Hi, responses: {a: x, b: y}}\n" * 2, "prompts.yaml:2: id", "twice"),
        ("- prompt: Hi\n  responses: {a: x}\n", "prompts.yaml: responses", "--models a,b"),
        ("- prompt: Hi\n  responses: {a: x, b: y}\n  label: c\n", "prompts.yaml", "label 'c'"),
        ("[]\n", "prompts.yaml", "holds no prompt"),
        ("just a text\n", "prompts.yaml:1", "expected a list of prompts"),
        ("- prompt: 2026-01-02\n", "prompt: expected text (found 2026-01-02)", 'quotes: "…"'),
        (
            "- prompt: Hi\n  responses: {a: 1, b: x}\n",
            "responses.a: expected text (found 1)\n",
            "in quotes",
        ),
        ("- turns: [x]\n  responses: {a: 1, b: 2}\n", "(found 1) (and 1 more)\n", "in quotes"),
        ("- prompt: Hi\n  tags: {a: 1}\n", "prompts.yaml:2: tags: expected a list\n", ""),
        ("- messages: [{role: user}]\n", "messages[0].content: is missing\n", ""),
    ],
    ids=[
        "key",
        "empty",
        "id twice",
        "one response",
        "label",
        "none",
        "no list",
        "date",
        "number",
        "numbers",
        "no list of tags",
        "no text of a turn",
    ],
)
def test_wrong_prompts_are_named_by_line_and_field(capsys, text, where, what):
    Path("prompts.yaml").write_text(text, encoding="utf-8")
    output = refused(capsys, "eval", "prompts.yaml", "--panel", "baseline")
    assert where in output
    assert what in output


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("eval", "nowhere.yaml"), "nowhere.yaml: no such file"),
        (("eval",), "no prompts"),
        (("eval", "prompts.yaml", "--panel", "nobody"), "nobody"),
        (("eval", "prompts.yaml", "--models", "gpt-5"), "provider/model"),
        (("eval", "prompts.yaml", "--models", "mistral/x"), "provider of openai"),
        (("eval", "prompts.yaml", "--criteria", "some"), "fix: one of dynamic, fixed, none"),
        (
            ("eval", "prompts.yaml", "--method", "brodo"),
            'fix: did you mean "borda"? Choices: borda',
        ),
        (("eval", "prompts.yaml", "--observers", "me"), "observers"),
        (("eval", "prompts.yaml", "--config", "none.yaml"), "none.yaml: no such file"),
        (("eval", "prompts.yaml", "--replay", "none"), "none: is not a run folder"),
        (("eval", "prompts.yaml", "--criteria-from", "none"), "none: is not a run folder"),
        (("eval", "prompts.yaml", "--env-file", "none"), "no such file"),
        (("eval", "prompts.yaml", "--max-cost", "0"), "limits.max_cost"),
        (("eval", "prompts.yaml", "--max-cost", "much"), "--max-cost"),
        (("eval", "prompts.yaml", "--no-such-option"), "--no-such-option"),
        (("eval", "prompts.yaml", "--panel", "baseline/none"), "baseline/none"),
        (("resume", "none"), "none: is not a run folder"),
        (("verify", "none"), "none: is not a run folder"),
        (("resume",), "RUN"),
        (("evl",), "No such command 'evl'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_every_wrong_word_on_the_command_line_has_a_message(capsys, words, what):
    output = refused(capsys, *words)
    assert what in output


@pytest.mark.parametrize(
    "words",
    [
        ("eval", "nowhere.yaml"),
        ("resume", "none"),
        ("evl",),
        ("eval", "--nope"),
        ("verify", "none"),
    ],
    ids=" ".join,
)
def test_with_json_an_error_is_one_object_too(capsys, words):
    assert run([*words, "--json"]) == 2
    output = capsys.readouterr()
    results = json.loads(output.out)
    assert set(results) == {"clash", "error"}
    assert results["error"]["exit_code"] == 2
    text = re.sub(r"^error: ", "", output.err).replace("\nfix: ", "\n  fix: ")
    assert results["error"]["message"] in text


def test_a_run_id_that_is_taken_is_refused_and_the_run_left_alone(capsys):
    words = ("eval", "prompts.yaml", "--panel", "baseline", "--run-id", "x", "--quiet")
    assert run(words) == 0
    manifest = Path("runs/x/manifest.json").read_bytes()
    capsys.readouterr()
    assert run(words) == 2
    assert "clash resume runs/x" in capsys.readouterr().err
    assert Path("runs/x/manifest.json").read_bytes() == manifest
    assert not Path("runs/x/.lock").exists()


def test_a_run_that_was_mistyped_is_guessed_at(capsys):
    assert run(("eval", "prompts.yaml", "--panel", "baseline", "--run-id", "monday-a", "-q")) == 0
    capsys.readouterr()
    assert run(("report", "monday")) == 2
    assert "did you mean monday-a?" in capsys.readouterr().err


def test_an_item_that_a_run_does_not_have_is_answered_with_some_that_it_has(capsys):
    assert run(("eval", "prompts.yaml", "--panel", "baseline", "--run-id", "x", "-q")) == 0
    capsys.readouterr()
    assert run(("report", "x", "--item", "q9")) == 2
    output = capsys.readouterr().err
    assert "no item 'q9' in x" in output
    assert "such as q1" in output


def test_a_folder_that_cannot_be_written_is_said_without_a_traceback(capsys):
    Path("runs").write_text("in the way", encoding="utf-8")
    assert run(("eval", "prompts.yaml", "--panel", "baseline")) == 2
    assert "cannot be created" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["aggregate", "dependence", "diagnose", "calibrate"])
def test_a_votes_file_that_is_not_there_is_not_called_a_run(command, capsys):
    assert run([command, "vots.jsonl.gz"]) == 2
    assert "vots.jsonl.gz: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("verify", "x", "--signers", "nobody"), "nobody: --signers: no such file"),
        (("export", "x", "--votes", "--out", "v.jsonl"), "--to v.jsonl names the file"),
    ],
)
def test_a_file_that_is_missing_or_named_by_the_wrong_option_is_a_wrong_command(
    command, message, capsys
):
    assert run(("eval", "prompts.yaml", "--panel", "baseline", "--run-id", "x", "-q")) == 0
    capsys.readouterr()
    assert run(command) == 2
    assert message in capsys.readouterr().err
