"""The terms of art of reports, each in a sentence or two; ``docs/glossary.md`` shows the same."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Term:
    """A term and what it means, in plain words."""

    name: str
    meaning: str

    @property
    def anchor(self) -> str:
        """The id of its definition on a page."""
        return "term-" + "".join(c if c.isalnum() else "-" for c in self.name.lower())


@cache
def _read() -> dict[str, Term]:
    text = Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8")
    return {name: Term(name, meaning) for name, meaning in tomllib.loads(text).items()}


GLOSSARY = _read()
"""Every term by its name, in the order of the file."""


def define(name: str) -> Term:
    """The term of this name.

    Raises:
        KeyError: the glossary has no such term; a page that asks for one has a defect.
    """
    return GLOSSARY[name]
