"""Judges on pairs with a known gap: their psychometric curves."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.psychometric import Psychometric, fit_psychometric

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData

TAG, ORIGINAL, ALTERED_TEXT = "calibration", "original", "altered"


@dataclass(frozen=True)
class GapHits:
    """A judge's outcomes on the pairs of one kind and gap.

    Attributes:
        better: share of trials in which it picked the unaltered response; at a gap of 0 either
            side would be a mistake. ``tie`` the share of ties.
    """

    kind: str
    gap: float
    better: Interval
    tie: Interval


@dataclass(frozen=True)
class GapShares:
    """The outcomes at one gap, all kinds together, to which the curve is fitted."""

    gap: float
    better: Interval
    tie: Interval


@dataclass(frozen=True)
class JudgeCurve:
    """A judge.

    Attributes:
        shares: shares at each gap.
        fit: null where its trials are too few; ``why`` says so.
    """

    judge: str
    trials: int
    hits: tuple[GapHits, ...]
    shares: tuple[GapShares, ...]
    fit: Psychometric | None
    why: str | None = None


@dataclass(frozen=True)
class _Trial:
    kind: str
    gap: float
    outcome: float
    cluster: int


def is_calibration(data: RunData) -> bool:
    """Whether a run judged calibration pairs."""
    return any(TAG in item.tags for item in data.items)


def calibration_curves(data: RunData, seed: int = 0) -> tuple[JudgeCurve, ...]:
    """The curve of every voting judge of a run of calibration pairs."""
    trials = _trials(data)
    return tuple(
        _judge(panelist.id, trials.get(panelist.id, []), seed) for panelist in data.rules.voting
    )


def _trials(data: RunData) -> Mapping[str, list[_Trial]]:
    tags = {item.item_id: item.tags for item in data.items if TAG in item.tags}
    by_judge: dict[str, list[_Trial]] = defaultdict(list)
    for item_id, rankings in data.ballots.items():
        if item_id not in tags or set(rankings.candidates) != {ORIGINAL, ALTERED_TEXT}:
            continue
        gap = next(float(tag[4:]) for tag in tags[item_id] if tag.startswith("gap:"))
        better = rankings.candidates.index(ORIGINAL)
        for judge, rows in rankings.ranks.items():
            for ranks in rows:
                # Smaller is better; equal ranks are a tie.
                outcome = (np.sign(ranks[1 - better] - ranks[better]) + 1) / 2
                cluster = data.clusters[item_id]
                by_judge[judge].append(_Trial(tags[item_id][1], gap, float(outcome), cluster))
    return by_judge


def _judge(judge: str, trials: list[_Trial], seed: int) -> JudgeCurve:
    hits, shares = tuple(_hits_by_kind(trials)), tuple(_shares_by_gap(trials))
    try:
        fit = fit_psychometric(
            [trial.gap for trial in trials],
            [trial.outcome for trial in trials],
            [trial.cluster for trial in trials],
            rng=np.random.default_rng(seed),
        )
    except StatisticsError as error:
        return JudgeCurve(judge, len(trials), hits, shares, None, str(error))
    return JudgeCurve(judge, len(trials), hits, shares, fit)


def _hits_by_kind(trials: list[_Trial]) -> list[GapHits]:
    """By kind and gap, rounded to a tenth."""
    cells: dict[tuple[str, float], list[_Trial]] = defaultdict(list)
    for trial in trials:
        cells[trial.kind, round(trial.gap, 1)].append(trial)
    return [
        GapHits(kind, gap, _share(cell, 1.0), _share(cell, 0.5))
        for (kind, gap), cell in sorted(cells.items())
    ]


def _shares_by_gap(trials: list[_Trial]) -> list[GapShares]:
    """By gap, rounded to a tenth."""
    gaps: dict[float, list[_Trial]] = defaultdict(list)
    for trial in trials:
        gaps[round(trial.gap, 1)].append(trial)
    return [
        GapShares(gap, _share(cell, 1.0), _share(cell, 0.5)) for gap, cell in sorted(gaps.items())
    ]


def _share(trials: list[_Trial], outcome: float) -> Interval:
    hits = [float(trial.outcome == outcome) for trial in trials]
    return wilson_clustered(hits, [trial.cluster for trial in trials])
