"""What would change a decision is counted right: trying every change finds no shorter one."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.labelled import pairs, run
from analysis.simulated_runs import run_data
from analysis.test_leaderboard import runs
from clash.analysis.explanation import explain
from clash.analysis.explanation.flips import (
    LeaderOutcomes,
    changes_of_significance,
    changes_to_level,
    drops_to_level,
)
from clash.analysis.explanation.without import conclude
from clash.report.explanation import tables
from clash.stats.hypothesis_tests import holm, sign_test

A, B, TIE = [["ada"], ["bob"]], [["bob"], ["ada"]], [["ada", "bob"]]
OUTCOMES = st.sampled_from([1.0, 1.0, 0.0, -1.0])


def of(columns, clusters=None):
    leads = np.array(columns, dtype=float).T
    return LeaderOutcomes(leads, np.arange(len(leads)) if clusters is None else np.array(clusters))


@cache
def wins_clearly(*columns):
    """Whether every column of outcomes is significant after Holm's correction, said anew."""
    if any(sum(column) <= 0 for column in columns):
        return False
    p = [sign_test(column.count(1.0), column.count(-1.0)).p for column in columns]
    return bool(holm(p).max() <= 0.05)


def fewest(outcomes, is_reached):
    """The fewest items of one column that must take another outcome, by trying all."""
    return min(
        (
            sum(a != b for a, b in zip(outcomes, alternative, strict=True))
            for alternative in product((1.0, 0.0, -1.0), repeat=len(outcomes))
            if is_reached(alternative)
        ),
        default=None,
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=7))
def test_of_two_candidates_no_smaller_number_of_changes_does_it(column):
    outcomes = of([column])
    level = changes_to_level(outcomes, 0)
    assert len(level) == fewest(column, lambda alternative: sum(alternative) <= 0)
    before = wins_clearly(tuple(column))
    rows = changes_of_significance(outcomes)
    expected_count = fewest(column, lambda alternative: wins_clearly(alternative) != before)
    assert (None if rows is None else len(rows)) == expected_count
    assert outcomes.is_exact


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=1, max_size=4))
def test_of_three_candidates_no_smaller_number_of_changes_ends_the_lead(rows):
    outcomes = of(list(zip(*rows, strict=True)))
    possible = list(product((1.0, 0.0, -1.0), repeat=2))
    for rival in (0, 1):
        fewest_rows = min(
            sum(a != b for a, b in zip(rows, alternative, strict=True))
            for alternative in product(possible, repeat=len(rows))
            if sum(row[rival] for row in alternative) <= 0
        )
        assert len(changes_to_level(outcomes, rival)) == fewest_rows


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(OUTCOMES, OUTCOMES), min_size=6, max_size=8))
def test_the_upper_bound_of_three_candidates_is_reached_and_not_below_the_truth(rows):
    outcomes = of(list(zip(*rows, strict=True)))
    before = wins_clearly(*map(tuple, zip(*rows, strict=True)))
    to = -1.0 if before else 1.0

    def after(changes):
        new = [(to, to) if i in changes else row for i, row in enumerate(rows)]
        return wins_clearly(*map(tuple, zip(*new, strict=True)))

    change_list = changes_of_significance(outcomes)
    sizes = (
        n
        for n in range(len(rows) + 1)
        if any(after(set(chosen)) != before for chosen in combinations(range(len(rows)), n))
    )
    smallest = next(sizes, None)
    if change_list is None:
        assert smallest is None
        return
    assert after(set(change_list)) != before
    assert not outcomes.is_exact
    assert smallest <= len(change_list) <= smallest + 1


def test_items_that_were_not_compared_never_change():
    outcomes = of([[1.0, np.nan, 1.0, np.nan, -1.0]])
    assert changes_to_level(outcomes, 0) == [0]
    assert drops_to_level(outcomes, 0) == 1
    assert changes_of_significance(outcomes) is None  # three items show nothing, whatever they say


def test_the_narrowest_verdicts_change_first():
    outcomes = of([[1.0, 0.2, 0.6, -0.1]])
    assert changes_to_level(outcomes, 0) == [1]


def test_where_prompts_repeat_the_number_is_an_upper_bound():
    outcomes = of([[1.0] * 8], clusters=[0, 0, 1, 1, 2, 3, 4, 5])
    assert not outcomes.is_exact
    assert len(changes_of_significance(outcomes)) == 1


def judged_data(*verdicts, judges=("x", "y", "z")):
    """A run of two candidates: by item, what each judge says."""
    word = {"a": A, "b": B, "t": TIE, "-": None}
    table = [dict(zip(judges, (word[c] for c in verdict), strict=True)) for verdict in verdicts]
    return run_data(table, ["ada", "bob"])


def test_the_items_named_change_the_decision_and_one_fewer_does_not():
    verdict_rows = ["aab", "aaa", "aab", "aba", "aaa", "aaa", "aaa", "bbb"]
    explanation = explain(judged_data(*verdict_rows))
    assert (explanation.leader, explanation.rival, explanation.wins, explanation.losses) == (
        "ada",
        "bob",
        7,
        1,
    )
    level = explanation.flip("change", "level")
    assert (level.items, level.exact) == (3, True)
    assert level.item_ids == ("q0", "q2", "q3")  # two of three judges: the narrowest
    for n, leader in ((level.items, None), (level.items - 1, "ada")):
        names = level.item_ids[:n]
        reversed_rows = ["bbb" if f"q{i}" in names else row for i, row in enumerate(verdict_rows)]
        assert conclude(judged_data(*reversed_rows)).decision.winner == leader
    assert explanation.flip("drop", "level").items == 6
    rows = [row for i, row in enumerate(verdict_rows) if i not in range(6)]
    assert conclude(judged_data(*rows)).decision.winner is None


def test_a_decision_that_rests_on_one_judge_says_so():
    verdict_rows = ["aba"] * 5 + ["bab"] * 4
    explanation = explain(judged_data(*verdict_rows))
    without = {line.name: line for line in explanation.judges}
    for judge, others_indices in (("x", (1, 2)), ("y", (0, 2)), ("z", (0, 1))):
        alone = judged_data(
            *("".join(row[i] for i in others_indices) for row in verdict_rows), judges=("p", "q")
        )
        assert without[judge].leader == conclude(alone).decision.winner
    # x and z are copies: without one of them the other is always contradicted by y.
    assert (without["x"].leader, without["x"].changes) == (None, "winner")
    assert (without["y"].leader, without["y"].changes) == ("ada", None)
    assert {item.item_id: item.judges for item in explanation.pivotal} == {
        f"q{i}": ("x", "z") for i in range(9)
    }


def test_a_pivotal_judge_turned_round_changes_the_item():
    verdict_rows = ["aab", "aaa", "bab", "abt"]
    actual_items = {item.item_id: item for item in explain(judged_data(*verdict_rows)).pivotal}
    assert "q1" not in actual_items
    turn = {"a": "b", "b": "a", "t": "t"}
    for i, row in enumerate(verdict_rows):
        before = judged_data(row).verdicts[0].winner
        changing = tuple(
            judge
            for k, judge in enumerate("xyz")
            if judged_data(row[:k] + turn[row[k]] + row[k + 1 :]).verdicts[0].winner != before
        )
        assert actual_items[f"q{i}"].judges == changing if changing else f"q{i}" not in actual_items


@pytest.mark.parametrize(
    ("reply", "status", "leader", "level"),
    [
        (["---", "---"], "none", None, None),
        (["ttt", "ttt"], "tied", "ada", 0),
        (["aaa", "bbb"], "tied", "ada", 0),
        (["aaa", "---"], "leading", "ada", 1),
    ],
)
def test_runs_that_show_little_are_explained_all_the_same(reply, status, leader, level):
    explanation = explain(judged_data(*reply))
    assert (explanation.decision.status, explanation.leader) == (status, leader)
    flip = explanation.flip("change", "level")
    assert (None if flip is None else flip.items) == level
    if leader is not None:
        significance = explanation.flip("change", "significant")
        assert significance.items is None
        assert significance.exact


@settings(max_examples=25, deadline=None)
@given(runs())
def test_whatever_failed_or_is_missing_the_counts_add_up(data):
    explanation = explain(data)
    assert (
        explanation.n_items
        == explanation.wins + explanation.ties + explanation.losses
        <= len(data.items)
    )
    assert {item.item_id for item in explanation.pivotal} <= {item.item_id for item in data.items}
    for flip in explanation.flips:
        if flip.by == "change" and flip.items is not None:
            assert len(set(flip.item_ids)) == flip.items <= len(data.items)
    for table in tables(explanation):
        assert all(len(row) == len(table.columns) for row in table.rows)


def test_one_judge_alone_cannot_be_left_out():
    assert explain(judged_data("a", "a", "b", judges=("x",))).judges == []


def test_a_category_and_the_best_items_are_left_out(tmp_path):
    rows = [("a", "aaa")] * 4 + [("b", "bbb")] * 3
    tags = [["easy"]] * 4 + [["hard"], ["hard"], []]
    explanation = explain(run(tmp_path, pairs(rows, tags=tags)))
    easy, hard = explanation.categories
    assert (easy.name, easy.items, easy.leader, easy.changes) == ("easy", 4, "b", "winner")
    assert (easy.inside.estimate, hard.inside.estimate) == (1.0, 0.0)
    assert (hard.name, hard.leader, hard.changes) == ("hard", "a", None)
    best = {line.name: line for line in explanation.best_items}
    assert (best["a"].items, best["a"].leader, best["a"].changes) == (1, None, "winner")
    assert (best["b"].leader, best["b"].changes) == ("a", None)


def test_the_longer_choice_is_counted_where_panel_and_people_choose_differently(tmp_path):
    texts = {"a": "one two three", "b": "one"}
    rows = [("a", "bbb"), ("b", "aaa"), ("b", "aab"), ("a", "aaa"), ("t", "aaa"), ("-", "aaa")]
    explanation = explain(run(tmp_path, pairs(rows, texts=[texts] * len(rows))))
    assert (explanation.longer_choices.items, explanation.longer_choices.longer) == (3, 2)


def test_a_validation_is_held_against_the_longest_response(tmp_path):
    texts = {"a": "one two three", "b": "one"}
    verdict_rows = [("a", "aaa")] * 2 + [("b", "bbb")] * 4 + [("b", "aaa"), ("a", "aaa")]
    explanation = explain(run(tmp_path, pairs(verdict_rows, texts=[texts] * len(verdict_rows))))
    assert explanation.agreement.estimate == pytest.approx(7 / 8)
    assert explanation.longest_agreement == pytest.approx(3 / 8)
    assert explanation.changes_to_longest == 4  # 7 right, and 3 by length
    unknown = explain(
        run(tmp_path / "x", pairs(verdict_rows, texts=[{"a": "", "b": ""}] * len(verdict_rows)))
    )
    assert (unknown.longest_agreement, unknown.changes_to_longest) == (None, None)


def test_disagreements_with_people_come_first_the_most_confident_ahead(tmp_path):
    rows = [("a", "aab"), ("a", "aaa"), ("a", "bba"), ("b", "aaa"), ("-", "abt"), ("t", "aaa")]
    explanation = explain(run(tmp_path, pairs(rows)))
    order = [(line.item_id, line.kind) for line in explanation.disagreements]
    assert order == [
        ("i3", "people"),
        ("i5", "people"),
        ("i2", "people"),
        ("i4", "judges"),
        ("i0", "judges"),
    ]
    assert [opinion.first for opinion in explanation.disagreements[2].opinions] == ["b", "b", "a"]
    assert explanation.agreement.estimate == pytest.approx(2 / 5)
    assert explanation.n_labelled == 5
