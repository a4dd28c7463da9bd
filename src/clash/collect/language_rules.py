"""Rules that read sentences of ten languages: how they are written, compiled and looked for.

A rule is a regular expression for text by its looks (:mod:`clash.collect.looks`), so that accents,
case and look-alike letters need no care in it. ``<word>`` in a rule is a slot: a piece that several
rules share, which may have slots in turn. All repetition in a rule is bounded, and it reads one
sentence of bounded length, so its time is bounded too.

Two modules hold rules: :mod:`clash.collect.authorship_rules` (which model wrote this?) and
:mod:`clash.collect.appeal_rules` (is this a possible prompt injection?). Both give each language a cue, which
is cheap to look for and part of every sentence that a rule fits, and try the rules only where it is
found. To add a language, add one block to each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.collect.looks import look

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_SLOT = re.compile(r"<[a-zA-Z]+>")


@dataclass(frozen=True, slots=True, eq=False)
class LanguageRules:
    """The rules of one language on one subject; a sentence that one of them fits is a finding.

    Attributes:
        rules: compiled, for sentences by their looks.
    """

    rules: tuple[re.Pattern[str], ...]


def compile_rules(sources: Iterable[str], slots: Mapping[str, str]) -> tuple[re.Pattern[str], ...]:
    """Each of ``sources`` as :func:`compile_rule` compiles it."""
    return tuple(compile_rule(source, slots) for source in sources)


def compile_rule(source: str, slots: Mapping[str, str]) -> re.Pattern[str]:
    """The pattern of ``source``, for text by its looks.

    Args:
        source: a regular expression with slots.
        slots: what each slot stands for, by the slot with its brackets.
    """
    while (slot := _SLOT.search(source)) is not None:
        source = source.replace(slot[0], slots[slot[0]])
    return re.compile(look(source))


def one_of(words: Iterable[str]) -> str:
    """One of ``words``, the longest that fits, as a regular expression.

    The words are a tree: those that begin alike share the beginning, so that at most letters of a
    text, one step tells that none begins there. A blank may be missing or a hyphen.
    """
    endings: dict[str, list[str]] = {}
    for word in words:
        endings.setdefault(word[:1], []).append(word[1:])
    may_end = endings.pop("", None) is not None
    branches = [_step(first) + one_of(ending) for first, ending in endings.items()]
    if not branches:
        return ""
    choice = branches[0] if len(branches) == 1 and not may_end else f"(?:{'|'.join(branches)})"
    return f"{choice}?" if may_end else choice


def _step(character: str) -> str:
    return "[ -]?" if character == " " else re.escape(character)
