"""Download a public data set once, complete and verified, into a cache on this machine.

A file is written as ``….part`` and renamed when it is complete; an interrupted pull continues where
it stopped. ``pulled.json`` records each file with its address, the commit and its SHA-256.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clash.errors import DownloadError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from clash.datasets.catalogue import CatalogueEntry
    from clash.datasets.hub import Checksum, Http, RemoteFile, Snapshot

_RECORD = "pulled.json"
_BLOCK = 1 << 16
_TIMEOUT_S = 60.0
MOST_BYTES = 8 << 30
"""Of one file; a server that never ends would fill the disk."""


@dataclass(frozen=True, slots=True)
class DownloadProgress:
    """Bytes of a file so far; ``total`` is null where the publisher does not state it."""

    path: str
    n_bytes: int
    total: int | None


@dataclass(frozen=True, slots=True)
class PulledFile:
    """A file as it was fetched.

    Attributes:
        verified: the publisher's checksum that it matches, or ``none stated``.
    """

    path: str
    url: str
    size: int
    sha256: str
    verified: str


@dataclass(frozen=True)
class PulledDataset:
    """A data set on this machine."""

    name: str
    source: str
    commit: str
    licence: str
    folder: Path
    files: tuple[PulledFile, ...]

    @property
    def paths(self) -> list[Path]:
        """Its files."""
        return [self.folder / file.path for file in self.files]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def cache_folder() -> Path:
    """Where data sets are kept: below ``CLASH_CACHE``, else the user's cache folder."""
    if folder := os.environ.get("CLASH_CACHE"):
        return Path(folder) / "datasets"
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "clash" / "datasets"


def find_pulled(dataset: CatalogueEntry, cache: Path) -> PulledDataset | None:
    """The data set, where it was pulled before and its files still have their sizes."""
    record = cache / dataset.name / _RECORD
    try:
        value = json.loads(record.read_bytes())
        files = tuple(PulledFile(**file) for file in value.pop("files"))
        pulled_dataset = PulledDataset(**value, folder=record.parent, files=files)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    complete = all(
        path.is_file() and path.stat().st_size == file.size
        for path, file in zip(pulled_dataset.paths, files, strict=True)
    )
    return pulled_dataset if complete else None


def pulled_files(dataset: CatalogueEntry, cache: Path | None = None) -> list[Path]:
    """The files of a data set that was pulled.

    Raises:
        InputError: it was not.
    """
    copy = find_pulled(dataset, cache or cache_folder())
    if copy is None:
        raise InputError(
            f"the data set {dataset.name!r} is not on this machine", hint=dataset.how_to_get
        )
    return copy.paths


def pull(
    dataset: CatalogueEntry,
    cache: Path,
    *,
    base_url: str | None = None,
    progress: Callable[[DownloadProgress], None] | None = None,
    attempts: int = 5,
    wait_s: float = 1.0,
    again: bool = False,
) -> PulledDataset:
    """Fetch a data set, or find it where it was fetched before.

    Args:
        dataset: from the catalogue.
        cache: the folder that data sets are kept in.
        base_url: another hub; default ``HF_ENDPOINT``, else the public one.
        progress: told after every block.
        attempts: how often a broken download is taken up before it is given up.
        wait_s: seconds before the first further attempt; doubles with each.
        again: fetch even what is there.

    Raises:
        DownloadError: it cannot be had, or a checksum is not the published one.
    """
    import httpx2

    from clash.datasets import hub

    present = find_pulled(dataset, cache)
    if present is not None and not again:
        return present
    if dataset.page is not None:
        raise DownloadError(
            f"{dataset.title}: its publisher asks for agreement to terms first"
            f"\n  fix: {dataset.how_to_get}"
        )
    folder = cache / dataset.name
    with httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=False) as client:
        base = base_url or hub.home(dataset)
        http = hub.Http(client, base, hub.token(dataset, base))
        snapshot = hub.snapshot(dataset, http)
        fetch = _Fetch(http, folder, progress or (lambda _: None), attempts, wait_s)
        files = tuple(fetch.file(remote) for remote in snapshot.files)
    return _record(dataset, snapshot, folder, files)


def _record(
    dataset: CatalogueEntry, snapshot: Snapshot, folder: Path, files: tuple[PulledFile, ...]
) -> PulledDataset:
    pulled_dataset = PulledDataset(
        dataset.name, dataset.source, snapshot.commit, dataset.licence, folder, files
    )
    value: dict[str, Any] = asdict(pulled_dataset)
    del value["folder"]
    part = folder / f".{_RECORD}.part"
    part.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    part.replace(folder / _RECORD)
    return pulled_dataset


@dataclass(frozen=True)
class _Fetch:
    """Fetches single files; every block is told to ``progress``."""

    http: Http
    folder: Path
    progress: Callable[[DownloadProgress], None]
    attempts: int
    wait_s: float

    def file(self, remote: RemoteFile) -> PulledFile:
        target = self.folder / remote.path
        part = target.with_name(f"{target.name}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        self._complete(remote, part)
        verification = _verify(remote, part)
        part.replace(target)
        _tag(part).unlink(missing_ok=True)
        size = target.stat().st_size
        return PulledFile(remote.path, remote.url, size, sha256(target), verification)

    def _complete(self, remote: RemoteFile, part: Path) -> None:
        """Append to ``part`` until it is whole, continuing after an interruption."""
        import httpx2

        from clash.datasets.hub import Transient

        for attempt in range(1, self.attempts + 1):
            try:
                self._append(remote, part)
            except (httpx2.HTTPError, Transient) as error:
                if attempt == self.attempts:
                    have = part.stat().st_size if part.exists() else 0
                    raise DownloadError(
                        f"{remote.url}: connection lost after {have} bytes ({error})"
                        "\n  fix: pull again to continue from there"
                    ) from None
                time.sleep(self.wait_s * 2 ** (attempt - 1))
            else:
                return

    def _append(self, remote: RemoteFile, part: Path) -> None:
        have = part.stat().st_size if part.exists() else 0
        if have and have == remote.size:
            return
        response = self.http.open(remote.url, _range(have, part))
        try:
            start = _resume_offset(response.status_code, response.headers, have)
            if start is None:
                return
            _tag(part).write_text(response.headers.get("etag", ""), encoding="utf-8")
            self._write(remote, part, start, response.iter_raw())
        finally:
            response.close()

    def _write(self, remote: RemoteFile, part: Path, start: int, blocks: Iterable[bytes]) -> None:
        position = start
        with part.open("ab" if start else "wb") as file:
            for block in blocks:
                position += len(block)
                if position > MOST_BYTES:
                    raise DownloadError(
                        f"{remote.url}: is larger than {MOST_BYTES >> 20:,} MB"
                        "\n  fix: load a copy by its path"
                    )
                file.write(block)
                self.progress(DownloadProgress(remote.path, position, remote.size))


def _range(have: int, part: Path) -> dict[str, str]:
    """Ask for the rest, and for all of it should the file have changed meanwhile."""
    if not have:
        return {}
    tag = _tag(part)
    etag = tag.read_text(encoding="utf-8") if tag.exists() else ""
    headers = {"Range": f"bytes={have}-"}
    return {**headers, "If-Range": etag} if etag.startswith('"') else headers


def _resume_offset(status: int, headers: Any, have: int) -> int | None:  # noqa: ANN401 - httpx2.Headers
    """Where the answer's bytes belong: after ``have``, or at the start; null if none are left."""
    if status == 416:
        return None
    if status == 206 and headers.get("content-range", "").startswith(f"bytes {have}-"):
        return have
    return 0


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.etag")


def _verify(remote: RemoteFile, part: Path) -> str:
    size = part.stat().st_size
    if remote.size is not None and size != remote.size:
        _discard(part)
        raise DownloadError(
            f"{remote.url}: has {size} bytes, its publisher says {remote.size}\n  fix: pull again"
        )
    if remote.checksum is None:
        return "none stated"
    digest = _digest(part, remote.checksum)
    if digest != remote.checksum.hex:
        _discard(part)
        raise DownloadError(
            f"{remote.url}: {remote.checksum.kind} is {digest}, "
            f"its publisher says {remote.checksum.hex}\n  fix: pull again"
        )
    return f"{remote.checksum.kind} {digest}"


def _discard(part: Path) -> None:
    part.unlink()
    _tag(part).unlink(missing_ok=True)


def _digest(path: Path, checksum: Checksum) -> str:
    digest = checksum.start(path.stat().st_size)
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
