"""One judge, one page, one judgment: or a record that says why there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from clash.collect import answer_length
from clash.collect import judge_prompt as ballots
from clash.collect.calling import Ask, ModelStopped, call_id
from clash.collect.parsing import Parsed, inconsistencies, parse
from clash.records import Judgment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.collect.blind import Presentation
    from clash.collect.calling import Asker
    from clash.collect.fallbacks import Bench
    from clash.collect.judge_prompt import Ballot
    from clash.collect.plan import Plan
    from clash.config import Judge
    from clash.providers.base import Request
    from clash.records import Call, Criterion, Item

Step = Literal["accept", "longer", "reask", "fail"]


@dataclass(frozen=True, slots=True)
class Seat:
    """A judge in front of a page."""

    judge: Judge
    item: Item
    presentation: Presentation

    @property
    def key(self) -> tuple[str, int, str]:
        """What identifies the judgment."""
        return self.item.item_id, self.presentation.blinding.presentation, self.judge.id


async def judge(seat: Seat, page: Ballot, plan: Plan, caller: Asker, bench: Bench) -> Judgment:
    """The judgment of a page by the judge, or by who stands in for it."""
    sitter = bench.sitter(seat.judge)
    while True:
        judgment, stopped = await hear(replace(seat, judge=sitter), page, plan, caller)
        following = bench.after(seat.judge, sitter, judgment, stopped=stopped)
        if following is None:
            return judgment
        sitter = following


async def hear(seat: Seat, page: Ballot, plan: Plan, caller: Asker) -> tuple[Judgment, bool]:
    """Ask, read, and ask once more where that can help; and whether the model has stopped."""
    first = request = question(page, seat.judge)
    tried, suffix = set[Step](), ""
    while True:
        try:
            call = await caller.ask(_ask(seat, request, suffix))
        except ModelStopped as stopped:
            parsed = Parsed(None, "failed", error=str(stopped))
            failed = _judgment(seat, page, None, parsed)
            return failed.model_copy(update={"call_id": stopped.call_id}), True
        parsed = read(call, page)
        step = next_step(call, parsed, tried, reask=plan.panel.reask)
        if step in ("accept", "fail"):
            return _judgment(seat, page, call, parsed), False
        tried.add(step)
        if step == "longer":
            request, suffix = ballots.longer(request), suffix + "+longer"
        else:
            error = parsed.error or "it could not be read"
            request = ballots.reask(first, call, error, plan.templates)
            suffix += "+reask"


def render(
    item: Item, criteria: Sequence[Criterion], presentation: Presentation, plan: Plan
) -> Ballot:
    """The page in front of the judges."""
    blinding = presentation.blinding
    if plan.secret is None:
        code = None
        nonce = ballots.seeded_nonce(plan.config.seed, blinding.item_id, blinding.presentation)
    else:
        code = ballots.page_code(plan.secret, "ballot", blinding)
        nonce = ballots.page_code(plan.secret, "delimiter", blinding)
    return ballots.ballot(
        item,
        criteria,
        presentation,
        plan.templates,
        ties=plan.panel.ties,
        nonce=nonce,
        code=code,
    )


def question(page: Ballot, judge: Judge) -> Request:
    """The page as it is put to ``judge``."""
    cap = judge.options.max_tokens or answer_length.cap(len(page.labels), len(page.criteria))
    return page.question(judge.options, cap)


def read(call: Call, page: Ballot) -> Parsed:
    """The judgment in a reply: a reply that is not whole is not read at all."""
    if call.outcome == "ok":
        return parse(
            call.text or "",
            page.labels,
            page.criteria,
            ties=page.ties,
            code=page.code,
            enforced=call.structured == "schema",
        )
    reason = call.error or {
        "truncated": "the answer breaks off at the token limit",
        "refusal": "the judge refused",
        "blocked": "the provider blocked the answer",
        "empty": "the answer has no text",
    }.get(call.outcome, "no answer")
    return Parsed(None, "failed", error=f"{call.error_class or call.outcome}: {reason}")


def next_step(call: Call, parsed: Parsed, tried: set[Step], *, reask: bool) -> Step:
    """What to do with a reply: each remedy is tried once."""
    if parsed.ranking is not None:
        return "accept"
    if call.outcome in ("truncated", "empty") and "longer" not in tried:
        return "longer"
    if call.outcome == "ok" and reask and "reask" not in tried:
        return "reask"
    return "fail"


def _ask(seat: Seat, request: Request, suffix: str) -> Ask:
    blinding = seat.presentation.blinding
    return Ask(
        call_id=call_id("judge", *seat.key) + suffix,
        purpose="judge",
        item_id=seat.item.item_id,
        judge=seat.judge.id,
        presentation=blinding.presentation,
        ref=seat.judge,
        request=request,
    )


def _judgment(seat: Seat, page: Ballot, call: Call | None, parsed: Parsed) -> Judgment:
    repairs = list(parsed.repairs)
    if call is not None and call.call_id.endswith("+reask") and parsed.ranking is not None:
        repairs.append("asked a second time")
    return Judgment(
        item_id=seat.item.item_id,
        presentation=seat.presentation.blinding.presentation,
        judge=seat.judge.id,
        role=seat.judge.role,
        weight=seat.judge.weight,
        ranking=parsed.ranking,
        scores=parsed.scores,
        reasons=parsed.reasons,
        parse="repaired" if repairs and parsed.ranking is not None else parsed.parse,
        repairs=repairs,
        flags=[*page.flags, *inconsistencies(parsed, page.task.criteria)],
        call_id=call.call_id if call is not None else None,
        error=parsed.error,
        stands_in_for=None if seat.judge.seat == seat.judge.id else seat.judge.seat,
    )


LONG = 20_000
"""Characters of responses from which on a page is rendered in a thread: a megabyte that is full of
what imitates delimiters and commands takes seconds."""


class Pages:
    """Pages as judges read them. The judges of one come to it at about the same time.

    Args:
        render: makes the page of a presentation.
        most: how many pages are kept.
    """

    def __init__(self, render: Callable[[Presentation], Ballot], most: int) -> None:
        self._render = render
        self._page = lru_cache(most)(_Page)

    async def of(self, presentation: Presentation) -> Ballot:
        """The page of a presentation."""
        page = self._page(presentation)
        return page.ballot or await page.rendered(self._render)


class _Page:
    """A page, once it is rendered."""

    def __init__(self, presentation: Presentation) -> None:
        self._presentation = presentation
        self._turn = anyio.Lock()
        self.ballot: Ballot | None = None

    async def rendered(self, render: Callable[[Presentation], Ballot]) -> Ballot:
        async with self._turn:
            if self.ballot is None:
                if sum(map(len, self._presentation.texts.values())) < LONG:
                    self.ballot = render(self._presentation)
                else:
                    self.ballot = await anyio.to_thread.run_sync(render, self._presentation)
        return self.ballot
