"""The runs of a folder as rows: read from manifest and report, each only when it has changed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from clash.errors import RunFolderError
from clash.files import run_files
from clash.report.formats import money
from clash.store import layout
from clash.store.folder import RunFolder
from clash.view.summary import ReportPart, RetestPart, RunSummary, summary

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")


class ManifestPart(msgspec.Struct, frozen=True):
    """The fields of a manifest that a row shows; all others are skipped."""

    run: str
    kind: str
    status: str = "running"
    started: str = ""
    prompts: str | None = None
    parent: str | None = None
    counts: dict[str, int] = {}
    cost_usd: float | None = None
    cost_is_lower_bound: bool = False
    seal: str | None = None


_MANIFEST = msgspec.json.Decoder(ManifestPart)
_REPORT = msgspec.json.Decoder(ReportPart)
_RETEST = msgspec.json.Decoder(RetestPart)


@dataclass(frozen=True)
class RunEntry:
    """A folder that holds a run, and its manifest, or why that cannot be read."""

    path: Path
    manifest: ManifestPart | None
    error: str | None = None

    @property
    def name(self) -> str:
        """The name of the folder, which is the id of the run."""
        return self.path.name

    @property
    def time(self) -> datetime | None:
        """When the run began, in local time; null where the manifest does not say."""
        try:
            start = "" if self.manifest is None else self.manifest.started
            return datetime.fromisoformat(start).astimezone()
        except (ValueError, OverflowError, OSError):
            return None


@dataclass
class RunList:
    """The runs of a folder, newest first.

    What was read of a file is kept until the file changes.
    """

    folder: Path
    _parts: dict[Path, tuple[tuple[int, int], Any]] = field(default_factory=dict)

    def runs(self) -> list[RunEntry]:
        """Every folder with a manifest, the broken ones too, by the time of their beginning.

        Raises:
            RunFolderError: the folder cannot be listed.
        """
        runs = [self._run(path) for path in _run_folders(self.folder)]
        return sorted(
            runs, key=lambda e: (e.time.timestamp() if e.time else 0.0, e.name), reverse=True
        )

    def _run(self, path: Path) -> RunEntry:
        try:
            manifest = self._read(path / layout.MANIFEST, _MANIFEST.decode)
        except RunFolderError as error:
            return RunEntry(path, None, str(error).partition("\n")[0])
        if manifest is None:
            return RunEntry(path, None, "manifest.json is missing")
        return RunEntry(path, manifest)

    def row(self, run: RunEntry) -> dict[str, Any]:
        """What the page shows of a run."""
        manifest = run.manifest
        if manifest is None:
            return _row(run, RunSummary("This folder cannot be read.", run.error or ""))
        try:
            report = self._read(run.path / layout.REPORT_JSON, _REPORT.decode)
            retest = None
            if manifest.kind == "rerun":
                retest = self._read(run.path / layout.RETEST_JSON, _RETEST.decode)
        except RunFolderError as error:
            return _row(run, RunSummary("Its report cannot be read.", _reason(error)))
        state = _state(run.path, manifest)
        return _row(run, summary(report, retest, state, manifest.kind))

    def _read(self, path: Path, decode: Callable[[bytes], T]) -> T | None:
        """A file's decoded part; null where the file is missing.

        Raises:
            RunFolderError: it is not a regular file, or not what it should be.
        """
        try:
            stat = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise run_files.file_error(path, "read", error) from None
        stamp = (stat.st_mtime_ns, stat.st_size)
        if path in self._parts and self._parts[path][0] == stamp:
            cached_part: T = self._parts[path][1]
            return cached_part
        try:
            part = decode(run_files.read(path))
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RunFolderError(f"{path}: cannot be read ({error})") from None
        self._parts[path] = stamp, part
        return part


def _run_folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as files:
            names = [e.name for e in files if not e.name.startswith(".") and _is_folder(e)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise run_files.file_error(folder, "listed", error) from None
    return [folder / name for name in names if os.path.lexists(folder / name / layout.MANIFEST)]


def _is_folder(file: os.DirEntry[str]) -> bool:
    try:
        return file.is_dir()
    except OSError:
        return False


def _reason(error: RunFolderError) -> str:
    return str(error).partition("\n")[0]


def _row(run: RunEntry, words: RunSummary) -> dict[str, Any]:
    manifest, time = run.manifest, run.time
    row: dict[str, Any] = {
        "id": run.name,
        "kind": "unreadable" if manifest is None else manifest.kind,
        "state": "unreadable" if manifest is None else _state(run.path, manifest),
        "day": None if time is None else _day(time),
        "time": "" if time is None else f"{time:%H:%M}",
        "source": "" if manifest is None else manifest.prompts or "",
        "items": "",
        "cost": "",
    }
    if manifest is not None:
        n_items = manifest.counts.get("items")
        noun = "item" if manifest.kind == "validate" else "prompt"
        row["items"] = "" if n_items is None else f"{n_items:,} {noun}{'' if n_items == 1 else 's'}"
        row["cost"] = _cost(manifest)
    return row | words.as_json()


def _state(path: Path, manifest: ManifestPart) -> str:
    """The status of a run; ``stopped`` where it has not ended and no process writes to it."""
    if RunFolder(path).is_being_written():
        return "running"
    return "stopped" if manifest.status == "running" else manifest.status


def _cost(manifest: ManifestPart) -> str:
    if manifest.cost_usd is None:
        return ""
    return f"{'at least ' if manifest.cost_is_lower_bound else ''}{money(manifest.cost_usd)}"


def _day(time: datetime) -> str:
    days = (datetime.now().astimezone().date() - time.date()).days
    if days in (0, 1):
        return ("Today", "Yesterday")[days]
    return f"{time.day} {time:%B %Y}"
