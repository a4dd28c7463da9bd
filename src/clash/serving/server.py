"""Serve pages on this machine only, to whoever holds the token.

A page of another origin can ask for nothing: it does not know the token, may not send the header
that carries it, and its ``Origin`` is refused. A domain name that resolves to 127.0.0.1 is refused
by ``Host``. Another user of the machine, who can connect, knows neither the token nor the addresses
of pages that hold data.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from clash.errors import ClashError, InputError
from clash.escape import for_terminal

if TYPE_CHECKING:
    from socket import socket

LOCAL_SCRIPT = Path(__file__).with_name("local.js")
"""What a page asks its server with."""
_LONGEST = 100_000
_STALLED_S = 10.0
_MOST_CONNECTIONS = 32
"""A browser opens about six; each costs a thread."""
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Page:
    """A page and its content security policy."""

    text: str
    policy: str


class LocalServer(ABC):
    """Serves pages, and answers what they ask, from the moment it is entered until it is left.

    Args:
        port: the port; 0 means any free one.

    Raises:
        InputError: the port is taken, or may not be listened on.
    """

    def __init__(self, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(24)
        try:
            self._server = _Server(("127.0.0.1", port), self)
        except OSError as error:
            message = f"port {port} cannot be used: {error.strerror}"
            raise InputError(message, field="--port", hint="--port 0 takes a free one") from None
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins that are accepted in requests."""
        return (f"http://127.0.0.1:{self.port}", f"http://localhost:{self.port}")

    @property
    def url(self) -> str:
        """The address to open; the token follows the #, which browsers never send."""
        return f"{self.origins[0]}/#{self.token}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @abstractmethod
    def page(self, path: str) -> Page | None:
        """The page at a path, null where there is none.

        Anyone on the machine can ask for it: a page with data in it needs a path that nobody can
        guess.
        """

    def on_page_sent(self, path: str) -> None:  # noqa: B027 - most pages have nothing to hear
        """Hear that a browser has the page of a path."""

    @abstractmethod
    def answer(self, path: str, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request that a page sent with the token.

        Raises:
            ClashError: the request is invalid; the page shows the message.
        """


class _Server(ThreadingHTTPServer):
    """One thread for each connection, up to a limit; then the oldest connection is closed.

    Refusing the newest instead would let idle connections lock the person out. A browser whose
    connection is closed opens another.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], owner: LocalServer) -> None:
        self.owner = owner
        self._open: dict[socket, None] = {}
        self._lock = threading.Lock()
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - of the base
        with self._lock:
            self._open[request] = None
            if len(self._open) > _MOST_CONNECTIONS:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):  # it may just have ended
                    oldest.shutdown(SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:  # noqa: ANN401 - of the base
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - of the base
        """Ignore connections that the browser closes in the middle of an answer."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers the pages of a server, and refuses what does not come from them."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.0"  # 0.9 has no headers, not even ours
    timeout: ClassVar[float | None] = _STALLED_S
    server_version, sys_version = "clash", ""

    @property
    def _local(self) -> LocalServer:
        return cast("_Server", self.server).owner

    def do_GET(self) -> None:
        if (reason := self._foreign()) is not None:
            self._refuse(reason)
            return
        try:
            page = self._local.page(self.path)
        except ClashError as error:
            self._send(HTTPStatus.CONFLICT, for_terminal(str(error)).encode(), "text/plain")
            return
        if page is None:
            self._send(HTTPStatus.NOT_FOUND, b"not found", "text/plain")
        else:
            self._send(HTTPStatus.OK, page.text.encode(), "text/html", page.policy)
            self._local.on_page_sent(self.path)

    def do_POST(self) -> None:
        body = self._body()
        reason = self._foreign() or self._stranger()
        if reason is not None or body is None:
            self._refuse(reason or "the request is too long")
            return
        try:
            request = json.loads(body)
            if not isinstance(request, dict):
                raise InputError("expected an object")
            self._json(HTTPStatus.OK, self._local.answer(self.path, request))
        except (ClashError, ValueError, RecursionError) as error:
            self._json(HTTPStatus.BAD_REQUEST, {"error": str(error)})

    def _foreign(self) -> str | None:
        """Why a request does not come from our own page, or null."""
        hosts = {origin.removeprefix("http://") for origin in self._local.origins}
        if self.headers.get("Host") not in hosts:
            return "wrong Host"
        origin = self.headers.get("Origin")
        if origin is not None and origin not in self._local.origins:
            return "wrong Origin"
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            return "from another site"
        return None

    def _stranger(self) -> str | None:
        token = self.headers.get("X-Clash-Token", "")
        if not secrets.compare_digest(token.encode(), self._local.token.encode()):
            return "wrong token"
        if self.headers.get_content_type() != "application/json":
            return "not JSON"
        return None

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "0")
        is_valid = length.isdecimal() and len(length) <= len(str(_LONGEST))
        if not is_valid or int(length) > _LONGEST or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,  # noqa: ARG002 - of the base
    ) -> None:
        """Answer requests that the base class refuses (method, syntax) in the same form."""
        self.close_connection = True
        status = HTTPStatus(code)
        if status is HTTPStatus.NOT_IMPLEMENTED:
            status, message = HTTPStatus.METHOD_NOT_ALLOWED, "only GET and POST"
        self._json(status, {"error": message or status.phrase})

    def _refuse(self, reason: str) -> None:
        self._json(HTTPStatus.FORBIDDEN, {"error": reason})

    def _json(self, status: HTTPStatus, value: dict[str, Any]) -> None:
        text = json.dumps(value, ensure_ascii=True)
        self._send(status, text.encode(), "application/json")

    def _send(
        self, status: HTTPStatus, body: bytes, kind: str, policy: str = "default-src 'none'"
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        headers = {**_HEADERS, "Content-Security-Policy": policy}
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = "GET, POST"
        if self.close_connection:
            headers["Connection"] = "close"
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing: the terminal belongs to the person."""
