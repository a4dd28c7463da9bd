"""Whether the model that answered is the one that was asked."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SNAPSHOT = re.compile(r"(?:-(?:latest|\d{4}-\d{2}-\d{2}|\d{8}|\d{2}-\d{4}|\d{2}-\d{2}|\d{3,4}))+$")
"""Dates and numbers of a version: ``-2026-01-01``, ``-20260101``, ``-0613``, ``-001``."""
_MOST, _LONGEST = 3, 80
_VARIANT = re.compile(r"[:@][\w.-]+$")
"""OpenRouter's ``:free``, an engine's ``@version``."""


def is_same_model(asked: str, served: str) -> bool:
    """Whether ``served`` is a name of the model ``asked``: a snapshot, a variant, or as it is.

    Args:
        asked: as in a configuration, ``provider/model``.
        served: as the server names it, with a vendor or without.
    """
    (base, variant), (other, tag) = _parts(asked), _parts(served)
    # Ollama's `qwen3:4b` is not `qwen3:14b`; OpenRouter leaves `:free` out of its answers.
    return base == other and (variant == tag or not (variant and tag))


def _parts(name: str) -> tuple[str, str]:
    """The last part of a name without its version, and its variant."""
    last = name.lower().rpartition("/")[2].replace(".", "-").replace("_", "-")
    variant = _VARIANT.search(last)
    return _SNAPSHOT.sub("", _VARIANT.sub("", last)), variant[0] if variant else ""


def swapped(names: Iterable[tuple[str, str | None]]) -> dict[str, list[str]]:
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
        f"{asked} was asked, and the server names {_some(served)} as the model that answered"
        for asked, served in swaps.items()
    ]


def _some(names: list[str]) -> str:
    """A few of ``names``, each of a length that fits a line: a server makes up what it likes."""
    shown = ", ".join(
        name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in names[:_MOST]
    )
    return f"{shown} and {len(names) - _MOST} more" if len(names) > _MOST else shown
