"""Where a response says, in the first person, which model wrote it or whose model that is.

A text *about* a model or a company is left alone. Each sentence that names one is reduced to its
words with a sign for each name, and read by the rules of ten languages, those with the most users:
a response may be in any of them, whatever the language of the prompt. Names inside a quotation are
somebody else's.

Sentences have a bounded length and only those with a name are read, so the time is linear in the
text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from clash.collect.authorship_rules import CLOSING, LANGUAGES, SALUTATION
from clash.collect.looks import offsets, read
from clash.collect.model_names import names_of
from clash.collect.sentences import BLANKS, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clash.collect.model_names import Kind, Mention, Names
    from clash.collect.sentences import Span

MOST_SENTENCES = 2_000
"""The most sentences with a model's name that are read: a text with more of them is about models."""

_SIGNS: dict[Kind, str] = {"model": "\x01", "plain": "\x02", "maker": "\x03", "company": "\x04"}

_SIGN = re.compile("[\x01-\x04]")
_SIGN_IN_QUOTES = re.compile(r"[\"'\[]([\x01-\x04])[\"'\]]")
_QUOTATION = re.compile(
    r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|「[^」\n]{1,400}」|'
    r"『[^』\n]{1,400}』"
)
_REPORTING = re.compile(
    r"\b(?:say|says|said|answer|answers|answered|reply|replies|replied|claim|claims|claimed|write|"
    r"writes|wrote|print|prints|output|outputs|respond|responds)(?: that)?[:,]? ?$"
)
_LABEL = re.compile(r"^[^\S\n]{0,3}\w[\w .'-]{0,30}:", re.MULTILINE)


@dataclass(frozen=True)
class _Sentence:
    """A sentence that names a model or its maker.

    Attributes:
        words: by their looks, with a sign for each name.
        names: where each sign's name stands in the response.
    """

    words: str
    names: tuple[Span, ...]

    @cached_property
    def signs(self) -> list[int]:
        """Where the signs are in ``words``."""
        return [sign.start() for sign in _SIGN.finditer(self.words)]

    def names_in(self, pattern: re.Pattern[str]) -> Iterator[Span]:
        """The names within each match of ``pattern``, unless the sentence reports what somebody said."""
        for match in pattern.finditer(self.words):
            if not _REPORTING.search(self.words[max(match.start() - 20, 0) : match.start()]):
                first, last = (bisect_left(self.signs, at) for at in match.span())
                yield from self.names[first:last]


def claims(text: str, candidates: Iterable[str] = ()) -> list[Span]:
    """Where ``text`` names its author or its author's maker: spans, in order.

    Args:
        text: a response.
        candidates: ids, which are names as well.
    """
    names = names_of(tuple(sorted(candidates)))
    looks = read(text)
    if next(names.find(looks), None) is None:
        return []
    sentences = list(_sentences(text, names))
    spans = {span for sentence in sentences for span in _author_names(sentence)}
    spans.update(_label(sentences, looks), _signature(sentences, text))
    hints = {span for sentence in sentences for span in _author_names(sentence, hints=True)}
    if hints and (spans or any(rules.self_description.search(looks) for rules in LANGUAGES)):
        spans |= hints
    quotations = _quotations(text)
    return sorted(span for span in spans if not _is_quoted(span, quotations))


def _sentences(text: str, names: Names) -> Iterator[_Sentence]:
    """The sentences of ``text`` that hold a name."""
    number = 0
    for start, end in split_sentences(text):
        piece = text[start:end]
        mentions = list(names.find(read(piece)))
        if not mentions:
            continue
        yield _sentence(piece, start, mentions)
        number += 1
        if number == MOST_SENTENCES:
            return


def _sentence(piece: str, start: int, mentions: Sequence[Mention]) -> _Sentence:
    looks, sources = read(piece), offsets(piece)
    parts, last = [], 0
    for mention in mentions:
        parts += [looks[last : mention.start], _SIGNS[mention.kind]]
        last = mention.end
    words = BLANKS.sub(" ", "".join([*parts, looks[last:]])).strip(" ")
    words = _SIGN_IN_QUOTES.sub(r"\1", words)
    names = tuple(
        (start + sources[mention.start], start + sources[mention.end - 1] + 1)
        for mention in mentions
    )
    return _Sentence(words, names)


def _author_names(sentence: _Sentence, *, hints: bool = False) -> Iterator[Span]:
    """The names that a rule says wrote the response; with ``hints`` by the weaker rules."""
    for language in LANGUAGES:
        if language.cue.search(sentence.words):
            for rule in language.hints if hints else language.rules:
                yield from sentence.names_in(rule)


def _label(sentences: Sequence[_Sentence], looks: str) -> Iterator[Span]:
    """``GPT-4: the answer is 42``, unless other speakers have lines too: that is a dialogue."""
    if len(_LABEL.findall(looks)) == 1 and _LABEL.match(looks.lstrip()):
        first = sentences[0]
        if re.match(r"[\x01\x02] ?:", first.words) and not looks[: first.names[0][0]].strip():
            yield first.names[0]


def _signature(sentences: Sequence[_Sentence], text: str) -> Iterator[Span]:
    """A name alone, after a dash or a closing formula, at the very end."""
    last = sentences[-1]
    start, end = last.names[-1]
    if len(last.names) > 1 or text[end:].strip(" \t\n*_`.!"):
        return
    line = text.rfind("\n", 0, start) + 1
    before = BLANKS.sub(" ", read(text[max(start - 80, 0) : start]))
    alone = re.fullmatch(r"[-\s]*", read(text[line:start])) is not None
    is_signature = CLOSING.search(before) or (re.search(r"- ?$", before) is not None and alone)
    letter = SALUTATION.search(read(text[:80].lstrip()))
    if is_signature and (alone or CLOSING.search(before)) and not (letter and "\x02" in last.words):
        yield start, end


def _quotations(text: str) -> list[Span]:
    """Spans of quotations. A response that is one quotation from end to end quotes nobody."""
    longest = len(text.strip()) - 2
    return [m.span() for m in _QUOTATION.finditer(text) if m.end() - m.start() < longest]


def _is_quoted(name: Span, quotations: Sequence[Span]) -> bool:
    """Whether a name is in a quotation, of which it is not all: I am "Claude"."""
    start, end = name
    number = bisect_left(quotations, (start + 1, 0)) - 1
    if number < 0:
        return False
    quotation_start, quotation_end = quotations[number]
    longer = (quotation_end - quotation_start) - (end - start)
    return end < quotation_end and longer > 3
