from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clash.cli.common import print_json, print_line
from clash.cli.options import AsJson
from clash.errors import ConfigError, one_of

_NAMES = ("config", "panel", "prompts", "votes")


def _complete(incomplete: str) -> list[str]:
    return [name for name in _NAMES if name.startswith(incomplete)]


def schema(
    names: Annotated[
        list[str],
        typer.Argument(
            help="config (clash.yaml), panel, prompts or votes (a line of a votes file); with"
            " --check, files.",
            metavar="NAME|FILE…",
            autocompletion=_complete,
        ),
    ],
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Read these files as a run would, and say what is wrong; no key, no network.",
        ),
    ] = False,
    kind: Annotated[
        str | None,
        typer.Option(
            "--as",
            help="What the files of --check are; default: told by their keys.",
            metavar="NAME",
            autocompletion=_complete,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of a file that you write, or check such files.

    `clash schema config` · `clash schema --check clash.yaml prompts.yaml`
    """
    from clash import assets
    from clash.pipeline.check_files import check_file

    if kind is not None:
        _check_name(kind, "--as")
    if check:
        kinds = {name: check_file(Path(name), kind) for name in names}
        if as_json:
            print_json({"checked": kinds})
        for name, file_kind in () if as_json else kinds.items():
            print_line(f"{name}: a valid {file_kind} file")
        return
    if len(names) > 1 or kind is not None:
        raise ConfigError("one schema at a time", field="NAME", hint="--check reads files")
    _check_name(names[0], "NAME")
    # A schema is JSON by itself: --json has nothing to add, so that $schema stays its first key.
    file = assets.path("configs", "schemas", f"{names[0]}.schema.json")
    typer.echo(file.read_text(encoding="utf-8"), nl=False)


def _check_name(name: str, field: str) -> None:

    if name not in _NAMES:
        raise ConfigError(f"no schema {name!r}", field=field, hint=one_of(name, _NAMES))
