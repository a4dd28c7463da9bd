"""What every dialect is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from clash.providers.failures import Failure
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.providers.base import Request
    from clash.providers.ladder import Ladder, WireRequest
    from clash.records import Outcome


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, read: the part of a ``Reply`` that is in the body."""

    text: str
    outcome: Outcome
    finish_reason: str | None = None
    tokens: Tokens = field(default_factory=Tokens)
    served_model: str | None = None
    cost_usd: float | None = None


class Stream(Protocol):
    """Events of one answer, put together."""

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one event; true where it carries text of the answer."""
        ...

    def result(self) -> dict[str, Any] | None:
        """The answer as if it had not been streamed; null while its end has not come."""
        ...


class Dialect(Protocol):
    """One vendor's way to ask and to answer."""

    def write(self, model: str, request: Request, ladder: Ladder) -> WireRequest:
        """``request`` in the vendor's words, without what the model refuses."""
        ...

    def read(self, data: Mapping[str, Any]) -> Answer | Failure:
        """The answer in ``data``, or why it is none, whatever the HTTP status said."""
        ...

    def stream(self) -> Stream:
        """An empty answer, to be fed with events."""
        ...


def outcome_of(text: str, *, is_refusal: bool, is_blocked: bool, is_cut: bool) -> Outcome:
    """What a text is worth; what it looks like comes last.

    A model whose thoughts used up the cap leaves no text: that is ``truncated``, and mended by a
    higher cap, where ``empty`` is not.
    """
    if is_refusal:
        return "refusal"
    if is_blocked:
        return "blocked"
    if is_cut:
        return "truncated"
    return "ok" if text.strip() else "empty"


def unfinished_answer(reason: str | None) -> Failure:
    """The model ended for a reason that does not say that its answer is whole.

    Each dialect names the reasons that do say so. Any other, the vendors' future ones included,
    is a failure: half an answer can read like a vote.
    """
    words = f"finish reason {reason!r}" if reason else "no finish reason"
    text = f"the model did not finish its answer ({words})"
    return Failure("unfinished", "retry", text, 200, maybe_billed=True)


def bad_answer(problem: str) -> Failure:
    """200, but not an answer of this API."""
    return Failure("bad_payload", "retry", f"the answer has {problem}", 200, maybe_billed=True)
