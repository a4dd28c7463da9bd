"""How judges err together once the truth is accounted for, and how many independent ones they equal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Bools, Floats, Index

LARGEST_JURY = 1e4
LEAST_VARIANCE = 1e-12
"""Below this within-class variance a judge has nothing to correlate."""


@dataclass(frozen=True, slots=True)
class ResidualCorrelations:
    """Correlations between judges within the classes.

    Attributes:
        within_classes: shape (K, K); both classes together, each with its own means. 1 on the diagonal,
            NaN where a judge does not vary within the classes or two never voted together.
        by_class: shape (2, K, K); within class 0 and within class 1.
        together: shape (K, K); items (or their weight) on which both voted.
    """

    within_classes: Floats
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


@dataclass(frozen=True, slots=True)
class EffectiveNumbers:
    """Three answers to one question; NaN where it has none.

    Attributes:
        by_mean: K / (1 + (K - 1) r), r the mean residual correlation: how many independent
            votes have an average as noisy as the panel's (Kish's design effect).
        by_spectrum: K^2 / sum of squared residual correlations (diagonal included), which is
            (sum of eigenvalues)^2 / sum of their squares: how many directions they vary in. Unlike
            ``by_mean`` it does not let negative correlations make up for positive ones.
        by_accuracy: the size of a jury of independent judges, each as good as the panel's
            average, whose majority is right as often as the panel's.
        mean_correlation: r.
    """

    by_mean: float
    by_spectrum: float
    by_accuracy: float
    mean_correlation: float


def effective_number(
    correlations: Floats, mean_accuracy: float, panel_accuracy: float
) -> EffectiveNumbers:
    """The three numbers from a residual correlation matrix (K, K) and two accuracies.

    Judges without any correlation to others (NaN) are left out of r and counted in K with it.
    By the mean it is infinite where errors cancel, at r below -1 / (K - 1).
    """
    K = len(correlations)
    if K == 1:
        return EffectiveNumbers(1.0, 1.0, jury_size(mean_accuracy, panel_accuracy), np.nan)
    pairs = off_diagonal(correlations)
    values = pairs[~np.isnan(pairs)]
    if not len(values):
        return EffectiveNumbers(np.nan, np.nan, jury_size(mean_accuracy, panel_accuracy), np.nan)
    r = float(values.mean())
    inflation = 1 + (K - 1) * r
    by_mean = K / inflation if inflation > 0 else np.inf
    by_spectrum = K / (1 + (K - 1) * float((values**2).mean()))
    return EffectiveNumbers(by_mean, by_spectrum, jury_size(mean_accuracy, panel_accuracy), r)


def jury_accuracy(size: float, accuracy: float) -> float:
    """P(the majority of ``size`` independent judges is right), for any size > 0.

    For odd sizes it is Condorcet's binomial tail; the incomplete beta function, which equals it
    there, fills in the rest.
    """
    half = (size + 1) / 2
    return float(betainc(half, half, accuracy))


def jury_size(mean_accuracy: float, panel_accuracy: float) -> float:
    """The size at which :func:`jury_accuracy` reaches the panel's accuracy.

    NaN where judges are no better than chance on average, for no jury of such judges gets
    better by growing; infinity where the panel is right beyond what 10000 such judges would be.
    """
    if not (mean_accuracy > 0.5 and np.isfinite(panel_accuracy)):
        return float("nan")
    low, high = -1.0, LARGEST_JURY
    if panel_accuracy >= jury_accuracy(high, mean_accuracy):
        return float("inf")
    if panel_accuracy <= 0.5:
        return 0.0
    for _ in range(80):
        middle = (low + high) / 2
        if jury_accuracy(middle, mean_accuracy) < panel_accuracy:
            low = middle
        else:
            high = middle
    return max(0.0, (low + high) / 2)


@dataclass(frozen=True, slots=True)
class PanelAccuracies:
    """How often judges and their majority are right, by the label or its estimate.

    Attributes:
        judges: shape (K,); a tie is half right; NaN where a judge never voted.
        majority: a tied majority is half right.
    """

    judges: Floats
    majority: float


def accuracies(patterns: Patterns, p: Floats, counts: Floats | None = None) -> PanelAccuracies:
    """Expected shares of right votes, if class 1 has probability p, shape (n_patterns,).

    Items that nobody voted on do not count.
    """
    weight = patterns.counts if counts is None else counts
    right = patterns.for_one * p[:, None] + patterns.for_zero * (1 - p)[:, None]
    n_votes = weight @ patterns.present
    hits = weight @ right
    judges = np.divide(hits, n_votes, out=np.full(len(n_votes), np.nan), where=n_votes > 0)
    lead = np.sign((patterns.for_one - patterns.for_zero).sum(axis=1))
    voting_weight = weight * patterns.present.any(axis=1)
    chance = np.where(lead == 0, 0.5, np.where(lead > 0, p, 1 - p))
    total = float(voting_weight.sum())
    return PanelAccuracies(judges, float(voting_weight @ chance) / total if total else float("nan"))
