"""No vote that nobody gave, and hardly a vote lost, over thousands of generated answers."""

from __future__ import annotations

from collections import Counter

import pytest

from clash.collect.judge import next_step
from collect.corpus import FORMATS, honest_answers, not_answers, outcome, with_a_remark
from store.calls import call

MOST_LOST = 1 / 200


def wrong(case):
    """A vote that the judge did not give."""
    return outcome(case).ranking not in (None, case.ranking)


def is_lost(case):
    """A vote that the judge gave, and that was not read."""
    return case.ranking is not None and outcome(case).ranking is None


@pytest.mark.parametrize("cases", [not_answers(), honest_answers()], ids=["no answer", "honest"])
def test_the_corpus_is_large_in_every_format(cases):
    assert len({(case.format, case.text, case.scored) for case in cases}) > 1000
    assert min(Counter(case.format for case in cases).values()) > 400
    assert set(FORMATS) == {case.format for case in cases}


def test_no_way_of_not_answering_is_a_vote_and_the_judges_own_verdict_beside_it_is():
    cases = not_answers()
    assert sum(case.ranking is None for case in cases) > 1000
    assert [case for case in cases if wrong(case) or is_lost(case)] == []


def test_an_answer_that_is_no_vote_says_why():
    assert all(outcome(case).error for case in not_answers() if case.ranking is None)


def test_hardly_an_honest_answer_is_lost_and_none_is_turned_round():
    cases = honest_answers()
    assert [case for case in cases if wrong(case)] == []
    assert sum(map(is_lost, cases)) <= MOST_LOST * len(cases)


def test_an_honest_answer_that_is_lost_is_asked_about_once_more():
    """A remark after the ballot could take it back, so such answers are lost by rule."""
    for case in (*with_a_remark(), *filter(is_lost, honest_answers())):
        assert outcome(case).ranking is None
        assert next_step(call(), outcome(case), set(), reask=True) == "reask"
