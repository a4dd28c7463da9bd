"""Every ranking rule as a score of the candidates that is a function of the clusters' weights.

A larger score is better. A score is NaN where no ranking of positive weight holds the candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.voting.bradley_terry import (
    Comparisons,
    bradley_terry,
    is_separated,
    refit_strengths,
)
from clash.stats.voting.condorcet import (
    MOST_CANDIDATES,
    copeland_scores,
    kemeny_scores,
    schulze_scores,
)
from clash.stats.voting.majority import share_among_best
from clash.stats.voting.plackett_luce import (
    ChoiceCounts,
    plackett_luce,
    ranking_choices,
    refit_luce_strengths,
)
from clash.stats.voting.rankings import (
    ClusterSums,
    PairwiseOutcomes,
    cluster_sums,
    pairwise_outcomes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clash.stats.typing import Floats
    from clash.stats.voting.rankings import RankingArray


ScoreFunction = Callable[["Floats"], "Floats"]
"""Weights of the clusters (B, G) to scores of the candidates (B, K)."""

FIT_SLACK = 1e-6
"""Strengths that differ by less are equal: a fit stops at a finite tolerance."""
_CELLS = 1 << 21


@dataclass(frozen=True)
class RuleFit:
    """How the fit of an iterative rule to the rankings ended.

    Attributes:
        residual: largest difference of observed and expected wins.
        tie: Davidson's tie parameter; null where ties are not modelled.
        is_separated: some group never lost a point to the rest; the prior alone keeps it finite.
    """

    converged: bool
    n_iter: int
    residual: float
    tie: float | None = None
    is_separated: bool = False


@dataclass(frozen=True)
class RankingRule:
    """A ranking rule, applied to some rankings.

    Attributes:
        scores: of the candidates, by the weights of the clusters.
        slack: scores that differ by less are equal.
        fit: of the rankings; null for a rule without one.
    """

    scores: ScoreFunction
    slack: float = 1e-9
    fit: RuleFit | None = None


@dataclass(frozen=True)
class PairwiseTable:
    """Wins and ties of every pair.

    Attributes:
        rankings: what is counted.
        outcomes: the outcome of each of their pairs.
        sums: of shape (2, K, K): wins of the row, and ties, each in both directions.
        n_own: number of leading clusters that are not twins.
    """

    rankings: RankingArray
    outcomes: PairwiseOutcomes
    sums: ClusterSums
    n_own: int

    @classmethod
    def of(cls, rankings: RankingArray, n_own: int | None = None) -> PairwiseTable:
        """Count every pair of every ranking.

        Args:
            rankings: the rankings.
            n_own: leading clusters that are not twins; all where not given.
        """
        k, outcomes = rankings.n_candidates, pairwise_outcomes(rankings)
        tied = outcomes.tied
        forward = outcomes.first * k + outcomes.second
        backward = outcomes.second * k + outcomes.first
        cell = np.concatenate([forward[~tied], k * k + forward[tied], k * k + backward[tied]])
        row = np.concatenate(
            [outcomes.ranking[~tied], outcomes.ranking[tied], outcomes.ranking[tied]]
        )
        table = cluster_sums(
            cell, rankings.clusters[row], rankings.weights[row], (2, k, k), rankings.n_clusters
        )
        return cls(rankings, outcomes, table, rankings.n_clusters if n_own is None else n_own)

    def own_weights(self) -> Floats:
        """Weights (1, G) that count every own cluster once and no twin."""
        weights = np.zeros((1, self.rankings.n_clusters))
        weights[:, : self.n_own] = 1.0
        return weights

    def counts(self) -> Comparisons:
        """Of the rankings themselves."""
        wins, ties = self.sums.of(self.own_weights())[0]
        return Comparisons(wins, ties)

    @property
    def is_separated(self) -> bool:
        """Whether some group of candidates never lost a point to the rest."""
        return is_separated(self.counts())


def borda_rule(pairs: PairwiseTable) -> RankingRule:
    """Mean share of the Borda points a ranking could give, 0 to 1 (Borda 1781).

    A ranking of m candidates gives its best one m - 1 of m - 1 points, and its last none; ties
    share. Rankings count by their weight, however many candidates they hold.
    """
    rankings = pairs.rankings
    present, size = rankings.present, rankings.present.sum(axis=1)
    share = _points(pairs) / (size - 1)[:, None]
    return RankingRule(_ratio(rankings, share, present, rankings.clusters, rankings.weights))


def _points(pairs: PairwiseTable) -> Floats:
    """Candidates of the ranking that are beaten, and half of those tied, (R, K)."""
    outcomes, shape = pairs.outcomes, pairs.rankings.ranks.shape
    half = np.where(outcomes.tied, 0.5, 0.0)
    cell = outcomes.ranking * shape[1]
    cells = shape[0] * shape[1]
    first = np.bincount(cell + outcomes.first, 1 - half, cells)
    second = np.bincount(cell + outcomes.second, half, cells)
    return np.asarray(first + second, dtype=np.float64).reshape(shape)


def majority_rule(pairs: PairwiseTable) -> RankingRule:
    """Share of the items in which a candidate has most first places; level ones share the item.

    With two candidates, the majority of the judges decides each item.
    """
    rankings = pairs.rankings
    first = np.where(rankings.present, rankings.ranks, np.inf)
    top = first == first.min(axis=1, keepdims=True)
    n_items = int(rankings.items.max()) + 1
    votes = np.zeros((n_items, rankings.n_candidates))
    np.add.at(
        votes, rankings.items, top / top.sum(axis=1, keepdims=True) * rankings.weights[:, None]
    )
    present = np.zeros(votes.shape, dtype=bool)
    np.logical_or.at(present, rankings.items, rankings.present & (rankings.weights > 0)[:, None])
    cluster = np.zeros(n_items, dtype=np.intp)
    cluster[rankings.items] = rankings.clusters
    return RankingRule(
        _ratio(rankings, share_among_best(votes), present, cluster, np.ones(n_items))
    )


def _ratio(
    rankings: RankingArray,
    value: Floats,
    present: NDArray[np.bool_],
    clusters: NDArray[np.intp],
    weights: Floats,
) -> ScoreFunction:
    """Weighted mean of ``value`` (n, K) over the rows in which a candidate is seen."""
    k = rankings.n_candidates
    row, candidate = np.nonzero(present)
    worth = weights[row]
    cell = np.concatenate([candidate, k + candidate])
    values = np.concatenate([value[row, candidate] * worth, worth])
    total = cluster_sums(cell, np.tile(clusters[row], 2), values, (2, k), rankings.n_clusters)

    def scores(cluster_weights: Floats) -> Floats:
        numerator, denominator = total.of(cluster_weights).swapaxes(0, 1)
        share: Floats = np.divide(
            numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0
        )
        return share

    return scores


def copeland_rule(pairs: PairwiseTable) -> RankingRule:
    """Pairwise victories, a level pair (or one that never met) half for both (Copeland 1951)."""
    return RankingRule(_rule_on_preferences(pairs, copeland_scores))


def schulze_rule(pairs: PairwiseTable) -> RankingRule:
    """Candidates beaten by the strongest path of majorities (Schulze 2011)."""
    return RankingRule(_rule_on_preferences(pairs, schulze_scores))


def kemeny_rule(pairs: PairwiseTable) -> RankingRule:
    """Candidates that stand below in the order that contradicts least (Kemeny 1959), exactly.

    Raises:
        StatisticsError: more than 16 candidates.
    """
    if pairs.rankings.n_candidates > MOST_CANDIDATES:
        raise StatisticsError(
            f"exact to {MOST_CANDIDATES} candidates, and there are {pairs.rankings.n_candidates};"
            " schulze needs no search and keeps the Condorcet winner first as well"
        )
    return RankingRule(_rule_on_preferences(pairs, kemeny_scores))


def _rule_on_preferences(pairs: PairwiseTable, rule: ScoreFunction) -> ScoreFunction:
    """A rule on the tables of preferences (B, K, K), a tie being half a preference either way."""

    def scores(weights: Floats) -> Floats:
        table = pairs.sums.of(weights)
        return np.where(_has_games(table), rule(table[:, 0] + table[:, 1] / 2), np.nan)

    return scores


def _has_games(table: Floats) -> NDArray[np.bool_]:
    """Which candidates have a game of positive weight, (B, K)."""
    games = table[:, 0] + table[:, 0].swapaxes(1, 2) + table[:, 1]
    return np.asarray(games.sum(axis=2) > 0)


def bradley_terry_rule(pairs: PairwiseTable) -> RankingRule:
    """Log strength against the candidates' mean, ties by Davidson, half a game of prior each."""
    return _fit_to_pairs(pairs, davidson=bool(pairs.counts().ties.any()))


def _fit_to_pairs(pairs: PairwiseTable, *, davidson: bool) -> RankingRule:
    fit = bradley_terry(pairs.counts(), ties="davidson" if davidson else "half")
    start = np.append(fit.theta, np.log(fit.nu) if davidson else 0.0)

    def scores(weights: Floats) -> Floats:
        table = pairs.sums.of(weights)
        theta = refit_strengths(table[:, 0], table[:, 1], start, davidson=davidson)
        return _centre(np.where(_has_games(table), theta, np.nan))

    tie = fit.nu if davidson else None
    summary = RuleFit(fit.converged, fit.n_iter, fit.residual, tie, fit.is_separated)
    return RankingRule(_in_parts(scores, 4 * pairs.rankings.n_candidates**2), FIT_SLACK, summary)


def plackett_luce_rule(pairs: PairwiseTable) -> RankingRule:
    """Log strength against the candidates' mean, from whole rankings, half a game of prior each.

    A tie counts as each of the orders it stands for. Where every ranking is a pair it is the
    Bradley-Terry model with a tie as half a win.

    Raises:
        StatisticsError: a ranking whose ties stand for more than 720 orders.
    """
    if pairs.rankings.present.sum(axis=1).max() == 2:
        return _fit_to_pairs(pairs, davidson=False)
    rankings = pairs.rankings
    k, choices = rankings.n_candidates, ranking_choices(rankings.ranks)
    total = cluster_sums(
        choices.set_index * k + choices.candidate,
        rankings.clusters[choices.ranking],
        choices.share * rankings.weights[choices.ranking],
        choices.choice_sets.shape,
        rankings.n_clusters,
    )
    counts = total.of(pairs.own_weights())[0]
    # Sets that only twins chose from take no part in the fit itself.
    has_choices = counts.sum(axis=1) > 0
    fit = plackett_luce(ChoiceCounts(choices.choice_sets[has_choices], counts[has_choices]))

    def scores(weights: Floats) -> Floats:
        theta = refit_luce_strengths(choices.choice_sets, total.of(weights), fit.theta)
        return _centre(np.where(_has_games(pairs.sums.of(weights)), theta, np.nan))

    summary = RuleFit(fit.converged, fit.n_iter, fit.residual, None, pairs.is_separated)
    return RankingRule(_in_parts(scores, choices.choice_sets.size * 2), FIT_SLACK, summary)


def _centre(theta: Floats) -> Floats:
    """Strengths minus the mean of the candidates present, (B, K)."""
    present = ~np.isnan(theta)
    mean = np.where(present, theta, 0.0).sum(axis=1) / np.maximum(1, present.sum(axis=1))
    differences: Floats = theta - mean[:, None]
    return differences


def _in_parts(scores: ScoreFunction, size: int) -> ScoreFunction:
    """The same scores, computed for a few replicates at a time; each needs ``size`` cells of memory."""
    step = max(1, _CELLS // size)

    def parts(weights: Floats) -> Floats:
        rows = [scores(weights[at : at + step]) for at in range(0, len(weights), step)]
        return np.concatenate(rows)

    return parts


RANKING_RULES: dict[str, Callable[[PairwiseTable], RankingRule]] = {
    "borda": borda_rule,
    "majority": majority_rule,
    "weighted-majority": majority_rule,
    "copeland": copeland_rule,
    "schulze": schulze_rule,
    "kemeny": kemeny_rule,
    "bradley-terry": bradley_terry_rule,
    "plackett-luce": plackett_luce_rule,
}
"""By name; a weighted majority is the majority of rankings with other weights."""
