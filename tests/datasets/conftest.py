"""A data hub on the loopback: the tree, resolved files behind a redirect, Range, faults on order."""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote, urlsplit

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """What the hub serves and what it was asked.

    ``cut`` holds, by path, after how many bytes a connection is broken off, once each; ``status``
    and, by path, ``refused`` hold the statuses of the next answers.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    small: set[str] = field(default_factory=set)
    cut: dict[str, list[int]] = field(default_factory=dict)
    status: list[int] = field(default_factory=list)
    refused: dict[str, list[int]] = field(default_factory=dict)
    stated: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    tokens: list[str | None] = field(default_factory=list)
    page_size: int = 1000
    elsewhere: str | None = None
    ignore_range: bool = False
    url: str = ""
    commit: str = COMMIT

    def tree(self) -> list[dict[str, object]]:
        return [{"type": "directory", "path": "data", "oid": "x"}] + [
            self._record(path, content) for path, content in sorted(self.files.items())
        ]

    def _record(self, path: str, content: bytes) -> dict[str, object]:
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        record = {"type": "file", "path": path, "size": len(content), "oid": blob}
        if path not in self.small:
            oid = self.stated.get(path, hashlib.sha256(content).hexdigest())
            record["lfs"] = {"oid": oid, "size": len(content), "pointerSize": 134}
        return record


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None: ...

    def do_GET(self) -> None:
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append((path, self.headers.get("Range")))
        self.hub.tokens.append(self.headers.get("Authorization"))
        if self.hub.status:
            return self._answer(self.hub.status.pop(0), b"no")
        if path.startswith("/api/") and "/revision/" in path:
            return self._json({"sha": COMMIT})
        if path.startswith("/api/"):
            return self._page()
        if "/resolve/" in path:
            return self._redirect(re.sub(r".*/resolve/[^/]+/", "/cdn/", path))
        return self._file(path.removeprefix("/cdn/").lstrip("/"))

    def _page(self) -> None:
        start = int(re.sub(r"\D", "", urlsplit(self.path).query.partition("cursor=")[2]) or 0)
        full_files = self.hub.tree()
        end = start + self.hub.page_size
        more = {}
        if end < len(full_files):
            part = self.path.partition("&cursor")[0]
            more = {"Link": f'<{self.hub.url}{part}&cursor={end}>; rel="next"'}
        self._json(full_files[start:end], more)

    def _redirect(self, path: str) -> None:
        self.send_response(302)
        self.send_header("Location", (self.hub.elsewhere or "") + path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _file(self, path: str) -> None:
        content = self.hub.files.get(path)
        if content is None:
            return self._answer(404, b"none")
        if self.hub.refused.get(path):
            return self._answer(self.hub.refused[path].pop(0), b"not now")
        etag = f'"{hashlib.sha256(content).hexdigest()}"'
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range") or "")
        if match and not self.hub.ignore_range and self.headers.get("If-Range", etag) == etag:
            start = int(match[1])
            if start >= len(content):
                return self._answer(416, b"")
        self.send_response(206 if start else 200)
        self.send_header("ETag", etag)
        self.send_header("Content-Length", str(len(content) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        cuts = self.hub.cut.get(path)
        if cuts:
            self.wfile.write(content[start : start + cuts.pop(0)])
            self.wfile.flush()
            self.close_connection = True
            return None
        self.wfile.write(content[start:])
        return None

    def _json(self, value: object, headers: dict[str, str] | None = None) -> None:
        self._answer(200, json.dumps(value).encode(), headers)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that left before the end is what some tests are about."""


@pytest.fixture
def start_hub():
    """Starts hubs, and stops them after the test: ``start_hub(files={…})``."""
    with ExitStack() as stack:
        yield lambda **subject: stack.enter_context(serve(Hub(**subject)))


@contextmanager
def serve(hub: Hub):
    """Serve ``hub`` on a port of its own."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = _Server(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
