"""Tables 17, 26 and 27 of the fourth paper: does the pressure on cells foretell risk and the winner?"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.reproduction.studies.fcps_records import PressureChecks
from clash.stats.selection.pressure_checks import (
    standard_score,
    winner_foretold,
    within_correlations,
    within_slope,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.reproduction.studies.fcps_records import PrefixPoint, SplitContest


def pressure_checks(
    points: Sequence[Sequence[PrefixPoint]], contests: Sequence[Sequence[SplitContest]], seed: int
) -> PressureChecks:
    """Tables 17, 26 and 27 over panels: their points, and their splits.

    Prefixes of a split are one cluster. Of one panel the splits are the clusters of the score; of
    several, panels and budgets are, as in the paper.
    """
    tables = [(panel, p) for panel, part in enumerate(points) for p in part]
    pressure = [p.h_k / p.budget for _, p in tables]
    risk = [p.test for _, p in tables]
    groups = _codes([(panel, p.budget, p.path) for panel, p in tables])
    clusters = _codes([(panel, p.split) for panel, p in tables])
    slopes = [
        within_slope(x, risk, groups, clusters)
        for x in (pressure, [p.unseen for _, p in tables])
    ]  # fmt: skip
    correlations = within_correlations(pressure, risk, groups)
    cases = [(panel, c) for panel, part in enumerate(contests) for c in part]
    score = standard_score(
        [c.h_k / c.budget for _, c in cases],
        [c.unseen for _, c in cases],
        [c.pairwise_gain for _, c in cases],
    )
    units = [(panel, c.budget) if len(contests) > 1 else (panel, c.split) for panel, c in cases]
    try:
        foretold = winner_foretold(
            score, [c.gap > 0 for _, c in cases], _codes(units), np.random.default_rng([seed, 17])
        )
    except StatisticsError:
        foretold = None
    return PressureChecks(
        slopes[0],
        slopes[1],
        len(correlations),
        float(correlations.mean()) if len(correlations) else math.nan,
        float((correlations > 0).mean()) if len(correlations) else math.nan,
        foretold,
    )


def _codes(keys: Sequence[tuple[object, ...]]) -> list[int]:
    codes: dict[tuple[object, ...], int] = {}
    return [codes.setdefault(key, len(codes)) for key in keys]
