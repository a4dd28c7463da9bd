"""Simultaneous intervals for the ranks of candidates.

A candidate's rank is one more than the number of candidates that are better. Which differences of
two scores are not 0 is decided for all pairs at once: with probability ``level`` no pair is called
apart the wrong way, so that all ranks are in their intervals together (Mogstad, Romano, Shaikh,
Wilhelm 2024, theorem 3.1 with the step-down of Romano, Wolf 2005). Percentiles of bootstrapped ranks
have no such property: where candidates are equal, they hold the ranks in a fifth of the samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index

_FLAT = 1e-12
"""A standard error below this is none: the difference never varied."""


@dataclass(frozen=True, slots=True)
class RankIntervals:
    """Ranks that the data do not rule out, 1 is best.

    Attributes:
        low, high: (K,).
        better: (K, K), the row is better than the column, all such statements together at ``level``.
    """

    low: Index
    high: Index
    better: Bools


def rank_intervals(
    scores: Floats,
    draws: Floats,
    level: float = 0.95,
    *,
    freedom: float | None = None,
    inflation: float = 1.0,
    comparable: Bools | None = None,
) -> RankIntervals:
    """Intervals for all ranks at once, from draws of the scores' error.

    Of every pair the difference is divided by its standard error, and compared with the ``level``
    quantile of the largest such ratio of the draws, over the pairs not yet apart; until no more pairs
    come apart.

    Args:
        scores: (K,), larger is better; NaN has no rank.
        draws: (B, K), replicates of the scores; NaN where a candidate is not in a replicate.
        level: probability that all intervals hold.
        freedom: degrees of freedom of the draws' covariance, whose quantile is then Student's at the
            same tail; null where it is known.
        inflation: of the errors: sqrt(G / (G - 1)) where draws are a bootstrap of G clusters, whose
            variance is that much too small.
        comparable: (K,), candidates whose error the draws show; the others are apart from nobody.
    """
    k = len(scores)
    usable = ~np.isnan(scores) if comparable is None else comparable & ~np.isnan(scores)
    ratio, errors, centres = _ratios(scores, draws)
    open_pairs = np.triu(usable[:, None] & usable[None, :], 1)
    better = np.zeros((k, k), dtype=bool)
    while open_pairs.any():
        limit = _quantile_of_largest(draws, errors, centres, open_pairs, level)
        limit = inflation * (limit if freedom is None else _students(limit, freedom))
        apart = open_pairs & (np.abs(ratio) > limit)
        if not apart.any():
            break
        better |= (apart & (ratio > 0)) | (apart & (ratio < 0)).T
        open_pairs &= ~apart
    return ranks_of(better)


def _students(limit: float, freedom: float) -> float:
    """The value that Student's t exceeds as rarely as a normal one exceeds ``limit``.

    The largest of many ratios lies further out than a single one, where t and z differ more.
    """
    from scipy.special import ndtr, stdtrit

    return -float(stdtrit(freedom, float(ndtr(-limit))))


def ranks_of(better: Bools) -> RankIntervals:
    """The ranks that statements (K, K) leave: below all that are better, above all that are worse."""
    low, high = 1 + better.sum(axis=0), len(better) - better.sum(axis=1)
    return RankIntervals(low.astype(np.intp), high.astype(np.intp), better)


def _ratios(scores: Floats, draws: Floats) -> tuple[Floats, Floats, Floats]:
    """Differences over their standard errors, these, and the draws' mean differences, (K, K) each."""
    k = len(scores)
    errors, centres = np.zeros((k, k)), np.zeros((k, k))
    for i in range(k):
        away = np.ma.masked_invalid(draws[:, i : i + 1] - draws)
        errors[i], centres[i] = away.std(axis=0).filled(0.0), away.mean(axis=0).filled(0.0)
    gap = np.nan_to_num(scores[:, None] - scores[None, :])
    surely = np.where(np.abs(gap) > _FLAT, np.copysign(np.inf, gap), 0.0)
    ratio = np.divide(gap, errors, out=surely, where=errors > _FLAT)
    return ratio, errors, centres


def _quantile_of_largest(
    draws: Floats, errors: Floats, centres: Floats, open_pairs: Bools, level: float
) -> float:
    """The quantile over the draws of the largest |difference - mean| / error of the open pairs."""
    largest = np.zeros(len(draws))
    for i in np.flatnonzero(open_pairs.any(axis=1)).tolist():
        columns = np.flatnonzero(open_pairs[i] & (errors[i] > _FLAT))
        if len(columns):
            away = draws[:, i : i + 1] - draws[:, columns] - centres[i, columns]
            ratio = np.abs(away) / errors[i, columns]
            largest = np.fmax(largest, np.nan_to_num(ratio).max(axis=1))
    return float(np.quantile(largest, level))
