"""Diagnosis on votes of known making, on real panels, and where there is little to diagnose."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from clash.analysis.diagnosis import diagnose
from clash.analysis.diagnosis.judge_quality import judge_facts, rest_of_panel
from clash.analysis.texts import Texts
from clash.errors import StatisticsError
from clash.votes import VoteRow, Votes, encode, read_votes

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "votes"
real = pytest.mark.skipif(not DATA.exists(), reason="../shared/data is not there")
WORDS = {1.0: "A", 0.5: "tie", 0.0: "B"}
PILOT = {"claude-sonnet-4-6": 0.444, "deepseek-v3p2": 0.635, "gpt-4o": 0.852}


def _votes(
    n: int,
    judges: dict[str, tuple[float, float]],
    *,
    seed: int = 0,
    labels: bool = False,
    slot: float = 0.0,
) -> Votes:
    """``judges``: tie rate and accuracy; ``slot`` how often the first judge takes slot A anyway."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        truth = float(rng.random() < 0.5)
        page_order = "swap" if rng.random() < 0.5 else "orig"
        for at, (name, (tie, right)) in enumerate(judges.items()):
            vote = truth if rng.random() < right else 1 - truth
            if at == 0 and rng.random() < slot:
                vote = 1.0 if page_order == "orig" else 0.0
            vote = 0.5 if rng.random() < tie else vote
            rows.append(
                VoteRow(
                    f"q{i}",
                    name,
                    WORDS[vote],
                    label=WORDS[truth] if labels else None,
                    family=name,
                    presentation=page_order,
                )
            )
    return encode(rows)


def _do(findings) -> dict[str, str]:
    return {
        recommendation.judge: recommendation.action for recommendation in findings.recommendations
    }


def test_pilot_judge_table_comes_out_of_votes_simulated_to_it() -> None:
    """Exactly 44.4, 63.5 and 85.2% ties of 189 ballots each: 567 ballots, 64.4% ties."""
    rng = np.random.default_rng(0)
    rows = []
    for judge, rate in PILOT.items():
        tied = np.arange(189) < round(189 * rate)
        for i, tie in enumerate(rng.permutation(tied)):
            vote = "tie" if tie else "AB"[int(rng.random() < 0.4)]
            rows.append(VoteRow(f"r{i % 28}-{i // 28}", judge, vote, group=f"r{i % 28}"))
    diagnosis = diagnose(encode(rows), candidates=4)
    ties = {judge.judge: round(100 * judge.ties.estimate, 1) for judge in diagnosis.judges}
    assert ties == {"claude-sonnet-4-6": 44.4, "deepseek-v3p2": 63.5, "gpt-4o": 85.2}
    assert diagnosis.panel.discrimination.estimate == pytest.approx(0.356, abs=5e-4)
    # Table 1.2 with 189 / 28 = 6.75 ballots a run, where it rounds to 7: 3.9, 2.6, 1.0.
    informative = [judge.informative for judge in diagnosis.judges]
    assert informative == pytest.approx([6.75 * 0.556, 6.75 * 0.365, 6.75 * 0.148], abs=0.01)
    assert diagnosis.panel.attenuation == pytest.approx(2.81, abs=0.01)
    standing = {judge.judge: judge for judge in diagnosis.thresholds.judges}["gpt-4o"]
    assert (standing.published, standing.derived) == ("marginally positive", "negative")
    assert not standing.adds  # at the edge of the others: these votes do not tell it
    assert (standing.edge, standing.margin) == (None, None)
    assert _do(diagnosis)["gpt-4o"] == "replace"


def test_a_good_a_noisy_and_an_inverted_judge() -> None:
    panel = {"good": (0.1, 0.85), "fair": (0.1, 0.8), "also": (0.2, 0.85)}
    votes = _votes(400, {**panel, "coin": (0.1, 0.5), "inverted": (0.0, 0.2)}, seed=1, labels=True)
    diagnosis = diagnose(votes)
    assert _do(diagnosis) == {
        "good": "keep", "fair": "keep", "also": "keep", "coin": "replace", "inverted": "replace",
    }  # fmt: skip
    codes = {m.judge: {reason.code for reason in m.reasons} for m in diagnosis.recommendations}
    assert "noise" in codes["coin"]
    assert "inverted" in codes["inverted"]
    saving = {m.judge: m.saving for m in diagnosis.recommendations}
    assert saving["inverted"].saves > saving["coin"].saves > 0
    assert saving["good"] is None


def test_a_judge_that_ties_is_replaced_unless_people_tie_there_too() -> None:
    judges = {"shy": (0.8, 0.9), "bold": (0.1, 0.85), "other": (0.2, 0.85)}
    assert _do(diagnose(_votes(300, judges, seed=2)))["shy"] == "replace"
    rng = np.random.default_rng(5)
    rows = []
    for i in range(300):
        equal = rng.random() < 0.7
        side = "AB"[int(rng.random() < 0.5)]
        label = "tie" if equal else side
        for judge in ("shy", "bold"):
            decides = judge == "bold" or not equal
            rows.append(VoteRow(f"q{i}", judge, side if decides else "tie", label=label))
    diagnosis = diagnose(encode(rows))
    assert _do(diagnosis)["shy"] == "keep"
    assert "equivalence" in {r.code for r in diagnosis.recommendations[1].reasons}


def test_position_bias_is_found_where_orders_vary() -> None:
    judges = {"leaning": (0.0, 0.8), "b": (0.0, 0.85), "c": (0.0, 0.8)}
    votes = _votes(600, judges, seed=3, labels=True, slot=0.5)
    diagnosis = diagnose(votes)
    leaning = diagnosis.judges[[j.judge for j in diagnosis.judges].index("leaning")]
    assert leaning.slots.first.interval.low > 0.6
    assert leaning.slots.pull.low > 0.1
    codes = {m.judge: {r.code for r in m.reasons} for m in diagnosis.recommendations}
    assert "position" in codes["leaning"]
    assert "position" not in codes["b"]


def test_the_rest_leaves_out_the_own_family_but_not_other_people() -> None:
    rows = [
        VoteRow("q", "x1", "A", family="x"), VoteRow("q", "x2", "A", family="x"),
        VoteRow("q", "y", "B", family="y"), VoteRow("q", "p1", "B", family="human"),
        VoteRow("q", "p2", "B", family="human"),
    ]  # fmt: skip
    votes = encode(rows)
    remaining_fields = dict(zip(votes.judges, rest_of_panel(votes)[0], strict=True))
    assert remaining_fields["x1"] == remaining_fields["x2"] == 0
    assert remaining_fields["y"] != remaining_fields["y"]  # two for A, two for B
    assert remaining_fields["p1"] != remaining_fields["p1"]


def test_flips_and_repeats() -> None:
    rows = [
        VoteRow(f"q{i}", "j", vote, presentation=text)
        for i in range(40)
        for text, vote in (("orig", "A"), ("swap", "B" if i < 10 else "A"))
    ]
    facts = judge_facts(encode(rows))[0]
    assert facts.slots.flips.rate.estimate == 0.25
    assert facts.slots.flips.to_first == 10
    rows = [
        VoteRow(f"q{i}", "j", "AB"[r * (i < 4)], repeat=str(r)) for i in range(8) for r in (0, 1)
    ]
    assert judge_facts(encode(rows))[0].consistency.estimate == 0.5


def test_copies_of_one_judge_are_worth_one() -> None:
    """Three identical judges have perfectly correlated errors; three independent ones none."""
    rng = np.random.default_rng(8)
    copies, alone = [], []
    for i in range(400):
        is_right = rng.random(3) < 0.7
        for j in range(3):
            copies.append(VoteRow(f"q{i}", f"j{j}", "A" if is_right[0] else "B", label="A"))
            alone.append(VoteRow(f"q{i}", f"j{j}", "A" if is_right[j] else "B", label="A"))
    assert diagnose(encode(copies)).panel.effective.estimate == pytest.approx(1.0)
    effective = diagnose(encode(alone)).panel.effective
    assert effective.estimate == pytest.approx(3.0, abs=0.35)


@pytest.mark.parametrize("tie", [0.0, 1.0])
def test_no_ties_and_all_ties(tie: float) -> None:
    diagnosis = diagnose(_votes(80, {"a": (tie, 0.8), "b": (tie, 0.8)}), simulate=False)
    assert diagnosis.panel.discrimination.estimate == 1 - tie
    assert math.isinf(diagnosis.panel.attenuation) == (tie == 1)
    assert set(_do(diagnosis).values()) == ({"replace"} if tie else {"keep"})


def test_one_judge_one_run() -> None:
    diagnosis = diagnose(_votes(50, {"only": (0.1, 0.8)}))
    assert diagnosis.panel.effective is None
    assert any("one judge" in note for note in diagnosis.notes)
    assert _do(diagnosis) == {"only": "keep"}


def test_a_judge_that_only_fails_is_replaced() -> None:
    rows = [VoteRow(f"q{i}", "a", "A") for i in range(40)]
    rows += [VoteRow(f"q{i}", "dead", None) for i in range(40)]
    assert _do(diagnose(encode(rows)))["dead"] == "replace"


def test_a_judge_that_mostly_fails_is_told_apart_from_one_that_was_seldom_asked() -> None:
    rows = [VoteRow(f"q{i}", judge, "AB"[i % 2]) for i in range(60) for judge in "xy"]
    rows += [VoteRow(f"q{i}", "z", "A" if i < 5 else None) for i in range(60)]
    rows += [VoteRow(f"q{i}", "w", "A") for i in range(5)]
    recommendation_by_judge = {m.judge: m for m in diagnose(encode(rows)).recommendations}
    assert (recommendation_by_judge["z"].action, recommendation_by_judge["z"].sure) == (
        "down-weight",
        True,
    )
    assert recommendation_by_judge["z"].reasons[0].code == "fails"
    assert (recommendation_by_judge["w"].action, recommendation_by_judge["w"].sure) == (
        "keep",
        False,
    )


def test_ties_alone_are_enough_to_say_that_it_ties() -> None:
    diagnosis = diagnose(encode([VoteRow(f"q{i}", j, "tie") for i in range(40) for j in "xy"]))
    assert {(m.action, m.sure) for m in diagnosis.recommendations} == {("replace", True)}


def test_agreement_with_a_lopsided_reference_is_read_beside_what_it_gives() -> None:
    """Nine of ten labels say A, and so does the judge, whatever the item: it knows nothing."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(400):
        label = "A" if rng.random() < 0.9 else "B"
        rows += [VoteRow(f"q{i}", j, "A" if rng.random() < 0.9 else "B", label=label) for j in "xy"]
    diagnosis = diagnose(encode(rows))
    assert diagnosis.judges[0].label.commoner == pytest.approx(0.9, abs=0.03)
    recommendation = diagnosis.recommendations[0]
    assert recommendation.action == "replace"
    assert any(
        "always naming the more common side is right on" in r.text for r in recommendation.reasons
    )


def test_of_two_judges_that_contradict_each_other_neither_is_replaced() -> None:
    rows = [
        VoteRow(f"q{i}", j, s)
        for i in range(60)
        for j, s in zip("xy", ("AB", "BA")[i % 2], strict=True)
    ]
    recommendations = diagnose(encode(rows)).recommendations
    assert {m.action for m in recommendations} == {"keep"}
    assert "how good it is cannot be told" in recommendations[0].reasons[1].text


def test_few_ballots_are_not_enough_to_say() -> None:
    diagnosis = diagnose(_votes(10, {"a": (0.0, 0.2), "b": (0.0, 0.9)}))
    assert not any(recommendation.sure for recommendation in diagnosis.recommendations)
    assert set(_do(diagnosis).values()) == {"keep"}


@pytest.mark.parametrize(("n_labels", "by"), [(29, "agreement"), (30, "labels")])
def test_labels_that_measure_no_judge_are_not_called_used(n_labels: int, by: str) -> None:
    votes = _votes(60, dict.fromkeys("xyz", (0.0, 0.8)), labels=True)
    labels = np.where(np.arange(60) < n_labels, votes.labels, np.nan)
    diagnosis = diagnose(replace(votes, labels=labels))
    assert diagnosis.edges.source == by
    line = diagnosis.summary[-1]
    assert f"{n_labels} of 60 rows have a label" in line
    assert ("the labels are used" in line) == (by == "labels")
    assert ("no judge has the 30 decisive votes" in line) == (by == "agreement")


def test_scores_and_nothing_are_refused() -> None:
    with pytest.raises(StatisticsError, match="scores"):
        diagnose(encode([VoteRow("q", "j", 3.5)]))
    with pytest.raises(StatisticsError, match="failed"):
        diagnose(encode([VoteRow("q", "j", None)]))


@real
def test_length_heuristic_of_llmfao_points_the_wrong_way() -> None:
    votes = read_votes(DATA / "llmfao.votes.jsonl.gz", judges="gpt-*,heuristic*")
    diagnosis = diagnose(votes)
    recommendation_by_judge = {m.judge.split("/")[0]: m for m in diagnosis.recommendations}
    assert recommendation_by_judge["heuristic:longer-answer"].action == "replace"
    assert "inverted" in {
        r.code for r in recommendation_by_judge["heuristic:longer-answer"].reasons
    }
    assert recommendation_by_judge["gpt-4"].action == "keep"
    assert (
        recommendation_by_judge["gpt-3.5-turbo-instruct"].weight
        < recommendation_by_judge["gpt-4"].weight
    )


@real
def test_pandalm_keeps_models_and_people_and_weighs_the_heuristic_less() -> None:
    diagnosis = diagnose(read_votes(DATA / "pandalm.votes.jsonl.gz"))
    assert _do(diagnosis) == {
        "PandaLM-7B/finetuned": "keep",
        "annotator1/human": "keep",
        "annotator2/human": "keep",
        "annotator3/human": "keep",
        "gpt-3.5-turbo/pandalm-prompt": "keep",
        "heuristic:longer-answer/length": "down-weight",
    }


@real
def test_mtbench_panel_weighs_position_biased_judges_less() -> None:
    actions = _do(diagnose(read_votes(DATA / "mtbench-panel.votes.jsonl.gz")))
    assert actions["LLMBar:ChatGPT/Vanilla_NoRules"] == "down-weight"
    assert actions["LLMBar:GPT-4/Vanilla_NoRules"] == "keep"
    assert actions["anthropic/claude-opus-4.5/agentclash-supreme"] == "keep"


def test_a_judge_of_length_is_told_from_one_that_likes_what_people_like() -> None:
    """People prefer the longer response in 3 of 4 items; one judge follows them, one counts words."""
    rng = np.random.default_rng(8)
    rows, texts = [], {}
    for i in range(300):
        long_first = rng.random() < 0.5
        texts[f"q{i}"] = Texts("w " * (60 if long_first else 30), "w " * (30 if long_first else 60))
        label = long_first if rng.random() < 0.75 else not long_first
        fair = label if rng.random() < 0.9 else not label
        for judge, first in (("fair", fair), ("counts", long_first)):
            side, right = ("AB"[1 - int(value)] for value in (first, label))
            rows.append(VoteRow(f"q{i}", judge, side, label=right))
    lines = {line.judge: line for line in diagnose(encode(rows), texts=texts).lengths}
    assert lines["counts"].longer.interval.estimate == 1
    assert lines["counts"].pull.estimate == pytest.approx(0.25, abs=0.06)
    assert lines["counts"].pull.low > 0
    assert lines["fair"].pull.low < 0.01
    assert lines["fair"].pull_by == "the labels"
    assert diagnose(encode(rows)).lengths == ()
