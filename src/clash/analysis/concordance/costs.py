"""What an evaluation costs, and what a correct verdict costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance.cases import LabelledCase
    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class Costs:
    """Money and time, of the whole run.

    Attributes:
        cost_usd: null where it is unknown; ``exact`` is false where it is a lower bound.
        per_item, per_correct: dollars by item judged, and by verdict that is the label.
        wall_s: seconds from start to end; ``wall_per_item`` shrinks with concurrency.
        called_s: seconds that an item's calls took, added up; null where not recorded.
    """

    cost_usd: float | None
    exact: bool
    per_item: float | None
    per_correct: float | None
    wall_s: float
    wall_per_item: float | None
    called_s: float | None


def costs(run: RunData, cases: Sequence[LabelledCase]) -> Costs:
    """From the calls; from the manifest where the run holds none."""
    n, right = len(run.items), sum(case.right for case in cases)
    if run.usage:
        cost_usd: float | None = math.fsum(use.cost_usd for use in run.usage.values())
        exact = not any(use.unknown for use in run.usage.values())
    else:
        cost_usd, exact = run.manifest.cost_usd, not run.manifest.cost_is_lower_bound
    call_seconds = math.fsum(s for use in run.usage.values() for s in use.latencies)
    wall = run.manifest.wall_s
    # Only labelled items can be right, so their share of the cost is what a correct one costs.
    share = len(cases) / n if n else 0.0
    return Costs(
        cost_usd=cost_usd,
        exact=exact,
        per_item=None if cost_usd is None or not n else cost_usd / n,
        per_correct=None if cost_usd is None or not right else cost_usd * share / right,
        wall_s=wall,
        wall_per_item=wall / n if n and wall else None,
        called_s=call_seconds / n if n and run.usage else None,
    )
