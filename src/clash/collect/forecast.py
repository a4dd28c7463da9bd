"""What a plan costs: calls, tokens, expected and worst case, before any call is made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from clash.collect import answer_length, respond
from clash.collect import criteria as criteria_stage
from clash.collect.blind import Presentation
from clash.collect.judge import prompt_of, request_of
from clash.collect.judge_prompt import longer
from clash.providers import can_batch, prices
from clash.records import Blinding, Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clash.collect.judge_prompt import JudgePrompt
    from clash.collect.plan import Plan
    from clash.config import Judge, ModelRef
    from clash.providers.base import Request
    from clash.records import Criterion, Item, Purpose

RESPONSE_CHARS = 1600
"""Characters assumed of a response that does not exist yet, for the expected cost."""
CRITERIA_TOKENS = 120
RESPONSE_TOKENS = 450


@dataclass(frozen=True)
class ForecastLine:
    """What one model will be asked for one purpose.

    Attributes:
        expected_usd: null where the price is unknown, as ``worst_usd``.
        batch: through the provider's batch API, at its price.
        cut: calls whose cap has no room for a typical answer, so that a second one with twice the
            cap is counted too.
        needs: the cap that would suffice for those.
        unpriced: models without a known price: this one, or a fallback of it. The worst case is that
            of the most expensive of them.
    """

    purpose: Purpose
    who: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    expected_usd: float | None
    worst_usd: float | None
    batch: bool = False
    cut: int = 0
    needs: int = 0
    unpriced: tuple[str, ...] = ()


@dataclass(frozen=True)
class Forecast:
    """The whole plan, priced.

    The worst case is one attempt a call with the longest answer it may give; retries, a re-ask or
    a longer second try come on top and are covered by ``--max-cost`` alone.
    """

    lines: tuple[ForecastLine, ...]

    @property
    def calls(self) -> int:
        """How many calls there are, retries not counted."""
        return sum(line.calls for line in self.lines)

    @property
    def unknown(self) -> list[str]:
        """Models whose price is unknown."""
        return sorted({model for line in self.lines for model in line.unpriced})

    @property
    def expected_usd(self) -> float:
        """Sum of the known costs."""
        return sum(line.expected_usd or 0.0 for line in self.lines)

    @property
    def worst_usd(self) -> float:
        """Sum of the known costs."""
        return sum(line.worst_usd or 0.0 for line in self.lines)

    def summary(self) -> dict[str, Any]:
        """The part that the manifest keeps, to be compared with the real cost."""
        return {
            "calls": self.calls,
            "expected_usd": round(self.expected_usd, 6),
            "worst_usd": round(self.worst_usd, 6),
            "unknown_price": self.unknown,
        }


def price(plan: Plan) -> Forecast:
    """Price every call of a plan, one at a time: all requests together may not fit into memory."""
    totals = [*_responses(plan), *_criteria_calls(plan), *_judgments(plan)]
    return Forecast(tuple(total.line() for total in totals if total.calls))


@dataclass
class _ModelTotal:
    """Calls of one model for one purpose.

    Attributes:
        batches: the run asks in batches where it can.
        fallbacks: models that may be asked instead.
        by_batch: at least one of the calls goes through a batch API.
    """

    purpose: Purpose
    actor: str
    ref: ModelRef
    batches: bool
    fallbacks: tuple[ModelRef, ...] = ()
    by_batch: bool = False
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    expected_usd: Decimal | None = Decimal(0)
    worst_usd: Decimal | None = Decimal(0)
    cut: int = 0
    needs: int = 0

    def add(self, request: Request, answer: int) -> None:
        """Count a call whose answer is expected to have so many tokens."""
        self.calls += 1
        self._attempt(request, answer)

    def add_judgment(self, prompt: JudgePrompt, judge: Judge) -> None:
        """Count a judgment; where its cap is sure to be too low, the second call too."""
        request = request_of(prompt, judge)
        size = len(prompt.labels), len(prompt.criteria)
        answer = answer_length.typical(*size)
        self.add(request, answer + answer_length.REASONING_TOKENS)
        if answer > request.max_tokens and self.ref.provider not in prices.OFFLINE:
            self._attempt(longer(request), answer)
            self.cut += 1
            self.needs = max(
                self.needs, answer_length.longest(*size) + answer_length.REASONING_ROOM
            )

    def _attempt(self, request: Request, answer: int) -> None:
        output = min(answer, request.max_tokens)
        self.tokens_in += prices.input_estimate(request)
        self.tokens_out += output
        batch = self.batches and can_batch(self.ref, request)
        self.by_batch |= batch
        self.expected_usd = _plus(
            self.expected_usd, prices.expected_cost(self.ref, request, output, batch=batch)
        )
        self.worst_usd = _plus(self.worst_usd, self._worst_case(request, batch=batch))

    def _worst_case(self, request: Request, *, batch: bool) -> prices.Cost | None:
        """The worst case of the model and of its fallbacks; null where one has no price."""
        costs = [prices.worst_case(self.ref, request, batch=batch)]
        costs += [prices.worst_case(ref, request) for ref in self.fallbacks]
        known_costs = [cost for cost in costs if cost is not None]
        return (
            max(known_costs, key=lambda cost: cost.usd) if len(known_costs) == len(costs) else None
        )

    def line(self) -> ForecastLine:
        return ForecastLine(
            purpose=self.purpose,
            who=self.actor,
            model=self.ref.model,
            calls=self.calls,
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            expected_usd=None if self.expected_usd is None else float(self.expected_usd),
            worst_usd=None if self.worst_usd is None else float(self.worst_usd),
            batch=self.by_batch,
            cut=self.cut,
            needs=self.needs,
            unpriced=tuple(
                ref.model for ref in (self.ref, *self.fallbacks) if not prices.has_price(ref)
            ),
        )


def _plus(total: Decimal | None, cost: prices.Cost | None) -> Decimal | None:
    return None if total is None or cost is None else total + cost.usd


def _responses(plan: Plan) -> list[_ModelTotal]:
    batches = plan.config.limits.batch
    totals = {c.id: _ModelTotal("generate", c.id, c, batches) for c in plan.candidates}
    for item, candidate in plan.missing():
        totals[candidate.id].add(
            respond.response_request(item, candidate, plan.config), RESPONSE_TOKENS
        )
    return list(totals.values())


def _criteria_calls(plan: Plan) -> list[_ModelTotal]:
    ref = plan.criteria_ref
    if ref is None:
        return []
    total = _ModelTotal("criteria", "criteria", ref, plan.config.limits.batch)
    thinking = answer_length.REASONING_TOKENS if ref.options.reasoning else 0
    for item in plan.items:
        if criteria_stage.ready_criteria(item, plan) is None:
            total.add(criteria_stage.criteria_request(item, plan, ref), CRITERIA_TOKENS + thinking)
    return [total]


def _judgments(plan: Plan) -> list[_ModelTotal]:
    batches = plan.config.limits.batch
    totals = {
        judge.id: _ModelTotal("judge", judge.id, judge, batches, tuple(judge.fallbacks))
        for judge in plan.judges
    }
    for prompt, readers in _prompts(plan):
        for judge in readers:
            totals[judge.id].add_judgment(prompt, judge)
    return list(totals.values())


def _prompts(plan: Plan) -> Iterator[tuple[JudgePrompt, list[Judge]]]:
    """The prompts of judgments, each with its judges, with placeholders for missing responses.

    Neither shuffled nor masked, which changes the length of a prompt by next to nothing.
    """
    texts: dict[str, dict[str, str]] = {item.item_id: {} for item in plan.items}
    for response in (*plan.responses, *_placeholders(plan)):
        texts[response.item_id][response.candidate] = response.text or ""
    for item in plan.items:
        criteria = _criteria(item, plan)
        for names, readers in _readers(plan, texts[item.item_id]).items():
            labels = {f"A{number}": name for number, name in enumerate(names)}
            shown_texts = {label: texts[item.item_id][name] for label, name in labels.items()}
            for number in range(plan.presentations):
                blinding = Blinding(item_id=item.item_id, presentation=number, labels=labels)
                yield prompt_of(item, criteria, Presentation(blinding, shown_texts), plan), readers


def _readers(plan: Plan, names: Iterable[str]) -> dict[tuple[str, ...], list[Judge]]:
    """The judges of an item, by the candidates that each is shown."""
    views: dict[tuple[str, ...], list[Judge]] = {}
    for judge in plan.judges:
        hidden_names = plan.excluded_candidates.get(judge.id, frozenset())
        visible = tuple(name for name in names if name not in hidden_names)
        if len(visible) > 1:
            views.setdefault(visible, []).append(judge)
    return views


def _placeholders(plan: Plan) -> Iterator[Response]:
    for item, candidate in plan.missing():
        yield Response(
            item_id=item.item_id,
            candidate=candidate.id,
            text="x" * RESPONSE_CHARS,
            source="generated",
        )


def _criteria(item: Item, plan: Plan) -> Sequence[Criterion]:
    criteria = criteria_stage.ready_criteria(item, plan)
    return criteria_stage.FALLBACK if criteria is None else criteria.criteria
