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
from clash.report import spending
from clash.report.tables import tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import ConsoleOptions, ConsoleRenderable, JustifyMethod

    from clash.analysis.findings import Findings
    from clash.report.tables import Table

_STYLE = {
    "decided": "bold green",
    "leading": "bold yellow",
    "tied": "bold yellow",
    "none": "bold red",
}


class _AsData(RenderHook):
    """Lets nothing through that steers a terminal, whoever printed it and forgot to say so."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Filtered(renderable) for renderable in renderables]


@dataclass(frozen=True)
class _Filtered:
    """A renderable whose text is data; the control codes and styles of rich itself stay."""

    renderable: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for text, style, control in console.render(self.renderable, options):
            yield Segment(text if control else for_terminal(text), style, control)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A terminal or log that takes text as data: brackets in it are no markup."""
    terminal = Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)
    terminal.push_render_hook(_AsData())
    return terminal


def show(console: Console, found: Findings, *, whole: bool = True) -> None:
    """Print a report: all of it, or the first screen."""
    console.print()
    console.print(Text(for_terminal(found.decision.sentence), style=_STYLE[found.decision.status]))
    console.print(Text(for_terminal(_facts(found)), style="dim"))
    if (cost := spending.line(found.spending)) is not None:
        console.print(Text(cost, style="dim"))
    for model, why in found.stopped.items():
        console.print(Text(for_terminal(f"{model} refused for good: {why}"), style="bold red"))
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
