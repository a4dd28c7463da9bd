"""What a command shows when it is done: the answer first, in 20 lines of 80 columns."""

from __future__ import annotations

import contextlib
import io
import re

import pytest
from rich.cells import cell_len

from clash.cli.app import run
from clash.report.screens import IntervalRow, Screen, interval_chart
from clash.stats.intervals import wilson
from golden.record import QUICKSTART, write_inputs

SCREENS = {
    "demo": (
        ["demo", "--run-id", "demo"],
        "No clear winner: people would prefer aspen to dahlia on 66%",
    ),
    "eval": (
        ["eval", QUICKSTART, "-n", "12", "--run-id", "monday", "--seed", "3"],
        "No clear winner",
    ),
    "validate": (
        ["validate", "pairs.jsonl", "--panel", "baseline", "--run-id", "pairs"],
        "The panel agrees with people on 5 of 14 pairs (35.7% [16, 62]).",
    ),
    "rerun": (
        ["rerun", "demo"],
        "The panel repeats itself on 100% of items [89, 100] (kappa 1.00).",
    ),
    "resume": (["resume", "demo"], "No clear winner"),
    "report": (["report", "pairs", "--no-write"], "The panel agrees with people on 5 of 14 pairs"),
    "compare": (
        ["compare", "monday", "demo"],
        "monday and demo agree on each of the 12 items that both have.",
    ),
}


def said(words: list[str], width: int | None) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("COLUMNS", raising=False)
        if width is not None:
            patch.setenv("COLUMNS", str(width))
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            assert run(words) == 0
    return out.getvalue()


@pytest.fixture(scope="module")
def screens(tmp_path_factory):
    """What each command prints at 80 columns, and a folder in which it has run."""
    folder = tmp_path_factory.mktemp("screens")
    write_inputs(folder)
    with contextlib.chdir(folder):
        yield {name: said(words, 80) for name, (words, _) in SCREENS.items()}


@pytest.mark.parametrize("name", SCREENS)
def test_the_answer_comes_first_and_the_screen_has_20_lines(screens, name):
    lines = screens[name].splitlines()
    assert " ".join(lines[:2]).startswith(SCREENS[name][1])
    assert len(lines) <= 20
    assert [line for line in lines if cell_len(line) > 80] == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("name", ["report", "compare"])
@pytest.mark.parametrize("width", [60, 100, None])
def test_other_widths_say_the_same(screens, name, width):
    figures = re.findall(r"\d+%", screens[name])
    other_output = said(SCREENS[name][0], width)
    assert re.findall(r"\d+%", other_output) == figures
    assert max(cell_len(line) for line in other_output.splitlines()) <= (width or 200)


@pytest.mark.parametrize("name", ["report", "compare"])
def test_quiet_is_one_line_and_verbose_is_everything(screens, name):
    words = SCREENS[name][0]
    quiet = said([*words, "-q"], 80)
    assert quiet.count("\n") == 1
    assert quiet.startswith(SCREENS[name][1])
    assert said([*words, "-v"], 80).count("\n") > 40


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (["diagnose", "demo"], "3 judges of 4 are right on"),
        (["dependence", "demo", "--bootstrap", "20"], "4 judges are worth at most"),
        (["calibrate", "demo", "--splits", "2", "--jobs", "1"], "Calibrated with "),
        (["aggregate", "demo"], "expert-pool is right on "),
        (["study", "ising", "demo", "--trials", "2", "--methods", "majority"], "Clearly right"),
    ],
)
def test_quiet_statistics_are_one_line(screens, words, answer):
    quiet = said([*words, "-q"], None)
    assert quiet.count("\n") == 1
    assert quiet.startswith(answer)


def test_a_quiet_gate_is_one_line_whether_it_passes_or_fails(screens, capsys):
    for rule, code, outcome in (
        ("coverage=0.1", 0, "passed"),
        ("unanimity=0.9", 1, "failed: 1 of 2 rules"),
    ):
        assert run(["gate", "demo", "--min", rule, "-q"]) == code
        assert capsys.readouterr().out == f"Gate on demo: {outcome}\n"


def test_the_demo_says_that_labels_contradict_the_panel(screens):
    assert "The panel puts birch first; labels prefer aspen" in screens["demo"]
    assert "clash init" in screens["demo"]


def test_validate_shows_people_panel_and_a_plain_rule_on_one_scale(screens):
    rows = [line for line in screens["validate"].splitlines() if "●" in line]
    assert [row.split("  ")[1] for row in rows] == ["panel of 4", "best judge", "longest answer"]


@pytest.mark.parametrize("width", [60, 80, None])
def test_the_list_of_runs_has_whole_ids_times_and_headlines(screens, width):
    text = said(["runs"], width)
    lines = text.splitlines()
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d  demo  ", text)
    assert "No clear winner: people would prefer aspen" in " ".join(text.split())
    assert "runs in runs; times in UTC" in lines[0]
    assert width is None or max(map(cell_len, lines)) <= width
    order = [name for name in ("demo", "monday", "pairs") if f"  {name} " in text]
    assert order == sorted(order, key=lambda name: text.index(f"  {name} "))


def test_a_rerun_without_a_change_sends_nobody_to_changed_items(screens):
    assert "changed 0" in screens["rerun"]
    assert "items that changed" not in screens["rerun"]


def test_names_with_control_characters_leave_a_chart_straight():
    names = ["a\u202eb", "plain", "\x1b[31mred"]
    rows = [IntervalRow(name, wilson(3, 5, 0.95)) for name in names]
    lines = interval_chart(rows, 80, "caption", reference=0.5)
    texts = ["".join(piece for piece, _ in line) for line in lines]
    assert len({text.index("●") for text in texts if "●" in text}) == 1


def test_a_part_of_a_fact_is_not_broken_over_two_lines():
    screen = Screen(60)
    screen.fact(
        "Panel vs. people", "100% agree [87, 100] · the baseline structure 100% · 25 labels"
    )
    assert "25 labels" in "".join(piece for piece, _ in screen.lines[-1])
