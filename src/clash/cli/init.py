from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from clash.cli.options import AsJson

_FILES = {
    "clash.yaml": "clash.yaml",
    "prompts.yaml": "prompts.yaml",
    "github-workflow.yaml": ".github/workflows/clash.yaml",
}


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write.", metavar="[DIR]")] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented clash.yaml, a prompts file and a CI example."""
    from clash import assets
    from clash.cli.common import print_json, stdout
    from clash.errors import InputError
    from clash.files import run_files

    targets = {assets.path("configs", "examples", name): folder / to for name, to in _FILES.items()}
    # A link that leads nowhere yet is there too: writing would follow it.
    existing = [str(target) for target in targets.values() if os.path.lexists(target)]
    if existing and not force:
        raise InputError(f"{existing[0]} is there already", hint="another folder, or --force")
    for target in targets.values():
        if not target.parent.resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{target.parent} leads out of {folder}", hint="remove the link in it")
    for file, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        run_files.replace(target, file.read_bytes())
    paths = [str(target) for target in targets.values()]
    if as_json:
        print_json({"written": paths})
        return
    for name in paths:
        stdout().print(f"wrote {name}", soft_wrap=True)
    stdout().print("next: edit prompts.yaml, then `clash doctor` and `clash eval --dry-run`")
