"""Scores that weigh judges, computed row by row or by independent software."""

from __future__ import annotations

from itertools import combinations
from math import exp, log

import numpy as np
import pytest

from clash.stats.selection.families import FAMILIES, fit_family
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.scalar import logistic, mean_vote, one_coin_score, ridge_score
from clash.stats.selection.unsupervised import dawid_skene_score, ising_score, temper_odds


def _votes_of_skill(
    n: int = 400, skills: tuple[float, ...] = (0.85, 0.7, 0.6, 0.55), seed: int = 0
):
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    right = rng.random((n, len(skills))) < np.array(skills)
    return np.where(right, label[:, None], 1 - label[:, None]).astype(float), label.astype(float)


def _learn(votes: np.ndarray, label: np.ndarray, target: str = "binary"):
    panel = PanelVotes.of(votes, label, np.arange(len(label)), target)
    cells = panel.cells(range(panel.n_judges))
    row_list = panel.rows(np.flatnonzero(panel.has_label))
    everybody = panel.votes(np.arange(panel.n_rows))
    return panel, cells, row_list.evidence(panel.n_patterns, everybody).on(cells)


def _by_row(panel: PanelVotes, cells, score: np.ndarray) -> np.ndarray:
    return score[cells.of_pattern][panel.pattern]


def test_mean_vote_leaves_gaps_out_and_is_even_where_nobody_voted():
    nan = np.nan
    votes = np.array([[1, 0.5, nan], [nan, nan, nan], [0, 0, 1.0]])
    panel, cells, _ = _learn(votes, np.array([1.0, 0, 0]))
    assert _by_row(panel, cells, mean_vote(cells))[:, 0] == pytest.approx([0.75, 0.5, 1 / 3])


def test_mean_vote_of_three_classes_is_the_share_of_each():
    votes = np.array([[1, 0.5, np.nan], [0, 0, 1.0]])
    panel, cells, _ = _learn(votes, np.array([0.5, 0]), "three")
    posterior = _by_row(panel, cells, mean_vote(cells))
    assert posterior == pytest.approx(np.array([[0, 0.5, 0.5], [2 / 3, 0, 1 / 3]]))


def test_one_coin_is_the_log_odds_of_each_judges_accuracy_row_by_row():
    """Two pseudo-votes, one right and one wrong; a tie is half right, and says nothing."""
    votes, label = _votes_of_skill(60)
    votes[::7, 0] = 0.5
    votes[::5, 1] = np.nan
    panel, cells, evidence = _learn(votes, label)
    expected_slope = np.zeros(60)
    for judge in range(4):
        vote = votes[:, judge]
        has_vote = ~np.isnan(vote)
        hit = np.where(label[has_vote] == 1, vote[has_vote], 1 - vote[has_vote]).sum()
        rate = (hit + 1) / (has_vote.sum() + 2)
        expected_slope += np.where(has_vote, 2 * np.nan_to_num(vote) - 1, 0) * log(
            rate / (1 - rate)
        )
    assert _by_row(panel, cells, one_coin_score(cells, evidence))[:, 0] == pytest.approx(
        expected_slope
    )


def test_one_coin_of_three_classes_is_a_product_of_accuracies():
    rng = np.random.default_rng(1)
    label = rng.choice([0.0, 0.5, 1.0], 80)
    votes = np.where(
        rng.random((80, 3)) < 0.7, label[:, None], rng.choice([0.0, 0.5, 1.0], (80, 3))
    )
    panel, cells, evidence = _learn(votes, label, "three")
    posterior = _by_row(panel, cells, one_coin_score(cells, evidence))
    rate = [((votes[:, j] == label).sum() + 1) / 82 for j in range(3)]
    for row in range(80):
        odds = [
            exp(sum(log(2 * r / (1 - r)) for j, r in enumerate(rate) if votes[row, j] == side))
            for side in (0.0, 0.5, 1.0)
        ]
        assert posterior[row] == pytest.approx(np.array(odds) / sum(odds))


def test_pairwise_stackers_are_scikit_learns_on_its_polynomial_features():
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.preprocessing import PolynomialFeatures

    votes, label = _votes_of_skill(200)
    panel, cells, evidence = _learn(votes, label)
    polynomial = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    x = polynomial.fit_transform(2 * votes - 1)
    assert x.shape[1] == 4 + len(list(combinations(range(4), 2)))
    reference_predictions = Ridge(alpha=1.0).fit(x, label).predict(x)
    our_scores = _by_row(panel, cells, ridge_score(cells, evidence, products=True))[:, 0]
    assert our_scores == pytest.approx(reference_predictions)
    fit = LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(x, label)
    our_scores = _by_row(panel, cells, logistic(cells, evidence, products=True))[:, 0]
    assert our_scores == pytest.approx(fit.predict_proba(x)[:, 1], abs=2e-3)


def test_dawid_skene_is_em_on_the_rows_and_sees_no_label():
    """MAP-EM by hand: two votes' belief in right at 70%, one in each class, from vote shares."""
    votes, label = _votes_of_skill(300)
    panel, cells, evidence = _learn(votes, label)
    p = votes.mean(axis=1)
    for _ in range(300):
        mass_of_one, zero = p.sum(), (1 - p).sum()
        sens = (p @ votes + 1.4) / (mass_of_one + 2.0)
        spec = ((1 - p) @ (1 - votes) + 1.4) / (zero + 2.0)
        prior = (mass_of_one + 1.0) / (mass_of_one + zero + 2.0)
        odds = np.log(prior) - np.log1p(-prior)
        odds = odds + votes @ (np.log(sens) - np.log1p(-spec))
        odds = odds + (1 - votes) @ (np.log1p(-sens) - np.log(spec))
        p = 1 / (1 + np.exp(-odds))
    scores = _by_row(panel, cells, dawid_skene_score(cells, evidence))[:, 0]
    assert 1 / (1 + np.exp(-scores)) == pytest.approx(p, abs=0.01)
    _, other_cells, other_evidence = _learn(votes, 1 - label)
    assert dawid_skene_score(other_cells, other_evidence) == pytest.approx(
        dawid_skene_score(cells, evidence)
    )


def test_a_temperature_is_logistic_regression_on_one_score():
    from sklearn.linear_model import LogisticRegression

    votes, label = _votes_of_skill(250)
    panel, cells, evidence = _learn(votes, label)
    score = ising_score(cells, evidence)
    spread = np.sqrt((_by_row(panel, cells, score)[:, 0] ** 2).mean())
    x = _by_row(panel, cells, score) / spread
    reference_probabilities = (
        LogisticRegression(C=1.0, tol=1e-10, max_iter=5000).fit(x, label).predict_proba(x)
    )
    assert _by_row(panel, cells, temper_odds(score, evidence))[:, 0] == pytest.approx(
        reference_probabilities[:, 1], abs=2e-3
    )


@pytest.mark.parametrize("name", ["dawid-skene-isotonic", "ising-temperature"])
def test_a_model_of_votes_alone_that_is_upside_down_is_turned_by_the_labels(name):
    """Judges wrong four times in five: the model takes them for right, the labels tell."""
    votes, label = _votes_of_skill(600, (0.2, 0.25, 0.2, 0.3))
    panel, cells, evidence = _learn(votes, label)
    p = _by_row(panel, cells, fit_family(FAMILIES[name], cells, evidence))[:, 0]
    assert ((p > 0.5) == (label == 1)).mean() > 0.8
