"""Win rates: the share of comparisons that a candidate wins, a tie counting half.

Against one opponent it is the mean outcome over the items where both were judged; over several,
the mean of these means. Where candidates answered different items, such means compare easy
opponents with hard ones: strengths are then fitted to all pairs at once (Bradley-Terry), and the
win rate is what they expect against each of the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.intervals import Interval, normal_quantile, t_quantile, wilson, wilson_clustered
from clash.stats.voting.bradley_terry import Comparisons, bradley_terry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Floats, Index

LEVEL = 0.95
PRIOR = 0.5
"""Games of each candidate against a phantom: strengths stay finite where one always wins."""


@dataclass(frozen=True)
class PairOutcomes:
    """Two candidates on the items where both were judged.

    Attributes:
        first, second: their columns, 0 to K - 1.
        rows: the items, shape (n,).
        outcomes: of the first, shape (n,): 1 a win, 0.5 a tie, 0 a loss.
    """

    first: int
    second: int
    rows: Index
    outcomes: Floats


@dataclass(frozen=True)
class WinRates:
    """Win rates of K candidates.

    Attributes:
        rates: in the order of the columns; null for a candidate that met nobody.
        by_strengths: they are those of fitted strengths, not plain means.
        influence: what each cluster adds to the error of each rate, (G, K): the difference of two
            rates over the same clusters varies as the differences of their rows.
    """

    rates: list[Interval | None]
    by_strengths: bool
    influence: Floats


def pair_outcomes(table: Floats) -> list[PairOutcomes]:
    """Every two columns of a table of scores (N, K) that share an item; NaN is not judged."""
    pairs = []
    is_judged = ~np.isnan(table)
    for a in range(table.shape[1]):
        for b in range(a + 1, table.shape[1]):
            rows = np.flatnonzero(is_judged[:, a] & is_judged[:, b])
            if len(rows):
                first, second = table[rows, a], table[rows, b]
                # Sums of weights that should be equal may differ by rounding.
                lead = np.where(np.isclose(first, second), 0.0, first - second)
                pairs.append(PairOutcomes(a, b, rows, (np.sign(lead) + 1) / 2))
    return pairs


def win_rates(
    pairs: Sequence[PairOutcomes], clusters: Index, n_candidates: int, *, same_items: bool
) -> WinRates:
    """The win rate of each candidate, with an interval clustered by prompt.

    Args:
        pairs: all that met.
        clusters: of each item, shape (N,).
        n_candidates: K.
        same_items: every candidate was to answer the same items. Where not, and K > 2, the rates
            are those of Bradley-Terry strengths, if comparisons link all candidates.
    """
    counts = _Counts.of(pairs, n_candidates)
    if not same_items and pairs and n_candidates > 2:
        comparisons = Comparisons(counts.wins, np.zeros_like(counts.wins))
        strengths = bradley_terry(comparisons, prior=PRIOR, ties="half")
        if strengths.converged and not strengths.linked_set.any():
            win_probability = _logistic(strengths.theta)
            influence = (
                _influence_on_scores(pairs, clusters, win_probability) @ strengths.covariance
            )
            return _strength_rates(win_probability, influence, counts, clusters)
    means = _mean_over_opponents(pairs, clusters, counts)
    return replace(means, rates=_two(pairs, clusters)) if n_candidates == 2 else means


def _two(pairs: Sequence[PairOutcomes], clusters: Index) -> list[Interval | None]:
    if not pairs:
        return [None, None]
    (pair,) = pairs
    outcomes = pair.outcomes if pair.first == 0 else 1 - pair.outcomes
    groups = clusters[pair.rows]
    return [wilson_clustered(outcomes, groups), wilson_clustered(1 - outcomes, groups)]


@dataclass(frozen=True)
class _Counts:
    """Wins, ties counting half, and games of K candidates, each (K, K)."""

    wins: Floats
    games: Floats

    @classmethod
    def of(cls, pairs: Sequence[PairOutcomes], k: int) -> _Counts:
        wins, games = np.zeros((k, k)), np.zeros((k, k))
        for pair in pairs:
            total, n = float(pair.outcomes.sum()), len(pair.outcomes)
            wins[pair.first, pair.second], wins[pair.second, pair.first] = total, n - total
            games[pair.first, pair.second] = games[pair.second, pair.first] = n
        return cls(wins, games)


def _mean_over_opponents(
    pairs: Sequence[PairOutcomes], clusters: Index, counts: _Counts
) -> WinRates:
    has_met = counts.games > 0
    blank = np.zeros_like(counts.wins)
    share = np.divide(counts.wins, counts.games, out=blank, where=has_met)
    n_opponents = np.maximum(1, has_met.sum(axis=1))
    influence = np.zeros((int(clusters.max(initial=-1)) + 1, len(share)))
    for pair in pairs:
        residuals = _by_cluster(
            (pair.outcomes - share[pair.first, pair.second]) / len(pair.rows),
            clusters[pair.rows],
            len(influence),
        )
        influence[:, pair.first] += residuals / n_opponents[pair.first]
        influence[:, pair.second] -= residuals / n_opponents[pair.second]
    rates = share.sum(axis=1) / n_opponents
    intervals = _intervals(rates, influence, counts, clusters, "mean over opponents, clustered")
    return WinRates(intervals, by_strengths=False, influence=influence)


def _logistic(theta: Floats) -> Floats:
    """The probability that each candidate beats each other, (K, K)."""
    win_probability: Floats = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
    return win_probability


def _influence_on_scores(
    pairs: Sequence[PairOutcomes], clusters: Index, win_probability: Floats
) -> Floats:
    """What each cluster adds to the gradient of the likelihood, (G, K)."""
    scores = np.zeros((int(clusters.max(initial=-1)) + 1, len(win_probability)))
    for pair in pairs:
        residuals = pair.outcomes - win_probability[pair.first, pair.second]
        totals = _by_cluster(residuals, clusters[pair.rows], len(scores))
        scores[:, pair.first] += totals
        scores[:, pair.second] -= totals
    return scores


def _strength_rates(
    win_probability: Floats, influence: Floats, counts: _Counts, clusters: Index
) -> WinRates:
    """Expected win rates against every other candidate; their variance by the delta method."""
    k = len(win_probability)
    slope = win_probability * (1 - win_probability)
    np.fill_diagonal(slope, 0.0)
    gradient = (np.diag(slope.sum(axis=1)) - slope) / (k - 1)
    rates = (win_probability.sum(axis=1) - 0.5) / (k - 1)
    method = "Bradley-Terry strengths, clustered"
    on_rates = influence @ gradient.T
    intervals = _intervals(rates, on_rates, counts, clusters, method)
    return WinRates(intervals, by_strengths=True, influence=on_rates)


def _by_cluster(values: Floats, clusters: Index, n_clusters: int) -> Floats:
    return np.bincount(clusters, weights=values, minlength=n_clusters).astype(float)


def _intervals(
    rates: Floats, influence: Floats, counts: _Counts, clusters: Index, method: str
) -> list[Interval | None]:
    """Wilson's intervals whose effective n gives the variance of the clusters' influence.

    A rate of 0 or 1 shows no variance: there each cluster counts as one observation.
    """
    n_clusters = len(np.unique(clusters))
    intervals: list[Interval | None] = []
    for k, rate in enumerate(rates):
        games = float(counts.games[k].sum())
        if not games:
            intervals.append(None)
            continue
        effective = 1.0
        if n_clusters > 1:
            variance = float((influence[:, k] ** 2).sum()) * n_clusters / (n_clusters - 1)
            # Few clusters know their variance badly: t quantiles instead of normal ones.
            variance *= (t_quantile(LEVEL, n_clusters - 1) / normal_quantile(LEVEL)) ** 2
            spread = rate * (1 - rate)
            effective = min(spread / variance, games) if variance > 1e-12 else float(n_clusters)
        effective = max(1.0, effective)
        bounds = wilson(rate * effective, effective, LEVEL)
        intervals.append(
            Interval(float(rate), bounds.low, bounds.high, LEVEL, games, effective, method)
        )
    return intervals
