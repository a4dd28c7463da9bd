"""Condorcet methods are the definitions, on published and on random elections."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clash.errors import StatisticsError
from clash.stats.voting.condorcet import (
    condorcet_winner,
    copeland_scores,
    kemeny_scores,
    majority_cycle,
    places,
    schulze_scores,
    smith_set,
)
from clash.stats.voting.rankings import ranking_array
from clash.stats.voting.rules import PairwiseTable


def preferences(ranks, weights=None):
    """The table of preferences as every rule gets it."""
    counts = PairwiseTable.of(ranking_array(ranks, weights)).counts()
    return counts.wins + counts.ties / 2


def kemeny_of_one(d):
    return kemeny_scores(d[None])[0]


METHODS = (copeland_scores, schulze_scores, kemeny_of_one)


def winner(scores):
    """The only best candidate, -1 where several are level."""
    best = np.flatnonzero(places(scores) == 1)
    return int(best[0]) if len(best) == 1 else -1


# Schulze 2011, example 1: 45 voters, A to E; published order E A C B D.
ORDERS = [
    ("ACBED", 5), ("ADECB", 5), ("BEDAC", 8), ("CABED", 3),
    ("CAEBD", 7), ("CBADE", 2), ("DCEBA", 7), ("EBADC", 8),
]  # fmt: skip


def ranks_of(orders, names="ABCDE"):
    return np.array([[order.index(name) + 1 for name in names] for order, _ in orders], float)


election = preferences(ranks_of(ORDERS), [n for _, n in ORDERS])


def test_pairwise_counts_are_the_published_ones():
    assert election[0].tolist() == [0, 20, 26, 30, 22]
    assert election + election.T == pytest.approx(45 * (1 - np.eye(5)))


def test_schulze_gives_his_published_order():
    assert np.argsort(-schulze_scores(election)).tolist() == [4, 0, 2, 1, 3]


def test_ties_and_unranked_candidates():
    d = preferences([[1, 1, 2], [2, 1, np.nan]], [2, 1])
    assert d.tolist() == [[0, 1, 2], [2, 0, 2], [0, 0, 0]]


def test_a_cycle_has_no_condorcet_winner_and_is_a_tie():
    d = preferences([[1, 2, 3], [3, 1, 2], [2, 3, 1]])
    assert condorcet_winner(d) == -1
    for method in METHODS:
        assert places(method(d)).tolist() == [1, 1, 1]


def brute_kemeny(d):
    k = len(d)
    costs = {
        order: sum(d[b, a] for i, a in enumerate(order) for b in order[i + 1 :])
        for order in permutations(range(k))
    }
    least = min(costs.values())
    return least, [order for order, cost in costs.items() if cost <= least + 1e-9]


@settings(deadline=None)
@given(hnp.arrays(float, (5, 5), elements=st.integers(0, 6).map(float)))
def test_kemeny_is_the_best_of_all_orders(matrix):
    np.fill_diagonal(matrix, 0)
    _, optimal = brute_kemeny(matrix)
    below = np.array(
        [[o.index(a) < o.index(b) for a in range(5) for b in range(5)] for o in optimal]
    )
    always, never = below.all(axis=0), ~below.any(axis=0)
    share = np.where(always, 1.0, np.where(never, 0.0, 0.5)).reshape(5, 5)
    assert kemeny_of_one(matrix).tolist() == share.sum(axis=1).tolist()


@settings(deadline=None)
@given(hnp.arrays(float, (7, 4), elements=st.integers(1, 4).map(float)))
def test_all_methods_elect_the_condorcet_winner_where_there_is_one(ranks):
    d = preferences(ranks)
    best = condorcet_winner(d)
    if best >= 0:
        assert [winner(method(d)) for method in METHODS] == [best] * 3


@settings(deadline=None)
@given(hnp.arrays(float, (5, 4), elements=st.integers(1, 4).map(float)), st.permutations(range(4)))
def test_renaming_candidates_renames_the_scores(ranks, order):
    for method in METHODS:
        scores, renamed_scores = method(preferences(ranks)), method(preferences(ranks[:, order]))
        assert np.array_equal(renamed_scores, scores[list(order)])


def test_many_tables_at_once_have_the_scores_of_each():
    tables = np.random.default_rng(1).integers(0, 5, (30, 6, 6)).astype(float)
    tables[:, np.arange(6), np.arange(6)] = 0
    for method, many in zip(METHODS, (copeland_scores, schulze_scores, kemeny_scores), strict=True):
        assert many(tables).tolist() == [method(d).tolist() for d in tables]


def brute_smith(d):
    k = len(d)
    sets = (s for size in range(1, k + 1) for s in combinations(range(k), size))
    beats = d > d.T
    remaining_candidates = range(k)
    return next(
        set(s)
        for s in sets
        if all(beats[a, b] for a in s for b in remaining_candidates if b not in s)
    )


@settings(deadline=None)
@given(hnp.arrays(float, (5, 5), elements=st.integers(0, 3).map(float)))
def test_the_smith_set_is_the_smallest_that_beats_the_rest(matrix):
    np.fill_diagonal(matrix, 0)
    members = smith_set(matrix)
    assert set(members.tolist()) == brute_smith(matrix)
    if condorcet_winner(matrix) >= 0:
        assert members.tolist() == [condorcet_winner(matrix)]


@settings(deadline=None)
@given(hnp.arrays(float, (5, 5), elements=st.integers(0, 3).map(float)))
def test_a_cycle_is_one_and_there_is_none_where_majorities_are_an_order(matrix):
    np.fill_diagonal(matrix, 0)
    loop = majority_cycle(matrix).tolist()
    beats = matrix > matrix.T
    for a, b in zip(loop, loop[1:] + loop[:1], strict=True):
        assert beats[a, b]
    reach = beats.copy()
    for _ in range(5):
        reach |= (reach.astype(int) @ beats.astype(int)) > 0
    assert bool(loop) == bool(np.diag(reach).any())
    assert len(set(loop)) == len(loop)


def test_sums_of_weights_that_differ_by_rounding_are_level():
    d = preferences([[1, 2]] * 3 + [[2, 1]], [0.1, 0.1, 0.1, 0.3])
    assert d[0, 1] != d[1, 0]
    assert condorcet_winner(d) == -1
    assert [winner(method(d)) for method in METHODS] == [-1] * 3


def test_unanimous_rankings_are_the_ranking_of_every_method():
    d = preferences([[3, 1, 4, 2]] * 3)
    for method in METHODS:
        assert places(method(d)).tolist() == [3, 1, 4, 2]


def test_eight_candidates_are_exact():
    d = preferences(np.random.default_rng(0).permuted(np.tile(np.arange(8.0), (9, 1)), axis=1))
    scores = kemeny_of_one(d)
    assert sorted(scores.tolist()) == list(range(8))  # one order is optimal
    order = np.argsort(-scores)
    cost = sum(d[b, a] for i, a in enumerate(order) for b in order[i + 1 :])
    # Moving any one candidate anywhere does not help.
    for i in range(8):
        remaining_order = np.delete(order, i)
        for j in range(8):
            other_order = np.insert(remaining_order, j, order[i])
            disagreement = sum(
                d[b, a] for x, a in enumerate(other_order) for b in other_order[x + 1 :]
            )
            assert disagreement >= cost - 1e-9


@pytest.mark.parametrize("method", [condorcet_winner, smith_set, majority_cycle])
@pytest.mark.parametrize("matrix", [[[0, 1, 2]], [[0]], [[0, -1], [1, 0]]])
def test_what_is_no_table_of_pairs_is_refused(method, matrix):
    with pytest.raises(StatisticsError):
        method(matrix)
