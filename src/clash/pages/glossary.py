"""The terms of art of reports, each in a sentence or two, and text in which they explain themselves."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from clash.escape import for_html
from clash.wording import with_whole_figures

if TYPE_CHECKING:
    from markupsafe import Markup


_BLANKS = re.compile(r"(\s+)")


@dataclass(frozen=True)
class Term:
    """A term, what it means in plain words, and the other forms that it takes in a text."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()


def _read() -> dict[str, Term]:
    text = Path(__file__).with_name("glossary.toml").read_text(encoding="utf-8")
    return {
        name: Term(name, definition["meaning"], tuple(definition.get("also", ())))
        for name, definition in tomllib.loads(text).items()
    }


GLOSSARY = _read()
"""Every term by its name, in the order of the file."""


def define(name: str) -> Term:
    """The term of this name.

    Raises:
        KeyError: the glossary has no such term; a page that asks for one has a defect.
    """
    return GLOSSARY[name]


@cache
def _forms() -> tuple[re.Pattern[str], dict[str, Term]]:
    forms = {form.lower(): term for term in GLOSSARY.values() for form in (term.name, *term.also)}
    longest_first = sorted(forms, key=len, reverse=True)
    words = "|".join(map(re.escape, longest_first))
    return re.compile(rf"(?<![\w-])(?:{words})(?![\w-])", re.IGNORECASE), forms


def gloss(text: str, seen_terms: set[str] | None = None) -> Markup:
    """Text as HTML: words between backticks are code, terms of the glossary explain themselves.

    Args:
        text: plain text; it is escaped.
        seen_terms: names of terms that the reader has met already, which stay plain text; those
            met here are added. By default each term is explained once in this text.
    """
    from markupsafe import Markup

    terms = set() if seen_terms is None else seen_terms
    # Every part is escaped; each second one stood between backticks.
    parts = [
        f"<code>{for_html(part)}</code>" if n % 2 else _explain(part, terms)
        for n, part in enumerate(text.split("`"))
    ]
    return Markup("".join(parts))  # noqa: S704


def _explain(text: str, terms: set[str]) -> str:
    pattern, forms = _forms()
    parts, last = [], 0
    for match in pattern.finditer(text):
        term = forms[match[0].lower()]
        if term.name not in terms:
            terms.add(term.name)
            parts += [for_html(text[last : match.start()]), button(term, match[0])]
            last = match.end()
    return "".join([*parts, for_html(text[last:])])


def unbroken(text: str) -> Markup:
    """Text as HTML whose names (words with a hyphen or slash) and figures break only if too long."""
    from markupsafe import Markup

    parts = [
        f'<span class="unbroken">{for_html(part)}</span>'
        if "-" in part or "/" in part
        else for_html(part)
        for part in _BLANKS.split(with_whole_figures(text))
    ]
    return Markup("".join(parts))  # noqa: S704 - every part is escaped


def button(term: Term, words: str) -> str:
    """The words as a button that explains the term; ``pages.js`` shows the meaning."""
    meaning = escape(term.meaning)
    return f'<button type="button" class="term" aria-description="{meaning}">{for_html(words)}</button>'
