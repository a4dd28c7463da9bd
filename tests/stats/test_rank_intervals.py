"""Simultaneous intervals hold all ranks together, and shorten where candidates are apart."""

import numpy as np
import pytest

from clash.stats.voting.rank_intervals import rank_intervals


def normal_draws(theta, error, rng, n=1000):
    """Scores, and replicates with independent errors."""
    scores = theta + error * rng.normal(size=len(theta))
    return scores, scores + error * rng.normal(size=(n, len(theta)))


def test_what_is_far_apart_has_one_rank():
    scores, draws = normal_draws(np.array([3.0, 1, 2]), 0.05, np.random.default_rng(0))
    ranks = rank_intervals(scores, draws)
    assert ranks.low.tolist() == ranks.high.tolist() == [1, 3, 2]
    assert ranks.better.tolist() == [[False, True, True], [False] * 3, [False, True, False]]


def test_equal_candidates_have_all_ranks_in_95_of_100_samples():
    rng, k, runs = np.random.default_rng(1), 6, 600
    hits = sum(
        bool(np.all(rank_intervals(*normal_draws(np.zeros(k), 1.0, rng)).high == k))
        for _ in range(runs)
    )
    assert 0.93 < hits / runs < 0.97


def test_a_step_down_finds_what_one_step_does_not():
    """With one candidate far off, the other pair is compared with the limit of few pairs."""
    rng = np.random.default_rng(2)
    errors = rng.normal(size=(20000, 3))
    draws = np.array([10.0, 3.0, 0.0]) + errors
    scores = np.array([10.0, 3.0, 0.0])
    limit = np.quantile(np.abs(errors[:, 1] - errors[:, 2]) / np.sqrt(2), 0.95)  # 1.96
    assert limit < 3 / np.sqrt(2) < 2.34  # 2.34: the limit for the three pairs at once
    assert rank_intervals(scores, draws).better[1, 2]


def test_what_never_varied_is_apart_only_where_it_differs():
    ranks = rank_intervals(np.array([1.0, 1.0, 0.0]), np.tile([1.0, 1.0, 0.0], (50, 1)))
    assert (ranks.low.tolist(), ranks.high.tolist()) == ([1, 1, 3], [2, 2, 3])


@pytest.mark.parametrize("unsure", [np.nan, 5.0])
def test_a_candidate_whose_error_is_unknown_is_apart_from_nobody(unsure):
    scores, draws = normal_draws(np.array([3.0, 1, 5]), 0.05, np.random.default_rng(3))
    scores[2] = unsure
    draws[:, 2] = unsure
    ranks = rank_intervals(scores, draws, comparable=np.array([True, True, False]))
    assert (ranks.low.tolist(), ranks.high.tolist()) == ([1, 2, 1], [2, 3, 3])


def test_replicates_without_a_candidate_are_left_out():
    scores, draws = normal_draws(np.array([3.0, 1, 2]), 0.05, np.random.default_rng(4))
    draws[::3, 1] = np.nan
    assert rank_intervals(scores, draws).low.tolist() == [1, 3, 2]
