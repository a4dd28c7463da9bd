"""Finds the JSON objects in what a model wrote.

Pure. Fences, prose, thinking and trailing commas are passed over and noted; duplicate keys, NaN and
text that breaks off are refused, since mending them would be guessing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_CHARS = 200_000
"""Answers beyond this are refused unread: nothing we ask for is that long."""

_MAX_STARTS = 100
"""How many opening braces are tried: an answer full of broken ones is not worth more."""

_FENCE = re.compile(r"```(?:json5?|javascript|js)?\s*\n?(.*?)```", re.DOTALL | re.IGNORECASE)
_THINK = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(?=\s*[}\]])")


class Unreadable(ValueError):
    """The text is not what was asked for; the message is the reason."""


def objects(text: str, repairs: list[str]) -> list[Any]:
    """The JSON values at the top level of ``text``: one that is the whole text, or objects in it.

    Args:
        text: what a model wrote.
        repairs: what had to be passed over is added here.

    Raises:
        Unreadable: there is none.
    """
    if len(text) > MAX_CHARS:
        raise Unreadable(f"the answer has {len(text)} characters, more than {MAX_CHARS}")
    body = text.strip().removeprefix("\ufeff")
    if not body:
        raise Unreadable("the answer is empty")
    try:
        return [_loads(body)]
    except ValueError:
        pass
    if _THINK.search(body):
        body = _THINK.sub("", body)
        note(repairs, "thinking before the answer")
    fenced = _FENCE.findall(body)
    found = [value for part in fenced for value in _scan(part, repairs)]
    if found:
        note(repairs, "a code fence around the answer")
    else:
        found = list(_scan(body, repairs))
    if not found:
        raise Unreadable(_why_not_json(body))
    return found


def note(repairs: list[str], text: str) -> None:
    """Add a repair, once."""
    if text not in repairs:
        repairs.append(text)


def _scan(text: str, repairs: list[str]) -> Iterator[dict[str, Any]]:
    """JSON objects in ``text``, passing over the prose around them."""
    found = list(_decode(text))
    first = text.find("{")
    if not found or found[0].start > first:
        # The outermost object is broken: what was found lies inside it, or behind it.
        without = _TRAILING_COMMA.sub("", text)
        mended = list(_decode(without)) if without != text else []
        if mended and mended[0].start == first:
            note(repairs, "a trailing comma")
            text, found = without, mended
    if found and (text[: found[0].start].strip() or text[found[-1].end :].strip()):
        note(repairs, "text around the answer")
    return (part.value for part in found)


@dataclass(frozen=True, slots=True)
class _Part:
    value: dict[str, Any]
    start: int
    end: int


def _decode(text: str) -> Iterator[_Part]:
    decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    at = 0
    for _ in range(_MAX_STARTS):
        start = text.find("{", at)
        if start < 0:
            return
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            at = start + 1
            continue
        yield _Part(value, start, end)
        at = end


def _loads(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constants)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key stands twice")
    return value


def _no_constants(name: str) -> Any:  # noqa: ANN401 - the hook's type
    raise ValueError(f"{name} is not JSON")


def _why_not_json(text: str) -> str:
    if text.count("{") > text.count("}"):
        return "the answer breaks off inside the JSON"
    if "{" in text:
        return "the answer is not valid JSON"
    return "the answer holds no JSON"
