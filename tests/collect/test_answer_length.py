"""A judge's cap leaves room for its answer, however many responses and criteria there are."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.collect import answer_length

CHARS_PER_TOKEN = 3
"""JSON of short strings has few characters a token."""


def answer_text(responses: int, criteria: int, reason: str) -> str:
    """A whole answer, as a judge writes it on one line."""
    cells = {f"C{n}": {"score": 3, "reason": reason} for n in range(1, criteria + 1)}
    labels = [f"A{n}" for n in range(responses)]
    scores = {"scores": dict.fromkeys(labels, cells)} if criteria else {}
    return json.dumps({**scores, "ranking": [[label] for label in labels]})


@pytest.mark.parametrize(("responses", "criteria"), [(2, 0), (2, 4), (5, 3), (60, 0), (60, 5)])
def test_the_cap_suffices_for_the_longest_answer(responses, criteria):
    reason = (
        "Misses the empty list, and says nothing at all about negative numbers or duplicates either"
    )
    assert len(reason.split()) == 15
    tokens = len(answer_text(responses, criteria, reason)) / CHARS_PER_TOKEN
    assert answer_length.cap(responses, criteria) >= tokens


@pytest.mark.parametrize(("responses", "criteria"), [(2, 0), (2, 4), (5, 3), (60, 0), (60, 5)])
def test_what_is_expected_is_near_a_typical_answer(responses, criteria):
    """Half of the cells with a reason of nine words is every cell with half of one."""
    typical = len(answer_text(responses, criteria, "Misses the empty list today")) / CHARS_PER_TOKEN
    assert typical / 2 < answer_length.typical(responses, criteria) < 2 * typical + 20


@given(st.integers(1, 500), st.integers(0, 12))
def test_more_to_judge_takes_more_and_the_cap_stays_within_what_models_allow(responses, criteria):
    length, more = (answer_length.typical(n, criteria) for n in (responses, responses + 1))
    assert length < more
    assert length <= answer_length.longest(responses, criteria)
    cap = answer_length.cap(responses, criteria)
    assert answer_length.LEAST_CAP <= cap <= answer_length.MOST_CAP


def test_few_responses_are_asked_as_ever():
    """The cap is part of what a recording is looked up by."""
    assert answer_length.cap(2, 5) == answer_length.cap(6, 4) == 4000
