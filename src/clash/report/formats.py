"""Numbers as text: every table, sentence and picture of a report writes them the same way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.wording import decimal as decimal
from clash.wording import plural as plural
from clash.wording import two_digits as two_digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.concordance.disagreements import Disagreement
    from clash.records import Verdict
    from clash.stats.hypothesis_tests import Significance
    from clash.stats.intervals import Interval

DASH = "–"
"""Stands for a number that is not there or is not defined."""
_LEAST_P = 0.001
"""Smaller p values have no digit left of three decimals."""
JSON_DIGITS = 6
"""Decimals of fitted numbers in JSON: later ones are not reproduced on another machine."""
_CENTS_FROM = 0.1
_LEAST_OF_FOUR_DIGITS = 0.0005
_LEAST_SHOWN = 0.0001


def number(value: float | None, form: str) -> str:
    """A number in a format such as ``.3f``, ``+.4f`` or ``.0%``."""
    return DASH if value is None or math.isnan(value) else f"{value:{form}}"


def estimate(interval: Interval | None, digits: int = 3, *, sign: str = "") -> str:
    """A coefficient and its interval, as ``0.71 [0.60, 0.80]``; ``sign="+"`` writes every sign."""
    if interval is None or math.isnan(interval.estimate):
        return DASH
    ends: Iterable[float] = (interval.estimate, interval.low, interval.high)
    if not sign:
        # "-0.00" becomes "0.00"; where every sign is written, it says on which side of zero.
        ends = (round(end, digits) + 0.0 for end in ends)
    middle, low, high = (f"{end:{sign}.{digits}f}" for end in ends)
    if not math.isfinite(interval.half_width):
        return f"{middle} {DASH}"
    return f"{middle} [{low}, {high}]"


def percent(interval: Interval | None, *, digits: int = 0) -> str:
    """A proportion and its interval, as ``71% [60, 80]``; a dash for one that rules nothing out."""
    if interval is None or math.isnan(interval.estimate):
        return DASH
    low, high = 100 * interval.low, 100 * interval.high
    if low <= 0 and high >= 100:
        return f"{interval.estimate:.{digits}%} {DASH}"
    return f"{interval.estimate:.{digits}%} [{low:.{digits}f}, {high:.{digits}f}]"


def bounds(interval: Interval) -> str:
    """The bounds of a proportion alone, in percent: ``[60.1, 80.2]``."""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def points(difference: Interval | None, *, digits: int = 1) -> str:
    """A difference of two proportions in points, as ``+6.1 [+1.0, +11.2]``, or with a dash."""
    if difference is None or math.isnan(difference.estimate):
        return DASH
    form = f"+.{digits}f"
    text = f"{100 * difference.estimate:{form}}"
    if difference.low <= -1 and difference.high >= 1:
        return f"{text} {DASH}"
    return f"{text} [{100 * difference.low:{form}}, {100 * difference.high:{form}}]"


def signed_points(difference: Interval) -> str:
    """A difference of two proportions in whole points, as ``+6 [1, 11]``, with a true minus."""
    ends = (difference.estimate, difference.low, difference.high)
    middle, low, high = (round(100 * end) for end in ends)
    words = f"{middle:+d} [{low}, {high}]" if middle else f"0 [{low}, {high}]"
    return words.replace("-", "−")


def share(rate: CaseRate | None) -> str:
    """Right answers of all, as ``71/74``; with a decimal where ties earn a part."""
    return DASH if rate is None else f"{decimal(rate.right)}/{rate.n}"


def unanimity(line: Verdict | Disagreement) -> str:
    """``unanimous``, with whom where observers that vote are not; empty where the panel is split."""
    if not line.unanimous:
        return ""
    has_dissent = any(int(count) for count in (line.split or "").split("-")[1:])
    return "panel unanimous" if has_dissent else "unanimous"


def p_value(test: Significance | None) -> str:
    """The p value of a test, as :func:`p_cell` writes it."""
    return p_cell(None if test is None else test.p)


def p_phrase(test: Significance | None) -> str:
    """The same p value in a sentence: ``p = 0.020``, ``p < 0.001``."""
    p = p_value(test)
    return f"p {p}" if p.startswith("<") else f"p = {p}"


def p_cell(p: float | None) -> str:
    """A p value in a table: three decimals, ``< 0.001`` where it has no digit left of them."""
    if p is None or math.isnan(p):
        return DASH
    return f"< {_LEAST_P}" if p < _LEAST_P else f"{p:.3f}"


def money(usd: float | None, *, fine: bool = True) -> str:
    """Dollars: cents from ten cents on; below that four decimals, or six where four say little.

    Args:
        usd: null where the price is unknown.
        fine: six decimals are allowed; not in a column, whose figures are read beside each other.
    """
    if usd is None:
        return "unknown"
    if usd == 0 or usd >= _CENTS_FROM:
        return f"${usd:,.2f}"
    if usd >= _LEAST_OF_FOUR_DIGITS or not fine:
        return f"${usd:.4f}" if usd >= _LEAST_SHOWN else f"< ${_LEAST_SHOWN}"
    text = f"{usd:.6f}".rstrip("0")
    return f"${text}" if float(text) else "< $0.000001"


def seconds(value: float | None) -> str:
    """A duration, as ``1.2 s`` or ``350 ms``."""
    if value is None:
        return DASH
    return f"{value:.1f} s" if value >= 1 else f"{value * 1000:.0f} ms"


def counts(causes: Mapping[str, int]) -> str:
    """``3 timeout, 1 refusal``, the commonest cause first."""
    ranking = sorted(causes.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{n} {cause}" for cause, n in ranking)


def first_names(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, as ``a, b and 3 more``."""
    listing = ", ".join(names[:most])
    return f"{listing} and {len(names) - most} more" if len(names) > most else listing
