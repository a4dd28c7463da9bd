"""Regime map and judge steps of one panel: the best family at each budget, and the gain of each judge."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clash.analysis.calibration.study import sizes_for
from clash.stats.selection.families import FAMILIES
from clash.stats.selection.regime import JudgeSteps, RegimeMap, judge_steps, survey

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.analysis.calibration.study import CalibrationStudy
    from clash.votes import Votes

TABLE = "joint-table"
MOST_SPLITS = 10
"""A cell is a mean over so many splits at most: it is looked at, not deployed."""


@dataclass(frozen=True)
class PanelRegimes:
    """The regime map and judge steps of a panel, to be drawn.

    Attributes:
        title: of the map.
        map: who wins at each prefix and number of labels.
        steps: what a judge more changes, by family: the joint table, and the scalar family with
            the least test error among those that are offered at most prefixes.
    """

    title: str
    map: RegimeMap
    steps: tuple[tuple[str, JudgeSteps], ...]


def regimes(
    votes: Votes,
    study: CalibrationStudy,
    *,
    seed: int = 0,
    on_split: Callable[[int, int], None] | None = None,
) -> PanelRegimes:
    """Survey the panel at growing budgets, and read the steps off the study's splits.

    Args:
        votes: those of the study.
        study: the study.
        seed: of the splits of the survey.
        on_split: told how many splits of how many are done.

    Raises:
        StatisticsError: too few labelled sources.
    """
    panel = study.frame.panel(votes)
    settings = replace(study.settings, sizes=sizes_for(panel.n_judges, study.settings.sizes))
    survey_map = survey(
        panel, settings, splits=min(study.n_splits, MOST_SPLITS), seed=seed, on_progress=on_split
    )
    title = f"{len(study.frame.judges)} judges, {study.n_labelled} labelled rows"
    return PanelRegimes(title, survey_map, tuple(_steps(study)))


def _steps(study: CalibrationStudy) -> list[tuple[str, JudgeSteps]]:
    by_error = sorted(study.families, key=lambda line: line.figures["mse"].mean)
    scalar = [line.family for line in by_error if FAMILIES[line.family].kind == "scalar"]
    steps = {name: judge_steps(study.outcomes, name) for name in (TABLE, *scalar)}
    # A family that is not offered at every prefix has few steps to show.
    best = max(scalar, key=lambda name: len(steps[name].change), default=None)
    names = [TABLE, *([] if best is None else [best])]
    return [(name, steps[name]) for name in names if len(steps[name].change)]
