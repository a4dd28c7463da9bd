"""The class of a failure and what to do about it, from a provider's answer. Pure functions.

Vendors report the same failure by status, by code, or by a word in the text, and some under status
200. So every error answer goes through :func:`from_answer`, whichever exception or body it came in.
"""

from __future__ import annotations

import json
import re
import ssl
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from clash.providers.payload import part, parts
from clash.providers.retry import MAX_HINT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from clash.errors import Action, ErrorClass

MESSAGE_SIZE = 2000
STATUS_OF_CODE: Mapping[str, int] = {
    # Anthropic's types
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
    # Google's statuses
    "invalid_argument": 400,
    "failed_precondition": 400,
    "unauthenticated": 401,
    "permission_denied": 403,
    "not_found": 404,
    "resource_exhausted": 429,
    "internal": 500,
    "unavailable": 503,
    "deadline_exceeded": 504,
    # OpenAI's codes
    "rate_limit_exceeded": 429,
    "slow_down": 503,
    "server_error": 500,
}
"""The HTTP status that a code under status 200, or in a stream, stands for."""
_ERROR_STATUS = re.compile(r"[345][0-9]{2}")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt has no usable answer; the fields are those of ``ProviderError``."""

    error_class: ErrorClass
    action: Action
    message: str
    status: int | None = None
    retry_after: float | None = None
    maybe_billed: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """An error body, whatever its shape.

    Attributes:
        codes: every code, type, status and reason in it, in lower case.
        param: the parameter that it blames, where it names one.
        reasons: OpenRouter's reasons of moderation.
    """

    message: str
    codes: frozenset[str] = frozenset()
    param: str = ""
    hint_s: float | None = None
    reasons: tuple[str, ...] = ()


def read_report(body: Any) -> Report:  # noqa: ANN401 - whatever the wire said
    """Read an error body: OpenAI's, Anthropic's, Google's, OpenRouter's, FastAPI's, or a text."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    if not isinstance(body, dict):
        return Report(_readable(str(body or "")))
    error = body.get("error")
    inner = error if isinstance(error, dict) else body
    details = inner.get("details")
    rows = [row for row in details if isinstance(row, dict)] if isinstance(details, list) else []
    metadata = inner.get("metadata")
    reasons = part(metadata, "reasons") or ()
    return Report(
        message=_message(body, inner, metadata),
        codes=frozenset(_codes(inner, details, rows)),
        param=str(inner.get("param") or ""),
        hint_s=_retry_info(rows),
        reasons=tuple(map(str, reasons)) if isinstance(reasons, list | tuple) else (),
    )


def _readable(text: str) -> str:
    """``text``; of an HTML page only the words."""
    if text.lstrip().startswith("<"):
        text = " ".join(re.sub(r"<[^<>]*>", " ", text).split())
    return text[:MESSAGE_SIZE].strip()


def _message(body: Mapping[str, Any], inner: Mapping[str, Any], metadata: object) -> str:
    text = inner.get("message") or body.get("detail") or body.get("error") or ""
    if not isinstance(text, str):
        text = json.dumps(text, ensure_ascii=False)
    # OpenRouter's own message says only that the upstream failed; the cause is underneath.
    raw = part(metadata, "raw")
    if isinstance(raw, str) and raw not in text:
        text = f"{text}: {raw}"
    return text[:MESSAGE_SIZE].strip()


def _codes(inner: Mapping[str, Any], details: object, rows: list[dict[str, Any]]) -> Iterator[str]:
    codes = [inner.get(key) for key in ("code", "type", "status")]
    codes.append(part(details, "error_code"))
    codes += [row.get("reason") for row in rows]
    for row in rows:
        codes += [violation.get("quotaId") for violation in parts(row, "violations")]
    for code in codes:
        if isinstance(code, str | int) and not isinstance(code, bool):
            yield str(code).lower()


def _retry_info(rows: list[dict[str, Any]]) -> float | None:
    for row in rows:
        delay = row.get("retryDelay")
        if isinstance(delay, str) and re.fullmatch(r"\d{1,9}(?:\.\d{1,9})?s", delay):
            return float(delay[:-1])
    return None


# -- the table ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    """A failure and how to recognize it: a status, a code, or words. The first rule that fits wins.

    Attributes:
        within: the statuses under which codes and words count: a 429 mentions tokens without
            meaning that the prompt is too long.
    """

    error_class: ErrorClass
    action: Action
    statuses: frozenset[int] = frozenset()
    codes: re.Pattern[str] | None = None
    words: re.Pattern[str] | None = None
    within: frozenset[int] = frozenset({200, 400, 401, 403, 404, 413, 422, 500})
    maybe_billed: bool = False

    def fits(self, status: int, report: Report) -> bool:
        if status in self.statuses:
            return True
        if status not in self.within:
            return False
        if self.codes is not None and any(self.codes.search(code) for code in report.codes):
            return True
        return self.words is not None and bool(self.words.search(report.message))


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_RULES = (
    _Rule(
        "quota",
        "stop",
        codes=_words(
            r"insufficient_quota|credit_balance|spend_limit|usage_limit_exceeded|perday"
            r"|organization_on_hold|billing_unavailable|insufficient_credits"
        ),
        words=_words(
            r"credit balance is too low|free-models-per-day|insufficient credits"
            r"|exceeded your current quota, please check your plan"
        ),
        within=frozenset({200, 400, 402, 403, 429}),
    ),
    _Rule("quota", "stop", statuses=frozenset({402})),
    _Rule(
        "auth",
        "stop",
        statuses=frozenset({401}),
        # A gateway says so under 400 as well: LiteLLM, and whoever passes Google's error on.
        codes=_words(
            r"invalid_api_key|api_key_invalid|api_key_expired|authentication_error|auth_error"
            r"|token_not_found|expired_key|unauthenticated"
        ),
        words=_words(
            r"(?:incorrect|invalid|missing|malformed|expired|unknown|revoked|wrong) (?:x-)?api[ -]key"
            r"|api[ -]key (?:is )?(?:not valid|invalid|not found|expired|missing|revoked|disabled)"
            r"|no (?:x-)?api[ -]key|invalid (?:proxy server|bearer|virtual|access) (?:token|key)"
            r"|authentication ?error|authentication failed|invalid authentication"
        ),
    ),
    _Rule(
        "too_long",
        "fail",
        statuses=frozenset({413}),
        codes=_words(r"context_length_exceeded|request_too_large|string_above_max_length"),
        words=_words(
            r"prompt is too long|maximum (?:context|model) length|context (?:length|window|size)"
            r"|exceed_context_size|input token count|too many tokens|input is too long"
            r"|exceeds the (?:maximum number of tokens|model's maximum)"
        ),
    ),
    _Rule(
        "blocked",
        "fail",
        codes=_words(r"content_policy|content_filter|policy_violation|invalid_prompt|bio_policy"),
        words=_words(r"flagged (?:as|by)|content management policy|usage polic(?:y|ies)"),
    ),
    _Rule(
        "permission",
        "stop",
        codes=_words(r"unsupported_country"),
        words=_words(r"location is not supported|country, region, or territory not supported"),
    ),
    _Rule(
        "not_found",
        "stop",
        codes=_words(r"model_not_found|model_deprecated|model_retired"),
        words=_words(
            r"not a valid model|no such model|unknown model|invalid model name"
            r"|model\b.{0,100}\b(?:does not exist|not found|is not available|has been retired)"
        ),
    ),
    _Rule("permission", "stop", statuses=frozenset({403})),
    _Rule("not_found", "stop", statuses=frozenset({301, 302, 303, 307, 308, 404, 405, 410})),
    _Rule("proxy", "stop", statuses=frozenset({407})),
    _Rule("rate_limit", "retry", statuses=frozenset({429})),
    _Rule("timeout", "retry", statuses=frozenset({408, 504, 524}), maybe_billed=True),
    _Rule("overloaded", "retry", statuses=frozenset({503, 529})),
    _Rule("server", "retry", statuses=frozenset({409, 425, 499, *range(500, 600)})),
)


def from_answer(
    status: int,
    headers: Mapping[str, str],
    body: Any,  # noqa: ANN401 - whatever the wire said
) -> Failure:
    """Classify an answer with an error in it.

    Args:
        status: the HTTP status; under 200 the code in the body decides.
        headers: the HTTP headers, names in lower case.
        body: the body, parsed where it is JSON.
    """
    report = read_report(body)
    effective = _effective_status(status, report)
    maybe_billed = status == 200  # an answer had been begun
    if report.reasons:
        text = f"{report.message} ({', '.join(report.reasons)})"
        return Failure("blocked", "fail", text, status, maybe_billed=maybe_billed)
    wait = hint(headers)
    wait = report.hint_s if wait is None else wait
    rule = next((rule for rule in _RULES if rule.fits(effective, report)), None)
    if rule is None:
        failure = Failure("bad_request", "fail", report.message, status)
        if effective < 400:
            # An error without a code, under 200: as good as a 500.
            failure = replace(failure, error_class="server", action="retry")
    else:
        failure = Failure(rule.error_class, rule.action, report.message, status)
    if effective == 402 and wait is not None:
        # OpenRouter: the credits are only reserved by calls in flight.
        failure = replace(failure, error_class="rate_limit", action="retry")
    if failure.action == "retry":
        failure = _with_hint(failure, wait)
    failure = _obey(failure, headers.get("x-should-retry", ""))
    text = failure.message
    if 300 <= status < 400:
        text = f"the server redirects to {headers.get('location')}, which is not followed; base_url is the final address"
    return replace(
        failure,
        message=text or f"HTTP status {status} and no message",
        maybe_billed=maybe_billed or (rule is not None and rule.maybe_billed),
    )


def _effective_status(status: int, report: Report) -> int:
    """The status that counts: the body's own, where HTTP says 200."""
    if status != 200:
        return status
    for code in report.codes:
        if _ERROR_STATUS.fullmatch(code):
            return int(code)
    return next(
        (STATUS_OF_CODE[code] for code in sorted(report.codes) if code in STATUS_OF_CODE), 200
    )


def _with_hint(failure: Failure, wait: float | None) -> Failure:
    if wait is None:
        return failure
    if wait > MAX_HINT_S:
        text = f"{failure.message} (asks to wait {wait:.0f} s, more than {MAX_HINT_S:.0f})"
        return replace(failure, action="stop", message=text.strip())
    return replace(failure, retry_after=wait)


def _obey(failure: Failure, should_retry: str) -> Failure:
    """Follow ``x-should-retry``, where the server sends it."""
    if should_retry == "false" and failure.action == "retry":
        return replace(failure, action="fail", retry_after=None)
    if should_retry == "true" and failure.error_class == "bad_request":
        return replace(failure, error_class="server", action="retry")
    return failure


def hint(
    headers: Mapping[str, str], *, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> float | None:
    """Seconds that the headers ask us to wait; null where there is no readable value.

    Seen in the wild: ``retry-after-ms``, seconds, fractions, HTTP dates, negatives and junk.
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):  # the latter from a time zone of twenty digits
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max(0.0, (when - now()).total_seconds())


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    # A NaN fails the comparison, as it should.
    return value if 0 <= value < float("inf") else None


# -- the connection -----------------------------------------------------------------------------------


def causes(error: BaseException) -> Iterator[BaseException]:
    """``error`` and what it was raised from, outermost first."""
    ids: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in ids:
        ids.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def meaning(
    error: BaseException, meanings: Mapping[str, tuple[ErrorClass, bool]]
) -> tuple[ErrorClass, bool]:
    """The class of an HTTP client's exception and whether it may be billed, by its nearest base."""
    names = (cls.__name__ for cls in type(error).__mro__)
    return next((meanings[name] for name in names if name in meanings), ("connection", True))


def from_line(
    error: BaseException,
    error_class: ErrorClass,
    *,
    maybe_billed: bool,
    local: bool = False,
    address: str = "",
) -> Failure:
    """Classify an exchange without any answer.

    Args:
        error: what the HTTP client raised.
        error_class: what kind of client's error it is.
        maybe_billed: the request may have arrived, so the vendor may have charged for it.
        local: the server is this machine.
        address: host and port, for the message.
    """
    chain = list(causes(error))
    words = next((str(e) for e in reversed(chain) if str(e)), type(error).__name__)
    tls = next((e for e in chain if isinstance(e, ssl.SSLError | ssl.CertificateError)), None)
    if tls is not None or "CERTIFICATE_VERIFY_FAILED" in words:
        text = f"no trusted TLS connection to {address}: {tls or words}"
        return Failure("tls", "stop", f"{text} (a private CA: set SSL_CERT_FILE to its file)")
    if any(isinstance(e, ConnectionRefusedError) for e in chain):
        if local:
            return Failure(
                "connection", "stop", f"no server is running at {address}: is it running?"
            )
        return Failure("connection", "retry", f"{address} refuses connections")
    action: Action = "stop" if error_class == "proxy" else "retry"
    return Failure(error_class, action, f"{words} ({address})", maybe_billed=maybe_billed)
