"""Names that fit: shortened at the front, and never so that two become alike."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterable

ELLIPSIS = "…"


def short_names(names: Iterable[str], width: int = 30) -> dict[str, str]:
    """Each name in at most ``width`` terminal cells where that can be done.

    A long name loses its beginning, at a ``/`` or ``-`` where it can: ``…/claude-haiku-5.5``. Names
    that would then look alike are shortened in the middle, so that what tells them apart stays; and
    where no shortening tells them apart, they stay whole.
    """
    distinct = list(dict.fromkeys(names))
    texts_by_name = {name: shorten(name, width) for name in distinct}
    doubles = {text for text, n in Counter(texts_by_name.values()).items() if n > 1}
    for text in doubles:
        alike = [name for name in distinct if texts_by_name[name] == text]
        texts_by_name |= _apart(
            alike, width, {texts_by_name[name] for name in distinct if name not in alike}
        )
    return texts_by_name


def shorten(name: str, width: int) -> str:
    """One name in at most ``width`` cells, its beginning replaced by an ellipsis."""
    if cell_len(name) <= width:
        return name
    for separator in "/-":
        at = name.find(separator)
        while at >= 0:
            tail = ELLIPSIS + name[at if separator == "/" else at + 1 :]
            if cell_len(tail) <= width:
                # A mere rest such as "…-1" says less than a cut inside a word.
                if cell_len(tail) * 2 > width:
                    return tail
                break
            at = name.find(separator, at + 1)
    start = len(name)
    while start > 0 and cell_len(ELLIPSIS + name[start - 1 :]) <= width:
        start -= 1
    return ELLIPSIS + name[start:]


def _apart(names: list[str], width: int, other_texts: set[str]) -> dict[str, str]:
    """Names whose ends are alike, with as much of their beginnings as tells them apart."""
    for head in range(1, width - 1):
        texts_by_name = {
            name: name
            if cell_len(name) <= width
            else f"{name[:head]}{ELLIPSIS}{name[head + 1 - width :]}"
            for name in names
        }
        texts = set(texts_by_name.values())
        fits = all(cell_len(text) <= width for text in texts)
        if fits and len(texts) == len(names) and not texts & other_texts:
            return texts_by_name
    return {name: name for name in names}
