"""Responses without what could close their delimiters, and with marks where they command the judge.

Pure. What imitates a delimiter is told by its looks: fullwidth and look-alike letters are letters.
What speaks to the judge is found by rules of ten languages, which know the common and clumsy ways;
a clever attack passes them. Rates of both: ``docs/blinding.md``.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from clash.collect.appeal_rules import CUES
from clash.collect.looks import offsets, read
from clash.collect.normalise import normalise
from clash.collect.sentences import BLANKS, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clash.collect.appeal_rules import Language
    from clash.collect.sentences import Span

_DELIMITER = re.compile(
    r"<(?=\s{0,20}(?:/\s{0,20})?"
    r"(?:responses?|prompt|conversation|criteria|system|judge|reference|task)(?![a-z\d]))"
)
# Across lines, where the rules read one sentence at a time.
_FORGED_RANKING = re.compile(r'"(?:final)?ranking"\s{0,20}:[\s\[{"]{1,40}a\d{1,3}\b[^\n]{0,200}')


def defuse(text: str, nonce: str, label: str, flags: list[str]) -> str:
    """``text`` with nothing in it that could close its delimiters or command the judge.

    The words stay readable: an angle bracket becomes a single quote bracket, and what speaks to
    the judge is put in brackets that the judge is told never to follow.
    """
    if nonce in text:
        text = text.replace(nonce, "·" * len(nonce))
        flags.append(f"{label}: holds the nonce")
    shown = read(text)
    brackets = _delimiters(text, shown)
    if brackets:
        text = _replaced(text, brackets)
        flags.append(f"{label}: imitates a delimiter")
    # A bracket that was replaced looks as it did.
    spans = _appeals(text, shown)
    if spans:
        first = text[slice(*spans[0])].strip()
        flags.append(f"{label}: speaks to the judge ({first[:40]!r})")
    return _bracketed(text, spans)


def defuse_delimiters(text: str) -> str:
    """``text`` as a page may show it: nothing hidden, and no imitation of a delimiter."""
    visible, _ = normalise(text)
    return _replaced(visible, _delimiters(visible, read(visible)))


def appeals(text: str) -> list[Span]:
    """What speaks to the judge in ``text``: whole sentences, and rankings in the judge's form."""
    return _appeals(text, read(text))


def _appeals(text: str, shown: str) -> list[Span]:
    spans = [match.span() for match in _FORGED_RANKING.finditer(shown)]
    spans += [
        span for span, languages in _candidates(shown) if _speaks(shown[slice(*span)], languages)
    ]
    if not spans:
        return []
    sources = offsets(text)
    visible = [_trimmed(text, sources[start], sources[end - 1] + 1) for start, end in spans]
    return _merged(visible)


def _candidates(shown: str) -> Iterator[tuple[Span, set[Language]]]:
    """The sentences with a cue, and the languages whose rules are to be tried."""
    cues = sorted(CUES(shown), key=itemgetter(0))
    if not cues:
        return
    number = 0
    for start, end in sentences(shown):
        languages: set[Language] = set()
        while number < len(cues) and cues[number][0] < end:
            languages.update(cues[number][1])
            number += 1
        if languages:
            yield (start, end), languages


def _speaks(sentence: str, languages: Iterable[Language]) -> bool:
    words = BLANKS.sub(" ", sentence).strip(" ")
    return any(rule.search(words) for language in languages for rule in language.rules)


def _delimiters(text: str, shown: str) -> list[int]:
    """Where an angle bracket, or what looks like one, begins what looks like a delimiter."""
    if "<" not in shown:
        return []
    matches = list(_DELIMITER.finditer(shown))
    sources = offsets(text) if matches else []
    return [sources[match.start()] for match in matches]


def _replaced(text: str, brackets: list[int]) -> str:
    characters = list(text) if brackets else []
    for at in brackets:
        characters[at] = "‹"
    return "".join(characters) or text


def _trimmed(text: str, start: int, end: int) -> Span:
    sentence = text[start:end]
    return start + len(sentence) - len(sentence.lstrip()), end - len(sentence) + len(
        sentence.rstrip()
    )


def _merged(spans: list[Span]) -> list[Span]:
    """In order, and those that overlap made one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _bracketed(text: str, spans: list[Span]) -> str:
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], f"⟦{text[start:end]}⟧"]
        last = end
    return "".join([*parts, text[last:]])
