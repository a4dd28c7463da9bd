"""Ask a local server as its page would."""

from __future__ import annotations

import http.client
import json
from typing import Any


def get(server, path: str, **headers: str) -> tuple[int, str, dict[str, str]]:
    """Status, text and headers of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=240)
    connection.request(
        "GET", path, headers={name.replace("_", "-"): v for name, v in headers.items()}
    )
    answer = connection.getresponse()
    reply = answer.status, answer.read().decode(), dict(answer.getheaders())
    connection.close()
    return reply


def ask(
    server, problem: str, token: str | None = None, **request: Any
) -> tuple[int, dict[str, Any]]:
    """Status and object of a request."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=240)
    headers = {
        "Content-Type": "application/json",
        "X-Clash-Token": server.token if token is None else token,
        "Origin": server.origins[0],
    }
    connection.request("POST", f"/api/{problem}", json.dumps(request), headers)
    answer = connection.getresponse()
    reply = answer.status, json.loads(answer.read())
    connection.close()
    return reply


def rows(server) -> list[dict[str, Any]]:
    """Every row of the list, asked for as the page does."""
    replies: list[dict[str, Any]] = []
    while True:
        status, part = ask(server, "runs", **{"from": len(replies)})
        assert status == 200
        replies += part["rows"]
        if not part["rows"] or len(replies) >= part["total"]:
            return replies
