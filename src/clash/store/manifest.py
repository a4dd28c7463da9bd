"""``manifest.json``: the inputs, settings and outcome of a run, and the seal on its files."""

from __future__ import annotations

import hashlib
import json
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from clash.files import run_files
from clash.records import SCHEMA_VERSION, Dollars, Kind, Seconds, Status
from clash.version import __version__
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
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
"""Packages that the numbers and the wording of a report depend on."""


CODEC = "zstd"
"""How raw answers are compressed, where they are."""
MOST_SHARDS = 100_000
"""Shards of one run: more than any scheduler starts."""


class FileSeal(BaseModel):
    """Hash and line count of a file when the run ended."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    sha256: str
    lines: int


class KeyDestination(BaseModel):
    """The name of a variable that holds a key, and the server that receives the key."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    variable: str
    server: str


class Shard(BaseModel):
    """The part of a run that this one is: every ``of``-th item, from item ``number`` on.

    Attributes:
        number: from 1 to ``of``.
        of: how many shards the run has.
        items: number of items of the whole run.
        candidates: candidates of the whole run that have given responses; their names are masked
            in every response, so each shard has to know them.
        sha256: hash of the items and given responses of the whole run.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    number: int = Field(ge=1)
    of: int = Field(ge=1, le=MOST_SHARDS)
    items: int = Field(ge=1)
    candidates: list[str] = []
    sha256: str

    @property
    def title(self) -> str:
        """``shard 2 of 4``."""
        return f"shard {self.number} of {self.of}"

    @property
    def note(self) -> str:
        """What a reader of its report has to know."""
        return (
            f"{self.title} of a run of {plural(self.items, 'item')}; `clash merge` joins the shards"
        )

    def position(self, index: int) -> int:
        """Where item ``index`` of the shard is in the whole run; both count from 0."""
        return self.number - 1 + index * self.of


def missing_shards(shards: Sequence[Shard]) -> list[int]:
    """Numbers, ascending, of the shards that a run has besides these, at least one of it."""
    first = shards[0]
    # A run of three items has three shards, however many were asked for.
    numbers = range(1, min(first.of, first.items) + 1)
    return sorted(set(numbers) - {shard.number for shard in shards})


def name_shards(numbers: Sequence[int], of: int) -> str:
    """``shards 2, 3 of 4``; the first ten of many."""
    noun = "shard" if len(numbers) == 1 else "shards"
    more = ", …" if len(numbers) > 10 else ""
    return f"{noun} {', '.join(map(str, numbers[:10]))}{more} of {of}"


class Manifest(BaseModel):
    """One object about the whole run; it holds no key and no password.

    Attributes:
        config: the resolved configuration, including the panel.
        panel: every judge of the run, observers included, with its effective role and weight.
        candidates: ``id`` of each candidate, with its family, tier and rating where known.
        dataset: origin of labelled items: name, source, licence, what was drawn, and published
            figures on it.
        templates: the texts put to models, so that a resumed or repeated run uses the same.
        secret: random for every run except a replay; the codes of the judge prompts are derived
            from it. A merged run has the secrets of its shards, separated by spaces. Authors of responses must not know it before they are judged; afterwards it is
            harmless.
        hashes: SHA-256 of configuration, panel, prompts file and templates.
        calibrator: the complete calibrator that decides verdicts; null without one.
        preregistration: hash of the plan that binds the run; ``registration`` is that plan.
        stopping: the rule of ``--until`` and the result of each look; null without such a rule.
        forecast: the cost expected before the first call: ``expected_usd``, ``worst_usd``,
            ``calls``, ``unknown_price``; null in runs of earlier versions.
        destinations: the servers that receive the keys of the models.
        origin: a tag by which the user who made the run recognises it and its destinations on the
            same machine; null where none is needed or none could be created.
        secrets_scan: result of the search for secrets at the end: ``secrets``, the number searched
            for; ``files``, the number read; ``hits``, for each file the variables whose values
            occur in it. Null in runs of earlier versions.
        max_cost: the cap that ``clash resume`` was given last; absent where it was given none.
        replaced: models of ``stopped`` whose remaining items a fallback judged.
        shard: which part of a run this one is; absent in a whole run.
        codecs: how the lines of a file are compressed, in a file beside it; absent where none are.
            Hash and line count in ``files`` are of the lines.
        files: the seal of each file, at the end.
        chain: SHA-256 of the last line of ``calls.jsonl``; each line carries the hash of the line
            before.
        seal: SHA-256 of this object without the seal.
    """

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)

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
    cost_usd: Dollars | None = None
    cost_is_lower_bound: bool = False
    max_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    forecast: dict[str, Any] | None = None
    started: str = ""
    ended: str | None = None
    wall_s: Seconds = 0.0
    stopped: dict[str, str] = {}
    replaced: list[str] = []
    notes: list[str] = []
    preregistration: str | None = None
    registration: dict[str, Any] | None = None
    stopping: dict[str, Any] | None = None
    destinations: list[KeyDestination] = []
    origin: str | None = None
    secrets_scan: dict[str, Any] | None = None
    shard: Shard | None = None
    codecs: dict[str, str] = {}
    files: dict[str, FileSeal] = {}
    chain: str | None = None
    seal: str | None = None

    def text(self) -> str:
        """The text of ``manifest.json``."""
        return manifest_text(self._fields())

    def with_seal(self) -> Manifest:
        """A copy whose seal covers everything else in it."""
        return self.model_copy(update={"seal": digest(self._fields())})

    def _fields(self) -> dict[str, Any]:
        optional = ("shard", "codecs", "max_cost")
        empty = {name for name in optional if getattr(self, name) in (None, {})}
        return self.model_dump(exclude=empty or None)


def manifest_text(value: Mapping[str, Any]) -> str:
    """The text of a manifest; equal objects have equal texts."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def digest(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of a manifest without its seal.

    Takes plain data instead of a :class:`Manifest`, because earlier versions wrote fewer fields.
    """
    return sha256_text(manifest_text({**manifest, "seal": None}))


def now() -> str:
    """The current time in UTC, as ISO 8601 text in milliseconds."""
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
    """The versions that a run was computed with and that differ from the installed ones; or null.

    Another version may round the last digit of a fit, word a report or draw a page differently.
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
    """The seal of each of these files that exists."""
    return {name: seal_file(folder / name) for name in names if run_files.is_file(folder / name)}


def versions() -> dict[str, str]:
    """Versions of clash, Python and every package that may change a result."""
    installed_versions = {"clash": __version__, "python": platform.python_version()}
    for name in _DISTRIBUTIONS:
        try:
            installed_versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed_versions
