"""A Plackett-Luce fit solves its equation and is Bradley-Terry for two."""

import numpy as np
import pytest

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons
from clash.stats.voting.plackett_luce import ChoiceCounts, plackett_luce, ranking_choices

NAN = np.nan


def ranks_of(*orders, k=4):
    table = np.full((len(orders), k), NAN)
    for row, order in zip(table, orders, strict=True):
        row[list(order)] = np.arange(len(order))
    return table


def test_maximum_likelihood_agrees_with_choix():
    """choix 0.4.1 opt_rankings on the same five orders."""
    orders = [(0, 1, 2, 3), (1, 0, 3, 2), (3, 2, 1, 0), (0, 2, 1, 3), (0, 3, 1, 2)]
    fit = plackett_luce(count_choices(ranks_of(*orders)), prior=0)
    assert fit.theta == pytest.approx([0.71597341, 0.25022226, -0.51020052, -0.45599514], abs=1e-6)


def test_partial_rankings_agree_with_choix():
    """choix 0.4.1 opt_rankings: who is not ranked was not there, and did not come last."""
    orders = [(0, 1), (1, 0, 4), (3, 2), (2, 0, 1), (4, 0), (0, 3, 4, 2), (2, 3), (1, 2, 3)]
    orders += [(4, 1, 0, 3, 2), (0, 1, 2), (0, 4), (3, 1)]
    fit = plackett_luce(count_choices(ranks_of(*orders, k=5)), prior=0)
    golden = [0.84343144, 0.22540354, -0.86207151, -0.39026333, 0.18349986]
    assert fit.theta == pytest.approx(golden, abs=2e-6)


def count_choices(ranks, weights=None):
    """The choices of rankings, each of weight 1 unless given."""
    choices = ranking_choices(np.asarray(ranks, float))
    weights = np.ones(len(ranks)) if weights is None else np.asarray(weights)
    counts = np.zeros(choices.choice_sets.shape)
    np.add.at(
        counts, (choices.set_index, choices.candidate), choices.share * weights[choices.ranking]
    )
    return ChoiceCounts(choices.choice_sets, counts)


def standard_error(fit, i, j):
    """Of theta_i - theta_j."""
    c = fit.covariance
    return np.sqrt(c[i, i] + c[j, j] - 2 * c[i, j])


def observed_and_expected(theta, ranks):
    """Times each candidate was chosen and was expected to be, choice by choice."""
    observed_wins, expected_wins = np.zeros(len(theta)), np.zeros(len(theta))
    for row in ranks:
        order = [int(i) for i in np.argsort(row) if not np.isnan(row[i])]
        for at in range(len(order) - 1):
            left = order[at:]
            observed_wins[order[at]] += 1
            expected_wins[left] += np.exp(theta[left]) / np.exp(theta[left]).sum()
    return observed_wins, expected_wins


def test_times_chosen_are_expected_times_chosen_on_lopsided_data():
    rng = np.random.default_rng(0)
    draws = rng.gumbel([6, 0, 0, -1, -7], size=(60, 5))
    ranks = 5.0 - np.argsort(np.argsort(draws, axis=1), axis=1)
    ranks[:20, 3] = NAN
    fit = plackett_luce(count_choices(ranks), prior=0.5)
    observed_wins, expected_wins = observed_and_expected(fit.theta, ranks)
    sigmoid = 1 / (1 + np.exp(-fit.theta))
    assert fit.converged
    assert observed_wins + 0.25 == pytest.approx(expected_wins + 0.5 * sigmoid, abs=1e-6)


def test_two_candidates_are_bradley_terry():
    ranks = np.array([[1, 2]] * 7 + [[2, 1]] * 3 + [[1, 1]] * 4, float)
    fit = plackett_luce(count_choices(ranks))
    outcome = [1] * 7 + [0] * 3 + [0.5] * 4
    other_fit = bradley_terry(count_comparisons([0] * 14, [1] * 14, outcome, 2), ties="half")
    assert fit.theta == pytest.approx(other_fit.theta)
    assert fit.covariance == pytest.approx(other_fit.covariance)


def test_first_choices_have_the_closed_form():
    """With no prior and only first places known of three, P(first) is the share of firsts."""
    ranks = np.array([[1, 2, 2]] * 5 + [[2, 1, 2]] * 3 + [[2, 2, 1]] * 2, float)
    choices = count_choices(ranks)
    # The tie behind the first says nothing of the two, by symmetry, but of each to the first.
    fit = plackett_luce(choices, prior=0)
    first = choices.counts[choices.choice_sets.all(axis=1)][0]
    assert first == pytest.approx([5, 3, 2])
    assert fit.theta[0] > fit.theta[1] > fit.theta[2]


def test_a_tie_is_every_order_a_little():
    tied = count_choices([[1, 1, 2, 3]])
    split = count_choices([[1, 2, 3, 4], [2, 1, 3, 4]], [0.5, 0.5])
    assert plackett_luce(tied).theta == pytest.approx(plackett_luce(split).theta)


def test_known_strengths_are_recovered():
    rng, theta = np.random.default_rng(1), np.array([1.0, 0.3, -0.2, -1.1])
    draws = rng.gumbel(size=(4000, 4)) + theta
    ranks = (4 - np.argsort(np.argsort(draws, axis=1), axis=1)).astype(float)
    fit = plackett_luce(count_choices(ranks))
    assert fit.theta - fit.theta.mean() == pytest.approx(theta - theta.mean(), abs=0.1)
    for i in range(3):
        error = fit.theta[i] - fit.theta[3] - (theta[i] - theta[3])
        assert abs(error) < 3.3 * standard_error(fit, i, 3)


def test_never_chosen_is_finite_with_a_prior_and_refused_without():
    choices = count_choices(ranks_of((0, 1, 2, 3), (1, 0, 2, 3), (2, 1, 0, 3)))
    fit = plackett_luce(choices)
    assert fit.converged
    assert np.all(np.isfinite(fit.theta))
    assert np.sqrt(fit.covariance[3, 3]) > 0.8
    with pytest.raises(NotIdentifiedError, match="prior > 0"):
        plackett_luce(choices, prior=0)


def test_the_curvature_agrees_with_finite_differences():
    from clash.stats.voting.plackett_luce import _Problem

    choices = count_choices(ranks_of((0, 1, 2, 3), (1, 3), (2, 1, 0), (3, 0, 1, 2)))
    problem = _Problem(choices.choice_sets, choices.counts[None], 0.7)
    theta, step = np.array([[0.5, -1.0, 0.2, 1.5]]), 1e-5
    gradient, hessian = problem.derivatives(theta)
    for i, e in enumerate(np.eye(4) * step):
        slope = (problem.value(theta + e) - problem.value(theta - e)) / 2e-5
        assert gradient[0, i] == pytest.approx(slope[0], abs=1e-6)
        ahead, behind = (problem.derivatives(theta + s * e)[0][0] for s in (1, -1))
        assert hessian[0, i] == pytest.approx((ahead - behind) / 2e-5, abs=1e-6)


def test_nothing_ranked_is_the_prior():
    fit = plackett_luce(count_choices(np.full((2, 3), NAN)))
    assert fit.theta == pytest.approx([0, 0, 0])
    assert fit.converged


def test_a_ranking_whose_ties_stand_for_too_many_orders_is_refused():
    with pytest.raises(StatisticsError, match="720"):
        count_choices(np.ones((1, 7)))


def test_a_negative_prior_is_refused():
    with pytest.raises(StatisticsError, match="prior"):
        plackett_luce(count_choices([[1, 2]]), prior=-1)
