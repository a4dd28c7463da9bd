"""Long names, shortened at the front, where models of one vendor look alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_STEP = 6


def short_names(names: Iterable[str], most: int = 30) -> dict[str, str]:
    """Each name in about ``most`` characters: ``openrouter/a/claude-5`` as ``…/claude-5``.

    Two names never become one: where they would, both keep more of their front.
    """
    everyone = list(dict.fromkeys(names))
    room = dict.fromkeys(everyone, most)
    while True:
        short = {name: _short(name, room[name]) for name in everyone}
        uses = Counter(short.values())
        alike = [name for name in everyone if uses[short[name]] > 1]
        if not alike:
            return short
        for name in alike:
            room[name] += _STEP


def _short(name: str, most: int) -> str:
    if len(name) <= most:
        return name
    starts = (position for position, letter in enumerate(name) if letter == "/")
    start = next((s for s in starts if len(name) - s + 1 <= most), None)
    return "…" + (name[-(most - 1) :] if start is None else name[start:])
