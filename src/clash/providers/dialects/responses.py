"""OpenAI's Responses API, which some models demand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.providers.dialects.protocol import Answer, bad_answer, outcome_of, unfinished_answer
from clash.providers.failures import Failure, from_answer
from clash.providers.ladder import Feature, WireRequest, merge_fields, omissions_of, system_of
from clash.providers.payload import count, part, parts, word
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.providers.base import Request
    from clash.providers.ladder import Ladder

LEAST_TOKENS = 16
"""OpenAI accepts no lower cap."""
_ENDS = ("response.completed", "response.incomplete", "response.failed")


@dataclass(frozen=True, slots=True)
class Responses:
    """The dialect of ``POST /responses``. Nothing is stored at OpenAI."""

    def write(self, model: str, request: Request, ladder: Ladder) -> WireRequest:
        """The body of ``POST /responses``."""
        level = ladder.level(request)
        options = request.options
        features: dict[Feature, tuple[str, ...]] = {}
        body: dict[str, Any] = {
            "model": model,
            "input": [{"role": turn.role, "content": turn.content} for turn in request.turns],
            "max_output_tokens": max(LEAST_TOKENS, request.max_tokens),
            "store": False,
            "stream": request.stream,
        }
        if system := system_of(request, level):
            body["instructions"] = system
        if level == "schema":
            format_ = {"type": "json_schema", "name": "answer", "strict": True}
            body["text"] = {"format": {**format_, "schema": request.schema}}
            features["schema"] = ("text.format", "json_schema")
        elif level == "json":
            body["text"] = {"format": {"type": "json_object"}}
            features["json"] = ("text.format", "json_object")
        ladder.add_sampling(body, features, options, "temperature", "top_p")
        if options.reasoning is not None and ladder.takes("reasoning"):
            body["reasoning"] = {"effort": options.reasoning}
            features["reasoning"] = ("reasoning.effort", "reasoning")
        body = merge_fields(body, options.extra)
        omissions = omissions_of(ladder, request, "seed")
        if options.api == "auto":
            omissions += ("chat",)
        return WireRequest(body, features, omissions, level)

    def read(self, data: Mapping[str, Any]) -> Answer | Failure:
        """A whole response."""
        status = data.get("status")
        if status == "failed" or (data.get("error") and not data.get("output")):
            return from_answer(200, {}, {"error": data.get("error") or {}})
        if not isinstance(data.get("output"), list):
            return bad_answer("no output")
        messages = [item for item in parts(data, "output") if item.get("type") == "message"]
        pieces = [piece for message in messages for piece in parts(message, "content")]
        text = "".join(_texts(pieces, "output_text", "text"))
        refusals = _texts(pieces, "refusal", "refusal")
        reason = word(part(data, "incomplete_details", "reason"))
        is_blocked, is_cut = reason == "content_filter", reason == "max_output_tokens"
        all_complete = all(message.get("status") in ("completed", None) for message in messages)
        complete = status == "completed" and reason is None and all_complete
        if not (refusals or is_blocked or is_cut or complete):
            return unfinished_answer(reason or word(status))
        return Answer(
            text=text or "".join(refusals),
            outcome=outcome_of(
                text, is_refusal=bool(refusals), is_blocked=is_blocked, is_cut=is_cut
            ),
            finish_reason=reason or word(status),
            tokens=_tokens(data.get("usage")),
            served_model=word(data.get("model")),
        )

    def stream(self) -> ResponsesStream:
        """An empty answer."""
        return ResponsesStream()


def _texts(pieces: list[dict[str, Any]], kind: str, name: str) -> list[str]:
    """What pieces of one kind say; any other kind, such as a thought, is no part of the answer."""
    texts = (piece.get(name) for piece in pieces if piece.get("type") == kind)
    return [text for text in texts if isinstance(text, str)]


def _tokens(usage: object) -> Tokens:
    return Tokens(
        input=count(part(usage, "input_tokens")),
        output=count(part(usage, "output_tokens")),
        cached=count(part(usage, "input_tokens_details", "cached_tokens")),
        reasoning=count(part(usage, "output_tokens_details", "reasoning_tokens")),
    )


@dataclass(slots=True)
class ResponsesStream:
    """Events of a response; the last one carries the whole."""

    _body: dict[str, Any] | None = None

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one event."""
        kind = event.get("type")
        if kind in _ENDS and isinstance(event.get("response"), dict):
            self._body = dict(event["response"])
        elif kind == "error":
            inner = event.get("error")
            error = inner if isinstance(inner, dict) else event
            self._body = {"status": "failed", "error": dict(error)}
        return kind in ("response.output_text.delta", "response.refusal.delta")

    def result(self) -> dict[str, Any] | None:
        """The response."""
        return self._body
