"""Server-sent events out of bytes as they come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clash.providers.payload import MAX_BYTES, NotPayload, TooMuch, preview

if TYPE_CHECKING:
    from collections.abc import Iterator


class Events:
    """Splits a stream into events. Comments and ``[DONE]`` are passed over."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The events that ``chunk`` completes.

        Raises:
            NotPayload: an event is no JSON object.
            TooMuch: all of them are too long.
        """
        self._size += len(chunk)
        if self._size > MAX_BYTES:
            raise TooMuch
        first, *others = chunk.split(b"\n")
        # Joined once, at its end: a line may come in a million pieces.
        self._rest.append(first)
        for following in others:
            line, self._rest = b"".join(self._rest), [following]
            event = self._line(line.rstrip(b"\r"))
            if event is not None:
                yield event

    def _line(self, line: bytes) -> dict[str, Any] | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            return None if data.strip() == b"[DONE]" else _parsed(data)
        return None


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise NotPayload(f"an event of the stream is not JSON: {preview(data)!r}") from None
    if not isinstance(event, dict):
        raise NotPayload(f"an event of the stream is no JSON object: {preview(data)!r}")
    return event
