"""How judges err together once the truth is accounted for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Bools, Floats, Index

LEAST_VARIANCE = 1e-12
"""Below this within-class variance a judge has nothing to correlate."""


@dataclass(frozen=True, slots=True)
class ResidualCorrelations:
    """Correlations between judges within the classes.

    Attributes:
        pooled: shape (K, K); both classes together, each with its own means. 1 on the diagonal,
            NaN where a judge does not vary within the classes or two never voted together.
        by_class: shape (2, K, K); within class 0 and within class 1.
        together: shape (K, K); items (or their weight) on which both voted.
    """

    pooled: Floats
    by_class: Floats
    together: Floats


def residual_correlations(
    patterns: Patterns, p: Floats, *, least: float = 0.0
) -> ResidualCorrelations:
    """Posterior-weighted within-class correlations of the votes.

    A vote's residual is its distance from what the judge votes on average in that class; every
    item counts in class 1 with weight p and in class 0 with 1 - p. Under conditional
    independence, with the p of the true model, its expectation is 0 for every pair: the
    weighting, unlike a hard decision, does not correlate what it conditions on. With the p of a
    model that takes what judges have in common for the truth it is too small.

    Args:
        patterns: the votes; a tie is half a vote, a pair with a missing vote is left out of
            that pair.
        p: shape (n_patterns,): P(truth = 1), or the label.
        least: items (or weight) that a pair must have together; below, it is undefined.

    Source: Balasubramanian et al. (2026), sections 3.2 and 5.
    """
    class_shares = np.stack([1 - p, p])
    sums = [_products(patterns, patterns.counts * share) for share in class_shares]
    present = patterns.present.astype(np.float64)
    together = (patterns.counts[:, None] * present).T @ present
    enough = together >= least
    by_class = np.stack([_correlation(products, enough) for products in sums])
    return ResidualCorrelations(_correlation(np.sum(sums, axis=0), enough), by_class, together)


def pooled_replicates(
    patterns: Patterns, p: Floats, counts: Floats, *, least: float = 0.0
) -> Floats:
    """Pooled correlations under other counts, shape (B, K, K): a bootstrap given p.

    Args:
        patterns: the votes.
        p: shape (n_patterns,).
        counts: shape (B, n_patterns).
        least: as in :func:`residual_correlations`, of the data, not of a replicate.
    """
    present = patterns.present.astype(np.float64)
    enough = (patterns.counts[:, None] * present).T @ present >= least
    out = np.empty((len(counts), patterns.n_judges, patterns.n_judges))
    for replicate, weight in enumerate(counts):
        sums = [_products(patterns, weight * share) for share in (1 - p, p)]
        out[replicate] = _correlation(np.sum(sums, axis=0), enough)
    return out


def resampled_counts(
    patterns: Patterns, clusters: Index, n: int, rng: np.random.Generator
) -> Floats:
    """Counts of the patterns when whole clusters of items are drawn anew, shape (n, n_patterns).

    Args:
        patterns: the votes.
        clusters: shape (n_items,), codes 0..G-1; what shares a code is drawn together.
        n: replicates.
        rng: source of randomness.
    """
    n_clusters = int(clusters.max()) + 1
    out = np.empty((n, len(patterns.counts)))
    for replicate in range(n):
        cluster_counts = np.bincount(
            rng.integers(n_clusters, size=n_clusters), minlength=n_clusters
        )
        out[replicate] = np.bincount(
            patterns.inverse, cluster_counts[clusters], minlength=len(patterns.counts)
        )
    return out


def _products(patterns: Patterns, weight: Floats) -> Floats:
    """Sums of residual products, and of squares over the pairs' items; shape (2, K, K)."""
    present = patterns.present.astype(np.float64)
    votes = patterns.for_one
    total = weight @ present
    mean = np.divide(weight @ votes, total, out=np.zeros_like(total), where=total > 0)
    residual = (votes - mean) * present
    weighted_residual = weight[:, None] * residual
    return np.stack([weighted_residual.T @ residual, (weighted_residual * residual).T @ present])


def _correlation(products: Floats, enough: Bools) -> Floats:
    covariance, variance = products
    scale = variance * variance.T
    mask = enough & (scale > LEAST_VARIANCE)
    r = np.full_like(covariance, np.nan)
    np.divide(covariance, np.sqrt(np.where(mask, scale, 1.0)), out=r, where=mask)
    np.fill_diagonal(r, 1.0)
    return np.asarray(r)


def off_diagonal(matrix: Floats) -> Floats:
    """The values above the diagonal, shape (..., K (K - 1) / 2), pairs in row order."""
    first, second = np.triu_indices(matrix.shape[-1], 1)
    return np.asarray(matrix[..., first, second])
