"""What each vendor's wire looks like: a request read into :class:`Asked`, a :class:`Said` written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

PREFIXES = {
    "openai": "/openai/v1",
    "anthropic": "/anthropic",
    "google": "/google",
    "openrouter": "/openrouter/api/v1",
    "compatible": "/compatible/v1",
}
STOPS = {
    "chat": {"stop": "stop", "length": "length", "refusal": "stop", "blocked": "content_filter"},
    "messages": {
        "stop": "end_turn",
        "length": "max_tokens",
        "refusal": "refusal",
        "blocked": "refusal",
    },
    "gemini": {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "refusal": "PROHIBITED_CONTENT",
        "blocked": "SAFETY",
    },
}


@dataclass(frozen=True)
class Asked:
    """A request, whatever vendor's words it came in.

    Attributes:
        vendor: openai, anthropic, google, openrouter or compatible.
        api: chat, responses, messages or gemini.
        schema: JSON Schema asked for, natively or (after a degrade) in the prompt.
        json: JSON was asked for, with or without a schema.
        cap: the most tokens of the answer, where the server understood the field.
    """

    vendor: str
    api: str
    model: str
    system: str
    turns: list[tuple[str, str]]
    schema: dict[str, Any] | None
    json: bool
    cap: int | None
    stream: bool
    stream_usage: bool
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """All the text that was sent."""
        return "\n".join([self.system, *(text for _, text in self.turns)])


@dataclass(frozen=True)
class Said:
    """An answer, before it is put into a vendor's words.

    Attributes:
        finish: stop, length, refusal or blocked.
        tokens: input, output, cached and reasoning, in the convention of ``records.Tokens``;
            null sends no usage at all.
        usage: replaces the usage object of the wire, as it stands.
    """

    text: str
    model: str
    finish: str = "stop"
    tokens: dict[str, int] | None = field(default_factory=dict)
    reasoning: str = ""
    usage: Any = None
    cost: float | None = None
    upstream: str = "WireHost"


def read(vendor: str, path: str, body: dict[str, Any]) -> Asked:
    """A request body as :class:`Asked`."""
    if path.endswith("/chat/completions"):
        return _read_chat(vendor, body)
    if path.endswith("/responses"):
        return _read_responses(vendor, body)
    if path.endswith("/messages"):
        return _read_messages(vendor, body)
    return _read_gemini(vendor, path, body)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [])


def _split(messages: list[dict[str, Any]]) -> tuple[str, list[tuple[str, str]]]:
    system = [_text(m["content"]) for m in messages if m["role"] in ("system", "developer")]
    turns = [
        (m["role"], _text(m["content"])) for m in messages if m["role"] in ("user", "assistant")
    ]
    return "\n".join(system), turns


def _read_chat(vendor: str, body: dict[str, Any]) -> Asked:
    wanted = body.get("response_format") or {}
    schema = (wanted.get("json_schema") or {}).get("schema") or wanted.get("schema")
    system, turns = _split(body["messages"])
    # A plain compatible server knows the old name of the cap only.
    cap = body.get("max_tokens")
    if vendor != "compatible":
        cap = body.get("max_completion_tokens", cap)
    usage = (body.get("stream_options") or {}).get("include_usage", False)
    return Asked(
        vendor, "chat", body["model"], system, turns, schema, wanted.get("type") in
        ("json_schema", "json_object"), cap, bool(body.get("stream")),
        usage or vendor == "openrouter", body,
    )  # fmt: skip


def _read_responses(vendor: str, body: dict[str, Any]) -> Asked:
    wanted = (body.get("text") or {}).get("format") or {}
    messages = body["input"]
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    system, turns = _split(messages)
    system = "\n".join(filter(None, [body.get("instructions") or "", system]))
    return Asked(
        vendor, "responses", body["model"], system, turns, wanted.get("schema"),
        wanted.get("type") in ("json_schema", "json_object"), body.get("max_output_tokens"),
        bool(body.get("stream")), True, body,
    )  # fmt: skip


def _read_messages(vendor: str, body: dict[str, Any]) -> Asked:
    wanted = (body.get("output_config") or {}).get("format") or {}
    schema = wanted.get("schema")
    if body.get("tool_choice"):
        schema = body["tools"][0]["input_schema"]
    turns = [(m["role"], _text(m["content"])) for m in body["messages"]]
    return Asked(
        vendor, "messages", body["model"], _text(body.get("system")), turns, schema,
        schema is not None, body["max_tokens"], bool(body.get("stream")), True, body,
    )  # fmt: skip


def _read_gemini(vendor: str, path: str, body: dict[str, Any]) -> Asked:
    model, _, method = path.rpartition("/models/")[2].partition(":")
    config = body.get("generationConfig") or {}
    turns = [
        ("assistant" if c.get("role") == "model" else "user", _text(c["parts"]))
        for c in body["contents"]
    ]
    return Asked(
        vendor, "gemini", model, _text((body.get("systemInstruction") or {}).get("parts")), turns,
        config.get("responseJsonSchema") or config.get("responseSchema"),
        config.get("responseMimeType") == "application/json", config.get("maxOutputTokens"),
        method.startswith("stream"), True, body,
    )  # fmt: skip


# --- answers ---------------------------------------------------------------------------------


def usage(asked: Asked, said: Said) -> Any:
    """The usage object, in the vendor's own convention."""
    if said.usage is not None or said.tokens is None:
        return said.usage
    t = {"input": 0, "output": 0, "cached": 0, "reasoning": 0} | said.tokens
    if asked.api == "chat":
        counts: dict[str, Any] = {
            "prompt_tokens": t["input"],
            "completion_tokens": t["output"],
            "total_tokens": t["input"] + t["output"],
            "prompt_tokens_details": {"cached_tokens": t["cached"]},
            "completion_tokens_details": {"reasoning_tokens": t["reasoning"]},
        }
        if asked.vendor == "openrouter" and said.cost is not None:
            counts |= {"cost": said.cost, "is_byok": False}
        return counts
    if asked.api == "responses":
        return {
            "input_tokens": t["input"],
            "input_tokens_details": {"cached_tokens": t["cached"]},
            "output_tokens": t["output"],
            "output_tokens_details": {"reasoning_tokens": t["reasoning"]},
            "total_tokens": t["input"] + t["output"],
        }
    if asked.api == "messages":
        return {
            "input_tokens": t["input"] - t["cached"],
            "cache_read_input_tokens": t["cached"],
            "cache_creation_input_tokens": 0,
            "output_tokens": t["output"],
            "output_tokens_details": {"thinking_tokens": t["reasoning"]},
            "service_tier": "standard",
        }
    return {
        "promptTokenCount": t["input"],
        "cachedContentTokenCount": t["cached"],
        "candidatesTokenCount": t["output"] - t["reasoning"],
        "thoughtsTokenCount": t["reasoning"],
        "totalTokenCount": t["input"] + t["output"],
    }


def body(asked: Asked, said: Said) -> dict[str, Any]:
    """The whole answer as one JSON object."""
    match asked.api:
        case "chat":
            return _chat(asked, said)
        case "responses":
            return _responses(asked, said)
        case "messages":
            return _messages(asked, said)
        case _:
            return _gemini(asked, said)


def _chat(asked: Asked, said: Said) -> dict[str, Any]:
    refused = said.finish == "refusal"
    message = {
        "role": "assistant",
        "content": None if refused or not said.text else said.text,
        "refusal": said.text if refused else None,
    }
    if said.reasoning:
        message["reasoning"] = said.reasoning
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": STOPS["chat"][said.finish],
    }
    whole: dict[str, Any] = {
        "id": "chatcmpl-wire",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": said.model,
        "choices": [choice],
    }
    if (counts := usage(asked, said)) is not None:
        whole["usage"] = counts
    if asked.vendor == "openrouter":
        whole["provider"] = said.upstream
        choice["native_finish_reason"] = choice["finish_reason"]
    return whole


def _responses(asked: Asked, said: Said) -> dict[str, Any]:
    kind = "refusal" if said.finish == "refusal" else "output_text"
    part = (
        {"type": "refusal", "refusal": said.text}
        if kind == "refusal"
        else {"type": "output_text", "text": said.text, "annotations": []}
    )
    output: list[dict[str, Any]] = []
    if said.reasoning:
        output.append({"type": "reasoning", "id": "rs_wire", "summary": []})
    if said.text:
        output.append(
            {
                "type": "message",
                "id": "msg_wire",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    reason = {"length": "max_output_tokens", "blocked": "content_filter"}.get(said.finish)
    return {
        "id": "resp_wire",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": said.model,
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage(asked, said),
    }


def _messages(asked: Asked, said: Said) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if said.reasoning:
        content.append({"type": "thinking", "thinking": said.reasoning, "signature": "wire"})
    if said.text and asked.body.get("tool_choice"):
        name = asked.body["tool_choice"]["name"]
        content.append(
            {"type": "tool_use", "id": "toolu_wire", "name": name, "input": json.loads(said.text)}
        )
    elif said.text:
        content.append({"type": "text", "text": said.text})
    return {
        "id": "msg_wire",
        "type": "message",
        "role": "assistant",
        "model": said.model,
        "content": content,
        "stop_reason": STOPS["messages"][said.finish],
        "stop_sequence": None,
        "usage": usage(asked, said),
    }


def _gemini(asked: Asked, said: Said) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if said.reasoning:
        parts.append({"text": said.reasoning, "thought": True})
    if said.text:
        parts.append({"text": said.text})
    candidate: dict[str, Any] = {"finishReason": STOPS["gemini"][said.finish], "index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    whole: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": said.model,
        "responseId": "wire",
    }
    if (counts := usage(asked, said)) is not None:
        whole["usageMetadata"] = counts
    return whole


def events(asked: Asked, said: Said) -> list[bytes]:
    """The whole answer as server-sent events, the text in several pieces."""
    match asked.api:
        case "chat":
            return _chat_events(asked, said)
        case "responses":
            return _responses_events(asked, said)
        case "messages":
            return _messages_events(asked, said)
        case _:
            return _gemini_events(asked, said)


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _pieces(text: str) -> list[str]:
    size = max(1, len(text) // 3)
    return [text[i : i + size] for i in range(0, len(text), size)]


def _chat_events(asked: Asked, said: Said) -> list[bytes]:
    whole = _chat(asked, said)
    base = {k: whole[k] for k in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    if "provider" in whole:
        base["provider"] = whole["provider"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event({**base, "choices": [choice]})

    key = "refusal" if said.finish == "refusal" else "content"
    out = [b": OPENROUTER PROCESSING\n\n"] if asked.vendor == "openrouter" else []
    out.append(chunk({"role": "assistant", "content": ""}))
    out += [chunk({key: piece}) for piece in _pieces(said.text)]
    out.append(chunk({}, whole["choices"][0]["finish_reason"]))
    if asked.stream_usage and "usage" in whole:
        out.append(event({**base, "choices": [], "usage": whole["usage"]}))
    out.append(b"data: [DONE]\n\n")
    return out


def _responses_events(asked: Asked, said: Said) -> list[bytes]:
    whole = _responses(asked, said)
    begun = whole | {"status": "in_progress", "output": [], "usage": None}
    out: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    where = {"item_id": "msg_wire", "output_index": 0, "content_index": 0}
    kind = "refusal" if said.finish == "refusal" else "output_text"
    out += [
        {"type": f"response.{kind}.delta", "delta": piece, "logprobs": [], **where}
        for piece in _pieces(said.text)
    ]
    out.append({"type": f"response.{whole['status']}", "response": whole})
    return [event(e | {"sequence_number": i}, e["type"]) for i, e in enumerate(out)]


def _messages_events(asked: Asked, said: Said) -> list[bytes]:
    whole = _messages(asked, said)
    counts = whole["usage"] or {}
    first = counts | {"output_tokens": 1} if "output_tokens" in counts else counts
    begun = whole | {"content": [], "stop_reason": None, "usage": first}
    out: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "tool_use":
            start, field_, text = block | {"input": {}}, "partial_json", said.text
        elif block["type"] == "thinking":
            start, field_, text = block | {"thinking": ""}, "thinking", block["thinking"]
        else:
            start, field_, text = block | {"text": ""}, "text", block["text"]
        kind = {"partial_json": "input_json_delta"}.get(field_, f"{field_}_delta")
        out.append({"type": "content_block_start", "index": index, "content_block": start})
        out += [
            {"type": "content_block_delta", "index": index, "delta": {"type": kind, field_: piece}}
            for piece in _pieces(text)
        ]
        out.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    out.append({"type": "message_delta", "delta": delta, "usage": counts})
    out.append({"type": "message_stop"})
    return [event(e, e["type"]) for e in out]


def _gemini_events(asked: Asked, said: Said) -> list[bytes]:
    whole = _gemini(asked, said)
    base = {k: whole[k] for k in ("modelVersion", "responseId")}
    out = [
        {
            **base,
            "candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}],
        }
        for piece in _pieces(said.text)
    ]
    last: dict[str, Any] = {"finishReason": whole["candidates"][0]["finishReason"], "index": 0}
    out.append({**base, "candidates": [last]})
    if "usageMetadata" in whole:
        out[-1]["usageMetadata"] = whole["usageMetadata"]
    return [event(e) for e in out]


# --- errors ----------------------------------------------------------------------------------


def error(
    asked: Asked,
    status: int,
    message: str,
    *,
    code: str | None = None,
    kind: str | None = None,
    param: str | None = None,
    details: Any = None,
) -> dict[str, Any]:
    """An error body in the vendor's own shape."""
    match asked.vendor:
        case "anthropic":
            inner: dict[str, Any] = {"type": kind or _ANTHROPIC.get(status, "api_error")}
            inner["message"] = message
            if code:
                inner["details"] = {"error_code": code}
            return {"type": "error", "error": inner, "request_id": "req_wire"}
        case "google":
            inner = {"code": status, "message": message, "status": kind or _GOOGLE.get(status, "")}
            if details:
                inner["details"] = details
            return {"error": inner}
        case "openrouter":
            inner = {"code": status, "message": message}
            if details:
                inner["metadata"] = details
            return {"error": inner, "user_id": "user_wire"}
        case _:
            usual = "server_error" if status >= 500 else "invalid_request_error"
            inner = {"message": message, "type": kind or usual}
            return {"error": inner | {"param": param, "code": code}}


_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_GOOGLE = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
