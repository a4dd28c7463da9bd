"""What a user typed and wrote, resolved: the line over the environment over the file over defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from clash.cli.app import run
from clash.collect.resolve import load_environ, read_config, resolve
from clash.config import Config
from clash.errors import ConfigError
from clash.store.folder import RunFolder

KEY = {"OPENROUTER_API_KEY": "k" * 20}
NATIVE = {"OPENAI_API_KEY": "k" * 20, "ANTHROPIC_API_KEY": "k" * 20, "GEMINI_API_KEY": "k" * 20}


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("CLASH_SEED", "CLASH_PANEL", "CLASH_OUT", *KEY, *NATIVE, "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def wrote(text, name="clash.yaml"):
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text, encoding="utf-8")
    return Path(name)


# -- what wins --------------------------------------------------------------------------------------


def test_the_file_is_read_by_itself_and_the_line_wins_over_it():
    wrote("seed: 7\nlimits: {concurrency: 5, timeout_s: 9}\n")
    assert read_config(None, {}).seed == 7
    config = read_config(None, {"seed": 8, "limits.concurrency": 6, "limits.max_cost": None})
    assert (config.seed, config.limits.concurrency, config.limits.timeout_s) == (8, 6, 9)
    assert config.limits.max_cost is None
    assert read_config(None, {}, ignore_file=True).seed == 42


@pytest.mark.parametrize(
    ("words", "variable", "expected_value"),
    [([], None, 7), ([], "9", 9), (["--seed", "11"], "9", 11)],
    ids=["file", "environment", "line"],
)
def test_the_environment_stands_between(monkeypatch, words, variable, expected_value):
    wrote("seed: 7\n")
    wrote("- {prompt: Hi, responses: {a: x y z, b: y}}\n", "prompts.yaml")
    if variable is not None:
        monkeypatch.setenv("CLASH_SEED", variable)
    assert run(["eval", "prompts.yaml", "--run-id", "r", "-q", *words]) == 0
    assert RunFolder.open("r").manifest().seeds == {"seed": expected_value}


def test_paths_in_a_file_are_looked_up_beside_it_too():
    wrote("- {prompt: Hi, responses: {a: x, b: y}}\n", "deep/prompts.yaml")
    wrote("name: mine\njudges: [{model: baseline/longest}]\n", "deep/panel.yaml")
    file = wrote("prompts: prompts.yaml\npanel: panel.yaml\n", "deep/clash.yaml")
    config = read_config(file, {})
    assert config.prompts == "deep/prompts.yaml"
    assert resolve(config, {}).panel.name == "mine"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("limts: {}\n", 'clash.yaml:1: unknown key "limts"'),
        ("seed: 1\nlimits:\n  max_cost: -3\n", "clash.yaml:3: limits.max_cost"),
        ("criteria: {mode: none, items: [{name: Wit, weight: 1}]}\n", "clash.yaml:1: criteria"),
        ("candidates: [{model: gpt}]\n", r"clash.yaml:1: candidates\[0\].model"),
        ("candidates: [openai/a, openai/a]\n", "two candidates have the id"),
        ("- a list\n", "clash.yaml:1: expected keys and values"),
    ],
)
def test_a_wrong_file_is_named_by_line_and_field(text, where):
    wrote(text)
    with pytest.raises(ConfigError, match=where):
        read_config(None, {})


def test_an_empty_file_and_no_file_are_the_defaults():
    assert read_config(None, {}) == Config()
    wrote("# nothing yet\n")
    assert read_config(None, {}) == Config()


# -- who sits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "panel", "note"),
    [
        ({}, "baseline", "no API key is set"),
        ({"OPENAI_API_KEY": "  "}, "baseline", "no API key is set"),
        (KEY, "supreme-court", "panel: supreme-court"),
        (NATIVE, "supreme-court-native", "panel: supreme-court-native"),
        ({"OPENAI_API_KEY": "k" * 20}, "baseline", "no shipped panel has all its keys"),
    ],
    ids=["none", "blank", "openrouter", "native", "one"],
)
def test_without_a_panel_the_keys_decide_and_it_is_said(environ, panel, note):
    resolution = resolve(Config(), environ)
    assert resolution.panel.name == panel
    assert any(line.startswith(note) for line in resolution.notes)


def test_a_panel_that_is_named_sits_whatever_keys_there_are():
    resolution = resolve(Config(panel="baseline"), KEY)
    assert resolution.panel.name == "baseline"
    assert resolution.notes == []


# -- who writes criteria ----------------------------------------------------------------------------


def criteria(config, environ=KEY, panel="name: p\njudges: [{model: baseline/longest}]\n"):
    wrote(panel, "panel.yaml")
    return resolve(Config.model_validate({"panel": "panel.yaml", **config}), environ)


OWN = "name: p\njudges: [{model: baseline/longest}]\ncriteria: openrouter/own/writer\n"


def test_the_configurations_model_comes_before_the_panels_and_that_before_the_default():
    own_config = {"criteria": {"model": "openrouter/my/writer"}}
    assert criteria(own_config, panel=OWN).criteria_ref.model == "openrouter/my/writer"
    assert criteria({}, panel=OWN).criteria_ref.model == "openrouter/own/writer"
    default = criteria({}, NATIVE).criteria_ref
    assert (default.options.reasoning, default.options.temperature) == ("low", None)
    assert default.options.max_tokens == 2000
    assert criteria(own_config).criteria_ref.options.temperature == 0.3


@pytest.mark.parametrize("mode", ["none", "fixed"])
def test_nobody_is_asked_where_no_criteria_are_to_be_written(mode):
    rubric = criteria({"criteria": {"mode": mode}}, panel=OWN)
    assert (rubric.criteria_ref, rubric.criteria_why, rubric.notes) == (None, None, [])


def test_a_writer_without_a_key_is_named_with_its_variable():
    rubric = criteria({}, {}, panel=OWN)
    assert rubric.criteria_ref is None
    assert rubric.criteria_why == "openrouter/own/writer needs OPENROUTER_API_KEY"
    assert any("the four generic ones" in note for note in rubric.notes)


# -- .env -------------------------------------------------------------------------------------------


def test_what_is_set_wins_over_the_file_of_variables():
    wrote("A=file\nB='quoted'\nC=\nD=${A}\n", ".env")
    assert load_environ({"A": "set"}, None) == {"A": "set", "B": "quoted", "D": "${A}"}
    wrote("E=other\n", "other.env")
    assert load_environ({}, Path("other.env")) == {"E": "other"}
    with pytest.raises(ConfigError, match="no such file"):
        load_environ({}, Path("none.env"))
    wrote("KEY=" + "x" * 200_000, "big.env")
    with pytest.raises(ConfigError, match="more than 100,000 characters"):
        load_environ({}, Path("big.env"))
    Path(".env").unlink()
    assert load_environ({"A": "set"}, None) == {"A": "set"}
