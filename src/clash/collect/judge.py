"""One judge, one page, one judgment, or a record that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from clash.collect import answer_length, judge_prompt
from clash.collect.calling import ModelStopError, PendingCall, call_id
from clash.collect.parsing import ParsedAnswer, inconsistencies, parse
from clash.collect.text_page import parse_vote, render_text_prompt
from clash.records import Judgment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.collect.blind import Presentation
    from clash.collect.calling import AnswerSource
    from clash.collect.fallbacks import Fallbacks
    from clash.collect.judge_prompt import JudgePrompt
    from clash.collect.plan import Plan
    from clash.config import Judge
    from clash.providers.base import Request
    from clash.records import Call, Criterion, Item

Step = Literal["accept", "longer", "reask", "fail"]

LONG = 20_000
"""Characters of responses above which a prompt is rendered in a thread: for a megabyte full of
imitated delimiters and commands, rendering takes seconds."""


@dataclass(frozen=True, slots=True)
class JudgmentSlot:
    """A judge and the presentation it is to judge: one judgment fills it."""

    judge: Judge
    item: Item
    presentation: Presentation

    @property
    def key(self) -> tuple[str, int, str]:
        """What identifies the judgment: item, presentation, judge."""
        return self.item.item_id, self.presentation.blinding.presentation, self.judge.id


# -- from a page to a judgment --------------------------------------------------------------------


async def judge(
    slot: JudgmentSlot,
    prompt: JudgePrompt,
    plan: Plan,
    caller: AnswerSource,
    fallbacks: Fallbacks,
) -> Judgment:
    """The judgment of a page by the judge, or by the fallback that takes its place."""
    current = fallbacks.current_judge(slot.judge)
    while True:
        seat = slot if current is slot.judge else replace(slot, judge=current)
        judgment, model_stopped = await ask_judge(seat, prompt, plan, caller)
        following = fallbacks.next_judge(slot.judge, current, judgment, model_stopped=model_stopped)
        if following is None:
            return judgment
        current = following


async def ask_judge(
    slot: JudgmentSlot, prompt: JudgePrompt, plan: Plan, caller: AnswerSource
) -> tuple[Judgment, bool]:
    """Ask, read the answer, and ask once more where that can help.

    Returns:
        The judgment, and whether the model refused for good and is not asked any more.
    """
    first = request = request_of(prompt, slot.judge)
    remedies, suffix = set[Step](), ""
    while True:
        try:
            call = await caller.ask(_pending_call(slot, request, suffix))
        except ModelStopError as error:
            answer = ParsedAnswer(None, "failed", error=str(error))
            judgment = _judgment(slot, prompt, None, answer)
            return judgment.model_copy(update={"call_id": error.call_id}), True
        answer = read_reply(call, prompt)
        step = next_step(call, answer, remedies, reask=plan.panel.reask)
        if step in ("accept", "fail"):
            return _judgment(slot, prompt, call, answer), False
        remedies.add(step)
        if step == "longer":
            request, suffix = judge_prompt.longer(request), suffix + "+longer"
        else:
            error_text = answer.error or "it could not be read"
            request = judge_prompt.reask(first, call, error_text, plan.templates)
            suffix += "+reask"


def read_reply(call: Call, prompt: JudgePrompt) -> ParsedAnswer:
    """The answer in a reply; a reply that is not complete is not read at all."""
    if call.outcome == "ok" and prompt.judging is not None:
        has_schema = call.structured == "schema"
        return parse_vote(
            call.text or "", prompt.judging, code=prompt.code, schema_enforced=has_schema
        )
    if call.outcome == "ok":
        return parse(
            call.text or "",
            prompt.labels,
            prompt.criteria,
            ties=prompt.ties,
            code=prompt.code,
            schema_enforced=call.structured == "schema",
        )
    reason = call.error or {
        "truncated": "the answer was cut off at the token limit",
        "refusal": "the judge refused",
        "blocked": "the provider blocked the answer",
        "empty": "the answer has no text",
    }.get(call.outcome, "no answer")
    return ParsedAnswer(None, "failed", error=f"{call.error_class or call.outcome}: {reason}")


def next_step(call: Call, answer: ParsedAnswer, remedies: set[Step], *, reask: bool) -> Step:
    """What to do with a reply. Each remedy is tried once; ``remedies`` are those tried before."""
    if answer.is_usable:
        return "accept"
    if call.outcome in ("truncated", "empty") and "longer" not in remedies:
        return "longer"
    if call.outcome == "ok" and reask and "reask" not in remedies:
        return "reask"
    return "fail"


def _pending_call(slot: JudgmentSlot, request: Request, suffix: str) -> PendingCall:
    blinding = slot.presentation.blinding
    return PendingCall(
        call_id=call_id("judge", *slot.key) + suffix,
        purpose="judge",
        item_id=slot.item.item_id,
        judge=slot.judge.id,
        presentation=blinding.presentation,
        ref=slot.judge,
        request=request,
    )


def _judgment(
    slot: JudgmentSlot, prompt: JudgePrompt, call: Call | None, answer: ParsedAnswer
) -> Judgment:
    repairs = list(answer.repairs)
    if call is not None and call.call_id.endswith("+reask") and answer.is_usable:
        repairs.append("asked a second time")
    return Judgment(
        item_id=slot.item.item_id,
        presentation=slot.presentation.blinding.presentation,
        judge=slot.judge.id,
        role=slot.judge.role,
        weight=slot.judge.weight,
        ranking=answer.ranking,
        scores=answer.scores,
        reasons=answer.reasons,
        parse="repaired" if repairs and answer.is_usable else answer.parse,
        repairs=repairs,
        flags=[*prompt.flags, *inconsistencies(answer, prompt.task.criteria)],
        call_id=call.call_id if call is not None else None,
        error=answer.error,
        vote=answer.vote,
        stands_in_for=None if slot.judge.seat == slot.judge.id else slot.judge.seat,
    )


# -- the prompt of a page -------------------------------------------------------------------------


def prompt_of(
    item: Item, criteria: Sequence[Criterion], presentation: Presentation, plan: Plan
) -> JudgePrompt:
    """The prompt of a presentation, with the codes that follow from the run's secret."""
    blinding = presentation.blinding
    secret = plan.secret_of(blinding.item_id)
    if secret is None:
        code = None
        nonce = judge_prompt.seeded_nonce(plan.config.seed, blinding.item_id, blinding.presentation)
    else:
        code = judge_prompt.page_code(secret, "ballot", blinding)
        nonce = judge_prompt.page_code(secret, "delimiter", blinding)
    if plan.config.judging.is_single:
        return render_text_prompt(
            item,
            criteria,
            presentation,
            plan.templates,
            plan.config.judging,
            nonce=nonce,
            code=code,
            goal=plan.goal(item),
        )
    return judge_prompt.render_prompt(
        item,
        criteria,
        presentation,
        plan.templates,
        ties=plan.panel.ties,
        nonce=nonce,
        code=code,
        shows_names=plan.config.blinding.show_names,
        goal=plan.goal(item),
    )


def request_of(prompt: JudgePrompt, judge: Judge) -> Request:
    """The prompt as a request to ``judge``, with room for the longest answer."""
    cap = judge.options.max_tokens or answer_length.cap(len(prompt.labels), len(prompt.criteria))
    return prompt.request(judge.options, cap)


class PromptCache:
    """Prompts, each rendered once for all judges of a page, without holding up calls in flight.

    A prompt is kept as long as its page is.

    Args:
        render: makes the prompt of a presentation.
    """

    def __init__(self, render: Callable[[Presentation], JudgePrompt]) -> None:
        self._render = render
        self._prompts: WeakKeyDictionary[Presentation, JudgePrompt] = WeakKeyDictionary()
        self._locks: WeakKeyDictionary[Presentation, anyio.Lock] = WeakKeyDictionary()

    def __len__(self) -> int:
        """How many prompts are kept."""
        return len(self._prompts)

    async def of(self, presentation: Presentation) -> JudgePrompt:
        """The prompt of a presentation."""
        prompt = self._prompts.get(presentation)
        if prompt is not None:
            return prompt
        if sum(map(len, presentation.texts.values())) < LONG:
            return self._keep(presentation, self._render(presentation))
        async with self._locks.setdefault(presentation, anyio.Lock()):
            prompt = self._prompts.get(presentation)
            if prompt is None:
                prompt = await anyio.to_thread.run_sync(self._render, presentation)
            return self._keep(presentation, prompt)

    def _keep(self, presentation: Presentation, prompt: JudgePrompt) -> JudgePrompt:
        self._prompts[presentation] = prompt
        return prompt
