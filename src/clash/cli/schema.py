from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import AsJson


class SchemaName(StrEnum):
    """The files that have a schema."""

    config = "config"
    panel = "panel"
    prompts = "prompts"
    votes = "votes"


def schema(
    name: Annotated[
        SchemaName | None,
        typer.Argument(
            help="config (clash.yaml), panel, prompts or votes (a line of a votes file).",
            metavar="NAME",
        ),
    ] = None,
    check: Annotated[
        list[Path] | None,
        typer.Option(
            "--check",
            metavar="FILE",
            help="Read this file as clash would, and say what is wrong with it; no key, no network."
            " Repeat for several. NAME says what it is, where its content does not.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of a file that you write, or check such files.

    `clash schema config` · `clash schema --check clash.yaml --check prompts.yaml`
    """
    from clash import assets
    from clash.cli.common import print_json, stdout
    from clash.errors import ConfigError
    from clash.pipeline.check_files import check_file

    if check:
        kinds = {str(path): check_file(path, name.value if name else None) for path in check}
        if as_json:
            print_json({"checked": kinds})
        for path, kind in () if as_json else kinds.items():
            stdout().print(f"{path}: a valid {kind} file", soft_wrap=True, markup=False)
        return
    if name is None:
        raise ConfigError(
            "which schema?", field="NAME", hint=f"one of {', '.join(SchemaName)}, or --check FILE"
        )
    # A schema is JSON by itself: --json has nothing to add, so that $schema stays its first key.
    file = assets.path("configs", "schemas", f"{name.value}.schema.json")
    typer.echo(file.read_text(encoding="utf-8"), nl=False)
