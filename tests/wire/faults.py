"""Every way in which a provider's wire has been seen to fail, as data.

A :class:`Fault` plays itself on a connection. Give one to ``server.misbehave``. What it says is in
the words of the vendor that was asked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

from wire import vendors
from wire.vendors import VendorReply, VendorRequest

if TYPE_CHECKING:
    from wire.server import Line

Play = Callable[["Line", VendorRequest, VendorReply], Awaitable[None]]


@dataclass(frozen=True)
class Fault:
    """One misbehaviour.

    Attributes:
        name: what the journal calls it.
        play: writes to the line instead of the plain answer.
        billed: a provider would bill for it (an answer was made, even where it was lost).
    """

    name: str
    play: Play
    billed: bool = False


# --- refused with a status --------------------------------------------------------------------


def status(
    number: int,
    message: str = "it did not work",
    *,
    name: str | None = None,
    headers: dict[str, str] | None = None,
    **error: Any,
) -> Fault:
    """Any status, with the vendor's error body around ``message``."""

    async def play(line: Line, request: VendorRequest, _: VendorReply) -> None:
        await line.json(number, vendors.error(request, number, message, **error), headers)

    return Fault(name or f"status_{number}", play)


def rate_limit(retry_after: str | None = None, *, header: str = "retry-after") -> Fault:
    """429; ``retry_after`` as it stands in the header: seconds, a date, junk."""
    headers = {} if retry_after is None else {header: retry_after}
    return status(
        429,
        "Rate limit reached for requests",
        name="rate_limit",
        headers=headers,
        code="rate_limit_exceeded",
    )


def rate_limit_date(seconds: float) -> Fault:
    """429 with Retry-After as an HTTP date, ``seconds`` from now."""
    when = datetime.now(UTC) + timedelta(seconds=seconds)
    return rate_limit(format_datetime(when, usegmt=True))


def retry_info(delay: str = "2s") -> Fault:
    """Google's 429, whose hint is in the body."""
    hint = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}
    return status(429, "Resource has been exhausted", name="retry_info", details=[hint])


def quota() -> Fault:
    """429 that no waiting mends, in each vendor's words."""

    async def play(line: Line, request: VendorRequest, _: VendorReply) -> None:
        match request.vendor:
            case "anthropic":
                body = vendors.error(
                    request, 429, "You reached your limit.", code="organization_spend_limit_reached"
                )
            case "google":
                violation = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}
                failure = "type.googleapis.com/google.rpc.QuotaFailure"
                hint = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "27s"}
                body = vendors.error(
                    request,
                    429,
                    "You exceeded your current quota.",
                    details=[{"@type": failure, "violations": [violation]}, hint],
                )
            case "openrouter":
                body = vendors.error(request, 429, "Rate limit exceeded: free-models-per-day.")
            case _:
                body = vendors.error(
                    request,
                    429,
                    "You exceeded your current quota, please check your plan and billing details.",
                    code="insufficient_quota",
                    kind="insufficient_quota",
                )
        await line.json(429, body)

    return Fault("quota", play)


def payment_required() -> Fault:
    """402."""
    return status(402, "Insufficient credits", name="payment_required")


def credit_too_low() -> Fault:
    """Anthropic's 400 for an empty account."""
    return status(
        400,
        "Your credit balance is too low to access the Anthropic API.",
        name="credit_too_low",
    )


def overloaded() -> Fault:
    """529 of Anthropic, 503 of the others."""

    async def play(line: Line, request: VendorRequest, _: VendorReply) -> None:
        code = 529 if request.vendor == "anthropic" else 503
        await line.json(code, vendors.error(request, code, "Overloaded", code="slow_down"))

    return Fault("overloaded", play)


def server_error(code: int = 500) -> Fault:
    """A server's own error, in JSON."""
    return status(code, "The server had an error", name="server_error", kind="server_error")


def bad_gateway() -> Fault:
    """502 with a page of HTML."""
    return raw(502, "<html><h1>502 Bad Gateway</h1></html>", "text/html", name="bad_gateway")


def should_not_retry(code: int = 500) -> Fault:
    """An error that says itself that asking again is of no use."""
    return status(code, "Broken", name="should_not_retry", headers={"x-should-retry": "false"})


def unauthorized() -> Fault:
    """401; the message repeats a part of the key, as OpenAI's does."""

    async def play(line: Line, request: VendorRequest, _: VendorReply) -> None:
        await line.json(
            401, vendors.error(request, 401, wrong_key(line.key), code="invalid_api_key")
        )

    return Fault("unauthorized", play)


def wrong_key(key: str) -> str:
    """A message about a wrong key, with the key in it."""
    return f"Incorrect API key provided: {key}. You can find your key in your account."


def key_invalid() -> Fault:
    """Google's 400 for a wrong key."""
    details = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    return status(400, "API key not valid.", name="key_invalid", details=[details])


def forbidden() -> Fault:
    """403."""
    return status(403, "Your organization may not use this model", name="forbidden")


def moderation() -> Fault:
    """OpenRouter's 403 for an input that its moderation flags."""
    return status(
        403,
        "Your input was flagged",
        name="moderation",
        details={"reasons": ["violence"], "flagged_input": "…"},
    )


def region() -> Fault:
    """Google's 400 outside of its regions."""
    return status(
        400,
        "User location is not supported for the API use.",
        name="region",
        kind="FAILED_PRECONDITION",
    )


def not_found() -> Fault:
    """404: there is no such model."""
    return status(
        404,
        "The model does not exist or you do not have access to it.",
        name="not_found",
        code="model_not_found",
    )


def no_endpoint() -> Fault:
    """OpenRouter's 404 where no upstream takes every parameter."""
    return status(
        404,
        "No endpoints found that can handle the requested parameters.",
        name="no_endpoint",
    )


def unsupported(param: str, code: int = 400, message: str | None = None) -> Fault:
    """A parameter is refused by name."""
    text = message or f"Unsupported parameter: '{param}' is not supported with this model."
    return status(
        code, text, name=f"unsupported_{param}", param=param, code="unsupported_parameter"
    )


def too_long() -> Fault:
    """The prompt does not fit, in each vendor's words."""

    async def play(line: Line, request: VendorRequest, _: VendorReply) -> None:
        text = {
            "anthropic": "prompt is too long: 215000 tokens > 200000 maximum",
            "google": "The input token count (1200000) exceeds the maximum number of tokens"
            " allowed (1048576).",
        }.get(
            request.vendor,
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"
            " (8000 in the messages, 1000 in max_tokens).",
        )
        await line.json(
            400, vendors.error(request, 400, text, code="context_length_exceeded", param="messages")
        )

    return Fault("too_long", play)


def redirect(to: str = "https://elsewhere.invalid/v1") -> Fault:
    """307 to another host, where a key must not follow."""

    async def play(line: Line, _: VendorRequest, __: VendorReply) -> None:
        await line.send(307, b"", "text/plain", {"location": to})

    return Fault("redirect", play)


# --- answered with something else ---------------------------------------------------------------


def raw(code: int, body: str, kind: str = "application/json", *, name: str | None = None) -> Fault:
    """Any bytes under any status."""

    async def play(line: Line, _: VendorRequest, __: VendorReply) -> None:
        await line.send(code, body.encode("utf-8", "surrogatepass"), kind)

    return Fault(name or f"raw_{code}", play)


def html_200() -> Fault:
    """A proxy's log-in page under 200."""
    return raw(200, "<html><body>Please log in</body></html>", "text/html", name="html_200")


def not_json() -> Fault:
    """Junk that calls itself JSON."""
    return raw(200, "{'almost': json", name="not_json")


def empty_200() -> Fault:
    """200 with no body."""
    return raw(200, "", name="empty_200")


def no_content() -> Fault:
    """204."""
    return raw(204, "", name="no_content")


def error_in_200(code: int = 502, message: str = "Provider returned error") -> Fault:
    """OpenRouter's error under 200."""

    async def play(line: Line, request: VendorRequest, _: VendorReply) -> None:
        await line.json(200, vendors.error(request, code, message))

    return Fault("error_in_200", play, billed=True)


def error_finish(code: int = 502) -> Fault:
    """OpenRouter's ``finish_reason: error`` with the error beside it."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        full_body = vendors.body(request, reply)
        full_body["choices"][0] |= {
            "finish_reason": "error",
            "error": {"code": code, "message": "Upstream died"},
        }
        await line.json(200, full_body)

    return Fault("error_finish", play, billed=True)


def failed_response(code: str = "server_error") -> Fault:
    """The Responses API's ``status: failed`` under 200."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        full_body = vendors.body(request, reply) | {
            "status": "failed",
            "output": [],
            "error": {"code": code, "message": "The model failed"},
        }
        await line.json(200, full_body)

    return Fault("failed_response", play, billed=True)


# --- the line itself ------------------------------------------------------------------------------


def reset_before_headers() -> Fault:
    """The connection is reset before anything is said."""

    async def play(line: Line, _: VendorRequest, __: VendorReply) -> None:
        line.reset()

    return Fault("reset_before_headers", play, billed=True)


def reset_mid_body() -> Fault:
    """The connection is reset in the middle of the answer."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        body = json.dumps(vendors.body(request, reply)).encode()
        line.head(200, "application/json", length=len(body))
        line.write(body[: len(body) // 2])
        await asyncio.sleep(0.02)
        line.reset()

    return Fault("reset_mid_body", play, billed=True)


def reset_mid_stream() -> Fault:
    """The connection is reset in the middle of the stream."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        events = vendors.events(request, reply)
        line.head(200, "text/event-stream")
        for event in events[: len(events) // 2]:
            line.chunk(event)
        await asyncio.sleep(0.02)
        line.reset()

    return Fault("reset_mid_stream", play, billed=True)


def clean_cut() -> Fault:
    """The stream ends properly, but before its last events."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        # Gemini puts its finish into the last event, the others before it.
        rows_kept = -1 if request.api == "gemini" else -3
        await line.events(vendors.events(request, reply)[:rows_kept])

    return Fault("clean_cut", play, billed=True)


def error_in_stream(code: int = 502) -> Fault:
    """An error event in the middle of the stream, under 200."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        events = vendors.events(request, reply)
        kind = "overloaded_error" if request.vendor == "anthropic" else None
        body = vendors.error(request, code, "Overloaded", kind=kind, code=str(code))
        name = "error" if request.api in ("messages", "responses") else None
        if request.api == "responses":
            body = {"type": "error", "code": "server_error", "message": "Overloaded", "param": None}
        await line.events([*events[:2], vendors.event(body, name)])

    return Fault("error_in_stream", play, billed=True)


def hang(seconds: float = 30.0) -> Fault:
    """Nothing is said for a long time."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        await asyncio.sleep(seconds)
        await line.answer(request, reply)

    return Fault("hang", play, billed=True)


def slow_loris(delay: float = 0.05) -> Fault:
    """One byte at a time, so that no timeout on reading is ever reached."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        body = json.dumps(vendors.body(request, reply)).encode()
        line.head(200, "application/json", length=len(body))
        for byte in body:
            line.write(bytes([byte]))
            await asyncio.sleep(delay)

    return Fault("slow_loris", play, billed=True)


# --- answers that are worth less than they look -----------------------------------------------------


def altered(name: str, change: Callable[[VendorReply], VendorReply]) -> Fault:
    """The plain answer, changed."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        await line.answer(request, change(reply))

    return Fault(name, play, billed=True)


def slow(seconds: float) -> Fault:
    """The plain answer, late."""

    async def play(line: Line, request: VendorRequest, reply: VendorReply) -> None:
        await asyncio.sleep(seconds)
        await line.answer(request, reply)

    return Fault("slow", play, billed=True)


def text(reply: str) -> Fault:
    """Another text than the answering function's."""
    return altered("text", lambda plain: replace(plain, text=reply))


def truncated() -> Fault:
    """Cut off at the cap."""
    return altered(
        "truncated",
        lambda reply: replace(reply, text=reply.text[: len(reply.text) // 2], finish="length"),
    )


def reasoning_only() -> Fault:
    """The cap was used up by thinking."""
    tokens = {"input": 10, "output": 100, "reasoning": 100}
    return altered(
        "reasoning_only",
        lambda reply: replace(reply, text="", finish="length", reasoning="hm", tokens=tokens),
    )


def refusal(words: str = "I cannot help with that.") -> Fault:
    """The model declines, each vendor in its form."""
    return altered("refusal", lambda reply: replace(reply, text=words, finish="refusal"))


def safety() -> Fault:
    """The vendor's filter swallows the answer."""
    return altered("safety", lambda reply: replace(reply, text="", finish="blocked"))


def prompt_blocked() -> Fault:
    """Gemini's block of the prompt: no candidate at all."""
    body = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 10, "totalTokenCount": 10},
        "modelVersion": "gemini-wire",
    }
    return raw(200, json.dumps(body), name="prompt_blocked")


def empty() -> Fault:
    """A proper answer with no text."""
    return altered("empty", lambda reply: replace(reply, text=""))


def huge(size: int = 12_000_000) -> Fault:
    """An answer of many megabytes."""
    return altered("huge", lambda reply: replace(reply, text="x" * size))


def no_usage() -> Fault:
    """No counts of tokens."""
    return altered("no_usage", lambda reply: replace(reply, tokens=None))


def usage(counts: Any) -> Fault:
    """Counts as they stand, NaN and negative ones included."""
    return altered("usage", lambda reply: replace(reply, usage=counts))


def swapped(model: str) -> Fault:
    """Another model answers than was asked."""
    return altered("swapped", lambda reply: replace(reply, model=model))
