"""Reports as Markdown: the same tables, readable as text and on any forge."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clash.report.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.findings import Findings
    from clash.records import Verdict
    from clash.report.tables import Table

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|])")


def document(found: Findings, verdicts: list[Verdict]) -> str:
    """The whole report."""
    parts = [
        f"# {inline(found.run)}",
        f"**{inline(found.decision.sentence)}**",
        _facts(found),
        *(f"> {inline(note)}" for note in found.notes),
        *map(table, tables(found)),
        table_of_verdicts(verdicts),
        _how(found),
    ]
    return "\n\n".join(parts) + "\n"


def comparison(title: str, tables: Sequence[Table], runs: Sequence[str]) -> str:
    """A report over several runs."""
    named = "runs: " + ", ".join(map(inline, runs))
    return "\n\n".join([f"# {inline(title)}", named, *map(table, tables)]) + "\n"


def table(made: Table) -> str:
    """One table."""
    header = "| " + " | ".join(inline(column) for column in made.columns) + " |"
    rule = (
        "|"
        + "|".join(" ---: " if i in made.numeric else " --- " for i in range(len(made.columns)))
        + "|"
    )
    lines = ["| " + " | ".join(inline(cell) for cell in row) + " |" for row in made.rows]
    notes = [f"\n{inline(note).rstrip('.')}." for note in made.notes]
    return "\n".join([f"## {inline(made.title)}\n", header, rule, *lines, *notes])


def table_of_verdicts(verdicts: list[Verdict]) -> str:
    """The winner of every item."""
    lines = [
        "## Verdicts\n",
        "| item | winner | split | confidence | ranking |",
        "| --- | --- | --- | ---: | --- |",
    ]
    lines += list(_verdict_lines(verdicts))
    return "\n".join(lines)


def _verdict_lines(verdicts: list[Verdict]) -> Iterator[str]:
    for verdict in verdicts:
        if verdict.ranking is None:
            yield f"| {inline(verdict.item_id)} | no verdict: {inline(verdict.abstained or '')} | | | |"
            continue
        winner = verdict.winner or "tie"
        ranking = " > ".join(" = ".join(group) for group in verdict.ranking)
        split = f"{verdict.split}{' unanimous' if verdict.unanimous else ''}"
        confidence = "" if verdict.confidence is None else f"{verdict.confidence:.2f}"
        yield (
            f"| {inline(verdict.item_id)} | {inline(winner)} | {split} | {confidence}"
            f" | {inline(ranking)} |"
        )


def inline(text: str) -> str:
    """Text that stays text: nothing in it is read as Markdown or HTML."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _facts(found: Findings) -> str:
    return (
        f"{found.kind} · {found.status} · panel {inline(found.panel)} · method {found.method}"
        f" · seed {found.seed} · clash {found.clash}"
    )


def _how(found: Findings) -> str:
    return (
        "## How to check this\n\n"
        "`clash verify` on this folder compares every file with its hash and recomputes the"
        " verdicts and this report from the judgments. `clash report --item ID` shows one item"
        f" from prompt to verdict. Method: {found.method}; intervals at 95%, clustered by prompt."
    )
