"""The response of a candidate to an item, generated once and shown to every judge.

Where the user has several turns, the candidate answers one before it is sent the next; each answer is
a call of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.collect.calling import ModelStopError, PendingCall, call_id
from clash.collect.plan import GENERATION_TOKENS
from clash.collect.simulated_user import next_message, user_request
from clash.config import Options
from clash.conversations import transcript
from clash.errors import ClashError
from clash.providers.base import Request
from clash.records import AnsweredTurn, Response, Tokens, Turn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.collect.calling import AnswerSource
    from clash.collect.conversation import Script
    from clash.collect.plan import Plan
    from clash.config import Candidate, Config, ModelRef
    from clash.records import Call, Item, Purpose


class _TurnFailedError(ClashError):
    """A conversation ends without an answer; the message begins with the class of the error."""

    def __init__(self, reason: str, call: Call | None = None) -> None:
        super().__init__(reason)
        self.call = call


async def respond(
    item: Item,
    candidate: Candidate,
    plan: Plan,
    caller: AnswerSource,
    script: Script | None = None,
) -> Response:
    """Generate a response; where that fails, a record with the reason.

    Args:
        item: what is asked.
        candidate: who answers.
        plan: the run.
        caller: makes the calls.
        script: the turns; by default as the plan has them.
    """
    script = script or plan.script(item)
    if script.is_conversation:
        return await _Conversation(item, candidate, plan, caller, script).play()
    pending = _pending_call(
        item, candidate, response_request(script.parts[0], item, candidate, plan.config)
    )
    try:
        call = await caller.ask(pending)
    except ModelStopError as error:
        return Response(
            item_id=item.item_id,
            candidate=candidate.id,
            source="generated",
            model=candidate.model,
            error=str(error),
        )
    return _response(item, candidate, call)


def response_request(
    turns: Sequence[Turn], item: Item, candidate: Candidate, config: Config
) -> Request:
    """The request to a candidate: the messages up to the turn that it is to answer."""
    options = merge_options(candidate.options, config.generation)
    system = [part for part in (candidate.system or config.system, item.system) if part]
    return Request(
        turns=tuple(turns),
        system="\n\n".join(system) or None,
        max_tokens=options.max_tokens or GENERATION_TOKENS,
        stream=options.stream is not False,
        options=options,
    )


def merge_options(options: Options, defaults: Options) -> Options:
    """``options`` where they are not what they are by default, else ``defaults``.

    Which fields somebody wrote down is not asked: the manifest holds them all, and a run that is
    resumed or verified reads them there.
    """
    unset = Options()
    update = {name: value for name, value in options if value != getattr(unset, name)}
    return defaults.model_copy(update=update)


def _pending_call(
    item: Item,
    candidate: Candidate,
    request: Request,
    *,
    turn: int = 1,
    user: ModelRef | None = None,
) -> PendingCall:
    """The call for an answer, or for a message of the simulated user to this candidate."""
    purpose: Purpose = "generate" if user is None else "user"
    suffix = f"+turn{turn}" if turn > 1 else ""
    return PendingCall(
        call_id=call_id(purpose, item.item_id, candidate.id) + suffix,
        purpose=purpose,
        item_id=item.item_id,
        candidate=candidate.id,
        ref=user or candidate,
        request=request,
    )


def _response(item: Item, candidate: Candidate, call: Call) -> Response:
    text = call.text or None
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
        error=None if text is not None else _failure(call),
        call_id=call.call_id,
    )


def _failure(call: Call) -> str:
    error = call.error or f"{call.outcome}: the answer has no text"
    return f"{call.error_class}: {error}" if call.error_class else error


# -- several turns --------------------------------------------------------------------------------


class _Conversation:
    """A conversation with one candidate, turn by turn.

    Every call has an id of its own, so a resumed run takes the answers on record and goes on after
    them.
    """

    def __init__(
        self,
        item: Item,
        candidate: Candidate,
        plan: Plan,
        caller: AnswerSource,
        script: Script,
    ) -> None:
        self._item, self._candidate, self._plan = item, candidate, plan
        self._caller, self._script = caller, script
        self._turns: list[AnsweredTurn] = []
        self._calls: list[Call] = []

    async def play(self) -> Response:
        """Play it to its end, or to the first call without an answer."""
        error, last = None, None
        try:
            while len(self._turns) < self._script.most_turns:
                user, user_call = await self._user()
                if user is None and user_call is not None:
                    break
                self._turns.append(await self._answer(user, user_call))
        except _TurnFailedError as failure:
            number = len(self._turns) + 1
            error, last = f"{failure} (turn {number} of {self._script.most_turns})", failure.call
        return self._response(error, last)

    async def _user(self) -> tuple[str | None, Call | None]:
        """What a simulated user says now, and the call it comes from; nulls where the item has it.

        The message alone is null where the user ends the conversation.
        """
        user = self._script.user
        if user is None or len(self._turns) < len(self._script.parts):
            return None, None
        request = user_request(self._plan, self._item, self._candidate, user, self._turns)
        call = await self._call(request, user.ref)
        if call.outcome != "ok":
            reason = call.error or f"its message was {call.outcome}"
            prefix = call.error_class or call.outcome
            raise _TurnFailedError(f"{prefix}: the simulated user: {reason}", call)
        return next_message(call.text or ""), call

    async def _answer(self, user: str | None, user_call: Call | None) -> AnsweredTurn:
        messages = self._script.messages(self._turns, user)
        request = response_request(tuple(messages), self._item, self._candidate, self._plan.config)
        call = await self._call(request)
        self._calls.append(call)
        if not (call.text or "").strip():
            raise _TurnFailedError(_failure(call), call)
        return AnsweredTurn(
            user=user,
            text=call.text or "",
            tokens=call.tokens,
            cost_usd=call.cost_usd,
            latency_s=call.latency_s,
            ttft_s=call.ttft_s,
            finish_reason=call.finish_reason,
            call_id=call.call_id,
            user_call_id=None if user_call is None else user_call.call_id,
        )

    async def _call(self, request: Request, user: ModelRef | None = None) -> Call:
        turn = len(self._turns) + 1
        pending = _pending_call(self._item, self._candidate, request, turn=turn, user=user)
        try:
            return await self._caller.ask(pending)
        except ModelStopError as error:
            speaker = "the simulated user: " if user is not None else ""
            name, _, message = str(error).partition(": ")
            raise _TurnFailedError(f"{name}: {speaker}{message}") from None

    def _response(self, error: str | None, last: Call | None) -> Response:
        """The record of the conversation, with sums over its turns.

        It ends with the reason of the first turn that was cut off, where one was.
        """
        calls = self._calls
        cut = (call for call in calls if call.outcome != "ok")
        end = next(cut, calls[-1] if calls else None)
        last = last or (calls[-1] if calls and error is None else None)
        return Response(
            item_id=self._item.item_id,
            candidate=self._candidate.id,
            text=transcript([turn.text for turn in self._turns]) if error is None else None,
            source="generated",
            model=(calls[-1].served_model if calls else None) or self._candidate.model,
            tokens=_sum_of_tokens([call.tokens for call in calls]),
            cost_usd=_sum([call.cost_usd for call in calls]),
            latency_s=_sum([call.latency_s for call in calls]),
            ttft_s=calls[0].ttft_s if calls else None,
            finish_reason=end.finish_reason if end is not None else None,
            error=error,
            call_id=last.call_id if last is not None else None,
            turns=self._turns,
        )


def _sum(values: Sequence[float | None]) -> float | None:
    """The sum; null where one is unknown, or there is none."""
    numbers = [value for value in values if value is not None]
    return round(math.fsum(numbers), 9) if values and len(numbers) == len(values) else None


def _sum_of_tokens(counts: Sequence[Tokens | None]) -> Tokens | None:
    if not counts or None in counts:
        return None
    sums = {name: _sum([getattr(count, name) for count in counts]) for name in Tokens.model_fields}
    return Tokens(**{name: None if total is None else int(total) for name, total in sums.items()})
