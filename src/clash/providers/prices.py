"""What a call costs: reported by the provider, else the user's price, else a price table.

The table is ``genai-prices``, which knows long-context tiers, cached tokens and prices that change
on a date. What none of the three knows is unknown, which is not zero: a local server is free only
where its ``price`` says so, since its address tells nothing of who pays for it.

Sums are made in :class:`~decimal.Decimal`; floats are for the records.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from clash.providers.payload import count, part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from genai_prices.types import ModelInfo, Provider, TieredPrices

    from clash.config import ModelRef, TokenPrice
    from clash.providers.base import Reply, Request

    _Address = tuple[str | None, str | None]
    _Rate = Decimal | TieredPrices | None

MILLION = Decimal(1_000_000)
_ZERO = Decimal(0)
OFFLINE = ("baseline", "replay", "python")
BATCH_SHARE = Decimal("0.5")
"""What a batch costs of a price that the user gave: every vendor's batch API takes half."""
_TURN_OVERHEAD = 32
"""Tokens around a turn (role, separators) in the chat templates of the dearest kind."""
_CALL_OVERHEAD = 1024
"""Tokens that a vendor adds of itself, such as the instructions of a forced tool."""
_BYTES_PER_TOKEN = 3.5


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars, and who says so: ``reported``, ``config``, ``offline``, ``genai-prices X.Y``."""

    usd: Decimal
    source: str


def cost(ref: ModelRef, reply: Reply, *, batch: bool = False) -> Cost | None:
    """What a reply cost; null is unknown.

    Args:
        ref: the model.
        reply: what it answered.
        batch: it was asked through its provider's batch API.
    """
    if ref.provider in OFFLINE:
        return Cost(Decimal(0), "offline")
    if reply.cost_usd is not None:
        return Cost(Decimal(repr(reply.cost_usd)), "reported")
    tokens = reply.tokens
    if tokens.input is None or tokens.output is None:
        return None
    if ref.price is not None:
        return _of_config(ref, ref.price, tokens.input, tokens.output, batch)
    cache_writes = _cache_writes(reply.response)
    for name in (ref.name, reply.served_model):
        usd = _from_table(
            ref, name, tokens.input, tokens.output, tokens.cached, cache_writes, batch
        )
        if usd is not None:
            return Cost(usd, _source(batch))
    return None


class Price(NamedTuple):
    """The rates of a model on the table, each of which may have tiers: its own attributes are slow."""

    input: _Rate
    cache_write: _Rate
    output: _Rate
    reasoning: _Rate
    thousand_calls: _Rate

    @property
    def is_plain(self) -> bool:
        """Whether a plain call costs its input and output at one rate each, and nothing else.

        A rate may rise with the length of the input; of rising ones the last reached is the highest.
        """
        return self.thousand_calls is None and _rises(self.input) and _rises(self.output)


def _rises(price: _Rate) -> bool:
    """Whether there is a rate, and none of its tiers is below the one before."""
    if price is None or isinstance(price, Decimal):
        return price is not None
    steps = [price.base, *(tier.price for tier in price.tiers)]
    return steps == sorted(steps)


def worst_case(ref: ModelRef, request: Request, *, batch: bool = False) -> Cost | None:
    """The most that one attempt of ``request`` can cost; null is unknown.

    No tokenizer in use makes more tokens than a text has UTF-8 bytes, and no vendor writes more
    than ``max_tokens``, reasoning included. Input is priced at the dearest of its rates (plain or
    cache write) and of the long-context tiers that so many tokens could reach.
    """
    return _at_most(ref, input_bound(request), output_bound(ref, request), batch)


def expected_cost(
    ref: ModelRef, request: Request, output: int | None = None, *, batch: bool = False
) -> Cost | None:
    """What one attempt of ``request`` will about cost, for a plan; null is unknown.

    Args:
        ref: the model.
        request: the question; a token is taken to be three and a half bytes.
        output: expected tokens of the answer; a third of the cap where not given.
        batch: it is asked through its provider's batch API.
    """
    if output is None:
        output = request.max_tokens // 3
    tokens = input_estimate(request)
    if ref.provider in OFFLINE:
        return Cost(Decimal(0), "offline")
    if ref.price is not None:
        return _of_config(ref, ref.price, tokens, output, batch)
    price = next(iter(_prices(ref, batch)), None)
    return None if price is None else Cost(plain_sum(price, tokens, output), _source(batch))


def has_price(ref: ModelRef) -> bool:
    """Whether calls of this model can be priced beforehand."""
    return _at_most(ref, 0, 0, batch=False) is not None


def input_bound(request: Request) -> int:
    """More tokens than the vendor can count for the input of ``request``."""
    return request.n_bytes + _TURN_OVERHEAD * (len(request.turns) + 1) + _CALL_OVERHEAD


def input_estimate(request: Request) -> int:
    """About the tokens that the vendor will count for the input of ``request``."""
    return round(request.n_bytes / _BYTES_PER_TOKEN) + 4 * (len(request.turns) + 1)


def output_bound(ref: ModelRef, request: Request) -> int:
    """The most tokens of the answer; OpenAI's Responses API has a least cap of 16."""
    return max(request.max_tokens, 16) if ref.provider == "openai" else request.max_tokens


def _at_most(ref: ModelRef, tokens_in: int, tokens_out: int, batch: bool) -> Cost | None:
    if ref.provider in OFFLINE:
        return Cost(Decimal(0), "offline")
    if ref.price is not None:
        return _of_config(ref, ref.price, tokens_in, tokens_out, batch)
    bounds = [
        _sum(price, *_highest_rates(price, tokens_in), tokens_in, tokens_out)
        for price in _prices(ref, batch)
    ]
    return Cost(max(bounds), _source(batch)) if bounds else None


def _of_config(
    ref: ModelRef, price: TokenPrice, tokens_in: int, tokens_out: int, batch: bool
) -> Cost:
    rate_in, rate_out = _rates(price.input, price.output)
    usd = (rate_in * tokens_in + rate_out * tokens_out) / MILLION
    if not batch or ref.provider == "vllm":  # a cluster of one's own gives no discount
        return Cost(usd, "config")
    return Cost(usd * BATCH_SHARE, "config, half for a batch")


@lru_cache(maxsize=1024)
def _rates(*floats: float) -> tuple[Decimal, ...]:
    """Prices of a configuration: 0.15 is meant as 0.15, not as the binary fraction beside it."""
    return tuple(Decimal(repr(price)) for price in floats)


def plain_sum(price: Price, tokens_in: int, tokens_out: int) -> Decimal:
    """At the rates for an input of this length, with nothing cached."""
    rate_in = _dearest(price.input, tokens_in)
    rate_out = _dearest(price.output, tokens_in)
    return _sum(price, rate_in, rate_out, tokens_in, tokens_out)


def _highest_rates(price: Price, tokens_in: int) -> tuple[Decimal, Decimal]:
    """The highest rates that input and output of one call can be billed at."""
    rate_in = max(_dearest(price.input, tokens_in), _dearest(price.cache_write, tokens_in))
    rate_out = max(_dearest(price.output, tokens_in), _dearest(price.reasoning, tokens_in))
    return rate_in, rate_out


def _sum(
    price: Price, rate_in: Decimal, rate_out: Decimal, tokens_in: int, tokens_out: int
) -> Decimal:
    per_call = _dearest(price.thousand_calls, tokens_in) / 1000
    return (rate_in * tokens_in + rate_out * tokens_out) / MILLION + per_call


def _dearest(price: _Rate, tokens: int) -> Decimal:
    """The highest rate among those that an input of up to ``tokens`` can be billed at."""
    if price is None:
        return _ZERO
    if isinstance(price, Decimal):
        return price
    tier_prices = (tier.price for tier in price.tiers if tier.start < tokens)
    return max((price.base, *tier_prices))


def _prices(ref: ModelRef, batch: bool) -> tuple[Price, ...]:
    """The prices of now and of within the hour: some change on a date, some at an hour."""
    return _prices_of(ref, ref.name, batch)


def _prices_of(ref: ModelRef, name: str, batch: bool) -> tuple[Price, ...]:
    """As :func:`_prices`, of a model called ``name`` at the servers of ``ref``."""
    addresses = tuple(_where(server) for server in ref.servers)
    return _prices_in(name, addresses, batch, int(time.time() / 60))


@lru_cache(maxsize=1024)
def _prices_in(
    name: str, addresses: tuple[_Address, ...], batch: bool, minute: int
) -> tuple[Price, ...]:
    """The prices of a minute since 1970; nearly every call asks for them several times."""
    listing = _listing(name, addresses)
    return () if listing is None else rates(listing[1], _context(batch), 60 * minute)


def rates(
    model: ModelInfo, context: dict[str, str] | None, seconds: float | None = None
) -> tuple[Price, ...]:
    """The rates of a model at a moment, and those in an hour where they differ.

    Args:
        model: of the table.
        context: what prices for batches are found by.
        seconds: since 1970; now by default.
    """
    start = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    moments = (start, start + timedelta(minutes=61))
    now, soon = (
        Price(
            price.input_mtok,
            price.cache_write_mtok,
            price.output_mtok,
            price.output_reasoning_mtok,
            price.requests_kcount,
        )
        for price in (model.get_prices(moment, context) for moment in moments)
    )
    return (now,) if now == soon else (now, soon)


@lru_cache(maxsize=1024)
def _table_row(
    name: str, provider: str | None, address: str | None
) -> tuple[Provider, ModelInfo] | None:
    """The table's entry of a model; to look in vain for one that is not there takes long."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        return get_snapshot().find_provider_model(name, None, provider, address)
    except LookupError:
        return None


def _listing(name: str, addresses: Iterable[_Address]) -> tuple[Provider, ModelInfo] | None:
    """The table's entry of a model; null where its servers belong to different sellers.

    Nobody knows beforehand which of the servers will answer, and at whose price.
    """
    listings = [_table_row(name, *address) for address in addresses]
    sellers = {None if listing is None else listing[0].id for listing in listings}
    return listings[0] if len(sellers) == 1 else None


def _from_table(
    ref: ModelRef,
    name: str | None,
    tokens_in: int,
    tokens_out: int,
    cache_reads: int | None,
    cache_writes: int | None,
    batch: bool,
) -> Decimal | None:
    price = None if name is None else next(iter(_prices_of(ref, name, batch)), None)
    if name is None or price is None:
        return None
    if not (cache_reads or cache_writes or batch) and price.is_plain:
        return plain_sum(price, tokens_in, tokens_out)  # a tenth of the time of the table's own sum
    from genai_prices import Usage

    listing = _listing(name, map(_where, ref.servers))
    if listing is None:
        return None
    provider, model = listing
    usage = Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cache_read_tokens=cache_reads,
        cache_write_tokens=cache_writes,
    )
    try:
        return model.calc_price(usage, provider, price_context=_context(batch)).total_price
    except (LookupError, ValueError):
        # ValueError: counts that contradict each other. Unknown, then; never a guess.
        return None


def _where(ref: ModelRef) -> _Address:
    """How the table finds the seller: by name, or a compatible server by its address."""
    if ref.provider in ("compatible", "vllm"):
        return None, ref.base_url or "unknown"
    return ref.provider, None


def _cache_writes(response: Any) -> int | None:  # noqa: ANN401 - whatever the wire said
    usage = part(response, "usage")
    for details in ("prompt_tokens_details", "input_tokens_details"):
        tokens = count(part(usage, details, "cache_write_tokens"))
        if tokens is not None:
            return tokens
    return count(part(usage, "cache_creation_input_tokens"))


def _context(batch: bool) -> dict[str, str] | None:
    """What the table's prices for batches are found by; a model without one is at its full price."""
    return {"processing": "batch"} if batch else None


@cache
def _source(batch: bool) -> str:
    import genai_prices

    name = f"genai-prices {genai_prices.__version__}"
    return f"{name}, batch" if batch else name
