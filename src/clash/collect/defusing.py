"""Defuse responses: nothing can close their delimiters, and commands to the judge are marked.

Pure. An imitated delimiter is recognised by its looks: fullwidth and look-alike letters are letters.
Possible prompt injections are found by rules of ten languages, which know common and clumsy ways;
a clever attack passes them. Rates of both: ``docs/blinding.md``.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING

from clash.collect.appeal_rules import CUES, RULES
from clash.collect.looks import offsets, read
from clash.collect.normalise import normalise
from clash.collect.sentences import one_line, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.collect.appeal_rules import AppealRules
    from clash.collect.sentences import Span

_DELIMITER = re.compile(
    r"<(?=\s{0,20}(?:/\s{0,20})?"
    r"(?:responses?|prompt|conversation|criteria|system|judge|reference|task)(?![a-z\d]))"
)
# Across lines, where the rules read one sentence at a time.
_FORGED_RANKING = re.compile(r'"(?:final)?ranking"\s{0,20}:[\s\[{"]{1,40}a\d{1,3}\b[^\n]{0,200}')


def defuse(text: str, nonce: str, label: str, flags: list[str]) -> str:
    """``text`` with nothing in it that could close its delimiters, and with commands marked.

    The words stay readable: an angle bracket becomes a single quotation bracket, and text that
    possible prompt injection is put in brackets that the judge is told never to follow.

    Args:
        text: a response.
        nonce: the code in its delimiters, which is hidden where the text holds it.
        label: of the response, for the flags.
        flags: what was defused is appended.
    """
    if nonce in text:
        text = text.replace(nonce, "·" * len(nonce))
        flags.append(f"{label}: holds the nonce")
    looks = read(text)
    brackets = _delimiters(text, looks)
    if brackets:
        text = _replace_brackets(text, brackets)
        flags.append(f"{label}: imitates a delimiter")
    # A bracket that was replaced looks as before, so ``looks`` still holds.
    spans = _appeals(text, looks)
    if spans:
        first = text[slice(*spans[0])].strip()
        flags.append(f"{label}: possible prompt injection ({first[:40]!r})")
    return _mark(text, spans)


def defuse_delimiters(text: str) -> str:
    """``text`` as a page may show it: nothing hidden, and no imitation of a delimiter."""
    visible, _ = normalise(text)
    return _replace_brackets(visible, _delimiters(visible, read(visible)))


def _appeals(text: str, looks: str) -> list[Span]:
    """Possible prompt injections: whole sentences, and rankings in the judge's form."""
    spans = [match.span() for match in _FORGED_RANKING.finditer(looks)]
    spans += [
        span for span, languages in _candidates(looks) if _speaks(looks[slice(*span)], languages)
    ]
    if not spans:
        return []
    sources = offsets(text)
    sentence_spans = [_trim(text, sources[start], sources[end - 1] + 1) for start, end in spans]
    return _merge(sentence_spans)


def _candidates(looks: str) -> Iterator[tuple[Span, set[AppealRules]]]:
    """The sentences with a cue, and the languages whose rules are to be tried."""
    cues = sorted(CUES.find(looks), key=itemgetter(0))
    if not cues:
        return
    number = 0
    for start, end in split_sentences(looks):
        languages: set[AppealRules] = set()
        while number < len(cues) and cues[number][0] < end:
            languages.update(cues[number][1])
            number += 1
        if languages:
            yield (start, end), languages


def _speaks(sentence: str, languages: set[AppealRules]) -> bool:
    return RULES.fits(languages, one_line(sentence))


def _delimiters(text: str, looks: str) -> list[int]:
    """Indices of angle brackets, or of what looks like one, that begin an imitated delimiter."""
    if "<" not in looks:
        return []
    matches = list(_DELIMITER.finditer(looks))
    sources = offsets(text) if matches else []
    return [sources[match.start()] for match in matches]


def _replace_brackets(text: str, brackets: list[int]) -> str:
    characters = list(text) if brackets else []
    for index in brackets:
        characters[index] = "‹"
    return "".join(characters) or text


def _trim(text: str, start: int, end: int) -> Span:
    sentence = text[start:end]
    return start + len(sentence) - len(sentence.lstrip()), end - len(sentence) + len(
        sentence.rstrip()
    )


def _merge(spans: list[Span]) -> list[Span]:
    """The spans in order, with those that overlap united."""
    union: list[Span] = []
    for start, end in sorted(spans):
        if union and start < union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


def _mark(text: str, spans: list[Span]) -> str:
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], f"⟦{text[start:end]}⟧"]
        last = end
    return "".join([*parts, text[last:]])
