"""The interval chart of a run's answer, for media other than a page: the card, a comment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.pages import share_axis
from clash.report.html.trust import chance_mark, method_rows
from clash.report.html.words import share_row

if TYPE_CHECKING:
    from clash.analysis.findings import Findings
    from clash.pages import Axis, ChartRow


@dataclass(frozen=True)
class AnswerChart:
    """What a run's answer rests on.

    Attributes:
        measure: what the rows are of: win rates, and by which model where candidates answered
            different items, or agreement with people in a validation.
        rows: best first.
        reference: the share that they are read against, and what it means.
    """

    measure: str
    rows: tuple[ChartRow, ...]
    reference: tuple[float, str]

    @classmethod
    def of(cls, findings: Findings) -> AnswerChart:
        """The chart of a run."""
        people = findings.concordance
        if findings.kind == "validate" and people is not None:
            return cls("Agreement with people", tuple(method_rows(people)), chance_mark(people))
        winner = findings.decision.winner if findings.decision.status == "decided" else None
        rows = (
            share_row(
                line.candidate,
                line.win_rate_ties_half,
                note="" if line.win_rate_ties_half else "never judged",
                tone="accent" if line.candidate == winner else "plain",
            )
            for line in findings.leaderboard
        )
        is_modelled = any(line.by_strengths for line in findings.leaderboard)
        measure = "Win rate (Bradley-Terry)" if is_modelled else "Win rate"
        return cls(measure, tuple(rows), (0.5, "50% = level"))

    def first(self, most: int) -> AnswerChart:
        """The chart with its first rows only."""
        return AnswerChart(self.measure, self.rows[:most], self.reference)

    @property
    def axis(self) -> Axis:
        """What the rows span."""
        share, label = self.reference
        return share_axis(self.rows, reference=share, label=label)
