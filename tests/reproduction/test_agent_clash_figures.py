"""The published figures of the Agent Clash paper, recomputed from its released results."""

import json
from pathlib import Path

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats import hypothesis_tests as tests
from clash.stats.agreement import cohen_kappa
from clash.stats.intervals import wilson, wilson_clustered
from clash.stats.retest.ranking_stability import decompose
from clash.stats.retest.repeats import (
    confirm,
    inter_run,
    majority_over_runs,
    match_table,
    select_targets,
    stability,
)
from clash.stats.scoring import accuracy
from clash.stats.voting.majority import majority
from clash.votes import read_votes

SHARED = Path(__file__).resolve().parents[2] / "../shared/data"
RESULTS = SHARED / "agent-clash"
pytestmark = pytest.mark.skipif(not RESULTS.is_dir(), reason="../shared/data is absent")
STRONG = ("gpt-4", "claude-v1", "gpt-3.5-turbo")
JUDGES = ("gpt-5.2-pro", "claude-opus-4.5", "gemini-2.5-pro")


def results(name):
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["results"]


def by_id(name, field):
    return {record["eval_id"]: record[field] for record in results(name)}


@pytest.fixture(scope="module")
def arena():
    """Match of both whole runs, and of the targeted third by item."""
    first, second = (by_id(f"arena_validation_results{s}", "match") for s in ("", "_run2"))
    ids = sorted(first)
    third = by_id("arena_validation_results_run3", "match")
    return ids, [first[i] for i in ids], [second[i] for i in ids], third


def test_concordance_and_its_interval_on_mt_bench():
    match = [record["match"] for record in results("validation_results")]
    interval = wilson(sum(match), len(match))
    assert interval.estimate == 0.88
    assert (interval.low, interval.high) == pytest.approx((0.802, 0.930), abs=5e-4)


def test_intervals_by_question_are_wider_than_by_pair():
    """53 questions in 100 pairs; the effective n is below 100 only if errors cluster."""
    texts = json.loads((RESULTS / "mt_bench_100_evaluations.json").read_text(encoding="utf-8"))
    question = {record["id"]: record["question_id"] for record in texts}
    records = results("validation_results")
    match = np.array([float(record["match"]) for record in records])
    clusters = [question[record["eval_id"]] for record in records]
    assert len(set(clusters)) == 53
    interval = wilson_clustered(match, clusters)
    assert interval.n_effective < 100
    assert interval.half_width > wilson(88, 100).half_width


def test_strong_against_weak_winners():
    records = [r for r in results("validation_results") if r["human_winner"]]
    table = np.zeros((2, 2))
    for record in records:
        table[int(record["human_winner"] not in STRONG), int(not record["match"])] += 1
    assert table.tolist() == [[71, 3], [17, 8]]
    assert tests.chi_square(table).statistic == pytest.approx(14.78, abs=5e-3)
    assert tests.odds_ratio(table).estimate == pytest.approx(11.14, abs=5e-3)
    # One expected count is below 5, so the exact test is the one to believe.
    assert tests.smallest_expected(table) < 5
    assert tests.fisher_exact(table).p < 0.001


def test_the_experiments_differ():
    mt, arena = (
        sum(r["match"] for r in results(name))
        for name in ("validation_results", "arena_validation_results")
    )
    test = tests.two_proportions(mt, 100, arena, 100)
    assert test.statistic == pytest.approx(2.21, abs=5e-3)
    assert test.p == pytest.approx(0.027, abs=5e-4)


def test_the_inter_run_table(arena):
    _, first, second, _ = arena
    table = match_table(first, second)
    assert (table.both, table.first, table.second, table.neither) == (71, 5, 4, 20)
    assert table.kappa.estimate == pytest.approx(0.757, abs=5e-4)
    assert table.corrected.statistic == 0


def test_the_same_verdict_in_91_of_100_and_kappa_over_verdicts_is_another_number(arena):
    ids = arena[0]
    sentences = []
    for name in ("arena_validation_results", "arena_validation_results_run2"):
        winner_by_id, first = by_id(name, "ai_winner"), by_id(name, "model_a")
        sentences.append([int(winner_by_id[i] != first[i]) for i in ids])
    agreement = inter_run(*sentences, 2)
    assert agreement.agreement.estimate == 0.91
    assert agreement.kappa.estimate == pytest.approx(2 * 0.91 - 1, abs=0.01)


def test_the_third_run_was_aimed_at_the_classes_of_the_first_two(arena):
    ids, first, second, _ = arena
    # Whether a run met the label is the verdict that is compared here, the label "it did".
    stability_findings = stability(np.stack([first, second], axis=1), np.ones(100))
    confidence = np.stack(
        [
            list(by_id(name, "confidence").values())
            for name in ("arena_validation_results", "arena_validation_results_run2")
        ],
        axis=1,
    ).astype(float)
    targets = select_targets(stability_findings, confidence, 31)
    assert (len(targets.stably_incorrect), len(targets.unstable), len(targets.indices)) == (
        20,
        9,
        60,
    )
    category = by_id("arena_validation_results_run3", "category")
    hard = {ids[i] for i in (*targets.stably_incorrect, *targets.unstable)}
    assert hard == {i for i, name in category.items() if name != "LOW_CONF_OK"}


def test_stable_errors_repeat_19_of_20_as_selection_predicts(arena):
    ids, first, second, third = arena
    wrong = [i for i, a, b in zip(ids, first, second, strict=True) if not a and not b]
    again = sum(not third[i] for i in wrong)
    assert (again, len(wrong)) == (19, 20)
    confirmation = confirm(again, len(wrong), match_table(first, second))
    assert confirmation.coin.p == pytest.approx(2.003e-5, rel=1e-3)
    assert confirmation.coin.p > 2e-5
    assert confirmation.expected == pytest.approx(0.896, abs=1e-3)


def test_majority_over_runs_is_no_better_than_one(arena):
    ids, first, second, third = arena
    runs = np.stack([first, second, [third.get(i, -1) for i in ids]], axis=1).astype(int)
    assert np.sum(majority_over_runs(runs) == 1) == 76


def match_rows(records):
    """Whether each judge of the panel met the label, (n, 3), NaN missing; records in file order."""
    table = np.full((len(records), 3), np.nan)
    for row, record in zip(table, records, strict=True):
        top = record["summary"]["winner"]
        for judge in record["judge_matrix"]:
            if judge["is_supreme"]:
                judge_index = next(
                    i for i, name in enumerate(JUDGES) if name in judge["judge_model"]
                )
                # With two responses a judge either took the panel's winner or the other.
                agrees = judge["ranking"][0] == top["anon_id"]
                row[judge_index] = agrees == (top["model"] == record["human_winner"])
    return table


def records_of(name, *, once=True):
    data = json.loads((RESULTS / "judge_matrix_data.json").read_text(encoding="utf-8"))[name]
    first = {}
    for record in data:
        first.setdefault(record["eval_id"], record)
    return list(first.values()) if once else data


@pytest.mark.parametrize(
    ("name", "n", "panel", "judges"),
    [
        ("mtbench", 99, 88.9, (88.9, 87.9, 83.8)),
        ("arena_r1", 93, 75.3, (74.2, 76.3, 69.9)),
    ],
)
def test_table_11_panel_and_judges_on_the_first_record_of_each_item(name, n, panel, judges):
    match = match_rows(records_of(name))
    assert match.shape == (n, 3)
    verdict = majority(match).verdict
    assert 100 * accuracy(verdict, np.ones(n)) == pytest.approx(panel, abs=0.05)
    percents = 100 * np.nanmean(match, axis=0)
    assert percents == pytest.approx(judges, abs=0.05)


def test_table_12_counts_retries_twice():
    """As published, N = 239 records; on one record per item 157 unanimous and 35 split."""
    figures = []
    for once in (False, True):
        tables = [match_rows(records_of(name, once=once)) for name in ("mtbench", "arena_r1")]
        match = np.concatenate(tables)
        complete_rows = match[~np.isnan(match).any(axis=1)]
        majority_votes = majority(complete_rows)
        right = majority_votes.verdict == 1
        for kind in (majority_votes.unanimous, ~majority_votes.unanimous):
            figures += [(int(kind.sum()), 100 * right[kind].mean())]
    expected_cells = [(192, 84.9), (47, 63.8), (157, 86.0), (35, 65.7)]
    for (n, share), (published_n, published_value) in zip(figures, expected_cells, strict=True):
        assert n == published_n
        assert share == pytest.approx(published_value, abs=0.06)


def test_kappa_over_sides_on_mt_bench():
    path = SHARED / "votes" / "agentclash-mtbench100.votes.jsonl.gz"
    votes = read_votes(path, judges="*/supreme")
    votes = votes.take(np.array([repeat == "0" for repeat in votes.repeats]))
    verdict = majority(votes.matrix).verdict.astype(int)
    assert cohen_kappa(verdict, votes.label_codes()).estimate == pytest.approx(0.764, abs=5e-4)


def test_end_to_end_runs_agree_on_six_of_ten_prompts():
    data = json.loads((RESULTS / "e2e_mini_results.json").read_text(encoding="utf-8"))["runs"]
    runs = [{record["prompt_id"]: record["ai_winner"] for record in run} for run in data.values()]
    names = [run[prompt] for prompt in sorted(runs[0]) for run in runs]
    codes = np.unique(names, return_inverse=True)[1].reshape(10, 3)
    assert stability(codes).count("stable") == 6
    # Each set of responses was judged once, so generation and judgment cannot be told apart.
    prompts, generations = np.divmod(np.arange(30), 3)
    with pytest.raises(StatisticsError, match="cannot be separated"):
        decompose(codes.ravel(), prompts, generations, np.random.default_rng(0))
