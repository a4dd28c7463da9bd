"""The calls of a run, in place of its models: what follows from them is had without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from clash.collect.calling import ModelStopError

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from clash.collect.calling import PendingCall
    from clash.records import Call

T = TypeVar("T")


class MissingCallError(Exception):
    """There is no such call: the model had stopped, or the run had ended."""


class OtherQuestionError(Exception):
    """The call on record has another question."""


@dataclass(frozen=True)
class RecordedCalls:
    """The last attempt of each call, by id.

    Attributes:
        stop_reasons: why models refused for good, as their calls say it.
    """

    calls: Mapping[str, Call]
    stop_reasons: frozenset[str] = frozenset()

    async def ask(self, pending: PendingCall) -> Call:
        """The last attempt on record.

        Raises:
            MissingCallError: there is none.
            OtherQuestionError: it asked a different question.
            ModelStopError: in this call the model refused for good.
        """
        call = self.calls.get(pending.call_id)
        if call is None:
            raise MissingCallError(pending.call_id)
        if (
            call.request_hash != pending.request.hash(pending.ref.model)
            or call.model != pending.ref.model
        ):
            raise OtherQuestionError(pending.call_id)
        reason = f"{call.error_class}: {call.error}"
        if call.outcome == "error" and reason in self.stop_reasons:
            raise ModelStopError(reason, call.call_id)
        return call


def run_at_once(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        value: T = stop.value
        return value
    raise AssertionError("a record was waited for")
