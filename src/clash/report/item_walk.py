"""One item, step by step, on a terminal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from clash.escape import for_terminal
from clash.report.formats import money, number, seconds, unanimity
from clash.report.tables import Table, with_rows
from clash.report.terminal import print_line, print_table, print_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from clash.analysis.walk import JudgmentStep, Walk
    from clash.records import AnsweredTurn, Verdict

_MOST_CHARACTERS = 1200


def print_walk(console: Console, walk: Walk) -> None:
    """Print the walk from prompt to verdict."""
    _step(console, 1, f"Item {walk.item.item_id}")
    if walk.item.system:
        _text(console, f"[system] {walk.item.system}")
    for turn in walk.item.turns:
        _text(console, f"[{turn.role}] {turn.content}")
    if walk.item.reference:
        _text(console, f"[reference] {walk.item.reference}")
    _step(console, 2, "Blinding")
    for label, candidate in walk.labels.items():
        _text(console, f"{label} = {candidate}", style="bold")
        _response(console, walk, candidate)
    for candidate, reason in walk.missing.items():
        _text(console, f"{candidate}: no response ({reason})", style="red")
        _turns(console, walk.turns.get(candidate, []))
    for hit in walk.scrubs:
        _text(console, f"masked for the judges: {hit}", style="yellow")
    _step(console, 3, f"Criteria ({walk.criteria.source if walk.criteria else 'none'})")
    _criteria(console, walk)
    _step(console, 4, "Judgments")
    for judgment in walk.judgments:
        _judgment(console, judgment, walk.labels)
    _step(console, 5, f"Verdict ({walk.verdict.method})")
    _verdict(console, walk)
    if walk.calls:
        print_table(console, _calls(walk))


def headline(walk: Walk) -> str:
    """The verdict of the item and what people say of it, in one line."""
    return ". ".join([f"{walk.item.item_id}: {_outcome(walk)}", *_label(walk)])


def walk_tables(walk: Walk) -> list[Table]:
    """The verdict, what each judge scored and why, and the calls, as tables."""
    rows = [
        {
            "judge": judgment.judge,
            "response": judgment.labels.get(label, label),
            "criterion": criterion,
            "score": score,
            "reason": reason,
        }
        for judgment in walk.judgments
        for label, scores in judgment.scores.items()
        for criterion, score in scores.items()
        for reason in [judgment.reasons.get(label, {}).get(criterion, "")]
    ]

    scores = Table.of("Scores and reasons", rows, text=("response", "criterion", "reason"))
    return with_rows([_contributions(walk), scores, _calls(walk)])


def _outcome(walk: Walk) -> str:
    verdict = walk.verdict
    if walk.text_verdicts:
        return "; ".join(text_outcome(v) + _text_label(walk, v) for v in walk.text_verdicts)
    if verdict.ranking is None:
        return f"no verdict: {verdict.abstained}"
    winner = verdict.winner or "tie of " + ", ".join(verdict.ranking[0])
    split = unanimity(verdict) or "split"
    line = f"{winner} ({split}, {verdict.split}, confidence {verdict.confidence:.2f})"
    if verdict.borda is not None:
        line += f"; by Borda {' > '.join(' = '.join(group) for group in verdict.borda)}"
    return line


def text_outcome(verdict: Verdict) -> str:
    """The verdict on one text in a line."""
    if not verdict.is_decided:
        return f"{verdict.candidate}: no verdict: {verdict.abstained}"
    outcome = (verdict.label or "") if verdict.score is None else f"{verdict.score:.2f}"
    split = "" if verdict.split is None else f"{verdict.split}, "
    return f"{verdict.candidate}: {outcome} ({split}confidence {verdict.confidence or 0.0:.2f})"


def _text_label(walk: Walk, verdict: Verdict) -> str:
    """What people say of a text, to follow the verdict on it; empty without a label."""
    label = walk.text_labels.get(verdict.candidate or "")
    if label is None:
        return ""
    if isinstance(label, float):
        return f", people say {label:.2f}"
    if not verdict.is_decided:
        return f", people say {label}"
    return f", people say {label} ({'the same' if label == verdict.label else 'they disagree'})"


def _label(walk: Walk) -> list[str]:
    if walk.label is None:
        return []
    is_same = walk.verdict.ranking and walk.label == walk.verdict.outcome
    return [f"label: {walk.label} ({'says the same' if is_same else 'disagrees'})"]


def _step(console: Console, number: int, title: str) -> None:
    print_line(console)
    print_line(console, f"{number}. {title}", "bold cyan")


def _text(console: Console, text: str, *, style: str = "", indent: int = 3) -> None:
    body = for_terminal(text)
    if len(body) > _MOST_CHARACTERS:
        body = (
            body[:_MOST_CHARACTERS]
            + f" … ({len(body) - _MOST_CHARACTERS} more characters in responses.jsonl)"
        )
    print_text(console, body, style=style, indent=indent)


def _response(console: Console, walk: Walk, candidate: str) -> None:
    turns = walk.turns.get(candidate)
    if turns:
        _turns(console, turns)
    else:
        _text(console, walk.responses[candidate])


def _turns(console: Console, turns: Sequence[AnsweredTurn]) -> None:
    """Each turn under its index, with what a simulated user said before."""
    for index, turn in enumerate(turns, start=1):
        if turn.user is not None:
            _text(console, f"[user, turn {index}] {turn.user}")
        facts = [money(turn.cost_usd), seconds(turn.latency_s)]
        _text(console, f"[turn {index}] {', '.join(facts)}", style="dim")
        _text(console, turn.text)


def _criteria(console: Console, walk: Walk) -> None:
    if walk.criteria is None:
        return
    for index, criterion in enumerate(walk.criteria.criteria, start=1):
        description = f": {criterion.description}" if criterion.description else ""
        _text(console, f"C{index}. {criterion.name} ({criterion.weight:.0%}){description}")
    if walk.criteria.error:
        _text(console, f"fallback because: {walk.criteria.error}", style="yellow")


def _judgment(console: Console, judgment: JudgmentStep, labels: Mapping[str, str]) -> None:
    where = f", presentation {judgment.presentation}" if judgment.presentation else ""
    head = f"{judgment.judge} ({judgment.role}, weight {judgment.weight:g}{where})"
    if judgment.labels and judgment.labels != labels:
        pairs = ", ".join(f"{label} = {name}" for label, name in judgment.labels.items())
        head += f", shown as {pairs}"
    if judgment.vote is not None:
        words = "; ".join(text for row in judgment.reasons.values() for text in row.values())
        names = ", ".join(judgment.labels.values())
        _text(
            console, f"{judgment.judge} ({judgment.role}) on {names}: {judgment.vote}", style="bold"
        )
        if words:
            _text(console, words, indent=6)
        for note in (*judgment.repairs, *judgment.flags):
            _text(console, f"note: {note}", style="yellow", indent=6)
        return
    if judgment.ranking is None or judgment.unblinded is None:
        _text(console, f"{head}: failed, not counted. {judgment.error}", style="red")
        return
    blind = " > ".join(" = ".join(group) for group in judgment.ranking)
    ranking = " > ".join(" = ".join(group) for group in judgment.unblinded)
    points = ", ".join(f"B({label})={value:g}" for label, value in judgment.points.items())
    _text(console, f"{head}: {blind}, that is {ranking}  →  {points}", style="bold")
    for label, row in judgment.scores.items():
        for criterion, score in row.items():
            reason = judgment.reasons.get(label, {}).get(criterion)
            because = f'  → "{reason}"' if reason else ""
            _text(console, f"{label} {criterion}: {score}/5{because}", indent=6)
    if judgment.parse == "repaired" and not judgment.repairs:
        _text(console, "note: the answer was repaired", style="yellow", indent=6)
    for note in (*judgment.repairs, *judgment.flags):
        _text(console, f"note: {note}", style="yellow", indent=6)


def _contributions(walk: Walk) -> Table:
    """How the judges' points add up to the scores of the verdict."""
    candidates = sorted(walk.verdict.scores, key=lambda name: -walk.verdict.scores[name])
    columns = ["judge", "weight", *candidates]
    rows = [
        [line.judge, f"{line.weight:g}", *(number(line.points.get(c), "g") for c in candidates)]
        for line in walk.contributions
    ]
    if not rows:
        return Table("", columns, [])
    total = ["weight x points", "", *(f"{walk.verdict.scores[c]:g}" for c in candidates)]
    is_partial = any(None in line.points.values() for line in walk.contributions)
    notes = ["points: candidates ranked below, a tie counts half"]
    if walk.verdict.borda is not None:
        notes.append(f"these are Borda points; {walk.verdict.method} decided")
    if is_partial:
        notes.append("a judge did not rank its own response, so scores are counted pair by pair")
    numeric = frozenset(range(1, len(columns)))
    return Table("How the scores add up", columns, [*rows, total], numeric, notes)


def _calls(walk: Walk) -> Table:
    """Every attempt of every call for the item, and what it cost."""
    rows = [
        {
            "purpose": call.purpose,
            "who": call.actor,
            "model": call.model,
            "try": call.attempt,
            "outcome": call.error or "answered",
            "tokens in": number(call.tokens_in, ",d"),
            "out": number(call.tokens_out, ",d"),
            "cost": money(call.cost_usd),
            "time": seconds(call.latency_s),
        }
        for call in walk.calls
    ]
    usd = math.fsum(call.cost_usd or 0.0 for call in walk.calls)
    unknown = sum(call.cost_usd is None for call in walk.calls)
    notes = [f"together {money(usd)}" + (f", {unknown} of unknown cost" if unknown else "")]

    return Table.of("Calls", rows, text=("who", "model", "outcome"), notes=notes)


def _verdict(console: Console, walk: Walk) -> None:
    if walk.text_verdicts:
        for verdict in walk.text_verdicts:
            style = "green" if verdict.is_decided else "red"
            _text(console, text_outcome(verdict), style=f"bold {style}")
            if label := _text_label(walk, verdict):
                _text(console, label.removeprefix(", "), indent=6)
        return
    if walk.verdict.ranking is not None:
        print_table(console, _contributions(walk))
    style = "red" if walk.verdict.ranking is None else "yellow"
    _text(console, _outcome(walk), style=f"bold {'green' if walk.verdict.winner else style}")
    for line in _label(walk):
        _text(console, line)
