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
    copeland,
    majority_cycle,
    pairwise,
    schulze,
    smith_set,
)
from clash.stats.voting.kemeny import kemeny, kemeny_scores

# Schulze 2011, example 1: 45 voters, A to E; published order E A C B D.
BALLOTS = [
    ("ACBED", 5), ("ADECB", 5), ("BEDAC", 8), ("CABED", 3),
    ("CAEBD", 7), ("CBADE", 2), ("DCEBA", 7), ("EBADC", 8),
]  # fmt: skip


def ranks_of(ballots, names="ABCDE"):
    return np.array([[order.index(name) + 1 for name in names] for order, _ in ballots], float)


election = pairwise(ranks_of(BALLOTS), [n for _, n in BALLOTS])


def test_pairwise_counts_are_the_published_ones():
    assert election[0].tolist() == [0, 20, 26, 30, 22]
    assert election + election.T == pytest.approx(45 * (1 - np.eye(5)))


def test_schulze_gives_his_published_order():
    found = schulze(election)
    assert [int(i) for i in np.argsort(found.places)] == [4, 0, 2, 1, 3]
    assert found.winner == 4


def test_ties_and_unranked_candidates():
    d = pairwise([[1, 1, 2], [2, 1, np.nan]], [2, 1])
    assert d.tolist() == [[0, 1, 2], [2, 0, 2], [0, 0, 0]]


def test_a_cycle_has_no_condorcet_winner_and_is_a_tie():
    d = pairwise([[1, 2, 3], [3, 1, 2], [2, 3, 1]])
    assert condorcet_winner(d) == -1
    assert copeland(d).winner == schulze(d).winner == kemeny(d).winner == -1
    assert not kemeny(d).unique
    assert copeland(d).places.tolist() == [1, 1, 1]


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
    least, optimal = brute_kemeny(matrix)
    found = kemeny(matrix)
    assert found.disagreement == pytest.approx(least)
    assert tuple(found.order.tolist()) == min(optimal)
    assert found.unique == (len(optimal) == 1)
    below = np.array(
        [[o.index(a) < o.index(b) for a in range(5) for b in range(5)] for o in optimal]
    )
    always, never = below.all(axis=0), ~below.any(axis=0)
    share = np.where(always, 1.0, np.where(never, 0.0, 0.5)).reshape(5, 5)
    assert found.scores.tolist() == share.sum(axis=1).tolist()
    firsts = {order[0] for order in optimal}
    assert found.winner == (firsts.pop() if len(firsts) == 1 else -1)


@settings(deadline=None)
@given(hnp.arrays(float, (7, 4), elements=st.integers(1, 4).map(float)))
def test_all_methods_elect_the_condorcet_winner_where_there_is_one(ranks):
    d = pairwise(ranks)
    best = condorcet_winner(d)
    if best >= 0:
        assert copeland(d).winner == schulze(d).winner == kemeny(d).winner == best


@settings(deadline=None)
@given(hnp.arrays(float, (5, 4), elements=st.integers(1, 4).map(float)), st.permutations(range(4)))
def test_renaming_candidates_renames_the_places(ranks, order):
    for method in (copeland, schulze):
        before, after = method(pairwise(ranks)), method(pairwise(ranks[:, order]))
        assert np.array_equal(after.places, before.places[list(order)])


def test_many_tables_at_once_have_the_scores_of_each():
    tables = np.random.default_rng(1).integers(0, 5, (30, 6, 6)).astype(float)
    tables[:, np.arange(6), np.arange(6)] = 0
    assert kemeny_scores(tables).tolist() == [kemeny(d).scores.tolist() for d in tables]


def brute_smith(d):
    k = len(d)
    sets = (s for size in range(1, k + 1) for s in combinations(range(k), size))
    beats = d > d.T
    rest = range(k)
    return next(set(s) for s in sets if all(beats[a, b] for a in s for b in rest if b not in s))


@settings(deadline=None)
@given(hnp.arrays(float, (5, 5), elements=st.integers(0, 3).map(float)))
def test_the_smith_set_is_the_smallest_that_beats_the_rest(matrix):
    np.fill_diagonal(matrix, 0)
    found = smith_set(matrix)
    assert set(found.tolist()) == brute_smith(matrix)
    if condorcet_winner(matrix) >= 0:
        assert found.tolist() == [condorcet_winner(matrix)]


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
    d = pairwise([[1, 2]] * 3 + [[2, 1]], [0.1, 0.1, 0.1, 0.3])
    assert d[0, 1] != d[1, 0]
    assert copeland(d).winner == schulze(d).winner == condorcet_winner(d) == -1
    assert kemeny(d).winner == -1


def test_unanimous_ballots_are_the_ranking_of_every_method():
    d = pairwise([[3, 1, 4, 2]] * 3)
    assert copeland(d).places.tolist() == schulze(d).places.tolist() == [3, 1, 4, 2]
    assert kemeny(d).order.tolist() == [1, 3, 0, 2]
    assert kemeny(d).disagreement == 0


def test_eight_candidates_are_exact():
    d = pairwise(np.random.default_rng(0).permuted(np.tile(np.arange(8.0), (9, 1)), axis=1))
    found = kemeny(d)
    cost = sum(d[b, a] for i, a in enumerate(found.order) for b in found.order[i + 1 :])
    assert cost == pytest.approx(found.disagreement)
    # Moving any one candidate anywhere does not help.
    for i in range(8):
        rest = np.delete(found.order, i)
        for j in range(8):
            other = np.insert(rest, j, found.order[i])
            moved = sum(d[b, a] for x, a in enumerate(other) for b in other[x + 1 :])
            assert moved >= found.disagreement - 1e-9


@pytest.mark.parametrize("method", [copeland, schulze, kemeny, condorcet_winner])
@pytest.mark.parametrize("matrix", [[[0, 1, 2]], [[0]], [[0, -1], [1, 0]]])
def test_what_is_no_table_of_pairs_is_refused(method, matrix):
    with pytest.raises(StatisticsError):
        method(matrix)


def test_kemeny_says_where_it_ends():
    with pytest.raises(StatisticsError, match="schulze"):
        kemeny(np.ones((17, 17)))


def test_bad_ranks_and_weights_are_refused():
    with pytest.raises(StatisticsError, match="K >= 2"):
        pairwise([[1]])
    with pytest.raises(StatisticsError, match="weights"):
        pairwise([[1, 2]], [-1])
