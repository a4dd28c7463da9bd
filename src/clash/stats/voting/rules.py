"""Every ranking rule as a score of the candidates that is a function of the clusters' weights.

A larger score is better. A score is NaN where the candidate stands on no ballot of any weight: of
a candidate that was not there, nothing is known.
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
    refit_strengths,
    separated,
)
from clash.stats.voting.condorcet import copeland_scores, margins, schulze_scores
from clash.stats.voting.kemeny import MOST_CANDIDATES, kemeny_scores
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
"""Strengths that differ by less are equal: a fit stops somewhere."""
_CELLS = 1 << 21


@dataclass(frozen=True)
class RuleFit:
    """How an iterative rule ended on the ballots themselves.

    Attributes:
        residual: largest difference of observed and expected wins.
        tie: Davidson's tie parameter; null where ties are not modelled.
        separated: some group never lost a point to the rest; the prior alone keeps it finite.
    """

    converged: bool
    n_iter: int
    residual: float
    tie: float | None = None
    separated: bool = False


@dataclass(frozen=True)
class RankingRule:
    """A rule on given ballots.

    Attributes:
        scores: of the candidates, by the weights of the clusters.
        slack: scores that differ by less are equal.
        fit: of the ballots; null for a rule without one.
    """

    scores: ScoreFunction
    slack: float = 1e-9
    fit: RuleFit | None = None


@dataclass(frozen=True)
class PairwiseTable:
    """Wins and ties of every pair.

    Attributes:
        given: the ballots.
        duels: their pairs.
        sums: of shape (2, K, K): wins of the row, and ties, each in both directions.
        own: clusters of the ballots themselves, before any twins.
    """

    given: RankingArray
    duels: PairwiseOutcomes
    sums: ClusterSums
    own: int

    @classmethod
    def of(cls, given: RankingArray, own: int | None = None) -> PairwiseTable:
        """Count every pair of every ballot.

        Args:
            given: the ballots.
            own: leading clusters that are no twins; all where not given.
        """
        k, found = given.n_candidates, pairwise_outcomes(given)
        tied = found.tied
        there = found.first * k + found.second
        back = found.second * k + found.first
        cell = np.concatenate([there[~tied], k * k + there[tied], k * k + back[tied]])
        row = np.concatenate([found.ballot[~tied], found.ballot[tied], found.ballot[tied]])
        summed = cluster_sums(
            cell, given.clusters[row], given.weights[row], (2, k, k), given.n_clusters
        )
        return cls(given, found, summed, given.n_clusters if own is None else own)

    def itself(self) -> Floats:
        """Weights (1, G) that count every own cluster once and no twin."""
        weights = np.zeros((1, self.given.n_clusters))
        weights[:, : self.own] = 1.0
        return weights

    def counts(self) -> Comparisons:
        """Of the ballots themselves."""
        wins, ties = self.sums.of(self.itself())[0]
        return Comparisons(wins, ties)

    @property
    def separated(self) -> bool:
        """Whether some group of candidates never lost a point to the rest."""
        return separated(self.counts())


def borda_rule(tally: PairwiseTable) -> RankingRule:
    """Mean share of the Borda points a ballot could give, 0 to 1 (Borda 1781).

    A ballot of m candidates gives its best one m - 1 of m - 1 points, and its last none; ties
    share. Ballots count by their weight, whoever else stands on them.
    """
    given = tally.given
    seen, size = given.seen, given.seen.sum(axis=1)
    share = _points(tally) / (size - 1)[:, None]
    return RankingRule(_ratio(given, share, seen, given.clusters, given.weights))


def _points(tally: PairwiseTable) -> Floats:
    """Candidates of the ballot that are beaten, and half of those tied, (R, K)."""
    met, shape = tally.duels, tally.given.ranks.shape
    half = np.where(met.tied, 0.5, 0.0)
    cell = met.ballot * shape[1]
    cells = shape[0] * shape[1]
    first = np.bincount(cell + met.first, 1 - half, cells)
    second = np.bincount(cell + met.second, half, cells)
    return np.asarray(first + second, dtype=np.float64).reshape(shape)


def majority_rule(tally: PairwiseTable) -> RankingRule:
    """Share of the items in which a candidate has most first places; level ones share the item.

    With two candidates, the majority of the judges decides each item.
    """
    given = tally.given
    first = np.where(given.seen, given.ranks, np.inf)
    top = first == first.min(axis=1, keepdims=True)
    n_items = int(given.items.max()) + 1
    votes = np.zeros((n_items, given.n_candidates))
    np.add.at(votes, given.items, top / top.sum(axis=1, keepdims=True) * given.weights[:, None])
    here = np.zeros(votes.shape, dtype=bool)
    np.logical_or.at(here, given.items, given.seen & (given.weights > 0)[:, None])
    best = votes.max(axis=1, keepdims=True)
    won = (votes >= best - 1e-9 * np.maximum(1.0, best)) & (best > 0)
    share = won / np.maximum(1, won.sum(axis=1, keepdims=True))
    cluster = np.zeros(n_items, dtype=np.intp)
    cluster[given.items] = given.clusters
    return RankingRule(_ratio(given, share, here, cluster, np.ones(n_items)))


def _ratio(
    given: RankingArray,
    value: Floats,
    seen: NDArray[np.bool_],
    clusters: NDArray[np.intp],
    weights: Floats,
) -> ScoreFunction:
    """Weighted mean of ``value`` (n, K) over the rows in which a candidate is seen."""
    k = given.n_candidates
    row, who = np.nonzero(seen)
    worth = weights[row]
    cell = np.concatenate([who, k + who])
    both = np.concatenate([value[row, who] * worth, worth])
    total = cluster_sums(cell, np.tile(clusters[row], 2), both, (2, k), given.n_clusters)

    def scores(cluster_weights: Floats) -> Floats:
        won, of = total.of(cluster_weights).swapaxes(0, 1)
        share: Floats = np.divide(won, of, out=np.full(won.shape, np.nan), where=of > 0)
        return share

    return scores


def copeland_rule(tally: PairwiseTable) -> RankingRule:
    """Pairwise victories, a level pair (or one that never met) half for both (Copeland 1951)."""
    return RankingRule(_paired(tally, lambda d: copeland_scores(margins(d))))


def schulze_rule(tally: PairwiseTable) -> RankingRule:
    """Candidates beaten by the strongest path of majorities (Schulze 2011)."""
    return RankingRule(_paired(tally, schulze_scores))


def kemeny_rule(tally: PairwiseTable) -> RankingRule:
    """Candidates that stand below in the order that contradicts least (Kemeny 1959), exactly.

    Raises:
        StatisticsError: more than 16 candidates.
    """
    if tally.given.n_candidates > MOST_CANDIDATES:
        raise StatisticsError(
            f"exact to {MOST_CANDIDATES} candidates, and there are {tally.given.n_candidates};"
            " schulze needs no search and keeps the Condorcet winner first as well"
        )
    return RankingRule(_paired(tally, kemeny_scores))


def _paired(tally: PairwiseTable, rule: ScoreFunction) -> ScoreFunction:
    """A rule on who prefers whom, (B, K, K), a tie being half a preference either way."""

    def scores(weights: Floats) -> Floats:
        table = tally.sums.of(weights)
        found = rule(table[:, 0] + table[:, 1] / 2)
        return np.where(_played(table), found, np.nan)

    return scores


def _played(table: Floats) -> NDArray[np.bool_]:
    """Who stands on a ballot of any weight, (B, K)."""
    games = table[:, 0] + table[:, 0].swapaxes(1, 2) + table[:, 1]
    return np.asarray(games.sum(axis=2) > 0)


def bradley_terry_rule(tally: PairwiseTable) -> RankingRule:
    """Log strength against the candidates' mean, ties by Davidson, half a game of prior each."""
    return _fitted_to_pairs(tally, davidson=bool(tally.counts().ties.any()))


def _fitted_to_pairs(tally: PairwiseTable, *, davidson: bool) -> RankingRule:
    own = bradley_terry(tally.counts(), ties="davidson" if davidson else "half")
    start = np.append(own.theta, np.log(own.nu) if davidson else 0.0)

    def scores(weights: Floats) -> Floats:
        table = tally.sums.of(weights)
        theta = refit_strengths(table[:, 0], table[:, 1], start, davidson=davidson)
        return _centred(np.where(_played(table), theta, np.nan))

    tie = own.nu if davidson else None
    fit = RuleFit(own.converged, own.n_iter, own.residual, tie, own.is_separated)
    return RankingRule(_in_parts(scores, 4 * tally.given.n_candidates**2), FIT_SLACK, fit)


def plackett_luce_rule(tally: PairwiseTable) -> RankingRule:
    """Log strength against the candidates' mean, from whole rankings, half a game of prior each.

    A tie counts as each of the orders it stands for. Where every ballot is a pair it is the
    Bradley-Terry model with a tie as half a win.

    Raises:
        StatisticsError: a ballot whose ties stand for more than 720 orders.
    """
    if tally.given.seen.sum(axis=1).max() == 2:
        return _fitted_to_pairs(tally, davidson=False)
    given = tally.given
    k, found = given.n_candidates, ranking_choices(given.ranks)
    total = cluster_sums(
        found.at * k + found.chosen,
        given.clusters[found.ranking],
        found.share * given.weights[found.ranking],
        found.left.shape,
        given.n_clusters,
    )
    chosen = total.of(tally.itself())[0]
    # Sets that only twins chose from take no part in the fit itself.
    used = chosen.sum(axis=1) > 0
    own = plackett_luce(ChoiceCounts(found.left[used], chosen[used]))

    def scores(weights: Floats) -> Floats:
        theta = refit_luce_strengths(found.left, total.of(weights), own.theta)
        return _centred(np.where(_played(tally.sums.of(weights)), theta, np.nan))

    fit = RuleFit(own.converged, own.n_iter, own.residual, None, tally.separated)
    return RankingRule(_in_parts(scores, found.left.size * 2), FIT_SLACK, fit)


def _centred(theta: Floats) -> Floats:
    """Against the mean of those who were there, (B, K)."""
    seen = ~np.isnan(theta)
    mean = np.where(seen, theta, 0.0).sum(axis=1) / np.maximum(1, seen.sum(axis=1))
    centred: Floats = theta - mean[:, None]
    return centred


def _in_parts(scores: ScoreFunction, size: int) -> ScoreFunction:
    """The same with few replicates at a time, each of which needs ``size`` cells."""
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
"""By name; a weighted majority is the majority of ballots with other weights."""
