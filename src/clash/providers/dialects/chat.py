"""Chat completions: OpenAI, OpenRouter, and every server that is compatible with them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from clash.providers.dialects.protocol import Answer, bad_answer, outcome_of, unfinished_answer
from clash.providers.failures import Failure, from_answer
from clash.providers.ladder import Feature, WireRequest, merge_fields, omissions_of, system_of
from clash.providers.payload import count, money, part, parts, word
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.providers.base import Request
    from clash.providers.ladder import Ladder
    from clash.records import JsonMode

Flavour = Literal["openai", "openrouter", "compatible"]
_SCHEMA_NAMES = ("response_format", "json_schema", "structured_outputs", "guided_json", "grammar")
_JSON_NAMES = ("response_format", "json_object")
_END_REASONS = frozenset({"stop", "eos", "eos_token", "end_turn", "stop_sequence", "complete"})
"""Reasons that say that the answer is whole: OpenAI's, and those that gateways pass on unchanged
(Text Generation Inference, Anthropic, Cohere; Google's STOP). Small local servers send none with
an answer that is not streamed, so ``compatible`` needs none there."""
_LENGTH_REASONS = frozenset(
    {"length", "max_tokens", "model_length", "model_context_window_exceeded"}
)
_BLOCK_REASONS = frozenset(
    {"content_filter", "safety", "recitation", "prohibited_content", "blocklist"}
)


@dataclass(frozen=True, slots=True)
class Chat:
    """The chat dialect in one of its flavours.

    OpenAI wants ``max_completion_tokens``; servers of one's own often know ``max_tokens`` only,
    and ignore the other in silence, so they and OpenRouter are asked with that one first.
    """

    flavour: Flavour

    def write(self, model: str, request: Request, ladder: Ladder) -> WireRequest:
        """The body of ``POST /chat/completions``."""
        level = ladder.level(request)
        features: dict[Feature, tuple[str, ...]] = {}
        body: dict[str, Any] = {"model": model, "messages": _messages(request, level)}
        if level in ("schema", "json"):
            body["response_format"] = self._format(request, level)
            features[level] = _SCHEMA_NAMES if level == "schema" else _JSON_NAMES
        cap = self._cap(ladder)
        body[cap] = request.max_tokens
        features[cap] = (cap,)
        self._options(body, features, request, ladder)
        omissions = omissions_of(ladder, request)
        if cap != self._caps[0]:
            omissions += (self._caps[0],)
        if self.flavour == "openrouter" and level == "schema":
            # Else an upstream may drop the schema in silence.
            if ladder.takes("require_parameters"):
                body["provider"] = {"require_parameters": True}
                features["require_parameters"] = ("requested parameters", "require_parameters")
            else:
                omissions += ("require_parameters",)
        if self.flavour == "openai" and request.options.api == "auto":
            features["chat"] = ("v1/responses", "v1/chat/completions")
        body = merge_fields(body, request.options.extra)
        return WireRequest(body, features, omissions, level)

    @property
    def _caps(self) -> tuple[Feature, Feature]:
        if self.flavour == "openai":
            return "max_completion_tokens", "max_tokens"
        return "max_tokens", "max_completion_tokens"

    def _cap(self, ladder: Ladder) -> Feature:
        return ladder.cap(*self._caps)

    def _format(self, request: Request, level: JsonMode) -> dict[str, Any]:
        if level == "schema":
            format_ = {"name": "answer", "strict": True, "schema": request.schema}
            return {"type": "json_schema", "json_schema": format_}
        if self.flavour == "compatible":
            # llama.cpp makes a grammar of it; the others pass it over.
            return {"type": "json_object", "schema": request.schema_with_code}
        return {"type": "json_object"}

    def _options(
        self,
        body: dict[str, Any],
        features: dict[Feature, tuple[str, ...]],
        request: Request,
        ladder: Ladder,
    ) -> None:
        options = request.options
        ladder.add_sampling(body, features, options, "temperature", "top_p", "seed")
        if options.reasoning is not None and ladder.takes("reasoning"):
            body |= self._reasoning(options.reasoning)
            features["reasoning"] = ("reasoning_effort", "reasoning", "reasoning.effort")
        if request.stream:
            body["stream"] = True
            if self.flavour != "openrouter" and ladder.takes("stream_usage"):
                body["stream_options"] = {"include_usage": True}
                features["stream_usage"] = ("stream_options", "include_usage")

    def _reasoning(self, effort: str) -> dict[str, Any]:
        if self.flavour != "openrouter":
            return {"reasoning_effort": effort}
        budget = {"max_tokens": int(effort)} if effort.isdecimal() else {"effort": effort}
        return {"reasoning": budget}

    def read(self, data: Mapping[str, Any]) -> Answer | Failure:
        """A whole chat completion."""
        choice = part(data, "choices", 0)
        if not isinstance(choice, dict):
            if data.get("error"):
                return from_answer(200, {}, data)
            return bad_answer("no choices")
        if choice.get("finish_reason") == "error" or choice.get("error"):
            return from_answer(200, {}, {"error": choice.get("error") or data.get("error")})
        message = choice.get("message")
        content = part(message, "content")
        refusal = part(message, "refusal") or _of_kind(content, "refusal", "refusal")
        text = _text(content)
        finish = word(choice.get("finish_reason"))
        reason = (finish or "").lower()
        is_blocked, is_cut = reason in _BLOCK_REASONS, reason in _LENGTH_REASONS
        unsaid = choice.get("finish_reason") in (None, "")
        complete = reason in _END_REASONS or (unsaid and self.flavour == "compatible")
        if not (refusal or is_blocked or is_cut or complete):
            return unfinished_answer(finish)
        return Answer(
            text=text or (refusal if isinstance(refusal, str) else ""),
            outcome=outcome_of(
                text, is_refusal=bool(refusal), is_blocked=is_blocked, is_cut=is_cut
            ),
            finish_reason=finish,
            tokens=_tokens(data.get("usage")),
            served_model=word(data.get("model")),
            cost_usd=_cost(data.get("usage")),
        )

    def stream(self) -> ChatStream:
        """An empty answer."""
        return ChatStream()


def _messages(request: Request, level: JsonMode | None) -> list[dict[str, str]]:
    system = system_of(request, level)
    head = [{"role": "system", "content": system}] if system else []
    return head + [{"role": turn.role, "content": turn.content} for turn in request.turns]


def _text(content: object) -> str:
    """A string, or the texts of a list of parts."""
    return content if isinstance(content, str) else _of_kind(content, "text", "text")


def _of_kind(content: object, kind: str, name: str) -> str:
    """What the parts of one kind say; a thought or any other kind is no part of the answer."""
    texts = (piece.get(name) for piece in parts(content) if piece.get("type", "text") == kind)
    return "".join(text for text in texts if isinstance(text, str))


def _tokens(usage: object) -> Tokens:
    return Tokens(
        input=count(part(usage, "prompt_tokens")),
        output=count(part(usage, "completion_tokens")),
        cached=count(part(usage, "prompt_tokens_details", "cached_tokens")),
        reasoning=count(part(usage, "completion_tokens_details", "reasoning_tokens")),
    )


def _cost(usage: object) -> float | None:
    """OpenRouter's own figure; with a key of one's own the vendor's bill comes on top."""
    cost = money(part(usage, "cost"))
    if cost is None or not part(usage, "is_byok"):
        return cost
    upstream = money(part(usage, "cost_details", "upstream_inference_cost"))
    return None if upstream is None else cost + upstream


@dataclass(slots=True)
class ChatStream:
    """Chunks of a chat completion, put together; complete once a finish reason was seen."""

    _body: dict[str, Any] = field(default_factory=dict)
    _texts: dict[str, list[str]] = field(default_factory=lambda: {"content": [], "refusal": []})
    _finish: str | None = None
    _error: Any = None

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one chunk."""
        if event.get("error"):
            self._error = event["error"]
        self._body |= {
            key: value
            for key, value in event.items()
            if key not in ("choices", "object") and value is not None
        }
        # One answer was asked for. Where a server gives several, their pieces are not to be mixed.
        choices = (choice for choice in parts(event, "choices") if not choice.get("index"))
        with_text = [self._choice(choice) for choice in choices]
        return any(with_text)

    def _choice(self, choice: Mapping[str, Any]) -> bool:
        if choice.get("finish_reason"):
            self._finish = choice["finish_reason"]
            self._error = self._error or choice.get("error")
        content = part(choice, "delta", "content")
        refusal = part(choice, "delta", "refusal")
        pieces = {
            "content": _text(content),
            "refusal": word(refusal) or _of_kind(content, "refusal", "refusal"),
        }
        for name, piece in pieces.items():
            self._texts[name].append(piece)
        return any(pieces.values())

    def result(self) -> dict[str, Any] | None:
        """The chat completion."""
        if self._error is not None:
            return {**self._body, "error": self._error}
        if self._finish is None:
            return None
        content, refusal = ("".join(self._texts[name]) for name in ("content", "refusal"))
        message = {"role": "assistant", "content": content, "refusal": refusal or None}
        choice = {"index": 0, "message": message, "finish_reason": self._finish}
        return {**self._body, "object": "chat.completion", "choices": [choice]}
