"""Whether a run folder is what its manifest says, as far as bytes and references tell.

Recomputing verdicts and report is for ``analysis``; ``clash verify`` does both.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash import files
from clash.errors import ClashError, RunFolderError
from clash.store import layout
from clash.store.manifest import digest, seal_file, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from clash.store.folder import RunFolder

BROKEN = (ClashError, LookupError, TypeError, ValueError, ArithmeticError)
"""What computing from a folder may raise once someone has changed it: it then is not what it was."""

_WITHHELD = "not published"


@dataclass(frozen=True)
class Finding:
    """One thing that was checked.

    Attributes:
        problem: what is wrong; null where nothing is.
    """

    check: str
    problem: str | None = None


def audit(folder: RunFolder) -> list[Finding]:
    """Every check on bytes and references; a broken file is a finding, not an error."""
    checks: dict[str, Callable[[RunFolder], Iterator[str]]] = {
        "manifest is sealed": _seal,
        "files have the sealed hashes": _hashes,
        "every line is a record": _lines,
        "records refer to each other": _references,
        "each presentation is a permutation": _blinding,
        "answered calls are unique": _calls,
        "rows of batches are accounted for": _batches,
    }
    return [_run(name, check, folder) for name, check in checks.items()]


def _run(name: str, check: Callable[[RunFolder], Iterator[str]], folder: RunFolder) -> Finding:
    try:
        problems = list(check(folder))
    except RunFolderError as error:
        problems = [str(error).partition("\n")[0]]
    if not problems:
        return Finding(name)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return Finding(name, problems[0] + more)


def _seal(folder: RunFolder) -> Iterator[str]:
    manifest = folder.manifest()
    if manifest.seal is None:
        yield f"the run has not ended ({manifest.status}), so nothing is sealed"
        return
    data = files.read(folder.path / layout.MANIFEST)
    raw = json.loads(data)
    if manifest.seal != digest(raw):
        yield "manifest.json was changed after it was sealed"
    elif written(raw).encode("utf-8", "replace") != data:
        yield "manifest.json was rewritten after it was sealed"


def _hashes(folder: RunFolder) -> Iterator[str]:
    seals = folder.manifest().files
    for name, sealed in seals.items():
        path = folder.path / name
        if not files.is_file(path):
            yield f"{name} is missing"
            continue
        found = seal_file(path)
        if found != sealed:
            lines = (
                ""
                if found.lines == sealed.lines
                else f", {sealed.lines} lines sealed, {found.lines} found"
            )
            yield f"{name} was changed after it was sealed{lines}"
    known = {*seals, layout.MANIFEST, layout.LABELS, layout.LOCK}
    for name in (*layout.COLLECTED, *layout.AT_TIMES, *layout.DERIVED):
        if seals and name not in known and files.is_file(folder.path / name):
            yield f"{name} was added after the run was sealed"


def _lines(folder: RunFolder) -> Iterator[str]:
    from clash.store.journal import read

    for name, model in layout.RECORDS.items():
        try:
            for _ in read(folder.path / name, model):
                pass
        except RunFolderError as error:
            yield str(error).partition("\n")[0]


def _references(folder: RunFolder) -> Iterator[str]:
    items = {item.item_id for item in folder.items()}
    calls = {call.call_id for call in folder.calls()}
    pages = {(b.item_id, b.presentation, b.judge) for b in folder.blinding()}
    for response in folder.responses():
        if response.item_id not in items:
            yield f"a response is of the unknown item {response.item_id!r}"
        if response.call_id is not None and response.call_id not in calls:
            yield f"a response of {response.item_id!r} comes from a call that is not there"
    for judgment in folder.judgments():
        if judgment.item_id not in items:
            yield f"a judgment is of the unknown item {judgment.item_id!r}"
        shared = (judgment.item_id, judgment.presentation, None)
        own = (judgment.item_id, judgment.presentation, judgment.judge)
        # One that failed without ever being asked for has seen no page.
        asked = judgment.ranking is not None or judgment.call_id is not None
        if asked and shared not in pages and own not in pages:
            yield f"a judgment of {judgment.item_id!r} is of a page that was never sealed"
        if judgment.call_id is not None and judgment.call_id not in calls:
            yield f"a judgment of {judgment.item_id!r} comes from a call that is not there"


def _blinding(folder: RunFolder) -> Iterator[str]:
    texts: dict[str, set[str]] = {}
    for response in folder.responses():
        # The texts of a run that somebody else published may be withheld; the record says so.
        withheld = response.source == "injected" or (response.error or "").startswith(_WITHHELD)
        if response.text is not None or withheld:
            texts.setdefault(response.item_id, set()).add(response.candidate)
    for page in folder.blinding():
        labels = [f"A{number}" for number in range(len(page.labels))]
        shown = list(page.labels.values())
        if list(page.labels) != labels or len(set(shown)) < len(shown):
            yield f"the labels of {page.item_id!r} are no permutation"
        elif not set(shown) <= texts.get(page.item_id, set()):
            yield f"the labels of {page.item_id!r} name a candidate without a response"


def _calls(folder: RunFolder) -> Iterator[str]:
    answered = Counter(c.call_id for c in folder.calls() if c.outcome != "error")
    for call_id, times in answered.items():
        if times > 1:
            yield f"the call {call_id} was answered (and paid) {times} times"


def _batches(folder: RunFolder) -> Iterator[str]:
    batches = folder.batches()
    if not batches:
        return
    made = {(call.call_id, call.attempt) for call in folder.calls()}
    ids: set[str] = set()
    for batch in batches:
        for row in batch.rows:
            if row.custom_id in ids:
                yield f"the batches have two rows {row.custom_id}"
            ids.add(row.custom_id)
            if batch.state == "ended" and (row.call_id, row.attempt) not in made:
                yield f"the batch {batch.batch} has ended, and its row {row.custom_id} has no call"
