"""Strengths with the judges' reliability and at equal style, as tables and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clash.analysis.serialize import to_dict
from clash.report.formats import DASH, JSON_DIGITS
from clash.report.tables import Table, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from clash.analysis.rankings.judge_aware import JudgeAwareRanking, Strength
    from clash.stats.intervals import Interval

STRENGTHS = "Strengths with the judges' reliability"
STYLE = "Style"
RELIABILITY = "Reliability of the judges"
_MOST_ROWS = 20
_WIDEST = 20.0
"""Log strengths beyond say nothing that a reader could use."""


def as_json(ranking: JudgeAwareRanking) -> dict[str, Any]:
    """Everything, as the contract of ``--json`` has it."""
    return to_dict(ranking, JSON_DIGITS)


def tables(ranking: JudgeAwareRanking | None) -> list[Table]:
    """The candidates with and without adjustment, what style does, and the judges."""
    if ranking is None:
        return []
    return [candidates(ranking), *_styles(ranking), _judges(ranking)]


def candidates(ranking: JudgeAwareRanking) -> Table:
    """Ranks and strengths of the candidates, as they are and at equal style."""
    at_equal_style = bool(ranking.adjusted_for)
    rows = [
        {
            "candidate": row.candidate,
            **(_places(row.at_equal_style, "\nequal style") if at_equal_style else {}),
            **_places(row.plain),
        }
        for row in ranking.rows
    ]
    title = (
        f"{STRENGTHS}, at equal {', '.join(ranking.adjusted_for)}" if at_equal_style else STRENGTHS
    )
    notes = [
        "log strength against the mean, on the scale of the average judge; in brackets "
        f"{ranking.level:.0%} intervals, those of ranks for all candidates together",
        f"{plural(ranking.n, 'comparison')}, errors clustered by {ranking.n_clusters} items or "
        "prompts",
        *(f"not adjusted for {name}: {reason}" for name, reason in ranking.left_out.items()),
        *ranking.notes,
    ]
    if len(rows) > _MOST_ROWS:
        notes.append(f"and {len(rows) - _MOST_ROWS} more: --json has them all")
    return Table.of(title, rows[:_MOST_ROWS], notes=notes)


def _styles(ranking: JudgeAwareRanking) -> list[Table]:
    rows = [
        {
            "style": row.style,
            "for": row.unit,
            "odds times": _factor(row.odds),
            "": _verdict(row.effect),
        }
        for row in ranking.styles
    ]
    notes = [
        "odds of winning are multiplied by this for the response that has it, between equals",
        "longer or better laid out may also be better: equal style then takes some merit away",
    ]
    return with_rows([Table.of(STYLE, rows, text=("for", ""), notes=notes)])


def _judges(ranking: JudgeAwareRanking) -> Table:
    rows = [
        {
            "judge": row.judge,
            "reliability": _number(row.reliability, ""),
            "tie odds": f"{row.tie_odds:.2f}",
            "comparisons": f"{row.n:,}",
        }
        for row in ranking.judges
    ]
    notes = [
        "reliability: how strongly a judge follows the strengths, 1 on average; 0 is a coin, below 0 "
        "the opposite of the others. It is agreement with the panel, not with people",
        "tie odds: a tie against a decision, between equals",
    ]

    return Table.of(RELIABILITY, rows, notes=notes)


def _number(interval: Interval, sign: str = "+") -> str:
    estimate, low, high = (
        f"{v:{sign}.2f}" for v in (interval.estimate, interval.low, interval.high)
    )
    if interval.low < -_WIDEST or interval.high > _WIDEST:
        return f"{estimate} {DASH}"
    return f"{estimate} [{low}, {high}]"


def _factor(odds: Interval) -> str:
    if odds.high > 1e4:
        return f"{odds.estimate:.2f} {DASH}"
    return f"{odds.estimate:.2f} [{odds.low:.2f}, {odds.high:.2f}]"


def _verdict(effect: Interval) -> str:
    if not effect.excludes(0):
        return "no effect shown"
    return "favoured" if effect.estimate > 0 else "disfavoured"


def _places(strength: Strength, condition: str = "") -> dict[str, str]:
    at = f" at{condition}" if condition else ""
    return {
        f"rank{at}": f"{strength.rank} [{strength.rank_low}, {strength.rank_high}]",
        f"strength{at}": _number(strength.strength),
    }
