"""Options and small printing that commands share."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clash.escape import for_json, for_terminal
from clash.version import __version__

if TYPE_CHECKING:
    from rich.console import Console

    from clash.errors import RunFolderError
    from clash.store.folder import RunFolder

_FILE_WIDTH = 110

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", "-c", help="Configuration file; clash.yaml is read by itself."),
]
Seed = Annotated[
    int | None, typer.Option("--seed", envvar="CLASH_SEED", help="Seed of every random choice.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout, no more.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="The whole report on the terminal.")]
Out = Annotated[
    Path, typer.Option("--out", "-o", envvar="CLASH_OUT", help="Folder that runs land in.")
]
EnvFile = Annotated[
    Path | None, typer.Option("--env-file", help="File of NAME=value lines; .env by itself.")
]
TrustHost = Annotated[
    list[str] | None,
    typer.Option(
        "--trust-host",
        metavar="HOST",
        help="Let keys go to this server in this command; `clash trust` confirms one for good."
        " Repeat for several, or list them in CLASH_TRUST_HOSTS.",
    ),
]
Batch = Annotated[
    bool | None,
    typer.Option(
        "--batch/--live",
        envvar="CLASH_BATCH",
        help="Ask through the providers' batch APIs: half the price, answers within a day.",
    ),
]


def _check_run_id(run_id: str | None) -> str | None:
    from clash.store.folder import check_run_id

    return None if run_id is None else check_run_id(run_id)


RunId = Annotated[
    str | None, typer.Option("--run-id", callback=_check_run_id, help="Name of the run folder.")
]
ExcludeSelf = Annotated[
    bool | None,
    typer.Option(
        "--exclude-self/--include-self",
        help="A voting judge that is a candidate too does not judge its own responses.",
    ),
]
Prereg = Annotated[
    Path | None,
    typer.Option("--prereg", help="A plan of `clash prereg`: the report lists every deviation."),
]
RunArgument = Annotated[
    str, typer.Argument(help="A run folder, a run id under --out, or `latest`.", metavar="RUN")
]


def stdout() -> Console:
    """Where results go; off a terminal lines may be longer than a terminal's 80."""
    from clash.report.terminal import console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _FILE_WIDTH
    return console(width=width)


def stderr() -> Console:
    """Where progress and warnings go."""
    from clash.report.terminal import console

    return console(stderr=True)


def person_here() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def say(text: str, style: str = "dim") -> None:
    """A line for people, on stderr."""
    from rich.text import Text

    # Soft: a path that is broken over two lines cannot be copied.
    stderr().print(Text(for_terminal(text), style=style), soft_wrap=True)


def left_out(error: RunFolderError) -> None:
    """Say that a run is passed over, and why."""
    say(f"left out: {error}", style="yellow")


def open_run(run: str | Path, out: Path) -> RunFolder:
    """The run that a command was given.

    Raises:
        RunFolderError: there is none.
    """
    from clash.store.folder import RunFolder

    return RunFolder.open(run, out=out, on_skip=left_out)


def print_json(value: dict[str, Any]) -> None:
    """The one object of ``--json``; escaped where the encoding of stdout lacks a letter."""
    whole = {"clash": __version__, **value}
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    text = json.dumps(whole, ensure_ascii=not unicode, allow_nan=False)
    sys.stdout.write(f"{for_json(text)}\n")
