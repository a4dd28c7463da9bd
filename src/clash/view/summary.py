"""A report in a line: its headline, what contradicts it, and the figure that it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import msgspec

from clash.pages import short_names
from clash.wording import with_whole_figures


class IntervalPart(msgspec.Struct, frozen=True):
    """An interval of a report; null where it is not a number or has no end."""

    estimate: float | None = None
    low: float | None = None
    high: float | None = None


_WITHOUT_REPORT = {
    "running": "No result yet.",
    "stopped": "Stopped before it ended; `clash resume` continues it.",
}


class DecisionPart(msgspec.Struct, frozen=True):
    """The decision of a report."""

    status: str = "none"
    winner: str | None = None


class StandingPart(msgspec.Struct, frozen=True):
    """A line of the leaderboard."""

    candidate: str
    win_rate_ties_half: IntervalPart | None = None


class HeadlinePart(msgspec.Struct, frozen=True):
    """What a report says in a line."""

    shape: str = ""
    text: str = ""
    contradiction: str | None = None


class RatePart(msgspec.Struct, frozen=True):
    """Right answers of all."""

    clustered: IntervalPart | None = None


class AgreementPart(msgspec.Struct, frozen=True):
    """How often the panel agrees with people."""

    rate: RatePart = RatePart()


class ConcordancePart(msgspec.Struct, frozen=True):
    """What people and the panel have in common."""

    headline: AgreementPart = AgreementPart()


class ReportPart(msgspec.Struct, frozen=True):
    """The fields of a report that a row shows; all others are skipped."""

    decision: DecisionPart = DecisionPart()
    leaderboard: list[StandingPart] = []
    concordance: ConcordancePart | None = None
    headline: HeadlinePart | None = None


class RetestPart(msgspec.Struct, frozen=True):
    """The fields of a retest that a row shows."""

    pair_agreement: IntervalPart | None = None


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
            "headline": with_whole_figures(self.headline),
            "caution": self.caution,
            "measure": self.measure,
            "figure": _figure(self.figure),
            "sure": self.sure,
        }


def summary(
    report: ReportPart | None, retest: RetestPart | None, state: str, kind: str
) -> RunSummary:
    """A run by its report, a rerun by how often it repeats its parent; null where there is none."""
    if report is None:
        return RunSummary(_WITHOUT_REPORT.get(state, "This run has no report."))
    if retest is not None and retest.pair_agreement is not None:
        agreement = retest.pair_agreement
        share = "–" if agreement.estimate is None else f"{agreement.estimate:.0%}"
        return RunSummary(
            f"The panel repeats itself on {share} of items.", "", "same verdict", agreement
        )
    headline = report.headline or _older_headline(report)
    measure, figure = _figure_of(report, kind)
    is_winner = headline.shape == "winner"
    return RunSummary(headline.text, headline.contradiction or "", measure, figure, is_winner)


def _figure_of(report: ReportPart, kind: str) -> tuple[str, IntervalPart | None]:
    """What the figure of a row is of, and the figure."""
    if kind == "validate" and report.concordance is not None:
        return "agreement with people", report.concordance.headline.rate.clustered
    first = next(iter(report.leaderboard), None)
    if first is None:
        return "", None
    names = short_names((row.candidate for row in report.leaderboard), 20)
    return f"{names[first.candidate]}, win rate", first.win_rate_ties_half


def _older_headline(report: ReportPart) -> HeadlinePart:
    """A line for a report of an earlier version, which stated none."""
    match report.decision.status:
        case "decided" if report.decision.winner is not None:
            name = report.decision.winner
            return HeadlinePart("winner", f"{short_names([name])[name]} wins.")
        case "leading" | "tied":
            return HeadlinePart("open", "No clear winner.")
        case _:
            return HeadlinePart("nothing", "Written by an earlier version; open it for its result.")


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
