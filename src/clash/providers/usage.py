"""The cost of an answered attempt, where the usage that its server reports is plausible.

An impossible count or cost is unknown: it is neither booked nor added up. The reservation, the most
that the attempt can cost at list prices, counts against the budget instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.config import TokenPrice
from clash.providers import prices
from clash.providers.payload import count, money
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from decimal import Decimal

    from clash.config import ModelRef
    from clash.providers.base import Reply, Request

MOST_OVER_LIST = 10
"""How many times the worst case at list prices a reported cost may be: lists grow old, gateways
add fees, and a routed request may end at a dearer host."""
DEAREST = TokenPrice(input=200, output=1000)
"""Above every price on any list, for models that are on none."""
_COUNTS = ("tokens", "tokencount")


@dataclass(frozen=True, slots=True)
class Charge:
    """What an answered attempt cost.

    Attributes:
        cost: null is unknown.
        tokens: the counts that are possible; the others are null.
        doubt: why the reported usage is implausible; null where it is plausible.
    """

    cost: prices.Cost | None
    tokens: Tokens
    doubt: str | None = None


def charge(ref: ModelRef, request: Request, reply: Reply, *, batch: bool = False) -> Charge:
    """The cost of ``reply``, unless the usage it reports for ``request`` is impossible."""
    if ref.provider not in prices.OFFLINE:
        doubts = list(_doubts(ref, request, reply, batch=batch))
        if doubts:
            return Charge(None, _possible(ref, request, reply), "; ".join(doubts))
    return Charge(prices.cost(ref, reply, batch=batch), reply.tokens)


def _doubts(ref: ModelRef, request: Request, reply: Reply, *, batch: bool) -> Iterator[str]:
    tokens = reply.tokens
    most_in, most_out = prices.input_bound(request), prices.output_bound(ref, request)
    for name, value in _not_amounts(reply.response):
        yield f"{name} is {str(value)[:20]!r}, which is not a valid amount"
    if (tokens.input or 0) > most_in:
        yield f"{_figure(tokens.input)} input tokens, where the request allows {_figure(most_in)}"
    if (tokens.output or 0) > most_out:
        yield f"{_figure(tokens.output)} output tokens, where the cap is {_figure(most_out)}"
    worst = prices.worst_case(ref, request, batch=batch)
    if worst is None or worst.usd > 0:  # it has a price, or none that is known
        yield from _zero_counts(reply)
    if reply.cost_usd is not None:
        limit = _reported_limit(ref, request, worst)
        if not 0 <= reply.cost_usd <= limit:
            yield f"a cost of ${reply.cost_usd:.4g}, where at most ${limit:.4g} is plausible"


def _zero_counts(reply: Reply) -> Iterator[str]:
    """Counts of 0 for real texts: with them no budget would ever be spent."""
    if reply.tokens.input == 0:
        yield "0 input tokens for a request that was answered"
    if reply.tokens.output == 0 and reply.text:
        yield f"0 output tokens for an answer of {len(reply.text):,} characters"


def _reported_limit(ref: ModelRef, request: Request, worst: prices.Cost | None) -> Decimal:
    """The highest reported cost that is believed."""
    # A price of 0 says that the user pays nothing, not what the server counts.
    if worst is not None and worst.usd > 0:
        return worst.usd * MOST_OVER_LIST
    dearest = prices.worst_case(ref.model_copy(update={"price": DEAREST}), request)
    assert dearest is not None  # noqa: S101 - it has a price
    return dearest.usd


def _possible(ref: ModelRef, request: Request, reply: Reply) -> Tokens:
    """The counts of ``reply`` without those that cannot be."""
    most_in, most_out = prices.input_bound(request), prices.output_bound(ref, request)
    limits = {
        "input": range(1, most_in + 1),
        "cached": range(most_in + 1),
        "output": range(1 if reply.text else 0, most_out + 1),
        "reasoning": range(most_out + 1),
    }
    return Tokens(
        **{
            name: value
            for name, possible in limits.items()
            if (value := getattr(reply.tokens, name)) is not None and value in possible
        }
    )


def _not_amounts(response: object) -> Iterator[tuple[str, object]]:
    """Entries of the usage object that should be counts or a cost and are not."""
    if not isinstance(response, dict):
        return
    usage = response.get("usage") or response.get("usageMetadata")
    parts = [usage, *usage.values()] if isinstance(usage, dict) else []
    for part in parts:
        if isinstance(part, dict):
            yield from _wrong_entries(part)


def _wrong_entries(part: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in part.items():
        if value is None or isinstance(value, dict | list):
            continue
        wrong_count = name.lower().endswith(_COUNTS) and count(value) is None
        if wrong_count or (name == "cost" and money(value) is None):
            yield name, value


def _figure(value: int | None) -> str:
    """A count, short whatever its size: Python refuses to print the very longest."""
    if value is None or value < 10**12:
        return f"{value:,}"
    return f"about 10^{round(value.bit_length() * 0.30103)}"
