"""A server on the loopback that answers in JSON; what it answers, its subclass says."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping


class LoopbackServer(ABC):
    """Serves while it is entered.

    Attributes:
        address: where, without a path.
    """

    def __init__(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    @abstractmethod
    def answer(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, Any]:
        """The status of an answer and its JSON; a string is sent as plain text."""

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, value = owner.answer(self.command, self.path, self.headers, body)
                is_text = isinstance(value, str)
                data = (value if is_text else json.dumps(value)).encode()
                self.send_response(status)
                self.send_header("content-type", "text/plain" if is_text else "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = _answer  # noqa: N815 - http.server's names
            do_POST = _answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        return Handler
