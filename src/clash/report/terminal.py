"""Reports on a terminal."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, RenderHook
from rich.segment import Segment
from rich.text import Text

from clash.escape import for_actions_log, for_terminal
from clash.report.costs import cost_line
from clash.report.sections import report_tables
from clash.report.table_layout import text_lines, wrap
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, ConsoleRenderable

    from clash.analysis.findings import Findings
    from clash.report.screens import Screen
    from clash.report.tables import Table

_ASCII = str.maketrans({"─": "-", "●": "o", "┊": "|", "…": "~", "·": ",", "–": "-"})
NO_WIDTH = 10_000
"""The width of a console that writes to a file or a pipe: lines are as long as they are."""
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
    """A renderable without control codes in its text; those of rich itself stay.

    The log of GitHub Actions obeys lines that begin with ``::``, which a name or a response may hold.
    """

    renderable: ConsoleRenderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        log = os.environ.get("GITHUB_ACTIONS") == "true"
        line = ""
        for text, style, control in console.render(self.renderable, options):
            if control:
                yield Segment(text, style, control)
                continue
            inert_text = for_terminal(text)
            if log:
                inert_text = for_actions_log(inert_text, starts_line=not line.strip())
                line = (line + inert_text).rpartition("\n")[2]
            yield Segment(inert_text, style, control)


def console(*, stderr: bool = False, width: int | None = None) -> Console:
    """A terminal or log that takes text as data: brackets in it are no markup."""
    terminal = Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)
    terminal.push_render_hook(_TextAsData())
    return terminal


def print_report(console: Console, findings: Findings) -> None:
    """Print the whole report of a run."""
    style = _STYLE[findings.decision.status]
    print_line(console)
    print_text(console, findings.decision.sentence, style=style)
    print_text(console, _facts(findings), style="dim")
    if (cost := cost_line(findings.spending)) is not None:
        print_line(console, cost, "dim")
    for model, reason in findings.stops.items():
        print_text(console, f"{model} cannot be used: {reason}", style="bold red")
    print_tables(console, report_tables(findings))


def print_screen(console: Console, screen: Screen) -> None:
    """Print a screen; a terminal that lacks its characters gets plain ones."""
    for pieces in screen.lines:
        line = Text.assemble(*((_plain(text, console.encoding), style) for text, style in pieces))
        line.rstrip()
        console.print(line, soft_wrap=True)


def _plain(text: str, encoding: str) -> str:
    """The text, or what an ASCII terminal can show of it."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII)
    return text


def _facts(findings: Findings) -> str:
    voting = [judge for judge in findings.judges if judge.role == "voting"]
    offline = all(judge.model.startswith("baseline/") for judge in voting)
    judges = plural(len(voting), "voting judge") + (
        ", all of them non-LLM baselines" if offline else ""
    )
    parts = [
        f"panel {findings.panel}",
        judges,
        plural(findings.coverage.items, "item"),
        findings.method,
    ]
    return " · ".join([*parts, f"seed {findings.seed}", findings.status])


def print_tables(console: Console, tables: Iterable[Table]) -> None:
    """Print tables one below the other."""
    for table in tables:
        print_table(console, table)


def print_table(console: Console, table: Table) -> None:
    """Print a table: its title, its rows, and its notes indented below."""
    lines = text_lines(table, text_width(console))
    print_line(console)
    if table.title:
        print_text(console, table.title, style="bold")
    for text in lines.header:
        print_line(console, text, "dim")
    for text in lines.body:
        print_line(console, text)
    missing_columns = (
        [f"no room for {', '.join(lines.missing_columns)}"] if lines.missing_columns else []
    )
    for note in (*missing_columns, *table.notes):
        print_text(console, note, style="dim", indent=2)


def text_width(console: Console) -> int | None:
    """The width to keep to; null where the reader has none."""
    return None if console.width >= NO_WIDTH else console.width


def print_text(console: Console, text: str, *, style: str = "", indent: int = 0) -> None:
    """Print text of several lines, wrapped where the terminal has a width."""
    width = text_width(console)
    for line in for_terminal(text).split("\n"):
        parts = [line] if width is None else wrap(line, max(1, width - indent))
        for part in parts or [""]:
            print_line(console, f"{' ' * indent}{part}".rstrip(), style)


def print_line(console: Console, text: str = "", style: str = "") -> None:
    """Print one line as it is, however long."""
    console.print(Text(for_terminal(text), style=style), soft_wrap=True)
