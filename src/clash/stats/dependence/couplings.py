"""The coupling matrix given the labels or their estimate, with three kinds of error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.dependence.residual import resampled_counts
from clash.stats.dependence.restricted import (
    RestrictedFit,
    Restriction,
    fit_restricted,
    soft_labels,
)
from clash.stats.latent.states import pairs

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Floats, Index, Patterns

PAPER = 4.0
"""Couplings of votes 0 and 1 (equation 1) over couplings of spins."""
REFITS, CHORD = 6, 1e-3


@dataclass(frozen=True)
class Couplings:
    """Pairwise couplings W of equation 3, shared by the classes: log odds ratios between two
    judges' votes, given the truth and all other judges.

    Attributes:
        matrix: shape (K, K), symmetric, zero diagonal.
        error: Wald standard errors from the observed information, shape (K, K).
        p_wald: p values of W[j, k] = 0 by Wald, shape (K, K), NaN on the diagonal.
        p_ratio: the same by likelihood ratio.
        low: 2.5% bootstrap quantiles, clusters of items redrawn; NaN where not asked for.
        high: 97.5% quantiles.
        bootstrap_error: bootstrap standard errors; NaN where not asked for.
        replicates: shape (B, pairs): bootstrap values, NaN rows where a refit did not settle.
        by_class: couplings within class 0 and class 1, shape (2, K, K), from a fit that lets
            them differ.
        log_likelihood: given the labels.
        converged: whether the fit settled.
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
    log_likelihood: float
    converged: bool


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
    every = np.eye(K * (K - 1) // 2)
    labelled = soft_labels(patterns, p)
    fit = fit_restricted(labelled, Restriction.of(K, every))
    both = fit_restricted(labelled, Restriction.of(K, every, every))
    covariance = np.linalg.pinv(fit.hessian, rcond=1e-12, hermitian=True)
    at = 1 + 2 * K
    spot = np.arange(at, len(fit.theta))
    error = np.sqrt(np.maximum(np.diag(covariance)[at:], 0))
    groups = np.arange(patterns.n_items) if clusters is None else clusters
    counts = resampled_counts(patterns, groups, replicates, rng)
    drawn = PAPER * np.array([_refit(fit, covariance, patterns, p, c)[at:] for c in counts])
    drawn = drawn.reshape(replicates, len(spot))
    low, high, spread = _summary(drawn)
    return Couplings(
        matrix=_square(PAPER * fit.theta[at:], K, 0.0),
        error=_square(PAPER * error, K, 0.0),
        p_wald=_square(_two_sided((fit.theta[at:] / error) ** 2), K),
        p_ratio=_square(_two_sided([_ratio(fit, covariance, int(i)) for i in spot]), K),
        low=_square(low, K),
        high=_square(high, K),
        bootstrap_error=_square(spread, K),
        replicates=drawn,
        by_class=both.law.paper_couplings,
        log_likelihood=fit.log_likelihood,
        converged=fit.converged,
    )


def _ratio(fit: RestrictedFit, covariance: Floats, index: int) -> float:
    """Twice the fall of the log-likelihood when one parameter is held at 0.

    The inverse of the Hessian without a row and column is known from the whole one, so that
    each refit is a few cheap steps from the quadratic guess.
    """
    column = covariance[:, index]
    steps = covariance - np.outer(column, column) / column[index]
    theta = fit.theta - column * (fit.theta[index] / column[index])
    theta[index] = 0.0
    value = np.inf
    for _ in range(REFITS):
        new, gradient = fit.slope(theta)
        if value - new < CHORD:
            value = min(value, new)
            break
        value = new
        theta = theta - steps @ gradient
        theta[index] = 0.0
    return max(0.0, 2 * (value + fit.log_likelihood))


def _refit(
    fit: RestrictedFit, covariance: Floats, patterns: Patterns, p: Floats, counts: Floats
) -> Floats:
    """The fit under other counts, by steps with the Hessian of the data; NaN if they diverge."""
    weights = np.concatenate([(counts * (1 - p))[p < 1], (counts * p)[p > 0]])
    drawn = fit.patterns.reweighted(weights)
    theta, size = fit.theta, np.inf
    for _ in range(REFITS):
        step = covariance @ fit.slope(theta, drawn)[1]
        if np.abs(step).max() > size:
            return np.full_like(theta, np.nan)
        theta, size = theta - step, float(np.abs(step).max())
        if size < CHORD:
            break
    return theta


def _summary(drawn: Floats) -> tuple[Floats, Floats, Floats]:
    kept = drawn[~np.isnan(drawn).any(axis=1)]
    if len(kept) < 2:
        nothing = np.full(drawn.shape[1], np.nan)
        return nothing, nothing, nothing
    low, high = np.quantile(kept, [0.025, 0.975], axis=0)
    return low, high, kept.std(axis=0, ddof=1)


def _two_sided(statistics: Floats | list[float]) -> Floats:
    from scipy.special import chdtrc

    return np.asarray(chdtrc(1, np.asarray(statistics, dtype=np.float64)))


def _square(values: Floats, K: int, diagonal: float = np.nan) -> Floats:
    matrix = np.full((K, K), diagonal)
    matrix[pairs(K)] = values
    matrix.T[pairs(K)] = values
    return matrix
