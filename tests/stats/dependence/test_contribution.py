"""What a judge adds: nothing if it is a copy or noise, something if it sees for itself."""

from __future__ import annotations

import numpy as np
import pytest

from clash.stats.dependence.contribution import (
    auc,
    contributions,
    entropy,
    information_added,
    redundancy,
    ridge_logistic,
    stack,
)
from clash.stats.dependence.model_comparison import cluster_folds, compare_models
from clash.stats.latent.dawid_skene import DawidSkene
from clash.stats.latent.patterns import MISSING, collapse
from stats.dependence import panels

N = 1200


def panel(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Judges 0 and 1 see for themselves, 2 copies 0, 3 tosses a coin, 4 sees for itself."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(N) < 0.5).astype(np.int8)
    votes = np.where(rng.random((N, 5)) < 0.75, labels[:, None], 1 - labels[:, None])
    votes[:, 2] = votes[:, 0]
    votes[:, 3] = rng.integers(0, 2, N)
    return votes.astype(np.int8), labels


def test_held_out_stacking_misses_the_judges_that_see() -> None:
    """Log-loss rises without 1 and 4; a copy and a coin are not missed."""
    votes, labels = panel()
    patterns = collapse(votes, labels=labels)
    fold = cluster_folds(np.arange(N), 5, np.random.default_rng(0))
    full_contribution, added_contribution = contributions(patterns, fold)
    assert [bool(record.log_loss.low > 0) for record in added_contribution] == [
        False,
        True,
        False,
        False,
        True,
    ]
    assert full_contribution.auc > 0.8
    assert added_contribution[1].auc > 0.01 > abs(added_contribution[3].auc)


def test_information_added_is_conditional_mutual_information() -> None:
    """Averaged over the votes of the law itself, bits are H(Y | others) - H(Y | all)."""
    law = DawidSkene(np.array([0.8, 0.7, 0.6]), np.array([0.7, 0.9, 0.6]), 0.4, 7)
    votes = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)], np.int8)
    joint = np.exp(law.log_likelihoods(votes)) * [0.6, 0.4]

    def conditional_entropy(table: np.ndarray) -> float:
        total = table.sum(axis=1)
        return float(total @ entropy(table[:, 1] / total))

    copies = np.rint(joint.sum(axis=1) * 1e5).astype(int)
    many = collapse(np.repeat(votes, copies, axis=0))
    for judge, value in enumerate(information_added(law, many)):
        other_codes = np.delete(votes, judge, axis=1) @ [2, 1]
        other_counts = np.array([joint[other_codes == code].sum(axis=0) for code in range(4)])
        exact = conditional_entropy(other_counts) - conditional_entropy(joint)
        assert value.bits.estimate == pytest.approx(exact, abs=1e-4)


def test_redundancy_is_one_for_a_copy_and_nothing_for_a_coin() -> None:
    votes, _ = panel(1)
    patterns = collapse(votes)
    redundancy_share = redundancy(
        patterns, cluster_folds(np.arange(N), 5, np.random.default_rng(0))
    )
    assert redundancy_share[0] == pytest.approx(redundancy_share[2])
    assert redundancy_share[0] > 0.95
    assert abs(redundancy_share[3]) < 0.02
    assert 0.05 < redundancy_share[1] < 0.5


def test_redundancy_of_a_judge_that_never_varies_is_unknown() -> None:
    votes, _ = panel(2)
    votes[:, 1] = 1
    fold = cluster_folds(np.arange(N), 5, np.random.default_rng(0))
    assert np.isnan(redundancy(collapse(votes), fold)[1])


def test_logistic_regression_agrees_with_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    x = rng.choice([-1.0, 0.0, 1.0], (60, 3))
    target = (rng.random(60) < 0.4).astype(float)
    counts = rng.integers(1, 5, 60).astype(float)
    our_fit = ridge_logistic(np.column_stack([np.ones(60), x]), target, counts)
    # An intercept without any ridge is theirs; ours has a thousandth.
    reference_fit_result = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(
        x, target, counts
    )
    np.testing.assert_allclose(
        our_fit, [*reference_fit_result.intercept_, *reference_fit_result.coef_[0]], atol=1e-3
    )


def test_logistic_regression_stands_separation() -> None:
    x = np.array([[1.0, -1.0], [1.0, 1.0]])
    beta = ridge_logistic(x, np.array([0.0, 1.0]), np.array([1e6, 1e6]))
    assert np.isfinite(beta).all()
    assert beta[1] > 5


def test_auc_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 200).astype(float)
    scores = np.round(truth + rng.normal(0, 1, 200), 1)
    assert auc(scores, truth) == pytest.approx(roc_auc_score(truth, scores))
    assert np.isnan(auc(scores, np.ones(200)))


def test_unlabelled_items_are_passed_over() -> None:
    votes, labels = panel(5)
    labels = np.where(np.arange(N) % 3 == 0, labels, MISSING)
    fold = cluster_folds(np.arange(N), 5, np.random.default_rng(0))
    assert len(stack(collapse(votes, labels=labels), fold).losses) == N // 3


def test_folds_keep_clusters_together() -> None:
    clusters = np.repeat(np.arange(40), 3)
    fold = cluster_folds(clusters, 5, np.random.default_rng(0))
    assert all(len(set(fold[clusters == code])) == 1 for code in range(40))
    assert set(np.bincount(fold)) == {24}


def test_comparison_prefers_what_generated_the_votes() -> None:
    """Independence where judges are independent, dependence of the right kind where they are not."""
    rng = np.random.default_rng(6)
    fold = cluster_folds(np.arange(1500), 3, rng)
    alone = panels.patterns(panels.independent(6).sample(1500, rng), with_labels=True)
    scores = {model.name: model for model in compare_models(alone, fold)}
    assert min(scores.values(), key=lambda model: model.bic).name == "independent (CI)"
    assert all(model.gain.low <= 0 for model in scores.values())
    coupled_patterns = panels.patterns(panels.families().sample(1500, rng), with_labels=True)
    scores = {
        model.name: model
        for model in compare_models(coupled_patterns, fold, families=panels.FAMILIES.tolist())
    }
    assert scores["Ising within families"].gain.low > 0
    assert scores["Ising within families"].bic < scores["independent (CI)"].bic


def test_models_that_do_not_apply_are_named_with_the_reason() -> None:
    votes = np.random.default_rng(7).integers(0, 2, (200, 16))
    scores = compare_models(collapse(votes), np.arange(200) % 2)
    refused_refusals = {model.name: model.refusal for model in scores if model.refusal}
    assert "up to 15 judges" in refused_refusals["Ising, shared couplings"]
    assert "up to 12 judges" in refused_refusals["Ising, couplings by class"]
