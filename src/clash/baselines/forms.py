"""The form that a prompt asks for, and how closely a response follows it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.baselines.text import (
    FUNCTION_WORDS,
    count_words,
    ends_at_blanks,
    paragraphs,
    prose,
    sentences,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Wish = Callable[[str], "FormCheck"]
    """Looks at a response for one thing that its prompt asked for."""

_NUMBERS = {"a single": 1} | {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
}
_N = rf"(?:\d{{1,4}}|{'|'.join(_NUMBERS)})"

# All of these read a prompt in lower case.
_LIMIT = re.compile(
    r"\b(?:at most|(?:no|not) more than|up to|under|below|within|(?:fewer|less) than|max|exactly|in)"
    rf" (?P<n>{_N})[ -](?P<unit>word|sentence|paragraph|bullet)s?\b(?! each| per)"
)
_CODE = re.compile(
    r"\b(?:write|implement|create|fix|refactor|complete|give|show|build)\b[^.?!\n]{0,60}"
    r"\b(?:function|script|code|program|query|class|regex|command|method|one-liner)\b"
)
_LIST = re.compile(
    r"\bbullet|\bchecklist\b|\bstep[- ]by[- ]step\b|\bnumbered\b|\bas a (?:\w+ )?list\b|"
    rf"\b{_N} (?:\w+ )?(?:tips|ways|ideas|reasons|steps|options|suggestions|names|questions)\b"
)
_JSON = re.compile(
    r"\bjson (?:object|array|list)\b|\b(?:as|in|return|valid|output|only) (?:\w+ )?json\b"
)
_TABLE = re.compile(r"\b(?:as|in|into|make) an? (?:\w+ )?table\b|\bmarkdown table\b")

_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$", re.MULTILINE)
_LOOKS_LIKE_CODE = re.compile(
    r"```|`[^`\n]{8,}`|^[ \t]*(?:def|class|import|from|return|for|while|SELECT|const|let|function)\b",
    re.MULTILINE,
)
_FENCE = re.compile(r"^\s*```\w*\n|\n?```\s*$")


@dataclass(frozen=True, slots=True)
class FormCheck:
    """The result of one check: 1 met, 0 not met at all; ``fault`` says what is wrong."""

    value: float
    fault: str


def wishes(prompt: str) -> list[Wish]:
    """The checks that a prompt implies for a response: code, list, JSON, table, limits."""
    prompt = prompt.lower()
    forms: list[Wish] = [wish for pattern, wish in _FORMS if pattern.search(prompt)]
    return [*forms, *(_limit(match) for match in _LIMIT.finditer(prompt))]


def _code(text: str) -> FormCheck:
    has_code = _LOOKS_LIKE_CODE.search(text) is not None
    return FormCheck(float(has_code), "No code where the prompt asks for some")


def _list(text: str) -> FormCheck:
    has_list = len(_ITEM.findall(text)) >= 2 or len(_ROW.findall(text)) >= 3
    return FormCheck(float(has_list), "No list where the prompt asks for one")


def _table(text: str) -> FormCheck:
    has_table = len(_ROW.findall(text)) >= 3
    return FormCheck(float(has_table), "No table where the prompt asks for one")


def _json(text: str) -> FormCheck:
    try:
        json.loads(_FENCE.sub("", text.strip()))
    except (ValueError, RecursionError):
        return FormCheck(0.0, "Not valid JSON where the prompt asks for it")
    return FormCheck(1.0, "")


_FORMS = ((_CODE, _code), (_LIST, _list), (_TABLE, _table), (_JSON, _json))


def _limit(match: re.Match[str]) -> Wish:
    limit, unit = _number(match["n"]), match["unit"]

    def within(text: str) -> FormCheck:
        size = _count(unit, text)
        value = 1.0 if size <= limit else limit / size / 2
        return FormCheck(value, f"{size} {unit}s where {limit} were allowed")

    return within


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _count(unit: str, text: str) -> int:
    match unit:
        case "word":
            return count_words(text)
        case "bullet":
            return len(_ITEM.findall(text))
        case "sentence":
            return len(sentences(prose(text)))
        case _:
            return len(paragraphs(prose(text)))


def readability(response: str) -> list[FormCheck]:
    """What can be said of any response: it ends, and its sentences and paragraphs do."""
    plain = prose(response)
    parts = sentences(plain)
    if not parts:
        return [_completeness(response)]
    blocks = list(map(count_words, paragraphs(plain)))
    # Where sentences end at blanks only, no word is in two of them or in two paragraphs.
    words = sum(blocks) if ends_at_blanks(plain) else sum(map(count_words, parts))
    mean, longest = words / len(parts), max(blocks)
    return [
        _completeness(response),
        FormCheck(_up_to(mean, 20, 45), f"Sentences average {mean:.0f} words"),
        FormCheck(_up_to(longest, 80, 240), f"A paragraph of {longest} words without a break"),
    ]


def _up_to(value: float, good: float, bad: float) -> float:
    """1 up to ``good``, falling to 0 at ``bad``."""
    return 1.0 if value <= good else max(0.0, (bad - value) / (bad - good))


def _completeness(response: str) -> FormCheck:
    """Whether the text ends where a text may end: a stop, a whole list item, a closed block."""
    text = response.rstrip()
    if text.count("```") % 2:
        return FormCheck(0.0, "Ends inside a code block")
    return FormCheck(0.0, "Stops mid-sentence") if _cut(text) else FormCheck(1.0, "")


def _cut(text: str) -> bool:
    last = text.rpartition("\n")[2]
    words = last.split()
    if not words or _ROW.match(last):
        return False
    if _ITEM.match(last):
        return words[-1].lower() in FUNCTION_WORDS
    # A short last line without a stop is a signature, a verse or a number.
    return len(words) > 8 and (last[-1].isalnum() or last[-1] in ",;:-–(")
