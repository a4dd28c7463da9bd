"""A gate's outcome for GitHub: annotations in the log, a table in the step summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report import gate, markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.gate import Checked


def lines(run: str, found: Sequence[Checked]) -> Iterator[str]:
    """A workflow command for each rule that fails, and one notice where none does."""
    failed = [line for line in found if not line.passed]
    for line in failed:
        title = _property(f"clash gate: {line.rule.figure}")
        yield f"::error title={title}::{_data(f'{run}: {line.message}')}"
    if not failed:
        yield f"::notice title=clash gate::{_data(f'{run}: {len(found)} rules hold')}"


def summary(run: str, found: Sequence[Checked]) -> str:
    """Markdown for the step summary."""
    return markdown.table(gate.table(run, found)) + "\n"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
