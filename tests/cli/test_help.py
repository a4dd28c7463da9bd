"""Help can be read whole on every terminal."""

from __future__ import annotations

import re

import pytest
import typer

from clash.cli.app import app, run


def _commands(command, path=()):
    """Every command that does something, with its path."""
    groups = getattr(command, "commands", None)
    if groups is None:
        yield path, command
        return
    for name, sub in groups.items():
        yield from _commands(sub, (*path, name))


def _names(command):
    """Names that must be whole: options, and variables of the environment."""
    for parameter in command.params:
        yield from (name for name in parameter.opts + parameter.secondary_opts if name[0] == "-")
        yield from re.findall(r"[A-Z]+_[A-Z_]+", f"{parameter.envvar} {parameter.help}")


@pytest.mark.parametrize("width", [60, 80, 99, 100])
def test_no_name_of_an_option_or_variable_is_cut(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    for path, command in _commands(typer.main.get_command(app)):
        assert run([*path, "--help"]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= width
        joined_text = "".join(text.split())  # a line may end within a long name
        assert [name for name in _names(command) if name not in joined_text] == [], path
