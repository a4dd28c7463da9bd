"""What a plan costs: calls, tokens, expected and worst case, before any call is made."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from itertools import repeat
from typing import TYPE_CHECKING, Any

from clash.collect import answer_length, respond
from clash.collect import criteria as criteria_stage
from clash.collect.blind import Presentation, VisibleTurn
from clash.collect.judge import prompt_of, request_of
from clash.collect.judge_prompt import longer
from clash.collect.plan import GENERATION_TOKENS
from clash.collect.simulated_user import USER_TOKENS, user_request
from clash.conversations import injected_response
from clash.providers import can_batch, prices
from clash.records import AnsweredTurn, Blinding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clash.collect.conversation import Script
    from clash.collect.judge_prompt import JudgePrompt
    from clash.collect.plan import Plan
    from clash.config import Candidate, Judge, ModelRef
    from clash.providers.base import Request
    from clash.records import Criterion, Item, Purpose, Response

RESPONSE_CHARS = 1600
"""Characters assumed of a response that does not exist yet, for the expected cost."""
CRITERIA_TOKENS = 120
RESPONSE_TOKENS = 450
USER_MESSAGE_CHARS = 240
"""Characters assumed of what a simulated user says."""
USER_MESSAGE_TOKENS = 70


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

    def add(self, request: Request, longest: Request | None = None, *, answer: int) -> None:
        """Count a call.

        Args:
            request: what is asked.
            longest: the same with the longest history that it may have.
            answer: tokens that the answer is expected to have.
        """
        self.calls += 1
        self._attempt(request, answer, longest)

    def add_judgment(self, prompt: JudgePrompt, judge: Judge) -> None:
        """Count a judgment; where its cap is sure to be too low, the second call too."""
        request = request_of(prompt, judge)
        size = len(prompt.labels), len(prompt.criteria)
        answer = answer_length.typical(*size)
        self.add(request, answer=answer + answer_length.REASONING_TOKENS)
        if answer > request.max_tokens and self.ref.provider not in prices.OFFLINE:
            self._attempt(longer(request), answer)
            self.cut += 1
            self.needs = max(
                self.needs, answer_length.longest(*size) + answer_length.REASONING_ROOM
            )

    def _attempt(self, request: Request, answer: int, longest: Request | None = None) -> None:
        output = min(answer, request.max_tokens)
        self.tokens_in += prices.input_estimate(request)
        self.tokens_out += output
        batch = self.batches and can_batch(self.ref, request)
        self.by_batch |= batch
        self.expected_usd = _plus(
            self.expected_usd, prices.expected_cost(self.ref, request, output, batch=batch)
        )
        self.worst_usd = _plus(self.worst_usd, self._worst_case(longest or request, batch=batch))

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
    """Answers, and messages of simulated users; every turn is a call with all turns before it."""
    batches = plan.config.limits.batch
    answers = {c.id: _ModelTotal("generate", c.id, c, batches) for c in plan.candidates}
    messages = {
        ref.model_dump_json(): _ModelTotal("user", ref.model, ref, batches) for ref in plan.users
    }
    for item, candidate in plan.missing():
        script = plan.script(item)
        for number in range(script.most_turns):
            user = script.user if number >= len(script.parts) else None
            if user is not None:
                total = messages[user.ref.model_dump_json()]
                requests = (
                    user_request(plan, item, candidate, user, turns)
                    for turns in _earlier_turns(script, number, candidate, plan)
                )
                total.add(*requests, answer=USER_MESSAGE_TOKENS)
            text = None if user is None else "x" * USER_MESSAGE_CHARS
            requests = (
                respond.response_request(
                    tuple(script.messages(turns, text)), item, candidate, plan.config
                )
                for turns in _earlier_turns(script, number, candidate, plan)
            )
            answers[candidate.id].add(*requests, answer=RESPONSE_TOKENS)
    return [*answers.values(), *messages.values()]


def _earlier_turns(
    script: Script, number: int, candidate: Candidate, plan: Plan
) -> Iterator[list[AnsweredTurn]]:
    """Placeholders for the turns before turn ``number``: typical ones, then the longest."""
    options = respond.merge_options(candidate.options, plan.config.generation)
    user = script.user.options.max_tokens if script.user is not None else None
    sizes = (
        (RESPONSE_CHARS, USER_MESSAGE_CHARS),
        # No token is less than a byte, and the bound on the input counts bytes.
        (options.max_tokens or GENERATION_TOKENS, user or USER_TOKENS),
    )
    for answer_size, user_size in sizes if number else sizes[:1]:
        yield [
            AnsweredTurn(
                user="x" * user_size if turn >= len(script.parts) else None, text="x" * answer_size
            )
            for turn in range(number)
        ]


def _criteria_calls(plan: Plan) -> list[_ModelTotal]:
    ref = plan.criteria_ref
    if ref is None:
        return []
    total = _ModelTotal("criteria", "criteria", ref, plan.config.limits.batch)
    thinking = answer_length.REASONING_TOKENS if ref.options.reasoning else 0
    for item in plan.items:
        if criteria_stage.ready_criteria(item, plan) is None:
            request = criteria_stage.criteria_request(item, plan, ref)
            total.add(request, answer=CRITERIA_TOKENS + thinking)
    return [total]


def _judgments(plan: Plan) -> list[_ModelTotal]:
    batches = plan.config.limits.batch
    totals = {
        judge.id: _ModelTotal("judge", judge.id, judge, batches, tuple(judge.fallbacks))
        for judge in plan.judges
    }
    for prompt, readers in _prompts(plan):
        for judge in readers:
            if prompt is None or judge.provider in prices.OFFLINE:
                totals[judge.id].calls += 1
            else:
                totals[judge.id].add_judgment(prompt, judge)
    return list(totals.values())


def _prompts(plan: Plan) -> Iterator[tuple[JudgePrompt | None, list[Judge]]]:
    """The prompts of judgments, each with its judges, with placeholders for missing responses.

    Null where no judge of a prompt costs anything: long texts take a millisecond to lay out.
    Only the size of a response counts here, so signs without meaning stand for it: nothing is masked
    or defused, which changes the length of a prompt by next to nothing.
    """
    if not plan.candidates and all(judge.provider in prices.OFFLINE for judge in plan.judges):
        yield from _free_pages(plan)
        return
    for item in plan.items:
        texts: dict[str, str] = {}
        turns: dict[str, tuple[VisibleTurn, ...]] = {}
        for response in (*plan.given_to(item.item_id), *_placeholders(item, plan)):
            texts[response.candidate] = response.text or ""
            if response.turns:
                turns[response.candidate] = tuple(
                    VisibleTurn(turn.user, turn.text) for turn in response.turns
                )
        criteria = _criteria(item, plan)
        for names, readers in _readers(plan, texts).items():
            labels = {f"A{number}": name for number, name in enumerate(names)}
            shown_texts = {label: _of_size(texts[name]) for label, name in labels.items()}
            shown_turns = {
                label: tuple(_turn_of_size(turn) for turn in turns[name])
                for label, name in labels.items()
                if name in turns
            }
            for number in range(plan.presentations):
                blinding = Blinding(
                    item_id=item.item_id,
                    presentation=number,
                    labels=labels,
                    choices=plan.config.judging.choices,
                )
                presentation = Presentation(blinding, shown_texts, shown_turns)
                is_priced = any(judge.provider not in prices.OFFLINE for judge in readers)
                yield (
                    prompt_of(item, criteria, presentation, plan) if is_priced else None,
                    readers,
                )


def _free_pages(plan: Plan) -> Iterator[tuple[None, list[Judge]]]:
    """The judges of each page where responses are given and no judge costs anything: no text is read."""
    names = tuple(map(str, plan.given_marks))
    readers_of = cache(lambda candidates: list(_readers(plan, candidates).values()))
    for position in range(len(plan.items)):
        candidates = tuple([name for name in names if plan.given_marks.has(name, position)])
        for readers in readers_of(candidates):
            yield from repeat((None, readers), plan.presentations)


def _of_size(text: str) -> str:
    """A text of as many bytes in which there is nothing to defuse."""
    return "." * len(text.encode("utf-8", "replace"))


def _turn_of_size(turn: VisibleTurn) -> VisibleTurn:
    return VisibleTurn(None if turn.user is None else _of_size(turn.user), _of_size(turn.text))


def _readers(plan: Plan, names: Iterable[str]) -> dict[tuple[str, ...], list[Judge]]:
    """The judges of an item, by the candidates that each is shown."""
    views: dict[tuple[str, ...], list[Judge]] = {}
    for judge in plan.judges:
        hidden_names = plan.excluded_candidates.get(judge.id, frozenset())
        visible = tuple(name for name in names if name not in hidden_names)
        if plan.config.judging.is_single:
            for name in visible:
                views.setdefault((name,), []).append(judge)
        elif len(visible) > 1:
            views.setdefault(visible, []).append(judge)
    return views


def _placeholders(item: Item, plan: Plan) -> Iterator[Response]:
    for candidate in plan.missing_from(item):
        script = plan.script(item)
        turns = next(_earlier_turns(script, script.most_turns, candidate, plan))
        yield injected_response(item.item_id, candidate.id, turns)


def _criteria(item: Item, plan: Plan) -> Sequence[Criterion]:
    criteria = criteria_stage.ready_criteria(item, plan)
    return criteria_stage.FALLBACK if criteria is None else criteria.criteria
