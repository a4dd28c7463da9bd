"""Every sub-panel of the judges at hand: does another judge help?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance.cases import LabelledCase, codes
from clash.labels import TIE
from clash.stats.hypothesis_tests import Significance, paired_difference
from clash.stats.intervals import Interval, wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.stats.typing import Floats
    from clash.votes.from_run import Panelist


_MOST = 300
"""Sub-panels of one size that are tried; of more, a random choice (by the run's seed)."""


@dataclass(frozen=True)
class SubPanel:
    """Some of the judges as a panel of their own.

    Attributes:
        concordance: over all labelled items; a tied or missing verdict is a miss, unless the
            label is a tie.
        tied: items on which it ties.
    """

    judges: tuple[str, ...]
    concordance: Interval
    tied: int
    undecided: int


@dataclass(frozen=True)
class SubPanelSize:
    """All sub-panels of one size.

    Attributes:
        tried: of ``possible`` sub-panels.
        mean: mean concordance over them.
        gain: mean concordance less that of panels of one judge fewer, paired over items; null for
            single judges.
    """

    size: int
    tried: int
    possible: int
    mean: float
    best: SubPanel
    worst: SubPanel
    gain: Interval | None
    test: Significance | None


@dataclass(frozen=True)
class SubPanels:
    """Each sub-panel, and each size."""

    panels: list[SubPanel]
    sizes: list[SubPanelSize]


def subpanels(
    cases: Sequence[LabelledCase], voting: Sequence[Panelist], rng: np.random.Generator
) -> SubPanels | None:
    """Aggregate every subset of the voting judges by weighted Borda count.

    A sub-panel needs more than half of its own weight for a verdict, whatever quorum the whole
    panel has; ties stay ties.

    Args:
        cases: labelled items.
        voting: the judges to choose from.
        rng: for the choice where there are too many.

    Returns:
        Null for fewer than two judges or no items.
    """
    if len(voting) < 2 or not cases:
        return None
    table, weights = _points(cases, voting), np.array([p.weight for p in voting])
    labels = np.array([_code(case, table.shape[2]) for case in cases])
    groups = codes(cases)
    panels: list[SubPanel] = []
    sizes: list[SubPanelSize] = []
    right_before: Floats | None = None
    for size in range(1, len(voting) + 1):
        choices = _choices(len(voting), size, rng)
        verdicts = [_verdicts(table[:, list(c)], weights[list(c)]) for c in choices]
        right = np.array([(row == labels).astype(float) for row in verdicts])
        of_size = [
            _subpanel(voting, c, row, hits, groups, table.shape[2])
            for c, row, hits in zip(choices, verdicts, right, strict=True)
        ]
        panels += of_size
        sizes.append(_size(size, len(voting), of_size, right, right_before, groups))
        right_before = right.mean(axis=0)
    return SubPanels(panels, sizes)


def _points(cases: Sequence[LabelledCase], voting: Sequence[Panelist]) -> Floats:
    """Borda points, shape (N, J, K); NaN for a judge that failed, -inf beyond an item's K."""
    widest = max(len(case.candidates) for case in cases)
    table = np.full((len(cases), len(voting), widest), np.nan)
    for row, case in enumerate(cases):
        for column, panelist in enumerate(voting):
            points = case.points.get(panelist.id)
            if points is not None:
                table[row, column] = -np.inf
                table[row, column, : len(points)] = points
    return table


def _code(case: LabelledCase, tie: int) -> int:
    return tie if case.label == TIE else case.candidates.index(case.label)


def _choices(n: int, size: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    if comb(n, size) <= _MOST:
        return list(combinations(range(n), size))
    choices = {tuple(sorted(rng.choice(n, size, replace=False).tolist())) for _ in range(_MOST)}
    return sorted(choices)


def _verdicts(points: Floats, weights: Floats) -> NDArray[np.intp]:
    """Winners (N,): place among the candidates, K for a tie, -1 below the quorum."""
    has_points = ~np.isnan(points[:, :, 0])
    known_points = np.where(has_points[:, :, None], points, 0.0)
    total = np.einsum("njk,j->nk", known_points, weights)
    top = total.max(axis=1, keepdims=True)
    first = np.isclose(total, top)
    winner = np.where(first.sum(axis=1) == 1, first.argmax(axis=1), points.shape[2])
    enough = has_points @ weights > weights.sum() / 2 + 1e-9
    return np.where(enough, winner, -1)


def _subpanel(
    voting: Sequence[Panelist],
    members: tuple[int, ...],
    verdicts: NDArray[np.intp],
    right: Floats,
    groups: NDArray[np.intp],
    tie: int,
) -> SubPanel:
    return SubPanel(
        tuple(voting[index].id for index in members),
        wilson_clustered(right, groups),
        int(np.sum(verdicts == tie)),
        int(np.sum(verdicts < 0)),
    )


def _size(
    size: int,
    n: int,
    of_size: Sequence[SubPanel],
    right: Floats,
    right_before: Floats | None,
    groups: NDArray[np.intp],
) -> SubPanelSize:
    best_first = sorted(of_size, key=lambda panel: (-panel.concordance.estimate, panel.judges))
    gain = (
        None
        if right_before is None
        else paired_difference(right.mean(axis=0), right_before, groups)
    )
    return SubPanelSize(
        size,
        len(of_size),
        comb(n, size),
        float(right.mean()),
        best_first[0],
        best_first[-1],
        None if gain is None else gain.difference,
        None if gain is None else gain.test,
    )
