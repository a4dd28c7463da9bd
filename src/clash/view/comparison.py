"""Two runs beside each other: what changed, in a line and a chart, and the whole report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.analysis.settling import ALPHA
from clash.pages import ChartRow, difference_axis, short_names
from clash.report.compare import gradient_picture, tables
from clash.report.formats import signed_points
from clash.report.headline import comparison_headline, leading_change
from clash.wording import with_whole_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.compare import RunComparison
    from clash.analysis.compare.win_rate_changes import WinRateChange
    from clash.pages import Axis
    from clash.report.drawing import Picture
    from clash.report.headline import Headline
    from clash.report.tables import Table

_AXIS = "no change"


@dataclass(frozen=True)
class ComparisonView:
    """What the pages show of runs: the first is A, the next B.

    Attributes:
        rows: the change of each candidate's win rate from the first run to the last; empty for
            fewer than two candidates.
        caption: what the chart shows, and over which items.
        gradient: agreement with people over the difficulty of data sets; null where there is none.
    """

    runs: tuple[str, ...]
    headline: Headline
    rows: tuple[ChartRow, ...]
    caption: str
    tables: tuple[Table, ...]
    gradient: Picture | None = None

    @classmethod
    def of(cls, comparison: RunComparison) -> ComparisonView:
        """The view of a comparison."""
        pair = comparison.first_and_last
        pair_changes = [] if pair is None else pair.changes
        changes = sorted(pair_changes, key=lambda change: -change.difference.estimate)
        across = comparison.across
        return cls(
            tuple(line.run for line in comparison.runs),
            comparison_headline(comparison),
            tuple(_row(c, leading_change(pair)) for c in changes)
            if pair is not None and len(changes) > 1
            else (),
            _caption(changes),
            tuple(table for table in tables(comparison) if table.rows),
            None
            if across is None or across.gradient is None
            else gradient_picture(across.gradient),
        )

    @property
    def axis(self) -> Axis:
        """Of the chart."""
        return difference_axis(self.rows, label=_AXIS)

    def as_json(self) -> dict[str, Any]:
        """For the list of runs, which draws the chart itself."""
        names = short_names(row.name for row in self.rows)
        axis = self.axis
        return {
            "headline": with_whole_figures(self.headline.text),
            "evidence": " ".join(filter(None, (_sentence(self.headline.evidence), self.caption))),
            "label": "Change of win rates",
            "rows": [
                {
                    "name": names[row.name],
                    "title": row.name,
                    "figure": row.figure,
                    "bounds": row.bounds,
                    "estimate": row.estimate,
                    "low": row.low,
                    "high": row.high,
                    "accent": row.tone == "accent",
                }
                for row in self.rows
            ],
            "axis": {
                "low": axis.low,
                "high": axis.high,
                "reference": axis.reference,
                "ticks": [[value, label if value else _AXIS] for value, label in axis.ticks],
            },
        }


def _row(change: WinRateChange, leading: WinRateChange) -> ChartRow:
    gap = change.difference
    figure, _, bounds = signed_points(gap).partition(" ")
    return ChartRow(
        change.candidate,
        gap.estimate,
        gap.low,
        gap.high,
        figure,
        bounds,
        tone="accent" if change == leading and change.p_holm <= ALPHA else "plain",
    )


def _sentence(words: str) -> str:
    return f"{words}." if words and not words.endswith(".") else words


def _caption(changes: Sequence[WinRateChange]) -> str:
    if not changes:
        return ""
    first = changes[0]
    basis = "; by Bradley-Terry strengths" if first.by_strengths else ""
    if not first.is_paired:
        return f"Change of win rate in points{basis}; the runs share no prompt, so the samples are independent."
    items = f"the {first.n_items} prompts that both runs have"
    if first.by_strengths:
        items = "the prompts that both runs have"
    return f"Change of win rate in points, on {items}{basis}."
