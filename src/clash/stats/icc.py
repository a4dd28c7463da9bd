"""Intra-cluster correlation of binary outcomes: by moments, and by a random-intercept model.

Two scales. Latent: sigma^2 / (sigma^2 + pi^2 / 3), of the logistic model's propensities.
Observed: the correlation of two 0/1 outcomes of one cluster, Var(p) / (p̄ (1 - p̄)); it is smaller,
and it is the one that belongs in a design effect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import LEVEL, Interval, encode_clusters
from clash.stats.resample import FEWEST_CLUSTERS, cluster_bootstrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from clash.stats.typing import Floats


_NODES = 31
_MOST_SIGMA = 12.0
_N_BOOTSTRAP = 1000
"""At sigma = 12 nearly every cluster is all 0 or all 1: latent correlation 0.98."""
_LOGISTIC_VARIANCE = math.pi**2 / 3
"""Of the standard logistic distribution, the error of a latent propensity."""


@dataclass(frozen=True, slots=True)
class RandomIntercept:
    """logit P(y = 1) = beta + u, u ~ N(0, sigma^2) for each cluster, by maximum likelihood.

    Attributes:
        beta: intercept; NaN where nothing varies.
        sigma: standard deviation of u, with an interval by profile likelihood.
        latent: intra-cluster correlation of the propensities.
        observed: of the outcomes.
        mean: P(y = 1) averaged over clusters.
        log_likelihood: at the estimate, without binomial coefficients.
        p: of sigma = 0, by likelihood ratio (half a chi-square: sigma is on its boundary).
        n: observations.
        n_clusters: clusters.
    """

    beta: float
    sigma: Interval
    latent: Interval
    observed: Interval
    mean: float
    log_likelihood: float
    p: float
    n: int
    n_clusters: int


def anova_icc(
    values: ArrayLike, clusters: ArrayLike, *, rng: np.random.Generator | None = None
) -> Interval:
    """The one-way analysis of variance estimator, for outcomes of any range, on their own scale.

    (MSB - MSW) / (MSB + (n0 - 1) MSW), n0 = (N - sum n_i^2 / N) / (G - 1) (Donner 1986). It may be
    negative, down to -1 / (n0 - 1).

    Args:
        values: (n,).
        clusters: (n,), codes.
        rng: for the interval, a bootstrap over clusters; without it, and with fewer than six
            clusters, the interval is [-1, 1].

    Returns:
        NaN in [-1, 1] where all values are alike, or no cluster has two, or there is one cluster.

    Raises:
        StatisticsError: NaN among the values, or shapes that differ.
    """
    x, codes, groups = encode_clusters(values, clusters)
    sizes = np.bincount(codes, minlength=groups).astype(float)
    if groups < 2 or sizes.max() < 2 or np.ptp(x) == 0:
        return Interval(math.nan, -1.0, 1.0, LEVEL, len(x), groups, "undefined")
    sums: Floats = np.bincount(codes, weights=x, minlength=groups).astype(float)
    squares: Floats = np.bincount(codes, weights=x**2, minlength=groups).astype(float)

    def statistic(weights: Floats) -> Floats:
        return _anova(weights, sizes, sums, squares)

    estimate = float(statistic(np.ones((1, groups)))[0])
    if rng is None or groups < FEWEST_CLUSTERS:
        return Interval(estimate, -1.0, 1.0, LEVEL, len(x), groups, "no interval")
    bootstrap = cluster_bootstrap(statistic, np.arange(groups), rng, _N_BOOTSTRAP)
    ends = float(bootstrap.low[0]), float(bootstrap.high[0])
    method = "anova, bootstrap over clusters"
    return Interval(estimate, *ends, LEVEL, len(x), groups, method).within(-1.0, 1.0)


def _anova(weights: Floats, sizes: Floats, sums: Floats, squares: Floats) -> Floats:
    groups, n = weights.sum(axis=1), weights @ sizes
    total = weights @ sums
    between = weights @ (sums**2 / sizes)
    within = weights @ squares - between
    spread = between - total**2 / n
    free = n - groups
    n0 = (n - (weights @ sizes**2) / n) / (groups - 1)
    msw = np.divide(within, free, out=np.full(len(n), np.nan), where=free > 0)
    msb = spread / (groups - 1)
    bottom = msb + (n0 - 1) * msw
    out = np.full(len(n), np.nan)
    ratio: Floats = np.divide(msb - msw, bottom, out=out, where=bottom > 1e-15)
    return ratio


def random_intercept(successes: ArrayLike, trials: ArrayLike) -> RandomIntercept:
    """Fit the random-intercept logistic model to clusters of binary outcomes.

    The likelihood is integrated by adaptive Gauss-Hermite quadrature (31 nodes around each
    cluster's mode; Pinheiro, Bates 1995), equal clusters once. sigma and then beta are found by
    one-dimensional searches, since the profile of sigma is wanted anyway.

    Args:
        successes: (G,), of each cluster.
        trials: (G,), outcomes of each cluster; empty clusters are left out.

    Returns:
        Where all outcomes are alike, or no cluster has two, the data do not tell sigma: NaN in
        [0, 12] and NaN in [0, 1].

    Raises:
        StatisticsError: counts that are none, or no outcome at all.
    """
    k, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    if k.shape != n.shape or k.ndim != 1 or not np.all((k >= 0) & (k <= n) & (k == np.round(k))):
        raise StatisticsError("successes of a cluster are counts, no more than its trials")
    k, n = k[n > 0], n[n > 0]
    if not len(n):
        raise StatisticsError("an intra-cluster correlation needs outcomes")
    total, groups = int(n.sum()), len(n)
    if k.sum() in (0, total) or n.max() < 2 or groups < 2:
        return _not_identified(float(k.sum() / total), total, groups)
    patterns, weight = np.unique(np.stack([k, n]), axis=1, return_counts=True)
    model = _Likelihood(patterns[0], patterns[1], weight.astype(float))
    return _fit_profile(model, total, groups)


def _not_identified(mean: float, n: int, groups: int) -> RandomIntercept:
    name = "not identified"
    share = Interval(math.nan, 0.0, 1.0, LEVEL, n, groups, name)
    sigma = Interval(math.nan, 0.0, _MOST_SIGMA, LEVEL, n, groups, name)
    return RandomIntercept(math.nan, sigma, share, share, mean, math.nan, math.nan, n, groups)


class _Likelihood:
    """The log likelihood of (beta, sigma) over unique clusters, beta profiled out."""

    def __init__(self, k: Floats, n: Floats, weight: Floats) -> None:
        self.k, self.n, self.weight = k, n, weight
        self.centre = float(np.log((k @ weight + 0.5) / ((n - k) @ weight + 0.5)))
        self._profiles: dict[float, tuple[float, float]] = {}

    def at(self, beta: float, sigma: float) -> float:
        """By adaptive quadrature around the mode of each cluster's integrand.

        A cluster's likelihood is the integral over z of exp(h(z)) / sqrt(2 pi), with
        h(z) = k eta - n log(1 + exp(eta)) - z^2 / 2, eta = beta + sigma z. With mode m and
        curvature c = -h''(m), substituting z = m + sqrt(2 / c) x turns it into
        sum_i w_i exp(h(z_i) + x_i^2) / sqrt(pi c) over the Gauss-Hermite nodes x_i.
        """
        if sigma == 0:
            eta = np.full(len(self.k), beta)
            return float(self.weight @ (self.k * eta - self.n * np.logaddexp(0, eta)))
        mode, curvature = self._modes(beta, sigma)
        x, log_w = _hermite(_NODES)
        z = mode[:, None] + math.sqrt(2) * x / np.sqrt(curvature)[:, None]
        eta = beta + sigma * z
        logs = self.k[:, None] * eta - self.n[:, None] * np.logaddexp(0, eta)
        logs += log_w + x**2 - z**2 / 2
        # In logarithms, from the largest term on: the product of n probabilities underflows.
        top = logs.max(axis=1)
        inside = top + np.log(np.exp(logs - top[:, None]).sum(axis=1))
        inside += -0.5 * np.log(curvature) - 0.5 * math.log(math.pi)
        return float(self.weight @ inside)

    def _modes(self, beta: float, sigma: float) -> tuple[Floats, Floats]:
        # Apart from clash.stats.optimise, which takes three times as long here: one variable a cluster
        # needs no system of equations, and a thousand calls a fit none of its tests of the value.
        z = np.zeros(len(self.k))
        for _ in range(50):
            p = 1 / (1 + np.exp(-(beta + sigma * z)))
            slope = sigma * (self.k - self.n * p) - z
            curvature = 1 + sigma**2 * self.n * p * (1 - p)
            # The integrand is log-concave, and a bounded step keeps Newton out of flat tails.
            step = np.clip(slope / curvature, -2.0, 2.0)
            z = z + step
            if np.abs(step).max() < 1e-10:
                break
        p = 1 / (1 + np.exp(-(beta + sigma * z)))
        return z, 1 + sigma**2 * self.n * p * (1 - p)

    def profile(self, sigma: float) -> float:
        """The greatest log likelihood over beta."""
        return self._best(sigma)[1]

    def beta(self, sigma: float) -> float:
        """Where it is reached."""
        return self._best(sigma)[0]

    def _best(self, sigma: float) -> tuple[float, float]:
        from scipy.optimize import minimize_scalar

        if sigma not in self._profiles:
            reach = 3 + 2 * sigma
            fit = minimize_scalar(
                lambda beta: -self.at(beta, sigma),
                bounds=(self.centre - reach, self.centre + reach),
                method="bounded",
                options={"xatol": 1e-7},
            )
            self._profiles[sigma] = float(fit.x), -float(fit.fun)
        return self._profiles[sigma]


@lru_cache(maxsize=2)
def _hermite(nodes: int) -> tuple[Floats, Floats]:
    x, w = np.polynomial.hermite.hermgauss(nodes)
    return x, np.log(w)


def _fit_profile(model: _Likelihood, n: int, groups: int) -> RandomIntercept:
    from scipy.optimize import minimize_scalar
    from scipy.special import chdtrc, chdtri

    fit = minimize_scalar(
        lambda s: -model.profile(float(s)),
        bounds=(0, _MOST_SIGMA),
        method="bounded",
        options={"xatol": 1e-6},
    )
    sigma = float(fit.x)
    # A bounded search never returns the bound itself, and sigma = 0 is a common answer.
    if model.profile(0.0) >= model.profile(sigma) - 1e-9:
        sigma = 0.0
    best = model.profile(sigma)
    # The interval holds every sigma whose profile lies within half a chi-square quantile.
    drop = float(chdtri(1, 1 - LEVEL)) / 2

    def short(s: float) -> float:
        return model.profile(s) - best + drop

    low = 0.0 if sigma == 0 or short(0.0) >= 0 else _root(short, 0.0, sigma)
    high = _MOST_SIGMA if short(_MOST_SIGMA) >= 0 else _root(short, sigma, _MOST_SIGMA)
    name = "random intercept, profile likelihood"
    ends = (sigma, low, high)
    latent = [s**2 / (s**2 + _LOGISTIC_VARIANCE) for s in ends]
    moments = [response_moments(model.beta(s), s) for s in ends]
    ratio = 2 * max(0.0, best - model.profile(0.0))

    def interval(bounds: Sequence[float]) -> Interval:
        middle, least, most = bounds
        return Interval(middle, least, most, LEVEL, n, groups, name)

    return RandomIntercept(
        model.beta(sigma),
        interval(ends),
        interval(latent),
        interval([m.icc for m in moments]),
        moments[0].mean,
        best,
        float(chdtrc(1, ratio)) / 2 if ratio > 0 else 1.0,
        n,
        groups,
    )


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-6))


@dataclass(frozen=True, slots=True)
class Moments:
    """Mean of p = logistic(beta + sigma Z), and the correlation that its variance implies."""

    mean: float
    icc: float


def response_moments(beta: float, sigma: float) -> Moments:
    """Mean and observed-scale correlation of outcomes with a normal random intercept.

    Var(p) / (p̄ (1 - p̄)) by numerical integration. The linearisation p̄ (1 - p̄) sigma^2 is its
    value for small sigma; dividing that by p̄ (1 - p̄) once more, as has been published, gives
    sigma^2, which is no correlation.
    """
    if sigma == 0:
        return Moments(1 / (1 + math.exp(-beta)), 0.0)
    z = np.linspace(-9, 9, 4001)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    p = 1 / (1 + np.exp(-(beta + sigma * z)))
    mean = float(weight @ p)
    spread = float(weight @ (p - mean) ** 2)
    return Moments(mean, spread / (mean * (1 - mean)) if 0 < mean < 1 else math.nan)
