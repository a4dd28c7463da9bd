"""Why a run on single texts says what it says, as a screen and as tables."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

from clash.escape import clip
from clash.pages.names import shorten
from clash.report.formats import DASH, percent
from clash.report.screens import blank_screen
from clash.report.tables import MOST_ROWS, Table, cut_note, with_rows
from clash.wording import plural

if TYPE_CHECKING:
    from clash.analysis.single_text.explanation import TellingText, TextExplanation
    from clash.report.headline import Headline
    from clash.report.screens import Screen
    from clash.votes import LabelUse

_BRIEF_TEXTS = 2
_ITEM_WIDTH = 18
_REASON_LENGTH = 60


def headlines(explanation: TextExplanation, headline: Headline) -> list[str]:
    """The answer of the run, what labels say against it, and how many verdicts one judge decides."""
    lines = [headline.text, headline.contradiction or headline.evidence, _decisive(explanation)]
    return [line for line in lines if line]


def explanation_screen(
    explanation: TextExplanation,
    headline: Headline,
    width: int | None,
    run: str,
    labels: LabelUse | None = None,
) -> Screen:
    """The answer, what each judge does to it, and the most telling texts, in 20 lines."""
    screen = blank_screen(width)
    screen.headline(replace(headline, evidence="", notes=()))
    screen.sentence(_decisive(explanation))
    screen.add()
    if explanation.agreement is not None:
        share = percent(explanation.agreement)
        screen.fact(
            "Panel vs. people", f"{share} agree on {plural(explanation.n_labelled, 'text')}"
        )
    for line in explanation.judges:
        screen.fact(f"Without {shorten(line.judge, 10)}", line.sentence)
    if labels is not None and labels.labelled:
        screen.fact("Labels", labels.sentence)
    texts = explanation.texts
    if texts:
        screen.add()
        screen.sentence(f"Most telling of {plural(len(texts), 'disagreement')}", "bold")
        for text in texts[:_BRIEF_TEXTS]:
            screen.fact(shorten(text.item_id, _ITEM_WIDTH), _line(text))
    command = f"clash explain {run} -v"
    if texts:
        command = f"clash explain {run} --item {shlex.quote(texts[0].item_id)}"
    screen.add()
    screen.add((f"Next    {command}", ""))
    return screen


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
    why = "" if reason is None else f". “{clip(reason, _REASON_LENGTH)}”"
    return f"panel {_value_text(text.verdict)}{people} ({votes}){why}"


def _value_text(value: str | float | None) -> str:
    if value is None:
        return DASH
    return value if isinstance(value, str) else f"{value:.3g}"
