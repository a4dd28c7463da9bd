"""The votes files that ship with clash, by name: published votes of real judges."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from clash import assets
from clash.documents import read_yaml, validate

if TYPE_CHECKING:
    from pathlib import Path


class VotesFile(BaseModel):
    """A votes file and where its votes were published.

    Attributes:
        what: its judges and items, in one line.
        command: one worth typing first.
        commit: of the repository that ``source`` is.
        licence: as the source states it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    what: str
    command: str
    source: str
    commit: str
    licence: str
    citation: str


@cache
def votes_files() -> dict[str, VotesFile]:
    """The files by name, in the order of the catalogue."""
    document = read_yaml(assets.path("datasets", "votes", "catalogue.yaml"))
    return {name: validate(VotesFile, document.at(name)) for name in document.value}


def votes_path(name: str) -> Path | None:
    """The path of a file by its name; null where none has it."""
    if name not in votes_files():
        return None
    return assets.path("datasets", "votes", f"{name}.jsonl.gz")
