"""What `clash doctor` looks at: keys, addresses, names that retire, prices, disk."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio

from clash import assets
from clash.collect.resolve import KEYLESS_PANEL, read_config, read_panel
from clash.config import Limits, ModelRef
from clash.documents import read_yaml
from clash.errors import ConfigError, InputError, ProviderError
from clash.providers import has_key, key_variable, open_provider, prices, require
from clash.providers.base import Request
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clash.config import Config

Level = Literal["ok", "note", "warn", "bad"]
_SOON_DAYS = 60
_PING_TOKENS = 64
_LIMITS = Limits(timeout_s=30)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; only ``bad`` makes doctor exit with 1."""

    level: Level
    subject: str
    says: str
    mend: str = ""

    def as_json(self) -> dict[str, str]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Retirement:
    """A name that a vendor takes away, or has taken away."""

    day: date
    status: str
    instead: str


def run(
    config_file: Path | None,
    panel: str | None,
    models: str | None,
    environ: Mapping[str, str],
    *,
    ping: bool,
) -> Iterator[Finding]:
    """Everything, cheap things first; ``ping`` makes one short call to each model."""
    yield from _disk()
    try:
        config = read_config(config_file, {"panel": panel})
    except InputError as error:
        yield Finding("bad", "configuration", error.message, error.mend or "")
        return
    chosen = config.panel is not None
    names = [config.panel] if isinstance(config.panel, str) else []
    refs: dict[str, ModelRef] = {}
    for name in names or ([] if chosen else list(assets.panels())):
        try:
            found = read_panel(name)
        except InputError as error:
            yield Finding("bad", f"panel {name}", error.message, error.mend or "")
            continue
        members: list[ModelRef] = [*found.judges, *([found.criteria] if found.criteria else [])]
        refs |= {ref.model: ref for ref in members}
        yield _panel(name, members, environ, needed=chosen)
    wanted = _wanted(config, models)
    refs |= {ref.model: ref for ref in wanted}
    needed = {ref.model for ref in wanted} | (set(refs) if chosen else set())
    retired = retirements()
    for ref in refs.values():
        if ref.provider != KEYLESS_PANEL:
            yield from _model(ref, environ, retired, needed=ref.model in needed)
    if ping:
        able = [r for r in refs.values() if r.provider != KEYLESS_PANEL and has_key(r, environ)]
        yield from anyio.run(_ping_all, able, environ)


def _wanted(config: Config, models: str | None) -> list[ModelRef]:
    """What this user really means to call."""
    named = [ModelRef(model=name.strip()) for name in (models or "").split(",") if name.strip()]
    criteria = [config.criteria.ref] if config.criteria.ref else []
    return [*config.candidates, *criteria, *named]


def _disk() -> Iterator[Finding]:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    level: Level = "ok" if free > 1e9 else "warn" if free > 5e7 else "bad"
    yield Finding(level, "disk", f"{free / 1e9:.1f} GB free", "" if level == "ok" else "make room")


def _panel(
    name: str, members: list[ModelRef], environ: Mapping[str, str], *, needed: bool
) -> Finding:
    missing = sorted({str(key_variable(m, environ)) for m in members if not has_key(m, environ)})
    if not missing:
        return Finding("ok", f"panel {name}", f"{len(members)} models, no key missing")
    mend = f"export {missing[0]}=…"
    return Finding(
        "bad" if needed else "note", f"panel {name}", f"needs {', '.join(missing)}", mend
    )


def _model(
    ref: ModelRef,
    environ: Mapping[str, str],
    retired: Mapping[str, Retirement],
    *,
    needed: bool,
) -> Iterator[Finding]:
    if needed:
        try:
            require(ref, environ)
        except ConfigError as error:
            yield Finding("bad", ref.model, error.message, error.mend or "")
    if not prices.known(ref):
        mend = "price: {input: …, output: …} in dollars per million tokens"
        yield Finding("warn" if needed else "note", ref.model, "price unknown", mend)
    ends = retired.get(canonical(ref))
    if ends is not None:
        yield _retiring(ref, ends, needed=needed)


def _retiring(ref: ModelRef, ends: Retirement, *, needed: bool) -> Finding:
    days = (ends.day - datetime.now(UTC).date()).days
    if days < 0 and ends.status == "announced":
        return Finding(
            "bad" if needed else "warn", ref.model, f"retired on {ends.day}", f"use {ends.instead}"
        )
    when = f"retires on {ends.day}" if ends.status == "announced" else f"may retire from {ends.day}"
    level: Level = "warn" if days <= _SOON_DAYS else "note"
    return Finding(level, ref.model, when, f"use {ends.instead}")


def canonical(ref: ModelRef) -> str:
    """``vendor/name``, whatever road leads there; dots and dashes are the same."""
    parts = ref.model.split("/")
    name = parts[-1].partition(":")[0].replace(".", "-")
    return f"{ref.vendor}/{name}"


def retirements() -> dict[str, Retirement]:
    """Names that retire, from ``configs/models.yaml``."""
    table = read_yaml(assets.path("configs", "models.yaml")).value
    return {
        model.replace(".", "-"): Retirement(row["date"], row["status"], row["instead"])
        for row in table["retiring"]
        for model in row["models"]
    }


async def _ping_all(refs: list[ModelRef], environ: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []

    async def one(ref: ModelRef) -> None:
        found.append(await _ping(ref, environ))

    async with anyio.create_task_group() as tasks:
        for ref in refs:
            tasks.start_soon(one, ref)
    return sorted(found, key=lambda finding: finding.subject)


async def _ping(ref: ModelRef, environ: Mapping[str, str]) -> Finding:
    """One word of one model, in up to three attempts where it refuses a parameter."""
    provider = open_provider(ref, environ=environ, limits=_LIMITS)
    request = Request(
        turns=(Turn(role="user", content="Answer with the word: here"),),
        max_tokens=_PING_TOKENS,
        options=ref.options,
    )
    try:
        for _ in range(3):
            try:
                reply = await provider.complete(request)
            except ProviderError as error:
                if error.action == "degrade":
                    continue
                return Finding("bad", ref.model, f"{error.error_class}: {error.message}"[:160])
            return Finding("ok", ref.model, f"answers in {reply.latency_s:.1f} s")
    finally:
        await provider.aclose()
    return Finding("bad", ref.model, "refuses every form of a request")
