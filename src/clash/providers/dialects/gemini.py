"""Google's ``generateContent``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clash.providers.dialects.protocol import Answer, bad_answer, outcome_of, unfinished_answer
from clash.providers.failures import Failure, from_answer
from clash.providers.ladder import Feature, WireRequest, omissions_of, one_system_text
from clash.providers.payload import count, part, parts, total_of, word
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.providers.base import Request
    from clash.providers.ladder import Ladder

_BLOCK_REASONS = frozenset(
    {
        "SAFETY",
        "RECITATION",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "LANGUAGE",
        "ESCALATION",
        "MODEL_ARMOR",
        "PUP_LIMITED_DISABLED",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    }
)
_JSON_NAMES = ("responseMimeType", "response_mime_type", "JSON mode")
_SCHEMA_NAMES = (
    "responseJsonSchema",
    "response_json_schema",
    "responseSchema",
    "response_schema",
)
_LENGTH_REASONS = frozenset({"MAX_TOKENS", "CONTINUATION"})


@dataclass(frozen=True, slots=True)
class Gemini:
    """The dialect of ``models/M:generateContent``; names as the SDK's configuration has them."""

    def write(self, model: str, request: Request, ladder: Ladder) -> WireRequest:
        """``contents`` and ``config`` of a call."""
        level = ladder.level(request)
        features: dict[Feature, tuple[str, ...]] = {}
        config: dict[str, Any] = {"max_output_tokens": request.max_tokens}
        if system := one_system_text(request, level):
            config["system_instruction"] = system
        if level in ("schema", "json"):
            config["response_mime_type"] = "application/json"
        if level == "schema":
            config["response_json_schema"] = request.schema
            features["schema"] = (*_SCHEMA_NAMES, *_JSON_NAMES)
        elif level == "json":
            features["json"] = _JSON_NAMES
        self._options(config, features, request, ladder)
        version = request.options.api_version
        if version is None and ladder.takes("stable_api"):
            # Previews, and most servers that only speak like Google's, know v1beta alone.
            features["stable_api"] = ("API version v1", "v1")
        elif version is None:
            version = "v1beta"
        body = {
            "model": model,
            "contents": _contents(request),
            "config": config,
            "api_version": version,
        }
        return WireRequest(body, features, omissions_of(ladder, request), level)

    def _options(
        self,
        config: dict[str, Any],
        features: dict[Feature, tuple[str, ...]],
        request: Request,
        ladder: Ladder,
    ) -> None:
        options = request.options
        ladder.add_sampling(config, features, options, "temperature", "top_p", "seed")
        if "top_p" in features:
            features["top_p"] = ("top_p", "topP")
        if options.reasoning is not None and ladder.takes("reasoning"):
            config["thinking_config"] = _thinking(options.reasoning)
            features["reasoning"] = (
                "thinkingConfig",
                "thinking_config",
                "thinkingLevel",
                "thinking_level",
                "thinkingBudget",
                "thinking_budget",
                "Thinking level",
                "Thinking budget",
            )

    def read(self, data: Mapping[str, Any]) -> Answer | Failure:
        """A whole answer."""
        block = part(data, "promptFeedback", "blockReason")
        candidate = part(data, "candidates", 0)
        if data.get("error"):
            return from_answer(200, {}, data)
        if candidate is None and block is None:
            return bad_answer("no candidates")
        finish = word(part(candidate, "finishReason"))
        text = "".join(
            piece["text"]
            for piece in parts(candidate, "content", "parts")
            if isinstance(piece.get("text"), str) and not piece.get("thought")
        )
        is_blocked, is_cut = (
            block is not None or finish in _BLOCK_REASONS,
            finish in _LENGTH_REASONS,
        )
        if not (is_blocked or is_cut or finish == "STOP"):
            return unfinished_answer(finish)
        return Answer(
            text=text,
            outcome=outcome_of(text, is_refusal=False, is_blocked=is_blocked, is_cut=is_cut),
            finish_reason=f"prompt blocked: {block}" if block else finish,
            tokens=_tokens(data.get("usageMetadata")),
            served_model=word(data.get("modelVersion")),
        )

    def stream(self) -> GeminiStream:
        """An empty answer."""
        return GeminiStream()


def _contents(request: Request) -> list[dict[str, Any]]:
    roles = {"user": "user", "assistant": "model"}
    return [
        {"role": roles[turn.role], "parts": [{"text": turn.content}]}
        for turn in request.turns
        if turn.role != "system"
    ]


def _thinking(effort: str) -> dict[str, Any]:
    """A word is a level (3.x), a number is a budget of tokens (2.5)."""
    if effort.isdecimal():
        return {"thinking_budget": int(effort)}
    return {"thinking_level": effort.upper()}


def _tokens(usage: object) -> Tokens:
    """Google counts thoughts beside the candidates, we count them within the output."""
    thoughts = count(part(usage, "thoughtsTokenCount"))
    candidates = count(part(usage, "candidatesTokenCount"))
    return Tokens(
        input=count(part(usage, "promptTokenCount")),
        output=total_of(candidates, thoughts),
        cached=count(part(usage, "cachedContentTokenCount")),
        reasoning=thoughts,
    )


@dataclass(slots=True)
class GeminiStream:
    """Chunks of an answer, put together; complete once a finish reason was seen."""

    _body: dict[str, Any] = field(default_factory=dict)
    _parts: list[dict[str, Any]] = field(default_factory=list)
    _finish: str | None = None

    def feed(self, event: Mapping[str, Any]) -> bool:
        """Take in one chunk."""
        self._body |= {key: value for key, value in event.items() if key != "candidates"}
        candidate = part(event, "candidates", 0)
        self._finish = word(part(candidate, "finishReason")) or self._finish
        pieces = parts(candidate, "content", "parts")
        self._parts += pieces
        return any(p.get("text") and not p.get("thought") for p in pieces)

    def result(self) -> dict[str, Any] | None:
        """The answer."""
        block = part(self._body, "promptFeedback", "blockReason")
        if self._body.get("error") or (block and self._finish is None):
            return self._body
        if self._finish is None:
            return None
        content = {"role": "model", "parts": self._parts}
        candidate = {"content": content, "finishReason": self._finish, "index": 0}
        return {**self._body, "candidates": [candidate]}
