"""Couplings are recovered, their errors are honest, and the likelihood is differentiated right."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.dependence.couplings import couplings
from clash.stats.dependence.residual_correlation import off_diagonal
from clash.stats.dependence.restricted_ising import (
    RestrictedLikelihood,
    Restriction,
    fit_restricted,
    likelihood_given_truth,
)
from clash.stats.latent.ising_states import features, law_covariance
from clash.stats.latent.patterns import MISSING, collapse
from stats.dependence import panels


def awkward(labels: str) -> RestrictedLikelihood:
    """Votes with gaps, one of them empty, and labels for all, some, none, or guessed."""
    rng = np.random.default_rng(0)
    sample = panels.families(cross=0.3, by_class=0.4).sample(200, rng)
    votes = sample.votes.copy()
    votes[rng.random(votes.shape) < 0.2] = MISSING
    votes[0] = MISSING
    indices = np.where(rng.random(200) < 0.5, sample.labels, MISSING)
    record = {"all": sample.labels, "some": indices}.get(labels)
    patterns = collapse(votes, labels=record)
    every = np.eye(10)
    guess = rng.random(len(patterns.counts)) if labels == "guessed" else None
    return RestrictedLikelihood.of(patterns, Restriction.of(5, every, every), guess)


@pytest.mark.parametrize("labels", ["all", "some", "none", "guessed"])
def test_derivatives_equal_differences(labels: str) -> None:
    """Gradient and Hessian against central differences, and scores add up to the gradient."""
    likelihood = awkward(labels)
    theta = np.random.default_rng(1).normal(0, 0.5, likelihood.restriction.free.shape[1])
    step = 1e-5

    def differences(of: int) -> np.ndarray:
        return np.array(
            [
                np.subtract(likelihood.slope(theta + e)[of], likelihood.slope(theta - e)[of])
                / (2 * step)
                for e in step * np.eye(len(theta))
            ]
        )

    _, gradient = likelihood.slope(theta)
    np.testing.assert_allclose(gradient, differences(0), atol=1e-5)
    np.testing.assert_allclose(likelihood.hessian(theta), differences(1), atol=1e-5)
    total = likelihood.patterns.counts @ likelihood.scores(theta)
    np.testing.assert_allclose(gradient, likelihood.precision * theta - total, atol=1e-8)


@pytest.mark.parametrize("n_judges", [1, 2, 5, 9])
def test_covariance_by_walsh_transform_is_that_of_the_states(n_judges: int) -> None:
    statistics = features(n_judges)
    natural = np.random.default_rng(n_judges).normal(0, 0.5, statistics.shape[1])
    weight = np.exp(statistics @ natural)
    expected_covariance = np.cov(statistics.T, aweights=weight, ddof=0)
    np.testing.assert_allclose(
        law_covariance(natural), np.atleast_2d(expected_covariance), atol=1e-10
    )


def test_the_fit_solves_its_equations() -> None:
    """The gradient is 0 at the fit, whatever the start, on lopsided votes."""
    rng = np.random.default_rng(2)
    panel = panels.families(cross=0.5)
    panel.fields[:] -= 1.5
    patterns = panels.patterns(panel.sample(400, rng), with_labels=True)
    likelihood = likelihood_given_truth(patterns, patterns.labels.astype(float))
    fit = fit_restricted(likelihood)
    again = fit_restricted(likelihood, rng.normal(0, 1, len(fit.theta)))
    assert fit.converged
    assert np.abs(likelihood.slope(fit.theta)[1]).max() < 1e-3
    np.testing.assert_allclose(fit.theta, again.theta, atol=1e-4)


def test_a_hidden_truth_raises_the_likelihood_on_the_way() -> None:
    """From the fit given an estimate, the climb with the truth hidden goes up."""
    sample = panels.families().sample(1500, np.random.default_rng(3))
    patterns = panels.patterns(sample, with_labels=False)
    restriction = Restriction.of(5, np.zeros((10, 0)))
    guess = patterns.for_one.mean(axis=1)
    start = fit_restricted(RestrictedLikelihood.of(patterns, restriction, guess)).theta
    hidden_law = RestrictedLikelihood.of(patterns, restriction)
    fit = fit_restricted(hidden_law, start)
    assert fit.value > -hidden_law.slope(start)[0]
    assert fit.converged


def test_couplings_are_recovered_and_their_errors_honest() -> None:
    """Over simulated panels: no bias to speak of, Wald covers, W = 0 is rejected one in twenty."""
    rng = np.random.default_rng(4)
    panel = panels.families()
    truth = off_diagonal(panel.couplings[0])
    estimates, coverages, wald, ratio = [], [], [], []
    for _ in range(60):
        patterns = panels.patterns(panel.sample(500, rng), with_labels=True)
        coupling_fit = couplings(patterns, patterns.labels.astype(float), rng)
        estimate, error = off_diagonal(coupling_fit.matrix), off_diagonal(coupling_fit.error)
        estimates.append(estimate)
        coverages.append(np.abs(estimate - truth) < 1.96 * error)
        wald.append(off_diagonal(coupling_fit.p_wald)[truth == 0])
        ratio.append(off_diagonal(coupling_fit.p_ratio)[truth == 0])
    assert np.abs(np.mean(estimates, axis=0) - truth).max() < 0.15
    assert 0.91 < np.mean(coverages) < 0.98
    assert 0.02 < np.mean(np.array(wald) < 0.05) < 0.09
    assert 0.02 < np.mean(np.array(ratio) < 0.05) < 0.09


def test_likelihood_ratio_is_that_of_a_full_refit() -> None:
    """The cheap profile steps end where fitting without the coupling ends."""
    from scipy.special import chdtrc

    patterns = panels.patterns(
        panels.families().sample(400, np.random.default_rng(5)), with_labels=True
    )
    p = patterns.labels.astype(float)
    coupling_fit = couplings(patterns, p, np.random.default_rng(0))
    full_value = fit_restricted(likelihood_given_truth(patterns, p)).value
    for column, (j, k) in enumerate([(0, 1), (0, 2), (0, 3)]):
        without = Restriction.of(5, np.delete(np.eye(10), column, axis=1))
        fall = full_value - fit_restricted(RestrictedLikelihood.of(patterns, without, p)).value
        assert coupling_fit.p_ratio[j, k] == pytest.approx(chdtrc(1, 2 * fall), rel=0.02, abs=1e-6)


def test_bootstrap_steps_agree_with_refits() -> None:
    """One Newton step a replicate gives the standard errors of fitting each anew."""
    patterns = panels.patterns(
        panels.families().sample(600, np.random.default_rng(6)), with_labels=True
    )
    p = patterns.labels.astype(float)
    coupling_fit = couplings(patterns, p, np.random.default_rng(0), replicates=400)
    rng, refits = np.random.default_rng(1), []
    for counts in patterns.resample(60, rng):
        fit = fit_restricted(likelihood_given_truth(patterns.with_counts(counts), p))
        refits.append(4 * fit.theta[11:])
    spread = np.std(refits, axis=0, ddof=1)
    np.testing.assert_allclose(off_diagonal(coupling_fit.bootstrap_error), spread, rtol=0.35)
    inside = (coupling_fit.low <= coupling_fit.matrix) & (coupling_fit.matrix <= coupling_fit.high)
    assert off_diagonal(inside.astype(float)).all()


def test_clusters_widen_the_bootstrap() -> None:
    """The same items three times say no more: errors by cluster are sqrt(3) those by row."""
    sample = panels.families().sample(300, np.random.default_rng(7))
    patterns = panels.patterns(sample, with_labels=True, times=3)
    p = patterns.labels.astype(float)
    groups = np.repeat(np.arange(300), 3)
    rows, clusters = (
        couplings(patterns, p, np.random.default_rng(0), clusters=c, replicates=500)
        for c in (None, groups)
    )
    ratio = off_diagonal(clusters.bootstrap_error) / off_diagonal(rows.bootstrap_error)
    assert ratio.mean() == pytest.approx(3**0.5, rel=0.1)


def test_couplings_by_class_differ_where_they_were_made_to() -> None:
    panel = panels.families(by_class=1.5)
    patterns = panels.patterns(panel.sample(30_000, np.random.default_rng(8)), with_labels=True)
    coupling_fit = couplings(patterns, patterns.labels.astype(float), np.random.default_rng(0))
    difference = coupling_fit.by_class[1] - coupling_fit.by_class[0]
    assert difference[0, 1] == pytest.approx(1.5, abs=0.4)
    assert difference[0, 3] == pytest.approx(0, abs=0.4)


def test_judges_that_never_differ_have_a_finite_coupling() -> None:
    """The weak prior keeps a copy's coupling finite, and large."""
    sample = panels.independent(3).sample(300, np.random.default_rng(9))
    votes = np.column_stack([sample.votes, sample.votes[:, 0]])
    patterns = collapse(votes, labels=sample.labels)
    coupling_fit = couplings(patterns, patterns.labels.astype(float), np.random.default_rng(0))
    assert 5 < coupling_fit.matrix[0, 3] < 50
    assert np.isfinite(coupling_fit.error).all()


def test_relabelling_judges_relabels_couplings() -> None:
    sample = panels.families(uneven=0.7).sample(300, np.random.default_rng(10))
    order = np.array([3, 0, 4, 2, 1])
    matrix, other_matrix = (
        couplings(patterns, patterns.labels.astype(float), np.random.default_rng(0)).matrix
        for patterns in (
            collapse(sample.votes, labels=sample.labels),
            collapse(sample.votes[:, order], labels=sample.labels),
        )
    )
    np.testing.assert_allclose(matrix[np.ix_(order, order)], other_matrix, atol=1e-3)


def test_too_many_judges_are_refused() -> None:
    votes = np.random.default_rng(11).integers(0, 2, (50, 16))
    patterns = collapse(votes)
    with pytest.raises(StatisticsError, match="too many to enumerate"):
        couplings(patterns, np.full(len(patterns.counts), 0.5), np.random.default_rng(0))
