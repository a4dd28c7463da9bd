"""Runs of the same items against each other: counted by hand, and on the first paper's own runs."""

import json
from pathlib import Path

import numpy as np
import pytest

from analysis.labelled import pairs, run
from clash.analysis.retest import figures, retest
from clash.analysis.retest.align import align
from clash.analysis.retest.targeted import targets
from clash.analysis.rundata import RunData
from clash.analysis.serialize import to_dict
from clash.errors import StatisticsError
from clash.pipeline.foreign_runs import write_run
from clash.report.headline import retest_headline
from clash.report.retest import tables
from clash.reproduction.conversion import convert
from clash.store.folder import RunFolder

FIRST = [("a", "aaa"), ("a", "aaa"), ("b", "aaa"), ("b", "bbb"), ("a", "bbb"), ("a", "aab")]
SECOND = [("a", "aaa"), ("a", "bbb"), ("b", "aaa"), ("b", "bbb"), ("a", "bbb"), ("a", "aab")]


def two(tmp_path, first=FIRST, second=SECOND, **more):
    return [
        run(tmp_path, pairs(first, **more), name="one"),
        run(tmp_path, pairs(second, **more), name="two", kind="rerun"),
    ]


def test_categories_table_and_errors_are_counted(tmp_path):
    retest_findings = retest(two(tmp_path))
    assert {c.name: c.n for c in retest_findings.categories} == {
        "stably correct": 3,
        "stably incorrect": 2,
        "unstable": 1,
    }
    table = retest_findings.pairs[0].matches
    assert (table.both, table.first, table.second, table.neither) == (3, 1, 0, 2)
    assert retest_findings.systematic.estimate == pytest.approx(2 / 3)
    assert retest_findings.pairs[0].verdicts.agreement.estimate == pytest.approx(5 / 6)
    assert [line.item_id for line in retest_findings.unstable] == ["i1"]


def test_runs_on_fresh_responses_are_not_pooled_with_runs_on_the_same(tmp_path):
    """One rerun repeats 5 of 6 verdicts, another, on fresh responses, one of 6 of the first run."""
    fresh = [("a", "bbb"), ("a", "bbb"), ("b", "bbb"), ("b", "aaa"), ("a", "bbb"), ("a", "bbb")]
    texts = [{"a": f"new {n}", "b": "too"} for n in range(6)]
    third = run(tmp_path, pairs(fresh, texts=texts), name="three", kind="rerun")
    run_pair = two(tmp_path)
    retest_findings = retest([*run_pair, third])
    assert retest_findings.pair_agreement.estimate == pytest.approx(5 / 6)
    to_first, to_second = (
        np.mean(
            [v.winner == w.winner for v, w in zip(record.verdicts, third.verdicts, strict=True)]
        )
        for record in run_pair
    )
    assert retest_findings.fresh_pair_agreement.estimate == pytest.approx(
        (to_first + to_second) / 2
    )
    rows = {tuple(row[:2]): row[2] for row in tables(retest_findings)[1].rows}
    assert rows["mean of two runs", "same"].startswith("83.3%")
    assert rows["mean of two runs", "fresh"] != rows["mean of two runs", "same"]
    assert "fresh" in retest_headline(retest_findings).text
    only = retest([run_pair[0], third])
    assert only.pair_agreement.estimate == pytest.approx(to_first)
    assert only.fresh_pair_agreement is None
    assert retest_headline(only).text.startswith("With fresh responses")
    assert retest(run_pair).fresh_pair_agreement is None


def test_kappa_over_verdicts_is_not_kappa_over_matches(tmp_path):
    from sklearn.metrics import cohen_kappa_score

    more = [("b", "bbb"), ("b", "bbb")]
    retest_findings = retest(two(tmp_path, FIRST + more, SECOND + more))
    verdict_rows = [list("aaabbabb"), list("ababbabb")]
    assert retest_findings.pairs[0].verdicts.kappa.estimate == pytest.approx(
        cohen_kappa_score(*verdict_rows)
    )
    right = [[1, 1, 0, 1, 0, 1, 1, 1], [1, 0, 0, 1, 0, 1, 1, 1]]
    assert retest_findings.pairs[0].matches.kappa.estimate == pytest.approx(
        cohen_kappa_score(*right)
    )
    assert (
        retest_findings.pairs[0].matches.kappa.estimate
        != retest_findings.pairs[0].verdicts.kappa.estimate
    )


def test_combined_concordance_counts_an_item_once_for_its_interval(tmp_path):
    first, second = two(tmp_path, FIRST * 5, FIRST * 5)
    retest_findings = retest([first, second])
    assert retest_findings.all_runs.n == 60
    assert retest_findings.all_runs.interval.n_effective == pytest.approx(30, rel=0.1)
    assert retest_findings.all_runs.wilson.half_width < retest_findings.all_runs.interval.half_width


def test_without_labels_items_are_stable_or_unstable(tmp_path):
    runs = []
    for name, rows in (("one", FIRST), ("two", SECOND)):
        items = [{**item, "label": None} for item in pairs(rows)]
        runs.append(run(tmp_path, items, name=name, kind="eval"))
    retest_findings = retest(runs)
    assert {c.name: c.n for c in retest_findings.categories} == {"stable": 5, "unstable": 1}
    assert (
        retest_findings.all_runs is retest_findings.majority is retest_findings.systematic is None
    )
    assert retest_findings.pairs[0].matches is None
    assert all(table.rows for table in tables(retest_findings))


def test_a_run_on_a_part_of_the_items_is_a_targeted_one(tmp_path):
    runs = two(tmp_path)
    again = [item for item in pairs(SECOND) if item["id"] in ("i1", "i2", "i4")]
    again[0]["says"] = dict.fromkeys(("j1", "j2", "j3"), "a")
    retest_findings = retest([*runs, run(tmp_path, again, name="third", kind="rerun")])
    part = retest_findings.targeted_runs[0]
    assert {
        group.name: (group.n, round(group.right.estimate * group.n)) for group in part.groups
    } == {
        "stably incorrect": (2, 0),
        "unstable": (1, 1),
    }
    assert part.confirmation.coin.p == pytest.approx(0.25)
    # Two of three runs say a of i1, which is right: the majority is better than the second run.
    assert retest_findings.majority.right == 4


def test_targets_are_the_wrong_the_unstable_and_the_least_sure(tmp_path):
    target_items = targets(align(two(tmp_path)), n_stable=1)
    assert target_items.stably_incorrect.tolist() == [2, 4]
    assert target_items.unstable.tolist() == [1]
    assert target_items.low_confidence.tolist() == [5]  # 2-1, where the others are 3-0


def test_each_judge_is_held_against_itself(tmp_path):
    first = [("a", "aaa"), ("a", "aab"), ("a", "a-b")]
    second = [("a", "aaa"), ("a", "bab"), ("a", "aab")]
    lines = {line.judge: line for line in retest(two(tmp_path, first, second)).judges}
    assert lines["j1"].consistency.estimate == pytest.approx(2 / 3)
    assert (lines["j2"].items, lines["j2"].consistency.estimate) == (2, 1)


def fresh(tmp_path, name, rng, seed_of_text, quality):
    """Responses by ``seed_of_text``; the panel says a with the quality that these texts have."""
    items = []
    for n in range(40):
        better = quality[seed_of_text, n]
        opinions = "a" if rng.random() < better else "b"
        items.append(
            {
                "id": f"i{n}",
                "label": None,
                "texts": {"a": f"a{seed_of_text}", "b": f"b{seed_of_text}"},
                "says": dict.fromkeys(("j1", "j2", "j3"), opinions),
            }
        )
    return run(tmp_path, items, name=name, kind="eval")


def test_generation_and_judgment_are_told_apart_where_the_runs_can(tmp_path):
    """Responses decide everything, judges add little noise: generation has nearly all of it."""
    rng = np.random.default_rng(5)
    quality = rng.choice([0.03, 0.97], (3, 40))
    runs = [
        fresh(tmp_path, name, rng, text, quality)
        for name, text in (("p", 0), ("same", 0), ("fresh1", 1), ("fresh2", 2))
    ]
    retest_findings = retest(runs)
    assert retest_findings.variance.generation_share.estimate > 0.7
    assert retest_findings.variance.same_responses > 0.85
    assert retest_findings.variance.fresh_responses == pytest.approx(0.5, abs=0.15)
    assert [line.fresh_responses for line in retest_findings.runs] == [False, False, True, True]


def test_without_a_second_judgment_of_the_same_responses_it_says_so(tmp_path):
    rng = np.random.default_rng(5)
    quality = rng.choice([0.1, 0.9], (2, 40))
    retest_findings = retest(
        [fresh(tmp_path, n, rng, k, quality) for k, n in enumerate(("p", "q"))]
    )
    assert retest_findings.variance is None
    assert "judge some responses twice" in retest_findings.variance_why


def test_rankings_of_cycles_have_a_tau(tmp_path):
    retest_findings = retest(
        [*two(tmp_path), run(tmp_path, pairs(FIRST), name="three", kind="rerun")]
    )
    assert retest_findings.rankings.tau.shape == (3, 3)
    assert -1 <= retest_findings.rankings.mean.estimate <= 1
    json.dumps(to_dict(retest_findings), allow_nan=False)


def test_runs_without_a_shared_item_are_refused(tmp_path):
    other_prompts = [{**item, "id": f"x{item['id']}"} for item in pairs(SECOND)]
    with pytest.raises(StatisticsError, match="share no item"):
        retest([run(tmp_path, pairs(FIRST), name="one"), run(tmp_path, other_prompts, name="two")])
    with pytest.raises(StatisticsError, match="two runs"):
        retest([run(tmp_path, pairs(FIRST), name="alone")])


RESULTS = Path(__file__).resolve().parents[2] / "../shared/data/agent-clash"


@pytest.fixture(scope="module")
def published_runs(tmp_path_factory):
    if not RESULTS.is_dir():
        pytest.skip("../shared/data is absent")
    out = tmp_path_factory.mktemp("agent-clash")
    for arena_run in convert(RESULTS).runs:
        write_run(arena_run, RESULTS, out)
    return lambda *names: [RunData.load(RunFolder(out / name)) for name in names]


def test_the_arena_runs_give_the_papers_table_8_and_its_targeted_run(published_runs):
    named_figures = figures(retest(published_runs("arena-1", "arena-2", "arena-3")))
    table = [named_figures[name].value for name in ("both", "first_only", "second_only", "neither")]
    assert table == [71, 5, 4, 20]
    assert named_figures["kappa.matches"].value == pytest.approx(0.757, abs=5e-4)
    assert named_figures["agreement"].value == 0.91
    assert [named_figures[f"run{n}.right"].value for n in (1, 2)] == [76, 75]
    assert [
        named_figures[f"targeted.{name}.n"].value for name in ("stably_incorrect", "unstable")
    ] == [
        20,
        9,
    ]
    assert named_figures["targeted.stably_correct.n"].value == 31
    assert named_figures["majority.concordance"].value == 0.76


def test_the_item_that_flips_is_the_tie_break_of_a_split_panel(published_runs):
    """Published 34 of 60 and 19 of 20; without the tie-break by slot A0, 33 and 20."""
    data = published_runs("arena-3")[0]
    verdict = next(v for v in data.verdicts if v.item_id == "arena-100")
    assert (verdict.winner, verdict.split) == (None, "1-1")
    named_figures = figures(retest(published_runs("arena-1", "arena-2", "arena-3")))
    assert named_figures["run3.right"].value == 33
    assert named_figures["targeted.stably_incorrect.wrong"].value == 20


def test_two_end_to_end_runs_agree_more_often_than_three_all_alike(published_runs):
    retest_findings = retest(published_runs("e2e-1", "e2e-2", "e2e-3"))
    assert retest_findings.all_same.estimate == 0.6
    assert retest_findings.pair_agreement.estimate == pytest.approx((6 * 3 + 4 * 1) / 30)
