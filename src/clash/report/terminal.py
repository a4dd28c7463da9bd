"""Reports on a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, RenderHook
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table as RichTable
from rich.text import Text

from clash.escape import for_terminal
from clash.report.costs import cost_line
from clash.report.sections import report_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, ConsoleRenderable, JustifyMethod

    from clash.analysis.findings import Findings
    from clash.report.tables import Table

_STYLE = {
    "decided": "bold green",
    "leading": "bold yellow",
    "tied": "bold yellow",
    "none": "bold red",
}


class _TextAsData(RenderHook):
    """Filters whatever is printed, so that no forgotten escape lets text steer the terminal."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_FilteredRenderable(renderable) for renderable in renderables]


@dataclass(frozen=True)
class _FilteredRenderable:
    """A renderable without control codes in its text; those of rich itself stay."""

    renderable: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self.renderable, options):
            yield Segment(text if control else for_terminal(text), style, control)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A terminal or log that takes text as data: brackets in it are no markup."""
    terminal = Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)
    terminal.push_render_hook(_TextAsData())
    return terminal


def print_report(console: Console, findings: Findings, *, brief: bool = False) -> None:
    """Print the report of a run; only its first screen where ``brief``."""
    style = _STYLE[findings.decision.status]
    console.print()
    console.print(Text(for_terminal(findings.decision.sentence), style=style))
    console.print(Text(for_terminal(_facts(findings)), style="dim"))
    if (cost := cost_line(findings.spending)) is not None:
        console.print(Text(cost, style="dim"))
    for model, why in findings.stops.items():
        console.print(Text(for_terminal(f"{model} refused for good: {why}"), style="bold red"))
    tables = report_tables(findings)
    print_tables(console, [table for table in tables if table.brief] if brief else tables)


def _facts(findings: Findings) -> str:
    voting = [judge for judge in findings.judges if judge.role == "voting"]
    offline = all(judge.model.startswith("baseline/") for judge in voting)
    judges = f"{len(voting)} voting judges" + (", none a language model" if offline else "")
    parts = [f"panel {findings.panel}", judges, f"{findings.coverage.items} items", findings.method]
    return " · ".join([*parts, f"seed {findings.seed}", findings.status])


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables one below the other."""
    for table in tables:
        print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table: its title, its rows, and its notes indented below."""
    console.print()
    console.print(Text(for_terminal(table.title), style="bold"))
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
        grid.add_column(Text(for_terminal(column)), justify=side, overflow="fold", no_wrap=number)
    for row in table.rows:
        grid.add_row(*(Text(for_terminal(cell)) for cell in row))
    console.print(grid)
    for note in table.notes:
        console.print(Padding(Text(for_terminal(note), style="dim"), (0, 0, 0, 2)))
