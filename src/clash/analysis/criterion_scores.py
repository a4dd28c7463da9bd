"""Mean scores of each candidate on each criterion, over the voting judges."""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from clash.stats.intervals import Interval, mean_clustered
from clash.store.stored import parts
from clash.votes.ballots import JudgmentOutcome

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
    items: dict[str, set[int]] = defaultdict(set)
    for (_, criterion), cell in by_cell.items():
        items[criterion] |= set(cell.rows)
    order = sorted(items, key=lambda name: (-len(items[name]), name))
    cells = [
        CriterionScore(candidate, criterion, _mean(data, by_cell[candidate, criterion]))
        for candidate in data.candidates
        for criterion in order
        if (candidate, criterion) in by_cell
    ]
    return CriterionScores(tuple(order), {name: len(items[name]) for name in order}, tuple(cells))


class _ScoredJudgment(JudgmentOutcome, gc=False):
    """A judgment with its scores, by label and criterion."""

    scores: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)


@dataclass(frozen=True)
class _Scores:
    """The scores of a candidate on a criterion, each with the number of its item."""

    rows: array[int] = field(default_factory=lambda: array("i"))
    scores: array[int] = field(default_factory=lambda: array("q"))


def _by_cell(data: RunData) -> dict[tuple[str, str], _Scores]:
    by_cell: dict[tuple[str, str], _Scores] = defaultdict(_Scores)
    for judgment in parts(data.judgments, _ScoredJudgment):
        if judgment.role != "voting" or not judgment.scores:
            continue
        labels, row = data.blinds.labels(judgment), data.rows[judgment.item_id]
        for label, scores in judgment.scores.items():
            for criterion, score in scores.items():
                cell = by_cell[labels[label], criterion]
                cell.rows.append(row)
                cell.scores.append(score)
    return by_cell


def _mean(data: RunData, cell: _Scores) -> Interval:
    rows, first, items = np.unique(np.asarray(cell.rows), return_index=True, return_inverse=True)
    means = np.bincount(items, np.asarray(cell.scores)) / np.bincount(items)
    order = np.argsort(first)  # of the judgments: sums of floats depend on it
    return mean_clustered(means[order], data.cluster_codes[rows[order]]).within(1.0, 5.0)
