"""Whether verdicts and report follow from the judgments: all computed anew, offline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clash import files
from clash.analysis.findings import findings_of
from clash.analysis.rundata import RunData
from clash.errors import RunFolderError
from clash.store import layout
from clash.store.audit import BROKEN, Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.analysis.findings import Findings
    from clash.store.folder import RunFolder

    Redrawn = Callable[[RunFolder, RunData, Findings], str | None]

_LARGEST = 1 << 28
"""Bytes of a ``report.json``: a hundred times that of 100,000 items."""


def recheck(folder: RunFolder, redrawn: Redrawn | None = None) -> list[Finding]:
    """Compare what stands in the folder with what follows from it.

    Args:
        folder: the run.
        redrawn: what is wrong with its pages, which are not drawn here.
    """
    try:
        return list(_checks(folder, redrawn))
    except BROKEN as error:
        problem = f"cannot be computed: {str(error).partition(chr(10))[0]}"
        return [Finding("verdicts and report follow from the judgments", problem)]


def _checks(folder: RunFolder, redrawn: Redrawn | None) -> Iterator[Finding]:
    data = RunData.load(folder)
    yield Finding("verdicts follow from the judgments", _verdicts(folder, data))
    found = findings_of(data)
    yield Finding("the report follows from the records", _report(folder, found))
    if redrawn is not None:
        yield Finding("the page shows the report", redrawn(folder, data, found))


def _verdicts(folder: RunFolder, data: RunData) -> str | None:
    try:
        written = folder.verdicts()
    except RunFolderError as error:
        return str(error).partition("\n")[0]
    if len(written) != len(data.verdicts):
        return f"{len(written)} verdicts are written, {len(data.verdicts)} follow"
    for found, follows in zip(written, data.verdicts, strict=True):
        if found != follows:
            return (
                f"item {found.item_id!r}: written {found.winner or found.abstained or 'tie'!r},"
                f" follows {follows.winner or follows.abstained or 'tie'!r}"
            )
    return None


def _report(folder: RunFolder, found: Findings) -> str | None:
    path = folder.path / layout.REPORT_JSON
    try:
        written = json.loads(files.read(path, most=_LARGEST))
    except FileNotFoundError:
        return "report.json is missing"
    except ValueError:
        return "report.json is not JSON"
    # Through JSON and back, so that tuples are lists on both sides.
    follows = json.loads(json.dumps(found.as_json()))
    if written.get("clash") != follows["clash"]:
        return None  # another version may word or compute it otherwise; the hashes still hold
    differing = [key for key in follows if written.get(key) != follows[key]]
    return f"report.json says otherwise of {', '.join(differing)}" if differing else None
