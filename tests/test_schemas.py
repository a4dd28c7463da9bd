"""The JSON Schemas of the files that people write say what clash says of them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml

from clash import assets
from clash.cli.app import run

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = [
    ("config", ROOT / "configs/examples/clash.yaml"),
    ("prompts", ROOT / "configs/examples/prompts.yaml"),
    ("prompts", ROOT / "datasets/quickstart.yaml"),
    *(("panel", path) for path in sorted((ROOT / "configs/panels").glob("*.yaml"))),
]


def schema(name):
    file = assets.path("configs", "schemas", f"{name}.schema.json")
    return json.loads(file.read_text(encoding="utf-8"))


def is_valid(name, value):
    return jsonschema.Draft202012Validator(schema(name)).is_valid(value)


def accepts(kind, path):
    return run(["schema", "--as", kind, "--check", str(path)]) == 0


def test_the_shipped_schemas_are_current(monkeypatch):
    """``python docs/make.py`` writes them."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.delitem(sys.modules, "schemas", raising=False)
    import schemas

    for file, text in schemas.texts().items():
        jsonschema.Draft202012Validator.check_schema(json.loads(text))
        assert file.read_text(encoding="utf-8") == text, file.name


@pytest.mark.parametrize(("kind", "path"), EXAMPLES, ids=lambda value: getattr(value, "stem", ""))
def test_every_shipped_example_is_valid(kind, path):
    assert is_valid(kind, yaml.safe_load(path.read_text(encoding="utf-8")))
    assert accepts(kind, path)


def test_every_shipped_votes_line_is_valid():
    lines = (ROOT / "datasets/simulated-votes.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(is_valid("votes", json.loads(line)) for line in lines[:200])
    assert is_valid("votes", {"item": 1, "judge": "a", "ranking": [["x"], ["y", "z"]]})


PROMPT = {"prompt": "Hi", "responses": {"a": "x", "b": "y"}}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("config", {"sede": 3}),
        ("config", {"limits": {"max_cost": -1}}),
        ("config", {"limits": {"concurrency": 1.5}}),
        ("config", {"candidates": ["gpt-6-luna"]}),
        ("config", {"candidates": [{"model": "openai/x", "temperature": 1}]}),
        ("config", {"blinding": {"scrub": "no"}}),
        ("config", {"observers": "all"}),
        ("panel", {"name": "p", "judges": []}),
        ("panel", {"judges": [{"model": "openai/x"}]}),
        ("panel", {"name": "p", "judges": [{"model": "openai/x", "role": "juror"}]}),
        ("panel", {"name": "p", "judges": [{"model": "nobody/x"}]}),
        ("prompts", [{"promt": "Hi"}]),
        ("prompts", [{"prompt": "Hi", "messages": [{"role": "user", "content": "Hi"}]}]),
        ("prompts", [{"responses": {"a": "x"}}]),
        ("prompts", [{**PROMPT, "responses": ["x", "y"]}]),
        ("prompts", [{"messages": [{"role": "robot", "content": "Hi"}]}]),
        ("prompts", {"prompts": [{"promt": "Hi"}]}),
    ],
)
def test_what_a_schema_refuses_clash_refuses_too(tmp_path, kind, value):
    assert not is_valid(kind, value)
    file = tmp_path / "file.yaml"
    file.write_text(json.dumps(value), encoding="utf-8")
    assert not accepts(kind, file)


@pytest.mark.parametrize(
    "value",
    [{"item": "q", "vote": 1}, {"item": "q", "judge": "a"}, {"item": [], "judge": "a", "vote": 1}],
)
def test_a_votes_line_without_what_it_needs_is_refused(tmp_path, value):
    assert not is_valid("votes", value)
    file = tmp_path / "votes.jsonl"
    file.write_text(json.dumps(value), encoding="utf-8")
    assert not accepts("votes", file)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("config", {"candidates": ["openai/x", {"model": "google/y", "id": "z"}]}),
        ("config", {"panel": {"name": "p", "judges": [{"model": "openai/x"}]}}),
        ("config", {"observers": []}),
        ("config", {"observers": {"judges": "candidates", "role": "voting"}}),
        ("panel", {"name": "p", "judges": [{"model": "openai/x", "fallbacks": ["google/y"]}]}),
        ("prompts", ["Hi", {"id": 7, "prompt": "Ho", "tags": "one", "label": "tie"}]),
        ("prompts", {"prompts": [PROMPT]}),
        ("prompts", PROMPT),
        ("prompts", {**PROMPT, "criteria": ["Accuracy", "Clarity"]}),
        ("config", {"criteria": {"mode": "fixed", "items": ["Accuracy", "Clarity"]}}),
    ],
)
def test_short_forms_are_valid(kind, value):
    assert is_valid(kind, value)


def test_the_command_prints_what_ships(capsys):
    assert run(["schema", "panel"]) == 0
    assert json.loads(capsys.readouterr().out) == schema("panel")


def test_a_name_that_is_no_schema_is_answered_by_the_nearest(capsys):
    assert run(["schema", "confg"]) == 2
    assert 'fix: did you mean "config"?' in capsys.readouterr().err


def test_what_init_writes_names_a_schema_beside_it_that_it_fits(tmp_path):
    assert run(["init", str(tmp_path)]) == 0
    for file in (tmp_path / "clash.yaml", tmp_path / "prompts.yaml"):
        text = file.read_text(encoding="utf-8")
        hint = re.match(r"# yaml-language-server: \$schema=(\S+)\n", text)
        beside = json.loads((file.parent / hint[1]).read_text(encoding="utf-8"))
        jsonschema.validate(yaml.safe_load(text), beside)


def test_checked_files_are_told_apart_by_their_keys(tmp_path, capsys):
    assert run(["init", str(tmp_path)]) == 0
    panel = assets.panel("baseline")
    votes = assets.path("datasets", "simulated-votes.jsonl")
    files = [tmp_path / "clash.yaml", tmp_path / "prompts.yaml", panel, votes]
    capsys.readouterr()
    assert run(["schema", "--check", *map(str, files), "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checked"]
    assert list(checks.values()) == ["config", "prompts", "panel", "votes"]
