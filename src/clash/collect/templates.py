"""The templates of prompts: ``prompts/*.md``, with ``$name`` where a field is filled in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from clash import assets
from clash.documents import read_text
from clash.errors import ConfigError, one_of
from clash.files.inputs import files_in

if TYPE_CHECKING:
    from collections.abc import Mapping

_TURN_NAMES = ("turns", "user.system", "user.next")
"""Templates that only a run with conversations of several turns needs, and records."""
RANKING_NAMES = (
    "judge.system",
    "judge.user",
    "answer.scores",
    "answer.ranking",
    "ballot",
    "ties.allowed",
    "ties.forbidden",
    "reask",
    "criteria.system",
    "criteria.user",
    *_TURN_NAMES,
    "names",
)
TEXT_NAMES = (
    "text.system",
    "text.user",
    "answer.label",
    "answer.score",
    "ballot",
    "reask",
    "criteria.system",
    "criteria.user",
    *_TURN_NAMES,
)
"""Of runs in which each text is judged by itself."""
NAMES = tuple(dict.fromkeys((*RANKING_NAMES, *TEXT_NAMES)))
_OF_TURNS = frozenset(_TURN_NAMES)
_OF_NAMES = frozenset({"names"})
"""Those that only a run needs whose judges are told who wrote the responses."""


@dataclass(frozen=True)
class Templates:
    """The templates of a run, read once; ``texts`` goes into the manifest as hashes."""

    texts: Mapping[str, str]

    @classmethod
    def load(cls, folder: str | None = None, *, single: bool = False) -> Templates:
        """The shipped templates, or those of ``folder`` where it has one of the name.

        Args:
            folder: with templates of one's own; of a kind of run that is not this one too.
            single: each text is judged by itself.

        Raises:
            ConfigError: the folder does not exist, or holds a template of an unknown name.
        """
        names = TEXT_NAMES if single else RANKING_NAMES
        texts = {name: read_text(assets.path("prompts", f"{name}.md")) for name in names}
        for file in _files_of(folder):
            if file.stem not in NAMES:
                raise ConfigError(
                    "is not the name of a template", path=file, hint=one_of(file.stem, NAMES)
                )
            if file.stem in names:
                texts[file.stem] = read_text(file)
        return cls(texts)

    @classmethod
    def from_manifest(cls, texts: Mapping[str, str]) -> Templates:
        """The templates of an earlier run; those that did not exist then are the shipped ones."""
        return cls({**cls.load(single="text.user" in texts).texts, **texts})

    def of_run(self, *, has_turns: bool, shows_names: bool) -> Templates:
        """The templates that a run needs."""
        unused_names = (frozenset() if has_turns else _OF_TURNS) | (
            frozenset() if shows_names else _OF_NAMES
        )
        return Templates({k: text for k, text in self.texts.items() if k not in unused_names})

    def render(self, name: str, fields: Mapping[str, str]) -> str:
        """Fill in a template.

        Raises:
            ConfigError: it names a field that does not exist.
        """
        try:
            return Template(self.texts[name]).substitute(fields).strip()
        except (KeyError, ValueError) as error:
            raise ConfigError(
                f"the template {name} cannot be filled in ({error})",
                hint=f"fields are {', '.join('$' + f for f in fields)}; write $$ for a dollar sign",
            ) from None


def _files_of(folder: str | None) -> list[Path]:
    if folder is None:
        return []
    path = Path(folder)
    if not path.is_dir():
        raise ConfigError("is not a folder", path=path, field="templates")
    return [file for file in files_in(path, ".md") if file.name.lower() != "readme.md"]
