"""A report in a line: its headline, what contradicts it, and the figure that it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from clash.pages import short_names


class IntervalPart(msgspec.Struct, frozen=True):
    """An interval of a report; null where it is not a number or has no end."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class DecisionPart(msgspec.Struct, frozen=True):
    """The decision of a report."""

    status: str = "none"
    winner: str | None = None
    runner_up: str | None = None


class StandingPart(msgspec.Struct, frozen=True):
    """A line of the leaderboard."""

    candidate: str
    points: IntervalPart | None = None


class RatePart(msgspec.Struct, frozen=True):
    """Right answers of all."""

    right: float = 0.0
    n: int = 0
    clustered: IntervalPart | None = None


class HeadlinePart(msgspec.Struct, frozen=True):
    """How often the panel agrees with people."""

    rate: RatePart = RatePart()


class ConcordancePart(msgspec.Struct, frozen=True):
    """What people and the panel have in common."""

    headline: HeadlinePart = HeadlinePart()


class ReportPart(msgspec.Struct, frozen=True):
    """The fields of a report that a row shows; all others are skipped."""

    decision: DecisionPart = DecisionPart()
    leaderboard: list[StandingPart] = []
    concordance: ConcordancePart | None = None


@dataclass(frozen=True)
class RunSummary:
    """A run in a line.

    Attributes:
        headline: the answer.
        caution: what contradicts it; empty where nothing does.
        figure: the interval that it rests on, ``measure`` what it is of; null where there is none.
        sure: whether the headline names a winner.
    """

    headline: str
    caution: str = ""
    measure: str = ""
    figure: IntervalPart | None = None
    sure: bool = False

    def as_json(self) -> dict[str, Any]:
        """For the page."""
        return {
            "headline": self.headline,
            "caution": self.caution,
            "measure": self.measure,
            "figure": _figure(self.figure),
            "sure": self.sure,
        }


def summary(report: ReportPart | None, status: str, kind: str) -> RunSummary:
    """A run by its report; one that has not ended has none."""
    if report is None:
        return RunSummary("No result yet." if status == "running" else "This run has no report.")
    if kind == "validate" and report.concordance is not None:
        return _agreement(report.concordance.headline.rate)
    return _decision(report)


def _agreement(rate: RatePart) -> RunSummary:
    words = f"The panel agrees with people on {rate.right:g} of {rate.n} pairs."
    return RunSummary(words, measure="agreement with people", figure=rate.clustered)


def _decision(report: ReportPart) -> RunSummary:
    decision = report.decision
    names = short_names(name for name in (decision.winner, decision.runner_up) if name)
    winner, rival = (names.get(name or "", "") for name in (decision.winner, decision.runner_up))
    match decision.status:
        case "decided":
            words = f"{winner} wins."
        case "leading" if rival:
            words = f"No clear winner: {winner} leads, {rival} is next."
        case "leading" | "tied":
            words = "No clear winner."
        case _:
            words = "Nothing could be compared."
    first = next((row for row in report.leaderboard if row.candidate == decision.winner), None)
    if first is None or first.points is None:
        return RunSummary(words)
    return RunSummary(words, "", winner, first.points, decision.status == "decided")


def _figure(interval: IntervalPart | None) -> dict[str, Any] | None:
    """An interval of a share as numbers and text; null where it is none, or not within 0 to 1."""
    if interval is None or interval.estimate is None:
        return None
    ends = (interval.low, interval.estimate, interval.high)
    if any(end is None or not math.isfinite(end) or not 0 <= end <= 1 for end in ends):
        return None
    low, middle, high = (100 * end for end in ends if end is not None)
    return {
        "low": low,
        "estimate": middle,
        "high": high,
        "text": f"{middle:.0f}%",
        "bounds": f"[{low:.0f}, {high:.0f}]",
    }
