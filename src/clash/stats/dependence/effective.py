"""How many independent judges a panel is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc

from clash.stats.dependence.residual_correlation import off_diagonal

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Floats

LARGEST_JURY = 1e4


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
    by_mean = K / inflation if inflation > 0 else np.nan
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
