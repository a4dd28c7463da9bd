"""Quality, cost and speed of the candidates: who is dominated, and by whom."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from statistics import mean, median
from typing import TYPE_CHECKING, ClassVar

import msgspec

from clash.store.stored import parts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.leaderboard import Standing
    from clash.analysis.rundata import RunData, Usage


@dataclass(frozen=True)
class Economy:
    """What a model cost, in calls, money and time.

    Attributes:
        cost_usd: the known part of the sum; null where nothing is known.
        exact: every call's cost is known, so that the sum is no lower bound.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"name": "who"}

    name: str
    purpose: str
    calls: int
    attempts: int
    cost_usd: float | None
    exact: bool
    tokens_in: int
    tokens_out: int
    latency_median_s: float | None
    latency_p90_s: float | None
    ttft_median_s: float | None
    errors: dict[str, int]


@dataclass(frozen=True)
class Trade:
    """A candidate on the three scales; ``dominated_by`` are those no worse on any, better on one.

    Cost and latency are those of its own responses, a mean for each. They are null for injected
    responses, and a scale that is null for either of two candidates does not compare them.
    """

    candidate: str
    quality: float | None
    cost_usd: float | None
    latency_s: float | None
    ttft_s: float | None
    dominated_by: list[str]


def economies(run: RunData) -> list[Economy]:
    """One line for each model and purpose that made a call."""
    return [_economy(name, purpose, use) for (purpose, name), use in sorted(run.usage.items())]


def _economy(name: str, purpose: str, use: Usage) -> Economy:
    times = sorted(use.latencies)
    has_cost = use.calls > use.unknown or use.cost_usd > 0
    return Economy(
        name=name,
        purpose=purpose,
        calls=use.calls,
        attempts=use.attempts,
        cost_usd=round(use.cost_usd, 10) if has_cost else None,
        exact=use.unknown == 0,
        tokens_in=use.tokens_in,
        tokens_out=use.tokens_out,
        latency_median_s=median(times) if times else None,
        latency_p90_s=times[min(len(times) - 1, int(0.9 * len(times)))] if times else None,
        ttft_median_s=median(use.ttfts) if use.ttfts else None,
        errors=dict(use.errors),
    )


def trades(run: RunData, standings: Sequence[Standing]) -> list[Trade]:
    """The candidates on all three scales, best quality first."""
    bare = [_trade(run, standing) for standing in standings]
    return [
        Trade(
            t.candidate,
            t.quality,
            t.cost_usd,
            t.latency_s,
            t.ttft_s,
            [rival.candidate for rival in bare if _dominates(rival, t)],
        )
        for t in bare
    ]


class _Spending(msgspec.Struct, gc=False):
    """What a response took."""

    candidate: str
    cost_usd: float | None = None
    latency_s: float | None = None
    ttft_s: float | None = None


def _trade(run: RunData, standing: Standing) -> Trade:
    costs, times, firsts = array("d"), array("d"), array("d")
    for response in parts(run.responses, _Spending):
        if response.candidate != standing.candidate:
            continue
        for values, value in (
            (costs, response.cost_usd),
            (times, response.latency_s),
            (firsts, response.ttft_s),
        ):
            if value is not None:
                values.append(value)
    return Trade(
        candidate=standing.candidate,
        quality=standing.win_rate_ties_half.estimate if standing.win_rate_ties_half else None,
        cost_usd=mean(costs) if costs else None,
        latency_s=median(times) if times else None,
        ttft_s=median(firsts) if firsts else None,
        dominated_by=[],
    )


def front(points: Mapping[str, tuple[float, float]]) -> set[str]:
    """The names on the front of two scales: nobody is as good for less, or better for as much.

    Args:
        points: quality and price (in money or in time) by name.
    """
    return {
        name
        for name, (quality, price) in points.items()
        if not any(
            rival >= quality and cost <= price and (rival, cost) != (quality, price)
            for rival, cost in points.values()
        )
    }


def _dominates(first: Trade, second: Trade) -> bool:
    """Whether ``first`` is no worse on every scale that both have, and better on one."""
    scales = [(first.quality, second.quality, 1), (first.cost_usd, second.cost_usd, -1)]
    scales.append((first.latency_s, second.latency_s, -1))
    leads = [sign * (a - b) for a, b, sign in scales if a is not None and b is not None]
    # One scale alone is a ranking, not a trade-off.
    return len(leads) > 1 and min(leads) >= 0 and max(leads) > 0
