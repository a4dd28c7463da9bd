"""Results of other tools, recognised by their form and read as runs or as labelled pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from clash.datasets import record_files
from clash.datasets.importers import alpaca_eval, arena_hard, fastchat, promptfoo
from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from clash.datasets.dataset import Dataset
    from clash.datasets.foreign_run import ForeignRun

Format = Literal["alpaca-eval", "arena-hard", "fastchat", "promptfoo", "pairs"]
FORMATS: tuple[Format, ...] = get_args(Format)
_PROBED_FILES = ("model_judgment/**/*.jsonl", "annotations.json")
_MOST_PROBES = 3
"""Files of a folder whose first record is looked at: they are of one form."""

_READERS: dict[Format, Callable[[Path], list[ForeignRun]]] = {
    "alpaca-eval": alpaca_eval.read,
    "arena-hard": arena_hard.read,
    "fastchat": fastchat.read,
    "promptfoo": promptfoo.read,
}


@dataclass(frozen=True)
class Conversion:
    """What was read: runs with judgments, or a data set without any."""

    format: str
    runs: tuple[ForeignRun, ...] = ()
    dataset: Dataset | None = None


def convert(
    path: Path, form: Format | None = None, *, forms: Sequence[str] = FORMATS
) -> Conversion:
    """Read the result files of another tool, or a file of labelled pairs.

    Args:
        path: a file, or the folder that the tool wrote to.
        form: which tool; recognised by what is there where not given.
        forms: the forms that a refusal lists.

    Raises:
        InputError: nothing there is recognised, or a record cannot be used.
    """
    if not path.exists():
        raise InputError("no such file or folder", path=path, hint="check the path")
    form = form or recognise(path, forms)
    if form == "pairs":
        from clash.datasets import loaders

        return Conversion(form, dataset=loaders.load_file(path))
    try:
        runs = _READERS[form](path)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # A field of another type than the tool writes; the readers take its types for granted.
        message = f"holds a record that {form} does not write ({type(error).__name__}: {error})"
        raise InputError(message.partition("\n")[0], path=path, hint="export it again") from None
    return conversion_of(form, runs, path)


def conversion_of(form: str, runs: list[ForeignRun], path: Path) -> Conversion:
    """The runs that a reader found.

    Raises:
        InputError: none of them has a judgment.
    """
    if not any(run.judgments for run in runs):
        raise InputError(f"contains no judgment in the format of {form}", path=path)
    return Conversion(form, runs=tuple(runs))


def recognise(path: Path, forms: Sequence[str] = FORMATS) -> Format:
    """The tool that wrote ``path``.

    Raises:
        InputError: it is none that clash knows.
    """
    if promptfoo.is_here(path):
        return "promptfoo"
    for file in record_files.files_below(path, *_PROBED_FILES)[:_MOST_PROBES]:
        row = record_files.first(file)
        form = None if row is None else _form(frozenset(row.value))
        if form is not None:
            return form
    if path.is_file():
        return "pairs"
    raise InputError(
        "contains no format that is recognised",
        path=path,
        hint=f"name its format: {', '.join(forms)}",
    )


def _form(keys: frozenset[str]) -> Format | None:
    if keys >= arena_hard.COLUMNS:
        return "arena-hard"
    if keys >= fastchat.PAIR or keys >= fastchat.SINGLE:
        return "fastchat"
    return "alpaca-eval" if keys >= alpaca_eval.COLUMNS else None
