"""Votes to verdicts: one say a judge and item, ties that stay ties, labels that are not leaked."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from clash.analysis.aggregation import aggregate, aggregate_outcomes
from clash.analysis.aggregation.methods import method_names
from clash.errors import ConfigError
from clash.report.aggregation import as_json
from clash.votes import VoteRow, encode, write_votes

FIGURES = {"accuracy", "balanced_accuracy", "log_loss", "brier", "ece"}


def simulated_votes(n=400, skill=(0.9, 0.8, 0.75, 0.7, 0.65), *, seed=1, label=True):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    right = rng.random((n, len(skill))) < skill
    votes = np.where(right, truth[:, None], 1 - truth[:, None])
    for i in range(n):
        for j in range(len(skill)):
            yield VoteRow(
                f"q{i}",
                f"j{j}",
                int(votes[i, j]),
                label=int(truth[i]) if label else None,
                family="x" if j < 2 else f"f{j}",
            )


def test_every_method_answers_or_says_why_not():
    aggregation = aggregate(encode(simulated_votes()), method_names())
    assert {result.method for result in aggregation.methods} == set(method_names())
    for result in aggregation.methods:
        if result.status == "refused":
            assert result.notes[0]
        else:
            assert np.isfinite(result.p).all()
            assert 0 <= result.score.accuracy <= 1
    assert aggregation.result("position-bias").status == "refused"


def with_labels(n_labels, n=300):
    """Most judges are wrong together; the first items have a label."""
    rows = list(simulated_votes(n, (0.85, 0.8, 0.35, 0.35, 0.35), seed=5))
    labelled_ids = {f"q{i}" for i in range(n_labels)}
    return encode(row if row.item in labelled_ids else replace(row, label=None) for row in rows)


def test_from_ten_labels_on_the_expert_pool_is_selected():
    truth = np.array([row.label for row in simulated_votes(300, (0.85,), seed=5)])
    aggregation = aggregate(with_labels(60), ["auto"])
    assert aggregation.selected == "expert-pool"
    pool_result, auto = aggregation.result("expert-pool"), aggregation.result("auto")
    assert (pool_result.p_is, auto.p_is) == ("probability", "vote share")
    unseen_share = slice(60, None)
    assert (pool_result.verdict[unseen_share] == truth[unseen_share]).mean() > 0.75
    assert (auto.verdict[unseen_share] == truth[unseen_share]).mean() < 0.6
    assert as_json(aggregation)["methods"]["expert-pool"]["scale"] == pytest.approx(
        pool_result.scale
    )


@pytest.mark.parametrize(
    ("n_labels", "options"), [(9, {}), (60, {"use_labels": False})], ids=["few", "left out"]
)
def test_without_labels_or_with_too_few_nothing_is_a_probability(n_labels, options):
    aggregation = aggregate(with_labels(n_labels), ["auto"], **options)
    assert aggregation.selected != "expert-pool"
    assert {result.p_is for result in aggregation.methods} == {"vote share"}


def test_labels_scale_the_log_odds_of_every_method_and_turn_no_verdict():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 300)
    source = np.where(rng.random(300) < 0.65, truth, 1 - truth)
    votes = encode(
        VoteRow(f"q{i}", f"j{j}", int(source[i]), label=int(truth[i]) if i < 150 else None)
        for i in range(300)
        for j in range(5)
    )
    plain = aggregate(votes, ["majority"], use_labels=False).result("majority")
    scaled_result = aggregate(votes, ["majority"], use_labels=True).result("majority")
    assert (scaled_result.p_is, plain.p_is) == ("probability", "vote share")
    assert (scaled_result.verdict[150:] == plain.verdict[150:]).all()
    # Five copies of a judge that is right on 65%: log-odds of log(6) become those of log(65 / 35).
    assert scaled_result.scale == pytest.approx(np.log(0.65 / 0.35) / np.log(6), abs=0.15)
    assert scaled_result.score.log_loss < plain.score.log_loss - 0.05


def test_lines_in_another_order_and_a_judge_that_never_voted_change_nothing():
    rows = list(simulated_votes(120, (0.85, 0.8, 0.7, 0.6), seed=5))
    rng = np.random.default_rng(3)
    rows = [
        replace(
            row,
            vote=0.5 if rng.random() < 0.1 else row.vote,
            label=row.label if row.item < "q3" else None,
        )
        for row in rows
    ]
    names = ["auto", "ising-shared", "factor", "weighted-majority"]
    silent = [VoteRow(f"q{i}", "silent", None) for i in range(120)]
    shuffled_rows = [rows[i] for i in rng.permutation(len(rows))]
    first = aggregate(encode(rows), names)
    assert first.selected == "expert-pool"
    for other in (aggregate(encode(more), names) for more in (shuffled_rows, [*rows, *silent])):
        row_of = {item: row for row, item in enumerate(other.items)}
        order = [row_of[item] for item in first.items]
        for result in first.methods:
            p = other.result(result.method).p
            np.testing.assert_allclose(p[order], result.p, atol=1e-6)


def test_where_the_named_method_is_refused_majority_is_used_and_the_reason_told():
    aggregation = aggregate(encode(simulated_votes(60, (0.9, 0.8))), ["dawid-skene"])
    assert aggregation.selected == "majority"
    assert aggregation.reason.startswith("dawid-skene was refused: dawid-skene needs 3 judges")
    nobody = encode(VoteRow(f"q{i}", "j", None, label=i % 2) for i in range(20))
    assert aggregate(nobody, ["auto"]).reason.endswith("no judge voted on any item")


def test_the_expert_pool_says_why_it_is_refused():
    few = aggregate(with_labels(9), ["expert-pool"]).result("expert-pool")
    assert "needs 10 labels that name a side, there are 9" in few.notes[0]
    left_out = aggregate(with_labels(60), ["expert-pool"], use_labels=False)
    assert "--no-labels" in left_out.result("expert-pool").notes[0]


def test_good_judges_weigh_more_than_majority_lets_them():
    aggregation = aggregate(
        encode(simulated_votes(2000, (0.95, 0.9, 0.8, 0.8, 0.7))), ["auto", "dawid-skene"]
    )
    gain = aggregation.result("dawid-skene").score.gain
    assert gain.low > 0
    assert aggregation.selected != "majority"
    assert aggregation.result("auto").score.accuracy > aggregation.result("majority").score.accuracy


def test_couplings_say_how_they_were_held():
    """A ridge that is given, and one that held-out likelihood chooses; both are shown."""
    votes = encode(simulated_votes(300))
    fixed_ridge = aggregate(votes, ["ising-shared"], ridge=0.1).result("ising-shared")
    held_out_ridge = aggregate(votes, ["ising-shared"], ridge="held-out").result("ising-shared")
    assert "linear vote (equation 3); exact likelihood, L2 of 0.1" in fixed_ridge.notes[0]
    assert "best held-out likelihood (0.3: -" in held_out_ridge.notes[0]
    assert fixed_ridge.converged
    assert held_out_ridge.converged


def test_another_reading_of_the_votes_is_told():
    """Four copies against four good judges: which of the two is the truth, the votes do not say."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 600)
    source = np.where(rng.random(600) < 0.7, truth, 1 - truth)
    good = [np.where(rng.random(600) < 0.85, truth, 1 - truth) for _ in range(4)]
    near = [np.where(rng.random(600) < 0.05, 1 - source, source) for _ in range(4)]
    votes = encode(
        VoteRow(f"q{i}", f"j{j}", int(column[i]))
        for j, column in enumerate(good + near)
        for i in range(600)
    )
    aggregation = aggregate(votes, ["auto", "factor"])
    assert any("another solution" in note for note in aggregation.result("factor").notes)
    assert aggregation.selected == "majority"


def test_couplings_of_many_judges_are_by_pseudo_likelihood():
    votes = encode(simulated_votes(400, (0.8,) * 16))
    aggregation = aggregate(votes, ["ising-shared", "ising-class"], ridge="held-out")
    for name, form in (("ising-shared", "linear"), ("ising-class", "quadratic")):
        result = aggregation.result(name)
        assert result.status == "ok"
        assert form in result.notes[0]
        assert "16 judges are too many to enumerate" in result.notes[0]
        assert result.log_likelihood is None
        assert result.score.accuracy > 0.9


def test_the_json_has_the_keys_of_the_contract_and_no_figures_without_labels():
    report = as_json(aggregate(encode(simulated_votes(label=False)), ["majority", "dawid-skene"]))
    assert {"n_items", "n_judges", "selected", "reason", "methods"} <= set(report)
    for method in report["methods"].values():
        assert {"status", "converged", *FIGURES} <= set(method)
        assert all(method[name] is None for name in FIGURES)
    json.dumps(report, allow_nan=False)


def swapped_rows():
    """Judge a is consistent, judge b always takes what is shown first, c fails once."""
    for item in ("q1", "q2", "q3"):
        for text, b in (("orig", "A"), ("swap", "B")):
            yield VoteRow(item, "a", "A", label="A", presentation=text)
            yield VoteRow(item, "b", b, label="A", presentation=text)
            yield VoteRow(item, "c", None if text == "swap" else "A", label="A", presentation=text)


def test_an_item_seen_in_both_orders_is_one_item_in_which_a_flip_is_a_tie():
    merged_aggregation = aggregate(encode(swapped_rows()), ["majority"])
    apart = aggregate(encode(swapped_rows()), ["majority"], copies="separate")
    assert (merged_aggregation.n_items, apart.n_items) == (3, 6)
    # a and c for A, b level: 2.5 of 3 votes, smoothed by one for each side.
    assert merged_aggregation.result("majority").p == pytest.approx([3.5 / 5] * 3)
    assert any("each judge has one vote" in note for note in merged_aggregation.notes)


def test_where_judges_say_equal_and_the_sides_are_level_the_verdict_is_a_tie():
    rows = list(simulated_votes(300, (0.8, 0.8, 0.8, 0.8, 0.8), seed=3))
    rows += [
        VoteRow("t1", f"j{j}", vote, label="tie")
        for j, vote in enumerate(["A", "tie", "tie", "tie", "B"])
    ]
    rows += [
        VoteRow("t2", f"j{j}", vote, label=1) for j, vote in enumerate(["A", "B", "A", "B", None])
    ]
    aggregation = aggregate(encode(rows), ["dawid-skene"])
    verdicts = dict(zip(aggregation.items, aggregation.result("dawid-skene").verdict, strict=True))
    assert verdicts["t1"] == 0.5
    assert verdicts["t2"] in (0.0, 1.0)  # nobody said equal: the better judges decide


def test_labels_that_enter_a_fit_are_not_scored_by_that_fit():
    rng = np.random.default_rng(0)
    noise = [
        VoteRow(
            f"q{i}",
            f"j{j}",
            int(rng.integers(0, 2)),
            label=int(rng.integers(0, 2)) if j == 0 else None,
        )
        for i in range(300)
        for j in range(4)
    ]
    aggregation = aggregate(encode(noise), ["dawid-skene"], use_labels=True)
    result = aggregation.result("dawid-skene")
    assert 0.4 < result.score.accuracy < 0.6  # votes say nothing, and the label does not leak
    assert result.p.min() < 0.01  # while the posterior that is reported holds the labels


def test_an_unknown_method_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="Choices: auto, majority"):
        aggregate(encode(simulated_votes(10)), ["dawid-skeen"])


def test_scores_are_cut_in_two_and_it_is_said():
    rows = [
        VoteRow(f"q{i}", f"j{j}", (i + j) % 4 + 1, label=i % 4 + 1)
        for i in range(40)
        for j in range(3)
    ]
    aggregation = aggregate(encode(rows), ["majority"])
    assert any("2.5" in note for note in aggregation.notes)
    notes = aggregate(encode(rows), ["majority"], threshold=4.25).notes
    assert any("4.25" in note for note in notes)


def test_the_command_line_writes_a_line_for_each_item_and_method(tmp_path):
    votes, out = tmp_path / "v.jsonl", tmp_path / "out.jsonl"
    write_votes(votes, simulated_votes(60))
    words = [
        "aggregate",
        str(votes),
        "--method",
        "majority,dawid-skene",
        "--json",
        "--out",
        str(out),
    ]
    result = subprocess.run([sys.executable, "-m", "clash", *words], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    record = json.loads(result.stdout)
    assert record["n_items"] == 60
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == 120
    assert {*lines[0]} == {"item", "method", "p", "winner"}
    assert all((line["winner"] == "A") == (line["p"] > 0.5) for line in lines)


def test_a_tie_may_be_an_outcome_of_its_own():
    rng = np.random.default_rng(5)
    sides = ["A", "B", "tie"]
    rows = []
    for i in range(400):
        label = sides[rng.integers(3)]
        for j, skill in enumerate((0.9, 0.7, 0.6, 0.5)):
            other_sides = [side for side in sides if side != label]
            vote = label if rng.random() < skill else other_sides[rng.integers(2)]
            rows.append(VoteRow(f"q{i}", f"j{j}", vote, label=label))
    outcomes = aggregate_outcomes(encode(rows), ["auto", "dawid-skene", "factor"])
    better, plurality = outcomes.result("dawid-skene").score, outcomes.result("majority").score
    assert better.gain.low > 0
    assert better.log_loss < plurality.log_loss
    assert set(outcomes.result("dawid-skene").verdict) == {0.0, 0.5, 1.0}
    assert "two-sided" in outcomes.result("factor").notes[0]


def test_pairs_of_one_ranking_are_one_piece_of_evidence():
    """Three pairs of an item that say the same give the interval of one, and it is said."""
    single = list(simulated_votes(200, (0.9, 0.8, 0.55)))
    pairs = [
        replace(row, item=f"{row.item}#{pair}", group=row.item)
        for row in single
        for pair in ("a|b", "a|c", "b|c")
    ]
    aggregation, three = (aggregate(encode(rows), ["dawid-skene"]) for rows in (single, pairs))
    assert three.n_items == 3 * aggregation.n_items
    gain, expected_gain = (x.result("dawid-skene").score.gain for x in (three, aggregation))
    assert gain.estimate != 0
    assert (gain.low, gain.high) == pytest.approx((expected_gain.low, expected_gain.high), abs=1e-3)
    assert any("600 rows in 200 groups" in note for note in three.notes)


def test_a_weighted_majority_weighs_by_one_coin_or_as_it_is_told():
    votes = encode(simulated_votes(2000, (0.95, 0.6, 0.6)))
    aggregation = aggregate(votes, ["weighted-majority", "one-coin"])
    assert aggregation.result("weighted-majority").score.gain.low > 0
    # One-coin is the same vote, but for its prior.
    is_same = (
        aggregation.result("weighted-majority").verdict == aggregation.result("one-coin").verdict
    )
    assert is_same.mean() > 0.99
    printed_aggregation = aggregate(votes, ["weighted-majority"], weights=np.array([0.0, 0.0, 1.0]))
    third = np.array(
        [row.vote for row in simulated_votes(2000, (0.95, 0.6, 0.6)) if row.judge == "j2"]
    )
    assert np.array_equal(printed_aggregation.result("weighted-majority").verdict, third)
