"""Collapsing loses nothing: every item finds its own votes and label in its pattern."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from clash.errors import StatisticsError
from clash.stats.latent.patterns import collapse

votes_of_any_kind = arrays(
    np.int8,
    st.tuples(st.integers(1, 40), st.integers(1, 9)),
    elements=st.sampled_from([-1, 0, 1, 2]),
)


@given(votes_of_any_kind)
def test_expanding_patterns_returns_the_votes(votes):
    patterns = collapse(votes)
    np.testing.assert_array_equal(patterns.votes[patterns.inverse], votes)
    assert len(np.unique(patterns.votes, axis=0)) == len(patterns.votes)
    np.testing.assert_array_equal(patterns.counts, np.bincount(patterns.inverse))


@pytest.mark.parametrize("n_judges", [3, 15, 30, 45, 80])
def test_any_number_of_judges_collapses(n_judges):
    rng = np.random.default_rng(n_judges)
    votes = rng.integers(-1, 3, (500, n_judges)).astype(np.int8)
    votes[250:] = votes[:250]
    patterns = collapse(votes)
    np.testing.assert_array_equal(patterns.votes[patterns.inverse], votes)
    assert patterns.counts.min() >= 2
    assert patterns.counts.sum() == 500


@pytest.mark.parametrize("n_judges", [2, 60])
def test_items_with_different_labels_are_different_patterns(n_judges):
    votes = np.ones((6, n_judges), np.int8)
    labels = [0, 1, -1, 0, 1, -1]
    patterns = collapse(votes, labels=labels)
    assert len(patterns.counts) == 3
    np.testing.assert_array_equal(patterns.labels[patterns.inverse], labels)


def test_weights_add_up_within_a_pattern():
    patterns = collapse([[0, 1], [0, 1], [1, 1]], weights=[0.5, 2.0, 3.0])
    assert sorted(patterns.counts) == [2.5, 3.0]


def test_a_tie_is_half_a_vote_or_none():
    half = collapse([[2, 1]])
    assert half.for_one.tolist() == [[0.5, 1.0]]
    assert half.for_zero.tolist() == [[0.5, 0.0]]
    assert collapse([[2, 1]], ties="missing").votes.tolist() == [[-1, 1]]


def test_bootstrap_counts_resample_items():
    patterns = collapse(np.random.default_rng(0).integers(0, 2, (300, 3)))
    counts = patterns.resample(400, np.random.default_rng(1))
    assert (counts.sum(axis=1) == 300).all()
    np.testing.assert_allclose(counts.mean(axis=0), patterns.counts, rtol=0.15)


@pytest.mark.parametrize(
    ("votes", "options", "says"),
    [
        (np.zeros((0, 3)), {}, "at least 1 x 1"),
        (np.zeros(3), {}, "items x judges"),
        ([[0.5, 1.0]], {}, "whole numbers"),
        ([[np.nan, 1.0]], {}, "whole numbers"),
        ([[3, 0]], {}, "0, 1, -1"),
        ([[-2, 0]], {}, "0, 1, -1"),
        ([[0, 1]], {"labels": [0, 1]}, "one per item"),
        ([[0, 1]], {"labels": [2]}, "0, 1 or -1"),
        ([[0, 1]], {"weights": [-1.0]}, "non-negative"),
        ([[0, 1]], {"weights": [0.0]}, "weighs nothing"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
def test_bad_votes_are_refused_with_the_reason(votes, options, says):
    with pytest.raises(StatisticsError, match=says):
        collapse(votes, **options)
