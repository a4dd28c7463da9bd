"""Rules that read sentences in ten languages: how they are written, compiled and searched.

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
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import ahocorasick_rs

from clash.collect.looks import look

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

_SLOT = re.compile(r"<[a-zA-Z]+>")
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\[\\])*\]|\(\?(?:[a-z]*:|<?[=!])|[?*+]\??|\{\d*(?:,\d*)?\}\??|.",
    re.DOTALL,
)
_QUANTIFIER = re.compile(r"[?*+]\??|\{\d*(?:,\d*)?\}\??")
_DIGIT = re.compile(r"\d")
_ZEROS = str.maketrans("123456789", "000000000")
_MOST_WORDS = 50
"""So many spellings of one piece of a rule are looked for at most."""


@dataclass(frozen=True, slots=True, eq=False)
class LanguageRules:
    """The rules of one language on one subject; a sentence that one of them fits is a finding.

    Attributes:
        rules: compiled, for sentences by their looks.
    """

    rules: tuple[re.Pattern[str], ...]


class _IndexedRule(NamedTuple):
    """A rule, and further sets of words of which a text that it fits holds one each, as bits."""

    language: LanguageRules
    pattern: re.Pattern[str]
    masks: tuple[int, ...]


class RuleIndex:
    """Which rules of many languages may fit a sentence, by one scan for words that every match holds.

    Nearly no sentence holds the words of any rule, and to try a rule takes as long as this scan.

    Args:
        languages: rules in the form of :func:`compile_rule`.
    """

    def __init__(self, languages: Iterable[LanguageRules]) -> None:
        numbers: dict[str, int] = {}
        self._by_word: list[list[_IndexedRule]] = []
        self._always: list[_IndexedRule] = []
        for language in languages:
            for pattern in language.rules:
                # Those that tell most come first.
                first, *further = sorted(
                    needed_words(pattern.pattern), key=lambda words: -min(map(len, words))
                ) or [frozenset[str]()]
                for word in frozenset().union(first, *further):
                    if word not in numbers:
                        numbers[word] = len(numbers)
                        self._by_word.append([])
                masks = tuple(sum(1 << numbers[word] for word in words) for words in further)
                rule = _IndexedRule(language, pattern, masks)
                for numbered_rule in [self._by_word[numbers[word]] for word in first] or [
                    self._always
                ]:
                    numbered_rule.append(rule)
        self._bits = [1 << number for number in range(len(numbers))]
        self._words = ahocorasick_rs.AhoCorasick(list(numbers))

    def fits(self, languages: Container[LanguageRules], sentence: str) -> bool:
        """Whether a rule of one of ``languages``, all of which are in the index, fits ``sentence``."""
        is_ascii = sentence.isascii()
        digits_alike = sentence.translate(_ZEROS) if is_ascii else _DIGIT.sub("0", sentence)
        matches = self._words.find_matches_as_indexes(digits_alike, overlapping=True)
        numbers = {match[0] for match in matches}
        present = 0
        for number in numbers:
            present |= self._bits[number]
        rules = chain(self._always, *map(self._by_word.__getitem__, numbers))
        # A loop in a loop takes two thirds of the time of any() of all().
        for language, pattern, masks in rules:
            if language in languages:
                for mask in masks:
                    if not present & mask:
                        break
                else:
                    if pattern.search(sentence) is not None:
                        return True
        return False


def needed_words(source: str) -> list[frozenset[str]]:
    """Sets of words; every text that ``source``, a rule, fits holds a word of each set.

    Every digit of the text and of the words counts as a zero. What a rule can do without gives no set,
    nor does what has too many words or one too short to tell anything.
    """
    pieces = [match[0] for match in _PIECE.finditer(source)]
    pieces.reverse()
    return _needs_of_choice(pieces)


def _needs_of_choice(pieces: list[str]) -> list[frozenset[str]]:
    """The words needed by everything up to the end of the group; takes ``pieces`` from the end."""
    branches = [_needs_of_sequence(pieces)]
    while pieces and pieces.pop() == "|":
        branches.append(_needs_of_sequence(pieces))
    if len(branches) == 1:
        return branches[0]
    if not all(branches):
        return []
    # Of each branch the set that tells most.
    choice = (max(needs, key=lambda words: min(map(len, words))) for needs in branches)
    return [frozenset().union(*choice)]


def _needs_of_sequence(pieces: list[str]) -> list[frozenset[str]]:
    needs: list[frozenset[str]] = []
    run = {""}
    while pieces and pieces[-1] not in ("|", ")"):
        piece = pieces.pop()
        inner: list[frozenset[str]] = []
        if piece.startswith("(?"):
            inner = _needs_of_choice(pieces)
        quantifier = pieces.pop() if pieces and _QUANTIFIER.fullmatch(pieces[-1]) else ""
        is_optional = quantifier[:1] in ("?", "*") or quantifier.startswith(("{0", "{,"))
        characters = () if is_optional else _characters(piece)
        if inner and not is_optional and piece == "(?:":
            needs += inner
        longer = {word + character for word in run for character in characters}
        if 0 < len(longer) <= _MOST_WORDS:
            run = longer
        if not characters or quantifier or len(longer) > _MOST_WORDS:
            needs.append(frozenset(run))
            run = {""}
    needs.append(frozenset(run))
    return [words for words in needs if all(map(_tells, words))]


def _characters(piece: str) -> tuple[str, ...]:
    """What a piece stands for, one character each; none where that is a group or too much."""
    if piece == "(":
        raise ValueError("write (?:…) in rules")
    if piece == r"\d":
        return ("0",)
    if len(piece) == 2 and piece[0] == "\\":
        return () if piece[1].isalnum() else (piece[1],)
    if len(piece) > 1:
        is_list = piece[0] == "[" and piece[1] != "^" and not {"-", "\\"} & set(piece)
        return tuple({_DIGIT.sub("0", character) for character in piece[1:-1]}) if is_list else ()
    return () if piece in ".^$" else (_DIGIT.sub("0", piece),)


def _tells(word: str) -> bool:
    """Whether a word is rare enough to look for: two letters, or one of a script with many."""
    return len(word) > 1 or not word.isascii()


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
