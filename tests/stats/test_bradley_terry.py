"""A Bradley-Terry fit solves its equation, on lopsided data above all."""

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.voting.bradley_terry import (
    Comparisons,
    bradley_terry,
    count_comparisons,
    refit_strengths,
)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gap_of(fit, i, j):
    """theta_i - theta_j, and its standard error."""
    c = fit.covariance
    return fit.theta[i] - fit.theta[j], np.sqrt(c[i, i] + c[j, j] - 2 * c[i, j])


def counts_of(wins, ties=None):
    wins = np.asarray(wins, dtype=float)
    return Comparisons(wins, np.zeros_like(wins) if ties is None else np.asarray(ties, dtype=float))


def expected_points(fit, counts):
    """Points (1, 1/2, 0) the fit expects of each candidate, written from the model's text."""
    worth = np.exp(fit.theta)
    total = np.zeros(len(worth))
    for i in range(len(worth)):
        for j in range(len(worth)):
            if i != j:
                tie = fit.nu * np.sqrt(worth[i] * worth[j])
                sum_of_both = worth[i] + worth[j] + tie
                total[i] += counts.games[i, j] * (worth[i] + tie / 2) / sum_of_both
    return total


LOPSIDED = [
    [0, 90, 40, 7, 0],
    [3, 0, 25, 9, 0],
    [1, 5, 0, 8, 0],
    [0, 0, 1, 0, 0],
    [2, 6, 11, 5, 0],  # the last candidate never lost
]


@pytest.mark.parametrize("prior", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("tied", [False, True])
def test_observed_wins_are_expected_wins(prior, tied):
    ties = np.triu(np.random.default_rng(0).integers(0, 6, size=(5, 5)), 1) * tied
    counts = counts_of(LOPSIDED, ties + ties.T)
    fit = bradley_terry(counts, prior=prior)
    left = (counts.wins + counts.ties / 2).sum(axis=1) + prior / 2
    right = expected_points(fit, counts) + prior * sigmoid(fit.theta)
    assert fit.converged
    assert left == pytest.approx(right, abs=1e-6)
    assert fit.residual < 1e-6


def test_observed_ties_are_expected_ties():
    ties = np.array([[0, 4, 9], [4, 0, 1], [9, 1, 0.0]])
    counts = counts_of([[0, 5, 2], [1, 0, 7], [0, 3, 0]], ties)
    fit = bradley_terry(counts, prior=2.0)
    gap = fit.theta[:, None] - fit.theta[None, :]
    tied = fit.nu / (fit.nu + 2 * np.cosh(gap / 2))
    expected_ties = np.sum(np.triu(counts.games * tied, 1))
    assert np.sum(np.triu(ties, 1)) + 2 / 3 == pytest.approx(
        expected_ties + 2 * fit.nu / (2 + fit.nu), abs=1e-7
    )


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(float, (4, 4), elements=st.integers(0, 30).map(float)),
    hnp.arrays(float, (4, 4), elements=st.integers(0, 30).map(float)),
)
def test_any_counts_have_a_finite_fit_that_converged(wins, ties):
    wins, ties = wins * (1 - np.eye(4)), np.triu(ties, 1)
    fit = bradley_terry(counts_of(wins, ties + ties.T))
    assert fit.converged
    assert np.all(np.isfinite(fit.theta))
    assert np.all(np.isfinite(fit.covariance))


def test_a_million_to_nothing_is_finite_and_converges():
    fit = bradley_terry(counts_of([[0, 1e6, 0], [0, 0, 1e6], [0, 0, 0]]))
    assert fit.converged
    assert fit.is_separated
    assert np.all(np.diff(fit.theta) < 0)


def test_maximum_likelihood_agrees_with_choix():
    """choix 0.4.1: ilsr_pairwise(3, 7x(0,1) 2x(1,0) 5x(1,2) 3x(2,1) 9x(0,2) 1x(2,0))."""
    fit = bradley_terry(counts_of([[0, 7, 9], [2, 0, 5], [1, 3, 0]]), prior=0)
    assert fit.theta == pytest.approx([1.12674268, -0.25546833, -0.87127436], abs=1e-7)
    assert fit.theta.sum() == pytest.approx(0, abs=1e-9)


def test_two_candidates_have_the_log_odds():
    fit = bradley_terry(counts_of([[0, 30], [10, 0]]), prior=0)
    gap, error = gap_of(fit, 0, 1)
    assert gap == pytest.approx(np.log(3))
    # The textbook error of a log odds.
    assert error == pytest.approx(np.sqrt(1 / 30 + 1 / 10), rel=1e-5)


def test_standard_errors_agree_with_scikit_learn_information():
    """Logistic regression on +1/-1 designs is the same model; its Fisher information is ours."""
    rng = np.random.default_rng(4)
    strength = np.array([0.0, 0.5, -0.7, 1.2])
    i, j = rng.integers(0, 4, 800), rng.integers(0, 4, 800)
    i, j = i[i != j], j[i != j]
    y = (rng.random(len(i)) < sigmoid(strength[i] - strength[j])).astype(float)
    fit = bradley_terry(count_comparisons(i, j, y, 4), prior=0)
    from sklearn.linear_model import LogisticRegression

    design = np.eye(4)[i] - np.eye(4)[j]
    # Candidate 0 as the reference makes the regression identified without a penalty.
    other_reference_fit = LogisticRegression(C=1e12, fit_intercept=False, tol=1e-10, max_iter=1000)
    coefficients = other_reference_fit.fit(design[:, 1:], y).coef_[0]
    assert fit.theta[1:] - fit.theta[0] == pytest.approx(coefficients, abs=1e-4)
    p = sigmoid(design[:, 1:] @ coefficients)
    information = design[:, 1:].T @ (design[:, 1:] * (p * (1 - p))[:, None])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    our_gaps = [gap_of(fit, k, 0)[1] for k in (1, 2, 3)]
    assert our_gaps == pytest.approx(errors, rel=1e-3)


def test_gradient_and_curvature_agree_with_finite_differences():
    from clash.stats.voting.bradley_terry import _Problem

    ties = np.array([[0, 4, 9], [4, 0, 1], [9, 1, 0.0]])
    wins = np.array([[0, 5, 2], [1, 0, 7], [0, 3, 0.0]])
    problem = _Problem(wins[None], ties[None], 1.5, davidson=True)
    x, step = np.array([[0.4, -1.2, 2.0, 0.3]]), 1e-5
    gradient, hessian = problem.derivatives(x)
    for k, e in enumerate(np.eye(4) * step):
        slope = (problem.value(x + e) - problem.value(x - e)) / (2 * step)
        assert gradient[0, k] == pytest.approx(slope[0], abs=1e-6)
        bend = (problem.derivatives(x + e)[0] - problem.derivatives(x - e)[0]) / (2 * step)
        assert hessian[0, k] == pytest.approx(bend[0], abs=1e-6)


def test_a_tie_counts_half_a_win_where_asked():
    ties = np.array([[0, 8], [8, 0.0]])
    half = bradley_terry(counts_of([[0, 6], [2, 0]], ties), ties="half")
    same_fit = bradley_terry(counts_of([[0, 10], [6, 0]]))
    assert half.theta == pytest.approx(same_fit.theta)
    assert half.nu == 0


def test_davidson_probabilities_of_known_parameters_are_recovered():
    rng = np.random.default_rng(6)
    theta, nu, n = np.array([0.8, 0.0, -0.8]), 0.7, 40000
    i = rng.integers(0, 3, n)
    j = (i + rng.integers(1, 3, n)) % 3
    a, b = np.exp(theta[i]), np.exp(theta[j])
    tie = nu * np.sqrt(a * b)
    draw = rng.random(n) * (a + b + tie)
    outcome = np.where(draw < a, 1.0, np.where(draw < a + b, 0.0, 0.5))
    fit = bradley_terry(count_comparisons(i, j, outcome, 3))
    assert fit.theta == pytest.approx(theta, abs=4 * np.sqrt(np.diag(fit.covariance).max()))
    assert fit.nu == pytest.approx(nu, rel=0.05)


def test_all_ties_is_finite_and_level():
    fit = bradley_terry(counts_of(np.zeros((3, 3)), 20 * (1 - np.eye(3))))
    assert fit.converged
    assert fit.theta == pytest.approx([0, 0, 0], abs=1e-9)
    assert 10 < fit.nu < 1000


def test_never_winning_has_a_finite_score_and_a_wide_interval():
    """0 of 10 and 0 of 100: the more evidence, the lower; the bound below stays far."""
    few = bradley_terry(counts_of([[0, 8, 10], [8, 0, 10], [0, 0, 0]]))
    many = bradley_terry(counts_of([[0, 80, 100], [80, 0, 100], [0, 0, 0]]))
    assert few.is_separated
    assert many.theta[2] < few.theta[2] < few.theta[0] - 2
    for fit in (few, many):
        gap, error = gap_of(fit, 0, 2)
        assert 1.96 * error > 1.5
        assert gap - 1.96 * error > 0


def test_more_evidence_narrows_an_interval():
    widths = [
        gap_of(bradley_terry(counts_of(np.array([[0, 6], [4, 0]]) * m)), 0, 1)[1]
        for m in (1, 10, 100)
    ]
    assert widths[0] > widths[1] > widths[2]
    assert widths[1] / widths[2] == pytest.approx(np.sqrt(10), rel=0.05)


def test_strangers_are_compared_by_the_prior_alone_and_it_says_so():
    wins = np.zeros((4, 4))
    wins[0, 1], wins[1, 0], wins[2, 3], wins[3, 2] = 9, 3, 5, 5
    fit = bradley_terry(counts_of(wins))
    assert fit.linked_set.tolist() == [0, 0, 1, 1]
    assert gap_of(fit, 0, 2)[1] > 2 * gap_of(fit, 0, 1)[1]
    with pytest.raises(NotIdentifiedError, match="prior > 0"):
        bradley_terry(counts_of(wins), prior=0)


def test_without_a_prior_a_group_that_never_lost_is_refused():
    with pytest.raises(NotIdentifiedError):
        bradley_terry(counts_of([[0, 3, 1], [2, 0, 1], [0, 0, 0]]), prior=0)


def test_weights_are_repeated_comparisons():
    i, j, y = [0, 0, 1, 2], [1, 2, 2, 1], [1, 0, 1, 0.5]
    weighted_counts = count_comparisons(i, j, y, 3, [3, 1, 2, 4])
    repeated_counts = count_comparisons(*(np.repeat(v, [3, 1, 2, 4]) for v in (i, j, y)), 3)
    assert np.array_equal(weighted_counts.wins, repeated_counts.wins)
    assert np.array_equal(weighted_counts.ties, repeated_counts.ties)


def test_missing_outcomes_are_left_out():
    counts = count_comparisons([0, 0], [1, 1], [1, np.nan], 2)
    assert counts.games.sum() == 2


def test_relabelling_candidates_relabels_the_strengths():
    counts, order = counts_of(LOPSIDED), np.array([3, 1, 4, 0, 2])
    moved_counts = counts_of(np.asarray(LOPSIDED)[np.ix_(order, order)])
    assert bradley_terry(moved_counts).theta == pytest.approx(bradley_terry(counts).theta[order])


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (([0], [0], [1], 2), "itself"),
        (([0], [2], [1], 2), "indices"),
        (([0], [1], [0.7], 2), "outcome"),
        (([0, 1], [1], [1], 2), "equal length"),
        (([0], [1], [1], 2, [-1]), "weights"),
        (([0], [1], [1], 2, [1, 1]), "weights"),
    ],
)
def test_bad_comparisons_are_refused(args, message):
    with pytest.raises(StatisticsError, match=message):
        count_comparisons(*args)


@pytest.mark.parametrize(
    ("counts", "prior", "message"),
    [
        (counts_of([[0, -1], [1, 0]]), 1, ">= 0"),
        (counts_of([[0, 1], [1, 0]], [[0, 1], [2, 0]]), 1, "symmetric"),
        (counts_of([[0.0]]), 1, "K >= 2"),
        (counts_of([[0, 1], [1, 0]]), -1, "prior"),
    ],
)
def test_bad_counts_are_refused(counts, prior, message):
    with pytest.raises(StatisticsError, match=message):
        bradley_terry(counts, prior=prior)


SHARED = Path(__file__).resolve().parents[2] / "../shared/data"


@pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is absent")
def test_strengths_of_59_models_agree_with_evalica_on_real_votes():
    """8931 crowd votes of llmfao, ties as half wins: evalica's golden scores, to 1e-9 in log."""
    with gzip.open(SHARED / "votes/llmfao.votes.jsonl.gz", "rt", encoding="utf-8") as lines:
        votes = [row for row in map(json.loads, lines) if row["judge"].endswith("/crowd")]
    with (SHARED / "llmfao-golden.csv").open(encoding="utf-8", newline="") as file:
        gold = {
            row["item"]: float(row["score"])
            for row in csv.DictReader(file)
            if row["algorithm"] == "bradley_terry"
        }
    index = {name: i for i, name in enumerate(gold)}
    counts = count_comparisons(
        [index[row["model_a"]] for row in votes],
        [index[row["model_b"]] for row in votes],
        [{"A": 1, "tie": 0.5, "B": 0}[row["vote"]] for row in votes],
        len(gold),
    )
    fit = bradley_terry(counts, prior=0, ties="half")
    logs = np.log(list(gold.values()))
    assert fit.theta == pytest.approx(logs - logs.mean(), abs=1e-9)
    # The default prior moves no strength by much of its error.
    shrunk = bradley_terry(counts, ties="half").theta
    assert np.all(np.abs(shrunk - fit.theta) < 0.15 * np.sqrt(np.diag(fit.covariance)))


@pytest.mark.slow
@pytest.mark.parametrize("truth", [(0, 0, 0, -3), (0, 0.5, -0.5, -5)])
def test_intervals_cover_where_a_candidate_hardly_ever_wins(truth):
    """At 5.5 logits, where 30 games say little more than "below", the prior costs some points."""
    rng, hits, n_separated, runs = np.random.default_rng(8), 0, 0, 300
    theta = np.array(truth, dtype=float)
    beats = sigmoid(theta[:, None] - theta[None, :])
    for _ in range(runs):
        wins = np.triu(rng.binomial(10, beats), 1)
        losses = np.triu(10 * np.ones((4, 4)), 1) - wins
        fit = bradley_terry(counts_of(wins + losses.T))
        gap, error = gap_of(fit, 0, 3)
        hits += abs(gap - (theta[0] - theta[3])) <= 1.959964 * error
        n_separated += fit.is_separated
    assert n_separated > 30
    assert hits / runs > 0.88


def test_refits_far_from_their_start_converge_to_the_same():
    """Newton's first step from there is far too long, and is cut."""
    wins, ties = np.zeros((3, 2, 2)), np.zeros((3, 2, 2))
    wins[0, 0, 1], ties[1] = 1, [[0, 1], [1, 0]]
    near = refit_strengths(wins, ties)
    for start in ([40.0, -40.0, 60.0], [0.0, 0.0, -300.0]):
        assert refit_strengths(wins, ties, np.array(start)) == pytest.approx(near, abs=1e-5)


def test_no_comparisons_are_the_prior():
    fit = bradley_terry(count_comparisons([], [], [], 3))
    assert fit.theta.tolist() == [0, 0, 0]
    assert fit.converged
    assert fit.linked_set.tolist() == [0, 1, 2]
