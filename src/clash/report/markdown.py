"""Reports as Markdown: the tables of the terminal, readable as text and on any forge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.escape import for_markdown
from clash.report.formats import unanimity
from clash.report.sections import report_tables
from clash.report.single_text import verdict_table
from clash.report.table_layout import markdown_lines
from clash.report.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.findings import Findings
    from clash.records import Groups, Verdict


def render_report(findings: Findings, verdicts: Sequence[Verdict]) -> str:
    """The report of a run, with the verdict of every item."""
    parts = [
        f"# {for_markdown(findings.run)}",
        f"**{for_markdown(findings.decision.sentence)}**",
        _facts(findings),
        *(f"> {for_markdown(note)}" for note in findings.notes),
        *map(render_table, report_tables(findings)),
        render_table(
            _verdicts(verdicts) if findings.single_text is None else verdict_table(verdicts)
        ),
        _verification(findings),
    ]
    return "\n\n".join(parts) + "\n"


def render_comparison(title: str, tables: Sequence[Table], runs: Sequence[str]) -> str:
    """A report over several runs."""
    names = "runs: " + ", ".join(map(for_markdown, runs))
    return "\n\n".join([f"# {for_markdown(title)}", names, *map(render_table, tables)]) + "\n"


def render_table(table: Table) -> str:
    """A heading, the table, and its notes as sentences."""
    notes = [f"\n{for_markdown(note).rstrip('.')}." for note in table.notes]
    return "\n".join([f"## {for_markdown(table.title)}\n", *markdown_lines(table), *notes])


MOST_VERDICTS = 25_000
"""Verdicts that are listed; the file of a run with more would be too large for any viewer."""


def _verdicts(verdicts: Sequence[Verdict]) -> Table:
    """The winner of every item, or of the first ones."""
    columns = ["item", "winner", "split", "confidence", "ranking"]
    rows_shown = verdicts[:MOST_VERDICTS]
    rows = [_verdict(v) for v in rows_shown]
    if any(v.borda is not None for v in rows_shown):
        columns.append("by Borda")
        rows = [[*row, _ranking(v.borda)] for row, v in zip(rows, rows_shown, strict=True)]
    left_out = len(verdicts) - len(rows_shown)
    notes = [f"and {left_out:,} more: verdicts.jsonl has all"] if left_out else []
    return Table("Verdicts", columns, rows, frozenset({3}), notes)


def _verdict(verdict: Verdict) -> list[str]:
    if verdict.ranking is None:
        return [verdict.item_id, f"no verdict: {verdict.abstained or ''}", "", "", ""]
    return [
        verdict.item_id,
        verdict.winner or "tie",
        f"{verdict.split} {unanimity(verdict)}".strip(),
        "" if verdict.confidence is None else f"{verdict.confidence:.2f}",
        _ranking(verdict.ranking),
    ]


def _ranking(groups: Groups | None) -> str:
    return " > ".join(" = ".join(group) for group in groups or [])


def _facts(findings: Findings) -> str:
    return for_markdown(
        f"{findings.kind} · {findings.status} · panel {findings.panel} · method {findings.method}"
        f" · seed {findings.seed} · clash {findings.clash}"
    )


def _verification(findings: Findings) -> str:
    return (
        "## How to check this\n\n"
        "`clash verify` on this folder compares every file with its hash and recomputes the"
        " verdicts and this report from the judgments. `clash report --item ID` shows one item"
        f" from prompt to verdict. Method: {for_markdown(findings.method)}; intervals at 95%,"
        " clustered by prompt."
    )
