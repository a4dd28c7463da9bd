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


def rankings(alignment: AlignedRuns) -> RankingStability | None:
    """Tau between the leaderboards of the whole runs; null where a candidate has no points."""
    scores = []
    for index in alignment.complete_runs:
        table = points_table(alignment.runs[index])
        has_points = ~np.isnan(table)
        if (
            alignment.runs[index].candidates != alignment.runs[0].candidates
            or not has_points.any(axis=0).all()
        ):
            return None
        scores.append(np.where(has_points, table, 0.0).sum(axis=0) / has_points.sum(axis=0))
    if len(alignment.runs[0].candidates) < 2:
        return None
    return ranking_stability(np.round(scores, 9))


@dataclass(frozen=True)
class Variance:
    """Judgment against generation; ``why`` says what is missing where there is no ``split``."""

    split: Decomposition | None
    why: str = ""


def variance(alignment: AlignedRuns, rng: np.random.Generator) -> Variance:
    """Split the variance of the verdicts, where the runs can tell generation from judgment."""
    if not alignment.fresh:
        return Variance(
            None, "every run judged the same responses: all instability is the judgment's"
        )
    table, responses = (
        alignment.verdicts[:, alignment.complete_runs],
        alignment.responses[:, alignment.complete_runs],
    )
    prompts = np.repeat(np.arange(len(table)), table.shape[1])
    values = with_none(table, alignment.n_classes).ravel()
    try:
        return Variance(decompose(values, prompts, responses.ravel(), rng))
    except StatisticsError as error:
        return Variance(None, str(error))


def with_none(table: NDArray[np.intp], tie: int) -> NDArray[np.intp]:
    """No verdict as an outcome of its own: one run with a verdict and one without disagree."""
    return np.where(table < 0, tie, table)
