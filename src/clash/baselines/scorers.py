"""The baselines: small, deterministic scorers that know nothing of quality."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from clash.baselines.forms import readability, wishes
from clash.baselines.text import count_words, stems, terms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence, Set

    from clash.baselines.forms import Wish
    from clash.records import Criterion, Turn


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


@dataclass(frozen=True, slots=True)
class Mark:
    """The measure of one response: 0 to 1, and the reason in at most ten words."""

    value: float
    reason: str


_ALLOWANCE = 30
"""Words; on human-labelled pairs anything from 20 to 40 does much the same."""

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
    return _relative(task, counts, lambda label: f"{counts[label]} words; the longest has {most}")


def dense(task: BaselineTask) -> Marks:
    """Distinct content words per word, as a share of the item's densest response.

    Repetition and filler lower it. Each response is taken to have :data:`_ALLOWANCE` words more
    than it has, for without them a single word is the densest text there is.
    """
    words = {label: count_words(text) for label, text in task.responses.items()}
    distinct = {label: len(stems(text)) for label, text in task.responses.items()}
    return _relative(
        task,
        {label: distinct[label] / (words[label] + _ALLOWANCE) for label in words},
        lambda label: f"{distinct[label]} distinct content words in {words[label]} words",
    )


def _relative(
    task: BaselineTask, measures: Mapping[str, float], reason: Callable[[str], str]
) -> Marks:
    best = max(measures.values(), default=0) or 1
    return _for_each_criterion(
        task, {label: Mark(value / best, reason(label)) for label, value in measures.items()}
    )


def coverage(task: BaselineTask) -> Marks:
    """Share of the prompt's terms that recur in a response, and of the criterion's at a third."""
    prompt_terms = terms(_turns_text(task, "user"))
    rubrics = [
        terms(f"{criterion.name} {criterion.description}") for criterion in task.criteria
    ] or [{}]
    demands = [_Demand.of(prompt_terms, rubric) for rubric in rubrics]
    return {
        label: [demand.mark(stems(text)) for demand in demands]
        for label, text in task.responses.items()
    }


@dataclass(frozen=True, slots=True)
class _Demand:
    """Terms of a prompt, which weigh 3, and of a criterion beyond these, which weigh 1.

    Attributes:
        words: by stem, the word it was first seen as; the prompt's before the criterion's.
    """

    prompt: Set[str]
    rubric: Set[str]
    words: Mapping[str, str]

    @classmethod
    def of(cls, prompt: Mapping[str, str], rubric: Mapping[str, str]) -> _Demand:
        return cls(prompt.keys(), rubric.keys() - prompt.keys(), {**prompt, **rubric, **prompt})

    def mark(self, stems: Set[str]) -> Mark:
        total = 3 * len(self.prompt) + len(self.rubric)
        lacking, beside = len(self.prompt - stems), len(self.rubric - stems)
        value = 1 - (3 * lacking + beside) / total if total and stems else 0.0
        missing = islice((word for stem, word in self.words.items() if stem not in stems), 3)
        words = ", ".join(word[:20] for word in missing)
        return Mark(value, f"{lacking + beside} of {len(self.words)} terms missing: {words}")


def structure(task: BaselineTask) -> Marks:
    """Product of the checks of form: what was asked for, limits, sentences, paragraphs, an end."""
    demands = wishes(_turns_text(task, "system", "user"))
    return _for_each_criterion(
        task, {label: _form_mark(demands, text) for label, text in task.responses.items()}
    )


def _form_mark(demands: Sequence[Wish], response: str) -> Mark:
    checks = [wish(response) for wish in demands] + readability(response)
    worst = min(checks, key=lambda check: check.value)
    return Mark(math.prod(check.value for check in checks), worst.fault)


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
