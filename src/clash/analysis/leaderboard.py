"""Who did how well: win rates, wins and pairs of candidates, with intervals clustered by prompt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.win_rates import WinRates, pair_outcomes, win_rates
from clash.stats import hypothesis_tests as tests
from clash.stats.intervals import Interval, mean_clustered, wilson_clustered
from clash.stats.resample import cluster_weights

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.analysis.win_rates import PairOutcomes
    from clash.records import Groups, Verdict
    from clash.stats.typing import Floats


REPLICATES = 2000
LEVEL = 0.95


@dataclass(frozen=True)
class Standing:
    """One line of the leaderboard.

    Attributes:
        items: items it was to answer, those without a verdict and without its response included.
        n_judged: items with a verdict on its response.
        points: mean share of the Borda points it could get, 0 to 1; 0.5 is the middle. Where
            another method decides, of the candidates that the verdicts place it above.
        wins: verdicts it won; ``ties`` those it shares the top of; ``losses`` the rest.
        best: share of bootstrap replicates in which it has the most points.
        win_rate: verdicts it won alone, out of all items it was to answer: a tie, or an item
            without a verdict, is no win.
        corrected_rate: the same as people would give it, by labels and verdicts together; null where
            labels do not suffice.
        win_rate_ties_half: what reports call the win rate: the share of comparisons that it wins,
            ties counting half, as the mean over its opponents; null where it was never judged
            beside another. The leaderboard is in this order.
        people_win_rate: how often people would prefer it to another, ties counting half, by labels and
            verdicts together; null where labels do not suffice.
        by_strengths: the candidates answered different items, so that ``win_rate_ties_half`` is
            what Bradley-Terry strengths expect against all the others.
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
    win_rate_ties_half: Interval | None = None
    by_strengths: bool = False
    people_win_rate: Interval | None = None


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

    def seen_from(self, candidate: str) -> Duel:
        """The same comparison with one of the two candidates as the first."""
        if self.first == candidate:
            return self
        return replace(
            self,
            first=self.second,
            second=self.first,
            wins=self.losses,
            losses=self.wins,
            share=self.share.complement(),
            difference=self.difference.negative(),
        )


def points_table(run: RunData) -> Floats:
    """Share of the points by item and candidate, shape (N, K); NaN where there is no verdict."""
    column = {name: index for index, name in enumerate(run.candidates)}
    table = np.full((len(run.items), len(column)), np.nan)
    for row, verdict in enumerate(run.verdicts):
        if verdict.ranking is None:
            continue
        for name, share in _point_shares(verdict).items():
            table[row, column[name]] = share
    return table


def _point_shares(verdict: Verdict) -> dict[str, float]:
    """The share of the points of each candidate, 0 to 1.

    By Borda count they are the judges'. A verdict by another method has one ranking: each candidate
    has the share of the others that it is placed above, a tie counting half.
    """
    if verdict.borda is None or verdict.ranking is None:
        scores = np.array(list(verdict.scores.values()))
        # The points of one judge add up to K (K - 1) / 2, so their total tells the weight.
        greatest = scores.sum() * 2 / len(scores)
        return {name: score / greatest for name, score in verdict.scores.items()}
    return placed_above(verdict.ranking)


def placed_above(ranking: Groups) -> dict[str, float]:
    """The share of the others that each candidate of a ranking is placed above, a tie half."""
    points = borda_by_name(ranking)
    return {name: value / (len(points) - 1) for name, value in points.items()}


def borda_by_name(ranking: Groups) -> dict[str, float]:
    """How many others each name of a ranking is placed above, a tie half."""
    below = sum(len(group) for group in ranking)
    points: dict[str, float] = {}
    for group in ranking:
        below -= len(group)
        points |= dict.fromkeys(group, below + (len(group) - 1) / 2)
    return points


def standings(run: RunData) -> list[Standing]:
    """The leaderboard, best first by win rate; those that met nobody come last."""
    table = points_table(run)
    clusters = run.cluster_codes
    intervals, best = _points(table, clusters, run.manifest.seeds.get("seed", 0))
    rates = candidate_win_rates(run, table)
    rows = [
        replace(
            _standing(run, name, intervals[k], best[k], clusters, table[:, k]),
            win_rate_ties_half=rates.rates[k],
            by_strengths=rates.by_strengths,
        )
        for k, name in enumerate(run.candidates)
    ]
    return sorted(rows, key=_order)


def _order(row: Standing) -> tuple[float, float, str]:
    """Sorts by win rate; those without one by their share of the points, then by name."""
    rate, points = row.win_rate_ties_half, row.points
    return (
        -(round(rate.estimate, 12) if rate else -1.0),
        -(points.estimate if points else -1.0),
        row.candidate,
    )


def candidate_win_rates(
    run: RunData, table: Floats | None = None, *, same_items: bool | None = None
) -> WinRates:
    """The win rates of a run's candidates, in their order.

    Args:
        run: the run.
        table: its :func:`points_table`, where it has been computed.
        same_items: see :func:`clash.analysis.win_rates.win_rates`; by default as it is.
    """
    scores = points_table(run) if table is None else table
    is_same = has_same_items(run) if same_items is None else same_items
    return win_rates(
        pair_outcomes(scores), run.cluster_codes, len(run.candidates), same_items=is_same
    )


def has_same_items(run: RunData) -> bool:
    """Whether every candidate was to answer the same items."""
    return len({run.is_asked(name).tobytes() for name in run.candidates}) == 1


def _points(
    table: Floats, clusters: NDArray[np.intp], seed: int
) -> tuple[list[Interval | None], list[float | None]]:
    """Mean points with bootstrap intervals, and how often each is best."""
    n_candidates = table.shape[1]
    intervals = [_unsure(table[:, k]) for k in range(n_candidates)]
    best: list[float | None] = [None] * n_candidates
    has_points = np.flatnonzero((~np.isnan(table)).any(axis=0))
    if len(has_points) == 0 or len(np.unique(clusters)) < 2:
        return intervals, best  # of one prompt a mean exists, its spread does not
    replicates = _replicates(table[:, has_points], clusters, seed)
    share = _chances(replicates)
    for column, k in enumerate(has_points):
        best[k] = None if share is None else float(share[column])
        if len(np.unique(clusters[~np.isnan(table[:, k])])) > 1:
            intervals[k] = _spread(table[:, k], clusters, replicates[:, column])
    return intervals, best


def _replicates(table: Floats, clusters: NDArray[np.intp], seed: int) -> Floats:
    """Mean points, shape (B, K), when prompts are drawn anew; NaN where none of them was judged."""
    points, has_points = np.nan_to_num(table), (~np.isnan(table)).astype(float)
    blocks = []
    for weights in cluster_weights(clusters, np.random.default_rng(seed), REPLICATES):
        total = weights @ has_points
        blank = np.full(total.shape, np.nan)
        blocks.append(np.divide(weights @ points, total, out=blank, where=total > 0))
    return np.concatenate(blocks)


def _spread(column: Floats, clusters: NDArray[np.intp], replicates: Floats) -> Interval:
    """The interval of one candidate, over the replicates in which it was judged."""
    has_points = ~np.isnan(column)
    low, high = np.quantile(replicates[~np.isnan(replicates)], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(
        float(column[has_points].mean()),
        float(low),
        float(high),
        LEVEL,
        int(has_points.sum()),
        float(len(np.unique(clusters[has_points]))),
        "bootstrap over clusters, percentile",
    ).within(0.0, 1.0)


def _chances(replicates: Floats) -> Floats | None:
    """How often each is best, ties shared, where all were judged in most replicates."""
    complete = replicates[~np.isnan(replicates).any(axis=1)]
    if len(complete) < len(replicates) / 2:
        return None
    top = np.isclose(complete, complete.max(axis=1, keepdims=True), rtol=0, atol=1e-12)
    share: Floats = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    return share


def _unsure(column: Floats) -> Interval | None:
    """A mean that nothing is known about: one cluster shows no variation."""
    values = column[~np.isnan(column)]
    if not len(values):
        return None
    mean = float(values.mean())
    return Interval(mean, 0.0, 1.0, 0.95, len(values), 1.0, "none: fewer than two prompts")


def _standing(
    run: RunData,
    name: str,
    points: Interval | None,
    best: float | None,
    clusters: NDArray[np.intp],
    column: Floats,
) -> Standing:
    is_asked = run.is_asked(name)
    is_winner = np.array([verdict.winner == name for verdict in run.verdicts])
    n_tied = sum(name in v.ranking[0] for v in run.verdicts if v.ranking and v.winner is None)
    n_judged = int((~np.isnan(column)).sum())
    return Standing(
        candidate=name,
        items=int(is_asked.sum()),
        n_judged=n_judged,
        points=points,
        wins=int(is_winner.sum()),
        ties=n_tied,
        losses=n_judged - int(is_winner.sum()) - n_tied,
        best=best,
        win_rate=wilson_clustered(is_winner[is_asked].astype(float), clusters[is_asked]),
    )


def duels(run: RunData, order: Sequence[str], of: Collection[str] | None = None) -> list[Duel]:
    """Every pair of candidates that met, the better placed one first.

    Args:
        run: the run.
        order: the candidates, best first.
        of: only the pairs that one of these belongs to; null for all.
    """
    columns = [run.candidates.index(name) for name in order]
    table, clusters = points_table(run)[:, columns], run.cluster_codes
    seed = run.manifest.seeds.get("seed", 0)
    return _correct_p_values(
        [
            _duel(pair, order, table, clusters, seed)
            for pair in pair_outcomes(table)
            if of is None or {order[pair.first], order[pair.second]} & set(of)
        ]
    )


def _duel(
    pair: PairOutcomes,
    order: Sequence[str],
    table: Floats,
    clusters: NDArray[np.intp],
    seed: int,
) -> Duel:
    groups = clusters[pair.rows]
    wins, ties, losses = (int((pair.outcomes == outcome).sum()) for outcome in (1, 0.5, 0))
    lead = table[pair.rows, pair.first] - table[pair.rows, pair.second]
    difference = mean_clustered(np.where(pair.outcomes == 0.5, 0.0, lead), groups).within(-1.0, 1.0)
    share = wilson_clustered(pair.outcomes, groups)
    test = duel_test(2 * pair.outcomes - 1, groups, seed)
    first, second = order[pair.first], order[pair.second]
    return Duel(first, second, wins, ties, losses, share, difference, test.p, test.method)


def duel_test(outcomes: Floats, clusters: NDArray[np.intp], seed: int) -> tests.Significance:
    """The test that neither of two candidates is better.

    Args:
        outcomes: (N,) of the items where both were judged: 1 won, 0 tied, -1 lost.
        clusters: (N,), the cluster of each item.
        seed: of the random permutations where there are many clusters.
    """
    if len(np.unique(clusters)) == len(clusters):
        return tests.sign_test(int((outcomes == 1).sum()), int((outcomes == -1).sum()))
    rng = np.random.default_rng(seed)
    return tests.sign_flip_test(outcomes, np.zeros_like(outcomes), clusters, rng)


def _correct_p_values(results: list[Duel]) -> list[Duel]:
    if not results:
        return []
    p_values = tests.holm(np.array([duel.p for duel in results]))
    return [replace(d, p_holm=float(p)) for d, p in zip(results, p_values, strict=True)]
