"""Reports as Markdown: the same tables, readable as text and on any forge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.escape import for_markdown
from clash.report.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.findings import Findings
    from clash.records import Verdict
    from clash.report.tables import Table


def document(found: Findings, verdicts: list[Verdict]) -> str:
    """The whole report."""
    parts = [
        f"# {for_markdown(found.run)}",
        f"**{for_markdown(found.decision.sentence)}**",
        _facts(found),
        *(f"> {for_markdown(note)}" for note in found.notes),
        *map(table, tables(found)),
        table_of_verdicts(verdicts),
        _how(found),
    ]
    return "\n\n".join(parts) + "\n"


def comparison(title: str, tables: Sequence[Table], runs: Sequence[str]) -> str:
    """A report over several runs."""
    named = "runs: " + ", ".join(map(for_markdown, runs))
    return "\n\n".join([f"# {for_markdown(title)}", named, *map(table, tables)]) + "\n"


def table(made: Table) -> str:
    """One table."""
    header = "| " + " | ".join(for_markdown(column) for column in made.columns) + " |"
    rule = (
        "|"
        + "|".join(" ---: " if i in made.numeric else " --- " for i in range(len(made.columns)))
        + "|"
    )
    lines = ["| " + " | ".join(for_markdown(cell) for cell in row) + " |" for row in made.rows]
    notes = [f"\n{for_markdown(note).rstrip('.')}." for note in made.notes]
    return "\n".join([f"## {for_markdown(made.title)}\n", header, rule, *lines, *notes])


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
            yield f"| {for_markdown(verdict.item_id)} | no verdict: {for_markdown(verdict.abstained or '')} | | | |"
            continue
        winner = verdict.winner or "tie"
        ranking = " > ".join(" = ".join(group) for group in verdict.ranking)
        split = f"{verdict.split}{' unanimous' if verdict.unanimous else ''}"
        confidence = "" if verdict.confidence is None else f"{verdict.confidence:.2f}"
        yield (
            f"| {for_markdown(verdict.item_id)} | {for_markdown(winner)} | {split} | {confidence}"
            f" | {for_markdown(ranking)} |"
        )


def _facts(found: Findings) -> str:
    return for_markdown(
        f"{found.kind} · {found.status} · panel {found.panel} · method {found.method}"
        f" · seed {found.seed} · clash {found.clash}"
    )


def _how(found: Findings) -> str:
    return (
        "## How to check this\n\n"
        "`clash verify` on this folder compares every file with its hash and recomputes the"
        " verdicts and this report from the judgments. `clash report --item ID` shows one item"
        f" from prompt to verdict. Method: {for_markdown(found.method)}; intervals at 95%, clustered by prompt."
    )
