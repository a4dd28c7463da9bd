"""Names and numbers as the page writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.decision import p_text
from clash.pages import ChartRow
from clash.report.formats import decimal, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance.cases import CaseRate
    from clash.pages.charts import Tone
    from clash.stats.hypothesis_tests import Significance
    from clash.stats.intervals import Interval

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def p_words(test: Significance | float | None) -> str:
    """``p = 0.02``, never a zero; empty without a test."""
    if test is None:
        return ""
    return p_text(test if isinstance(test, float) else test.p)


def number(n: int) -> str:
    """A small number in words, as at the start of a sentence."""
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n:,}"


def listing(names: Sequence[str], most: int = 3) -> str:
    """``a``, ``a and b``, ``a, b and 2 more``."""
    if len(names) > most:
        return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def right_of(rate: CaseRate) -> str:
    """``13 of 30``."""
    return f"{decimal(rate.right)} of {rate.n}"


def duration(seconds: float) -> str:
    """``0.2 s``, ``48 s``, ``3 min 12 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, remainder = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {remainder} s"
    return f"{minutes // 60} h {minutes % 60} min"


def bracket(interval: Interval) -> str:
    """The bounds alone, in percent: ``[52, 69]``."""
    return percent(interval).partition(" ")[2]


def share_row(
    name: str,
    interval: Interval | None,
    *,
    note: str = "",
    tone: Tone = "plain",
    mark: float | None = None,
) -> ChartRow:
    """A share as a row of a chart; a name with a dash where there is none."""
    if interval is None or interval.estimate != interval.estimate:  # NaN
        return ChartRow(name, None, note=note or "not judged", mark=mark)
    return ChartRow(
        name,
        interval.estimate,
        interval.low,
        interval.high,
        f"{interval.estimate:.0%}",
        bracket(interval),
        note,
        mark,
        tone,
    )
