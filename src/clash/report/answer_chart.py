"""The interval chart of a run's answer, as rows: for the card, the comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.pages import ChartRow
from clash.report.formats import percent
from clash.report.headline import baseline_words, telling_baseline

if TYPE_CHECKING:
    from clash.analysis.concordance import Concordance
    from clash.analysis.findings import Findings
    from clash.pages.charts import Tone
    from clash.stats.intervals import Interval


def answer_rows(findings: Findings) -> tuple[str, list[ChartRow]]:
    """What the rows measure, and the rows: win rates, or agreement with people in a validation."""
    if findings.kind == "validate" and findings.concordance is not None:
        return "Agreement with people", _agreement_rows(findings.concordance)
    winner = findings.decision.winner if findings.decision.status == "decided" else None
    rows = [
        _row(
            line.candidate,
            line.win_rate_ties_half,
            "accent" if line.candidate == winner else "plain",
        )
        for line in findings.leaderboard
    ]
    return "Win rate", rows


def _agreement_rows(concordance: Concordance) -> list[ChartRow]:
    """Another person, the panel, its best judge and the best plain rule."""
    rows = [_row("panel", concordance.headline.rate.interval, "accent")]
    if concordance.people is not None:
        rows.insert(0, _row("another person", concordance.people.agreement))
    judges = [line for line in concordance.methods if line.kind == "judge" and line.interval]
    best = max(judges, key=lambda line: line.estimate, default=None)
    if best is not None:
        rows.append(_row(f"best judge: {best.name}", best.interval))
    baseline = telling_baseline(concordance)
    if baseline is not None:
        rows.append(_row(baseline_words(baseline.name).removeprefix("picking "), baseline.interval))
    return rows


def _row(name: str, interval: Interval | None, tone: Tone = "plain") -> ChartRow:
    if interval is None:
        return ChartRow(name, None, note="never judged", tone=tone)
    figure, _, bounds = percent(interval).partition(" ")
    return ChartRow(name, interval.estimate, interval.low, interval.high, figure, bounds, tone=tone)
