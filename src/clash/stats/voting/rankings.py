"""Rankings over K candidates, and sums over them as functions of the weights of clusters.

Every rule of this package is a function of sums over rankings. Such a sum is linear in the weights
of the clusters (items, prompts), so the sums of a thousand bootstrap replicates are one product.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


@dataclass(frozen=True, slots=True)
class RankingArray:
    """R rankings over K candidates; make one by :func:`rankings`.

    Attributes:
        ranks: (R, K), smaller is better, equal is tied; NaN was not there (it did not come last).
        weights: (R,), non-negative.
        judges: (R,) codes 0..J-1.
        items: (R,) codes: rankings of one item are the votes of one panel.
        clusters: (R,) codes 0..G-1: what is drawn together in a bootstrap.
        traits: (R, K, q) of the responses as they were shown, NaN not known; null where nobody
            asked for them.
    """

    ranks: Floats
    weights: Floats
    judges: Codes
    items: Codes
    clusters: Codes
    traits: Floats | None = None

    @property
    def n_candidates(self) -> int:
        """K."""
        return int(self.ranks.shape[1])

    @property
    def n_clusters(self) -> int:
        """G."""
        return int(self.clusters.max(initial=-1)) + 1

    @property
    def present(self) -> NDArray[np.bool_]:
        """(R, K), which candidates each ranking holds."""
        return ~np.isnan(self.ranks)

    def with_judge_weights(self, judge_weights: Floats) -> RankingArray:
        """The rankings, each weighted by its judge's weight (J,); the total weight stays the same."""
        weights = self.weights * judge_weights[self.judges]
        total = weights.sum()
        return replace(self, weights=weights * (self.weights.sum() / total if total else 1.0))


def ranking_array(
    ranks: ArrayLike,
    weights: ArrayLike | None = None,
    judges: ArrayLike | None = None,
    items: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    traits: Floats | None = None,
) -> RankingArray:
    """Check rankings and drop those that order nothing: fewer than two candidates, or weight 0.

    Args:
        ranks: (R, K), smaller is better, equal is tied, NaN is not there.
        weights: (R,), non-negative; 1 each where not given.
        judges: (R,), codes; all of one judge where not given.
        items: (R,), any codes; each ranking its own where not given.
        clusters: (R,), any codes; the items where not given.
        traits: (R, K, q), of the responses.

    Raises:
        StatisticsError: not (R, K) with K >= 2, shapes that differ, bad weights, or no ranking.
    """
    table = np.asarray(ranks, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise StatisticsError(f"ranks of shape {table.shape}: expected (R, K) with K >= 2")
    worth = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=float)
    if worth.shape != (len(table),) or not np.all(np.isfinite(worth) & (worth >= 0)):
        raise StatisticsError(f"expected {len(table)} finite weights >= 0, one for each ranking")
    judge = np.zeros(len(table), dtype=np.intp) if judges is None else np.asarray(judges)
    item = np.arange(len(table)) if items is None else np.asarray(items)
    cluster = item if clusters is None else np.asarray(clusters)
    if not judge.shape == item.shape == cluster.shape == worth.shape:
        raise StatisticsError("judges, items and clusters have a code for each ranking")
    useful = (np.sum(~np.isnan(table), axis=1) > 1) & (worth > 0)
    if not useful.any():
        raise StatisticsError("no ranking orders two candidates")
    # All are, as a rule; a slice is no copy.
    rows = slice(None) if useful.all() else useful
    return RankingArray(
        table[rows],
        worth[rows],
        judge[rows].astype(np.intp),
        _dense(item[rows]),
        _dense(cluster[rows]),
        None if traits is None else traits[rows],
    )


def _dense(codes: NDArray[Any]) -> Codes:
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)


@dataclass(frozen=True, slots=True)
class PairwiseOutcomes:
    """The outcome of every pair of candidates in every ranking (a ballot each), n in all.

    Attributes:
        first: (n,), who is not behind; ``second`` the other.
        tied: (n,), whether they are level.
        ranking: (n,), the row of the ranking.
    """

    first: Codes
    second: Codes
    tied: NDArray[np.bool_]
    ranking: Codes


def pairwise_outcomes(rankings: RankingArray) -> PairwiseOutcomes:
    """The outcomes of all rankings; work grows with the pairs ranked, not with K squared."""
    parts = [
        part
        for rows, members in _group_by_size(rankings.present)
        for part in _outcomes_of_size(rankings, rows, members)
    ]
    return PairwiseOutcomes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _group_by_size(present: NDArray[np.bool_]) -> Iterator[tuple[Codes, Codes]]:
    """Rankings of equally many candidates m: their rows (n,), and their candidates (n, m)."""
    size = present.sum(axis=1)
    for m in np.unique(size).tolist():
        rows = np.flatnonzero(size == m)
        yield rows, np.nonzero(present[rows])[1].reshape(len(rows), m)


def _outcomes_of_size(
    rankings: RankingArray, rows: Codes, members: Codes
) -> Iterator[tuple[NDArray[Any], ...]]:
    ranks = np.take_along_axis(rankings.ranks[rows], members, axis=1)
    for i, j in combinations(range(members.shape[1]), 2):
        behind = ranks[:, i] > ranks[:, j]
        left, right = members[:, i], members[:, j]
        yield (
            np.where(behind, right, left),
            np.where(behind, left, right),
            ranks[:, i] == ranks[:, j],
            rows,
        )


@dataclass(frozen=True)
class ClusterSums:
    """Weighted sums over rankings, by cell.

    Attributes:
        matrix: sparse (cells, G): what each cluster adds to each cell.
        shape: of the cells.
    """

    matrix: Any
    shape: tuple[int, ...]

    def of(self, weights: Floats) -> Floats:
        """The sums, shape (B, *shape), where the clusters have the weights (B, G)."""
        total: Floats = np.asarray(self.matrix @ weights.T, dtype=float).T
        return np.ascontiguousarray(total).reshape(len(weights), *self.shape)


def cluster_sums(
    cell: ArrayLike, cluster: ArrayLike, value: ArrayLike, shape: tuple[int, ...], n_clusters: int
) -> ClusterSums:
    """Sums of ``value`` by ``cell`` (flat indices into ``shape``) and cluster; all (n,)."""
    from scipy.sparse import csr_array

    size = int(np.prod(shape))
    index = (np.asarray(cell), np.asarray(cluster))
    matrix = csr_array((np.asarray(value, dtype=float), index), shape=(size, n_clusters))
    matrix.sum_duplicates()
    return ClusterSums(matrix, shape)


def with_twins(rankings: RankingArray, n: int, rng: np.random.Generator) -> RankingArray:
    """The rankings, followed by ``n`` twins: random clusters with the candidates' names shuffled.

    A twin has as many judges, as much agreement and as many ties as its cluster, but no candidate is
    better than another.

    Returns:
        Clusters 0..G-1 are the given ones, G..G+n-1 the twins.
    """
    order = np.argsort(rankings.clusters, kind="stable")
    starts = np.searchsorted(rankings.clusters[order], np.arange(rankings.n_clusters + 1))
    clusters = rng.integers(rankings.n_clusters, size=n)
    cluster_rows = [order[starts[c] : starts[c + 1]] for c in clusters.tolist()]
    ranks = np.concatenate(
        [_permute_candidates(rankings.ranks[rows], rng) for rows in cluster_rows]
    )
    sources = np.concatenate(cluster_rows)
    twin = np.repeat(np.arange(n), [len(rows) for rows in cluster_rows])
    items = rankings.items[sources] + (twin + 1) * (rankings.items.max() + 1)
    return RankingArray(
        np.concatenate([rankings.ranks, ranks]),
        np.concatenate([rankings.weights, rankings.weights[sources]]),
        np.concatenate([rankings.judges, rankings.judges[sources]]),
        _dense(np.concatenate([rankings.items, items])),
        np.concatenate([rankings.clusters, rankings.n_clusters + twin]),
    )


def _permute_candidates(ranks: Floats, rng: np.random.Generator) -> Floats:
    members = np.flatnonzero(~np.isnan(ranks).all(axis=0))
    twin = ranks.copy()
    twin[:, members] = ranks[:, rng.permutation(members)]
    return twin
