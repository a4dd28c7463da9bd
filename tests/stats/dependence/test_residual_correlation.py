"""Residual correlations are within-class correlations, and what follows from them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clash.stats.dependence.residual_correlation import (
    accuracies,
    effective_number,
    jury_accuracy,
    jury_size,
    off_diagonal,
    pooled_replicates,
    resampled_counts,
    residual_correlations,
)
from clash.stats.latent.dawid_skene import FLAT, dawid_skene
from clash.stats.latent.patterns import MISSING, TIE, collapse
from stats.dependence import panels


def test_with_labels_they_are_correlations_of_class_centred_votes() -> None:
    """numpy.corrcoef of votes minus class means, and of each class alone."""
    sample = panels.families(by_class=0.5).sample(400, np.random.default_rng(0))
    correlations = residual_correlations(panels.patterns(sample, with_labels=True), _labels(sample))
    means = np.array([sample.votes[sample.labels == y].mean(axis=0) for y in (0, 1)])
    centred_votes = sample.votes - means[sample.labels]
    # Centred by class, numpy's own centring changes nothing.
    np.testing.assert_allclose(
        correlations.within_classes, np.corrcoef(centred_votes.T), atol=1e-12
    )
    for y in (0, 1):
        alone = np.corrcoef(sample.votes[sample.labels == y].T)
        np.testing.assert_allclose(correlations.by_class[y], alone, atol=1e-12)
    assert (correlations.together == 400).all()


def _labels(sample: object) -> np.ndarray:
    patterns = panels.patterns(sample, with_labels=True)
    return patterns.labels.astype(float)


def test_posterior_weights_leave_nothing_between_independent_judges() -> None:
    """Under the model that is true, expected residual products vanish without any label."""
    sample = panels.independent(6).sample(20_000, np.random.default_rng(1))
    patterns = panels.patterns(sample, with_labels=False)
    p = dawid_skene(patterns, priors=FLAT).pattern_posterior
    weighted_entries = off_diagonal(residual_correlations(patterns, p).within_classes)
    records = off_diagonal(residual_correlations(patterns, (p > 0.5).astype(float)).within_classes)
    assert np.abs(weighted_entries).max() < 0.03
    # A hard decision correlates what it conditions on.
    assert records.mean() < -0.05


def test_missing_votes_drop_out_of_their_pairs_only() -> None:
    votes = np.array([[0, 0, 1], [1, 1, 0], [0, 0, MISSING], [1, 1, MISSING], [0, 1, 1]])
    patterns = collapse(votes)
    correlations = residual_correlations(patterns, np.ones(len(patterns.counts)))
    assert correlations.together[0, 1] == 5
    assert correlations.together[0, 2] == 3
    # Judge 2's own mean is over the three rows it voted on, judge 0's over all five.
    x, y = votes[[0, 1, 4], 0] - 0.4, votes[[0, 1, 4], 2] - 2 / 3
    assert correlations.within_classes[0, 2] == pytest.approx((x @ y) / np.sqrt((x @ x) * (y @ y)))


def test_pairs_with_too_little_in_common_are_undefined() -> None:
    votes = np.array([[0, 0, 1], [1, 1, 0], [0, 0, MISSING], [1, 1, MISSING], [0, 1, 1]])
    patterns = collapse(votes)
    p = np.ones(len(patterns.counts))
    correlations = residual_correlations(patterns, p, least=4)
    assert np.isfinite(correlations.within_classes[0, 1])
    assert np.isnan(correlations.within_classes[0, 2])
    replicates = pooled_replicates(patterns, p, patterns.counts[None], least=4)
    np.testing.assert_array_equal(replicates[0], correlations.within_classes)


def test_ties_are_half_votes() -> None:
    patterns = collapse(np.array([[0, 0], [1, 1], [TIE, TIE], [TIE, 1]]))
    correlations = residual_correlations(patterns, np.ones(len(patterns.counts)))
    expected_correlation = np.corrcoef([0, 1, 0.5, 0.5], [0, 1, 0.5, 1])[0, 1]
    assert correlations.within_classes[0, 1] == pytest.approx(expected_correlation)


def test_a_judge_that_never_varies_has_no_correlation() -> None:
    patterns = collapse(np.array([[0, 1, 0], [1, 1, 1], [0, 1, 1]]))
    correlations = residual_correlations(patterns, np.ones(len(patterns.counts)))
    assert np.isnan(correlations.within_classes[1, [0, 2]]).all()
    assert np.isfinite(correlations.within_classes[0, 2])


def test_replicates_are_correlations_under_redrawn_counts() -> None:
    sample = panels.families().sample(300, np.random.default_rng(2))
    patterns, p = panels.patterns(sample, with_labels=True), _labels(sample)
    counts = resampled_counts(patterns, np.arange(300), 5, np.random.default_rng(3))
    replicates = pooled_replicates(patterns, p, counts)
    for replicate, weight in zip(replicates, counts, strict=True):
        again = residual_correlations(patterns.with_counts(weight), p).within_classes
        np.testing.assert_allclose(replicate, again, atol=1e-12)
    assert (counts.sum(axis=1) == 300).all()


def test_clusters_are_redrawn_whole() -> None:
    """Rows of one cluster come in the same number, so that three copies stay three."""
    patterns = collapse(np.repeat(np.eye(4, dtype=int), 3, axis=0))
    counts = resampled_counts(patterns, np.repeat(np.arange(4), 3), 50, np.random.default_rng(0))
    assert (counts % 3 == 0).all()
    assert (counts.sum(axis=1) == 12).all()


def test_interval_of_a_correlation_covers() -> None:
    """Percentile intervals of one residual correlation hold their level on simulated panels."""
    panel = panels.families()
    truth = _pooled_correlation(panel)
    hits = []
    rng = np.random.default_rng(4)
    for _ in range(120):
        sample = panel.sample(250, rng)
        patterns, p = panels.patterns(sample, with_labels=True), _labels(sample)
        counts = resampled_counts(patterns, np.arange(250), 150, rng)
        low, high = np.quantile(pooled_replicates(patterns, p, counts)[:, 0, 1], [0.025, 0.975])
        hits.append(low <= truth <= high)
    assert 0.88 <= np.mean(hits) <= 0.99


def _pooled_correlation(panel: object) -> float:
    covariance, variance = 0.0, np.zeros(2)
    for pmf, means in zip(panel.pmf(), panel.marginals(), strict=True):
        residual = panel.states[:, :2] - means[:2]
        covariance += 0.5 * pmf @ (residual[:, 0] * residual[:, 1])
        variance += 0.5 * pmf @ residual**2
    return covariance / np.sqrt(variance.prod())


@pytest.mark.parametrize(("size", "accuracy"), [(1, 0.6), (3, 0.7), (5, 0.8), (11, 0.55)])
def test_jury_accuracy_is_condorcets(size: int, accuracy: float) -> None:
    from scipy.stats import binom

    assert jury_accuracy(size, accuracy) == pytest.approx(binom.sf(size // 2, size, accuracy))
    assert jury_size(accuracy, jury_accuracy(size, accuracy)) == pytest.approx(size, abs=1e-6)


@given(st.floats(0.51, 0.95), st.floats(0.5, 0.999))
def test_a_better_panel_is_worth_a_larger_jury(accuracy: float, panel: float) -> None:
    assert jury_size(accuracy, panel) <= jury_size(accuracy, min(panel + 1e-3, 1.0))


def test_jury_size_where_there_is_none() -> None:
    """Chance judges make no jury; perfection needs an endless one; chance panels none at all."""
    assert np.isnan(jury_size(0.5, 0.9))
    assert np.isnan(jury_size(0.4, 0.9))
    assert jury_size(0.7, 1.0) == np.inf
    assert jury_size(0.7, 0.5) == 0


def test_effective_number_at_its_ends() -> None:
    """Independent judges are worth their number, copies one, and a block the sum of blocks."""
    no_correlation, full_correlation = np.eye(6), np.ones((6, 6))
    assert effective_number(no_correlation, 0.7, 0.8).by_mean == pytest.approx(6)
    assert effective_number(no_correlation, 0.7, 0.8).by_spectrum == pytest.approx(6)
    assert effective_number(full_correlation, 0.7, 0.7).by_mean == pytest.approx(1)
    assert effective_number(full_correlation, 0.7, 0.7).by_spectrum == pytest.approx(1)
    assert effective_number(full_correlation, 0.7, 0.7).by_accuracy == pytest.approx(1, abs=1e-6)
    blocks = np.kron(np.eye(2), np.ones((3, 3)))
    assert effective_number(blocks, 0.7, 0.7).by_spectrum == pytest.approx(2)
    assert effective_number(blocks, 0.7, 0.7).by_mean == pytest.approx(2)


def test_effective_number_is_what_eigenvalues_say() -> None:
    rng = np.random.default_rng(5)
    correlations = np.corrcoef(rng.normal(size=(7, 40)))
    eigenvalues = np.linalg.eigvalsh(correlations)
    expected_number = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    assert effective_number(correlations, 0.7, 0.8).by_spectrum == pytest.approx(expected_number)


def test_effective_number_averages_noise_as_it_says() -> None:
    """The variance of the mean of correlated residuals is that of by_mean independent ones."""
    rng = np.random.default_rng(6)
    shared_noise = rng.normal(size=100_000)
    noise = np.sqrt(0.3) * shared_noise + np.sqrt(0.7) * rng.normal(size=(8, 100_000))
    worth = effective_number(np.corrcoef(noise), 0.7, 0.8).by_mean
    assert noise.mean(axis=0).var() == pytest.approx(1 / worth, rel=0.02)


def test_effective_number_without_any_correlation() -> None:
    undefined_matrix = np.full((3, 3), np.nan)
    np.fill_diagonal(undefined_matrix, 1.0)
    effective = effective_number(undefined_matrix, 0.7, 0.8)
    assert np.isnan([effective.by_mean, effective.by_spectrum, effective.mean_correlation]).all()
    assert effective_number(np.ones((1, 1)), 0.7, 0.7).by_mean == 1


def test_accuracies_count_ties_half() -> None:
    """Three items of truth 1: two votes to one, a tie of both kinds, and silence."""
    votes = np.array([[1, 1, 0], [1, 0, TIE], [MISSING] * 3])
    patterns = collapse(votes)
    rates = accuracies(patterns, np.ones(3))
    np.testing.assert_allclose(rates.judges, [1.0, 0.5, 0.25])
    assert rates.majority == pytest.approx(0.75)


def test_accuracy_of_a_judge_that_never_voted_is_unknown() -> None:
    rates = accuracies(collapse(np.array([[1, MISSING], [0, MISSING]])), np.array([0.0, 1.0]))
    assert np.isnan(rates.judges[1])
