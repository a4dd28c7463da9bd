"""``clash audit``: each flaw put into votes by hand is found, with its rows and the corrected headline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clash.analysis.published import PublishedFigures
from clash.cli.app import run
from clash.errors import ConfigError, InputError, StatisticsError
from clash.pipeline.published import audit_published, parse_figures

AGENT_CLASH = Path(__file__).resolve().parents[2] / "../shared/data/agent-clash"
NOTHING = PublishedFigures()


def lines(n=20, right=15, **more):
    """Two judges who agree on each of n pairs, and are right on the first ``right``."""
    return [
        {
            "item": f"q{i}",
            "judge": judge,
            "vote": "AB"[(i % 2) ^ (i >= right)],
            "label": "AB"[i % 2],
        }
        | more
        for i in range(n)
        for judge in ("ann", "ben")
    ]


def audit_of(folder, rows, figures=NOTHING):
    file = folder / "votes.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (result,) = audit_published(file, figures)
    return result, {flaw.name: flaw for flaw in result.flaws}


def test_clean_votes_have_only_the_missing_baseline(tmp_path):
    result, flaws = audit_of(tmp_path, lines())
    assert [name for name, flaw in flaws.items() if flaw.status == "present"] == ["baselines"]
    assert result.published_headline.estimate == result.corrected_headline.estimate == 0.75
    assert (flaws["repeats"].status, flaws["kappa"].status) == ("unknown", "unknown")


def test_repeats_of_a_pair_under_another_name_count_once(tmp_path):
    rows = lines()
    for row in rows:
        number = int(row["item"][1:])
        # The last two pairs, which are wrong, repeat the one before, with the responses swapped.
        item_number = number if number < 18 else 17
        texts = [f"a{item_number}", f"b{item_number}"][:: -1 if number == 19 else 1]
        row |= {"prompt": f"P{item_number}", "response_a": texts[0], "response_b": texts[1]}
    result, flaws = audit_of(tmp_path, rows)
    assert flaws["repeats"].status == "present"
    (group,) = flaws["repeats"].rows
    assert group.count(" = ") == 2
    assert result.corrected_headline.estimate == pytest.approx(15 / 18)
    assert result.published_headline.estimate == 0.75


def test_a_pair_that_was_evaluated_again_counts_with_its_last_evaluation(tmp_path):
    again = [row | {"vote": row["label"]} for row in lines() if row["item"] in ("q18", "q19")]
    result, flaws = audit_of(tmp_path, [*lines(), *again])
    assert len(flaws["retries"].rows) == 2
    assert "votes.jsonl:37 (q18)" in flaws["retries"].rows
    assert result.published_headline.estimate == pytest.approx(17 / 22)
    assert result.corrected_headline.estimate == pytest.approx(17 / 20)


def test_declared_repeats_are_no_retries_but_share_a_question(tmp_path):
    rows = [row | {"repeat": n, "group": row["item"]} for n in range(3) for row in lines()]
    result, flaws = audit_of(tmp_path, rows)
    assert flaws["retries"].status == "absent"
    assert flaws["pseudo-replication"].status == "present"
    assert result.published_headline.n == 60
    single, _ = audit_of(tmp_path, lines())
    assert result.corrected_headline.low == pytest.approx(single.corrected_headline.low, abs=1e-6)
    assert result.corrected_headline.high == pytest.approx(single.corrected_headline.high, abs=1e-6)


def test_a_split_panel_that_goes_to_the_first_slot_is_worth_half(tmp_path):
    rows = lines(right=20)
    for row in rows:
        number = int(row["item"][1:])
        row["verdict"] = row["vote"]
        if number < 8:
            row["vote"] = "A" if row["judge"] == "ann" else "B"
            row["verdict"] = "A"
            row["first"] = "A"
    result, flaws = audit_of(tmp_path, rows)
    assert flaws["slot-ties"].status == "present"
    assert len(flaws["slot-ties"].rows) == 8
    assert "8 of them the response in the first slot" in flaws["slot-ties"].sentence
    # Three of three is one coin in four.
    _, few = audit_of(tmp_path, [row for row in rows if int(row["item"][1:]) not in range(3, 8)])
    assert few["slot-ties"].status == "unknown"
    result, _ = audit_of(tmp_path, rows)
    # Of the eight, the label is A on four: 16 of 20 as published, and half of eight corrected.
    assert result.published_headline.estimate == pytest.approx(16 / 20)
    assert result.corrected_headline.estimate == pytest.approx(16 / 20)
    lucky = [row | ({"label": "A"} if int(row["item"][1:]) < 8 else {}) for row in rows]
    result, flaws = audit_of(tmp_path, lucky)
    assert (result.published_headline.estimate, result.corrected_headline.estimate) == (
        1.0,
        pytest.approx(16 / 20),
    )


def test_failures_that_are_left_out_come_back_as_misses(tmp_path):
    rows = [row | ({"vote": None} if int(row["item"][1:]) >= 16 else {}) for row in lines(right=16)]
    result, flaws = audit_of(tmp_path, rows)
    assert flaws["dropped-failures"].status == "present"
    assert len(flaws["dropped-failures"].rows) == 4
    assert (result.published_headline.estimate, result.corrected_headline.estimate) == (1.0, 0.8)
    _, flaws = audit_of(tmp_path, rows, PublishedFigures(concordance=0.8))
    assert flaws["dropped-failures"].status == "absent"


def test_kappa_that_is_agreement_again_is_told_from_cohens(tmp_path):
    # 18 of 20 labels are A; a panel that always says A agrees on 90% and has kappa 0.
    rows = [row | {"vote": "A", "label": "AB"[int(row["item"][1:]) >= 18]} for row in lines()]
    result, flaws = audit_of(tmp_path, rows, PublishedFigures(0.9, 0.8))
    assert flaws["kappa"].status == "present"
    assert result.kappa.interval.estimate == pytest.approx(0)
    always = next(line for line in result.baselines if line.name == "always A")
    assert always.rate.estimate == 0.9
    _, flaws = audit_of(tmp_path, rows, PublishedFigures(0.9, 0.1))
    assert flaws["kappa"].status == "absent"


def test_a_run_of_ours_is_audited_pair_by_pair(tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path), "--run-id", "demo", "-q"]) == 0
    capsys.readouterr()
    assert run(["audit", str(tmp_path / "demo"), "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["evaluations"]
    flaws = {flaw["name"]: flaw["status"] for flaw in result["flaws"]}
    assert flaws["baselines"] == flaws["slot-ties"] == flaws["retries"] == "absent"
    # Four candidates an item: its pairs share it, and its label is one person's.
    assert flaws["pseudo-replication"] == "present"
    assert result["corrected_headline"]["n"] > 25


def test_pages_of_both_orders_and_of_each_judge_are_read_as_they_were_shown(tmp_path):
    prompts = Path(__file__).resolve().parents[2] / "datasets/quickstart.yaml"
    audits = []
    for name, options in (("once", []), ("both", ["--both-orders"]), ("own", ["--per-judge"])):
        argv = ["eval", str(prompts), "--panel", "baseline", "--out", str(tmp_path), "-q", "--yes"]
        assert run([*argv, "--run-id", name, *options]) == 0
        (audit,) = audit_published(tmp_path / name, NOTHING)
        audits.append((audit.corrected_headline.estimate, audit.kappa.interval.estimate))
    # These judges read texts, whatever their order, and say the same of each page.
    assert audits[0] == audits[1] == audits[2]


@pytest.mark.skipif(not AGENT_CLASH.is_dir(), reason="the published results are not beside us")
def test_the_first_papers_results():
    audits = {audit.name: audit for audit in audit_published(AGENT_CLASH, NOTHING)}
    mt_bench = audits["mt-bench"]
    flaws = {flaw.name: flaw for flaw in mt_bench.flaws}
    assert len(flaws["repeats"].rows) == 5
    assert "mtbench-033 = mtbench-077" in flaws["repeats"].rows
    assert flaws["kappa"].status == "present"
    assert (mt_bench.corrected_headline.n, round(mt_bench.corrected_headline.estimate * 95)) == (
        95,
        84,
    )
    longer = next(line for line in mt_bench.baselines if line.name == "the longer response")
    assert longer.rate.estimate == pytest.approx(0.705, abs=0.01)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty|no vote|no record"),
        ("{", "votes.jsonl"),
        ('{"item": "a", "judge": "b", "vote": "Q", "label": "A"}\n', "'Q' is no side"),
        ('{"item": "a", "judge": "b", "vote": "A"}\n', "no record has a label"),
        ('{"judge": "b", "vote": "A"}\n', "item"),
    ],
)
def test_bad_input_is_an_error(tmp_path, text, problem):
    (tmp_path / "votes.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises((InputError, StatisticsError), match=problem):
        audit_published(tmp_path / "votes.jsonl", NOTHING)
    with pytest.raises(InputError, match="no such file"):
        audit_published(tmp_path / "nowhere.jsonl", NOTHING)


@pytest.mark.parametrize("entry", ["kapa=0.3", "kappa=much", "concordance=88", "n=0", "kappa"])
def test_a_figure_that_cannot_be_is_refused(entry):
    with pytest.raises(ConfigError):
        parse_figures([entry])
