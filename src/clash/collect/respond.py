"""The response of a candidate to an item, generated once and shown to every judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.collect.calling import Ask, ModelStopError, call_id
from clash.collect.plan import GENERATION_TOKENS
from clash.providers.base import Request
from clash.records import Response

if TYPE_CHECKING:
    from clash.collect.calling import AnswerSource
    from clash.config import Candidate, Config, Options
    from clash.records import Call, Item


async def respond(
    item: Item, candidate: Candidate, config: Config, caller: AnswerSource
) -> Response:
    """Generate a response; where that fails, a record with the reason."""
    ask = Ask(
        call_id=call_id("generate", item.item_id, candidate.id),
        purpose="generate",
        item_id=item.item_id,
        candidate=candidate.id,
        ref=candidate,
        request=response_request(item, candidate, config),
    )
    try:
        call = await caller.ask(ask)
    except ModelStopError as error:
        return Response(
            item_id=item.item_id,
            candidate=candidate.id,
            source="generated",
            model=candidate.model,
            error=str(error),
        )
    return _response(item, candidate, call)


def response_request(item: Item, candidate: Candidate, config: Config) -> Request:
    """The request to a candidate: the prompt of the item."""
    options = merge_options(candidate.options, config.generation)
    system = [part for part in (candidate.system or config.system, item.system) if part]
    return Request(
        turns=tuple(item.turns),
        system="\n\n".join(system) or None,
        max_tokens=options.max_tokens or GENERATION_TOKENS,
        stream=options.stream is not False,
        options=options,
    )


def merge_options(options: Options, defaults: Options) -> Options:
    """``options`` where they are set, else ``defaults``."""
    return defaults.model_copy(update={k: getattr(options, k) for k in options.model_fields_set})


def _response(item: Item, candidate: Candidate, call: Call) -> Response:
    text = call.text or None
    error = None
    if text is None:
        error = call.error or f"{call.outcome}: the answer has no text"
        error = f"{call.error_class}: {error}" if call.error_class else error
    return Response(
        item_id=item.item_id,
        candidate=candidate.id,
        text=text,
        source="generated",
        model=call.served_model or candidate.model,
        tokens=call.tokens,
        cost_usd=call.cost_usd,
        latency_s=call.latency_s,
        ttft_s=call.ttft_s,
        finish_reason=call.finish_reason,
        error=error,
        call_id=call.call_id,
    )
