"""The names of all commands of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer.main

from clash.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator


def command_names() -> set[str]:
    """``eval``, ``datasets list``, …"""
    return set(_names(typer.main.get_command(app)))


def _names(group: object, before: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _names(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"
