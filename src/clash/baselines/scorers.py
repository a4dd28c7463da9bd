"""The baselines: small, deterministic scorers that know nothing of quality."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from clash.baselines.text import (
    FUNCTION_WORDS,
    count_sentences,
    count_words,
    ends_at_blanks,
    paragraphs,
    prose,
    sentences,
    stems,
    terms,
)
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from clash.records import Criterion, Turn

    Wish = Callable[[str], "FormCheck"]
    """Looks at a response for one thing that its prompt asked for."""


class BaselineTask(Protocol):
    """A blinded item: what any judge may see."""

    @property
    def turns(self) -> Sequence[Turn]:
        """The conversation to respond to."""
        ...

    @property
    def criteria(self) -> Sequence[Criterion]:
        """What to judge by; empty where the run judges without criteria."""
        ...

    @property
    def responses(self) -> Mapping[str, str]:
        """Text by label."""
        ...

    @property
    def ties(self) -> bool:
        """Whether responses may share a rank."""
        ...


class Mark(NamedTuple):
    """The measure of one response.

    Attributes:
        value: 0 to 1.
        explain: words the reason, which takes longer than the measure and is rarely read.
    """

    value: float
    explain: Callable[[], str]

    @property
    def reason(self) -> str:
        """At most ten words."""
        return self.explain()


_ALLOWANCE = 30
"""Words; on human-labelled pairs anything from 20 to 40 does much the same."""

_TYPICAL_DENSITY = 0.3
"""Distinct content words per word, of a few plain sentences."""

Marks = dict[str, list[Mark]]
"""By label: a mark for each criterion, or a single one where there are no criteria."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """A scorer and its one-line description for reports."""

    name: str
    statement: str
    measure: Callable[[BaselineTask], Marks]


def _for_each_criterion(task: BaselineTask, marks: Mapping[str, Mark]) -> Marks:
    """The same marks whatever the criterion, from a scorer that reads no criteria."""
    return {label: [mark] * max(1, len(task.criteria)) for label, mark in marks.items()}


def _turns_text(task: BaselineTask, *roles: str) -> str:
    return "\n".join(turn.content for turn in task.turns if turn.role in roles)


def longest(task: BaselineTask) -> Marks:
    """Words, as a share of those of the item's longest response."""
    counts = {label: count_words(text) for label, text in task.responses.items()}
    most = max(counts.values(), default=0)
    if len(counts) == 1:
        return _alone(task, counts, 2 * _ALLOWANCE, lambda _: plural(most, "word"))
    return _relative(
        task, counts, lambda label: f"{plural(counts[label], 'word')}; the longest has {most}"
    )


def dense(task: BaselineTask) -> Marks:
    """Distinct content words per word, as a share of the item's densest response.

    Repetition and filler lower it. Each response is taken to have :data:`_ALLOWANCE` words more
    than it has, for without them a single word is the densest text there is.
    """
    words = {label: count_words(text) for label, text in task.responses.items()}
    distinct = {label: len(stems(text)) for label, text in task.responses.items()}
    density = {label: distinct[label] / (words[label] + _ALLOWANCE) for label in words}

    def reason(label: str) -> str:
        return (
            f"{plural(distinct[label], 'distinct content word')} in {plural(words[label], 'word')}"
        )

    if len(density) == 1:
        return _alone(task, density, _TYPICAL_DENSITY, reason)
    return _relative(task, density, reason)


def _alone(
    task: BaselineTask, measures: Mapping[str, float], half: float, reason: Callable[[str], str]
) -> Marks:
    """The mark of a text that is judged by itself: one half where it measures ``half``."""
    return _for_each_criterion(
        task,
        {
            label: Mark(value / (value + half), partial(reason, label))
            for label, value in measures.items()
        },
    )


def _relative(
    task: BaselineTask, measures: Mapping[str, float], reason: Callable[[str], str]
) -> Marks:
    best = max(measures.values(), default=0) or 1
    return _for_each_criterion(
        task,
        {label: Mark(value / best, partial(reason, label)) for label, value in measures.items()},
    )


def coverage(task: BaselineTask) -> Marks:
    """Share of the prompt's terms that recur in a response, and of the criterion's at a third."""
    prompt = terms(_turns_text(task, "user"))
    rubrics = [_rubric_terms(c.name, c.description) for c in task.criteria] or [{}]
    # What a criterion asks for beyond the prompt.
    rubrics = [{k: word for k, word in rubric.items() if k not in prompt} for rubric in rubrics]
    return {
        label: _coverage_marks(prompt, rubrics, stems(text))
        for label, text in task.responses.items()
    }


@lru_cache(maxsize=256)
def _rubric_terms(name: str, description: str) -> Mapping[str, str]:
    return terms(f"{name} {description}")


def _coverage_marks(
    prompt: Mapping[str, str], rubrics: Sequence[Mapping[str, str]], stems: Set[str]
) -> list[Mark]:
    """A mark for each criterion.

    Args:
        prompt: terms of the prompt, which weigh 3: by stem, the word it was first seen as.
        rubrics: terms of each criterion beyond these, which weigh 1.
        stems: those of the response.
    """
    n_lacking = len(prompt.keys() - stems)
    marks = []
    for rubric in rubrics:
        total = 3 * len(prompt) + len(rubric)
        n_beside = len(rubric.keys() - stems)
        value = 1 - (3 * n_lacking + n_beside) / total if total and stems else 0.0
        marks.append(Mark(value, partial(_missing_terms, prompt, rubric, stems)))
    return marks


def _missing_terms(prompt: Mapping[str, str], rubric: Mapping[str, str], stems: Set[str]) -> str:
    task_terms = [*prompt.items(), *rubric.items()]
    words = [word[:20] for stem, word in task_terms if stem not in stems]
    return f"{len(words)} of {len(task_terms)} terms missing: {', '.join(words[:3])}"


def structure(task: BaselineTask) -> Marks:
    """Product of the checks of form: what was asked for, limits, sentences, paragraphs, an end."""
    demands = wishes(_turns_text(task, "system", "user"))
    return _for_each_criterion(
        task, {label: _form_mark(demands, text) for label, text in task.responses.items()}
    )


def _form_mark(demands: Sequence[Wish], response: str) -> Mark:
    checks = [wish(response) for wish in demands] + readability(response)
    values = [check.value for check in checks]
    return Mark(math.prod(values), lambda: checks[values.index(min(values))].fault)


BASELINES: dict[str, Baseline] = {
    baseline.name: baseline
    for baseline in (
        Baseline(
            "longest",
            "Prefers the response with most words. Counts words; is not a language model.",
            longest,
        ),
        Baseline(
            "coverage",
            "Prefers the response that repeats most terms of the prompt and the criteria. "
            "Matches word stems; is not a language model.",
            coverage,
        ),
        Baseline(
            "structure",
            "Prefers the form that was asked for, readable sentences and paragraphs, and an end. "
            "Matches patterns; is not a language model.",
            structure,
        ),
        Baseline(
            "dense",
            "Prefers the response with most distinct content words per word. "
            "Counts words; is not a language model.",
            dense,
        ),
    )
}


# -- the form that a prompt asks for, and how closely a response follows it -----------------------


_NUMBERS = {"a single": 1} | {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
}
_N = rf"(?:\d{{1,4}}|{'|'.join(_NUMBERS)})"

_UNITS = ("word", "sentence", "paragraph", "bullet")

# All of these read a prompt in lower case.
_LIMIT = re.compile(
    r"\b(?:at most|(?:no|not) more than|up to|under|below|within|(?:fewer|less) than|max|exactly|in)"
    rf" (?P<n>{_N})[ -](?P<unit>{'|'.join(_UNITS)})s?\b(?! each| per)"
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
_CODE_MARK = re.compile(r"```|`[^`\n]{8,}`")
_CODE_LINE = re.compile(
    r"\n[ \t]*(?:def|class|import|from|return|for|while|SELECT|const|let|function)\b"
)
_FENCE = re.compile(r"^\s*```\w*\n|\n?```\s*$")


class FormCheck(NamedTuple):
    """The result of one check: 1 met, 0 not met at all; ``fault`` says what is wrong."""

    value: float
    fault: str


def wishes(prompt: str) -> list[Wish]:
    """The checks that a prompt implies for a response: code, list, JSON, table, limits."""
    prompt = prompt.lower()
    forms: list[Wish] = [
        wish for word, pattern, wish in _FORMS if word in prompt and pattern.search(prompt)
    ]
    if not any(unit in prompt for unit in _UNITS):
        return forms
    return [*forms, *(_limit(match) for match in _LIMIT.finditer(prompt))]


def _code(text: str) -> FormCheck:
    has_code = _CODE_MARK.search(text) or _CODE_LINE.search(f"\n{text}")
    return FormCheck(float(has_code is not None), "No code where the prompt asks for some")


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


_FORMS = (("", _CODE, _code), ("", _LIST, _list), ("table", _TABLE, _table), ("json", _JSON, _json))
"""What a prompt may ask for: a word without which it does not, by what it does, and the check."""


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
            return count_sentences(prose(text))
        case _:
            return len(paragraphs(prose(text)))


def readability(response: str) -> list[FormCheck]:
    """What can be said of any response: it ends, and its sentences and paragraphs do."""
    plain = prose(response)
    n_sentences = count_sentences(plain)
    if not n_sentences:
        return [_completeness(response)]
    blocks = list(map(count_words, paragraphs(plain)))
    # Where sentences end at blanks only, no word is in two of them or in two paragraphs.
    words = sum(blocks if ends_at_blanks(plain) else map(count_words, sentences(plain)))
    mean, longest = words / n_sentences, max(blocks)
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
    if not last.strip() or _ROW.match(last):
        return False
    if _ITEM.match(last):
        return last.split()[-1].lower() in FUNCTION_WORDS
    # A short last line without a stop is a signature, a verse or a number.
    return (last[-1].isalnum() or last[-1] in ",;:-–(") and len(last.split(maxsplit=8)) > 8
