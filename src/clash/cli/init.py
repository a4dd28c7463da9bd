from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clash.cli.common import (
    environment,
    print_json,
    print_line,
    print_text,
    print_written,
    say,
)
from clash.cli.completion import complete_panels
from clash.cli.options import AsJson, EnvFile
from clash.errors import ConfigError, InputError
from clash.files import run_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clash.pipeline.starter import Starter


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.", metavar="[DIR]")] = Path(),
    models: Annotated[
        str | None,
        typer.Option(
            "--models",
            "-m",
            help="What you compare: provider/model,… Without it you are asked on a terminal;"
            " elsewhere the keys that are set decide.",
        ),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option(
            "--panel",
            "-p",
            help="Who judges; default: a panel that your keys can ask.",
            autocompletion=complete_panels,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
    env_file: EnvFile = None,
    as_json: AsJson = False,
) -> None:
    """Write a clash.yaml, prompts and a CI workflow that work as they are.

    `clash init --models openai/gpt-6-luna,anthropic/claude-haiku-5-5`
    """
    from clash.pipeline.starter import (
        default_models,
        files,
        key_report,
        make_starter,
        retirement_warnings,
    )

    environ = environment(env_file, None)
    defaults = default_models(environ)
    if models is None and _is_terminal() and not as_json:
        _say_keys(key_report(environ))
        starter = _ask_for_models(defaults, panel, environ)
    else:
        names = defaults if models is None else _names(models)
        starter = make_starter(names, panel, environ)
    for warning in retirement_warnings(starter):
        say(f"warning: {warning}", style="yellow")
    paths = _write(folder, files(starter), force=force)
    command = _next_command(folder)
    if as_json:
        print_json(
            {
                "written": paths,
                "candidates": {c.id: c.model for c in starter.candidates},
                "panel": starter.panel if isinstance(starter.panel, str) else starter.panel.name,
                "missing_keys": starter.missing,
                "next": command,
            }
        )
        return
    print_written(paths)
    listing = ", ".join(f"{c.id} ({c.model})" for c in starter.candidates)
    print_text(f"Compares {listing}")
    if starter.missing:
        keys = ", ".join(starter.missing)
        print_text(f"Not set yet: {keys} (export NAME=…, or a line in .env)")
    print_line(f"Next  {command}    plan and price; nothing is sent")


def _is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _names(models: str) -> list[str]:
    return [name.strip() for name in models.split(",") if name.strip()]


def _say_keys(report: Mapping[str, bool]) -> None:
    """Which keys exist, by the names of their variables; never a key."""
    groups = {
        "Keys that are set": [name for name, is_set in report.items() if is_set],
        "Not set": [name for name, is_set in report.items() if not is_set],
    }
    for title, names in groups.items():
        if names:
            say(f"{title}: {', '.join(names)}")


def _ask_for_models(
    defaults: Iterable[str], panel: str | None, environ: Mapping[str, str]
) -> Starter:
    """Ask which models to compare, until the answer can be used."""
    from clash.pipeline.starter import make_starter

    while True:
        answer = typer.prompt(
            "Which models do you compare? (provider/model, comma separated)",
            default=",".join(defaults),
            err=True,
        )
        try:
            return make_starter(_names(answer), panel, environ)
        except ConfigError as error:
            if error.field == "panel":
                raise
            say(f"error: {error}", style="red")


def _write(folder: Path, texts: Mapping[str, str], *, force: bool) -> list[str]:
    """Write the files of a project; nothing is written where one of them must not be.

    Raises:
        InputError: one is there already, or a folder is a link that leads elsewhere.
    """
    targets = {folder / name: text for name, text in texts.items()}
    # A link that leads nowhere yet is there too: writing would follow it.
    existing = [str(target) for target in targets if os.path.lexists(target)]
    if existing and not force:
        raise InputError(f"{existing[0]} is there already", hint="another folder, or --force")
    for target in targets:
        if not target.parent.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{target.parent} leads out of {folder}", hint="remove the link in it")
        run_files.is_file(target)  # refuses a link before any other file is written
    for target, text in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        run_files.replace(target, text.encode())
    return [str(target) for target in targets]


def _next_command(folder: Path) -> str:
    """The one command that shows what the new files do."""
    change = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    return f"{change}clash eval --dry-run"
