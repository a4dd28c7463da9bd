"""aiohttp under the vendors' SDKs: an httpx2 transport.

httpx2's own pool looks through all of its connections at every call. With some hundred calls in
flight that takes more time than everything else that an SDK does; aiohttp's costs the same at any
size (``docs/decisions/http-client.md``). What an SDK sees is httpx2: its requests, its answers and
its exceptions.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx2
from yarl import URL

from clash.providers.connections import proxy_for
from clash.providers.payload import TooMuch

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

ERRORS: Mapping[type[BaseException], type[httpx2.TransportError]] = {
    aiohttp.ConnectionTimeoutError: httpx2.ConnectTimeout,
    aiohttp.ServerTimeoutError: httpx2.ReadTimeout,
    aiohttp.ClientHttpProxyError: httpx2.ProxyError,
    aiohttp.ClientConnectorError: httpx2.ConnectError,
    aiohttp.ServerFingerprintMismatch: httpx2.ConnectError,
    aiohttp.ClientConnectionResetError: httpx2.WriteError,
    aiohttp.ClientOSError: httpx2.ReadError,
    aiohttp.InvalidURL: httpx2.UnsupportedProtocol,
    # The server broke the protocol: it hung up in the middle, or wrote what is no answer.
    aiohttp.ClientError: httpx2.RemoteProtocolError,
    TimeoutError: httpx2.ReadTimeout,
    OSError: httpx2.ReadError,
}
"""What each exception of aiohttp is to httpx2; the first that fits."""
_OWN_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that aiohttp would add; the SDKs say themselves what they send."""
_LONGEST_HEADER = 1 << 16
_ENCODING_HEADERS = (b"content-encoding", b"content-length")
"""Headers of an answer that hold no more once its body is unpacked."""
ENCODINGS = "gzip, deflate"
"""Encodings that aiohttp unpacks, whatever else is installed."""


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """One pool of connections to one address.

    Redirects are not followed and cookies are not kept, and the only proxy is that of the address.

    Args:
        url: the address, which decides on TLS and on the proxy.
        longest: bytes of the longest body that is read, unpacked.
        connect_s: seconds for all of connecting; of the SDKs, Google's has no number of its own.
    """

    def __init__(self, url: str, longest: int, connect_s: float | None = None) -> None:
        self._proxy = proxy_for(url)
        self._longest = longest
        self._connect_s = connect_s
        # A context costs 40 ms to make, and plain HTTP needs none.
        is_https = url.lower().startswith("https:")
        self._tls: Any = httpx2.create_ssl_context() if is_https else True
        self._session: aiohttp.ClientSession | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request; the body of the answer is read as it is iterated over."""
        with httpx_errors():
            answer = await self._pool().request(
                request.method,
                URL(str(request.url), encoded=True),
                data=await request.aread() or None,
                headers=request.headers.multi_items(),
                skip_auto_headers=_OWN_HEADERS,
                allow_redirects=False,
                proxy=self._proxy,
                timeout=self._timeout(request.extensions.get("timeout", {})),
            )
        headers = [pair for pair in answer.raw_headers if pair[0].lower() not in _ENCODING_HEADERS]
        return httpx2.Response(answer.status, headers=headers, stream=_Body(answer, self._longest))

    def _timeout(self, seconds: Mapping[str, float | None]) -> aiohttp.ClientTimeout:
        # Not `sock_connect`, which leaves out looking up the name and the answer of a proxy.
        return aiohttp.ClientTimeout(
            total=None, connect=self._connect_s, sock_read=seconds.get("read")
        )

    def _pool(self) -> aiohttp.ClientSession:
        """The session, which can only be made within an event loop."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ssl=self._tls, keepalive_timeout=30),
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            )
        return self._session

    async def aclose(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()


class _Body(httpx2.AsyncByteStream):
    """A body that raises :class:`TooMuch` where it is longer than any answer should be."""

    def __init__(self, answer: aiohttp.ClientResponse, longest: int) -> None:
        self._answer, self._longest = answer, longest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        with httpx_errors():
            async for piece in self._answer.content.iter_any():
                size += len(piece)
                if size > self._longest:
                    raise TooMuch(self._longest)
                yield piece

    async def aclose(self) -> None:
        # What has not been read to its end closes the connection; else it is used again.
        self._answer.release()


@contextmanager
def httpx_errors() -> Iterator[None]:
    """Raise what httpx2 would where aiohttp fails; the cause stays the cause."""
    try:
        yield
    except tuple(ERRORS) as error:
        # The text of an error in HTTP begins with a status 400 that no server sent.
        text = getattr(error, "message", "") or str(error) or type(error).__name__
        raise counterpart(type(error))(text) from error


def counterpart(cls: type[BaseException]) -> type[httpx2.TransportError]:
    """What httpx2 raises where aiohttp raises ``cls``."""
    return next(error for base, error in ERRORS.items() if issubclass(cls, base))
