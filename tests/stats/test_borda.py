"""Borda counts follow the paper's convention and never look at label order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clash.errors import StatisticsError
from clash.stats.voting.borda import borda, borda_pairwise
from clash.stats.voting.majority import majority

NAN = np.nan


def test_two_candidates_and_three_judges_is_a_majority():
    scores = borda([[1, 2], [1, 2], [2, 1]])
    assert scores.scores == pytest.approx([2, 1])
    assert (scores.winner, scores.margin) == (0, pytest.approx(1 / 3))


def test_points_are_k_minus_rank():
    scores = borda([[1, 2, 3, 4], [2, 1, 4, 3]])
    assert scores.points.tolist() == [[3, 2, 1, 0], [2, 3, 0, 1]]
    assert scores.scores == pytest.approx([5, 5, 1, 1])
    assert scores.places.tolist() == [1, 1, 3, 3]
    assert scores.winner == -1


def test_tied_candidates_share_the_points_of_their_places():
    assert borda([[1, 1, 3], [1, 2, 2]]).points.tolist() == [[1.5, 1.5, 0], [2, 0.5, 0.5]]


def test_only_the_order_of_ranks_counts():
    dense, gaps = borda([[1, 2, 2, 3]]), borda([[10, 20.5, 20.5, 99]])
    assert np.array_equal(dense.scores, gaps.scores)


def test_weights_and_missing_judges():
    scores = borda([[1, 2], [2, 1], [NAN, NAN]], weights=[2, 1, 5])
    assert scores.scores == pytest.approx([2, 1])
    assert scores.weight == 3
    assert scores.margin == pytest.approx(1 / 3)


def test_nobody_ranked():
    scores = borda([[NAN, NAN], [NAN, NAN]])
    assert (scores.winner, scores.weight, scores.margin) == (-1, 0, 0)


def test_many_items_at_once_are_each_item_alone():
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 4, size=(50, 3, 4)).astype(float)
    ranks[rng.random((50, 3)) < 0.2] = NAN
    together = borda(ranks, [1, 2, 0.5])
    for i in range(50):
        alone = borda(ranks[i], [1, 2, 0.5])
        assert np.array_equal(together.scores[i], alone.scores)
        assert (together.winner[i], together.margin[i]) == (alone.winner, alone.margin)


@settings(deadline=None)
@given(hnp.arrays(float, (4, 3), elements=st.integers(1, 3).map(float)), st.permutations(range(3)))
def test_renaming_candidates_renames_the_winner(ranks, order):
    before, after = borda(ranks), borda(ranks[:, order])
    assert after.scores == pytest.approx(before.scores[order])
    assert (before.winner == -1) == (after.winner == -1)
    if before.winner >= 0:
        assert order[after.winner] == before.winner


@settings(deadline=None)
@given(hnp.arrays(float, (5, 4), elements=st.integers(1, 4).map(float)))
def test_points_of_a_judge_always_add_up_to_the_same(ranks):
    assert borda(ranks).points.sum(axis=1) == pytest.approx(np.full(5, 6.0))


def test_the_margin_is_one_at_most_and_reached():
    """Always first, and the rest in every order: nothing can lead more."""
    scores = borda([[1, 2, 3], [1, 3, 2]])
    assert scores.margin == pytest.approx(1)
    assert borda([[1, 2]] * 3).margin == 1


@settings(deadline=None)
@given(hnp.arrays(float, (5, 4), elements=st.integers(1, 4).map(float)))
def test_the_margin_lies_between_zero_and_one(ranks):
    assert 0 <= borda(ranks).margin <= 1


def test_two_candidates_agree_with_weighted_majority():
    rng = np.random.default_rng(1)
    votes = rng.choice([0, 0.5, 1, NAN], size=(200, 5))
    weights = rng.random(5)
    # A vote of 1 ranks side 1 first; the columns are side 0 and side 1.
    ranks = np.stack([votes, 1 - votes], axis=-1)
    winner = borda(ranks, weights).winner
    verdict = majority(votes, weights).verdict
    assert np.array_equal(winner == 1, verdict == 1)
    assert np.array_equal(winner == 0, verdict == 0)


def test_weights_that_differ_by_rounding_do_not_decide():
    scores = borda([[1, 2], [2, 1], [2, 1]], weights=[0.3, 0.1, 0.2])
    assert scores.winner == -1


@pytest.mark.parametrize(
    ("ranks", "weights", "message"),
    [
        ([[1, NAN], [1, 2]], None, "only some"),
        ([[1]], None, "K >= 2"),
        ([1, 2], None, "K >= 2"),
        ([[1, 2]], [-1], "weights"),
        ([[1, 2]], [1, 2], "weights"),
        ([[1, 2]], [NAN], "weights"),
    ],
)
def test_bad_input_is_refused(ranks, weights, message):
    with pytest.raises(StatisticsError, match=message):
        borda(ranks, weights)


# -- rankings that leave candidates out --------------------------------------------------------------


@given(
    st.integers(2, 6).flatmap(
        lambda k: st.lists(
            st.tuples(
                st.lists(st.integers(1, k), min_size=k, max_size=k),
                st.sampled_from([0.5, 1.0, 2.0]),
            ),
            min_size=1,
            max_size=6,
        )
    )
)
def test_on_complete_rankings_pairs_count_what_points_do(rows):
    ranks, weights = [row for row, _ in rows], [weight for _, weight in rows]
    plain, pairs = borda(ranks, weights), borda_pairwise(ranks, weights)
    assert pairs.scores == pytest.approx(plain.scores)
    assert (pairs.winner, pairs.places.tolist()) == (plain.winner, plain.places.tolist())
    assert pairs.margin == pytest.approx(plain.margin)


def test_a_place_that_a_judge_leaves_out_is_no_lost_one():
    """The first judge leaves out A, which both others put first; it has B before C."""
    nan = np.nan
    table = borda_pairwise([[nan, 1, 2], [1, 2, 3], [1, 3, 2]])
    # A beats both in 2 of 2; B beats C in 2 of 3. Times the weight of 3 judges.
    assert table.scores == pytest.approx([2 * 3, 2 / 3 * 3, 1 / 3 * 3])
    assert table.winner == 0
    assert table.weight == 3


def test_a_pair_that_nobody_ranked_is_even():
    nan = np.nan
    table = borda_pairwise([[nan, 1, 2], [1, nan, 2]])
    assert table.scores == pytest.approx([(0.5 + 1) * 2, (0.5 + 1) * 2, 0])
    assert table.winner == -1
