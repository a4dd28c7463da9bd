"""Intra-cluster correlation against brute-force integration, statsmodels and known truths."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize

from clash.errors import StatisticsError
from clash.stats.icc import anova_icc, random_intercept, response_moments

K = [0, 1, 3, 2, 5, 0, 4, 1, 1, 6, 0, 2]
N = [3, 4, 3, 5, 6, 2, 4, 1, 7, 6, 5, 2]


def _log_likelihood(x: np.ndarray) -> float:
    """The likelihood by adaptive quadrature of scipy, cluster by cluster."""
    beta, sigma = x
    total = 0.0
    for k, n in zip(K, N, strict=True):

        def inside(z: float, k: int = k, n: int = n) -> float:
            eta = beta + abs(sigma) * z
            return math.exp(k * eta - n * np.logaddexp(0, eta) - z * z / 2) / math.sqrt(2 * math.pi)

        total += math.log(integrate.quad(inside, -9, 9, epsabs=1e-12)[0])
    return -total


def test_fit_maximises_the_likelihood_by_brute_force() -> None:
    best = optimize.minimize(_log_likelihood, [0.0, 1.0], method="Nelder-Mead", tol=1e-7)
    fit = random_intercept(K, N)
    assert fit.log_likelihood == pytest.approx(-best.fun, abs=1e-4)
    assert fit.beta == pytest.approx(best.x[0], abs=1e-3)
    assert fit.sigma.estimate == pytest.approx(abs(best.x[1]), abs=5e-3)


def test_profile_interval_is_where_the_likelihood_falls_by_192() -> None:
    """Half the 95% quantile of chi-square with one degree of freedom: 1.9207."""
    fit = random_intercept(K, N)
    for end in (fit.sigma.low, fit.sigma.high):
        if end in (0.0, 12.0):
            continue
        at = optimize.minimize_scalar(lambda b, s=end: _log_likelihood(np.array([b, s])))
        assert -at.fun == pytest.approx(fit.log_likelihood - 1.9207, abs=1e-3)


def test_no_correlation_is_found_where_there_is_none() -> None:
    rng = np.random.default_rng(1)
    n = rng.integers(2, 9, 400)
    fit = random_intercept(rng.binomial(n, 0.8), n)
    assert fit.observed.low == 0.0
    assert fit.observed.estimate < 0.04
    assert fit.p > 0.01
    assert fit.mean == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(("beta", "sigma"), [(0.0, 0.7), (2.5, 1.5), (-1.0, 3.0)])
def test_truth_is_within_the_interval_on_lopsided_data(beta: float, sigma: float) -> None:
    rng = np.random.default_rng(7)
    n = rng.integers(1, 12, 600)
    p = 1 / (1 + np.exp(-(beta + sigma * rng.normal(size=600))))
    fit = random_intercept(rng.binomial(n, p), n)
    assert fit.sigma.low < sigma < fit.sigma.high
    assert fit.latent.low < sigma**2 / (sigma**2 + math.pi**2 / 3) < fit.latent.high
    truth = response_moments(beta, sigma)
    assert fit.observed.low < truth.icc < fit.observed.high
    assert fit.mean == pytest.approx(truth.mean, abs=0.05)


@pytest.mark.slow
def test_interval_covers_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    n_covered = 0
    for _ in range(60):
        p = 1 / (1 + np.exp(-rng.normal(size=60)))
        n = np.full(60, 6)
        fit = random_intercept(rng.binomial(n, p), n)
        n_covered += fit.sigma.low <= 1.0 <= fit.sigma.high
    assert n_covered >= 51


def test_linearised_conversion_and_what_is_wrong_with_the_published_one() -> None:
    """For small sigma the observed correlation is p(1-p) sigma^2; the published formula divides
    by Var(Y) once more, gives sigma^2, and so exceeds 1 for sigma > 1."""
    for beta in (0.0, 2.0):
        moments = response_moments(beta, 0.1)
        assert moments.icc == pytest.approx(moments.mean * (1 - moments.mean) * 0.01, rel=0.05)
    assert response_moments(0.0, 1.5).icc < 1 < 1.5**2


@pytest.mark.parametrize(
    ("successes", "trials"),
    [([3, 2, 5], [3, 2, 5]), ([0, 0], [4, 4]), ([1, 0, 1], [1, 1, 1]), ([2], [5])],
)
def test_what_data_cannot_tell_is_nan_with_the_widest_interval(successes, trials) -> None:
    """All alike, no cluster of two, a single cluster."""
    fit = random_intercept(successes, trials)
    assert math.isnan(fit.observed.estimate)
    assert (fit.observed.low, fit.observed.high) == (0, 1)


@pytest.mark.parametrize(("successes", "trials"), [([3], [2]), ([0.5], [2]), ([], []), ([0], [0])])
def test_counts_that_are_none_are_refused(successes, trials) -> None:
    with pytest.raises(StatisticsError):
        random_intercept(successes, trials)


def _rows() -> tuple[np.ndarray, np.ndarray]:
    x = np.concatenate([[1.0] * k + [0.0] * (n - k) for k, n in zip(K, N, strict=True)])
    return x, np.repeat(np.arange(len(K)), N)


def test_anova_by_hand() -> None:
    """Four clusters of two, (1,1), (0,0), (1,1), (1,0): MSB = 11/24 and MSW = 1/8, so 4/7."""
    x = [1, 1, 0, 0, 1, 1, 1, 0]
    assert anova_icc(x, [0, 0, 1, 1, 2, 2, 3, 3]).estimate == pytest.approx(4 / 7)


def test_anova_is_near_the_model_and_gee() -> None:
    """statsmodels 0.15.0, GEE with exchangeable working correlation on the same rows: 0.5596."""
    x, codes = _rows()
    icc = anova_icc(x, codes, rng=np.random.default_rng(0))
    assert icc.low < random_intercept(K, N).observed.estimate < icc.high
    assert icc.estimate == pytest.approx(0.5596, abs=0.08)


def test_anova_of_ties_and_wins_has_the_planned_correlation() -> None:
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.array([0.5, 0.3, 0.2]) * (1 / 0.4 - 1), size=3000)
    scores = np.concatenate([rng.choice([1.0, 0.0, -1.0], size=4, p=p) for p in shares])
    assert anova_icc(scores, np.repeat(np.arange(3000), 4)).estimate == pytest.approx(0.4, abs=0.03)


def test_anova_degenerate() -> None:
    assert math.isnan(anova_icc([1, 1, 1, 1], [0, 0, 1, 1]).estimate)
    assert math.isnan(anova_icc([1, 0, 1], [0, 1, 2]).estimate)
    assert math.isnan(anova_icc([1, 0], [0, 0]).estimate)
