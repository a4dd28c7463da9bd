"""Verdicts on single texts, against sums by hand and simulated panels with known truth."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from clash.analysis.single_text import TextContrast, mean_score
from clash.analysis.single_text.decision import decision_on_texts
from clash.analysis.single_text.people import paired_gap
from clash.analysis.single_text.verdicts import decide_texts, weighted_median
from clash.analysis.verdicts import VerdictRules
from clash.config import JudgingConfig
from clash.stats.intervals import Interval
from clash.votes.from_run import Panelist
from clash.votes.text_votes import TextVotes

TWO = JudgingConfig(mode="label", labels=["yes", "no"], passing="yes")
THREE = JudgingConfig(mode="label", labels=["a", "b", "c"])
SCORES = JudgingConfig(mode="score", scale="1-5", passing=4)
NAN = math.nan


def decide(
    votes, judging, *, weights=None, method="borda", quorum=None, least=None, own_labels=None
):
    """The verdicts on votes (N, J) or (N, J, P)."""
    table = np.array(votes, dtype=float)
    table = table[:, :, None] if table.ndim == 2 else table
    n, n_judges, n_pages = table.shape
    weights = weights or [1.0] * n_judges
    seats = tuple(Panelist(f"j{k}", "voting", w, f"f{k}", "m") for k, w in enumerate(weights))
    rules = VerdictRules(
        seats, quorum, "none", method, n_pages, min_confidence=least, judging=judging,
        exclusions=own_labels or {},
    )  # fmt: skip
    texts = TextVotes(
        tuple((f"q{row}", "x") for row in range(n)),
        np.arange(n),
        tuple(seat.id for seat in seats),
        table,
        np.full(table.shape, NAN),
        len(judging.labels),
    )
    return decide_texts(texts, rules, {})


def test_the_label_with_most_weight_wins_and_its_lead_is_the_confidence():
    (light,) = decide([[0, 1, 1]], TWO).verdicts
    assert (light.label, light.split, light.passed) == ("no", "2-1", False)
    assert light.confidence == pytest.approx(1 / 3)
    (heavy,) = decide([[0, 1, 1]], TWO, weights=[3.0, 1.0, 1.0]).verdicts
    assert (heavy.label, heavy.p) == ("yes", {"yes": 0.6, "no": 0.4})


def test_level_labels_failed_judges_and_excluded_ones_leave_no_verdict():
    level, short, no_verdict = decide([[0, 1, NAN], [0, NAN, NAN], [NAN] * 3], TWO).verdicts
    assert level.label is None
    assert level.abstained == "level: yes, no"
    assert short.abstained.startswith("below the quorum")
    assert no_verdict.abstained.startswith("not judged")
    (own_verdict,) = decide([[0, NAN, NAN]], TWO, own_labels={"j1": {"x"}, "j2": {"x"}}).verdicts
    assert (own_verdict.label, own_verdict.unanimous) == ("yes", True)


def test_a_judge_that_contradicts_itself_is_half_for_each_label():
    (verdict,) = decide([[[0, 1], [0, 0], [NAN, NAN]]], TWO).verdicts
    assert verdict.p == {"yes": 0.75, "no": 0.25}
    assert (verdict.split, verdict.unanimous) == ("1-0-1", False)


def test_a_score_is_the_weighted_mean_or_median_and_agreement_its_confidence():
    same_verdict, apart = decide([[4, 4, 4], [1, 5, NAN]], SCORES).verdicts
    assert (
        same_verdict.score,
        same_verdict.confidence,
        same_verdict.unanimous,
        same_verdict.passed,
    ) == (4.0, 1.0, True, True)
    assert (apart.score, apart.confidence, apart.passed) == (3.0, 0.0, False)
    (median,) = decide([[1, 4, 5]], SCORES, method="median").verdicts
    assert median.score == 4.0
    (close,) = decide([[1, 5, 3]], SCORES, least=0.9).verdicts
    assert close.abstained.startswith("for review")


def test_a_weighted_median_of_equal_weights_is_the_median():
    rng = np.random.default_rng(0)
    for n in range(1, 9):
        scores = rng.integers(1, 6, n).astype(float)
        assert weighted_median(scores, np.ones(n)) == np.median(scores)
    assert weighted_median(np.array([1.0, 5.0]), np.array([1.0, 3.0])) == 5.0


@pytest.mark.parametrize(("judging", "n_labels"), [(TWO, 2), (THREE, 3)])
def test_dawid_skene_learns_which_way_judges_err_and_majority_cannot(judging, n_labels):
    """Two good judges and three that say the first label too often: 400 texts, known truth."""
    rng = np.random.default_rng(3)
    truth = rng.choice(n_labels, 400, p=[0.3, *[0.7 / (n_labels - 1)] * (n_labels - 1)])
    columns = []
    for accuracy, lean in [(0.93, 0.0), (0.93, 0.0), (0.9, 0.6), (0.9, 0.6), (0.9, 0.6)]:
        wrong = (truth + rng.integers(1, n_labels, 400)) % n_labels
        indices = np.where(rng.random(400) < accuracy, truth, wrong)
        columns.append(np.where(rng.random(400) < lean, 0, indices))
    votes = np.stack(columns, axis=1)

    def accuracy(method):
        outcome = decide(votes, judging, method=method, least=0.0)
        names = list(judging.labels)
        labels = [-1 if v.label is None else names.index(v.label) for v in outcome.verdicts]
        return float(np.mean(np.array(labels) == truth)), outcome.use

    by_majority, _ = accuracy("majority")
    by_model, use = accuracy("dawid-skene")
    assert use.fallback is None
    assert by_model > by_majority + 0.1
    assert by_model > 0.9


def test_a_model_with_too_few_texts_leaves_it_to_the_majority_and_says_so():
    outcome = decide([[0, 0, 1]] * 5, TWO, method="dawid-skene")
    assert "too few" in outcome.use.fallback
    assert {v.method for v in outcome.verdicts} == {"majority"}
    assert outcome.verdicts[0].fallback == outcome.use.fallback


def test_intervals_stay_on_the_scale_and_never_have_no_width():
    mean_verdict = mean_score(np.array([5.0, 5.0, 5.0]), np.arange(3), (1, 5))
    assert (mean_verdict.estimate, mean_verdict.high) == (5.0, 5.0)
    assert mean_verdict.low < 4.5
    assert mean_score(np.array([]), np.arange(0), (1, 5)) is None
    single = mean_score(np.array([2.0, 4.0]), np.zeros(2, dtype=int), (1, 5))
    assert 1 <= single.low < 2 < 4 < single.high <= 5


def test_two_sources_with_the_same_difference_prove_nothing():
    for worth, widest in ((1.0, 1.0), (3.0, 4.0)):
        gap, p = paired_gap(np.full(4, worth), np.zeros(4), np.array([0, 0, 1, 1]), widest=widest)
        assert (gap.estimate, p) == (worth, 0.5)
        assert -widest <= gap.low < 0 < gap.high <= widest


def test_a_leader_that_is_behind_on_shared_items_is_no_winner():
    """``a`` has the best scores over all its texts and beats ``b``; where ``c`` answered too, it wins."""

    def of(name, score):
        return SimpleNamespace(
            candidate=name, pass_rate=None, score=SimpleNamespace(estimate=score), shares={}
        )

    def pair(second, gap, p):
        interval = Interval(gap, gap - 0.1, gap + 0.1, 0.95, 30, 30, "t")
        return TextContrast("a", second, 30, "score", interval, p, p)

    contrasts = [pair("b", 0.5, 0.04), pair("c", -0.5, 0.001)]
    decision = decision_on_texts(
        SimpleNamespace(
            n_decided=90,
            contrasts=contrasts,
            candidates=[of("a", 4.0), of("b", 3.0), of("c", 3.5)],
            labels=[],
        )
    )
    assert (decision.status, decision.winner) == ("tied", None)
    assert "c on the items that both have" in decision.sentence


def test_the_mean_score_is_covered_as_often_as_it_says():
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        centre = rng.normal(3, 0.6, 30)
        scores = np.clip(np.round(centre[:, None] + rng.normal(0, 0.7, (30, 3))), 1, 5).ravel()
        interval = mean_score(scores, np.repeat(np.arange(30), 3), (1, 5))
        hits += interval.low <= 3 <= interval.high
    assert 0.91 <= hits / 300 <= 0.98
