"""A gate's outcome for GitHub: annotations in the log, a table in the step summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.escape import for_workflow
from clash.report import gate, markdown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.gate import Checked


def lines(run: str, found: Sequence[Checked]) -> Iterator[str]:
    """A workflow command for each rule that fails, and one notice where none does."""
    failed = [line for line in found if not line.passed]
    for line in failed:
        title = _property(f"clash gate: {line.rule.figure}")
        yield f"::error title={title}::{for_workflow(f'{run}: {line.message}')}"
    if not failed:
        yield f"::notice title=clash gate::{for_workflow(f'{run}: {len(found)} rules hold')}"


def summary(run: str, found: Sequence[Checked]) -> str:
    """Markdown for the step summary."""
    return markdown.table(gate.table(run, found)) + "\n"


def _property(value: str) -> str:
    return for_workflow(value).replace(":", "%3A").replace(",", "%2C")
