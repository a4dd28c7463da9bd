"""Whether the model that answered is the one that was asked."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from clash.config import is_same_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST, _LONGEST = 3, 80


def swapped_models(names: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
    """Models that another one answered for, by the model that was asked.

    Args:
        names: of each answer, the model asked and the model that its server names.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for asked, served in set(names):
        if served and not is_same_model(asked, served):
            found[asked].add(served)
    return {asked: sorted(found[asked]) for asked in sorted(found)}


def notes(swaps: Mapping[str, list[str]]) -> list[str]:
    """A line for each model that another one answered for."""
    return [
        f"{asked} was asked, and the server names {_first_names(served)} as the model that answered"
        for asked, served in swaps.items()
    ]


def _first_names(names: list[str]) -> str:
    """A few of ``names``, each of a length that fits a line: a server makes up what it likes."""
    shown = ", ".join(
        name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in names[:_MOST]
    )
    return f"{shown} and {len(names) - _MOST} more" if len(names) > _MOST else shown
