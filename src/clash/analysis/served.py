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
    substitutes: defaultdict[str, set[str]] = defaultdict(set)
    for model, served_model in set(names):
        if served_model and not is_same_model(model, served_model):
            substitutes[model].add(served_model)
    return {model: sorted(substitutes[model]) for model in sorted(substitutes)}


def notes(swaps: Mapping[str, list[str]]) -> list[str]:
    """A line for each model that another one answered for."""
    return [
        f"{model} was asked, and the server names {_first_names(served_models)} as the model that answered"
        for model, served_models in swaps.items()
    ]


def _first_names(names: list[str]) -> str:
    """A few of ``names``, each of a length that fits a line: a server makes up what it likes."""
    names_text = ", ".join(
        name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…" for name in names[:_MOST]
    )
    return f"{names_text} and {len(names) - _MOST} more" if len(names) > _MOST else names_text
