"""Runs compared: as experiments, item by item where they share items, and pooled."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from analysis.labelled import pairs, run
from clash.analysis.compare import compare, figures, run_names
from clash.analysis.retest import retest
from clash.errors import StatisticsError
from clash.report.compare import tables
from clash.report.screens import comparison_screen, retest_screen

GOOD = [("a", "aaa")] * 18 + [("b", "aaa")] * 2
BAD = [("a", "aaa")] * 10 + [("a", "bbb")] * 8 + [("b", "bbb")] * 2


def test_experiments_without_shared_items_get_the_two_proportion_test(tmp_path):
    second = [{**item, "id": f"other-{item['id']}"} for item in pairs(BAD)]
    comparison = compare(
        [run(tmp_path, pairs(GOOD), name="one"), run(tmp_path, second, name="two")]
    )
    pair = comparison.pairs[0]
    # z of 18/20 against 12/20, by hand.
    pooled_rate = 30 / 40
    z = (0.9 - 0.6) / (pooled_rate * (1 - pooled_rate) * 2 / 20) ** 0.5
    assert pair.experiments.test.statistic == pytest.approx(z)
    assert pair.shared_items is None


def test_shared_items_get_mcnemar_and_paired_intervals(tmp_path):
    comparison = compare(
        [run(tmp_path, pairs(GOOD), name="one"), run(tmp_path, pairs(BAD), name="two")]
    )
    shared_items = comparison.pairs[0].shared_items
    assert (shared_items.only_first, shared_items.only_second, shared_items.both_right) == (
        8,
        2,
        10,
    )
    assert shared_items.mcnemar.p == pytest.approx(2 * (1 + 10 + 45) / 2**10)
    assert shared_items.paired_test.difference.estimate == pytest.approx(0.3)
    assert shared_items.bootstrap.difference.low < 0.3 < shared_items.bootstrap.difference.high
    assert shared_items.verdicts.agreement.estimate == pytest.approx(10 / 20)


def interrupted(tmp_path, rows, name, n_judged):
    """A run of these items that was interrupted after so many of them."""
    run_rows = [*rows[:n_judged], *({**row, "says": {}} for row in rows[n_judged:])]
    data = run(tmp_path, run_rows, name=name)
    return replace(data, manifest=data.manifest.model_copy(update={"status": "partial"}))


def lines_of(screen):
    return "\n".join("".join(text for text, _ in line) for line in screen.lines)


def test_what_an_interrupted_run_has_not_judged_is_no_difference(tmp_path):
    full_result = run(tmp_path, pairs(GOOD), name="one")
    partial = interrupted(tmp_path, pairs(GOOD), "two", 8)
    comparison = compare([full_result, partial])
    shared_items = comparison.pairs[0].shared_items
    assert (shared_items.n, shared_items.n_unjudged, shared_items.n_labelled) == (8, 12, 8)
    assert shared_items.verdicts.agreement.estimate == 1
    assert (shared_items.only_first, shared_items.only_second) == (0, 0)
    assert [line.n_unjudged for line in comparison.runs] == [0, 12]
    assert comparison.runs[1].unanimity.estimate == 1
    text = lines_of(comparison_screen(comparison, 80))
    assert "the 8 that both judged" in text
    assert "12 in two" in text
    assert any("`clash resume two`" in note for note in tables(comparison)[0].notes)


def test_a_judge_that_failed_is_a_difference_in_an_interrupted_run_too(tmp_path):
    rows = pairs(GOOD)
    failed_rows = [{**rows[0], "says": dict.fromkeys(("j1", "j2", "j3"))}, *rows[1:]]
    full_result = run(tmp_path, rows, name="one")
    partial = interrupted(tmp_path, failed_rows, "two", 8)
    shared_items = compare([full_result, partial]).pairs[0].shared_items
    assert (shared_items.n, shared_items.n_unjudged) == (8, 12)
    assert shared_items.verdicts.agreement.estimate == pytest.approx(7 / 8)


def test_a_retest_leaves_out_what_an_interrupted_run_has_not_judged(tmp_path):
    full_result = run(tmp_path, pairs(GOOD), name="one")
    partial = interrupted(tmp_path, pairs(GOOD), "two", 8)
    findings = retest([full_result, partial])
    assert (findings.n, findings.n_unjudged, findings.n_same) == (8, 12, 8)
    assert "12 of 20 items, left out" in lines_of(retest_screen(findings, 80))
    with pytest.raises(StatisticsError, match="no item was judged in all of the runs"):
        retest([full_result, interrupted(tmp_path, pairs(GOOD), "three", 0)])


def test_copies_of_a_run_are_called_by_what_differs_in_their_paths(tmp_path):
    folders = []
    for position in ("a/x", "b/x", "b/y"):
        (tmp_path / position).mkdir(parents=True)
        namespace = SimpleNamespace(
            path=tmp_path / position, manifest=lambda: SimpleNamespace(run="r")
        )
        folders.append(namespace)
    other_namespace = SimpleNamespace(
        path=tmp_path / "q", manifest=lambda: SimpleNamespace(run="q")
    )
    assert run_names([*folders, other_namespace]) == ["a/x", "b/x", "y", "q"]
    assert run_names([folders[0], folders[0]]) == ["r", "r"]  # it is one run


def test_items_of_one_name_that_ask_otherwise_are_not_shared(tmp_path):
    second = [{**item, "prompt": "another question"} for item in pairs(BAD)]
    comparison = compare(
        [run(tmp_path, pairs(GOOD), name="one"), run(tmp_path, second, name="two")]
    )
    assert comparison.pairs[0].shared_items is None


def test_unlabelled_runs_are_compared_by_verdicts_and_leaderboards(tmp_path):
    runs = [
        run(tmp_path, [{**i, "label": None} for i in pairs(rows)], name=name, kind="eval")
        for name, rows in (("one", GOOD), ("two", BAD))
    ]
    comparison = compare(runs)
    pair = comparison.pairs[0]
    assert pair.experiments is None
    assert pair.shared_items.n_labelled == 0
    assert pair.shared_items.mcnemar is None
    assert pair.shared_items.verdicts.agreement.estimate == pytest.approx(0.5)
    assert pair.tau in (-1, 0, 1) or pair.tau != pair.tau
    assert comparison.pool is None
    assert all(table.rows for table in tables(comparison))


def test_pooling_counts_an_item_once_unless_every_record_is_asked_for(tmp_path):
    runs = [run(tmp_path, pairs(GOOD), name="one"), run(tmp_path, pairs(GOOD[:5]), name="two")]
    once, every = compare(runs), compare(runs, every_record=True)
    assert (once.pool.n, every.pool.n) == (20, 25)
    assert once.pool.n_repeated == every.pool.n_repeated == 5
    assert figures(every)["unanimous.n"].value == 25


def test_one_run_is_no_comparison(tmp_path):
    with pytest.raises(StatisticsError, match="two runs"):
        compare([run(tmp_path, pairs(GOOD))])
