"""How commands print, and where keys and addresses are looked up."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clash
from clash.escape import for_json, for_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rich.console import Console

    from clash.errors import RunFolderError
    from clash.report.screens import Screen
    from clash.report.tables import Table
    from clash.secrets.destinations import Environ


def stdout() -> Console:
    """Where results go; off a terminal lines are as long as they are."""
    from clash.report.terminal import NO_WIDTH, console

    is_narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return console(width=None if is_narrow else NO_WIDTH)


def stderr() -> Console:
    """Where progress and warnings go."""
    from clash.report.terminal import console

    return console(stderr=True)


def say(text: str, style: str = "dim") -> None:
    """A line for people, on stderr."""
    from rich.text import Text

    # Soft: a path that is broken over two lines cannot be copied.
    stderr().print(Text(for_terminal(text), style=style), soft_wrap=True)


def left_out(error: RunFolderError) -> None:
    """Say that a run is passed over, and why."""
    say(f"left out: {error}", style="yellow")


def print_json(value: dict[str, Any]) -> None:
    """The one object of ``--json``; escaped where the encoding of stdout lacks a letter."""
    record = {"clash": clash.__version__, **value}
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(record, ensure_ascii=not unicode, allow_nan=False)
    sys.stdout.write(f"{for_json(text)}\n")


def environment(env_file: Path | None, trust_hosts: Iterable[str] | None) -> Environ:
    """The process's environment with the keys of ``.env``, and where keys may go."""
    from clash.collect.resolve import load_environ

    return load_environ(os.environ, env_file, trust_hosts or ())


@contextmanager
def progress_bar(label: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr, which the function that it gives moves to ``n`` of ``total``."""
    if quiet or not stderr().is_terminal:  # elsewhere rich prints an empty line for the bar
        yield lambda _n, _total: None
        return
    from rich.progress import Progress

    with Progress(console=stderr(), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda n, total: progress.update(task, completed=n, total=total)


def print_line(text: str = "", style: str = "") -> None:
    """Print a line on stdout as it is, however long: a path that is broken cannot be copied."""
    from clash.report import terminal

    terminal.print_line(stdout(), text, style)


def print_text(text: str, *, style: str = "", indent: int = 0) -> None:
    """Print text on stdout, wrapped where the terminal has a width."""
    from clash.report import terminal

    terminal.print_text(stdout(), text, style=style, indent=indent)


def terminal_width() -> int | None:
    """The width that screens keep to; null where the reader of stdout has none."""
    from clash.report.terminal import text_width

    return text_width(stdout())


def print_screen(screen: Screen) -> None:
    """Print a screen on stdout."""
    from clash.report import terminal

    terminal.print_screen(stdout(), screen)


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables on stdout."""
    from clash.report import terminal

    terminal.print_tables(stdout(), tables)


def print_written(paths: Iterable[Path | str]) -> None:
    """Print which files were written."""
    for path in paths:
        print_line(f"wrote {path}")
