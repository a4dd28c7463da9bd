"""The coupling matrix given the labels or their estimate, with three kinds of error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.dependence.pseudolikelihood import fit_pseudo
from clash.stats.dependence.residual_correlation import resampled_counts
from clash.stats.dependence.restricted_ising import (
    RestrictedFit,
    RestrictedLikelihood,
    Restriction,
    fit_restricted,
    likelihood_given_truth,
)
from clash.stats.latent.ising_states import pairs

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats, Index

PAPER = 4.0
"""Couplings of votes 0 and 1 (equation 1) over couplings of spins."""
REFITS, ENOUGH = 8, 1e-3
"""Steps of a likelihood ratio's refit, and the gain in log-likelihood at which it stops."""


@dataclass(frozen=True)
class Couplings:
    """Pairwise couplings W of equation 3, alike in both classes.

    W[j, k] is the log odds ratio between two judges' votes given the truth and all other judges.

    Attributes:
        matrix: shape (K, K), symmetric, zero diagonal.
        error: Wald standard errors from the observed information, shape (K, K); NaN where gaps
            leave a coupling without any.
        p_wald: p values of W[j, k] = 0 by Wald, shape (K, K), NaN on the diagonal.
        p_ratio: the same by likelihood ratio; NaN where there is no likelihood.
        low: 2.5% bootstrap quantiles, shape (K, K); NaN without a bootstrap.
        high: 97.5% quantiles.
        bootstrap_error: bootstrap standard errors; NaN without.
        replicates: shape (B, pairs), bootstrap values.
        by_class: couplings within class 0 and class 1, shape (2, K, K), from a fit that lets
            them differ.
        log_likelihood: of votes and labels, penalised; None where there is none.
        converged: whether the fit settled.
        method: ``likelihood``, or ``pseudo-likelihood`` with sandwich errors.
    """

    matrix: Floats
    error: Floats
    p_wald: Floats
    p_ratio: Floats
    low: Floats
    high: Floats
    bootstrap_error: Floats
    replicates: Floats
    by_class: Floats
    log_likelihood: float | None
    converged: bool
    method: str = "likelihood"


def couplings(
    patterns: Patterns,
    p: Floats,
    rng: np.random.Generator,
    *,
    clusters: Index | None = None,
    replicates: int = 0,
) -> Couplings:
    """Fit couplings given P(truth = 1), by exact likelihood.

    With p the labels, this is the Ising model fitted in the open. With p an estimate, it is the
    M-step at that estimate, and every error is conditional on it: what judges have in common
    and the estimate took for the truth is not in W.

    The bootstrap redraws clusters and takes one Newton step from the fit to each replicate's,
    which costs one matrix product for all of them (a k-step bootstrap, Davidson and MacKinnon
    1999) and is as robust to dependence within clusters as a full one.

    Args:
        patterns: the votes without ties, of at most 15 judges; gaps are summed out.
        p: shape (n_patterns,).
        rng: for the bootstrap.
        clusters: shape (n_items,), what is redrawn together; each item for itself by default.
        replicates: bootstrap replicates.

    Raises:
        StatisticsError: more than 15 judges, or too many gaps to sum out.

    Source: Balasubramanian et al. (2026), equation 3 and appendix B.
    """
    K = patterns.n_judges
    fit = fit_restricted(likelihood_given_truth(patterns, p))
    covariance = np.asarray(np.linalg.pinv(fit.hessian, rcond=1e-12, hermitian=True), np.float64)
    spot = np.arange(1 + 2 * K, len(fit.theta))
    estimate, variance = fit.theta[spot], np.diag(covariance)[spot]
    ratios = np.array([_ratio(fit, covariance, int(index)) for index in spot])
    bootstrap = PAPER * _replicates(fit, covariance, clusters, replicates, rng)[:, spot]
    return _summarise(
        K,
        estimate,
        variance,
        bootstrap,
        p_ratio=_upper_tail(ratios),
        by_class=_by_class(patterns, p, fit),
        log_likelihood=fit.value,
        converged=fit.converged,
        method="likelihood",
    )


def pseudo_couplings(
    patterns: Patterns,
    p: Floats,
    rng: np.random.Generator,
    *,
    clusters: Index | None = None,
    replicates: int = 0,
) -> Couplings:
    """The same by pseudo-likelihood, for more judges than can be enumerated.

    Errors are sandwich errors over clusters; the bootstrap takes one Newton step a replicate.
    There is no likelihood, and so no likelihood ratio.

    Args:
        patterns: the votes without ties.
        p: shape (n_patterns,).
        rng: for the bootstrap.
        clusters: shape (n_items,), what is redrawn together; each item for itself by default.
        replicates: bootstrap replicates.

    Raises:
        StatisticsError: too many judges, or too many missing votes.
    """
    K = patterns.n_judges
    every = Restriction.of(K, np.eye(K * (K - 1) // 2))
    fit = fit_pseudo(patterns, p, every)
    spot = np.arange(1 + 2 * K, len(fit.theta))
    estimate = fit.theta[spot]
    variance = np.diag(fit.sandwich(patterns.inverse, clusters))[spot]
    groups = np.arange(patterns.n_items) if clusters is None else clusters
    counts = resampled_counts(patterns, groups, replicates, rng) - patterns.counts
    bootstrap = PAPER * (estimate + counts @ fit.scores() @ fit.inverse[:, spot])
    class_fits = [
        fit_pseudo(patterns.with_counts(patterns.counts * share), np.full(len(p), y), every)
        for y, share in ((0.0, 1 - p), (1.0, p))
    ]
    return _summarise(
        K,
        estimate,
        variance,
        bootstrap,
        p_ratio=np.nan,
        by_class=np.stack([_square(PAPER * end.theta[spot], K, 0.0) for end in class_fits]),
        log_likelihood=None,
        converged=fit.converged,
        method="pseudo-likelihood",
    )


def _summarise(
    n_judges: int,
    estimate: Floats,
    variance: Floats,
    bootstrap: Floats,
    *,
    p_ratio: Floats | float,
    by_class: Floats,
    log_likelihood: float | None,
    converged: bool,
    method: str,
) -> Couplings:
    """Couplings in the paper's units, with Wald and bootstrap errors.

    Args:
        n_judges: K.
        estimate: couplings of spins, shape (pairs,).
        variance: of the estimates, shape (pairs,); not positive where a coupling has none.
        bootstrap: replicates in the paper's units, shape (B, pairs), B = 0 for none.
        p_ratio: p values by likelihood ratio, shape (pairs,) or NaN.
        by_class: shape (2, K, K), in the paper's units.
        log_likelihood: see :class:`Couplings`.
        converged: see :class:`Couplings`.
        method: see :class:`Couplings`.
    """
    error = np.sqrt(np.where(variance > 0, variance, np.nan))
    low, high = np.quantile(bootstrap, [0.025, 0.975], axis=0) if len(bootstrap) else [np.nan] * 2
    spread = bootstrap.std(axis=0, ddof=1) if len(bootstrap) > 1 else np.nan
    return Couplings(
        matrix=_square(PAPER * estimate, n_judges, 0.0),
        error=_square(PAPER * error, n_judges, 0.0),
        p_wald=_square(_upper_tail((estimate / error) ** 2), n_judges),
        p_ratio=_square(p_ratio, n_judges),
        low=_square(low, n_judges),
        high=_square(high, n_judges),
        bootstrap_error=_square(spread, n_judges),
        replicates=bootstrap,
        by_class=by_class,
        log_likelihood=log_likelihood,
        converged=converged,
        method=method,
    )


def _by_class(patterns: Patterns, p: Floats, fit: RestrictedFit) -> Floats:
    K = patterns.n_judges
    every = np.eye(K * (K - 1) // 2)
    free = RestrictedLikelihood.of(patterns, Restriction.of(K, every, every), p)
    start = np.concatenate([fit.theta, np.zeros(len(every))])
    return fit_restricted(free, start).law.paper_couplings


def _ratio(fit: RestrictedFit, covariance: Floats, index: int) -> float:
    """Twice the fall of the log-likelihood when one parameter is held at 0.

    The inverse of the Hessian without a row and column is known from the whole one, so that
    each refit is a few cheap steps from the quadratic guess.
    """
    column = covariance[:, index]
    steps = covariance - np.outer(column, column) / column[index]
    theta = fit.theta - column * (fit.theta[index] / column[index])
    theta[index] = 0.0
    value, gradient = fit.likelihood.slope(theta)
    for _ in range(REFITS):
        if 0.5 * gradient @ steps @ gradient < ENOUGH:
            break
        shorter = theta - steps @ gradient
        shorter[index] = 0.0
        new, slope = fit.likelihood.slope(shorter)
        if new > value:
            break
        theta, value, gradient = shorter, new, slope
    return max(0.0, 2 * (value + fit.value))


def _replicates(
    fit: RestrictedFit,
    covariance: Floats,
    clusters: Index | None,
    replicates: int,
    rng: np.random.Generator,
) -> Floats:
    """One Newton step from the fit for each redrawn set of counts, shape (B, q)."""
    patterns, free = fit.likelihood.patterns, fit.likelihood.restriction.free
    groups = np.arange(patterns.n_items) if clusters is None else clusters
    counts = resampled_counts(patterns, groups, replicates, rng)
    slopes = (counts - patterns.counts) @ (fit.likelihood.scores(fit.theta) @ free)
    return np.asarray(fit.theta + slopes @ covariance)


def _upper_tail(statistics: Floats) -> Floats:
    from scipy.special import chdtrc

    return np.asarray(chdtrc(1, statistics))


def _square(values: Floats | float, n_judges: int, diagonal: float = np.nan) -> Floats:
    matrix = np.full((n_judges, n_judges), diagonal)
    matrix[pairs(n_judges)] = values
    matrix.T[pairs(n_judges)] = values
    return matrix
