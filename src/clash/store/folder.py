"""A run folder: created once, written by one process, read by anyone."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar, cast

from pydantic import ValidationError

from clash.errors import RunFolderError
from clash.files import run_files
from clash.records import (
    SCHEMA_VERSION,
    Batch,
    Blinding,
    Call,
    CallSummary,
    Criteria,
    Item,
    Judgment,
    Label,
    PoolItem,
    Record,
    Reservation,
    Response,
    Verdict,
)
from clash.secrets.redaction import NO_SECRETS, Redactor
from clash.store import chain, journal, layout
from clash.store.chain import ChainedJournal
from clash.store.journal import Journal
from clash.store.manifest import CODEC, Manifest, now, seals_of
from clash.store.secrecy import without_secrets
from clash.store.stored import StoredRecords
from clash.store.table import RecordTable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    OnSkip = Callable[[RunFolderError], object]

R = TypeVar("R", bound=Record)
_NO_RUNS_HINT = (
    "`clash demo` makes one without a key, `clash eval PROMPTS` one of your prompts; "
    "CLASH_OUT=FOLDER looks in another folder"
)
_LOOK_S = 0.02
"""Seconds that a look at a lock is over in."""


@dataclass
class RunFolder:
    """Reads a run. Each method reads from disk; nothing is cached."""

    path: Path

    @classmethod
    def open(
        cls, path: Path | str, *, out: Path | str = "runs", on_skip: OnSkip | None = None
    ) -> Self:
        """The run at ``path``, or the run of that id under ``out``.

        Args:
            path: a folder, an id, or ``latest``: the newest run that can be read.
            out: the folder of the runs.
            on_skip: is called with the error of each run that ``latest`` passes over.

        Raises:
            RunFolderError: there is no such run, or its manifest cannot be read.
        """
        folder = cls.find(path, out=out, on_skip=on_skip)
        folder.manifest()
        return folder

    @classmethod
    def find(
        cls, path: Path | str, *, out: Path | str = "runs", on_skip: OnSkip | None = None
    ) -> Self:
        """As :meth:`open`, without reading the manifest: for an audit of a damaged run.

        Raises:
            RunFolderError: there is no such run.
        """
        if str(path) == "latest" and not run_files.is_file(Path(path) / layout.MANIFEST):
            return cls(_latest(Path(out), on_skip))
        return cls(_find(Path(path), Path(out)))

    def sibling(self, run_id: str) -> RunFolder:
        """The run with this id in the same parent folder; a manifest names its parent this way.

        Raises:
            RunFolderError: it is not a run id.
        """
        return RunFolder(self.path.parent / check_run_id(run_id, layout.MANIFEST))

    def manifest(self) -> Manifest:
        """The manifest.

        Raises:
            RunFolderError: it is missing, broken, of a newer schema, or names its run as no id.
        """
        file = self.path / layout.MANIFEST
        try:
            manifest = Manifest.model_validate_json(run_files.read(file))
        except FileNotFoundError:
            raise RunFolderError(f"{self.path}: is not a run folder (no manifest.json)") from None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            reason = ": ".join(filter(None, [".".join(map(str, first["loc"])), first["msg"]]))
            raise RunFolderError(
                f"{file}: is not a manifest ({reason})\n  fix: {_manifest_hint(self.path)}"
            ) from None
        unknown = {*manifest.codecs.values()} - {CODEC}
        if unknown:
            raise RunFolderError(
                f"{file}: codecs: {min(unknown)!r} is none that this version of clash reads"
                "\n  fix: update clash"
            )
        if manifest.v > SCHEMA_VERSION:
            raise RunFolderError(
                f"{file}: has schema {manifest.v}; this version of clash reads up to "
                f"{SCHEMA_VERSION}"
                "\n  fix: update clash"
            )
        # Pages and messages suggest commands with this name in them, to be pasted into a shell.
        check_run_id(manifest.run, f"{file}: run")
        return manifest

    def records(self, model: type[R]) -> Sequence[R]:
        """The records of a kind that count; they stay on disk and are read on demand.

        Raises:
            RunFolderError: a line is no such record; the message names file and line.
        """
        return StoredRecords.of(self.path / layout.FILE_OF[model], model, _KEYS.get(model))

    def items(self) -> list[Item]:
        """The items, in the order of the prompts file."""
        return list(self.records(Item))

    def responses(self) -> list[Response]:
        """The responses; the last one for a candidate and item counts."""
        return list(self.records(Response))

    def blinding(self) -> list[Blinding]:
        """Every presentation."""
        return list(self.records(Blinding))

    def table(self, model: type[R]) -> RecordTable[R]:
        """Every record of a kind in the folder now, one in memory at a time."""
        return RecordTable.of_file(model, self.path / layout.FILE_OF[model])

    def criteria(self) -> list[Criteria]:
        """The criteria of each item."""
        return list(self.records(Criteria))

    def calls(self) -> Iterable[Call]:
        """Every attempt of every call, one at a time: the file is large."""
        return journal.read(self.path / layout.CALLS, Call)

    def call_summaries(self) -> Iterator[CallSummary]:
        """What is counted of every attempt of every call, one at a time.

        Raises:
            RunFolderError: a line is not a call.
        """
        return journal.read_part(self.path / layout.CALLS, CallSummary, Call)

    def reservations(self) -> Iterable[Reservation]:
        """The amount reserved for each attempt before it was sent."""
        return self.records(Reservation)

    def batches(self) -> list[Batch]:
        """The batches in their last state, each with its rows."""
        states: dict[str, Batch] = {}
        for line in journal.read(self.path / layout.BATCHES, Batch):
            first = states.get(line.batch, line)
            states[line.batch] = line.model_copy(
                update={"rows": first.rows, "refused": first.refused}
            )
        return list(states.values())

    def judgments(self) -> list[Judgment]:
        """The judgments; where a resumed run called a judge again, the last one counts."""
        return list(self.records(Judgment))

    def verdicts(self) -> list[Verdict]:
        """The verdicts as written by the run; ``analysis`` recomputes them."""
        return list(self.records(Verdict))

    def labels(self, first: int | None = None) -> list[Label]:
        """People's decisions; the last one of an annotator on an item, or on a text of it, counts.

        Args:
            first: read only this many lines, the number that was sealed.
        """
        records = islice(journal.read(self.path / layout.LABELS, Label), first)
        return list({(r.item_id, r.candidate, r.annotator): r for r in records}.values())

    def pool(self) -> list[PoolItem]:
        """Every item that a run with a stopping rule may judge, in the order drawn."""
        return list(journal.read(self.path / layout.POOL, PoolItem))

    def is_being_written(self) -> bool:
        """Whether a process is writing to the run now; one that was killed is not."""
        return _is_held(self.path / layout.LOCK)

    def write(self) -> RunWriter:
        """Open the run for writing; it stays locked until it is closed.

        Raises:
            RunFolderError: another process is writing to it.
        """
        return RunWriter(self.path)


class CheckedFolder(RunFolder):
    """A run folder that nobody is writing to: each line is checked once, however often it is read."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._records: dict[type[Record], Sequence[Any]] = {}

    def records(self, model: type[R]) -> Sequence[R]:
        """As of a run folder, of the first time that they were asked for."""
        if model not in self._records:
            self._records[model] = super().records(model)
        return cast("Sequence[R]", self._records[model])


class RunWriter(RunFolder):
    """A run folder that only this process may write to.

    Attributes:
        redactor: removes secrets from what is written.
        repairs: number of bytes cut from each journal whose last line was incomplete.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.redactor = NO_SECRETS
        self._journals: dict[str, Journal] = {}
        self._lock = _Lock(path / layout.LOCK)
        try:
            run_files.sweep(path)
            run_files.mend_frames(path / layout.CALLS)
            self.repairs = {n: cut for n in _JOURNALS if (cut := journal.repair_tail(path / n)) > 0}
        except BaseException:
            self._lock.release()
            raise

    @classmethod
    def create(
        cls,
        out: Path,
        run_id: str,
        manifest: Manifest,
        records: Iterable[Record] = (),
        *,
        lines: Iterable[tuple[str, bytes]] = (),
        redactor: Redactor = NO_SECRETS,
    ) -> RunWriter:
        """Create a run folder with everything that is known before the first call.

        It is created under a temporary name and renamed once it is on disk, so that a run that
        exists is complete.

        Args:
            out: the folder of the runs.
            run_id: name of the new one.
            manifest: its manifest.
            records: what is known before the first call.
            lines: lines without a secret, each with the name of its file.
            redactor: removes secrets from what is written.

        Raises:
            RunFolderError: the id is invalid or taken, or the folder cannot be created.
        """
        path = out / check_run_id(run_id)
        _check_free(path)
        staging = out / f".{run_id}.{secrets.token_hex(8)}.part"
        try:
            staging.mkdir(parents=True)
        except OSError as error:
            message = f"{path}: cannot be created ({error.strerror})"
            raise RunFolderError(run_files.with_hint(message, error)) from None
        try:
            with cls(staging) as writer:
                writer.redactor = redactor
                writer.save(manifest)
                for name in layout.COLLECTED_FILES:
                    writer.journal(name)
                for record in records:
                    writer.append(record)
                for name, part in groupby(lines, itemgetter(0)):
                    open_journal = writer.journal(name)
                    open_journal.begin_group()
                    for _, line in part:
                        open_journal.append_line(line)
                    open_journal.end_group()
            staging.rename(path)
        except OSError as error:
            _check_free(path)  # another process may have created it meanwhile
            raise run_files.file_error(path, "created", error) from None
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        writer = cls(path)
        writer.redactor = redactor
        return writer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def journal(self, name: str) -> Journal:
        """The journal with that file name, opened on first use."""
        if name not in self._journals:
            path = self.path / name
            self._journals[name] = (
                ChainedJournal(path, packs=name in self.manifest().codecs)
                if name == layout.CALLS
                else Journal(path)
            )
        return self._journals[name]

    def pack(self) -> None:
        """Compress the calls so far, in a run whose manifest names a codec for them."""
        calls = self.journal(layout.CALLS)
        if isinstance(calls, ChainedJournal):
            calls.pack()

    def append(self, record: Record) -> None:
        """Write a record to the journal of its kind."""
        line = journal.encode(record)
        # The provider has already removed secrets from a call: votes are read from the stored text.
        if not isinstance(record, Call) and self.redactor.suspects(line):
            line = journal.encode(without_secrets(record, self.redactor))
        self.journal(layout.FILE_OF[type(record)]).append_line(line)

    @contextmanager
    def record_group(self) -> Iterator[None]:
        """Write the records of a piece of free work together, file by file.

        No other task may run meanwhile: what was paid for is written when it is answered.
        """
        calls, judgments = self.journal(layout.CALLS), self.journal(layout.JUDGMENTS)
        calls.begin_group()
        judgments.begin_group()
        try:
            yield
        finally:
            # In this order, so that no judgment is on disk before its call.
            calls.end_group()
            judgments.end_group()

    def replace(self, name: str, records: Iterable[Record]) -> None:
        """Replace a file of derived records; a reader sees the old or the new content."""
        run_files.replace(self.path / name, map(journal.encode, records))

    def replace_text(self, name: str, text: str | Iterable[str]) -> None:
        """Replace a derived text file; a reader sees the old or the new content.

        Args:
            name: the file.
            text: its content, or the parts of it; a secret is not looked for across two of them.
        """
        parts = [text] if isinstance(text, str) else text
        run_files.replace(self.path / name, map(self._without_secrets, parts))

    def _without_secrets(self, text: str) -> bytes:
        data = text.encode()
        return str(self.redactor.data(text)).encode() if self.redactor.suspects(data) else data

    def save(self, manifest: Manifest) -> None:
        """Write the manifest."""
        run_files.replace(self.path / layout.MANIFEST, manifest.text().encode())

    def sync(self) -> None:
        """Sync every journal to disk."""
        # Over a copy: this runs in its own thread, and another thread may open a journal meanwhile.
        for open_journal in tuple(self._journals.values()):
            open_journal.sync()

    def seal(self, manifest: Manifest, **update: object) -> Manifest:
        """Write the manifest with the hash and line count of every file."""
        self.sync()
        self.pack()
        seals = seals_of(self.path, layout.SEALED_FILES)
        fields = {**update, "files": seals, "chain": chain.head(self.path / layout.CALLS)}
        sealed_manifest = manifest.model_copy(update=fields).with_seal()
        self.save(sealed_manifest)
        return sealed_manifest

    def close(self) -> None:
        """Sync, close and unlock; safe to call twice."""
        for open_journal in self._journals.values():
            open_journal.close()
        self._journals.clear()
        self._lock.release()


_RUN_ID = re.compile(r"\w[\w.-]{0,99}")
_KEYS: dict[type[Record], Callable[[Any], Hashable]] = {
    Response: attrgetter("item_id", "candidate"),
    Criteria: attrgetter("item_id"),
    Judgment: attrgetter("item_id", "presentation", "seat"),
}
"""What two lines about the same thing have in common; the later one counts."""
_JOURNALS = tuple(name for name in layout.RECORDS if name not in layout.DERIVED_FILES)


def latest_records(records: Iterable[R], model: type[R]) -> list[R]:
    """The records of a kind that count: of several about the same thing, the last."""
    key = _KEYS.get(model)
    return list(records) if key is None else list({key(r): r for r in records}.values())


def check_run_id(run_id: str, source: str = "--run-id") -> str:
    """Return the id of a run, which is then safe as the name of a folder.

    Args:
        run_id: from the command line or from a manifest, which may be a stranger's.
        source: the option or file that it comes from, for the message.

    Raises:
        RunFolderError: it is not an id, but for example a path.
    """
    if _RUN_ID.fullmatch(run_id):
        return run_id
    raise RunFolderError(
        f"{source}: {run_id!r} is not a run id"
        "\n  fix: 1 to 100 letters, digits, '_', '-' and '.', beginning with a letter or digit"
    )


def new_run_id(slug: str) -> str:
    """A new id: time, slug and random digits, so that ids sort by time."""
    word = re.sub(r"[^a-z0-9]+", "-", slug.lower()).strip("-")[:32] or "run"
    stamp = re.sub(r"[^0-9T]", "", now()[:19]).replace("T", "-")
    return f"{stamp}-{word}-{secrets.token_hex(4)}"


def runs(out: Path) -> list[RunFolder]:
    """The runs under a folder, oldest first."""
    if not out.is_dir():
        return []
    folders = [
        RunFolder(path.parent)
        for path in out.glob(f"[!.]*/{layout.MANIFEST}")
        if path.is_file() and not path.is_symlink()
    ]
    return sorted(folders, key=lambda run: run.path.name)


def manifests(out: Path, on_skip: OnSkip | None = None) -> list[tuple[RunFolder, Manifest]]:
    """The readable runs under a folder with their manifests, oldest first.

    ``on_skip`` is called with the error of each run that cannot be read.
    """
    readable = []
    for run in runs(out):
        try:
            readable.append((run, run.manifest()))
        except RunFolderError as error:
            if on_skip is not None:
                on_skip(error)
    return readable


def _check_free(path: Path) -> None:
    """Raise where the path of a new run is taken; an empty folder does not count."""
    if run_files.is_file(path / layout.MANIFEST):
        RunFolder(path).manifest()  # one that is broken cannot be resumed
        raise RunFolderError(
            f"{path}: already exists\n  fix: `clash resume {path}`, or choose another --run-id"
        )
    _check_manifest(path)
    if path.exists() and not (path.is_dir() and next(path.iterdir(), None) is None):
        raise RunFolderError(
            f"{path}: already exists and is not a run\n  fix: choose another --run-id"
        )


def _check_manifest(path: Path) -> None:
    """Raise where a run has journals but no manifest.

    Raises:
        RunFolderError: the manifest is missing; the message names the fix.
    """
    if not run_files.is_file(path / layout.MANIFEST) and _journals_in(path):
        raise RunFolderError(
            f"{path / layout.MANIFEST}: is missing, and no other file records the settings of "
            "the run"
            f"\n  fix: {_manifest_hint(path)}"
        )


def _manifest_hint(path: Path) -> str:
    """The fix for a manifest that is missing or broken."""
    if not _journals_in(path):
        return "name a run folder; `clash runs` lists them"
    calls = sum(1 for _ in run_files.lines(path / layout.CALLS))
    if calls:
        return (
            f"restore it from a copy; {layout.CALLS} holds {calls} calls that were made,"
            " so do not remove the folder"
        )
    return f"no call was made, so remove {path} and start the run again"


def _journals_in(path: Path) -> list[str]:
    return [name for name in layout.COLLECTED_FILES if run_files.is_file(path / name)]


def _latest(out: Path, on_skip: OnSkip | None) -> Path:
    readable = manifests(out, on_skip)
    if readable:
        # A merged run has the start of its last shard, and hides it.
        run, _ = max(readable, key=lambda pair: (pair[1].started, pair[1].shard is None))
        return run.path
    if runs(out):
        raise RunFolderError(
            f"latest: none of the runs in {out.resolve()} can be read"
            "\n  fix: `clash verify` with the path of one says what is wrong with it"
        )
    raise RunFolderError(f"latest: {out.resolve()} holds no run yet\n  fix: {_NO_RUNS_HINT}")


def _find(path: Path, out: Path) -> Path:
    if run_files.is_file(path / layout.MANIFEST):
        return path
    if path.name == layout.MANIFEST and run_files.is_file(path):
        return path.parent
    if run_files.is_file(out / path / layout.MANIFEST):
        return out / path
    for folder in (path, out / path):
        _check_manifest(folder)
    names = sorted(run.path.name for run in runs(out))
    near = [name for name in names if str(path) in name]
    hint = f"did you mean {near[-1]}?" if near else "`clash runs` lists the runs"
    if not names:
        hint = f"{out.resolve()} holds no run yet; {_NO_RUNS_HINT}"
    raise RunFolderError(f"{path}: is not a run folder (no manifest.json)\n  fix: {hint}")


class _Lock:
    """An advisory lock, which the kernel releases when the process dies."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[bytes] | None = None
        while self._file is None:
            file = os.fdopen(run_files.open_to_append(path), "ab")
            try:
                _acquire_patiently(file.fileno())
            except OSError:
                file.close()
                raise RunFolderError(
                    f"{path.parent}: another process is writing to this run"
                    "\n  fix: wait for it to end"
                ) from None
            # The last holder removes the file. A lock on a removed file locks nothing: try again.
            if _is_at(file, path):
                self._file = file
            else:
                file.close()

    def release(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._path.unlink()
            self._file.close()
            self._file = None


def _is_at(file: IO[bytes], path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.lstat())
    except FileNotFoundError:
        return False


def _acquire_patiently(fd: int) -> None:
    """Acquire a lock that another process may hold for microseconds while it checks it."""
    try:
        _acquire(fd)
    except OSError:
        time.sleep(_LOOK_S)
        _acquire(fd)


def _is_held(path: Path) -> bool:
    """Whether a process holds the lock at a path."""
    try:
        with run_files.open_to_read(path) as file:
            _acquire(file.fileno())
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _acquire(fd: int) -> None:
    if os.name == "nt":  # pragma: no cover - Windows
        import msvcrt

        msvcrt.locking(fd, cast("int", msvcrt.LK_NBLCK), 1)  # type: ignore[attr-defined,unused-ignore]
    else:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
