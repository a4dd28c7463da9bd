"""The fixture ``clash`` and its marker, in test suites of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import clash

pytest_plugins = ["pytester"]

PLUGIN = "clash.integrations.pytest_plugin"
IS_INSTALLED = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
PROMPTS = """
PROMPTS = [
    {
        "id": f"q{n}",
        "prompt": f"Name {n} colours of the rainbow and say where each stands",
        "responses": {
            "mine": "Red, orange and yellow are colours of the rainbow and stand in this order.",
            "theirs": "Red",
        },
    }
    for n in range(1, 13)
]
"""


@pytest.fixture(scope="module", autouse=True)
def _library_is_loaded(tmp_path_factory):
    """A suite inside this process forgets the modules that it loaded; numpy loads only once."""
    prompts = [{"prompt": "Name a colour", "responses": {"mine": "Red it is", "theirs": "No"}}]
    out = tmp_path_factory.mktemp("loaded")
    run = clash.evaluate(prompts, panel="baseline", out=out)
    clash.gate(run, {"win_rate.mine": 0.0})
    clash.compare(run, run)


@pytest.fixture
def suite(pytester: pytest.Pytester):
    """Run tests that are given as source, with strict markers."""
    pytester.makeini("[pytest]\naddopts = --strict-markers\n")

    def run(source: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(f"import pytest\n{PROMPTS}\n{source}")
        plugin = () if IS_INSTALLED else ("-p", PLUGIN)
        return pytester.runpytest_inprocess("-p", "no:randomly", *plugin, *arguments)

    return run


def test_a_run_that_holds_its_thresholds_passes(suite):
    suite("""
@pytest.mark.clash(min={"win_rate.mine": 0.5}, max={"cost": 1, "win_rate.theirs": 0.5})
def test_mine_is_better(clash, tmp_path):
    run = clash.evaluate(PROMPTS)
    assert run.winner == "mine"
    assert run.path.parent == tmp_path / "runs"
    assert run.cost_usd == 0
    assert clash.runs == [run]
""").assert_outcomes(passed=1)


def test_the_example_of_the_page_passes(suite):
    page = (Path(__file__).parents[2] / "docs" / "integrations.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    suite(example).assert_outcomes(passed=1)


def test_a_run_that_misses_a_threshold_fails_with_its_table_and_folder(suite):
    result = suite("""
@pytest.mark.clash(min={"win_rate.theirs": 0.5, "decided": 0.1})
def test_theirs_is_better(clash):
    clash.evaluate(PROMPTS, run_id="first")
""")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "Gate on first: failed: 1 of 3 rules" in text
    assert "win_rate.theirs: 0 [" in text
    assert "against at least 0.5: fails" in text
    assert f"{Path('runs') / 'first'}  (complete)" in text
    assert "Traceback" not in text


def test_the_point_may_be_held_to_the_threshold_instead_of_the_bound(suite):
    source = """
@pytest.mark.clash(min={"win_rate.mine": 1}, on="ON")
def test_mine_is_better(clash):
    clash.evaluate(PROMPTS)
"""
    suite(source.replace("ON", "point")).assert_outcomes(passed=1)
    suite(source.replace("ON", "bound")).assert_outcomes(failed=1)


def test_every_run_of_a_test_is_held_and_one_figure_may_lie_between_two_limits(suite):
    result = suite("""
@pytest.mark.clash(min={"win_rate.mine": 0.5}, max={"win_rate.mine": 1})
def test_both(clash):
    clash.evaluate(PROMPTS, run_id="good")
    worse = [{**p, "responses": {"mine": "Red", "theirs": p["responses"]["mine"]}} for p in PROMPTS]
    clash.evaluate(worse, run_id="bad")
""")
    result.assert_outcomes(failed=1)
    assert "Gate on bad: failed" in result.stdout.str()
    assert "Gate on good" not in result.stdout.str()


def test_without_the_marker_nothing_is_held_and_a_failed_test_names_its_runs(suite):
    result = suite("""
def test_free(clash):
    clash.evaluate(PROMPTS)

def test_by_hand(clash):
    run = clash.load(clash.evaluate(PROMPTS, run_id="by-hand").id)
    other = clash.evaluate(PROMPTS, None, ["baseline/longest"])
    assert clash.compare(run, other).to_dict()["pairs"]
    assert not clash.gate(run, {"win_rate.theirs": 0.5})
    assert clash.gate(run, {"win_rate.theirs": 0.5})
""")
    result.assert_outcomes(passed=1, failed=1)
    assert "by-hand  (complete)" in result.stdout.str()


@pytest.mark.parametrize(
    ("mark", "arguments", "message"),
    [
        ("", "clash", "names no threshold"),
        ('min={"cost": "1"}', "clash", "expected numbers by figure"),
        ('min=["cost"]', "clash", "expected numbers by figure"),
        ('most={"cost": 1}', "clash", "takes min, max and on, not most"),
        ('max={"cost": 1}, on="lower"', "clash", "expected 'bound' or 'point'"),
        ('max={"cost": 1}', "", "does not use the fixture"),
    ],
)
def test_a_marker_that_holds_nothing_is_refused_before_the_test_runs(
    suite, mark, arguments, message
):
    result = suite(f"""
@pytest.mark.clash({mark})
def test_marked({arguments}):
    raise SystemExit("ran")
""")
    result.assert_outcomes(errors=1)
    assert message in result.stdout.str()
    assert "fix: " in result.stdout.str()


def test_a_marked_test_without_a_run_or_with_an_unknown_figure_fails(suite):
    result = suite("""
@pytest.mark.clash(max={"cost": 1})
def test_none(clash):
    pass

@pytest.mark.clash(min={"win_rate:mine": 0.5})
def test_unknown(clash):
    clash.evaluate(PROMPTS)
""")
    result.assert_outcomes(failed=2)
    assert "the test made no run" in result.stdout.str()
    assert "no figure is called 'win_rate:mine'" in result.stdout.str()
    assert 'did you mean "win_rate.mine"?' in result.stdout.str()


def test_a_marked_test_that_fails_by_itself_shows_its_own_failure(suite):
    result = suite("""
@pytest.mark.clash(min={"win_rate.theirs": 0.5})
def test_own(clash):
    clash.evaluate(PROMPTS)
    assert 1 == 2
""")
    result.assert_outcomes(failed=1)
    assert "assert 1 == 2" in result.stdout.str()
    assert "Gate on" not in result.stdout.str()


def test_runs_land_in_the_folder_that_the_command_line_names(suite, tmp_path):
    result = suite(
        "def test_kept(clash):\n    clash.evaluate(PROMPTS, run_id='kept')\n",
        "--clash-runs",
        str(tmp_path / "kept-runs"),
    )
    result.assert_outcomes(passed=1)
    assert (tmp_path / "kept-runs" / "kept" / "manifest.json").is_file()


def test_functions_of_the_test_answer_and_judge_without_a_key(suite):
    suite("""
@pytest.mark.clash(min={"win_rate.mine": 0.5}, max={"cost": 0})
def test_functions(clash):
    def mine(prompt):
        return f"An answer that is long enough: {prompt}"

    def longest(prompt, responses):
        return max(responses, key=lambda label: len(responses[label]))

    prompts = [p["prompt"] for p in PROMPTS]
    clash.evaluate(prompts, {"mine": mine, "theirs": lambda prompt: "No"}, [longest])
""").assert_outcomes(passed=1)


def test_nothing_is_spent_where_no_cap_is_set(suite, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0f1e2d3c4b5a69788796a5b4c3d2e1f0")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9")
    source = """
def test_paid(clash):
    run = clash.evaluate(PROMPTS, panel=["openai/gpt-6-luna"], criteria="none")
    assert run.cost_usd == 0
    assert run.status != "complete"
    assert clash.max_cost is None
"""
    suite(source).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("cap", "outcome"), [("0.5", "passed"), ("a lot", "errors"), ("0", "errors")]
)
def test_the_cap_of_a_run_is_that_of_the_ini_file(suite, pytester, cap, outcome):
    pytester.makeini(f"[pytest]\naddopts = --strict-markers\nclash_max_cost = {cap}\n")
    result = suite("""
def test_cap(clash):
    run = clash.evaluate(PROMPTS)
    assert run.manifest.config["limits"]["max_cost"] == 0.5
""")
    result.assert_outcomes(**{outcome: 1})
    if outcome == "errors":
        assert "fix: clash_max_cost = 0.50" in result.stdout.str()


def test_async_tests_await_their_runs(suite):
    suite("""
def test_awaited(clash):
    import anyio
    run = anyio.run(clash.evaluate_async, PROMPTS)
    assert run.winner == "mine"
    assert clash.runs == [run]
""").assert_outcomes(passed=1)


def test_loading_the_plugin_costs_next_to_nothing():
    code = (
        "import sys, time, pytest; before = set(sys.modules); start = time.process_time();"
        f"import {PLUGIN}; spent = time.process_time() - start;"
        "print(spent); print(*sorted(set(sys.modules) - before))"
    )
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    seconds, modules = [], ""
    for _ in range(3):
        result = subprocess.run(
            [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
        )
        first, modules = result.stdout.splitlines()
        seconds.append(float(first))
    assert min(seconds) < 0.02
    assert set(modules.split()) <= {
        "clash",
        "clash.version",
        "clash.integrations",
        "clash.integrations.pytest_plugin",
    }
