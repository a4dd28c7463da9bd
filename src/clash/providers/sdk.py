"""What the vendors' SDKs share: one httpx2 client for an account, and one meaning for their errors.

The SDKs build requests, sign them and know their endpoints; their raw responses and their typed
errors carry the answer. Retries, timeouts, redirects and the pool are ours. Hooks on the client
note when a request left, its bytes, and the status and headers of the answer: an attempt that
fails later has no response object to ask (``docs/decisions/sdks.md``).
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from contextvars import ContextVar
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import httpx2
import msgspec

from clash.providers.connections import Lease, proxy_for
from clash.providers.failures import Failure, causes, from_answer, from_line, meaning
from clash.providers.network import Broken, Exchange, NetworkProvider, read_events
from clash.providers.payload import MAX_BYTES, NotPayload
from clash.providers.transport import ENCODINGS, AiohttpTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import Limits, ModelRef
    from clash.errors import ErrorClass
    from clash.providers.accounts import Account
    from clash.providers.base import Request
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest

ERRORS: Mapping[str, tuple[ErrorClass, bool]] = {
    "HTTPError": ("connection", True),
    "RequestError": ("connection", True),
    "TransportError": ("connection", True),
    "TimeoutException": ("timeout", True),
    "ConnectTimeout": ("connection", False),
    "ReadTimeout": ("timeout", True),
    "WriteTimeout": ("timeout", True),
    "PoolTimeout": ("connection", False),
    "NetworkError": ("connection", True),
    "ReadError": ("connection", True),
    "WriteError": ("connection", True),
    "ConnectError": ("connection", False),
    "CloseError": ("connection", True),
    "ProxyError": ("proxy", False),
    "UnsupportedProtocol": ("not_found", False),
    "ProtocolError": ("connection", True),
    "LocalProtocolError": ("bad_request", False),
    "RemoteProtocolError": ("connection", True),
    "DecodingError": ("bad_payload", True),
    "TooManyRedirects": ("not_found", False),
    "HTTPStatusError": ("bad_payload", True),
    "InvalidURL": ("not_found", False),
    "StreamError": ("connection", True),
    "StreamConsumed": ("connection", True),
    "StreamClosed": ("connection", True),
    "ResponseNotRead": ("connection", True),
    "RequestNotRead": ("connection", True),
    "CookieConflict": ("bad_payload", True),
    "SSEError": ("bad_payload", True),
}
"""What each of httpx2's exceptions means, and whether the request may have arrived."""

_LOGGERS = ("openai", "anthropic", "google_genai", "httpx2", "httpcore2", "google.auth")
_current: ContextVar[Exchange | None] = ContextVar("clash_exchange", default=None)


def open_client(account: Account, limits: Limits, longest: int = MAX_BYTES) -> httpx2.AsyncClient:
    """The client of one account. It belongs to us: no SDK may close it."""
    return httpx2.AsyncClient(
        transport=AiohttpTransport(account.base_url, longest, limits.connect_timeout_s),
        timeout=httpx2.Timeout(limits.timeout_s, pool=None),
        headers={"accept-encoding": ENCODINGS},
        follow_redirects=False,
        event_hooks={"request": [_note_request], "response": [_note_answer]},
    )


async def _note_request(request: httpx2.Request) -> None:
    exchange = _current.get()
    if exchange is not None:
        # The clock starts here and no earlier: an SDK imports and builds things at its first call.
        exchange.began = time.perf_counter()
        exchange.url = str(request.url)
        exchange.body = msgspec.json.decode(request.content)


async def _note_answer(answer: httpx2.Response) -> None:
    exchange = _current.get()
    if exchange is not None:
        exchange.status = answer.status_code
        exchange.answer_headers = dict(answer.headers)
        if exchange.keep_plain_body and not exchange.event_stream:
            exchange.data = await answer.aread()


async def read_streamed(answer: httpx2.Response, exchange: Exchange, dialect: Dialect) -> None:
    """Read the answer to a request for a stream; a server may answer with a plain body all the same.

    The events are taken as bytes: the SDKs would build a typed object of each, which delays the
    first token.

    Raises:
        CutOff: the stream ended before the answer did.
        NotPayload: it holds something else.
    """
    if exchange.event_stream:
        await read_events(answer.aiter_bytes(), exchange, dialect)
    else:
        exchange.data = await answer.aread()


Kind = Literal["answer", "event", "line", "payload", "misuse"]
"""What an SDK's exception is about: an answer with an error status, an error event in a stream, the
connection, an answer that the SDK could not read, or a call that we should not have made."""


class SdkProvider(NetworkProvider):
    """A model that is reached through its vendor's SDK.

    Attributes:
        raises: the exceptions of the SDK.
        meanings: what each of them is about, by name; a subclass that is not named means what
            its nearest base does.
        pool: models at one account whose pools have the same name share their connections.
        longest: bytes of the longest body that is read.
    """

    raises: tuple[type[Exception], ...]
    meanings: Mapping[str, Kind]
    pool = "sdk"
    longest = MAX_BYTES

    def __init__(self, ref: ModelRef, account: Account, limits: Limits) -> None:
        super().__init__(ref, account, limits)
        quiet()
        self._address = urlsplit(proxy_for(account.base_url) or account.base_url)
        self._local = account.local and proxy_for(account.base_url) is None
        self._clients: Lease[httpx2.AsyncClient] = Lease(
            f"{self.pool} {account.name}",
            lambda: open_client(account, limits, self.longest),
            httpx2.AsyncClient.aclose,
        )

    @abstractmethod
    async def _ask(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        """Make one attempt through the SDK, and put the body of the answer into ``exchange``."""

    async def _send(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        token = _current.set(exchange)
        try:
            await self._ask(exchange, wire_request, request, dialect)
        except (NotPayload, UnicodeEncodeError):
            raise
        except self.raises as error:
            self._explain(error, exchange)
        except HTTPX_ERRORS as error:
            raise self._broken(error, exchange) from None
        except ValueError as error:
            # Before anything was sent it is the SDK's own check, after it a body that is no JSON.
            if exchange.status is None:
                raise Broken(Failure("bad_request", "fail", str(error))) from None
            raise NotPayload(f"the answer is not JSON: {error}") from None
        except (AttributeError, LookupError, TypeError) as error:
            # An SDK takes it for granted that each field is of its type.
            if exchange.status is None:
                raise
            text = f"the SDK cannot read the answer ({type(error).__name__}: {error})"
            raise NotPayload(text) from None
        finally:
            _current.reset(token)

    def _explain(self, error: Exception, exchange: Exchange) -> None:
        """Raise what ``error`` means; an answer with an error status is read like any other."""
        names = (cls.__name__ for cls in type(error).__mro__)
        kind: Kind = next(
            (self.meanings[name] for name in names if name in self.meanings), "misuse"
        )
        if kind == "answer" and exchange.event_stream:
            kind = "event"
        match kind:
            case "answer":
                if exchange.data is None:
                    exchange.data = error.response.content  # type: ignore[attr-defined] # it has one
            case "event":
                body = getattr(error, "body", None) or getattr(error, "details", None)
                raise Broken(from_answer(200, {}, body or str(error))) from None
            case "line":
                raise self._broken(error, exchange) from None
            case "payload":
                raise NotPayload(str(error)) from None
            case "misuse":
                raise Broken(Failure("bad_request", "fail", str(error))) from None

    def _broken(self, error: Exception, exchange: Exchange) -> Exception:
        """What an exception of the connection means, whether or not the SDK has wrapped it."""
        chain = list(causes(error))
        own_error = next((e for e in chain if isinstance(e, NotPayload)), None)
        if own_error is not None:
            return own_error
        cause = next((e for e in chain if isinstance(e, HTTPX_ERRORS)), error)
        kind, maybe_billed = meaning(cause, ERRORS)
        return Broken(
            from_line(
                error,
                kind,
                maybe_billed=maybe_billed or exchange.status is not None,
                local=self._local,
                address=self._address.netloc.rpartition("@")[2],
            )
        )

    async def aclose(self) -> None:
        """Close the connections, where no other model uses them."""
        await self._clients.aclose()


HTTPX_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpx2.CookieConflict)


def custom_headers(text: str) -> dict[str, str]:
    """``Name: value`` lines, as the vendors' SDKs read them."""
    pairs = (line.partition(":") for line in text.split("\n") if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def quiet() -> None:
    """Keep the SDKs' logs at warnings: at debug, anthropic logs whole prompts and headers."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)
