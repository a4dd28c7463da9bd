"""The public data sets that clash loads by name."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, model_validator

from clash.documents import read_yaml, validate
from clash.errors import InputError, one_of

_FILE = Path(__file__).with_name("catalogue.yaml")


class Reference(BaseModel):
    """A published agreement with human labels: the share of pairs on which a system agrees."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    value: float
    source: str


class CatalogueEntry(BaseModel):
    """A data set and where its publisher keeps it.

    Attributes:
        hub: repository on the data hub; or
        web: the address of the folder that holds the files; or
        page: where a person gets them, after agreeing to terms.
        revision: commit of the repository; ``main`` is resolved when it is pulled.
        files: patterns of paths in the repository, or paths under ``web``.
        published: figures of other work on it, shown beside those of a run.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    aliases: list[str] = []
    title: str
    what: str
    loader: str
    hub: str | None = None
    web: str | None = None
    page: str | None = None
    revision: str
    files: list[str]
    licence: str
    citation: str
    published: list[Reference] = []

    @model_validator(mode="after")
    def _is_somewhere(self) -> Self:
        if [self.hub, self.web, self.page].count(None) != 2:
            raise ValueError("expected one of hub, web and page")
        return self

    @property
    def source(self) -> str:
        """Where the data come from, for people to read."""
        return f"{self.hub or self.web or self.page} @ {self.revision[:12]}"

    @property
    def how_to_get(self) -> str:
        """What to do for a copy on this machine."""
        if self.page is None:
            return f"clash datasets pull {self.name}"
        files = ", ".join(self.files)
        return f"get {files} at {self.page}, then: clash datasets convert FILE --from {self.name}"


@cache
def datasets() -> tuple[CatalogueEntry, ...]:
    """Every data set of the catalogue."""
    document = read_yaml(_FILE)
    return tuple(
        validate(CatalogueEntry, document.at(index)) for index in range(len(document.value))
    )


def find_in_text(text: str) -> CatalogueEntry | None:
    """The data set whose name or alias is in ``text``, such as the name of a file of it."""
    plain = _plain(text)
    names = ((n, dataset) for dataset in datasets() for n in (dataset.name, *dataset.aliases))
    matches = [(len(n), dataset) for n, dataset in names if _plain(n) in plain]
    return max(matches, key=lambda pair: pair[0])[1] if matches else None


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())


def find(name: str) -> CatalogueEntry:
    """The data set of that name.

    Raises:
        InputError: there is none.
    """
    for dataset in datasets():
        if name in (dataset.name, *dataset.aliases):
            return dataset
    names = [dataset.name for dataset in datasets()]
    raise InputError(
        f"no file and no data set is called {name!r}",
        hint=one_of(name, names, beside="or the path of a file"),
    )
