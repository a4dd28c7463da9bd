"""Mean scores of each candidate on each criterion, over the voting judges."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.stats.intervals import Interval, mean_clustered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class CriterionScore:
    """The mean score, 1 to 5, of a candidate on a criterion.

    Attributes:
        mean: over items, of the mean over judges and presentations; clustered by prompt,
            and unbounded where there is one prompt only.
    """

    candidate: str
    criterion: str
    mean: Interval


@dataclass(frozen=True)
class CriterionScores:
    """Every cell that has a score.

    Attributes:
        criteria: names, those that most items share first.
        items: how many items have a score on each criterion.
    """

    criteria: tuple[str, ...]
    items: Mapping[str, int]
    cells: tuple[CriterionScore, ...]


def criterion_scores(data: RunData) -> CriterionScores:
    """Mean scores by candidate and criterion; weights of criteria and judges play no part."""
    by_cell = _by_cell(data)
    items: dict[str, set[str]] = defaultdict(set)
    for (_, criterion), by_item in by_cell.items():
        items[criterion] |= by_item.keys()
    order = sorted(items, key=lambda name: (-len(items[name]), name))
    cells = [
        CriterionScore(candidate, criterion, _mean(data, by_cell[candidate, criterion]))
        for candidate in data.candidates
        for criterion in order
        if (candidate, criterion) in by_cell
    ]
    return CriterionScores(tuple(order), {name: len(items[name]) for name in order}, tuple(cells))


def _by_cell(data: RunData) -> dict[tuple[str, str], dict[str, list[int]]]:
    by_cell: dict[tuple[str, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for judgment in data.judgments:
        if judgment.role != "voting" or not judgment.scores:
            continue
        labels = data.blinds.labels(judgment)
        for label, row in judgment.scores.items():
            for criterion, score in row.items():
                by_cell[labels[label], criterion][judgment.item_id].append(score)
    return by_cell


def _mean(data: RunData, by_item: Mapping[str, list[int]]) -> Interval:
    means = [sum(item_scores) / len(item_scores) for item_scores in by_item.values()]
    return mean_clustered(means, [data.clusters[item] for item in by_item]).within(1.0, 5.0)
