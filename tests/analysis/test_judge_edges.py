"""A judge's worth by labels and by agreement; diagnosis and sample sizes say the same of it."""

from __future__ import annotations

import numpy as np
import pytest

from clash.analysis.diagnosis import diagnose
from clash.analysis.judge_edges import judge_edges
from clash.analysis.power.pilot import pilot
from clash.stats.effectiveness import break_even, margin, vote_weight
from clash.stats.intervals import Interval
from clash.votes import VoteRow, Votes, encode


def _votes(right: dict[str, float], n: int, seed: int, *, labels: bool = False) -> Votes:
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        truth = int(rng.random() < 0.5)
        for judge, p in right.items():
            vote = truth if rng.random() < p else 1 - truth
            rows.append(VoteRow(f"q{i}", judge, vote, label=truth if labels else None))
    return encode(rows)


def test_good_independent_judges_are_not_condemned_for_agreeing_little() -> None:
    """Eight panels of three judges that are right on 70%: kappa 0.16, and a panel of 78%."""
    advice = []
    for seed in range(8):
        diagnosis = diagnose(_votes({"a": 0.7, "b": 0.7, "c": 0.7}, 400, seed))
        advice += [r.action for r in diagnosis.recommendations]
        assert any("Alarm: the panel agrees little" in line for line in diagnosis.summary)
        assert diagnosis.edges.accuracy.low < 0.784 + 0.06
    assert "replace" not in advice
    assert advice.count("keep") >= 22


@pytest.mark.parametrize("labels", [True, False])
def test_diagnosis_and_sample_size_agree_about_a_coin_and_an_inverted_judge(
    *, labels: bool
) -> None:
    right = {"a": 0.85, "b": 0.8, "c": 0.85, "coin": 0.5, "inverted": 0.15}
    votes = _votes(right, 600, 11, labels=labels)
    diagnosis = diagnose(votes, simulate=True, replications=60)
    standings = {s.judge: s for s in diagnosis.thresholds.judges}
    advice = {r.judge: r for r in diagnosis.recommendations}
    assert advice["inverted"].action == "replace"
    assert standings["inverted"].takes_away
    assert all(removal.change.low > 10 / 100 for removal in standings["inverted"].removals)
    assert not standings["coin"].adds
    assert [advice[j].action for j in "abc"] == ["keep"] * 3
    assert all(standings[j].margin.low > 0 for j in "abc")
    assert all(standings[j].weight == advice[j].weight for j in right)
    additions = {a.like: a for a in pilot(votes).additions}
    assert all(additions[j].advised and additions[j].saves > 0 for j in "abc")
    assert not additions["coin"].advised
    assert additions["inverted"].saves is None or additions["inverted"].saves < 0
    assert diagnosis.edges.source == ("labels" if labels else "agreement")


def test_labels_measure_both_sides_and_agreement_says_where_it_cannot() -> None:
    votes = _votes({"a": 0.9, "b": 0.7}, 400, 3, labels=True)
    edges = judge_edges(votes)
    assert edges.judges[0].edge.low < 0.8 < edges.judges[0].edge.high
    assert edges.accuracy.n == 400
    hidden_edges = judge_edges(votes.without_labels())
    assert [judge.edge for judge in hidden_edges.judges] == [None, None]
    assert "three of different families" in hidden_edges.unknown


def test_a_judge_that_always_says_the_common_side_has_no_edge() -> None:
    rng = np.random.default_rng(0)
    rows = []
    for i in range(300):
        label = int(rng.random() < 0.9)
        rows += [VoteRow(f"q{i}", "always", 1, label=label), VoteRow(f"q{i}", "b", label)]
    recommendation_by_judge = {r.judge: r for r in diagnose(encode(rows)).recommendations}
    assert recommendation_by_judge["always"].action == "replace"
    assert recommendation_by_judge["always"].weight == 0
    assert recommendation_by_judge["b"].action == "keep"


def test_margin_is_the_distance_from_the_break_even_and_weight_the_log_odds() -> None:
    signals = [Interval(e, e - 0.1, e + 0.1, 0.95, 100, 100, "") for e in (0.6, 0.4, 0.1)]
    margin_value = margin(signals, 2)
    assert margin_value.estimate == pytest.approx(0.1 - break_even([0.6, 0.4]))
    share = np.sqrt(3 / 2) - 1
    assert margin_value.high - margin_value.estimate == pytest.approx(
        0.1 * np.sqrt(1 + 2 * share**2)
    )
    assert margin(signals[:1], 0).estimate == pytest.approx(0.6)
    odds = np.log(0.7 / 0.3) / np.log(0.9 / 0.1)
    assert vote_weight(0.4, 0.8) == pytest.approx(odds)
    assert (vote_weight(-0.5, 0.8), vote_weight(0.8, 0.8), vote_weight(0.3, 0.0)) == (0, 1, 0)
