"""What the user named: a run, a votes file, or votes that are in memory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from clash.store.folder import RunFolder

if TYPE_CHECKING:
    from clash.errors import RunFolderError
    from clash.pipeline.options import Observer
    from clash.votes import Votes

_SUFFIXES = frozenset({".jsonl", ".csv", ".gz"})


def open_run(run: str | Path, runs: Path, observer: Observer) -> RunFolder:
    """Open a run by path, by its id in the folder ``runs``, or as ``latest``.

    Raises:
        RunFolderError: there is no such run.
    """

    def note(error: RunFolderError) -> None:
        observer.note(f"left out: {error}")

    return RunFolder.open(run, out=runs, on_skip=note)


def find_run(source: str | Path, runs: Path, observer: Observer) -> RunFolder | None:
    """The run that a source names; null where it is a file of votes or of prompts.

    Raises:
        RunFolderError: it is neither a file nor a run.
    """
    path = Path(source)
    is_mistyped = not path.exists() and path.suffix in _SUFFIXES
    if is_mistyped or (path.is_file() and path.name != "manifest.json"):
        return None  # the reader of the file says what is wrong with it
    return open_run(source, runs, observer)


def read_votes(
    source: str | Path,
    runs: Path,
    observer: Observer,
    *,
    judges: str | None = None,
    subset: str | None = None,
    presentation: str | None = None,
    decisive: bool = False,
) -> Votes:
    """The votes of a file or of a run.

    Raises:
        InputError: a file is wrong, or nothing is left after the filter.
        RunFolderError: the source is neither a file nor a run.
    """
    from clash.votes import encode
    from clash.votes import read_votes as read_file
    from clash.votes.from_run import vote_rows

    folder = find_run(source, runs, observer)
    if folder is None:
        return read_file(
            source, judges=judges, subset=subset, presentation=presentation, decisive=decisive
        )
    return encode(
        vote_rows(folder),
        judges=judges,
        subset=subset,
        presentation=presentation,
        decisive=decisive,
    )
