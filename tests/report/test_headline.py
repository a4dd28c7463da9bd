"""The answer in one line: short enough, in words, and never surer than the analysis."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.labelled import pairs, run
from analysis.simulated_runs import run_data
from clash.analysis.compare import compare
from clash.analysis.findings import compute_findings
from clash.analysis.retest import retest
from clash.pages.names import short_names
from clash.records import Label
from clash.report.headline import (
    MOST_CHARACTERS,
    comparison_headline,
    retest_headline,
    run_headline,
)

WIN, LOSS, TIE = [["ada"], ["bob"]], [["bob"], ["ada"]], [["ada", "bob"]]


def of_outcomes(wins, losses, ties=0, names=("ada", "bob")):
    new = dict(zip(("ada", "bob"), names, strict=True))
    rows = [WIN] * wins + [LOSS] * losses + [TIE] * ties
    return run_data([{"x": [[new[n] for n in g] for g in row]} for row in rows], names)


@pytest.mark.parametrize(
    ("outcomes", "shape", "start"),
    [
        ((18, 2), "winner", "ada wins: 90% [70, 97] against bob (p < 0.001)."),
        (
            (6, 6, 2),
            "open",
            "No clear winner: ada and bob are level (6 wins each, 2 ties; p = 1.0).",
        ),
        ((8, 5), "open", "No clear winner: ada leads bob, but not significantly (p = 0.58)."),
        ((1001, 1000), "equal", "As good as equal: ada and bob (50% [48, 52] win rate)."),
    ],
)
def test_an_eval_names_the_winner_or_says_that_there_is_none(outcomes, shape, start):
    headline = run_headline(compute_findings(of_outcomes(*outcomes)))
    assert (headline.shape, headline.text) == (shape, start)


def test_nothing_judged_is_no_decision():
    headline = run_headline(compute_findings(run_data([{"x": None}] * 3, ["ada", "bob"])))
    assert headline.shape == "nothing"
    assert headline.text == "No decision: none of 3 items could be judged."


def test_a_stopped_run_names_no_winner_however_far_ahead_one_is():
    findings = compute_findings(of_outcomes(18, 0))
    stopped_findings = replace(
        findings, status="partial", coverage=replace(findings.coverage, not_run=12, items=30)
    )
    headline = run_headline(stopped_findings, "latest")
    assert headline.text == "Stopped after 18 of 30 items. So far ada is ahead; no decision yet."
    assert headline.next_steps[0].command == "clash resume latest"


def test_labels_that_contradict_the_panel_are_the_second_line():
    data = of_outcomes(12, 0)
    labels = [Label(item_id=f"q{i}", annotator="p", winner="bob", time="2026") for i in range(12)]
    few = run_headline(compute_findings(data.with_labels(labels[:9])))
    assert few.text.startswith("ada wins")
    assert few.contradiction == "Human labels disagree: they prefer bob to ada (9 to 0; p = 0.004)."
    enough = run_headline(compute_findings(data.with_labels(labels)))
    assert enough.text == "People would prefer bob to ada: 100% [76, 100], from 12 labels."
    assert enough.contradiction == "The panel disagrees: it prefers ada."
    assert enough.evidence.startswith("By the panel alone, ada wins: 100%")


def test_a_candidate_that_was_never_judged_is_told():
    names = ["ada", "bob", "openai/luna"]
    data = run_data([{"x": WIN}] * 6, names, missing=[(i, "openai/luna") for i in range(6)])
    assert "Never judged: openai/luna." in run_headline(compute_findings(data)).notes


LONG = ("openrouter/anthropic/claude-haiku-5.5-20260901", "openrouter/anthropic/claude-haiku-5.0")


@pytest.mark.parametrize("outcomes", [(18, 2), (6, 6, 2), (8, 5), (1001, 1000)])
def test_long_names_leave_the_headline_short_and_stay_apart(outcomes):
    text = run_headline(compute_findings(of_outcomes(*outcomes, names=LONG))).text
    assert len(text) <= MOST_CHARACTERS
    assert "5.5" in text or "20260901" in text
    assert "5.0" in text


@pytest.mark.parametrize("width", [8, 12, 16, 24])
@pytest.mark.parametrize(
    "names",
    [
        LONG,
        ["openai/gpt-5", "openrouter/openai/gpt-5", "azure/openai/gpt-5"],
        ["a" * 40 + "1" + "b" * 40, "a" * 40 + "2" + "b" * 40],
        ["20261122-080647-quickstart-a6baa3a1", "20261122-080647-quickstart-a6baa3a2"],
    ],
)
def test_two_names_never_look_alike(names, width):
    visible_names = short_names(names, width)
    assert len(set(visible_names.values())) == len(names)


def test_validate_answers_whether_the_panel_can_be_trusted(tmp_path):
    rows = pairs([("a", "aaa")] * 15 + [("b", "aaa")] * 5)
    headline = run_headline(compute_findings(run(tmp_path, rows)))
    assert headline.text == "The panel agrees with people on 15 of 20 pairs (75.0% [53, 89])."
    assert (
        "No better than picking the answer with the densest wording"
        in f"{headline.evidence}{headline.contradiction}"
    )


def test_rerun_answers_whether_the_panel_repeats_itself(tmp_path):
    first, second = (
        [("a", "aaa")] * 18 + [("b", "aab")] * 2,
        [("a", "aaa")] * 18 + [("b", "abb")] * 2,
    )
    runs = [run(tmp_path, pairs(first), name="one"), run(tmp_path, pairs(second), name="two")]
    headline = retest_headline(retest(runs))
    assert headline.text.startswith("The panel repeats itself on 90% of items [70, 97] (kappa ")
    assert headline.evidence == "Same verdict twice 18 · changed 2, of them 2 were split decisions"


def test_compare_answers_whether_one_run_is_better(tmp_path):
    def without_labels(rows):
        return [{**item, "label": None} for item in pairs(rows)]

    before = [("a", "aaa")] * 10 + [("a", "bbb")] * 20
    after = [("a", "aaa")] * 22 + [("a", "bbb")] * 8
    runs = [
        run(tmp_path, without_labels(rows), name=name, kind="eval")
        for name, rows in (("monday", before), ("friday", after))
    ]
    headline = comparison_headline(compare(runs))
    assert headline.text.startswith("a gains 40 points from monday to friday [")
    assert headline.evidence == "Win rate of a: 33%, then 73% (paired, 30 items)"


def test_what_a_headline_states_is_not_repeated_below_it():
    headline = run_headline(compute_findings(of_outcomes(18, 2)))
    assert headline.evidence == "18 wins, 2 losses."
    level = run_headline(compute_findings(of_outcomes(8, 5)))
    assert level.evidence == "ada against bob: 8 wins, 5 losses; 62% [36, 82] win rate."


def test_a_run_without_a_verdict_says_why_and_a_stopped_one_that_it_stopped():
    findings = compute_findings(run_data([{"x": None}] * 3, ["ada", "bob"]))
    causes = dict.fromkeys(["every judge failed"], 3)
    failed_findings = replace(findings, coverage=replace(findings.coverage, abstained=causes))
    assert run_headline(failed_findings).evidence == "Why: every judge failed (3)."
    stopped_findings = replace(
        findings, status="partial", coverage=replace(findings.coverage, not_run=3)
    )
    assert run_headline(stopped_findings).text == "Stopped after 0 of 3 items. No decision yet."
