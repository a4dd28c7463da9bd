"""How each judge sat, by hand: agreement, places on the page, failures, the control group."""

from __future__ import annotations

from dataclasses import replace
from statistics import NormalDist

import pytest

from analysis.simulated_runs import rules, run_data
from clash import baselines
from clash.analysis.coverage import cause
from clash.analysis.judges import baseline_reports, judge_reports, pairs, position, self_reports
from clash.records import Item, Label, Response

ADA, BOB, TIE = [["ada"], ["bob"]], [["bob"], ["ada"]], [["ada", "bob"]]


@pytest.fixture
def data():
    """Three judges on five items: x leads the panel, y ties and fails, z contradicts."""
    return run_data(
        [
            {"x": ADA, "y": ADA, "z": BOB},
            {"x": ADA, "y": ADA, "z": ADA},
            {"x": BOB, "y": TIE, "z": BOB},
            {"x": ADA, "y": None, "z": ADA},
            {"x": BOB, "y": None, "z": ADA},  # a tie of the two that judged
        ],
        ["ada", "bob"],
    )


def by_judge(data):
    return {row.judge: row for row in judge_reports(data)}


def test_agreement_is_over_items_with_a_winner_and_a_judgment_of_the_judge(data):
    winners = [verdict.winner for verdict in data.verdicts]
    assert winners == ["ada", "ada", "bob", "ada", None]
    rates = by_judge(data)
    assert (rates["x"].agreement.estimate, rates["x"].agreement.n) == (1, 4)
    assert (rates["z"].agreement.estimate, rates["z"].agreement.n) == (0.75, 4)
    # A tied first place is no match, a failure no say.
    assert (rates["y"].agreement.estimate, rates["y"].agreement.n) == (pytest.approx(2 / 3), 3)


def test_failures_and_ties_are_counted_and_not_mixed_up(data):
    rates = by_judge(data)
    assert (rates["y"].n_judged, rates["y"].failures) == (3, {"refusal": 2})
    assert rates["y"].ties.estimate == pytest.approx(1 / 3)
    assert (rates["x"].failures, rates["x"].ties.estimate) == ({}, 0)
    assert rates["x"].flips is None  # one order only


def test_the_first_place_on_the_page_is_counted_among_sole_winners(data):
    rates = by_judge(data)
    for judge in "xyz":
        sole = [
            j
            for j in data.judgments
            if j.judge == judge and j.ranking is not None and len(j.ranking[0]) == 1
        ]
        first = sum(j.ranking[0] == ["A0"] for j in sole)
        assert rates[judge].first_shown.estimate == pytest.approx(first / len(sole))
        assert rates[judge].first_expected == 0.5
    rate, expected_rate = position(data)
    assert expected_rate == 0.5
    assert rate.n == 12


def test_two_judges_agree_as_often_as_their_first_places_are_the_same(data):
    agreements = {(p.first, p.second): p.agreement for p in pairs(data)}
    assert agreements["x", "y"].estimate == pytest.approx(2 / 3)
    assert agreements["x", "z"].estimate == pytest.approx(3 / 5)
    assert agreements["y", "z"].estimate == pytest.approx(1 / 3)
    assert {pair: rate.n for pair, rate in agreements.items()} == {
        ("x", "y"): 3,
        ("x", "z"): 5,
        ("y", "z"): 3,
    }


def test_an_interval_of_a_judge_is_wilsons_where_no_prompt_repeats(data):
    rate, z = by_judge(data)["z"].agreement, NormalDist().inv_cdf(0.975)
    n, p = rate.n, rate.estimate
    middle, reach = p + z * z / 2 / n, z * ((p * (1 - p) + z * z / 4 / n) / n) ** 0.5
    assert rate.low == pytest.approx((middle - reach) / (1 + z * z / n))
    assert rate.high == pytest.approx((middle + reach) / (1 + z * z / n))


def test_a_judge_that_never_sat_is_a_row_of_nothing(data):
    by = rules({"x": 1.0, "y": 1.0, "z": 1.0, "ghost": 1.0})
    ghost = by_judge(replace(data, rules=by))["ghost"]
    assert (ghost.n_judged, ghost.failures, ghost.agreement, ghost.ties) == (0, {}, None, None)
    assert (ghost.first_shown, ghost.first_expected) == (None, None)


def test_candidates_that_watched_themselves_are_set_beside_the_panel():
    data = run_data(
        [{"x": ADA, "self:bob": BOB}, {"x": BOB, "self:bob": BOB}, {"x": ADA, "self:bob": None}],
        ["ada", "bob"],
        weights={"x": 1.0},
    )
    data = replace(data, rules=rules({"x": 1.0}, observers=["self:bob", "self:ada"]))
    (self_report,) = self_reports(data, "self:")
    assert self_report.candidate == "bob"
    assert (self_report.own_first.estimate, self_report.own_first.n) == (1, 2)
    assert self_report.panel_first.estimate == 0.5


# -- the control group ------------------------------------------------------------------------------


def with_texts(data, texts):
    """The run, with these texts as responses: a pair for each item."""
    responses = tuple(
        Response(item_id=f"q{i}", candidate=name, text=text, source="injected")
        for i, pair in enumerate(texts)
        for name, text in zip(("ada", "bob"), pair, strict=True)
    )
    return replace(data, responses=responses)


def test_the_longest_answer_is_held_against_the_verdict_and_against_people():
    data = run_data([{"x": ADA}, {"x": ADA}, {"x": BOB}, {"x": TIE}], ["ada", "bob"])
    long, short = "many more words than the other one has", "few words"
    data = with_texts(data, [(long, short), (short, long), (short, long), (long, short)])
    items = [
        Item(item_id=f"q{i}", prompt="?", label=label)
        for i, label in enumerate(("ada", "bob", None, "tie"))
    ]
    rows = {row.baseline: row for row in baseline_reports(replace(data, items=tuple(items)))}
    assert set(rows) == set(baselines.BASELINES)
    longest = rows["longest"]
    assert "not a language model" in longest.statement
    # It names ada, bob, bob: two of the three verdicts that have a winner.
    assert (longest.agreement.estimate, longest.agreement.n) == (pytest.approx(2 / 3), 3)
    # Of the labels ada, bob and tie it names two.
    assert (longest.concordance.estimate, longest.concordance.n) == (pytest.approx(2 / 3), 3)


def test_a_baseline_that_cannot_tell_earns_its_share_of_chance():
    data = run_data([{"x": ADA}] * 4, ["ada", "bob"])
    data = with_texts(data, [("the same", "the same")] * 4)
    assert {row.agreement.estimate for row in baseline_reports(data)} == {0.5}


def test_an_item_without_text_counts_for_no_baseline_and_not_as_a_miss():
    """Of four items two have text, and the longest response won both: 100% of 2, not 50% of 4."""
    data = run_data([{"x": ADA}] * 4, ["ada", "bob"])
    data = with_texts(data, [("many more words", "few"), ("many more words", "few")])
    agreement = {row.baseline: row for row in baseline_reports(data)}["longest"].agreement
    assert (agreement.estimate, agreement.n) == (1.0, 2)
    blank = with_texts(data, [("many more words", "few"), ("", " "), ("", "")])
    agreement = {row.baseline: row for row in baseline_reports(blank)}["longest"].agreement
    assert (agreement.estimate, agreement.n) == (1.0, 1)


# -- people -----------------------------------------------------------------------------------------


def label_of(winner, person):
    return Label(item_id="q0", annotator=person, winner=winner)


@pytest.mark.parametrize(
    ("labels", "truth"),
    [
        ([], "ada"),
        ([("bob", "me")], "bob"),
        ([("bob", "me"), ("bob", "you"), ("ada", "they")], "bob"),
        ([("bob", "me"), ("ada", "you")], "tie"),
        ([("tie", "me")], "tie"),
        ([(None, "me")], "ada"),
    ],
    ids=["file", "one", "most", "split", "tie", "no word"],
)
def test_people_come_before_the_file_and_the_most_of_them_decide(labels, truth):
    data = run_data([{"x": ADA}], ["ada", "bob"])
    data = replace(
        data,
        items=(Item(item_id="q0", prompt="?", label="ada"),),
        labels=tuple(label_of(winner, person) for winner, person in labels),
    )
    assert data.truth == {"q0": truth}


@pytest.mark.parametrize(
    ("error", "word"),
    [
        ("timeout: no complete answer within 120 s", "timeout"),
        ("rate_limit: slow down", "rate_limit"),
        ("the ranking leaves out A1", "unreadable"),
        ("expected: something", "expected"),
        (None, "unknown"),
    ],
)
def test_a_cause_is_a_word(error, word):
    data = run_data([{"x": None}], ["ada", "bob"])
    assert cause(data.judgments[0].model_copy(update={"error": error})) == word
