"""What a plan will cost: calls, tokens, expected and worst case, before any call is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.collect import criteria as criteria_stage
from clash.collect import respond
from clash.collect.blind import presentations
from clash.collect.judge import Seat, render
from clash.providers import prices
from clash.records import Criteria, Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clash.collect.plan import Plan
    from clash.config import ModelRef
    from clash.providers.base import Request
    from clash.records import Item, Purpose

RESPONSE_CHARS = 1600
"""Characters assumed of a response that does not exist yet, for the expected cost."""
JUDGMENT_TOKENS = 600
CRITERIA_TOKENS = 120
RESPONSE_TOKENS = 450


@dataclass(frozen=True)
class Line:
    """What one model will be asked for one purpose.

    Attributes:
        expected_usd: null where the price is unknown, as ``worst_usd``.
    """

    purpose: Purpose
    who: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    expected_usd: float | None
    worst_usd: float | None


@dataclass(frozen=True)
class Forecast:
    """The whole plan, priced.

    The worst case is one attempt a call with the longest answer it may give; retries, a re-ask or
    a longer second try come on top and are covered by ``--max-cost`` alone.
    """

    lines: tuple[Line, ...]

    @property
    def calls(self) -> int:
        """How many calls there are, retries not counted."""
        return sum(line.calls for line in self.lines)

    @property
    def unknown(self) -> list[str]:
        """Models whose price nobody knows."""
        return sorted({line.model for line in self.lines if line.worst_usd is None})

    @property
    def expected_usd(self) -> float:
        """Sum of what is known."""
        return sum(line.expected_usd or 0.0 for line in self.lines)

    @property
    def worst_usd(self) -> float:
        """Sum of what is known."""
        return sum(line.worst_usd or 0.0 for line in self.lines)


def price(plan: Plan) -> Forecast:
    """Price every call of a plan."""
    return Forecast(tuple(line for line in _lines(plan) if line.calls))


def _lines(plan: Plan) -> Iterator[Line]:
    for candidate in plan.candidates:
        requests = [
            respond.question(item, candidate, plan.config)
            for item, other in plan.missing()
            if other.id == candidate.id
        ]
        yield _line("generate", candidate.id, candidate, requests, RESPONSE_TOKENS)
    if plan.criteria_ref is not None:
        ref = plan.criteria_ref
        unsettled = [i for i in plan.items if criteria_stage.settled(i, plan) is None]
        questions = [criteria_stage.question(item, plan, ref) for item in unsettled]
        yield _line("criteria", "criteria", ref, questions, CRITERIA_TOKENS)
    seats = list(_seats(plan))
    for judge in plan.judges:
        pages = [render(Seat(judge, s.item, s.criteria, s.presentation), plan) for s in seats]
        yield _line("judge", judge.id, judge, [p.request for p in pages], JUDGMENT_TOKENS)


def _line(
    purpose: Purpose, who: str, ref: ModelRef, requests: Iterable[Request], answer: int
) -> Line:
    asked = list(requests)
    outputs = [min(answer, request.max_tokens) for request in asked]
    expected = [
        prices.expected(ref, request, output)
        for request, output in zip(asked, outputs, strict=True)
    ]
    worst = [prices.worst_case(ref, request) for request in asked]
    return Line(
        purpose=purpose,
        who=who,
        model=ref.model,
        calls=len(asked),
        tokens_in=sum(prices.input_estimate(request) for request in asked),
        tokens_out=sum(outputs),
        expected_usd=_total(expected),
        worst_usd=_total(worst),
    )


def _total(costs: list[prices.Cost | None]) -> float | None:
    if any(cost is None for cost in costs):
        return None
    return float(sum(cost.usd for cost in costs if cost is not None))


def _seats(plan: Plan) -> Iterator[Seat]:
    """The pages of one judge, with stand-ins for responses that do not exist yet."""
    texts: dict[str, dict[str, str]] = {item.item_id: {} for item in plan.items}
    for response in (*plan.responses, *_imagined(plan)):
        texts[response.item_id][response.candidate] = response.text or ""
    judge = plan.judges[0]
    for item in plan.items:
        for page in presentations(
            item.item_id, texts[item.item_id], [judge.id], plan.config.blinding, plan.config.seed
        ):
            yield Seat(judge, item, _criteria(item, plan), page)


def _imagined(plan: Plan) -> Iterator[Response]:
    for item, candidate in plan.missing():
        yield Response(
            item_id=item.item_id,
            candidate=candidate.id,
            text="x" * RESPONSE_CHARS,
            source="generated",
        )


def _criteria(item: Item, plan: Plan) -> Criteria:
    known = criteria_stage.settled(item, plan)
    if known is not None:
        return known
    return Criteria(item_id=item.item_id, source="dynamic", criteria=list(criteria_stage.FALLBACK))
