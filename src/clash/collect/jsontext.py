"""JSON objects in what a model wrote.

Pure, and linear in the length of the text: one pass finds where objects begin and end, and each is
decoded once. Duplicate keys, NaN and incomplete text are refused, since repairing them would be
guessing; a trailing comma is repaired.
"""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARS = 200_000
"""Answers beyond this are refused unread: nothing we ask for is that long."""
MAX_DEPTH = 40
"""How deep brackets may nest in text that is not quite JSON; a judgment takes four levels."""

_MOST_FAILURES = 5
"""How often the decoder is tried on what is no JSON. It is faster than our own pass, but a failure
counts the lines before the fault, so that many failures would take quadratic time."""

# A brace in prose ("the closing } is missing") opens nothing: a key or a closing brace must follow.
_OPENS = re.compile(r"\{(?=\s*[\"'“”‘’}])")
# Possessive, and with an end for strings that never close: no start is tried twice.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_TOKEN = re.compile(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_DECODER = json.JSONDecoder()
_KEY_END = re.compile(r'"\s*:')
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)
_EXCERPT = 20
"""Characters quoted from where JSON is not valid, by which a judge that is asked again finds the spot."""


class Unreadable(ValueError):
    """The text is not what was asked for; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ObjectSpan:
    """Where an object stands in a text."""

    start: int
    end: int


def body(text: str) -> str:
    """``text`` without blanks and a byte order mark around it.

    Raises:
        Unreadable: it is empty or too long.
    """
    if len(text) > MAX_CHARS:
        raise Unreadable(f"the answer has {len(text)} characters, more than {MAX_CHARS}")
    inner = text.strip().removeprefix("\ufeff").strip()
    if not inner:
        raise Unreadable("the answer is empty")
    return inner


def top_level(text: str, start: int = 0) -> Iterator[ObjectSpan]:
    """The outermost objects of ``text`` from ``start`` on, whatever is in them and around them.

    Raises:
        Unreadable: one is incomplete or nested too deeply. Objects inside it do not count: they
            are parts of something that is lost.
    """
    failures = 0
    while opening := _OPENS.search(text, start):
        end = _decoded_end(text, opening.start()) if failures < _MOST_FAILURES else None
        if end is None:
            failures += 1
            end = _closing(text, opening.start())
        yield ObjectSpan(opening.start(), end)
        start = end


def _decoded_end(text: str, start: int) -> int | None:
    """Where the JSON object that begins at ``start`` has ended; null where it is not JSON."""
    try:
        return _DECODER.raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return None


def _closing(text: str, start: int) -> int:
    """Where the object that begins at ``start`` has ended, JSON or not."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        if depth > MAX_DEPTH:
            raise Unreadable("the answer is nested too deeply")
        if depth == 0:
            return token.end()
    raise Unreadable("the answer ends inside the JSON")


def decode(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The JSON value that the whole of ``text`` is.

    Raises:
        Unreadable: it is none, names a key twice, or holds a number that is none.
    """
    value = _decode_plain(text)
    return _decode_strictly(text) if value is None else value


def _decode_plain(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value, in a third of the time; null where only the strict decoder can tell."""
    try:
        value = msgspec.json.decode(text)
        # Of two equal keys one is lost: the value has fewer keys than the text.
        is_whole = _count_keys(value) == len(_KEY_END.findall(text))
    except Unreadable:
        raise
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return value if is_whole else None


def _count_keys(value: object) -> int:
    """How many keys the objects in ``value`` have.

    Raises:
        Unreadable: two keys of one object are spelled alike.
    """
    if type(value) is dict:
        _check_differ(tuple(value))
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if type(value) is list else 0


def _decode_strictly(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        # A byte order mark has a message of its own.
        return json.loads(text) if text.startswith("\ufeff") else _STRICT.decode(text)
    except Unreadable:
        raise
    except json.JSONDecodeError as error:
        excerpt = text[error.pos : error.pos + _EXCERPT]
        fault = f"{error.msg[0].lower()}{error.msg[1:].removesuffix(' at')}, at {excerpt!r}"
        raise Unreadable(f"the answer is not valid JSON: {fault}") from None
    except (ValueError, RecursionError):
        raise Unreadable("the answer is not valid JSON") from None


def decode_repaired(text: str, repairs: list[str]) -> Any:  # noqa: ANN401 - any JSON value
    """As :func:`decode`; commas before a closing bracket are left out where that helps."""
    try:
        return decode(text)
    except Unreadable:
        repaired_text = _TRAILING_COMMA.sub(lambda match: match[1] or "", text)
        if repaired_text == text:
            raise
        value = decode(repaired_text)
        note(repairs, "a trailing comma")
        return value


def objects(text: str, repairs: list[str]) -> list[Any]:
    """The JSON value that is the whole of ``text``, or the outermost objects in it.

    For answers that no response can speak in; a judge's is read by :mod:`clash.collect.answers`.

    Raises:
        Unreadable: there is none, or one cannot be read.
    """
    inner = body(text)
    try:
        return [decode(inner)]
    except Unreadable:
        values = [decode_repaired(inner[s.start : s.end], repairs) for s in top_level(inner)]
    if not values:
        raise Unreadable("the answer contains no JSON")
    return values


def is_object(text: str) -> bool:
    """Whether the whole of ``text`` is one JSON object, and nothing else."""
    try:
        return isinstance(decode(body(text)), dict)
    except Unreadable:
        return False


def note(repairs: list[str], text: str) -> None:
    """Add a repair, once."""
    if text not in repairs:
        repairs.append(text)


@lru_cache(maxsize=1024)
def folded_key(key: str) -> str:
    """What two spellings of one key have in common."""
    return unicodedata.normalize("NFKC", key).strip().casefold()


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    _check_differ(tuple([key for key, _ in pairs]))
    return dict(pairs)


def _check_differ(keys: tuple[str, ...]) -> None:
    if not _all_differ(keys):
        raise Unreadable("the answer is not valid JSON: a key appears twice")


@lru_cache(maxsize=256)
def _all_differ(keys: tuple[str, ...]) -> bool:
    return len(set(map(folded_key, keys))) == len(keys)


def _refuse_constant(name: str) -> Any:  # noqa: ANN401 - the hook's type
    raise Unreadable(f"the answer is not valid JSON: {name} is no number")


_STRICT = json.JSONDecoder(object_pairs_hook=_without_duplicates, parse_constant=_refuse_constant)
"""One for all texts: ``json.loads`` makes a decoder for each."""
