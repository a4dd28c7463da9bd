"""One attempt, the same for every vendor: translate, send, read, and classify failures."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import anyio

from clash.errors import ProviderError
from clash.providers.base import Reply
from clash.providers.failures import Failure, Report, from_answer, read_report
from clash.providers.ladder import Ladder
from clash.providers.payload import EventSplitter, NotPayload, TooMuch, clean, decode, preview

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Mapping

    from clash.config import Limits, ModelRef
    from clash.providers.accounts import Account
    from clash.providers.base import Request
    from clash.providers.dialects.protocol import Answer, Dialect, Stream
    from clash.providers.ladder import WireRequest
    from clash.secrets.redaction import Redactor

MAX_TEXT = 20_000
"""Characters kept of an answer that cannot be read, as evidence."""
MAX_EVIDENCE = 1_000_000


@dataclass
class Exchange:
    """The bytes of one attempt, filled in as it proceeds.

    Attributes:
        url: where the request went.
        headers: the request's own headers, without those that every request has.
        body: the request's body: as the dialect wrote it, then as it was sent.
        status: of the answer, null while there is none.
        answer_headers: names in lower case.
        data: the answer's body, as bytes, or put together from a stream.
        began: when sending began, of ``time.perf_counter``.
        first_token: when the first text came, by the same clock.
        keep_plain_body: an SDK that hands out no raw response of a stream reads the answer itself,
            so a body that is no stream must be kept before (Google's).
    """

    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    status: int | None = None
    answer_headers: Mapping[str, str] = field(default_factory=dict)
    data: bytes | dict[str, Any] | None = None
    began: float = field(default_factory=time.perf_counter)
    first_token: float | None = None
    keep_plain_body: bool = False

    @property
    def seconds(self) -> float:
        """Seconds since sending began."""
        return time.perf_counter() - self.began

    @property
    def event_stream(self) -> bool:
        """Whether the answer comes as server-sent events."""
        return "text/event-stream" in self.answer_headers.get("content-type", "")

    @property
    def request_id(self) -> str | None:
        """The provider's own id of the call."""
        for name in ("x-request-id", "request-id", "x-goog-request-id", "cf-ray"):
            if name in self.answer_headers:
                return self.answer_headers[name]
        return None

    def feed(self, stream: Stream, event: Mapping[str, Any]) -> None:
        """Pass an event on, and note when the first text came."""
        if stream.feed(event) and self.first_token is None:
            self.first_token = time.perf_counter()


class Broken(Exception):
    """There is no answer, and ``failure`` says why. Raised by senders; never leaves a provider."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class CutOff(Exception):
    """A stream was closed properly before the answer was complete."""


class NetworkProvider(ABC):
    """A model at an account. Each vendor's module adds how to send.

    Attributes:
        account: what rate limits are shared by.
    """

    offline = False

    def __init__(self, ref: ModelRef, account: Account, limits: Limits) -> None:
        self.account = account.name
        self._ref = ref
        self._account = account
        self._limits = limits
        self._ladder = Ladder()
        self._redactor = account.redactor

    @abstractmethod
    def _dialect(self, request: Request) -> Dialect:
        """The dialect for this request."""

    @abstractmethod
    async def _send(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        """Make one attempt, and put status, headers and data into ``exchange``.

        Raises:
            Broken: there is no answer.
        """

    async def complete(self, request: Request) -> Reply:
        """Make exactly one attempt. See :meth:`clash.providers.base.Provider.complete`."""
        dialect = self._dialect(request)
        wire_request = dialect.write(self._ref.name, request, self._ladder)
        exchange = Exchange(body=wire_request.body, headers=request.options.headers)
        try:
            await self._send_in_time(exchange, wire_request, request, dialect)
            answer, data = self._read(exchange, dialect)
        except TimeoutError:
            raise self._error(exchange, self._late()) from None
        except TooMuch as flood:
            failure = Failure("bad_payload", "fail", str(flood), 200, maybe_billed=True)
            raise self._error(exchange, failure) from None
        except NotPayload as unreadable:
            raise self._error(exchange, self._unreadable(exchange, str(unreadable))) from None
        except CutOff:
            raise self._error(exchange, _CUT_OFF) from None
        except UnicodeEncodeError as error:
            text = f"the request contains characters that are not valid text ({error.reason})"
            raise self._error(exchange, Failure("bad_request", "fail", text)) from None
        except Broken as broken:
            failure = self._degrade(broken.failure, exchange, wire_request, request)
            raise self._error(exchange, failure) from None
        if isinstance(answer, Failure):
            raise self._error(exchange, self._degrade(answer, exchange, wire_request, request))
        return self._reply(exchange, wire_request, answer, data)

    async def _send_in_time(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        # As ``anyio.fail_after``, without its layers: every call passes here.
        deadline = anyio.current_time() + self._limits.timeout_s
        with anyio.CancelScope(deadline=deadline) as scope:
            await self._send(exchange, wire_request, request, dialect)
        if scope.cancelled_caught:
            raise TimeoutError

    @abstractmethod
    async def aclose(self) -> None:
        """Close what was opened. Safe to call twice."""

    # -- reading --------------------------------------------------------------------------------

    def _read(
        self, exchange: Exchange, dialect: Dialect
    ) -> tuple[Answer | Failure, dict[str, Any]]:
        """The answer, and the body that it was read from."""
        status = exchange.status or 200
        data = exchange.data
        if not isinstance(data, dict):
            data = data or b""
            if not 200 <= status < 300:
                raise Broken(from_answer(status, exchange.answer_headers, loosely(data)))
            data = decode(data)
        else:
            data = clean(data)
        return dialect.read(data), data

    def _reply(
        self, exchange: Exchange, wire_request: WireRequest, answer: Answer, data: dict[str, Any]
    ) -> Reply:
        latency = exchange.seconds
        ttft = None
        if exchange.first_token is not None:
            ttft = exchange.first_token - exchange.began
        # A server may echo the key anywhere, not only in its text.
        parts = [
            answer.text,
            answer.finish_reason,
            answer.served_model,
            exchange.request_id,
            data,
        ]
        text, finish_reason, served_model, request_id, response = self._redactor.data(parts)
        return Reply(
            text=text,
            outcome=answer.outcome,
            request=self._as_sent(exchange),
            response=response,
            status=exchange.status,
            finish_reason=finish_reason,
            tokens=answer.tokens,
            cost_usd=self._reported_cost(exchange, answer),
            served_model=served_model,
            request_id=request_id,
            structured=wire_request.structured,
            degraded=wire_request.omissions,
            latency_s=latency,
            ttft_s=ttft,
        )

    def _reported_cost(self, exchange: Exchange, answer: Answer) -> float | None:  # noqa: ARG002
        """The cost that the provider itself reports; some do so in a header."""
        return answer.cost_usd

    # -- failing --------------------------------------------------------------------------------

    def _late(self) -> Failure:
        text = f"no complete answer within {self._limits.timeout_s:g} s (limits.timeout_s)"
        return Failure("timeout", "retry", text, maybe_billed=True)

    def _unreadable(self, exchange: Exchange, text: str) -> Failure:
        kind = exchange.answer_headers.get("content-type", "")
        if "html" in kind:
            # A proxy's or a portal's page; the retry policy stops at the second.
            text = f"{text}: is there a proxy or a log-in page before {exchange.url}?"
            return Failure("proxy", "retry", text, exchange.status)
        return Failure("bad_payload", "retry", text, exchange.status, maybe_billed=True)

    def _degrade(
        self, failure: Failure, exchange: Exchange, wire_request: WireRequest, request: Request
    ) -> Failure:
        """``failure``, or the instruction to ask again without what the model refuses."""
        feature = self._ladder.learn(failure, self._report(failure, exchange), wire_request)
        if feature is None:
            return failure
        again = self._dialect(request).write(self._ref.name, request, self._ladder)
        if again.body == wire_request.body:
            text = f"the model refuses {feature}, which is required: {failure.message}"
            return replace(failure, error_class="unsupported", action="stop", message=text)
        text = f"the model refuses {feature}, which is no longer sent: {failure.message}"
        return replace(failure, error_class="unsupported", action="degrade", message=text)

    def _report(self, failure: Failure, exchange: Exchange) -> Report:
        data = exchange.data
        body = data if isinstance(data, dict) else loosely(data or b"")
        report = read_report(body)
        return report if report.message else replace(report, message=failure.message)

    def _error(self, exchange: Exchange, failure: Failure) -> ProviderError:
        is_redirect = failure.status is not None and 300 <= failure.status < 400
        lead = "" if is_redirect else _LEADS.get(failure.error_class, "")
        lead = lead.format(key=self._account.key_variable or "no key", model=self._ref.name)
        data = exchange.data
        body = data if isinstance(data, dict) else loosely(data or b"")
        return ProviderError(
            self._redactor.message(f"{lead}{failure.message}")[:MAX_TEXT],
            error_class=failure.error_class,
            action=failure.action,
            status=failure.status or exchange.status,
            retry_after=failure.retry_after,
            request=self._as_sent(exchange),
            response=self._evidence(body),
            request_id=self._redactor.data(exchange.request_id),
            maybe_billed=failure.maybe_billed,
            latency_s=exchange.seconds,
        )

    # -- evidence -------------------------------------------------------------------------------

    def _as_sent(self, exchange: Exchange) -> dict[str, Any]:
        record: dict[str, Any] = {"url": _without_secrets(self._redactor, exchange.url)}
        if exchange.headers:
            record["headers"] = self._redactor.headers(exchange.headers)
        record["body"] = self._redactor.data(exchange.body)
        return record

    def _evidence(self, body: Any) -> Any:  # noqa: ANN401 - any JSON value
        if isinstance(body, str):
            return self._redactor.message(body)[:MAX_TEXT] or None
        return self._redactor.evidence(body)


@lru_cache(maxsize=256)
def _without_secrets(redactor: Redactor, url: str) -> str:
    """An address without secrets; cached, since each call has one and there are few."""
    return redactor.message(url)


async def read_events(chunks: AsyncIterable[bytes], exchange: Exchange, dialect: Dialect) -> None:
    """Assemble a stream of server-sent events into ``exchange``.

    Raises:
        CutOff: it ended before the answer did.
        NotPayload: it holds something else.
    """
    stream, events = dialect.stream(), EventSplitter()
    async for chunk in chunks:
        for event in events.feed(chunk):
            exchange.feed(stream, event)
    exchange.data = stream.result()
    if exchange.data is None:
        raise CutOff


_CUT_OFF = Failure(
    "incomplete_stream", "retry", "the stream ended before the answer did", 200, maybe_billed=True
)
_LEADS = {
    "auth": "the key in {key} is not accepted: ",
    "quota": "the quota or the credits of {key} are used up: ",
    "not_found": "{model} does not exist: ",
    "permission": "{key} may not use {model}: ",
    "too_long": "the prompt is too long for {model}: ",
}


def loosely(data: bytes) -> Any:  # noqa: ANN401 - any JSON value, or text
    """An error body: JSON where it is and of a reasonable size, else the beginning of the text."""
    try:
        return clean(json.loads(data)) if len(data) < MAX_EVIDENCE else preview(data, MAX_TEXT)
    except (ValueError, RecursionError):
        return preview(data, MAX_TEXT)
