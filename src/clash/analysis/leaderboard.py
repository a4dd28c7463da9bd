"""Who did how well: points, wins and pairs of candidates, with intervals clustered by prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.stats import hypothesis_tests as tests
from clash.stats.intervals import Interval, mean_clustered, wilson_clustered
from clash.stats.resample import cluster_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.stats.typing import Floats


REPLICATES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard.

    Attributes:
        items: items it was to answer, those without a verdict and without its response included.
        judged: items with a verdict on its response.
        points: mean share of the Borda points it could get, 0 to 1; 0.5 is the middle.
        wins: verdicts it won; ``ties`` those it shares the top of; ``losses`` the rest.
        best: share of bootstrap replicates in which it has the most points.
        win_rate: wins out of all items it was to answer: an item without a verdict is no win.
        corrected: the same as people would give it, by labels and verdicts together; null where
            labels do not suffice.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_judged": "judged", "corrected_rate": "corrected"}

    candidate: str
    items: int
    n_judged: int
    points: Interval | None
    wins: int
    ties: int
    losses: int
    best: float | None
    win_rate: Interval
    corrected_rate: Interval | None = None


@dataclass(frozen=True)
class Duel:
    """Two candidates on the items where both were judged.

    Attributes:
        share: wins of the first, a tie counting half.
        p: exact sign test over decisive items where every item is its own cluster; else the
            permutation test that flips the signs of whole clusters.
        p_holm: ``p`` corrected for looking at all pairs.
        difference: of the mean shares of points, first minus second.
    """

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    share: Interval
    difference: Interval
    p: float
    test: str
    p_holm: float = 1.0


def points_table(run: RunData) -> Floats:
    """Share of the points by item and candidate, shape (N, K); NaN where not judged."""
    column = {name: index for index, name in enumerate(run.candidates)}
    table = np.full((len(run.items), len(column)), np.nan)
    for row, verdict in enumerate(run.verdicts):
        if verdict.ranking is None:
            continue
        scores = np.array(list(verdict.scores.values()))
        # The points of one judge add up to K (K - 1) / 2, so their total tells the weight.
        greatest = scores.sum() * 2 / len(scores)
        for name, score in verdict.scores.items():
            table[row, column[name]] = score / greatest
    return table


def standings(run: RunData) -> list[Standing]:
    """The leaderboard, best first."""
    table = points_table(run)
    clusters = np.array([run.clusters[item.item_id] for item in run.items])
    intervals, best = _points(table, clusters, run.manifest.seeds.get("seed", 0))
    rows = [
        _standing(run, name, intervals[k], best[k], clusters, table[:, k])
        for k, name in enumerate(run.candidates)
    ]
    return sorted(
        rows, key=lambda row: (-(row.points.estimate if row.points else -1), row.candidate)
    )


def _points(
    table: Floats, clusters: NDArray[np.intp], seed: int
) -> tuple[list[Interval | None], list[float | None]]:
    """Mean points with bootstrap intervals, and how often each is best."""
    n_candidates = table.shape[1]
    intervals = [_unsure(table[:, k]) for k in range(n_candidates)]
    best: list[float | None] = [None] * n_candidates
    known = np.flatnonzero((~np.isnan(table)).any(axis=0))
    if len(known) == 0 or len(np.unique(clusters)) < 2:
        return intervals, best  # of one prompt a mean exists, its spread does not
    replicates = _replicates(table[:, known], clusters, seed)
    share = _chances(replicates)
    for place, k in enumerate(known):
        best[k] = None if share is None else float(share[place])
        if len(np.unique(clusters[~np.isnan(table[:, k])])) > 1:
            intervals[k] = _spread(table[:, k], clusters, replicates[:, place])
    return intervals, best


def _replicates(table: Floats, clusters: NDArray[np.intp], seed: int) -> Floats:
    """Mean points, shape (B, K), when prompts are drawn anew; NaN where none of them was judged."""
    seen, judged = np.nan_to_num(table), (~np.isnan(table)).astype(float)
    found = []
    for weights in cluster_weights(clusters, np.random.default_rng(seed), REPLICATES):
        total = weights @ judged
        blank = np.full(total.shape, np.nan)
        found.append(np.divide(weights @ seen, total, out=blank, where=total > 0))
    return np.concatenate(found)


def _spread(column: Floats, clusters: NDArray[np.intp], replicates: Floats) -> Interval:
    """The interval of one candidate, over the replicates in which it was judged."""
    mine = ~np.isnan(column)
    low, high = np.quantile(replicates[~np.isnan(replicates)], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(
        float(column[mine].mean()),
        float(low),
        float(high),
        LEVEL,
        int(mine.sum()),
        float(len(np.unique(clusters[mine]))),
        "bootstrap over clusters, percentile",
    )


def _chances(replicates: Floats) -> Floats | None:
    """How often each is best, ties shared, where all were judged in most replicates."""
    whole = replicates[~np.isnan(replicates).any(axis=1)]
    if len(whole) < len(replicates) / 2:
        return None
    top = np.isclose(whole, whole.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
    share: Floats = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return share


def _unsure(column: Floats) -> Interval | None:
    """A mean that nothing is known about: one cluster shows no variation."""
    known = column[~np.isnan(column)]
    if not len(known):
        return None
    mean = float(known.mean())
    return Interval(mean, 0.0, 1.0, 0.95, len(known), 1.0, "none: fewer than two prompts")


def _standing(
    run: RunData,
    name: str,
    points: Interval | None,
    best: float | None,
    clusters: NDArray[np.intp],
    column: Floats,
) -> Standing:
    asked = {r.item_id for r in run.responses if r.candidate == name}
    mine = np.array([item.item_id in asked for item in run.items])
    won = np.array([verdict.winner == name for verdict in run.verdicts])
    tied = [v for v in run.verdicts if v.ranking and v.winner is None and name in v.ranking[0]]
    judged = int((~np.isnan(column)).sum())
    return Standing(
        candidate=name,
        items=int(mine.sum()),
        n_judged=judged,
        points=points,
        wins=int(won.sum()),
        ties=len(tied),
        losses=judged - int(won.sum()) - len(tied),
        best=best,
        win_rate=wilson_clustered(won[mine].astype(float), clusters[mine]),
    )


def duels(run: RunData, order: Sequence[str]) -> list[Duel]:
    """Every pair of candidates that met, the better placed one first."""
    table = points_table(run)
    column = {name: index for index, name in enumerate(run.candidates)}
    clusters = np.array([run.clusters[item.item_id] for item in run.items])
    seed = run.manifest.seeds.get("seed", 0)
    found = []
    for first, second in combinations(order, 2):
        a, b = table[:, column[first]], table[:, column[second]]
        met = ~np.isnan(a) & ~np.isnan(b)
        if met.any():
            found.append(_duel(first, second, a[met], b[met], clusters[met], seed))
    return _correct_p_values(found)


def _duel(
    first: str, second: str, a: Floats, b: Floats, clusters: NDArray[np.intp], seed: int
) -> Duel:
    # Sums of weights that should be equal may differ by rounding.
    lead = np.where(np.isclose(a, b), 0.0, a - b)
    sign = np.sign(lead)
    wins, ties, losses = (int((sign == s).sum()) for s in (1, 0, -1))
    difference = mean_clustered(lead, clusters)
    share = wilson_clustered((sign + 1) / 2, clusters)
    if len(np.unique(clusters)) == len(clusters):
        p, test = tests.sign_test(wins, losses).p, "sign test"
    else:
        rng = np.random.default_rng(seed)
        found = tests.sign_flip_test(sign, np.zeros_like(sign), clusters, rng)
        p, test = found.p, found.method
    return Duel(first, second, wins, ties, losses, share, difference, p, test)


def _correct_p_values(found: list[Duel]) -> list[Duel]:
    if not found:
        return []
    adjusted = tests.holm(np.array([duel.p for duel in found]))
    return [replace(d, p_holm=float(p)) for d, p in zip(found, adjusted, strict=True)]
