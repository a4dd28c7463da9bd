"""The parts of a text that baselines measure: words, terms, sentences, paragraphs.

No LLM, and no word list beyond the function words of English.
"""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"\w+")
_LOWER_WORDS = bytes(
    ord(chr(code).lower()) if code < 128 and chr(code).isalnum() else ord(" ")
    for code in range(256)
)
"""Letters of ASCII in lower case, and a blank for all that is no part of a word."""
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_CODE_BLOCK = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MARKER = re.compile(r"\n[ \t]*(?:[-*+•]|#{1,6}|\d{1,3}[.)])[ \t]+")
"""Of a list or a heading. From line feed to line feed, which takes a fifth of the time of any line's start."""
_STOPS = "。！？"
_SENTENCE_END = re.compile(r"(?<=[.!?…。！？])\s+|\n+|(?<=[。！？])")
_SPACED_SENTENCE_END = re.compile(r"\s(?:(?<=[.!?…]\s)|(?<=\n))\s*")
"""The same where no stop ends a sentence without a blank, three times as fast."""
_LAST_CHARACTERS = re.compile(r"[.!?…\n](?:(?<=\n)\s*|\s+)")
"""The same with the stop, three times as fast again."""
_BLANK_LINES = re.compile(r"\n\s*\n")
_NOT_PLURAL = ("ss", "us", "is")

_FUNCTION_WORDS = """
a about above after again all also am an and any are as at be because been before being below
between both but by can could did do does doing down during each either else ever every few for
from further had has have having he her here hers him his how i if in into is it its itself
just less let many may me might mine more most much must my neither no nor not now of off on
once one only onto or other our ours out over own per rather same shall she should since so
some such than that the their theirs them then there these they this those though through to
too under until up upon us very was we were what when where whether which while who whom whose
why will with within without would yes yet you your yours
d ll m re s t ve don doesn isn aren wasn weren won can couldn wouldn shouldn didn hasn haven
answer ask describe explain give help make please show tell want write
"""
FUNCTION_WORDS = frozenset(_FUNCTION_WORDS.split())
"""Words that say nothing about a subject; the last line is how prompts begin."""


@lru_cache(maxsize=64)
def count_words(text: str) -> int:
    """Words between white space; each Chinese or Japanese character is a word."""
    if text.isascii() or not _CJK.search(text):
        return len(text.split())
    return len(_CJK.sub(" ", text).split()) + len(_CJK.findall(text))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A lower-case word without its commonest English endings; words of 3 letters stay."""
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(_NOT_PLURAL):
        word = word[:-1]
    for ending in ("ing", "ed", "ly"):
        if len(word) >= len(ending) + 4 and word.endswith(ending):
            word = word[: -len(ending)]
            word = word[:-1] if word[-1] == word[-2] and word[-1] not in "lsz" else word
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def terms(text: str) -> dict[str, str]:
    """The content words of ``text``: a stem each, and the word it was first seen as."""
    words: dict[str, str] = {}
    for word in _words(text):
        if word not in FUNCTION_WORDS:
            words.setdefault(stem(word), word)
    return words


@lru_cache(maxsize=64)
def stems(text: str) -> frozenset[str]:
    """The stems of :func:`terms`, where the words do not matter.

    Kept for a while: several baselines look at the same texts one after the other.
    """
    return frozenset(map(_STEMS.__getitem__, _words(text))) - {""}


class _Stems(dict[str, str]):
    """The stem of each word met so far; nothing for a function word."""

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_WORDS:
            self.clear()
        self[word] = "" if word in FUNCTION_WORDS else stem(word)
        return self[word]


_MOST_WORDS = 65536
_STEMS = _Stems()


def _words(text: str) -> list[str]:
    if text.isascii():
        return text.encode().translate(_LOWER_WORDS).decode().split()  # a fifth of the time
    # An underscore is part of a word for the pattern, which without a set is twice as fast.
    return _WORD.findall(text.lower().replace("_", " "))


def prose(text: str) -> str:
    """``text`` without its code blocks and without the marks of lists and headings."""
    plain = _CODE_BLOCK.sub("\n", text) if "```" in text else text
    return _MARKER.sub("\n", f"\n{plain}")[1:]


def sentences(plain: str) -> list[str]:
    """The sentences of :func:`prose`; a line's end ends a sentence too."""
    end = _SPACED_SENTENCE_END if ends_at_blanks(plain) else _SENTENCE_END
    return [part for part in end.split(plain) if part.strip()]


def count_sentences(plain: str) -> int:
    """How many :func:`sentences` there are."""
    if not ends_at_blanks(plain):
        return len(sentences(plain))
    text = plain.strip()
    return len(_LAST_CHARACTERS.findall(text)) + 1 if text else 0


def ends_at_blanks(plain: str) -> bool:
    """Whether no stop in ``plain`` ends a sentence without a blank behind it."""
    return plain.isascii() or not any(stop in plain for stop in _STOPS)


def paragraphs(plain: str) -> list[str]:
    """The blocks of :func:`prose`, as blank lines part them."""
    return [part for part in _BLANK_LINES.split(plain) if part.strip()]
