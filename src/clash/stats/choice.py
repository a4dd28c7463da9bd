"""Quality, price and speed drawn together: who is on the Pareto front, and what a wrong choice costs.

Draws are those of the Bayesian bootstrap (Rubin 1981): each question gets a weight that is
exponentially distributed, and every figure is computed with these weights, so that quality,
cost and latency of the same questions stay together. One question's worth of prior says that all
orders of the candidates are equally likely. Of two candidates on independent questions the drawn win
rate then has the Beta distribution of Jeffreys' prior, Beta(wins + 1/2, losses + 1/2): three wins of
three are no certainty. An ordinary bootstrap draws nothing but wins there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import sigmoid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.stats.selection.corrected_share import CorrectedShare
    from clash.stats.typing import Floats, Index

DRAWS = 4000
PRIOR_GAMES = 0.5
"""Games of each candidate against a phantom where strengths are fitted; as for win rates."""
_CHUNK = 250_000
_STEPS, _TOLERANCE = 500, 1e-6


@dataclass(frozen=True)
class PairSample:
    """Two candidates on the items that both answered.

    Attributes:
        first, second: their columns, 0 to K - 1.
        rows: (n,), the items.
        outcomes: (n,), of the first by the panel, 0 to 1; with labels, what is expected of people.
        gaps: (n,), by how much people's outcome is above that, as if their label had not been used,
            NaN where they were not asked; null for the panel alone.
        label_weights: (n,), one over the chance that people were asked; null for equal chances.
        worth: rows of independent questions that say as much as one label does with the panel.
        widening: factor on the errors of the share, for what the draws do not see.
    """

    first: int
    second: int
    rows: Index
    outcomes: Floats
    gaps: Floats | None = None
    label_weights: Floats | None = None
    worth: float = 1.0
    widening: float = 1.0

    @classmethod
    def of_labels(
        cls,
        pair: tuple[int, int],
        rows: Index,
        share: CorrectedShare,
        clusters: Index,
        label_weights: Floats | None = None,
    ) -> PairSample:
        """A pair whose draws are as wide as the interval of its corrected share.

        The Bayesian bootstrap knows no Student's quantile, nor what is doubted of the panel's
        savings. Its variance is that of the clusters' totals (n,) of ``clusters``.
        """
        has_label = ~np.isnan(share.gaps)
        chance = np.ones(len(rows)) if label_weights is None else label_weights
        weights = np.where(has_label, chance, 0.0)
        gaps = np.nan_to_num(share.gaps)
        errors = weights / weights.sum() * (gaps - np.average(gaps, weights=weights))
        errors += (share.model - share.model.mean()) / len(rows)
        totals = np.bincount(clusters, errors)
        rate, variance = share.interval.estimate, float(totals @ totals)
        rate_variance = rate * (1 - rate) / share.interval.n_effective
        # Labels of one cluster have no spread but for rounding.
        widening = (
            math.sqrt(max(1.0, rate_variance / variance))
            if variance > 1e-12 * rate_variance
            else 1.0
        )
        question_size = len(rows) / len(np.unique(clusters))
        worth = share.interval.n_effective / int(has_label.sum()) * question_size
        return cls(*pair, rows, share.model, share.gaps, label_weights, worth, widening)

    def share(self, weights: Floats) -> tuple[Floats, Floats]:
        """The first one's share and the weight that it rests on, (B,) each.

        With labels it is the difference estimator of
        :func:`~clash.stats.selection.corrected_share.corrected_share`, whose ``model`` and ``gaps``
        are here.
        """
        w = weights[:, self.rows]
        total = w.sum(axis=1)
        if self.gaps is None:
            return w @ self.outcomes / total, total
        has_label = ~np.isnan(self.gaps)
        chance = np.ones(len(self.rows)) if self.label_weights is None else self.label_weights
        mass = w[:, has_label] * chance[has_label]
        gaps = self.gaps[has_label]
        share = w @ self.outcomes / total + mass @ gaps / mass.sum(axis=1)
        centre = self.outcomes.mean() + np.average(gaps, weights=chance[has_label])
        share = centre + self.widening * (share - centre)
        return np.clip(share, 0.0, 1.0), self.worth * w[:, has_label].sum(axis=1)


@dataclass(frozen=True)
class StrengthSample:
    """Bradley-Terry strengths of K candidates, which labels have corrected.

    Attributes:
        theta: (K,), log-odds.
        influence: (G, K), what each cluster adds to their error.
    """

    theta: Floats
    influence: Floats

    def shares(self, weights: Floats) -> Floats:
        """How often each candidate is preferred to each other, (B, K, K), NaN on the diagonal.

        Weights (B, G) of clusters; one step of the weighted score equation from its solution.
        """
        theta = self.theta + (weights - 1) @ self.influence
        shares = sigmoid(theta[:, :, None] - theta[:, None, :])
        shares[:, range(len(self.theta)), range(len(self.theta))] = np.nan
        return shares


@dataclass(frozen=True)
class Draws:
    """B draws of what is known about K candidates.

    Attributes:
        shares: (B, K, K), how often the row's candidate is preferred to the column's; NaN where
            they never met, and on the diagonal.
        quality: (B, K), win rates.
        cost, latency: (B, K); NaN where nothing was measured.
    """

    shares: Floats
    quality: Floats
    cost: Floats
    latency: Floats

    def front(self) -> Floats | None:
        """(K,), how often nobody is as good on every scale and better on one.

        A scale that one of two candidates lacks does not compare them, and one scale alone is a
        ranking, not a trade-off: NaN for a candidate that shares two scales with nobody. Null where
        no two candidates do.
        """
        k = self.quality.shape[1]
        beaten, is_compared = np.zeros(self.quality.shape, bool), np.zeros(k, bool)
        for a in range(k):
            for b in range(k):
                leads = [self.quality[:, a] - self.quality[:, b]]
                leads += [
                    scale[:, b] - scale[:, a]
                    for scale in (self.cost, self.latency)
                    if not np.isnan(scale[:, [a, b]]).any()
                ]
                if a == b or len(leads) < 2 or np.isnan(leads[0]).any():
                    continue
                is_compared[[a, b]] = True
                beaten[:, b] |= (np.min(leads, axis=0) >= 0) & (np.max(leads, axis=0) > 0)
        share = np.where(is_compared, (~beaten).mean(axis=0), np.nan)
        return share if is_compared.any() else None


@dataclass(frozen=True)
class Regrets:
    """What each of K candidates is worth beside the best of the eligible ones; NaN elsewhere.

    Attributes:
        best: (K,), how often it is the best, ties shared.
        mean: (K,), the mean of the best one's worth less its own: the expected regret.
        high: (K,), the regret that is not exceeded in 95% of the draws.
    """

    best: Floats
    mean: Floats
    high: Floats


def draw_candidates(
    sample: Sequence[PairSample] | StrengthSample,
    cost: Floats,
    latency: Floats,
    clusters: Index,
    rng: np.random.Generator,
    *,
    quantile: float = 0.5,
    by_strengths: bool = False,
    draws: int = DRAWS,
) -> Draws:
    """Draw win rates, mean costs and latencies of K candidates together.

    Args:
        sample: the pairs that met, or strengths.
        cost: (N, K), of each response; NaN where it is unknown.
        latency: (N, K), likewise; its ``quantile`` is drawn.
        clusters: (N,), codes 0 to G - 1: items that share one get one weight.
        rng: source of randomness.
        quantile: of the latencies, 0 to 1.
        by_strengths: win rates are those that Bradley-Terry strengths expect, for candidates that
            answered different items; otherwise means over opponents.
        draws: B.
    """
    k = cost.shape[1]
    parts = []
    n_clusters = int(clusters.max()) + 1
    for of_clusters in _weights(n_clusters, len(clusters), rng, draws):
        weights = of_clusters[:, clusters]
        if isinstance(sample, StrengthSample):
            shares = sample.shares(of_clusters)
            quality = _means(shares)
        else:
            shares, games = _shares(sample, weights, len(clusters) / n_clusters, k, rng)
            quality = _strength_rates(shares, games) if by_strengths else _means(shares)
        parts.append(
            (
                shares,
                quality,
                _weighted_means(cost, weights),
                _quantiles(latency, weights, quantile),
            )
        )
    return Draws(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def regrets(worth: Floats, eligible: Sequence[int]) -> Regrets:
    """How good a choice among some candidates each of them is.

    Args:
        worth: (B, K) draws, more is better.
        eligible: columns to choose from; none gives NaN throughout.
    """
    blank = np.full(worth.shape[1], np.nan)
    best, mean, high = blank, blank.copy(), blank.copy()
    if not len(eligible):
        return Regrets(best, mean, high)
    columns = worth[:, list(eligible)]
    gap = columns.max(axis=1, keepdims=True) - columns
    is_top = gap <= 1e-12
    best[list(eligible)] = (is_top / is_top.sum(axis=1, keepdims=True)).mean(axis=0)
    mean[list(eligible)] = gap.mean(axis=0)
    high[list(eligible)] = np.quantile(gap, 0.95, axis=0)
    return Regrets(best, mean, high)


def price_of_a_win(share: Floats, extra_cost: Floats) -> Floats:
    """What one more preferred answer costs, (B,): extra cost over net wins, inf without a net win.

    The incremental cost-effectiveness ratio of health economics. Net wins are 2 share - 1, answers
    preferred less answers passed over. 0 where the better candidate is no dearer.
    """
    gain = 2 * share - 1
    blank = np.full(gain.shape, np.inf)
    ratio = np.divide(np.maximum(extra_cost, 0.0), gain, out=blank, where=gain > 0)
    return np.asarray(ratio, np.float64)


def _weights(
    n_clusters: int, n_items: int, rng: np.random.Generator, draws: int
) -> Iterator[Floats]:
    """Exponential weights of clusters, (b, G) each, b chosen to bound the memory of (b, N)."""
    step = max(1, _CHUNK // n_items)
    for at in range(0, draws, step):
        yield rng.exponential(size=(min(step, draws - at), n_clusters))


def _shares(
    pairs: Sequence[PairSample], weights: Floats, size: float, k: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Shares and the weight behind each, (B, K, K), with the prior of one question of mean size."""
    b = len(weights)
    shares, games = np.full((b, k, k), np.nan), np.zeros((b, k, k))
    # K rotations of one order and their reverses: each pair stands either way in half of them.
    orders = [np.roll(np.arange(k), shift)[::step] for shift in range(k) for step in (1, -1)]
    ranks = np.argsort(orders, axis=1)
    prior = size * rng.gamma(1 / len(orders), size=(b, len(orders)))
    for pair in pairs:
        share, weight = pair.share(weights)
        above = prior @ (ranks[:, pair.first] < ranks[:, pair.second])
        total = weight + prior.sum(axis=1)
        value = (share * weight + above) / total
        shares[:, pair.first, pair.second] = value
        shares[:, pair.second, pair.first] = 1 - value
        games[:, pair.first, pair.second] = games[:, pair.second, pair.first] = total
    return shares, games


def _means(shares: Floats) -> Floats:
    """(B, K), the mean over the opponents that each met; NaN where there is none."""
    has_met = ~np.isnan(shares)
    total, n = np.nansum(shares, axis=2), has_met.sum(axis=2)
    means: Floats = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return means


def _strength_rates(shares: Floats, games: Floats) -> Floats:
    """(B, K), win rates that Bradley-Terry strengths expect against all others.

    Damped Newton steps on all draws at once, with the phantom games of :data:`PRIOR_GAMES`.
    """
    b, k = games.shape[:2]
    wins = np.nan_to_num(shares) * games
    theta = np.zeros((b, k))
    for _ in range(_STEPS):
        p = sigmoid(theta[:, :, None] - theta[:, None, :])
        q = sigmoid(theta)
        score = (wins - games * p).sum(axis=2) + PRIOR_GAMES * (0.5 - q)
        slope = games * p * (1 - p)
        information = -slope
        diagonal = slope.sum(axis=2) + PRIOR_GAMES * q * (1 - q)
        information[:, range(k), range(k)] += diagonal
        step = np.linalg.solve(information, score[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True)
        theta += step * np.minimum(1.0, 1.0 / np.maximum(longest, 1e-300))
        if longest.max() < _TOLERANCE:
            break
    p = sigmoid(theta[:, :, None] - theta[:, None, :])
    return np.asarray((p.sum(axis=2) - 0.5) / (k - 1), np.float64)


def _weighted_means(values: Floats, weights: Floats) -> Floats:
    """(B, K), over the rows where a value is known."""
    total = weights @ (~np.isnan(values)).astype(float)
    sums = weights @ np.nan_to_num(values)
    means: Floats = np.divide(sums, total, out=np.full(sums.shape, np.nan), where=total > 0)
    return means


def _quantiles(values: Floats, weights: Floats, quantile: float) -> Floats:
    """(B, K), the least value that a share ``quantile`` of the weight does not exceed."""
    result = np.full((len(weights), values.shape[1]), np.nan)
    for k, column in enumerate(values.T):
        rows = np.flatnonzero(~np.isnan(column))
        if not len(rows):
            continue
        order = rows[np.argsort(column[rows], kind="stable")]
        reach = np.cumsum(weights[:, order], axis=1)
        at = np.argmax(reach >= quantile * reach[:, -1:] * (1 - 1e-12), axis=1)
        result[:, k] = column[order][at]
    return result
