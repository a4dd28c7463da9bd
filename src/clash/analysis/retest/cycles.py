"""What many cycles tell: how stable rankings are, and whether generation or judgment varies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.leaderboard import points_table
from clash.errors import StatisticsError
from clash.stats.retest import Decomposition, RankingStability, decompose, ranking_stability

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clash.analysis.retest.align import AlignedRuns


def rankings(found: AlignedRuns) -> RankingStability | None:
    """Tau between the leaderboards of the whole runs; null where a candidate has no points."""
    scores = []
    for index in found.complete_runs:
        table = points_table(found.runs[index])
        there = ~np.isnan(table)
        if found.runs[index].candidates != found.runs[0].candidates or not there.any(axis=0).all():
            return None
        scores.append(np.where(there, table, 0.0).sum(axis=0) / there.sum(axis=0))
    if len(found.runs[0].candidates) < 2:
        return None
    return ranking_stability(np.round(scores, 9))


@dataclass(frozen=True)
class Variance:
    """Judgment against generation; ``why`` says what is missing where there is no ``split``."""

    split: Decomposition | None
    why: str = ""


def variance(found: AlignedRuns, rng: np.random.Generator) -> Variance:
    """Split the variance of the verdicts, where the runs can tell generation from judgment."""
    if not found.fresh:
        return Variance(
            None, "every run judged the same responses: all instability is the judgment's"
        )
    table, responses = (
        found.verdicts[:, found.complete_runs],
        found.responses[:, found.complete_runs],
    )
    prompts = np.repeat(np.arange(len(table)), table.shape[1])
    values = with_none(table, found.n_classes).ravel()
    try:
        return Variance(decompose(values, prompts, responses.ravel(), rng))
    except StatisticsError as error:
        return Variance(None, str(error))


def with_none(table: NDArray[np.intp], tie: int) -> NDArray[np.intp]:
    """No verdict as an outcome of its own: one run with a verdict and one without disagree."""
    return np.where(table < 0, tie, table)
