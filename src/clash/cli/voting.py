"""Options of every command that reads votes, and the reading itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from clash.store.folder import RunFolder
    from clash.votes import Votes

_SUFFIXES = frozenset({".jsonl", ".csv", ".gz"})

VotesArgument = Annotated[
    str, typer.Argument(help="A votes file (.jsonl, .csv, .gz) or a run.", metavar="RUN|VOTES")
]
Judges = Annotated[
    str | None,
    typer.Option("--judges", help="Only these judges: names with wildcards, comma separated."),
]
Subset = Annotated[str | None, typer.Option("--subset", help="Only these subsets, with wildcards.")]
Presentation = Annotated[
    str | None, typer.Option("--presentation", help="Only this presentation: orig or swap.")
]
Decisive = Annotated[bool, typer.Option("--decisive", help="Only items whose label is a side.")]


def read(
    source: str,
    runs: Path,
    judges: str | None = None,
    subset: str | None = None,
    presentation: str | None = None,
    *,
    decisive: bool = False,
) -> Votes:
    """The votes of a file or of a run.

    Raises:
        InputError: a file is wrong, or nothing is left after the filter.
        RunFolderError: it is neither a file nor a run.
    """
    from clash.votes import encode, read_votes
    from clash.votes.from_run import vote_rows

    folder = run_of(source, runs)
    if folder is None:
        return read_votes(
            source, judges=judges, subset=subset, presentation=presentation, decisive=decisive
        )
    rows = vote_rows(folder)
    return encode(rows, judges=judges, subset=subset, presentation=presentation, decisive=decisive)


def run_of(source: str, runs: Path) -> RunFolder | None:
    """The run that a source names; null where it is a file of votes, or of prompts.

    Raises:
        RunFolderError: it is neither a file nor a run.
    """
    from clash.cli.common import open_run

    path = Path(source)
    mistyped = not path.exists() and path.suffix in _SUFFIXES
    if mistyped or (path.is_file() and path.name != "manifest.json"):
        return None  # who reads it as a votes file says what is wrong with it
    return open_run(path, runs)
