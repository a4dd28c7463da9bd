"""Each judge against itself: run against run, and order against order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.retest.repeats import FlipRate, flip_rate, self_consistency

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from clash.analysis.retest.align import AlignedRuns
    from clash.analysis.rundata import RunData
    from clash.records import Judgment
    from clash.stats.intervals import Interval


@dataclass(frozen=True)
class SelfConsistency:
    """How often a judge repeats its first place, run against run, on the same responses."""

    judge: str
    role: str
    consistency: Interval
    items: int


@dataclass(frozen=True)
class Flips:
    """What a judge does when the two responses trade places, over all runs."""

    judge: str
    flips: FlipRate


def consistencies(alignment: AlignedRuns) -> list[SelfConsistency]:
    """Judges of at least two whole runs, on items with the same responses in both."""
    lines = []
    for panelist in alignment.runs[0].rules.panelists:
        table = _tops(alignment, panelist.id)
        is_repeated = np.sum(table >= 0, axis=1) >= 2
        if is_repeated.any():
            share = self_consistency(table, alignment.clusters)
            lines.append(SelfConsistency(panelist.id, panelist.role, share, int(is_repeated.sum())))
    return lines


def _tops(alignment: AlignedRuns, judge: str) -> NDArray[np.intp]:
    table = np.full((len(alignment.items), len(alignment.runs)), -1, dtype=np.intp)
    for column, data in enumerate(alignment.runs):
        for row, item in enumerate(alignment.items):
            rankings = data.ballots.get(item)
            is_same_text = alignment.responses[row, column] == alignment.responses[row, 0]
            if rankings is None or judge not in rankings.ranks or not is_same_text:
                continue
            top, names = rankings.top(judge), alignment.candidates[row]
            table[row, column] = len(names) if top is None else names.index(top)
    return table


def flips_of(alignment: AlignedRuns) -> list[Flips]:
    """Pairs judged in both orders, all runs together; repeats of an item share its cluster."""
    lines = []
    for panelist in alignment.runs[0].rules.panelists:
        rows = [row for run in alignment.runs for row in _both_orders(run, panelist.id)]
        if rows:
            item = dict(zip(alignment.items, alignment.clusters.tolist(), strict=True))
            known_rows = [row for row in rows if row.item_id in item]
            flips = flip_rate(
                [row.original for row in known_rows],
                [row.reverse for row in known_rows],
                [item[row.item_id] for row in known_rows],
            )
            lines.append(Flips(panelist.id, flips))
    return lines


@dataclass(frozen=True)
class _BothOrders:
    """1 where the response shown first in the first order wins, 0 the other, 0.5 a tie."""

    item_id: str
    original: float
    reverse: float


def _both_orders(run: RunData, judge: str) -> Iterator[_BothOrders]:
    orders_by_item: dict[str, dict[int, Judgment]] = {}
    for judgment in run.judgments:
        if judgment.judge == judge and judgment.ranking is not None:
            orders_by_item.setdefault(judgment.item_id, {})[judgment.presentation] = judgment
    for item, orders in orders_by_item.items():
        if {0, 1} <= orders.keys() and len(run.blinds.labels(orders[0])) == 2:
            first = run.blinds.labels(orders[0])["A0"]
            yield _BothOrders(item, *(_says(run, orders[n], first) for n in (0, 1)))


def _says(run: RunData, judgment: Judgment, candidate: str) -> float:
    labels = run.blinds.labels(judgment)
    top = [labels[label] for label in (judgment.ranking or [[]])[0]]
    return 0.5 if len(top) > 1 else float(top == [candidate])
