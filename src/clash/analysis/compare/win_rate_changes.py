"""How the win rate of a candidate differs between two runs, paired where they share items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.leaderboard import (
    candidate_win_rates,
    has_same_items,
    points_table,
)
from clash.analysis.win_rates import pair_outcomes, win_rates
from clash.stats.hypothesis_tests import holm, paired_difference, two_sided
from clash.stats.intervals import Interval, difference, normal_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.rundata import RunData
    from clash.analysis.win_rates import PairOutcomes, WinRates
    from clash.stats.typing import Floats, Index


@dataclass(frozen=True)
class WinRateChange:
    """One candidate in two runs.

    Attributes:
        first, second: its win rate in each, by the measure of the leaderboard. Paired, over the
            shared items and the opponents that it met there in both.
        n_items: shared items; 0 where the runs share none.
        difference: second minus first, clustered by prompt; paired where they share items.
        p: of no difference; ``p_holm`` corrected for looking at all candidates.
        by_strengths: the win rates are those that Bradley-Terry strengths expect, as on the
            leaderboard of runs whose candidates answered different items.
    """

    candidate: str
    first: float
    second: float
    n_items: int
    difference: Interval
    p: float
    p_holm: float = 1.0
    by_strengths: bool = False

    @property
    def is_paired(self) -> bool:
        """The difference is over the same items in both runs."""
        return self.n_items > 0


def win_rate_changes(first: RunData, second: RunData) -> list[WinRateChange]:
    """The change of each candidate of both runs, the most certain first."""
    names = [name for name in first.candidates if name in second.candidates]
    changes = _changes_on_shared_items(first, second, names) or _changes_between_samples(
        first, second, names
    )
    if not changes:
        return []
    # Of two candidates one gains what the other loses: one question, not two.
    p_values = [change.p for change in changes]
    holm_p_values = p_values if len(changes) == 2 else [float(p) for p in holm(np.array(p_values))]
    changes = [replace(c, p_holm=p) for c, p in zip(changes, holm_p_values, strict=True)]
    return sorted(changes, key=lambda c: (c.p_holm, c.p, -c.difference.estimate, c.candidate))


def _changes_on_shared_items(
    first: RunData, second: RunData, names: list[str]
) -> list[WinRateChange]:
    """Over the items that ask the same in both runs; empty where there are none."""
    tables, rows = _shared_tables(first, second, names)
    codes, clusters = np.unique(first.cluster_codes[rows], return_inverse=True)
    if len(names) < 2 or len(rows) < 2:
        return []
    before, after = _rates_of_both(
        [pair_outcomes(table) for table in tables],
        clusters,
        len(names),
        same_items=has_same_items(first) and has_same_items(second),
    )
    changes = []
    for k, name in enumerate(names):
        then, now = before.rates[k], after.rates[k]
        is_judged = ~np.isnan(tables[0][:, k])
        if then is None or now is None or is_judged.sum() < 2:
            continue
        gap = paired_difference(
            _pseudo_values(after, k, len(codes)), _pseudo_values(before, k, len(codes))
        )
        changes.append(
            WinRateChange(
                name,
                then.estimate,
                now.estimate,
                int(is_judged.sum()),
                _in_range(gap.difference),
                _p(gap.test.p, len(np.unique(clusters[is_judged]))),
                by_strengths=before.by_strengths,
            )
        )
    return changes


def _shared_tables(
    first: RunData, second: RunData, names: list[str]
) -> tuple[tuple[Floats, Floats], Index]:
    """The shares of the points of the candidates of both runs on the items of both.

    Returns:
        Two tables, shape (n, K), NaN in both where one has no verdict; and the rows of these n
        items in the first run.
    """
    rows_and_turns = {item.item_id: (row, item.turns) for row, item in enumerate(second.items)}
    pairs = [
        (row, rows_and_turns[item.item_id][0])
        for row, item in enumerate(first.items)
        if item.item_id in rows_and_turns and rows_and_turns[item.item_id][1] == item.turns
    ]
    rows = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    tables = [
        points_table(run)[rows[:, side]][:, [run.candidates.index(name) for name in names]]
        for side, run in enumerate((first, second))
    ]
    is_missing = np.isnan(tables[0]) | np.isnan(tables[1])
    # Beside nobody whom both runs judged, a candidate has no comparison.
    is_missing |= (~is_missing).sum(axis=1, keepdims=True) < 2
    before, after = (np.where(is_missing, np.nan, table) for table in tables)
    is_used = ~is_missing.all(axis=1)
    return (before[is_used], after[is_used]), rows[is_used, 0]


def _rates_of_both(
    pairs: Sequence[list[PairOutcomes]], clusters: Index, n_candidates: int, *, same_items: bool
) -> list[WinRates]:
    """The win rates of both runs by one measure: by strengths only where both can be fitted."""
    rates = [win_rates(p, clusters, n_candidates, same_items=same_items) for p in pairs]
    if rates[0].by_strengths == rates[1].by_strengths:
        return rates
    return [win_rates(p, clusters, n_candidates, same_items=True) for p in pairs]


def _pseudo_values(rates: WinRates, k: int, n_clusters: int) -> Floats:
    """A win rate as the mean of one value for each cluster, whose spread is that of the rate."""
    influence, rate = rates.influence[:, k], rates.rates[k]
    mean = math.nan if rate is None else rate.estimate
    values: Floats = mean + n_clusters * (influence - influence.mean())
    return values


def _p(p: float, n_clusters: int) -> float:
    """No less than a permutation of the signs could give: equal differences have no variance."""
    return 1.0 if math.isnan(p) else float(max(p, min(1.0, 2 * 0.5**n_clusters)))


def _changes_between_samples(
    first: RunData, second: RunData, names: list[str]
) -> list[WinRateChange]:
    """Over all items of each run, as independent samples."""
    by_run = [candidate_win_rates(run) for run in (first, second)]
    is_strength = all(result.by_strengths for result in by_run)
    if any(result.by_strengths for result in by_run) and not is_strength:
        by_run = [candidate_win_rates(run, same_items=True) for run in (first, second)]
    rates = [
        dict(zip(run.candidates, result.rates, strict=True))
        for run, result in zip((first, second), by_run, strict=True)
    ]
    changes = []
    for name in names:
        before, after = rates[0][name], rates[1][name]
        if before is None or after is None:
            continue
        gap = _in_range(difference(after, before))
        error = gap.half_width / normal_quantile(gap.level)
        p = two_sided(gap.estimate / error) if error > 0 else 1.0
        changes.append(
            WinRateChange(
                name,
                before.estimate,
                after.estimate,
                0,
                gap,
                float(p),
                by_strengths=is_strength,
            )
        )
    return changes


def _in_range(gap: Interval) -> Interval:
    """A difference of two rates lies between -1 and 1."""
    return replace(gap, low=max(-1.0, gap.low), high=min(1.0, gap.high))
