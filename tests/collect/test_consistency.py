"""A judgment that contradicts itself, or does not say what is wrong, is flagged."""

import pytest

from clash.collect.parsing import ParsedAnswer, inconsistencies
from clash.records import CONTRADICTION, MISSING_REASON, Criterion

HEAVY = Criterion(name="Wit", weight=0.75)
LIGHT = Criterion(name="Warmth", weight=0.25)


def flags(ranking, scores, reasons=None):
    """Flags where ``scores`` are (Wit, Warmth) by label; every low one has a reason."""
    table = {
        label: {c.name: n for c, n in zip((HEAVY, LIGHT), row, strict=False)}
        for label, row in scores.items()
    }
    reasons = table if reasons is None else reasons
    words = {label: dict.fromkeys(row, "so") for label, row in reasons.items()}
    parsed_answer = ParsedAnswer(ranking, "clean", table, words)
    return list(inconsistencies(parsed_answer, (HEAVY, LIGHT)))


@pytest.mark.parametrize(
    ("ranking", "scores", "is_contradiction"),
    [
        ([["A0"], ["A1"]], {"A0": (2, 2), "A1": (5, 5)}, True),
        ([["A0"], ["A1"]], {"A0": (5, 1), "A1": (4, 4)}, False),
        ([["A0"], ["A1"]], {"A0": (3, 3), "A1": (3, 3)}, False),
        ([["A0", "A1"]], {"A0": (1, 1), "A1": (5, 5)}, False),
        ([["A0"], ["A1"], ["A2"]], {"A0": (1, 1), "A1": (3, 3), "A2": (5, 5)}, True),
        ([["A0"], ["A1"], ["A2"]], {"A0": (1, 1), "A1": (5, 5), "A2": (3, 3)}, False),
        ([["A0"], ["A1"]], {"A0": (1,), "A1": (5, 5)}, False),
        (None, {}, False),
    ],
)
def test_scores_contradict_a_ranking_where_every_pair_is_the_other_way_round(
    ranking, scores, is_contradiction
):
    assert flags(ranking, scores) == [CONTRADICTION] * is_contradiction


@pytest.mark.parametrize(
    ("score", "reasons", "lacking"),
    [(3, {}, True), (1, {"A0": {"Wit": ""}}, False), (4, {}, False)],
)
def test_a_low_score_needs_a_reason(score, reasons, lacking):
    scores = {"A0": (score, 5), "A1": (4, 4)}
    assert flags([["A0", "A1"]], scores, reasons) == [MISSING_REASON] * lacking
