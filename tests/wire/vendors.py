"""What each vendor's wire looks like: a request read into :class:`VendorRequest`, a :class:`VendorReply` written."""

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
class VendorRequest:
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
class VendorReply:
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


def read(vendor: str, path: str, body: dict[str, Any]) -> VendorRequest:
    """A request body as :class:`VendorRequest`."""
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


def _read_chat(vendor: str, body: dict[str, Any]) -> VendorRequest:
    schema_format = body.get("response_format") or {}
    schema = (schema_format.get("json_schema") or {}).get("schema") or schema_format.get("schema")
    system, turns = _split(body["messages"])
    # A plain compatible server knows the old name of the cap only.
    cap = body.get("max_tokens")
    if vendor != "compatible":
        cap = body.get("max_completion_tokens", cap)
    usage = (body.get("stream_options") or {}).get("include_usage", False)
    return VendorRequest(
        vendor, "chat", body["model"], system, turns, schema, schema_format.get("type") in
        ("json_schema", "json_object"), cap, bool(body.get("stream")),
        usage or vendor == "openrouter", body,
    )  # fmt: skip


def _read_responses(vendor: str, body: dict[str, Any]) -> VendorRequest:
    schema_format = (body.get("text") or {}).get("format") or {}
    messages = body["input"]
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    system, turns = _split(messages)
    system = "\n".join(filter(None, [body.get("instructions") or "", system]))
    return VendorRequest(
        vendor, "responses", body["model"], system, turns, schema_format.get("schema"),
        schema_format.get("type") in ("json_schema", "json_object"), body.get("max_output_tokens"),
        bool(body.get("stream")), True, body,
    )  # fmt: skip


def _read_messages(vendor: str, body: dict[str, Any]) -> VendorRequest:
    schema_format = (body.get("output_config") or {}).get("format") or {}
    schema = schema_format.get("schema")
    if body.get("tool_choice"):
        schema = body["tools"][0]["input_schema"]
    turns = [(m["role"], _text(m["content"])) for m in body["messages"]]
    return VendorRequest(
        vendor, "messages", body["model"], _text(body.get("system")), turns, schema,
        schema is not None, body["max_tokens"], bool(body.get("stream")), True, body,
    )  # fmt: skip


def _read_gemini(vendor: str, path: str, body: dict[str, Any]) -> VendorRequest:
    model, _, method = path.rpartition("/models/")[2].partition(":")
    config = body.get("generationConfig") or {}
    turns = [
        ("assistant" if c.get("role") == "model" else "user", _text(c["parts"]))
        for c in body["contents"]
    ]
    return VendorRequest(
        vendor, "gemini", model, _text((body.get("systemInstruction") or {}).get("parts")), turns,
        config.get("responseJsonSchema") or config.get("responseSchema"),
        config.get("responseMimeType") == "application/json", config.get("maxOutputTokens"),
        method.startswith("stream"), True, body,
    )  # fmt: skip


# --- answers ---------------------------------------------------------------------------------


def usage(request: VendorRequest, reply: VendorReply) -> Any:
    """The usage object, in the vendor's own convention."""
    if reply.usage is not None or reply.tokens is None:
        return reply.usage
    t = {"input": 0, "output": 0, "cached": 0, "reasoning": 0} | reply.tokens
    if request.api == "chat":
        counts: dict[str, Any] = {
            "prompt_tokens": t["input"],
            "completion_tokens": t["output"],
            "total_tokens": t["input"] + t["output"],
            "prompt_tokens_details": {"cached_tokens": t["cached"]},
            "completion_tokens_details": {"reasoning_tokens": t["reasoning"]},
        }
        if request.vendor == "openrouter" and reply.cost is not None:
            counts |= {"cost": reply.cost, "is_byok": False}
        return counts
    if request.api == "responses":
        return {
            "input_tokens": t["input"],
            "input_tokens_details": {"cached_tokens": t["cached"]},
            "output_tokens": t["output"],
            "output_tokens_details": {"reasoning_tokens": t["reasoning"]},
            "total_tokens": t["input"] + t["output"],
        }
    if request.api == "messages":
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


def body(request: VendorRequest, reply: VendorReply) -> dict[str, Any]:
    """The whole answer as one JSON object."""
    match request.api:
        case "chat":
            return _chat(request, reply)
        case "responses":
            return _responses(request, reply)
        case "messages":
            return _messages(request, reply)
        case _:
            return _gemini(request, reply)


def _chat(request: VendorRequest, reply: VendorReply) -> dict[str, Any]:
    is_refusal = reply.finish == "refusal"
    message = {
        "role": "assistant",
        "content": None if is_refusal or not reply.text else reply.text,
        "refusal": reply.text if is_refusal else None,
    }
    if reply.reasoning:
        message["reasoning"] = reply.reasoning
    choice: dict[str, Any] = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": STOPS["chat"][reply.finish],
    }
    full_body: dict[str, Any] = {
        "id": "chatcmpl-wire",
        "object": "chat.completion",
        "created": 1_795_000_000,
        "model": reply.model,
        "choices": [choice],
    }
    if (counts := usage(request, reply)) is not None:
        full_body["usage"] = counts
    if request.vendor == "openrouter":
        full_body["provider"] = reply.upstream
        choice["native_finish_reason"] = choice["finish_reason"]
    return full_body


def _responses(request: VendorRequest, reply: VendorReply) -> dict[str, Any]:
    kind = "refusal" if reply.finish == "refusal" else "output_text"
    part = (
        {"type": "refusal", "refusal": reply.text}
        if kind == "refusal"
        else {"type": "output_text", "text": reply.text, "annotations": []}
    )
    output: list[dict[str, Any]] = []
    if reply.reasoning:
        output.append({"type": "reasoning", "id": "rs_wire", "summary": []})
    if reply.text:
        output.append(
            {
                "type": "message",
                "id": "msg_wire",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    reason = {"length": "max_output_tokens", "blocked": "content_filter"}.get(reply.finish)
    return {
        "id": "resp_wire",
        "object": "response",
        "created_at": 1_795_000_000,
        "status": "incomplete" if reason else "completed",
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "model": reply.model,
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage(request, reply),
    }


def _messages(request: VendorRequest, reply: VendorReply) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if reply.reasoning:
        content.append({"type": "thinking", "thinking": reply.reasoning, "signature": "wire"})
    if reply.text and request.body.get("tool_choice"):
        name = request.body["tool_choice"]["name"]
        content.append(
            {"type": "tool_use", "id": "toolu_wire", "name": name, "input": json.loads(reply.text)}
        )
    elif reply.text:
        content.append({"type": "text", "text": reply.text})
    return {
        "id": "msg_wire",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": content,
        "stop_reason": STOPS["messages"][reply.finish],
        "stop_sequence": None,
        "usage": usage(request, reply),
    }


def _gemini(request: VendorRequest, reply: VendorReply) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if reply.reasoning:
        parts.append({"text": reply.reasoning, "thought": True})
    if reply.text:
        parts.append({"text": reply.text})
    candidate: dict[str, Any] = {"finishReason": STOPS["gemini"][reply.finish], "index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    full_body: dict[str, Any] = {
        "candidates": [candidate],
        "modelVersion": reply.model,
        "responseId": "wire",
    }
    if (counts := usage(request, reply)) is not None:
        full_body["usageMetadata"] = counts
    return full_body


def events(request: VendorRequest, reply: VendorReply) -> list[bytes]:
    """The whole answer as server-sent events, the text in several pieces."""
    match request.api:
        case "chat":
            return _chat_events(request, reply)
        case "responses":
            return _responses_events(request, reply)
        case "messages":
            return _messages_events(request, reply)
        case _:
            return _gemini_events(request, reply)


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _pieces(text: str) -> list[str]:
    size = max(1, len(text) // 3)
    return [text[i : i + size] for i in range(0, len(text), size)]


def _chat_events(request: VendorRequest, reply: VendorReply) -> list[bytes]:
    full_body = _chat(request, reply)
    base = {k: full_body[k] for k in ("id", "created", "model")} | {
        "object": "chat.completion.chunk"
    }
    if "provider" in full_body:
        base["provider"] = full_body["provider"]

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event({**base, "choices": [choice]})

    key = "refusal" if reply.finish == "refusal" else "content"
    out = [b": OPENROUTER PROCESSING\n\n"] if request.vendor == "openrouter" else []
    out.append(chunk({"role": "assistant", "content": ""}))
    out += [chunk({key: piece}) for piece in _pieces(reply.text)]
    out.append(chunk({}, full_body["choices"][0]["finish_reason"]))
    if request.stream_usage and "usage" in full_body:
        out.append(event({**base, "choices": [], "usage": full_body["usage"]}))
    out.append(b"data: [DONE]\n\n")
    return out


def _responses_events(request: VendorRequest, reply: VendorReply) -> list[bytes]:
    full_body = _responses(request, reply)
    first_body = full_body | {"status": "in_progress", "output": [], "usage": None}
    out: list[dict[str, Any]] = [{"type": "response.created", "response": first_body}]
    where = {"item_id": "msg_wire", "output_index": 0, "content_index": 0}
    kind = "refusal" if reply.finish == "refusal" else "output_text"
    out += [
        {"type": f"response.{kind}.delta", "delta": piece, "logprobs": [], **where}
        for piece in _pieces(reply.text)
    ]
    out.append({"type": f"response.{full_body['status']}", "response": full_body})
    return [event(e | {"sequence_number": i}, e["type"]) for i, e in enumerate(out)]


def _messages_events(request: VendorRequest, reply: VendorReply) -> list[bytes]:
    full_body = _messages(request, reply)
    counts = full_body["usage"] or {}
    first = counts | {"output_tokens": 1} if "output_tokens" in counts else counts
    first_body = full_body | {"content": [], "stop_reason": None, "usage": first}
    out: list[dict[str, Any]] = [{"type": "message_start", "message": first_body}]
    for index, block in enumerate(full_body["content"]):
        if block["type"] == "tool_use":
            start, field_, text = block | {"input": {}}, "partial_json", reply.text
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
    delta = {"stop_reason": full_body["stop_reason"], "stop_sequence": None}
    out.append({"type": "message_delta", "delta": delta, "usage": counts})
    out.append({"type": "message_stop"})
    return [event(e, e["type"]) for e in out]


def _gemini_events(request: VendorRequest, reply: VendorReply) -> list[bytes]:
    full_body = _gemini(request, reply)
    base = {k: full_body[k] for k in ("modelVersion", "responseId")}
    out = [
        {
            **base,
            "candidates": [{"content": {"role": "model", "parts": [{"text": piece}]}, "index": 0}],
        }
        for piece in _pieces(reply.text)
    ]
    last: dict[str, Any] = {"finishReason": full_body["candidates"][0]["finishReason"], "index": 0}
    out.append({**base, "candidates": [last]})
    if "usageMetadata" in full_body:
        out[-1]["usageMetadata"] = full_body["usageMetadata"]
    return [event(e) for e in out]


# --- errors ----------------------------------------------------------------------------------


def error(
    request: VendorRequest,
    status: int,
    message: str,
    *,
    code: str | None = None,
    kind: str | None = None,
    param: str | None = None,
    details: Any = None,
) -> dict[str, Any]:
    """An error body in the vendor's own shape."""
    match request.vendor:
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
