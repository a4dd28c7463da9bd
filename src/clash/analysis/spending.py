"""Cost of a run against its forecast, and models whose reported usage is impossible."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.records import CallSummary

FAR_OVER = 1.5
"""Times the expected cost from which on a run says why it cost more."""
_FOLLOW_UPS = {"longer": "truncated answers, asked for again", "reask": "questions asked again"}


@dataclass
class UsageDoubt:
    """A model whose server reported usage that is impossible.

    Attributes:
        calls: its calls with such usage; their cost is unknown.
        bound_usd: what these can have cost at most, at list prices.
        example: the first of the reasons.
    """

    model: str
    calls: int = 0
    bound_usd: float = 0.0
    example: str = ""


@dataclass
class Tally:
    """Totals over all calls of a run, beside their cost.

    Attributes:
        bound_usd: what they can have cost at most, those included whose cost is unknown.
        extra: calls and attempts that no forecast counts, by kind.
        doubts: by model.
    """

    bound_usd: float = 0.0
    extra: Counter[str] = field(default_factory=Counter)
    doubts: dict[str, UsageDoubt] = field(default_factory=dict)

    def add(self, call: CallSummary) -> None:
        """Count one attempt."""
        cost = call.cost_usd if call.cost_usd is not None else call.cost_bound_usd
        self.bound_usd += cost or 0.0
        if call.attempt > 1:
            self.extra["retries"] += 1
        for step in call.call_id.split("+")[1:]:
            self.extra[_FOLLOW_UPS.get(step, step)] += call.attempt == 1
        if call.usage_doubt is not None:
            doubt = self.doubts.setdefault(call.model, UsageDoubt(call.model))
            doubt.calls += 1
            doubt.bound_usd += call.cost_bound_usd or 0.0
            doubt.example = doubt.example or call.usage_doubt


@dataclass(frozen=True)
class Spending:
    """Forecast and fact.

    Attributes:
        bound_usd: the most that the run can have cost; above ``cost_usd`` where the cost of some
            calls is unknown.
        expected_usd: the forecast; null where the run has none, as ``worst_usd`` and ``calls``.
        warning: why it cost more than was to be expected; null where it did not.
    """

    cost_usd: float
    bound_usd: float
    expected_usd: float | None
    worst_usd: float | None
    calls: int | None
    warning: str | None


def spending(forecast: Mapping[str, Any] | None, cost_usd: float, tally: Tally) -> Spending:
    """Compare what a run cost with the forecast in its manifest."""
    bound = round(max(tally.bound_usd, cost_usd), 10)
    if forecast is None:
        return Spending(cost_usd, bound, None, None, None, None)
    expected_usd, worst = float(forecast["expected_usd"]), float(forecast["worst_usd"])
    return Spending(
        cost_usd=cost_usd,
        bound_usd=bound,
        expected_usd=expected_usd,
        worst_usd=worst,
        calls=int(forecast["calls"]),
        warning=_warning(cost_usd, expected_usd, worst, tally),
    )


def _warning(cost: float, expected_usd: float, worst: float, tally: Tally) -> str | None:
    # The worst case is one of single attempts, so that retries can pass it.
    if cost <= worst and cost <= FAR_OVER * expected_usd:
        return None
    causes = [f"{count} {name}" for name, count in tally.extra.most_common() if count]
    reason = ", ".join(causes) or "longer answers or higher prices than expected"
    over = "more than the worst case of single attempts" if cost > worst else "more than expected"
    return f"the run cost {over}: {reason}"
