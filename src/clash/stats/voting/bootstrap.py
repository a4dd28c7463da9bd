"""Uncertainty of a ranking: a bootstrap over clusters that allows for how few there are.

Whole clusters (items, prompts) are drawn, so judges that err together on an item are drawn
together. A plain bootstrap fails where nothing varies: if one candidate won all five items, it wins
every replicate, and a candidate that never won never wins one. So a replicate of G clusters
holds, on average, ``doubt * G / (G + doubt)`` of their *twins*, in which the names of the candidates
are shuffled: as if there were ``doubt`` more items whose outcome is random. That is the bootstrap of a Dirichlet process with that prior (Ferguson 1973; Muliere,
Secchi 1996); for a share of two candidates, doubt = 2 is about a uniform prior on it, whose
interval covers at 0 of n and at n of n too. Its pull to the middle is of the order 1 / G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.voting.condorcet import places

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from clash.stats.typing import Floats
    from clash.stats.voting.rules import RankingRule

    Counts = NDArray[np.uint16]

DOUBT = 2.0
TWINS = 400
"""Number of twins that replicates draw from; a replicate holds about two."""
_CELLS = 1 << 21


def draw(
    n_clusters: int, n_twins: int, n: int, rng: np.random.Generator, doubt: float = DOUBT
) -> Counts:
    """How often n replicates hold each cluster and, after them, each twin, (n, G + twins).

    Counts are 16-bit, to hold a thousand replicates of a hundred thousand items.

    Raises:
        StatisticsError: fewer than two clusters, which show no variation.
    """
    if n_clusters < 2:
        raise StatisticsError(
            f"{n_clusters} cluster(s): a bootstrap over clusters needs at least two"
        )
    step = max(1, _CELLS // (n_clusters + n_twins))
    parts = [
        _draw_part(n_clusters, n_twins, min(step, n - at), rng, doubt) for at in range(0, n, step)
    ]
    empty = np.zeros((0, n_clusters + n_twins), dtype=np.uint16)
    return np.concatenate([empty, *parts])


def _draw_part(
    n_clusters: int, n_twins: int, n: int, rng: np.random.Generator, doubt: float
) -> Counts:
    """Some of the replicates: how many twins each holds, then which clusters and which twins."""
    width = n_clusters + n_twins
    twins = rng.binomial(n_clusters, doubt / (n_clusters + doubt), size=n)
    first_cell = np.arange(n) * width
    cluster_cells = np.repeat(first_cell, n_clusters - twins) + rng.integers(
        n_clusters, size=int((n_clusters - twins).sum())
    )
    twin_cells = np.repeat(first_cell + n_clusters, twins) + rng.integers(
        max(1, n_twins), size=int(twins.sum())
    )
    counts = np.bincount(cluster_cells, minlength=n * width) + np.bincount(
        twin_cells, minlength=n * width
    )
    return counts.reshape(n, width).astype(np.uint16)


@dataclass(frozen=True, slots=True)
class RuleReplicates:
    """A rule on the replicates.

    Attributes:
        scores: (B, K); NaN where a candidate was not drawn.
        places: (B, K), 1 is best; 0 where it was not drawn.
        n_failed: replicates in which the rule's fit did not converge; they are left out.
    """

    scores: Floats
    places: NDArray[np.intp]
    n_failed: int

    def score_interval(self, level: float) -> tuple[Floats, Floats]:
        """Percentiles of the scores, low and high, (K,) each, where a candidate was drawn."""
        return _quantiles(self.scores, level, "linear")

    def first(self) -> Floats:
        """How often each is first, ties shared, (K,); adds up to 1."""
        top = self.places == 1
        share: Floats = (top / np.maximum(1, top.sum(axis=1, keepdims=True))).mean(axis=0)
        return share

    def ahead(self) -> Floats:
        """How often the row is placed before the column, a shared place half, (K, K).

        Over the replicates that hold both; NaN where none does.
        """
        k = self.places.shape[1]
        share = np.full((k, k), np.nan)
        for i in range(k):
            own_place = self.places[:, i : i + 1]
            common = (own_place > 0) & (self.places > 0)
            points = ((own_place < self.places) + 0.5 * (own_place == self.places)) * common
            n = common.sum(axis=0)
            share[i] = np.divide(points.sum(axis=0), n, out=share[i], where=n > 0)
        return share


def _quantiles(values: Floats, level: float, method: str) -> tuple[Floats, Floats]:
    tails = [(1 - level) / 2, (1 + level) / 2]
    columns = [column[~np.isnan(column)] for column in values.T]
    bounds = np.array(
        [
            np.quantile(c, tails, method=method) if len(c) else [np.nan, np.nan]  # type: ignore[call-overload]
            for c in columns
        ]
    )
    return bounds[:, 0], bounds[:, 1]


def replicate(rule: RankingRule, weights: Counts) -> RuleReplicates:
    """A rule's scores and places on every replicate.

    Args:
        rule: of :mod:`clash.stats.voting.rules`.
        weights: (B, G), see :func:`draw`.
    """
    scores = np.concatenate([rule.scores(part) for part in _parts(weights)])
    complete = ~np.isnan(scores).all(axis=1)
    usable = scores[complete]
    return RuleReplicates(usable, places(usable, rule.slack), int((~complete).sum()))


def _parts(weights: Counts) -> Iterator[Floats]:
    step = max(1, _CELLS // weights.shape[1])
    for at in range(0, len(weights), step):
        yield weights[at : at + step].astype(float)
