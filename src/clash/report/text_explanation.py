"""Why a run on single texts says what it says, as a screen and as tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.escape import clip
from clash.pages.names import shorten
from clash.report.formats import DASH, percent
from clash.report.tables import MOST_ROWS, Table, cut_note, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.single_text.explanation import TellingText, TextExplanation
    from clash.report.headline import Headline

MOST_TELLING = 2
"""Disagreements on the first screen."""
REASON_LENGTH = 60
"""Characters of a reason on it."""


@dataclass(frozen=True)
class ScreenParts:
    """What the first screen of an explanation holds beside the answer.

    Attributes:
        sentences: what would change the answer.
        facts: labels and texts.
        telling: the most telling disagreements, each the id of its item and what happened.
        n_disagreements: of which they are.
        is_undecided: nobody leads, so that the next step is that of the run.
    """

    sentences: Sequence[str]
    facts: Sequence[tuple[str, str]]
    telling: Sequence[tuple[str, str]]
    n_disagreements: int
    is_undecided: bool = False


def headlines(explanation: TextExplanation, headline: Headline) -> list[str]:
    """The answer of the run, what labels say against it, and how many verdicts one judge decides."""
    lines = [headline.text, headline.contradiction or headline.evidence, _decisive(explanation)]
    return [line for line in lines if line]


def screen_parts(explanation: TextExplanation) -> ScreenParts:
    """What each judge does to the answer, and the most telling texts."""
    facts = [(f"Without {shorten(line.judge, 10)}", line.sentence) for line in explanation.judges]
    if explanation.agreement is not None:
        texts = plural(explanation.n_labelled, "text")
        share = percent(explanation.agreement)
        facts.insert(0, ("Panel vs. people", f"{share} agree on {texts}"))
    telling = [(text.item_id, _line(text)) for text in explanation.texts[:MOST_TELLING]]
    return ScreenParts([_decisive(explanation)], facts, telling, len(explanation.texts))


def tables(explanation: TextExplanation) -> list[Table]:
    """The run without each judge, and every text on which somebody differs."""
    judges = Table(
        "Without one judge",
        ["without", "verdicts changed", "agrees with people", "the run would say"],
        [
            [line.judge, str(line.n_changed), percent(line.agreement), line.sentence]
            for line in explanation.judges
        ],
        frozenset({1, 2}),
    )
    rows = [
        [
            text.item_id,
            text.candidate,
            _value_text(text.verdict),
            _value_text(text.people),
            "; ".join(f"{o.judge} {_value_text(o.vote)}" for o in text.opinions),
            ", ".join(text.decisive) or DASH,
        ]
        for text in explanation.texts
    ]
    columns = ["item", "text of", "panel", "people", "judges", "decided by"]
    notes = [explanation.order, "decided by: without this judge alone the verdict is another"]
    notes += cut_note(len(rows))
    return with_rows([judges, Table("Disagreements", columns, rows[:MOST_ROWS], notes=notes)])


def _decisive(explanation: TextExplanation) -> str:
    n = sum(bool(text.decisive) for text in explanation.texts)
    if not explanation.judges:
        return "One judge decides every text."
    texts = plural(explanation.n_texts, "text")
    return f"Leaving out a single judge changes the verdict on {n} of {texts}."


def _line(text: TellingText) -> str:
    """The verdict against people or among judges, and one judge's reason."""
    people = "" if text.people is None else f", people {_value_text(text.people)}"
    votes = ", ".join(f"{o.judge} {_value_text(o.vote)}" for o in text.opinions)
    reason = next((o.reason for o in text.opinions if o.reason and o.vote != text.people), None)
    because = "" if reason is None else f". “{clip(reason, REASON_LENGTH)}”"
    return f"panel {_value_text(text.verdict)}{people} ({votes}){because}"


def _value_text(value: str | float | None) -> str:
    if value is None:
        return DASH
    return value if isinstance(value, str) else f"{value:.3g}"
