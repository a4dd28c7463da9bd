"""Split a text into sentences of bounded length, so that reading one takes bounded time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

Span = tuple[int, int]
"""Where a piece of a text begins and ends, as for a slice."""

LONGEST = 600
# A full stop ends a sentence where a blank, a quote or emphasis follows: not in "GPT-4.5".
# All begin with one set of characters, to which the search can leap.
_END = re.compile(r"[.!?…\n。！？।](?:(?<=[.!?…])(?=[\s*_`\"'”»)]|$)|(?<=\n)\n*|(?<=[。！？।]))")


def one_line(text: str) -> str:
    """``text`` with one space for each run of blanks, and none at its ends."""
    return " ".join(text.split())


def split_sentences(text: str) -> Iterator[Span]:
    """The spans of the sentences of ``text``, in order; one longer than :data:`LONGEST` is cut."""
    start = 0
    for end in (*(match.end() for match in _END.finditer(text)), len(text)):
        while start < end:
            yield start, min(end, start + LONGEST)
            start = min(end, start + LONGEST)
