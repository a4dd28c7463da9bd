"""One item, step by step, on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from clash.escape import for_terminal

if TYPE_CHECKING:
    from rich.console import Console

    from clash.analysis.walk import JudgmentStep, Walk

_MOST_CHARACTERS = 1200


def print_walk(console: Console, walk: Walk) -> None:
    """Print the walk from prompt to verdict."""
    _step(console, 1, f"Item {walk.item.item_id}")
    for turn in walk.item.turns:
        _text(console, f"[{turn.role}] {turn.content}")
    if walk.item.reference:
        _text(console, f"[reference] {walk.item.reference}")
    _step(console, 2, "Blinding")
    for label, candidate in walk.labels.items():
        _text(console, f"{label} = {candidate}", style="bold")
        _text(console, walk.responses[candidate])
    for candidate, why in walk.missing.items():
        _text(console, f"{candidate}: no response ({why})", style="red")
    for hit in walk.scrubs:
        _text(console, f"masked in what judges saw: {hit}", style="yellow")
    _step(console, 3, f"Criteria ({walk.criteria.source if walk.criteria else 'none'})")
    _criteria(console, walk)
    _step(console, 4, "Judgments")
    for judgment in walk.judgments:
        _judgment(console, judgment)
    _step(console, 5, f"Verdict ({walk.verdict.method})")
    _verdict(console, walk)


def _step(console: Console, number: int, title: str) -> None:
    console.print()
    console.print(Text(f"{number}. {for_terminal(title)}", style="bold cyan"))


def _text(console: Console, text: str, *, style: str = "", indent: int = 3) -> None:
    body = for_terminal(text)
    if len(body) > _MOST_CHARACTERS:
        body = (
            body[:_MOST_CHARACTERS]
            + f" … ({len(body) - _MOST_CHARACTERS} more characters in responses.jsonl)"
        )
    console.print(Padding(Text(body, style=style), (0, 0, 0, indent)))


def _criteria(console: Console, walk: Walk) -> None:
    if walk.criteria is None:
        return
    for number, criterion in enumerate(walk.criteria.criteria, start=1):
        description = f": {criterion.description}" if criterion.description else ""
        _text(console, f"C{number}. {criterion.name} ({criterion.weight:.0%}){description}")
    if walk.criteria.error:
        _text(console, f"fallback because: {walk.criteria.error}", style="yellow")


def _judgment(console: Console, judgment: JudgmentStep) -> None:
    where = f", presentation {judgment.presentation}" if judgment.presentation else ""
    head = f"{judgment.judge} ({judgment.role}, weight {judgment.weight:g}{where})"
    if judgment.ranking is None or judgment.unblinded is None:
        _text(console, f"{head}: failed, no vote. {judgment.error}", style="red")
        return
    blind = " > ".join(" = ".join(group) for group in judgment.ranking)
    ranking = " > ".join(" = ".join(group) for group in judgment.unblinded)
    points = ", ".join(f"B({label})={value:g}" for label, value in judgment.points.items())
    _text(console, f"{head}: {blind}, that is {ranking}  →  {points}", style="bold")
    for label, row in judgment.scores.items():
        for criterion, score in row.items():
            reason = judgment.reasons.get(label, {}).get(criterion)
            why = f'  → "{reason}"' if reason else ""
            _text(console, f"{label} {criterion}: {score}/5{why}", indent=6)
    for note in (*judgment.repairs, *judgment.flags):
        _text(console, f"note: {note}", style="yellow", indent=6)


def _verdict(console: Console, walk: Walk) -> None:
    verdict = walk.verdict
    if verdict.ranking is None:
        _text(console, f"no verdict: {verdict.abstained}", style="red")
    else:
        for candidate, score in sorted(verdict.scores.items(), key=lambda pair: -pair[1]):
            _text(console, f"S({candidate}) = {score:g}")
        winner = verdict.winner or "tie of " + ", ".join(verdict.ranking[0])
        how = "unanimous" if verdict.unanimous else "split"
        _text(
            console,
            f"{winner}  ({how}, {verdict.split}, confidence {verdict.confidence:.2f})",
            style="bold green" if verdict.winner else "bold yellow",
        )
    if walk.label is not None:
        agreement = (
            "says the same"
            if walk.label == (verdict.winner or "tie") and verdict.ranking
            else "disagrees"
        )
        _text(console, f"label: {walk.label} ({agreement})")
