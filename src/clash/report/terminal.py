"""Reports on a terminal."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rich import box
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from clash.report import spending
from clash.report.tables import tables

if TYPE_CHECKING:
    from rich.console import Console, JustifyMethod

    from clash.analysis.findings import Findings
    from clash.report.tables import Table

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLE = {
    "decided": "bold green",
    "leading": "bold yellow",
    "tied": "bold yellow",
    "none": "bold red",
}


def show(console: Console, found: Findings, *, whole: bool = True) -> None:
    """Print a report: all of it, or the first screen."""
    console.print()
    console.print(Text(safe(found.decision.sentence), style=_STYLE[found.decision.status]))
    console.print(Text(safe(_facts(found)), style="dim"))
    if (cost := spending.line(found.spending)) is not None:
        console.print(Text(cost, style="dim"))
    for model, why in found.stopped.items():
        console.print(Text(f"{model} refused for good: {safe(why)}", style="bold red"))
    for table in tables(found):
        if whole or table.brief:
            show_table(console, table)


def _facts(found: Findings) -> str:
    voting = [judge for judge in found.judges if judge.role == "voting"]
    offline = all(judge.model.startswith("baseline/") for judge in voting)
    judges = f"{len(voting)} voting judges" + (", none a language model" if offline else "")
    parts = [f"panel {found.panel}", judges, f"{found.coverage.items} items", found.method]
    return " · ".join([*parts, f"seed {found.seed}", found.status])


def show_table(console: Console, table: Table) -> None:
    """Print one table."""
    console.print()
    console.print(Text(table.title, style="bold"))
    grid = RichTable(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_header=any(table.columns),
    )
    for index, column in enumerate(table.columns):
        number = index in table.numeric
        side: JustifyMethod = "right" if number else "left"
        # Figures stay whole; where room is short, names are folded.
        grid.add_column(escape(column), justify=side, overflow="fold", no_wrap=number)
    for row in table.rows:
        grid.add_row(*(Text(safe(cell)) for cell in row))
    console.print(grid)
    for note in table.notes:
        console.print(Padding(Text(safe(note), style="dim"), (0, 0, 0, 2)))


def safe(text: str) -> str:
    """Text that cannot steer a terminal: no escape sequence, no control character."""
    return _CONTROL.sub("", text)
