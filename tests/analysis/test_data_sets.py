"""Runs and tags as data sets: what holds over all of them, and what is counted once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.simulated_runs import run_data
from clash.analysis.compare import compare
from clash.analysis.compare.data_sets import DataSetRule
from clash.errors import ConfigError, StatisticsError
from clash.records import Label
from clash.report.compare import gradient_picture, tables
from clash.report.drawing import svg
from clash.report.headline import comparison_headline
from clash.report.screens import comparison_screen
from clash.view.comparison import ComparisonView

ADA, BOB = [["ada"], ["bob"]], [["bob"], ["ada"]]


def run(wins, n, *, tags=(), wrong=0, split=0, prefix="q"):
    """``n`` items of which ada wins ``wins``; the last ``wrong`` are labelled against the panel."""
    orders = [
        {"x": ADA, "y": BOB if i < split else ADA, "z": ADA}
        if i < wins
        else dict.fromkeys("xyz", BOB)
        for i in range(n)
    ]
    data = run_data(orders, ["ada", "bob"])
    items = tuple(
        item.model_copy(
            update={
                "prompt": f"{prefix}{item.item_id}",
                "tags": [tags[i % len(tags)]] if tags else [],
            }
        )
        for i, item in enumerate(data.items)
    )
    labels = tuple(
        Label(
            item_id=item.item_id,
            annotator="eve",
            winner=("bob" if i < wins else "ada")
            if i >= n - wrong
            else ("ada" if i < wins else "bob"),
        )
        for i, item in enumerate(items)
    )
    return replace(data, items=items, labels=labels)


def of(*runs, **options):
    return compare(runs, names=[f"r{i}" for i in range(len(runs))], **options)


def test_equal_data_sets_agree_and_a_typical_one_is_like_them():
    across = of(*(run(16, 20, prefix=p) for p in "abcd")).across
    (duel,) = across.duels
    assert (duel.first, duel.second, duel.pooled.k) == ("ada", "bob", 4)
    assert duel.pooled.share.estimate == pytest.approx(16.5 / 21)
    assert duel.pooled.tau2.estimate == 0
    assert duel.pooled.heterogeneity.p == pytest.approx(1)
    assert 0.5 < duel.pooled.share.low < duel.pooled.share.high < 1
    assert duel.p_holm == duel.pooled.test.p < 0.05


def test_data_sets_that_contradict_each_other_leave_no_winner():
    across = of(run(38, 40, prefix="a"), run(2, 40, prefix="b"), run(36, 40, prefix="c")).across
    pooled_share = across.duels[0].pooled
    assert pooled_share.i2.estimate > 0.9
    assert pooled_share.heterogeneity.p < 1e-6
    assert pooled_share.share.low < 0.5 < pooled_share.share.high
    assert pooled_share.prediction.low < pooled_share.share.low


def test_an_item_of_two_runs_counts_in_the_first():
    first = run(8, 10, prefix="a")
    assert of(first, first).across is None
    across = of(first, first, run(8, 10, prefix="b")).across
    assert ([line.name for line in across.sets], across.n_repeated) == (["r0", "r2"], 10)


def test_tags_take_one_run_apart():
    data = run(15, 20, tags=("easy", "hard"), wrong=4)
    comparison = of(data, rule=DataSetRule(("easy", "har?")))
    assert [(s.name, s.n_items) for s in comparison.across.sets] == [("easy", 10), ("hard", 10)]
    assert comparison.pairs == []
    assert "typical one of 2 data sets" in comparison_headline(comparison).text
    assert comparison_screen(comparison, 80).lines
    assert ComparisonView.of(comparison).rows == ()
    with pytest.raises(StatisticsError, match="is one data set"):
        of(data, rule=DataSetRule(("easy",)))
    with pytest.raises(StatisticsError, match="fewer than two tags match"):
        of(data, run(8, 10, prefix="b"), rule=DataSetRule(("none",)))


def test_agreement_falls_along_the_gradient():
    runs = [run(30, 60, wrong=6 * i, split=5 * i, prefix=f"{i}-") for i in range(1, 6)]
    gradient = of(*runs).across.gradient
    assert [name for name, _, _ in gradient.points] == ["r0", "r1", "r2", "r3", "r4"]
    assert gradient.slope.high < 0
    assert gradient.test.p < 0.05
    assert gradient.curve[0][1] > gradient.curve[-1][1]
    picture = svg(gradient_picture(gradient))
    assert picture.count("<circle") == 5
    stated_gradient = of(
        *runs, rule=DataSetRule((), {f"r{i}": 5.0 - i for i in range(5)})
    ).across.gradient
    assert stated_gradient.measure == "difficulty as stated"
    assert stated_gradient.slope.low > 0
    with pytest.raises(ConfigError, match="no data set 'r9'"):
        of(*runs, rule=DataSetRule((), {"r9": 1.0}))


def test_agreement_of_many_runs_on_the_same_items_is_tested_together_and_by_pairs():
    runs = [run(10, 20, wrong=wrong) for wrong in (0, 8, 8)]
    comparison = of(*runs)
    # Of 8 items one run is right and two are wrong: Q = 2 (3 * 64 - 64) / (3 * 8 - 8) = 16.
    assert comparison.all_alike.statistic == pytest.approx(16)
    p_values = [pair.agreement_test.p for pair in comparison.pairs]
    assert comparison.pairs[0].p_holm == pytest.approx(min(1, 3 * p_values[0]))
    assert comparison.pairs[2].p_holm == 1
    text = "\n".join(note for table in tables(comparison) for note in table.notes)
    assert "Cochran's Q 16.00" in text
