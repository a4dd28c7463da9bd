"""People's win rates from a few labels and all verdicts: beside the panel's, or why not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.simulated_runs import run_data
from clash.analysis.corrected import correction
from clash.analysis.findings import compute_findings, figures
from clash.analysis.label_sample import draw_order, label_sample
from clash.analysis.serialize import to_dict
from clash.records import Label
from clash.report.sections import report_tables

TWO = ("ada", "bob")


def judged_data(n, rng, skill=0.85, share=0.6):
    """Who people prefer, and a run whose three judges see it as often as their skill."""
    truth = np.where(rng.random(n) < share, 0, 1)
    table = []
    for t in truth:
        votes = np.where(rng.random(3) < skill, t, 1 - t)
        table.append({j: [[TWO[v]], [TWO[1 - v]]] for j, v in zip("xyz", votes, strict=True)})
    return truth, run_data(table, TWO)


def with_labels(data, truth, rows):
    labels = tuple(
        Label(item_id=f"q{i}", annotator="ann", winner=TWO[truth[i]]) for i in sorted(rows)
    )
    return replace(data, labels=labels)


def test_a_random_sample_corrects_a_panel_that_favours_one():
    rng = np.random.default_rng(0)
    truth, data = judged_data(300, rng, share=0.5)
    # Judges see ada in front wherever they are told so: in a third of bob's items.
    table = [
        {j: [[TWO[0]], [TWO[1]]] for j in "xyz"} if t and rng.random() < 0.4 else None
        for t in truth
    ]
    verdict_rows = [
        row or {j: [[TWO[t]], [TWO[1 - t]]] for j in "xyz"}
        for row, t in zip(table, truth, strict=True)
    ]
    data = with_labels(run_data(verdict_rows, TWO), truth, rng.permutation(300)[:80].tolist())
    correction_findings = correction(data, TWO)
    ada = correction_findings.of("ada")
    assert ada.panel > 0.62
    assert ada.bias > 0.1
    assert abs(ada.rate.estimate - np.mean(truth == 0)) < 0.06
    assert ada.rate.half_width < ada.labels_only.half_width


def test_judges_that_differ_are_weighed_by_what_labels_say_of_each():
    """One judge knows, one tosses a coin, and one mostly prefers what people do not."""
    rng = np.random.default_rng(3)
    truth = np.where(rng.random(300) < 0.6, 0, 1)
    table = []
    for t in truth:
        votes = np.where(rng.random(3) < (0.95, 0.5, 0.2), t, 1 - t)
        table.append({j: [[TWO[v]], [TWO[1 - v]]] for j, v in zip("xyz", votes, strict=True)})
    rows = rng.permutation(300)[:60].tolist()
    correction_findings = correction(with_labels(run_data(table, TWO), truth, rows), TWO)
    duel, rate = correction_findings.duels[0], correction_findings.of("ada").rate
    for interval in (duel.rate, rate):
        assert interval.half_width < 0.8 * duel.labels_only.half_width
        assert "each judge" in interval.method
    assert abs(rate.estimate - np.mean(truth == 0)) < 0.06


def with_drawn_labels(data, truth, n, seed=42):
    """The first n items of a review's draw, labelled."""
    order = draw_order(data.verdicts, seed, equal=False)[:n]
    labels = tuple(
        Label(item_id=item_id, annotator="ann", winner=TWO[truth[int(item_id[1:])]], draw=draw)
        for item_id, draw in order
    )
    return replace(data, labels=labels)


def test_drawn_items_are_weighted_by_chances_that_add_up_to_the_number_of_labels():
    rng = np.random.default_rng(6)
    truth, data = judged_data(300, rng, skill=0.75)
    split = np.array([not verdict.unanimous for verdict in data.verdicts])
    sample = label_sample(with_drawn_labels(data, truth, 60))
    assert sample.any_time
    assert sample.chances.sum() == pytest.approx(60)
    assert sample.has_label[split].mean() > 1.3 * sample.has_label[~split].mean()
    assert sample.chances[split].min() > 1.3 * sample.chances[~split].max()


def test_items_labelled_in_another_way_stand_for_themselves():
    rng = np.random.default_rng(7)
    truth, data = judged_data(200, rng)
    data = with_drawn_labels(data, truth, 40)
    unlabelled_items = [i for i in range(200) if f"q{i}" not in {x.item_id for x in data.labels}][
        :30
    ]
    more = with_labels(data, truth, unlabelled_items).labels
    sample = label_sample(replace(data, labels=(*data.labels, *more)))
    assert sample.chances[unlabelled_items].tolist() == [1.0] * 30
    assert sample.has_label.sum() == 70
    assert sample.chances.sum() == pytest.approx(70)


def test_the_decision_of_a_review_holds_whenever_it_stops_so_its_interval_is_wider():
    rng = np.random.default_rng(8)
    truth, data = judged_data(300, rng, share=0.75)
    people = correction(with_drawn_labels(data, truth, 60), TWO).decision
    assert people.any_time
    assert people.winner == "ada"
    assert people.duel.rate.low < people.duel.once.low < people.duel.once.high
    once = correction(with_labels(data, truth, rng.permutation(300)[:60].tolist()), TWO).decision
    assert not once.any_time
    assert once.duel.rate == once.duel.once


def test_people_compare_three_candidates_on_their_own_scale():
    rng = np.random.default_rng(9)
    three = ("ada", "bob", "cyd")
    row_orders = [[three[i] for i in rng.permutation(3)] for _ in range(200)]
    data = run_data([{j: [[name] for name in row] for j in "xyz"} for row in row_orders], three)
    labels = tuple(
        Label(item_id=f"q{i}", annotator="ann", winner="cyd" if rng.random() < 0.7 else "ada")
        for i in rng.permutation(200)[:60].tolist()
    )
    findings = compute_findings(replace(data, labels=labels))
    people = findings.correction
    assert [line.candidate for line in people.strengths] == ["cyd", "ada", "bob"]
    assert people.decision.status == "decided"
    assert people.decision.winner == "cyd"
    assert people.decision.duel.second == "ada"
    assert sum(line.strength.estimate for line in people.strengths) == pytest.approx(0, abs=1e-9)
    names = figures(findings)
    assert names["people_lead.cyd"].low > 0
    assert 0 <= names["people_win_rate.bob"].low < names["people_win_rate.bob"].high < 0.5


def test_strengths_need_twenty_prompts_and_not_only_twenty_items():
    rng = np.random.default_rng(10)
    three = ("ada", "bob", "cyd")
    row_orders = [[three[i] for i in rng.permutation(3)] for _ in range(90)]
    rows = [{j: [[name] for name in row] for j in "xyz"} for row in row_orders]
    labels = tuple(Label(item_id=f"q{i}", annotator="ann", winner=three[i % 3]) for i in range(30))
    for copies, has_strengths in ((1, True), (2, False)):
        clusters = [f"p{i // copies}" for i in range(90)]
        data = replace(run_data(rows, three, clusters=clusters), labels=labels)
        people = correction(data, three)
        assert people.refusal is None
        assert bool(people.strengths) is has_strengths


def test_what_the_panel_was_split_on_is_no_sample_of_all():
    rng = np.random.default_rng(2)
    truth, data = judged_data(200, rng, skill=0.8)
    split = [i for i, verdict in enumerate(data.verdicts) if not verdict.unanimous]
    correction_findings = correction(with_labels(data, truth, split[:30]), TWO)
    assert correction_findings.rates == ()
    assert "unanimous have a label, too few" in correction_findings.refusal
    assert "clash review RUN" in correction_findings.refusal


def test_few_labels_are_said_and_none_are_silent():
    rng = np.random.default_rng(3)
    truth, data = judged_data(60, rng)
    assert correction(data, TWO) is None
    assert "too few (10)" in correction(with_labels(data, truth, range(5)), TWO).refusal
    one_label = correction(with_labels(data, truth, range(1)), TWO)
    assert one_label.refusal.startswith("1 labelled prompt is too few (10)")


def test_all_labelled_is_the_labels():
    rng = np.random.default_rng(4)
    truth, data = judged_data(60, rng)
    rate = correction(with_labels(data, truth, range(60)), TWO).of("bob")
    assert rate.rate == rate.labels_only
    assert rate.rate.estimate == pytest.approx(np.mean(truth == 1))


def test_the_leaderboard_shows_it_beside_the_panels():
    rng = np.random.default_rng(5)
    truth, data = judged_data(120, rng)
    few = compute_findings(with_labels(data, truth, range(6)))
    notes = " ".join(report_tables(few)[0].notes)
    assert "not estimated from 6 labels" in notes
    findings = compute_findings(with_labels(data, truth, rng.permutation(120)[:60].tolist()))
    board = report_tables(findings)[0]
    assert {"people put it first", "people's win rate"} <= set(board.columns)
    first = findings.leaderboard[0]
    assert first.corrected_rate == findings.correction.of(first.candidate).rate
    assert to_dict(findings)["leaderboard"][0]["corrected"]["n"] == 60
