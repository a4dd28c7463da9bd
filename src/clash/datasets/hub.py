"""The API of a data hub: the files of a repository at a commit, with their checksums."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urljoin

import httpx2

from clash.errors import ConfigError, DownloadError
from clash.files.inputs import matches_any
from clash.secrets.destinations import (
    Environ,
    destination_named,
    is_expected,
    read_confirmed,
    trusted_hosts,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.datasets.catalogue import CatalogueEntry

TOKEN = "HF_TOKEN"  # noqa: S105 - the name of a variable
DEFAULT_HUB = "https://huggingface.co"
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Checksum:
    """A digest that the publisher states: of the file, or of the git blob that holds it."""

    kind: Literal["sha256", "git-sha1"]
    hex: str

    def start(self, size: int) -> hashlib._Hash:
        """A hash to feed the file's bytes to; a git blob begins with its size."""
        if self.kind == "sha256":
            return hashlib.sha256()
        return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file to fetch.

    Attributes:
        path: where it belongs below the data set's folder.
        size: bytes, null where the publisher does not say.
        checksum: null where the publisher does not say.
    """

    path: str
    url: str
    size: int | None = None
    checksum: Checksum | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a data set at one commit."""

    commit: str
    files: tuple[RemoteFile, ...]


class Transient(DownloadError):
    """A failure that may pass: no connection, too many requests, an error of the server."""


class Http:
    """GET requests that follow redirects without giving away a token or the encryption.

    The token is sent to ``base`` and to no host that it points at; a redirect from https to http
    is refused.
    """

    def __init__(self, client: httpx2.Client, base: str, token: str | None = None) -> None:
        self.base = base.rstrip("/")
        self._client = client
        self._token = token
        self._host = httpx2.URL(self.base).netloc

    def open(self, url: str, headers: dict[str, str] | None = None) -> httpx2.Response:
        """The response of the last address, its body not read yet.

        Raises:
            DownloadError: it cannot be reached, redirects in a circle, or refuses.
        """
        for _ in range(_MOST_REDIRECTS + 1):
            response = self._send(url, headers or {})
            if response.status_code not in _REDIRECTS:
                return self._check_status(response, url)
            response.close()
            url = self._next(url, response.headers.get("location"))
        raise DownloadError(f"{url}: redirected more than {_MOST_REDIRECTS} times")

    def json(self, url: str) -> httpx2.Response:
        """As :meth:`open`, with the body read."""
        response = self.open(url)
        try:
            response.read()
        except httpx2.HTTPError as error:
            raise DownloadError(f"{url}: {_reason(error)}") from None
        finally:
            response.close()
        return response

    def _send(self, url: str, headers: dict[str, str]) -> httpx2.Response:
        if self._token and httpx2.URL(url).netloc == self._host:
            headers = {**headers, "Authorization": f"Bearer {self._token}"}
        # Compressed on the way, bytes would be neither resumable nor those of the checksum.
        headers = {"Accept-Encoding": "identity", **headers}
        try:
            request = self._client.build_request("GET", url, headers=headers)
            return self._client.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise Transient(
                f"{url}: {_reason(error)}\n  fix: check the connection, then pull again"
            ) from None

    @staticmethod
    def _next(url: str, location: str | None) -> str:
        if not location:
            raise DownloadError(f"{url}: redirected without an address")
        try:
            target = urljoin(url, location)
            is_web = httpx2.URL(target).scheme in ("http", "https")
        except (ValueError, httpx2.InvalidURL):
            target, is_web = location[:200], False
        if not is_web:
            raise DownloadError(f"{url}: redirected to {target}, which is not a web address")
        if url.startswith("https:") and target.startswith("http:"):
            raise DownloadError(f"{url}: redirected to {target}, which is not encrypted")
        return target

    @staticmethod
    def _check_status(response: httpx2.Response, url: str) -> httpx2.Response:
        status = response.status_code
        if status in (200, 206, 416):
            return response
        response.close()
        if status == 429 or status >= 500:
            raise Transient(f"{url}: answered {status}\n  fix: pull again later")
        hint = "load a copy by its path"
        if status in (401, 403):
            hint = "accept the data set's terms on its page and set HF_TOKEN"
        elif status == 404:
            hint = "the publisher may have moved it; load a copy by its path"
        raise DownloadError(f"{url}: answered {status}\n  fix: {hint}")


def home(dataset: CatalogueEntry) -> str:
    """Where a data set is pulled from: its web address, ``HF_ENDPOINT``, or the public hub."""
    if dataset.web is None:
        return os.environ.get("HF_ENDPOINT") or DEFAULT_HUB
    address = httpx2.URL(dataset.web)
    return f"{address.scheme}://{address.netloc.decode()}"


def token(dataset: CatalogueEntry, base: str) -> str | None:
    """The token for the hub at ``base``; null for a publisher's own web server, which is no hub.

    Raises:
        ConfigError: the token would be sent unencrypted, and its owner has not confirmed that.
    """
    value = os.environ.get(TOKEN, "").strip()
    if not value or dataset.web is not None:
        return None
    where = destination_named(TOKEN, base)
    environ = Environ({}, destinations=read_confirmed(), hosts=trusted_hosts(os.environ))
    if is_expected(where, address="owner", variable="owner") or environ.allows(where):
        return value
    raise ConfigError(
        f"{where}: the token would be sent unencrypted",
        field="--base-url",
        hint=f"use https, unset {TOKEN}, or confirm it: clash trust {TOKEN} {where.host}",
    )


def snapshot(dataset: CatalogueEntry, http: Http) -> Snapshot:
    """The files of ``dataset``.

    Raises:
        DownloadError: the publisher cannot be reached or no file matches.
    """
    if dataset.web is not None:
        root = httpx2.URL(dataset.web)
        address = f"{http.base}{root.path}"
        files = (RemoteFile(path, address + quote(path)) for path in dataset.files)
        return Snapshot(dataset.revision, tuple(files))
    commit = _commit(dataset, http)
    remotes = tuple(
        _remote(dataset, http, commit, record)
        for record in _tree(dataset, http, commit)
        if matches_any(record["path"], dataset.files)
    )
    if not remotes:
        raise DownloadError(f"{dataset.source}: no file matches {', '.join(dataset.files)}")
    return Snapshot(commit, tuple(sorted(remotes, key=lambda remote: remote.path)))


def _commit(dataset: CatalogueEntry, http: Http) -> str:
    if dataset.revision != "main":
        return dataset.revision
    answer = http.json(f"{http.base}/api/datasets/{dataset.hub}/revision/{dataset.revision}").json()
    return str(answer["sha"])


def _tree(dataset: CatalogueEntry, http: Http, commit: str) -> Iterator[dict[str, Any]]:
    url: str | None = f"{http.base}/api/datasets/{dataset.hub}/tree/{commit}?recursive=true"
    while url:
        answer = http.json(url)
        yield from (record for record in answer.json() if record.get("type") == "file")
        following = answer.links.get("next", {}).get("url")
        url = urljoin(url, following) if following else None


def _remote(dataset: CatalogueEntry, http: Http, commit: str, record: dict[str, Any]) -> RemoteFile:
    path = _require_inside(record["path"])
    large = record.get("lfs") or {}
    sha256 = large.get("oid") or large.get("sha256")
    return RemoteFile(
        path=path,
        url=f"{http.base}/datasets/{dataset.hub}/resolve/{commit}/{quote(path)}",
        size=large.get("size") or record.get("size"),
        checksum=Checksum("sha256", sha256) if sha256 else Checksum("git-sha1", record["oid"]),
    )


def _require_inside(path: str) -> str:
    """A path that stays below the folder it is put in."""
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or "\\" in path or ":" in path:
        raise DownloadError(f"the hub names a file outside its repository: {path!r}")
    return path


def _reason(error: httpx2.HTTPError) -> str:
    return str(error) or type(error).__name__
