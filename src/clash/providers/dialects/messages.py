"""Anthropic's Messages API."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clash.providers.dialects.protocol import Answer, bad_answer, outcome_of, unfinished_answer
from clash.providers.failures import Failure, from_answer
from clash.providers.ladder import Feature, WireRequest, merge_fields, omissions_of, one_system_text
from clash.providers.payload import count, part, total_of, word
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.providers.base import Request
    from clash.providers.ladder import Ladder

LAST_WITH_SAMPLING = "2023-06-01"
"""The API version that still knows temperature and top_p, for models that still take them."""
TOOL = "answer"
_END_REASONS = frozenset({"end_turn", "stop_sequence", "tool_use"})
_LENGTH_REASONS = frozenset({"max_tokens", "model_context_window_exceeded"})


@dataclass(frozen=True, slots=True)
class Messages:
    """The dialect of ``POST /v1/messages``.

    The rungs of structured output: ``output_config.format``, a tool that the model is forced to
    call with its answer, words.
    """

    def write(self, model: str, request: Request, ladder: Ladder) -> WireRequest:
        """The body of ``POST /v1/messages``."""
        level = ladder.level(request)
        features: dict[Feature, tuple[str, ...]] = {}
        body: dict[str, Any] = {
            "model": model,
            "max_tokens": request.max_tokens,
            "messages": [
                {"role": turn.role, "content": turn.content}
                for turn in request.turns
                if turn.role != "system"
            ],
        }
        if system := one_system_text(request, level):
            body["system"] = system
        if level == "schema":
            body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
            features["schema"] = ("output_config.format", "output_format", "json_schema")
        elif level == "json":
            body |= _forced_tool(request.schema_with_code or {})
            features["json"] = ("tool_choice", "tools", "tools.0")
        self._options(body, features, request, ladder)
        if request.stream:
            body["stream"] = True
        if "output_config" in body:
            # An old gateway blames the field as a whole.
            feature: Feature = "schema" if "schema" in features else "reasoning"
            features[feature] = (*features[feature], "output_config")
        body = merge_fields(body, request.options.extra)
        return WireRequest(body, features, omissions_of(ladder, request, "seed"), level)

    def _options(
        self,
        body: dict[str, Any],
        features: dict[Feature, tuple[str, ...]],
        request: Request,
        ladder: Ladder,
    ) -> None:
        options = request.options
        ladder.add_sampling(body, features, options, "temperature", "top_p")
        if options.reasoning is not None and ladder.takes("reasoning"):
            _think(body, options.reasoning)
            features["reasoning"] = (
                "thinking",
                "thinking.type",
                "output_config.effort",
                "effort",
            )

    def read(self, data: Mapping[str, Any]) -> Answer | Failure:
        """A whole message."""
        if data.get("type") == "error" or (data.get("error") and "content" not in data):
            return from_answer(200, {}, data)
        blocks = data.get("content")
        if not isinstance(blocks, list):
            return bad_answer("no content")
        text = "".join(_text_of(block) for block in blocks)
        stop = word(data.get("stop_reason"))
        is_refusal, is_cut = stop == "refusal", stop in _LENGTH_REASONS
        if not (is_refusal or is_cut or stop in _END_REASONS):
            return unfinished_answer(stop)
        return Answer(
            text=text,
            outcome=outcome_of(text, is_refusal=is_refusal, is_blocked=False, is_cut=is_cut),
            finish_reason=stop,
            tokens=_tokens(data.get("usage")),
            served_model=word(data.get("model")),
        )

    def stream(self) -> MessagesStream:
        """An empty answer."""
        return MessagesStream()


def _forced_tool(schema: Mapping[str, Any]) -> dict[str, Any]:
    tool = {"name": TOOL, "description": "Give the answer.", "input_schema": schema}
    return {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}


def _think(body: dict[str, Any], effort: str) -> None:
    """A word is an effort, a number is a budget of tokens, ``none`` is no thinking."""
    if effort.isdecimal():
        body["thinking"] = {"type": "enabled", "budget_tokens": int(effort)}
    elif effort == "none":
        body["thinking"] = {"type": "disabled"}
    else:
        body["thinking"] = {"type": "adaptive"}
        body["output_config"] = {**body.get("output_config", {}), "effort": effort}


def _text_of(block: object) -> str:
    """The text of a block; the input of the forced tool is the answer as JSON."""
    if part(block, "type") == "tool_use":
        return json.dumps(part(block, "input"), ensure_ascii=False)
    text = part(block, "text") if part(block, "type") == "text" else None
    return text if isinstance(text, str) else ""


def _tokens(usage: object) -> Tokens:
    """Anthropic counts cached tokens beside the input, we count them within."""
    reads = count(part(usage, "cache_read_input_tokens"))
    writes = count(part(usage, "cache_creation_input_tokens"))
    plain = count(part(usage, "input_tokens"))
    return Tokens(
        input=None if plain is None else total_of(plain, reads, writes),
        output=count(part(usage, "output_tokens")),
        cached=reads,
        reasoning=count(part(usage, "output_tokens_details", "thinking_tokens")),
    )


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; one that names a key twice is left to the parser of judgments, which refuses it."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key appears twice")
    return value


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


@dataclass(slots=True)
class MessagesStream:
    """Events of a message, put together; complete once it has stopped and said why."""

    _message: dict[str, Any] = field(default_factory=dict)
    _blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _pieces: dict[int, list[str]] = field(default_factory=dict)
    _complete: bool = False

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one event."""
        kind, index = event.get("type"), count(event.get("index")) or 0
        if kind == "message_start":
            self._message = _mapping(event.get("message"))
        elif kind == "content_block_start":
            self._blocks[index] = _mapping(event.get("content_block"))
        elif kind == "content_block_delta":
            return self._piece(index, _mapping(event.get("delta")))
        elif kind == "message_delta":
            usage = {**_mapping(self._message.get("usage")), **_mapping(event.get("usage"))}
            self._message |= _mapping(event.get("delta"))
            self._message["usage"] = usage
        elif kind == "message_stop":
            self._complete = True
        elif kind == "error":
            self._message, self._complete = dict(event), True
        return False

    def _piece(self, index: int, delta: Mapping[str, Any]) -> bool:
        for name in ("text", "partial_json", "thinking"):
            piece = delta.get(name)
            if isinstance(piece, str):
                self._pieces.setdefault(index, []).append(piece)
                return name != "thinking" and bool(piece)
        return False

    def result(self) -> dict[str, Any] | None:
        """The message."""
        if not self._complete:
            return None
        if self._message.get("type") == "error":
            return self._message
        if not self._message.get("stop_reason"):
            return None
        content = [self._block(index) for index in sorted(self._blocks)]
        return {**self._message, "content": content}

    def _block(self, index: int) -> dict[str, Any]:
        block, text = self._blocks[index], "".join(self._pieces.get(index, ()))
        if block.get("type") == "tool_use":
            try:
                return {**block, "input": json.loads(text or "{}", object_pairs_hook=_once_each)}
            except (ValueError, RecursionError):
                # Cut off in the middle: the parser of judgments shall see it as it is.
                return {"type": "text", "text": text}
        return {**block, ("thinking" if block.get("type") == "thinking" else "text"): text}
