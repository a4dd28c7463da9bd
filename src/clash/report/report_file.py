"""Write a report over several runs to a file, as JSON or Markdown."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clash.errors import ConfigError
from clash.report import markdown
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from clash.report.tables import Table


def write_report(
    path: Path,
    title: str,
    record: Mapping[str, Any],
    tables: Sequence[Table],
    runs: Sequence[str],
) -> None:
    """Write a report as its ending says, JSON or Markdown.

    Raises:
        ConfigError: another ending.
    """
    write_text(path, render_report(path.suffix, title, record, tables, runs))


def write_text(path: Path, text: str) -> None:
    """Write a file for people, and the folders that lead to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def render_report(
    suffix: str,
    title: str,
    record: Mapping[str, Any],
    tables: Sequence[Table],
    runs: Sequence[str],
) -> str:
    """The text of a report, JSON or Markdown.

    Raises:
        ConfigError: another ending.
    """
    match suffix.lower():
        case ".json":
            document = {"clash": __version__, "runs": list(runs), **record}
            text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        case ".md":
            text = markdown.render_comparison(title, tables, runs)
        case other:
            raise ConfigError(f"no report ends in {other!r}", field="--to", hint=".md or .json")
    return text
