"""Models reached without an SDK: OpenRouter, and servers compatible with OpenAI.

The client is aiohttp: its pool costs the same at five hundred connections as at five (measured in
``docs/decisions/http-client.md``).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiohttp
import msgspec

from clash.errors import ConfigError
from clash.providers.accounts import account
from clash.providers.connections import Lease, proxy_for
from clash.providers.dialects.chat import Chat
from clash.providers.failures import Failure, from_line, meaning
from clash.providers.network import Broken, Exchange, NetworkProvider, read_events
from clash.providers.payload import MAX_BYTES, TooMuch, money, part
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import Limits, ModelRef
    from clash.errors import ErrorClass
    from clash.providers.accounts import Account
    from clash.providers.base import Request
    from clash.providers.dialects.protocol import Answer, Dialect
    from clash.providers.ladder import WireRequest

ERRORS: Mapping[str, tuple[ErrorClass, bool]] = {
    "ClientError": ("connection", True),
    "ClientConnectionError": ("connection", True),
    "ClientConnectionResetError": ("connection", True),
    "ClientOSError": ("connection", True),
    "ClientConnectorError": ("connection", False),
    "ClientConnectorDNSError": ("connection", False),
    "ClientConnectorSSLError": ("tls", False),
    "ClientConnectorCertificateError": ("tls", False),
    "ClientSSLError": ("tls", False),
    "ServerFingerprintMismatch": ("tls", False),
    "UnixClientConnectorError": ("connection", False),
    "ClientProxyConnectionError": ("proxy", False),
    "ClientHttpProxyError": ("proxy", False),
    "ServerConnectionError": ("connection", True),
    "ServerDisconnectedError": ("connection", True),
    "ServerTimeoutError": ("timeout", True),
    "SocketTimeoutError": ("timeout", True),
    "ConnectionTimeoutError": ("connection", False),
    "ClientPayloadError": ("connection", True),
    "UploadAbortedError": ("connection", True),
    "ClientResponseError": ("bad_payload", True),
    "ContentTypeError": ("bad_payload", True),
    "WSServerHandshakeError": ("bad_payload", False),
    "WSMessageTypeError": ("bad_payload", False),
    "TooManyRedirects": ("not_found", False),
    "InvalidURL": ("not_found", False),
    "InvalidUrlClientError": ("not_found", False),
    "InvalidUrlRedirectClientError": ("not_found", False),
    "NonHttpUrlClientError": ("not_found", False),
    "NonHttpUrlRedirectClientError": ("not_found", False),
    "RedirectClientError": ("not_found", False),
}
"""What each of aiohttp's exceptions means, and whether the request may have arrived. A subclass
that is not named here means what its nearest base does."""


class HttpProvider(NetworkProvider):
    """A model behind ``POST {base_url}/chat/completions``.

    Attributes:
        dialect: the flavour of chat completions that the server speaks.
    """

    dialect: Chat

    def __init__(self, ref: ModelRef, account: Account, limits: Limits) -> None:
        super().__init__(ref, account, limits)
        self._url = f"{account.base_url}/chat/completions"
        self._proxy = proxy_for(self._url)
        self._sessions = Lease(
            f"http {account.name}", lambda: open_session(account, limits), close_session
        )

    def _dialect(self, request: Request) -> Chat:  # noqa: ARG002 - one dialect for all
        return self.dialect

    async def _send(
        self, exchange: Exchange, wire_request: WireRequest, request: Request, dialect: Dialect
    ) -> None:
        exchange.url = self._url
        session = self._sessions.get()
        headers = {**self._authorization(), **request.options.headers}
        payload = msgspec.json.encode(wire_request.body)
        exchange.began = time.perf_counter()
        try:
            async with session.post(
                self._url, data=payload, headers=headers, proxy=self._proxy, allow_redirects=False
            ) as answer:
                exchange.status = answer.status
                exchange.answer_headers = {k.lower(): v for k, v in answer.headers.items()}
                if answer.content_type == "text/event-stream":
                    await read_events(answer.content.iter_any(), exchange, dialect)
                else:
                    exchange.data = await _read_body(answer)
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(self._line_failure(error)) from None

    def _authorization(self) -> dict[str, str]:
        key = self._account.key
        return {"authorization": f"Bearer {key}"} if key else {}

    def _line_failure(self, error: Exception) -> Failure:
        kind, maybe_billed = meaning(error, ERRORS)
        # With a proxy, what refuses connections is the proxy, wherever the server is.
        address = urlsplit(self._proxy or self._url).netloc.rpartition("@")[2]
        local = self._account.local and self._proxy is None
        return from_line(error, kind, maybe_billed=maybe_billed, local=local, address=address)

    async def aclose(self) -> None:
        """Close the connections, where no other model uses them."""
        await self._sessions.aclose()


class OpenRouter(HttpProvider):
    """``openrouter/VENDOR/MODEL``. Costs are those that OpenRouter itself reports."""

    dialect = Chat("openrouter")


class Compatible(HttpProvider):
    """``compatible/MODEL`` at its ``base_url``, with a key only where one is named.

    Ollama, vLLM, llama.cpp, LM Studio, gateways.
    """

    dialect = Chat("compatible")

    def _reported_cost(self, exchange: Exchange, answer: Answer) -> float | None:
        # A LiteLLM gateway reports the cost in a header.
        if answer.cost_usd is not None:
            return answer.cost_usd
        return money(exchange.answer_headers.get("x-litellm-response-cost"))


def open_session(account: Account, limits: Limits) -> aiohttp.ClientSession:
    """A pool of connections to one account; how many are used is for the limiter to say."""
    # A context costs 40 ms to make, and plain HTTP needs none.
    tls: Any = True
    if urlsplit(account.base_url).scheme == "https":
        import httpx2

        tls = httpx2.create_ssl_context()  # the system's trust, as the SDKs use it
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=30),
        timeout=aiohttp.ClientTimeout(
            total=None, connect=limits.connect_timeout_s, sock_read=limits.timeout_s
        ),
        headers={"user-agent": f"clash-eval/{__version__}", "content-type": "application/json"},
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def close_session(session: aiohttp.ClientSession) -> None:
    """Close the pool."""
    await session.close()


async def _read_body(answer: aiohttp.ClientResponse) -> bytes:
    if (answer.content_length or 0) <= MAX_BYTES:
        pieces, size = [], 0
        async for piece in answer.content.iter_any():
            pieces.append(piece)
            size += len(piece)
            if size > MAX_BYTES:
                break
        else:
            return b"".join(pieces)
    raise TooMuch


async def listed_models(ref: ModelRef, environ: Mapping[str, str], limits: Limits) -> list[str]:
    """The names under ``GET {base_url}/models``, sorted.

    Raises:
        ConfigError: the server does not list its models.
    """
    server = account(ref, environ)
    url = f"{server.base_url}/models"
    headers = {"authorization": f"Bearer {server.key}"} if server.key else {}
    try:
        async with (
            open_session(server, limits) as session,
            session.get(
                url, headers=headers, proxy=proxy_for(url), allow_redirects=False
            ) as answer,
        ):
            body = await answer.content.read(MAX_BYTES) if answer.status == 200 else b""
        listing: Any = msgspec.json.decode(body)
    except (aiohttp.ClientError, OSError, msgspec.DecodeError, UnicodeDecodeError):
        listing = None
    rows = part(listing, "data")
    names = {part(row, "id") for row in rows} if isinstance(rows, list) else set()
    models = sorted(name for name in names if isinstance(name, str) and name)
    if not models:
        raise ConfigError(
            f"{url} lists no models",
            field="--torture",
            hint="name one: --models compatible/NAME",
        )
    return models
