"""Read the files that people write as a run would, without a key, a network or a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from clash.collect.load import load
from clash.collect.resolve import read_config, read_panel
from clash.documents import read_yaml
from clash.files.inputs import without_gz
from clash.votes import read_votes
from clash.votes.lines import first_line

if TYPE_CHECKING:
    from pathlib import Path

    FileKind = Literal["config", "panel", "prompts", "votes"]


def check_file(path: Path, kind: str | None = None) -> str:
    """Read a file.

    Args:
        path: the file.
        kind: ``config``, ``panel``, ``prompts`` or ``votes``; null is told by its content.

    Returns:
        What it is.

    Raises:
        InputError: it is wrong; the message has file, line and field.
    """
    kind = kind or kind_of(path)
    match kind:
        case "config":
            read_config(path, {})
        case "panel":
            read_panel(str(path), "owner")
        case "votes":
            read_votes(path)
        case _:
            load(path)
    return kind


def kind_of(path: Path) -> FileKind:
    """What a file is meant to be, from its keys: a file of another kind is read as prompts."""
    if path.is_dir():
        return "prompts"
    match without_gz(path).suffix.lower():
        case ".yaml" | ".yml" | ".json":
            return _kind_of_yaml(path)
        case ".jsonl" | ".ndjson" | ".csv":
            line = first_line(path)
            return "votes" if b"judge" in line and b"item" in line else "prompts"
        case _:
            return "prompts"


def _kind_of_yaml(path: Path) -> FileKind:
    value = read_yaml(path).value
    if not isinstance(value, dict) or isinstance(value.get("prompts"), list):
        return "prompts"
    return "panel" if "judges" in value else "config"
