"""``manifest.json``: what a run was, of what, with what, and the seal on its files."""

from __future__ import annotations

import hashlib
import json
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from clash.files import run_files
from clash.records import SCHEMA_VERSION, Kind, Status
from clash.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

_DISTRIBUTIONS = (
    "aiohttp",
    "anthropic",
    "genai-prices",
    "google-genai",
    "httpx2",
    "numpy",
    "openai",
    "scipy",
)
_DECIDING = ("clash", "numpy", "scipy")
"""What the numbers and the wording of a report depend on."""


class FileSeal(BaseModel):
    """What a file was when the run ended."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    sha256: str
    lines: int


class KeyDestination(BaseModel):
    """The name of a variable that holds a key, and the server that the key was sent to."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    variable: str
    server: str


class Manifest(BaseModel):
    """One object about the whole run; holds no key and no password.

    Attributes:
        config: the resolved configuration, whichever way each value was given, the panel in it.
        panel: every judge that sits, observers included, with the role and weight it really has.
        candidates: ``id`` of each candidate, and what is known of it (family, tier, rating).
        dataset: where labelled items came from: name, source, licence, what was drawn, and
            published figures on it.
        templates: the words put to models, so that a resumed or repeated run uses the same.
        secret: random, new for every run but a replay: the codes of the pages follow from it. Who
            writes a response must not know it before it is judged; afterwards it opens nothing.
        hashes: SHA-256 of configuration, panel, prompts file and templates.
        calibrator: the calibrator that verdicts are made by, whole; null without one.
        preregistration: hash of the plan that the run is held to; ``registration`` is that plan.
        stopping: the rule of ``--until`` and what each look saw; null where all was judged once.
        forecast: what the run was expected to cost before its first call: ``expected_usd``,
            ``worst_usd``, ``calls``, ``unknown_price``; null in runs of earlier versions.
        destinations: where the keys of its models go.
        origin: proof, for the user who made the run and on that machine only, that it was made
            with these destinations; null where none is needed or none could be given.
        secrets_scan: what the search for secrets found at the end: ``secrets``, how many were
            looked for; ``files``, how many were read; ``hits``, by file the variables whose values
            stand in it. Null in runs of earlier versions.
        replaced: models of ``stopped`` in whose place a fallback judged what was left.
        files: the seal of each file, at the end.
        chain: SHA-256 of the last line of ``calls.jsonl``, whose lines carry that of the one before.
        seal: SHA-256 of this object without the seal.
    """

    model_config = ConfigDict(extra="ignore")

    v: int = SCHEMA_VERSION
    run: str
    kind: Kind
    status: Status = "running"
    parent: str | None = None
    prompts: str | None = None
    config: dict[str, Any] = {}
    panel: dict[str, Any] = {}
    candidates: list[dict[str, Any]] = []
    dataset: dict[str, Any] = {}
    templates: dict[str, str] = {}
    seeds: dict[str, int] = {}
    secret: str | None = None
    calibrator: dict[str, Any] | None = None
    hashes: dict[str, str] = {}
    versions: dict[str, str] = {}
    git: dict[str, Any] | None = None
    counts: dict[str, int] = {}
    cost_usd: float | None = None
    cost_is_lower_bound: bool = False
    forecast: dict[str, Any] | None = None
    started: str = ""
    ended: str | None = None
    wall_s: float = 0.0
    stopped: dict[str, str] = {}
    replaced: list[str] = []
    notes: list[str] = []
    preregistration: str | None = None
    registration: dict[str, Any] | None = None
    stopping: dict[str, Any] | None = None
    destinations: list[KeyDestination] = []
    origin: str | None = None
    secrets_scan: dict[str, Any] | None = None
    files: dict[str, FileSeal] = {}
    chain: str | None = None
    seal: str | None = None

    def text(self) -> str:
        """What is written."""
        return manifest_text(self.model_dump())

    def with_seal(self) -> Manifest:
        """A copy whose seal covers everything else in it."""
        return self.model_copy(update={"seal": digest(self.model_dump())})


def manifest_text(value: Mapping[str, Any]) -> str:
    """The text of a manifest: the same object is always the same text."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the seal.

    Of plain data, not of a :class:`Manifest`: one that an earlier clash wrote has fewer fields.
    """
    return sha256_text(manifest_text({**manifest, "seal": None}))


def now() -> str:
    """This moment, in UTC, as text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sha256_text(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def sha256_json(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """SHA-256 of plain data, independent of the order of keys."""
    return sha256_text(json.dumps(value, sort_keys=True, ensure_ascii=False, default=str))


def seal_file(path: Path, lines: int | None = None) -> FileSeal:
    """Hash and line count of a file, or of its first ``lines``."""
    digest, count = hashlib.sha256(), 0
    if lines is not None:
        for line in islice(run_files.lines(path), lines):
            digest.update(line)
            count += line.endswith(b"\n")
        return FileSeal(sha256=digest.hexdigest(), lines=count)
    with run_files.open_to_read(path) as file:
        while block := file.read(1 << 20):
            digest.update(block)
            count += block.count(b"\n")
    return FileSeal(sha256=digest.hexdigest(), lines=count)


def other_versions(manifest: Manifest) -> str | None:
    """What the run was computed with where it is not what is installed here; null where it is.

    A fit may round its last digit otherwise, and another clash may word or draw a report otherwise.
    """
    current = versions()
    differing = [
        f"{name} {manifest.versions.get(name, 'unknown')}, here {current.get(name, 'missing')}"
        for name in _DECIDING
        if manifest.versions.get(name) != current.get(name)
    ]
    if manifest.seal is not None and manifest.chain is None:
        differing.append("a clash before the chain of calls")
    return f"computed by {'; '.join(differing)}" if differing else None


def seals_of(folder: Path, names: Iterable[str]) -> dict[str, FileSeal]:
    """The seal of each of these files that is there."""
    return {name: seal_file(folder / name) for name in names if run_files.is_file(folder / name)}


def versions() -> dict[str, str]:
    """Versions of clash, Python and everything that may change a result."""
    installed_versions = {"clash": __version__, "python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            installed_versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed_versions
