"""A run folder that somebody changed, where a command stumbles over what no longer fits together."""

from __future__ import annotations

import traceback
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from clash.errors import RunFolderError

if TYPE_CHECKING:
    from collections.abc import Sequence

# What reading another's records raises where they contradict each other. The checks of `clash
# verify` know every rule that records keep; to repeat them before each report would double its time.
STUMBLES = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)


def spoilt(error: Exception, arguments: Sequence[str]) -> RunFolderError | None:
    """The error of the run folder that a command line names; None where it names none.

    Without such a folder the error is a bug of ours, and its traceback is wanted.
    """
    # What follows --run-id is a run that the command itself has made, by now.
    read = [word for before, word in pairwise(["", *arguments]) if before != "--run-id"]
    named = next((word for word in read if _is_run(word, arguments)), None)
    if named is None:
        return None
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}"
    return RunFolderError(
        f"{named}: its records do not fit together ({type(error).__name__}: {error}, at {where})"
        f"\n  fix: `clash verify {named}` says what was changed; if it finds nothing, this is a bug"
        " of clash: please report it"
    )


def _is_run(word: str, arguments: Sequence[str]) -> bool:
    """Whether a word is a run folder, or the name of one under ``--out``."""
    from clash.store import layout

    try:
        return word == "latest" or any(
            (Path(out) / word / layout.MANIFEST).is_file() for out in (".", "runs", *arguments)
        )
    except (OSError, ValueError):  # a text that can be no path
        return False
