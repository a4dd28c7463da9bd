"""A run's verdicts by methods that weigh the judges: fair to candidates, honest about tests."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

import clash
from analysis.simulated_runs import records, rules, run_data
from clash.analysis.findings import compute_findings
from clash.analysis.method_verdicts import FEWEST
from clash.analysis.run_verdicts import decide_verdicts
from clash.config import AggregateConfig, VerdictMethod
from clash.errors import ConfigError
from clash.records import Item, Verdict
from clash.votes.ballots import unblind_rankings
from clash.votes.blinding_index import BlindingIndex

METHODS = tuple(name for name in get_args(VerdictMethod) if name not in ("borda", "mean", "median"))
JUDGES = {"a": 0.92, "b": 0.75, "c": 0.7, "d": 0.65, "e": 0.65}
SWAP = {"ada": "bob", "bob": "ada"}


def judged_table(n=48, names=("ada", "bob"), seed=0, judges=JUDGES):
    """What each judge says of each item: each finds the better of two with its own chance."""
    rng = np.random.default_rng(seed)
    table = []
    for _ in range(n):
        truth = list(rng.permutation(names))
        row = {}
        for judge, accuracy in judges.items():
            order = list(truth)
            for _ in range(len(names)):
                at = rng.integers(len(names) - 1)
                if rng.random() > accuracy:
                    order[at], order[at + 1] = order[at + 1], order[at]
            row[judge] = [[str(name)] for name in order]
        table.append(row)
    return table


def decide(table, method, *, controls=(), swaps=(), min_confidence=0.0, **more):
    """The verdicts of a run, and how its method decided.

    Args:
        exchanged: positions of items of which the texts on the pages stay what they are, and are the
            other candidate's.
    """
    by = replace(rules(dict.fromkeys(JUDGES, 1.0) | more.pop("weights", {})), method=method, **more)
    by = replace(by, min_confidence=min_confidence)
    ids = [f"q{i}" for i in range(len(table))]
    judgments, pages = [], []
    for at, (name, row) in enumerate(zip(ids, table, strict=True)):
        judgment, presentation = records(name, row, at)
        judgments += judgment
        pages += presentation
    fields = dict(unblind_rankings(judgments, BlindingIndex.of(pages), by.presentations))
    for at in swaps:
        item = fields[ids[at]]
        ranks = {judge: table[:, ::-1].copy() for judge, table in item.ranks.items()}
        fields[ids[at]] = replace(
            item, ranks=ranks, page_order=tuple(SWAP[n] for n in item.page_order)
        )
    control = {"pair": "c"}
    items = [Item(item_id=n, prompt="?", control=control if n in controls else None) for n in ids]
    return decide_verdicts(by, items, [], judgments, fields)


def rename(row, names):
    return {judge: [[names[n] for n in group] for group in answer] for judge, answer in row.items()}


# -- fairness ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_exchanging_the_candidates_of_one_item_turns_its_verdict_and_no_other(method):
    """So, if no candidate is better, each verdict is a coin: the sign test of wins is exact."""
    table = judged_table()
    before = decide(table, method).verdicts
    after = decide(table, method, swaps=range(0, len(table), 5)).verdicts
    for at, (left, right) in enumerate(zip(before, after, strict=True)):
        assert left.method == method
        expected_winner = SWAP.get(left.winner) if at % 5 == 0 else left.winner
        assert right.winner == expected_winner
        p = {SWAP[n]: value for n, value in left.p.items()} if at % 5 == 0 else left.p
        assert right.p == pytest.approx(p, abs=1e-6)
    assert any(v.winner for v in before)


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("auto", "ising-class")])
@pytest.mark.parametrize("names", [("ada", "bob"), ("ada", "bob", "cyd", "dan")])
def test_other_names_give_the_same_verdicts_under_other_names(method, names):
    """But where the order of the page counts, which other names shuffle otherwise."""
    table = judged_table(names=names)
    new = dict(zip(names, reversed(names), strict=True))
    before = decide(table, method)
    after = decide([rename(row, new) for row in table], method)
    assert before.use.method == after.use.method == method
    for left, right in zip(before.verdicts, after.verdicts, strict=True):
        assert right.ranking == [sorted(new[n] for n in group) for group in left.ranking]
        assert sum(left.p.values()) == pytest.approx(1, abs=1e-6)
        assert left.winner is None or left.p[left.winner] == max(left.p.values())
        assert 0 <= left.confidence <= 1


def test_equal_judges_decide_by_majority_as_borda_does():
    for names in (("ada", "bob"), ("ada", "bob", "cyd")):
        verdicts = decide(judged_table(names=names), "majority").verdicts
        assert [v.ranking for v in verdicts] == [v.borda for v in verdicts]


# -- what the methods are for -----------------------------------------------------------------------


@pytest.mark.parametrize("method", ["weighted-majority", "dawid-skene"])
def test_one_good_judge_outweighs_those_that_guess(method):
    table = judged_table(300, judges={"a": 0.97, "b": 0.8, "c": 0.75, "d": 0.55, "e": 0.55})
    verdicts = decide(table, method).verdicts
    overruled_rows = [
        (row, v) for row, v in zip(table, verdicts, strict=True) if v.ranking != v.borda
    ]
    assert len(overruled_rows) > 10
    assert sum(row["a"] == v.ranking for row, v in overruled_rows) > 0.9 * len(overruled_rows)
    assert all(v.scores["ada"] + v.scores["bob"] == 5 for _, v in overruled_rows)


def test_posteriors_are_those_of_the_votes_in_both_directions():
    """The library fits the same votes from a file, each item once from either side."""
    table = judged_table(60)
    lines = [
        {
            "item": f"{side}{at}",
            "judge": judge,
            "vote": int((answer[0][0] == "ada") == (side == "q")),
        }
        for side in "qr"
        for at, row in enumerate(table)
        for judge, answer in row.items()
    ]
    fit = clash.aggregate(lines, "dawid-skene").findings.verdicts.result("dawid-skene")
    verdicts = decide(table, "dawid-skene").verdicts
    assert [v.p["ada"] for v in verdicts] == pytest.approx(fit.p[: len(table)].tolist(), abs=1e-6)


def test_more_than_two_are_ordered_by_strengths_that_explain_the_shares_of_their_pairs():
    """Pairwise coupling by the algorithm of Hastie and Tibshirani (1998), as they print it."""
    table = judged_table(6, names=("ada", "bob", "cyd"))
    verdicts = decide(table, "majority").verdicts
    for row, verdict in zip(table, verdicts, strict=True):
        names = sorted(verdict.p)
        rank_of_first = {j: {g[0]: at for at, g in enumerate(answer)} for j, answer in row.items()}
        n = len(row) + 2  # the share is smoothed by a vote for either side
        r = np.array(
            [
                [
                    (sum(p[a] < p[b] for p in rank_of_first.values()) + 1) / n if a != b else 0
                    for b in names
                ]
                for a in names
            ]
        )
        p = np.ones(3) / 3
        for _ in range(400):
            for i in range(3):
                mu = p[i] / (p[i] + p)
                p[i] *= r[i].sum() / (mu.sum() - 0.5)
                p /= p.sum()
        assert [verdict.p[n] for n in names] == pytest.approx(p.tolist(), abs=2e-3)


def test_bradley_terry_counts_the_weights_of_the_panel_and_majority_does_not():
    row = {"a": [["ada"], ["bob"]], "b": [["bob"], ["ada"]], "c": [["bob"], ["ada"]]}
    heavy = {"a": 5.0}
    table = [row | {"d": [["ada"], ["bob"]], "e": [["ada", "bob"]]}] * 3
    assert decide(table, "bradley-terry", weights=heavy).verdicts[0].winner == "ada"
    level = decide(table, "majority", weights=heavy).verdicts[0]
    assert (level.winner, level.confidence, level.ranking) == (None, 0.0, [["ada", "bob"]])
    assert level.borda == [["ada"], ["bob"]]


# -- where it cannot ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_too_few_items_leave_the_verdicts_to_borda_and_each_says_so(method):
    verdict = decide(judged_table(3), method)
    if method in ("majority", "bradley-terry"):
        assert verdict.use.fallback is None
        return
    assert f"3 items are too few to weigh the judges by ({FEWEST} needed)" in verdict.use.fallback
    assert {(v.method, v.fallback, v.p, v.borda) for v in verdict.verdicts} == {
        ("borda", verdict.use.fallback, None, None)
    }


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", ["all tied", "all agree", "one judge", "nothing"])
def test_votes_that_show_nothing_of_the_judges_end_in_a_named_method(method, problem):
    record = {"all tied": [["ada", "bob"]], "all agree": [["ada"], ["bob"]]}.get(problem)
    row = dict.fromkeys(JUDGES, record)
    if problem == "one judge":
        row |= {"a": [["ada"], ["bob"]]}
    actual_verdict = decide([row] * 40, method)
    for verdict in actual_verdict.verdicts:
        if problem in ("one judge", "nothing"):
            assert verdict.ranking is None
            assert verdict.abstained
        else:
            assert verdict.winner == (None if problem == "all tied" else "ada")
            assert verdict.method in (method, "borda")
            assert (verdict.method == "borda") == (verdict.fallback is not None)


def test_control_items_keep_the_borda_count_and_weigh_nobody():
    table = judged_table(60)
    alone = decide(table, "dawid-skene").verdicts
    with_controls = decide(
        [*table, *([rename(table[0], SWAP)] * 20)],
        "dawid-skene",
        controls={f"q{i}" for i in range(60, 80)},
    ).verdicts
    assert [v.p for v in with_controls[:60]] == [v.p for v in alone]
    assert {v.method for v in with_controls[60:]} == {"borda"}


def test_a_winner_below_the_least_confidence_is_left_for_review_and_a_tie_stays_a_tie():
    table = judged_table(40)
    table[0] = {judge: [["ada", "bob"]] for judge in JUDGES}
    sure = decide(table, "dawid-skene").verdicts
    least = float(np.median([v.confidence for v in sure]))
    verdicts = decide(table, "dawid-skene", min_confidence=least).verdicts
    assert verdicts[0].ranking == [["ada", "bob"]]
    assert any(v.winner for v in verdicts)
    for left, before in zip(verdicts[1:], sure[1:], strict=True):
        if before.winner and before.confidence < least:
            assert (left.ranking, left.confidence) == (None, None)
            assert "min_confidence" in left.abstained
            assert left.p == before.p
        else:
            assert left == before


def test_by_default_a_winner_by_less_than_2_points_is_left_for_review():
    table = judged_table(60)
    sure = decide(table, "dawid-skene").verdicts
    verdicts = decide(table, "dawid-skene", min_confidence=None).verdicts
    near = [v.winner is not None and v.confidence < 0.02 for v in sure]
    assert any(near)
    assert [v.ranking is None for v in verdicts] == near
    assert not any(v.abstained for v in decide(table, "borda", min_confidence=None).verdicts)


def test_a_calibrator_and_another_method_cannot_both_decide():
    with pytest.raises(ValueError, match="a calibrator decides"):
        AggregateConfig(method="auto", calibrator="c.json")
    assert AggregateConfig(method="weighted").method == "weighted-majority"
    with pytest.raises(ConfigError, match="ising-shared"):
        clash.evaluate(["?"], None, "baseline", method="ising")


# -- what a report makes of it ------------------------------------------------------------------------


def test_the_leaderboard_counts_the_verdicts_of_the_method_beside_those_of_borda():
    run = run_data(judged_table(60), ("ada", "bob"))
    by = replace(run.rules, method="dawid-skene", min_confidence=0.0)
    decisions = decide_verdicts(by, run.items, run.responses, run.judgments, run.ballots)
    run = replace(run, rules=by, verdicts=decisions.verdicts, method_use=decisions.use)
    findings = compute_findings(run)
    row = next(r for r in findings.leaderboard if r.candidate == "ada")
    wins, ties = (sum(v.winner == w for v in decisions.verdicts) for w in ("ada", None))
    assert (row.wins, row.ties) == (wins, ties)
    assert row.win_rate_ties_half.estimate == pytest.approx((wins + ties / 2) / 60)
    beside = findings.aggregation
    apart = [v.item_id for v in decisions.verdicts if v.ranking != v.borda]
    assert [line.item for line in beside.disagreements] == apart
    assert beside.agreement.estimate == pytest.approx(1 - len(apart) / 60)
    borda_wins = sum(v.borda == [["ada"], ["bob"]] for v in decisions.verdicts)
    assert beside.borda_rates["ada"].estimate == pytest.approx(
        (borda_wins + sum(len(v.borda) == 1 for v in decisions.verdicts) / 2) / 60
    )


def test_a_verdict_of_an_earlier_version_is_read_as_it_was():
    old = {"item_id": "q", "method": "borda", "ranking": [["a"], ["b"]], "winner": "a"}
    assert Verdict.model_validate(old).borda is None
