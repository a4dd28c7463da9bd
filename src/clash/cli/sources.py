"""What a command was given, a run or votes, opened with the terminal as observer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clash.cli.observer import TerminalObserver

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.store.folder import RunFolder


def open_run(run: str | Path, out: Path) -> RunFolder:
    """Open the run that a command was given; runs that ``latest`` passes over are named on stderr.

    Raises:
        RunFolderError: there is no such run.
    """
    from clash.pipeline import sources

    return sources.open_run(run, out, TerminalObserver(quiet=False))


def open_runs(runs: Sequence[str], out: Path) -> RunFolder:
    """Open the runs that a command was given; several are read as one.

    Raises:
        RunFolderError: there is no such run, or they cannot be read as one.
    """
    from clash.pipeline import sources

    return sources.open_runs(runs, out, TerminalObserver(quiet=False))
