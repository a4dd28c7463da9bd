"""The concordance report says of a run what can be counted by hand, or by an independent library."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from analysis.labelled import pairs, run
from clash.analysis.concordance import concordance
from clash.analysis.concordance.cases import labelled_cases
from clash.analysis.differences import differences
from clash.analysis.findings import compute_findings, figures
from clash.analysis.prereg import Registration, Seat, conformity, freeze
from clash.analysis.registered import primary
from clash.analysis.serialize import to_dict
from clash.report.concordance import tables
from clash.report.headline import run_headline

ROWS = [
    ("a", "aaa"),
    ("a", "aab"),
    ("b", "bbb"),
    ("b", "aab"),
    ("a", "bbb"),
    ("b", "bba"),
    ("a", "---"),
    ("b", "b--"),
]


def test_an_item_without_a_verdict_is_a_miss_and_is_shown(tmp_path):
    concordance_findings = concordance(run(tmp_path, pairs(ROWS)))
    head = concordance_findings.headline
    assert (head.rate.right, head.rate.n, head.rate.n_judged) == (4, 8, 6)
    assert sorted(head.no_verdict) == ["i6", "i7"]
    assert head.rate.of_judged.estimate == pytest.approx(4 / 6)
    rows = tables(concordance_findings)[0].rows
    assert any("i6" in cell for row in rows for cell in row)


def test_what_an_interrupted_run_never_asked_is_no_miss_and_what_failed_is(tmp_path):
    opinions = [
        {"j1": "a", "j2": "a", "j3": "a"},
        {"j1": "a", "j2": "a"},
        {"j1": None, "j2": None, "j3": None},
        {"j1": None},
        {},
    ]
    items = [{"id": f"i{n}", "label": "a", "says": votes} for n, votes in enumerate(opinions)]
    data = run(tmp_path, items)
    assert concordance(data).headline.rate.n == 5
    partial = data.manifest.model_copy(update={"status": "partial"})
    findings = compute_findings(replace(data, manifest=partial))
    rates = {line.name: line.rate for line in findings.concordance.methods}
    panel = findings.concordance.headline
    assert (panel.rate.right, panel.rate.n, list(panel.no_verdict)) == (2, 3, ["i2"])
    assert [(rates[judge].right, rates[judge].n) for judge in ("j1", "j3")] == [(2, 3), (1, 2)]
    assert findings.label_concordance.n == 3
    headline = run_headline(findings)
    assert headline.text == "Incomplete: 2 of 5 pairs judged."
    assert headline.evidence.startswith("Of the 3 pairs asked so far, the panel agrees with")


def test_a_registered_outcome_counts_what_an_interrupted_run_has_judged(tmp_path):
    opinions = [{"j1": "a", "j2": "a"}, {"j1": "b", "j2": "b"}, {"j1": None, "j2": None}, {}]
    items = [{"id": f"i{n}", "label": "a", "says": votes} for n, votes in enumerate(opinions)]
    data = run(tmp_path, items, judges=("j1", "j2"))
    seats = [Seat(id=p.id, model=p.model, role="voting", weight=1) for p in data.rules.seats]
    plan = Registration(
        panel=seats, method="borda", tie_break="none", outcome="wins", primary="a", effect=0.1,
        alpha=0.05, power=0.8, items=4, criteria="none", both_orders=False, per_judge=False,
    )  # fmt: skip
    report = freeze(plan, "2025-12-31T00:00:00Z").as_json()
    manifest = data.manifest.model_copy(update={"status": "partial", "registration": report})
    partial = replace(data, manifest=manifest)
    wins = conformity(partial).primary.interval
    assert (wins.n, wins.estimate) == (3, pytest.approx(1 / 3))
    assert primary(partial, "concordance", None, 0.05).interval.n == 3
    deviations = {line.aspect: line.actual for line in conformity(partial).deviations}
    assert deviations["verdicts"] == "2 of 4; 1 not judged yet"
    assert [(g.kind, g.n) for g in differences(partial).groups] == [("unanimous", 2), ("none", 1)]


def test_kappa_at_even_chance_is_2p_minus_1_and_over_sides_is_cohens(tmp_path):
    from sklearn.metrics import cohen_kappa_score

    concordance_findings = concordance(run(tmp_path, pairs(ROWS)))
    by_key = {kappa.key: kappa.interval for kappa in concordance_findings.kappas}
    assert by_key["kappa"].estimate == pytest.approx(2 * 4 / 8 - 1)
    output, label = list("aababb"), [label for label, _ in ROWS[:6]]
    assert by_key["kappa.sides"].estimate == pytest.approx(cohen_kappa_score(output, label))


def test_a_blind_guess_has_a_kappa_of_nought_where_people_may_tie(tmp_path):
    """Every answer once for every label: right in a third of them, and no better than chance."""
    rows = [(label, answer * 3) for label in "abt" for answer in "abt"]
    kappa = concordance(run(tmp_path, pairs(rows))).kappas[0]
    assert kappa.interval.estimate == pytest.approx(0)
    assert "c = 0.333" in kappa.over


def test_kappa_at_even_chance_with_ties_by_hand(tmp_path):
    """6 of 8 right, of three answers: (6/8 - 1/3) / (1 - 1/3) = 5/8; of two it would be 1/2."""
    rows = [("a", "aaa")] * 3 + [("b", "bbb")] * 2 + [("t", "ttt"), ("t", "aaa"), ("b", "aaa")]
    kappa = concordance(run(tmp_path, pairs(rows))).kappas[0]
    assert kappa.interval.estimate == pytest.approx(5 / 8)
    assert kappa.name == "kappa at even chance"


def test_a_tie_is_right_where_people_tie_and_wrong_where_they_do_not(tmp_path):
    data = run(tmp_path, pairs([("t", "ttt"), ("a", "ttt"), ("t", "aaa"), ("a", "aaa")]))
    assert concordance(data).headline.rate.right == 2
    assert concordance(data).headline.tied == 2


def test_intervals_widen_where_errors_share_a_question_and_only_there(tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        ("a", answer * 3) for answer in rng.choice(list("ab"), 20, p=[0.7, 0.3]) for _ in range(4)
    ]
    alone = concordance(run(tmp_path, pairs(rows), name="alone")).headline.rate
    groups = [f"q{n // 4}" for n in range(80)]
    shared_rate = concordance(run(tmp_path, pairs(rows, group=groups), name="shared")).headline.rate
    assert alone.interval.low == pytest.approx(alone.wilson.low)
    # Four copies of one answer tell as much as one.
    assert shared_rate.interval.n_effective < 1.2 * 20
    assert shared_rate.interval.low < shared_rate.wilson.low


def test_strong_against_weak_is_what_scipy_says(tmp_path):
    from scipy.stats import chi2_contingency, fisher_exact

    rows = [("a", "aaa")] * 19 + [("a", "bbb")] + [("b", "bbb")] * 6 + [("b", "aaa")] * 6
    facts = [{"id": "a", "tier": "strong"}, {"id": "b", "tier": "weak"}]
    line = concordance(run(tmp_path, pairs(rows), candidates=facts)).contrasts[0]
    table = [[19, 1], [6, 6]]
    assert line.table == ((19, 1), (6, 6))
    assert line.chi_square.p == pytest.approx(chi2_contingency(table, correction=False).pvalue)
    assert line.corrected_test.p == pytest.approx(chi2_contingency(table, correction=True).pvalue)
    assert line.fisher.p == pytest.approx(fisher_exact(table).pvalue)
    assert line.odds_ratio.estimate == pytest.approx(19)


def test_an_items_own_tier_tag_outranks_its_winners(tmp_path):
    tags = [["tier:hard", "math"], ["tier:easy"]]
    concordance_findings = concordance(
        run(tmp_path, pairs([("a", "aaa"), ("a", "bbb")], tags=tags))
    )
    assert {row.name: row.rate.right for row in concordance_findings.by_tier} == {
        "hard": 1,
        "easy": 0,
    }
    assert [row.name for row in concordance_findings.by_tag] == ["math"]


def test_direction_counts_towards_the_higher_rating(tmp_path):
    rows = [("a", "bbb")] * 6 + [("b", "aaa")] + [("a", "aaa")] * 3
    facts = [{"id": "a", "elo": 1100}, {"id": "b", "elo": 1200}]
    concordance_findings = concordance(run(tmp_path, pairs(rows), candidates=facts))
    line = next(d for d in concordance_findings.directions if d.scale.startswith("rating"))
    assert (line.stronger, line.weaker, line.mean_gap) == (6, 1, pytest.approx(500 / 7))
    assert line.test.p == pytest.approx(2 * 8 / 2**7)
    assert concordance_findings.gaps[0].rate.n == 10
    assert concordance_findings.chronic[0].misses == 7


def test_one_table_has_chance_baselines_judges_panel_people_and_published(tmp_path):
    people = [{"x": "a", "y": "a", "z": "b"}] * 4
    dataset = {"published": [{"name": "GPT-4", "value": 0.85, "source": "somewhere"}]}
    data = run(tmp_path, pairs(ROWS[:4], people=people), dataset=dataset)
    lines = {line.name: line for line in concordance(data).methods}
    assert lines["random guess"].estimate == 0.5
    # People's majority is a, the shorter one, everywhere: the longest response is never right.
    assert lines["baseline: longest"].estimate == 0
    assert lines["j1"].rate.right == 3
    assert lines["two people, any vote"].estimate == pytest.approx(1 / 3)
    assert lines["GPT-4"].estimate == 0.85
    assert {line.kind for line in lines.values()} == {
        "chance",
        "baseline",
        "judge",
        "panel",
        "people",
        "published",
    }


def test_the_human_ceiling_and_alpha_are_those_of_the_annotators(tmp_path):
    people = [
        {"x": "a", "y": "a"},
        {"x": "b", "y": "b"},
        {"x": "a", "y": "b"},
        {"x": "b", "y": "b"},
    ]
    actual_people = concordance(run(tmp_path, pairs(ROWS[:4], people=people))).people
    assert actual_people.agreement.estimate == pytest.approx(3 / 4)
    # Krippendorff by hand: D_o = 2/8, D_e = 2 * 3 * 5 / (8 * 7).
    assert actual_people.alpha.estimate == pytest.approx(1 - (2 / 8) / (30 / 56))


def test_sub_panels_hold_every_choice_of_judges(tmp_path):
    data = run(tmp_path, pairs(ROWS[:6]))
    concordance_findings = concordance(data)
    by_judges = {panel.judges: panel for panel in concordance_findings.subpanels.panels}
    assert len(by_judges) == 7
    whole = by_judges["j1", "j2", "j3"]
    assert whole.concordance.estimate == pytest.approx(concordance_findings.headline.rate.estimate)
    j1 = next(line for line in concordance_findings.methods if line.name == "j1")
    assert by_judges["j1",].concordance.estimate == pytest.approx(j1.estimate)
    # j1 and j3 part on i1, i3 and i5: two judges who part are a tie.
    assert by_judges["j1", "j3"].tied == 3
    assert [size.size for size in concordance_findings.subpanels.sizes] == [1, 2, 3]


def test_unanimous_verdicts_are_set_against_split_ones(tmp_path):
    split = concordance(run(tmp_path, pairs(ROWS))).split
    assert (split.unanimous.right, split.unanimous.n) == (2, 3)
    assert (split.split.right, split.split.n) == (2, 3)
    assert split.judges_on_split["j3"].right == 1


def test_self_evaluation_is_held_against_people_on_the_same_items(tmp_path):
    items = pairs([("a", "aaa"), ("b", "aaa"), ("b", "bbb"), ("a", "aaa")])
    for item, own in zip(items, ("a", "a", "a", None), strict=True):
        item["says"]["self:a"] = own
    line = concordance(run(tmp_path, items, observers=["self:a"])).self_rates[0]
    assert (line.judge, line.n) == ("a", 3)
    assert (line.own_rate.estimate, line.people.estimate) == (1, pytest.approx(1 / 3))
    assert line.test.difference.estimate == pytest.approx(2 / 3)


def test_family_favouritism_needs_another_family_beside_it(tmp_path):
    facts = [{"id": "a", "family": "x"}, {"id": "b", "family": "y"}]
    rows = [("b", "aab"), ("b", "aaa"), ("a", "abb"), ("a", "aaa")]
    data = run(tmp_path, pairs(rows), candidates=facts, families={"j1": "x"})
    lines = {(line.rater, line.family): line for line in concordance(data).families}
    own = lines["j1", "x"]
    assert (own.picks, own.people, own.n) == (4, 2, 4)
    assert own.test.difference.estimate == pytest.approx(0.5)


def test_longer_wins_and_first_shown_are_beside_peoples_own_rates(tmp_path):
    rows = [("a", "bbb"), ("a", "bbb"), ("b", "bbb"), ("a", "aaa")]
    data = run(tmp_path, pairs(rows, flip=[True, False, True, False]))
    concordance_findings = concordance(data)
    longer = {line.rater: line.rate.interval.estimate for line in concordance_findings.lengths}
    assert (longer["people"], longer["panel"]) == (0.25, 0.75)
    first = {line.rater: line.rate.interval.estimate for line in concordance_findings.positions}
    assert first["panel"] == pytest.approx(3 / 4)


def test_without_texts_there_is_no_length_and_no_baseline(tmp_path):
    items = pairs(ROWS[:3])
    for item in items:
        item["texts"] = {"a": None, "b": None}
    concordance_findings = concordance(run(tmp_path, items))
    assert concordance_findings.lengths == []
    assert not any(line.kind == "baseline" for line in concordance_findings.methods)


def test_a_run_without_labels_has_no_concordance(tmp_path):
    items = pairs(ROWS[:3])
    for item in items:
        item["label"] = None
    data = run(tmp_path, items, kind="eval")
    assert concordance(data) is None
    assert to_dict(compute_findings(data))["concordance"] is None


def test_one_item_is_reported_without_a_crash(tmp_path):
    data = run(tmp_path, pairs([("a", "aaa")]))
    findings = compute_findings(data)
    assert findings.concordance.headline.rate.estimate == 1
    json.dumps(to_dict(findings), allow_nan=False)
    assert all(table.rows for table in tables(findings.concordance))


def test_the_report_is_the_same_every_time(tmp_path):
    people = [{"x": "a", "y": "b"}, {"x": "a", "y": "a"}] * 3
    data = run(tmp_path, pairs(ROWS[:6], people=people))
    assert to_dict(compute_findings(data)) == to_dict(compute_findings(data))


def test_both_bad_is_a_tie(tmp_path):
    data = run(tmp_path, pairs([("a", "ttt")], people=[{"x": "both bad"}]))
    assert labelled_cases(data)[0].label == "tie"
    assert labelled_cases(data)[0].right


def test_figures_are_numbers_and_name_what_a_gate_tests(tmp_path):
    named_figures = figures(compute_findings(run(tmp_path, pairs(ROWS), cost=0.8)))
    assert named_figures["concordance"].value == 0.5
    assert named_figures["cost"].value == 0.8
    assert named_figures["cost.correct"].value == pytest.approx(0.2)
    assert named_figures["unanimous.concordance"].value == pytest.approx(2 / 3)
    assert all(math.isfinite(figure.value) for figure in named_figures.values())


def test_a_panel_that_adds_noise_shows_that_more_judges_do_not_pay(tmp_path):
    """One good judge and four coins: the mean of the larger panels stays below the best judge."""
    rng = np.random.default_rng(7)
    labels = rng.choice(list("ab"), 300)
    names = [f"j{k}" for k in range(1, 6)]
    items = []
    for n, label in enumerate(labels):
        good = label if rng.random() < 0.95 else ("b" if label == "a" else "a")
        coins = rng.choice(list("ab"), 4)
        opinions = dict(zip(names, [str(good), *map(str, coins)], strict=True))
        items.append({"id": f"i{n}", "label": str(label), "says": opinions})
    subpanels = concordance(run(tmp_path, items, judges=names)).subpanels
    assert subpanels.sizes[0].best.judges == ("j1",)
    assert subpanels.sizes[4].mean < subpanels.sizes[0].best.concordance.low


def test_an_exact_repeat_is_named_and_the_rate_without_it_is_given(tmp_path):
    """i2 shows what i0 shows; i3 has its responses under another prompt; i4 lacks a response."""
    texts = [{"a": "yes", "b": "no"}, {"a": "x", "b": "y"}] + [{"a": "yes", "b": "no"}] * 3
    rows = [("a", "bbb"), ("a", "aaa"), ("a", "bbb"), ("a", "aaa"), ("a", "aaa")]
    prompt = ["Q?", "R?", "Q?", "S?", "Q?"]
    items = pairs(rows, texts=texts, prompt=prompt)
    items[4]["texts"] = {"a": "yes", "b": None}
    data = run(tmp_path, items)
    concordance_findings = concordance(data)
    assert concordance_findings.repeats == {"i2": "i0"}
    assert (concordance_findings.headline.rate.right, concordance_findings.headline.rate.n) == (
        3,
        5,
    )
    assert (concordance_findings.unique.right, concordance_findings.unique.n) == (3, 4)
    (note,) = [n for n in run_headline(compute_findings(data)).notes if "repeat" in n]
    assert note == "1 of 5 pairs repeat another, responses and all: 3 of 4 (75.0%) without them."
    assert concordance(run(tmp_path, pairs(rows), name="none")).unique is None
