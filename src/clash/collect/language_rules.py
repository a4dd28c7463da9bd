"""Regular expressions of many words: as trees, and with slots for pieces that several share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clash.collect.looks import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SLOT = re.compile(r"<[a-zA-Z]+>")


def pattern(source: str, slots: Mapping[str, str]) -> re.Pattern[str]:
    """The pattern of ``source``, for text by its looks.

    ``<word>`` in it stands for a piece of ``slots``, which may have slots in turn.
    """
    while (slot := _SLOT.search(source)) is not None:
        source = source.replace(slot[0], slots[slot[0]])
    return re.compile(look(source))


def tree(words: Iterable[str]) -> str:
    """One of ``words``, the longest that fits, as a regular expression.

    Words that begin alike share the beginning: at most letters of a text, one step tells that none
    begins there. A blank may be missing or a hyphen.
    """
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[:1], []).append(word[1:])
    ends = rests.pop("", None) is not None
    branches = [_step(first) + tree(rest) for first, rest in rests.items()]
    if not branches:
        return ""
    choice = branches[0] if len(branches) == 1 and not ends else f"(?:{'|'.join(branches)})"
    return f"{choice}?" if ends else choice


def _step(character: str) -> str:
    return "[ -]?" if character == " " else re.escape(character)
