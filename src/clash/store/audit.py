"""Check a run folder against its manifest: bytes, hashes, and references between records.

``analysis`` recomputes verdicts and report; ``clash verify`` does both.
"""

from __future__ import annotations

import json
import os
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from clash.conversations import transcript
from clash.errors import ClashError, RunFolderError
from clash.files import run_files
from clash.records import Blinding, Call, Item, Judgment, Response
from clash.store import chain, layout
from clash.store.manifest import digest, manifest_text, seal_file, sha256_json, sha256_text
from clash.store.stored import HashedKeys, all_differ, decode_fast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from clash.store.folder import RunFolder
    from clash.store.manifest import FileSeal

BROKEN = (
    ClashError,
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    RecursionError,
)
"""What computing from a folder may raise once its files have been changed."""

_WITHHELD = "not published"
UNSEALED_LABELS = "labels.jsonl has lines that are not sealed: `clash seal` takes them in"
State = Literal["ok", "problem", "unchecked"]


@dataclass(frozen=True)
class AuditGap:
    """Something that a check could not compare, with the reason."""

    reason: str


@dataclass(frozen=True)
class AuditFinding:
    """The outcome of one check.

    Attributes:
        problem: the first difference, with the number of others; null where there is none.
        unchecked: what could not be compared, and why; null where everything could.
    """

    json_properties: ClassVar[tuple[str, ...]] = ("state", "reason")

    check: str
    problem: str | None = None
    unchecked: str | None = None

    @property
    def state(self) -> State:
        """The state of the check; a problem takes precedence over a gap."""
        if self.problem is not None:
            return "problem"
        return "ok" if self.unchecked is None else "unchecked"

    @property
    def reason(self) -> str | None:
        """What the state rests on; null where the check passed."""
        return self.problem or self.unchecked


def finding(
    check: str, results: Iterable[str | AuditGap], *, unless: str | None = None
) -> AuditFinding:
    """The outcome of a check, from its problems and gaps.

    Args:
        check: the statement that is checked.
        results: problems and gaps; an error raised while they are computed is a problem.
        unless: a reason why a difference need not be a change by hand; problems then count as gaps.
    """
    problems, gaps = _Tally(), _Tally()
    try:
        for result in results:
            if isinstance(result, AuditGap):
                gaps.add(result.reason)
            elif unless is None:
                problems.add(result)
            else:
                gaps.add(f"{result} ({unless})")
    except BROKEN as error:
        problems.add(_message(error))
    return AuditFinding(check, problems.text, gaps.text)


def broken(check: str, error: Exception) -> AuditFinding:
    """The finding of a check that failed with ``error`` before it could begin."""
    return AuditFinding(check, _message(error))


@dataclass
class _Tally:
    """The first message and the number of messages: a damaged run may have millions."""

    first: str | None = None
    count: int = 0

    def add(self, message: str) -> None:
        self.first = self.first or message
        self.count += 1

    @property
    def text(self) -> str | None:
        return f"{self.first} (and {self.count - 1} more)" if self.count > 1 else self.first


def _message(error: Exception) -> str:
    if isinstance(error, ClashError):
        return str(error).partition("\n")[0]
    return f"cannot be computed: {type(error).__name__}: {str(error).partition(chr(10))[0]}"


def audit(folder: RunFolder) -> list[AuditFinding]:
    """Run every check on bytes and references; a broken file is a finding, not an error."""
    checks: dict[str, Callable[[RunFolder], Iterator[str | AuditGap]]] = {
        "manifest is sealed": _seal,
        "files have the sealed hashes": _hashes,
        "the folder holds nothing else": _foreign_files,
        "the manifest agrees with its own hashes": _manifest_hashes,
        "every line is a record": _lines,
        "records refer to each other": _references,
        "each presentation is a permutation": _blinding,
        "each call follows the one before it": _chain,
        "answered calls are unique": _calls,
        "rows of batches are accounted for": _batches,
    }
    return [finding(name, check(folder)) for name, check in checks.items()]


def _seal(folder: RunFolder) -> Iterator[str | AuditGap]:
    manifest = folder.manifest()
    if manifest.seal is None:
        yield AuditGap(f"the run has not ended ({manifest.status}), so nothing is sealed")
        return
    data = run_files.read(folder.path / layout.MANIFEST)
    raw = json.loads(data)
    if manifest.seal != digest(raw):
        yield "manifest.json was changed after it was sealed"
    elif manifest_text(raw).encode("utf-8", "replace") != data:
        yield "manifest.json was rewritten after it was sealed"


def changes_since_seal(folder: RunFolder) -> dict[str, str]:
    """What was changed by hand since the run was sealed, by file: a sentence for each.

    Labels that people have added since are no change; a run that has not ended has no seal.
    """
    if folder.manifest().seal is None:
        return {}
    checks = {layout.MANIFEST: _seal(folder)}
    for name, seal in folder.manifest().files.items():
        checks[name] = _file_changes(folder.path, name, seal)
    changes = {name: _first_problem(check) for name, check in checks.items()}
    return {name: change for name, change in changes.items() if change is not None}


def _first_problem(check: Iterator[str | AuditGap]) -> str | None:
    """The first change that a check finds; a file that cannot be read is changed too."""
    try:
        return next((result for result in check if isinstance(result, str)), None)
    except ClashError as error:
        return str(error).partition("\n")[0]


def _file_changes(folder: Path, name: str, seal: FileSeal) -> Iterator[str | AuditGap]:
    if name not in layout.SEALED_FILES:
        yield f"{name!r} is sealed, but is not a file of a run"
        return
    path = folder / name
    if not run_files.is_file(path):
        yield f"{name} is missing"
        return
    current = seal_file(path)
    if current == seal:
        return
    if name == layout.LABELS and current.lines > seal.lines:
        yield from _labels_since(path, seal)
        return
    lines = (
        "" if current.lines == seal.lines else f", {seal.lines} lines sealed, {current.lines} found"
    )
    yield f"{name} was changed after it was sealed{lines}"


def _hashes(folder: RunFolder) -> Iterator[str | AuditGap]:
    manifest = folder.manifest()
    if manifest.seal is None:
        yield AuditGap("the run has not ended, so no file has a sealed hash")
        return
    for name, seal in manifest.files.items():
        yield from _file_changes(folder.path, name, seal)
    for name in layout.SEALED_FILES:
        if name in manifest.files or not run_files.is_file(folder.path / name):
            continue
        if name == layout.LABELS:
            yield AuditGap(UNSEALED_LABELS)
        elif name == layout.PUBLISHED_VERDICTS:  # no clash before 0.2 sealed it
            yield AuditGap(f"{name} is not sealed")
        else:
            yield f"{name} was added after the run was sealed"


def _labels_since(path: Path, seal: FileSeal) -> Iterator[str | AuditGap]:
    """Labels may be added after a run has ended: the sealed lines must be intact, others may follow."""
    if seal_file(path, lines=seal.lines) != seal:
        yield f"{path.name} was changed after it was sealed"
        return
    yield AuditGap(UNSEALED_LABELS)


def _foreign_files(folder: RunFolder) -> Iterator[str]:
    """Entries that clash did not write. Uses ``lstat``, so that no link is followed."""
    for file in sorted(os.scandir(folder.path), key=lambda file: file.name):
        if file.is_symlink():
            yield f"{file.name!r} is a link"
        elif not file.is_file(follow_symlinks=False):
            yield f"{file.name!r} is not a regular file"
        elif file.name not in layout.KNOWN_FILES:
            yield f"{file.name!r} is not a file of a run"
        elif file.name == layout.LOCK and file.stat(follow_symlinks=False).st_size:
            yield f"{file.name!r} is not empty, and clash writes nothing into it"


def _manifest_hashes(folder: RunFolder) -> Iterator[str | AuditGap]:
    """The parts of a manifest that are hashed separately, before the first call is made."""
    manifest = folder.manifest()
    for part in ("config", "panel", "templates"):
        expected_hash = manifest.hashes.get(part)
        if expected_hash is None:
            yield AuditGap(f"manifest.json has no hash of its {part}")
        elif sha256_json(getattr(manifest, part)) != expected_hash:
            yield f"{part} of manifest.json has a different hash than at the start of the run"
    for name, text in manifest.templates.items():
        if sha256_text(text) != manifest.hashes.get(f"template {name}"):
            yield (
                f"the template {name} of manifest.json has a different hash than at the start of "
                "the run"
            )


def _lines(folder: RunFolder) -> Iterator[str]:
    for name, model in layout.RECORDS.items():
        path = folder.path / name
        try:
            if model is not Call:
                folder.records(model)
                continue
            for number, line in enumerate(run_files.lines(path), start=1):
                decode_fast(path, number, line, model)
        except RunFolderError as error:
            yield str(error).partition("\n")[0]


def _references(folder: RunFolder) -> Iterator[str]:
    items = {item.item_id for item in folder.records(Item)}
    calls = HashedKeys(call.call_id for call in folder.call_summaries())
    pages = HashedKeys((b.item_id, b.presentation, b.judge) for b in folder.records(Blinding))
    for response in folder.records(Response):
        if response.item_id not in items:
            yield f"a response is of the unknown item {response.item_id!r}"
        if response.call_id is not None and response.call_id not in calls:
            yield f"a response of {response.item_id!r} comes from a call that does not exist"
        for turn in response.turns:
            if any(i is not None and i not in calls for i in (turn.call_id, turn.user_call_id)):
                yield f"a turn of {response.item_id!r} comes from a call that does not exist"
        texts = [turn.text for turn in response.turns]
        if texts and response.text is not None and response.text != transcript(texts):
            yield f"a response of {response.item_id!r} has another text than its turns"
    for label in folder.labels():
        if label.item_id not in items:
            yield f"a label is of the unknown item {label.item_id!r}"
    for judgment in folder.records(Judgment):
        if judgment.item_id not in items:
            yield f"a judgment is of the unknown item {judgment.item_id!r}"
        shared_page = (judgment.item_id, judgment.presentation, None)
        own_page = (judgment.item_id, judgment.presentation, judgment.seat)
        # A judgment that failed before its judge was called has no page.
        was_asked = judgment.is_usable or judgment.call_id is not None
        if was_asked and shared_page not in pages and own_page not in pages:
            yield f"a judgment of {judgment.item_id!r} is of a page that is not sealed"
        if judgment.call_id is not None and judgment.call_id not in calls:
            yield f"a judgment of {judgment.item_id!r} comes from a call that does not exist"


def _blinding(folder: RunFolder) -> Iterator[str]:
    texts = HashedKeys(
        (response.item_id, response.candidate)
        for response in folder.records(Response)
        # The publisher of a converted run may withhold texts; the record then says so.
        if response.text is not None
        or response.source == "injected"
        or (response.error or "").startswith(_WITHHELD)
    )
    for page in folder.records(Blinding):
        labels = [f"A{number}" for number in range(len(page.labels))]
        candidates = list(page.labels.values())
        if list(page.labels) != labels or len(set(candidates)) < len(candidates):
            yield f"the labels of {page.item_id!r} are not a permutation"
        elif not all((page.item_id, name) in texts for name in candidates):
            yield f"the labels of {page.item_id!r} name a candidate without a response"


def _calls(folder: RunFolder) -> Iterator[str]:
    call_ids = (call.call_id for call in folder.call_summaries() if call.outcome != "error")
    if all_differ(array("q", map(hash, call_ids))):
        return
    answer_counts = Counter(c.call_id for c in folder.call_summaries() if c.outcome != "error")
    for call_id, times in answer_counts.items():
        if times > 1:
            yield f"the call {call_id} was answered (and paid) {times} times"


def _chain(folder: RunFolder) -> Iterator[str | AuditGap]:
    """Each call carries the hash of the line before it.

    Where a newer clash resumed a run of a version without the chain, unlinked calls come first.
    """
    manifest = folder.manifest()
    n_bare, n_linked, head = 0, 0, chain.START
    for number, line in enumerate(run_files.lines(folder.path / layout.CALLS), start=1):
        link = chain.link(line)
        if link is None and not n_linked:
            n_bare += 1
        elif link != head:
            yield f"{layout.CALLS}:{number} does not follow the line before it"
            return
        else:
            n_linked += 1
        head = chain.digest(line)
    if n_bare:
        yield AuditGap(
            f"the first {n_bare} of {n_bare + n_linked} calls carry no hash of the call before"
        )
    if manifest.seal is None:
        yield AuditGap("the run has not ended, so its last call is not sealed")
    elif head != manifest.chain and (n_linked or manifest.chain is not None):
        yield f"the last line of {layout.CALLS} is not the one that manifest.json names"


def _batches(folder: RunFolder) -> Iterator[str]:
    batches = folder.batches()
    if not batches:
        return
    attempts = {(call.call_id, call.attempt) for call in folder.call_summaries()}
    ids: set[str] = set()
    for batch in batches:
        for row in batch.rows:
            if row.custom_id in ids:
                yield f"the batches have two rows {row.custom_id}"
            ids.add(row.custom_id)
            if batch.state == "ended" and (row.call_id, row.attempt) not in attempts:
                yield f"the batch {batch.batch} has ended, and its row {row.custom_id} has no call"
