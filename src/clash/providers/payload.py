"""Bytes of an answer, or of a stream of events, to plain data that can be stored.

No NaN, no lone surrogates, no more than :data:`MAX_BYTES`, nothing nested deeper than :data:`MAX_DEPTH`.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 8 * 1024 * 1024
"""Ten times the longest answer any model of today can give."""
MAX_DEPTH = 200
"""What is nested deeper becomes null, since all that searches or writes an answer calls itself for each
level; real answers have a dozen."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotPayload(ValueError):
    """The bytes are no JSON object, or too many."""


class TooMuch(NotPayload):
    """The answer is longer than any answer should be; another would be no shorter."""

    def __init__(self, longest: int = MAX_BYTES) -> None:
        super().__init__(f"the answer has more than {longest} bytes")


def decode(data: bytes) -> dict[str, Any]:
    """A JSON object.

    NaN, infinities and numbers beyond every float become null: unknown, which is what they are.

    Raises:
        NotPayload: it is empty, not JSON, or no object; the message says which.
        TooMuch: it is too long.
    """
    if len(data) > MAX_BYTES:
        raise TooMuch
    if not data.strip():
        raise NotPayload("the answer is empty")
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        value = _decode_loosely(data)  # what is no strict JSON: NaN, lone surrogates, huge floats
    if not isinstance(value, dict):
        raise NotPayload(f"the answer is not a JSON object: {preview(data)!r}")
    may_be_deep = data.count(b"{") + data.count(b"[") > MAX_DEPTH
    return clean(value) if may_be_deep else value


def _decode_loosely(data: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        value = json.loads(data, parse_constant=_no_number, parse_float=_finite)
        return clean(value) if b"\\ud" in data.lower() else value
    except (ValueError, RecursionError):
        raise NotPayload(f"the answer is not JSON: {preview(data)!r}") from None


def preview(data: bytes, size: int = 200) -> str:
    """The beginning of ``data``, readable."""
    text = data[:size].decode("utf-8", "replace").strip()
    return text + "…" if len(data) > size else text


def clean(value: Any, depth: int = MAX_DEPTH) -> Any:  # noqa: ANN401 - any JSON value
    """``value`` as a file can hold it.

    U+FFFD for lone surrogates; null for NaN, infinities, and what is deeper than ``depth``.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return None
    if isinstance(value, list):
        return [clean(part, depth - 1) for part in value]
    return {clean(key): clean(part, depth - 1) for key, part in value.items()}


def count(value: object) -> int | None:
    """A number of tokens; null for anything that is none (negative, a fraction, NaN, text)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        return None
    if isinstance(value, float) and not value.is_integer():
        return None
    return int(value)


def total_of(*values: int | None) -> int | None:
    """The sum of what is known; null where nothing is."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None


def money(value: object) -> float | None:
    """An amount in dollars; null for anything that is none (negative, NaN, text)."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        amount = float(value)
    except (ValueError, OverflowError):
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def word(value: object) -> str | None:
    """A text; null for anything that is none."""
    return value if isinstance(value, str) else None


def part(value: object, *path: str | int) -> Any:  # noqa: ANN401 - any JSON value
    """What stands at ``path``, or null where the path ends early."""
    for step in path:
        if isinstance(step, int):
            value = (
                value[step]
                if isinstance(value, list) and -len(value) <= step < len(value)
                else None
            )
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def parts(value: object, *path: str | int) -> list[dict[str, Any]]:
    """The objects of the list at ``path``; none where there is no list."""
    pieces = part(value, *path)
    return (
        [piece for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
    )


def _no_number(_: str) -> None:
    return None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


class EventSplitter:
    """Splits a stream of bytes into events. Comments and ``[DONE]`` are skipped."""

    def __init__(self) -> None:
        self._line_pieces: list[bytes] = []
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
        first, *lines = chunk.split(b"\n")
        # Each line is joined once, when it ends: it may come in a million pieces.
        self._line_pieces.append(first)
        for following in lines:
            line, self._line_pieces = b"".join(self._line_pieces), [following]
            event = self._line(line.rstrip(b"\r"))
            if event is not None:
                yield event

    def _line(self, line: bytes) -> dict[str, Any] | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            return None if data.strip() == b"[DONE]" else _parse_event(data)
        return None


def _parse_event(data: bytes) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        raise NotPayload(f"an event of the stream is not JSON: {preview(data)!r}") from None
    if not isinstance(event, dict):
        raise NotPayload(f"an event of the stream is not a JSON object: {preview(data)!r}")
    return event
