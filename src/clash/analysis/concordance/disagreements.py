"""Where the panel said otherwise than people: which items, in which direction, in which pairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.concordance.cases import CaseRate, LabelledCase, Profile, codes, rate
from clash.labels import TIE
from clash.stats.hypothesis_tests import Significance, sign_test
from clash.stats.intervals import Interval, wilson

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TIERS = ("strong", "weak")
_GAPS = ((0.0, 25.0), (25.0, 50.0), (50.0, 100.0), (100.0, np.inf))


@dataclass(frozen=True)
class Disagreement:
    """An item whose verdict is not the label."""

    json_keys: ClassVar[Mapping[str, str]] = {"outcome": "said"}

    item_id: str
    candidates: tuple[str, ...]
    label: str
    outcome: str
    split: str | None
    unanimous: bool
    confidence: float | None
    elo_gap: float | None


@dataclass(frozen=True)
class Direction:
    """Whether disagreements favour what is stronger on some scale.

    Attributes:
        scale: what stronger means here.
        stronger: disagreements where the panel chose the stronger of the two than people did.
        level: the two are equal on the scale; ``unknown``: the scale does not know both.
        mean_gap: of the panel's choice over people's, on the scale; NaN where unknown.
    """

    scale: str
    stronger: int
    weaker: int
    level: int
    unknown: int
    share: Interval
    test: Significance
    mean_gap: float


@dataclass(frozen=True)
class RatingGap:
    """Concordance of items whose two candidates are so far apart in rating."""

    low: float
    high: float
    rate: CaseRate
    stronger: int
    weaker: int


@dataclass(frozen=True)
class PairLine:
    """A pair of candidates on which panel and people part."""

    pair: str
    n: int
    misses: int
    share: Interval
    items: tuple[str, ...]


def disagreements(
    cases: Sequence[LabelledCase], profiles: Mapping[str, Profile]
) -> list[Disagreement]:
    """Every miss with a verdict, in the order of the run."""
    return [
        Disagreement(
            case.item_id,
            case.candidates,
            case.label,
            case.outcome,
            case.verdict.split,
            case.verdict.unanimous,
            case.verdict.confidence,
            _gap(case, _elo(profiles)),
        )
        for case in cases
        if case.outcome is not None and not case.right
    ]


def directions(cases: Sequence[LabelledCase], profiles: Mapping[str, Profile]) -> list[Direction]:
    """By tier, by rating where given, and by how often people choose each candidate here."""
    tiers = {
        name: float(-_TIERS.index(profile.tier))
        for name, profile in profiles.items()
        if profile.tier in _TIERS
    }
    scales = {
        "tier": tiers,
        "rating (Elo)": _elo(profiles),
        "people's win rate in this run": _win_rates(cases),
    }
    lines = [_direction(name, scale, cases) for name, scale in scales.items() if scale]
    return [line for line in lines if line.stronger + line.weaker + line.level]


def _elo(profiles: Mapping[str, Profile]) -> dict[str, float]:
    return {name: profile.elo for name, profile in profiles.items() if profile.elo is not None}


def _win_rates(cases: Sequence[LabelledCase]) -> dict[str, float]:
    appearances = Counter(name for case in cases for name in case.candidates)
    wins = Counter(case.label for case in cases)
    return {name: wins[name] / appearances[name] for name in appearances}


def _gap(case: LabelledCase, scale: Mapping[str, float]) -> float | None:
    """How much stronger the panel's choice is than people's; null where the scale is silent."""
    if case.outcome in (None, TIE) or case.label == TIE:
        return None
    scores = [scale.get(name or "") for name in (case.outcome, case.label)]
    return None if None in scores else float(np.subtract(*scores))  # type: ignore[arg-type]


def _direction(name: str, scale: Mapping[str, float], cases: Sequence[LabelledCase]) -> Direction:
    misses = [case for case in cases if not case.right and case.outcome is not None]
    gaps = [gap for case in misses if (gap := _gap(case, scale)) is not None]
    up, down = sum(gap > 0 for gap in gaps), sum(gap < 0 for gap in gaps)
    return Direction(
        scale=name,
        stronger=up,
        weaker=down,
        level=len(gaps) - up - down,
        unknown=len(misses) - len(gaps),
        share=wilson(up, up + down),
        test=sign_test(up, down),
        mean_gap=float(np.mean(gaps)) if gaps else float("nan"),
    )


def by_gap(cases: Sequence[LabelledCase], profiles: Mapping[str, Profile]) -> list[RatingGap]:
    """Concordance by how far apart the two candidates are rated; empty without ratings."""
    elo = _elo(profiles)
    apart = {
        case.item_id: abs(elo[case.candidates[0]] - elo[case.candidates[1]])
        for case in cases
        if len(case.candidates) == 2 and all(name in elo for name in case.candidates)
    }
    return [
        line
        for low, high in _GAPS
        if (line := _gap_line(low, high, [c for c in cases if c.item_id in apart], apart, elo))
    ]


def _gap_line(
    low: float,
    high: float,
    cases: Sequence[LabelledCase],
    apart: Mapping[str, float],
    elo: Mapping[str, float],
) -> RatingGap | None:
    members = [case for case in cases if low <= apart[case.item_id] < high]
    if not members:
        return None
    gaps = [gap for case in members if not case.right and (gap := _gap(case, elo)) is not None]
    credit = [float(case.right) for case in members]
    share = rate(credit, codes(members), [case.outcome is not None for case in members])
    return RatingGap(low, high, share, sum(g > 0 for g in gaps), sum(g < 0 for g in gaps))


def chronic(cases: Sequence[LabelledCase]) -> list[PairLine]:
    """Pairs of candidates that were missed twice or more, the most missed first."""
    appearances = Counter(case.pair for case in cases)
    misses: dict[str, list[str]] = {}
    for case in cases:
        if not case.right:
            misses.setdefault(case.pair, []).append(case.item_id)
    lines = [
        PairLine(pair, n, len(items), wilson(len(items), n), tuple(items))
        for pair, items in misses.items()
        if len(items) >= 2 and (n := appearances[pair])
    ]
    return sorted(lines, key=lambda line: (-line.misses, line.n, line.pair))
