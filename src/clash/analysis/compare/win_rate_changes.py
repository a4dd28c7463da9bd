"""How the win rate of a candidate differs between two runs, paired where they share items."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.leaderboard import candidate_win_rates, points_table
from clash.stats.hypothesis_tests import holm, paired_difference, two_sided
from clash.stats.intervals import Interval, difference, normal_quantile

if TYPE_CHECKING:
    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class WinRateChange:
    """One candidate in two runs.

    Attributes:
        first, second: its win rate in each, ties counting half. Paired, over the shared items and
            the opponents that it met there in both.
        n_items: shared items; 0 where the runs share none.
        difference: second minus first, clustered by prompt; paired where they share items.
        p: of no difference; ``p_holm`` corrected for looking at all candidates.
    """

    candidate: str
    first: float
    second: float
    n_items: int
    difference: Interval
    p: float
    p_holm: float = 1.0

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
    scores = [_item_scores(run) for run in (first, second)]
    turns = {item.item_id: item.turns for item in second.items}
    item_ids = [item.item_id for item in first.items if turns.get(item.item_id) == item.turns]
    changes = []
    for name in names:
        rows = []
        for item in item_ids:
            before, after = scores[0].get(item, {}), scores[1].get(item, {})
            if name not in before or name not in after:
                continue
            rivals = (before.keys() & after.keys()) - {name}
            if rivals:
                rate = [
                    sum(_outcome(table[name], table[rival]) for rival in sorted(rivals))
                    for table in (before, after)
                ]
                rows.append((rate[0] / len(rivals), rate[1] / len(rivals), first.clusters[item]))
        if len(rows) > 1:
            table = np.array(rows)
            gap = paired_difference(table[:, 1], table[:, 0], table[:, 2].astype(np.intp))
            means = table[:, :2].mean(axis=0)
            changes.append(
                WinRateChange(
                    name,
                    float(means[0]),
                    float(means[1]),
                    len(rows),
                    _in_range(gap.difference),
                    _p(gap.test.p, len(set(table[:, 2]))),
                )
            )
    return changes


def _p(p: float, n_clusters: int) -> float:
    """No less than a permutation of the signs could give: equal differences have no variance."""
    return 1.0 if math.isnan(p) else float(max(p, min(1.0, 2 * 0.5**n_clusters)))


def _item_scores(run: RunData) -> dict[str, dict[str, float]]:
    """The share of the points of each candidate, by item; items without a verdict are absent."""
    table = points_table(run)
    return {
        item.item_id: {
            name: float(score)
            for name, score in zip(run.candidates, row, strict=True)
            if not math.isnan(score)
        }
        for item, row in zip(run.items, table, strict=True)
        if not np.isnan(row).all()
    }


def _outcome(score: float, rival: float) -> float:
    return 0.5 if math.isclose(score, rival, rel_tol=1e-5, abs_tol=1e-8) else float(score > rival)


def _changes_between_samples(
    first: RunData, second: RunData, names: list[str]
) -> list[WinRateChange]:
    """Over all items of each run, as independent samples."""
    rates = [
        dict(zip(run.candidates, candidate_win_rates(run).rates, strict=True))
        for run in (first, second)
    ]
    changes = []
    for name in names:
        before, after = rates[0][name], rates[1][name]
        if before is None or after is None:
            continue
        gap = _in_range(difference(after, before))
        error = gap.half_width / normal_quantile(gap.level)
        p = two_sided(gap.estimate / error) if error > 0 else 1.0
        changes.append(WinRateChange(name, before.estimate, after.estimate, 0, gap, float(p)))
    return changes


def _in_range(gap: Interval) -> Interval:
    """A difference of two rates lies between -1 and 1."""
    return replace(gap, low=max(-1.0, gap.low), high=min(1.0, gap.high))
