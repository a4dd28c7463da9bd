"""Majorities, pluralities and the credit they earn."""

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.voting.majority import credit, majority, plurality

NAN = np.nan


def test_a_majority_counts_what_was_said():
    majority_votes = majority([[1, 1, 0], [0, 0, 0], [1, 0, NAN], [NAN, NAN, NAN], [0.5, 1, 0.5]])
    assert majority_votes.verdict.tolist()[:3] == [1, 0, 0.5]
    assert np.isnan(majority_votes.verdict[3])
    assert majority_votes.verdict[4] == 1
    assert majority_votes.share[0] == pytest.approx(2 / 3)
    assert majority_votes.unanimous.tolist() == [False, True, False, False, False]
    assert majority_votes.split.tolist() == [[2, 1], [0, 3], [1, 1], [0, 0], [1, 0]]


def test_weights_can_overrule_numbers():
    assert majority([[1, 0, 0]], [5, 2, 2]).verdict[0] == 1
    assert majority([[1, 0, 0]], [4, 2, 2]).verdict[0] == 0.5


def test_equal_weights_in_binary_fractions_tie():
    assert majority([[1, 0, 0]], [0.3, 0.1, 0.2]).verdict[0] == 0.5


def test_credit_of_ties_misses_and_tied_labels():
    verdict = [1, 0, 0.5, NAN, 0.5, 1, 1]
    label = [1, 1, 1, 1, 0.5, 0.5, NAN]
    assert credit(verdict, label).tolist()[:6] == [1, 0, 0.5, 0, 1, 0]
    assert np.isnan(credit(verdict, label)[6])


def test_plurality_of_three_classes():
    winners = plurality([[0, 1, 1], [0, 1, 2], [-1, -1, -1], [2, -1, 2]], 3)
    assert winners.winner.tolist() == [1, -1, -1, 2]
    assert winners.credit[1] == pytest.approx([1 / 3] * 3)
    assert winners.credit[2].tolist() == [0, 0, 0]


def test_two_classes_are_the_majority():
    rng = np.random.default_rng(0)
    votes, weights = rng.choice([0, 1, NAN], size=(300, 4)), rng.random(4)
    codes = np.where(np.isnan(votes), -1, np.nan_to_num(votes)).astype(int)
    two, many = majority(votes, weights), plurality(codes, 2, weights)
    is_decided = (two.verdict == 0) | (two.verdict == 1)
    assert np.array_equal(many.winner[is_decided], two.verdict[is_decided].astype(int))
    assert np.all(many.winner[~is_decided] == -1)


@pytest.mark.parametrize("vote", [2, 0.3, -1, np.inf])
def test_a_vote_that_is_no_side_is_refused(vote):
    with pytest.raises(StatisticsError, match="votes of a majority"):
        majority([[1, vote]])


def test_bad_codes_and_weights_are_refused():
    with pytest.raises(StatisticsError, match="class codes"):
        plurality([[3]], 3)
    with pytest.raises(StatisticsError, match="weights"):
        majority([[1, 0]], [1])
