"""Numbers as the cells of a table."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.report.tables import NONE

if TYPE_CHECKING:
    from clash.analysis.concordance import Rate
    from clash.stats.hypothesis_tests import Significance
    from clash.stats.intervals import Interval

MOST_ROWS = 40
"""Rows of a long table that are shown; report.json has them all."""
CLUSTERED = "95%, clustered"


def p_value(test: Significance | None) -> str:
    """A p value with as many digits as matter."""
    if test is None:
        return NONE
    return f"{test.p:.1e}" if test.p < 0.001 else f"{test.p:.3f}"


def points(gap: Interval | None) -> str:
    """A difference of two shares, in percentage points."""
    if gap is None or math.isnan(gap.estimate):
        return NONE
    bounds = (
        f" [{100 * gap.low:+.1f}, {100 * gap.high:+.1f}]" if math.isfinite(gap.half_width) else ""
    )
    return f"{100 * gap.estimate:+.1f}{bounds}"


def number(interval: Interval | None, digits: int = 3) -> str:
    """A coefficient and its interval."""
    if interval is None or math.isnan(interval.estimate):
        return NONE
    return f"{interval.estimate:.{digits}f} [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def share(rate: Rate | None) -> str:
    """``71/74``, with a decimal only where ties earn half."""
    return NONE if rate is None else f"{rate.right:g}/{rate.n}"


def bounds(interval: Interval) -> str:
    """An interval alone, in percent."""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
