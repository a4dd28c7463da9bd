"""What `clash doctor` looks at: keys, addresses, names that retire, prices, disk."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import anyio

from clash import assets
from clash.collect.resolve import KEYLESS_PANEL, read_config, read_panel
from clash.config import Limits, ModelRef, Panel
from clash.documents import read_yaml
from clash.errors import ConfigError, InputError, ProviderError
from clash.providers import (
    base_url,
    destination,
    has_key,
    key_variable,
    open_provider,
    prices,
    require,
)
from clash.providers.base import Request
from clash.records import Turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clash.config import Config

Level = Literal["ok", "note", "warn", "bad"]
_SOON_DAYS = 60
_PING_TOKENS = 64
_LIMITS = Limits(timeout_s=30)


@dataclass(frozen=True)
class CheckupFinding:
    """One thing that was looked at; only ``bad`` makes doctor exit with 1."""

    level: Level
    subject: str
    says: str
    hint: str = ""

    def as_json(self) -> dict[str, str]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Retirement:
    """A name that a vendor takes away, or has taken away."""

    day: date
    status: str
    instead: str


def check_setup(
    config_file: Path | None,
    panel: str | None,
    models: str | None,
    environ: Mapping[str, str],
    *,
    ping: bool,
) -> Iterator[CheckupFinding]:
    """Everything, cheap things first; ``ping`` makes one short call to each model."""
    yield from _disk()
    try:
        config = read_config(config_file, {"panel": panel})
    except InputError as error:
        yield CheckupFinding("bad", "configuration", error.message, error.hint or "")
        return
    panels = _panels(config)
    chosen = config.panel is not None
    for seated in panels:
        yield _panel(seated, environ, needed=chosen)
    wanted = [*_wanted(config, models), *(_members(panels) if chosen else [])]
    rows = _rows([*wanted, *_members(panels)], environ)
    needed = set(_rows(wanted, environ))
    retired = retirements()
    names = _names(rows)
    for row, ref in rows.items():
        yield from _model(names[row], ref, environ, retired, needed=row in needed)
    if ping:
        able = {names[row]: ref for row, ref in rows.items() if _can_be_called(ref, environ)}
        yield from anyio.run(_ping_all, able, environ)


class ModelEntry(NamedTuple):
    """What tells two entries of models apart: one model at two addresses is two."""

    model: str
    address: str | None
    key_variable: str | None


def _panels(config: Config) -> list[Panel]:
    """The panel that was chosen; all shipped ones where none was."""
    if isinstance(config.panel, Panel):
        return [config.panel]
    return [read_panel(name, "owner") for name in assets.panels()]


def _members(panels: Iterable[Panel]) -> list[ModelRef]:
    refs: list[ModelRef] = []
    for panel in panels:
        for judge in panel.judges:
            refs += [judge, *judge.fallbacks]
        refs += [panel.criteria] if panel.criteria is not None else []
    return refs


def _wanted(config: Config, models: str | None) -> list[ModelRef]:
    """What this user really means to call beside the panel."""
    named = [ModelRef(model=name.strip()) for name in (models or "").split(",") if name.strip()]
    criteria = [config.criteria.ref] if config.criteria.ref else []
    observers = config.observers.judges
    watching = observers if isinstance(observers, list) else []
    return [*config.candidates, *criteria, *watching, *named]


def _rows(refs: Iterable[ModelRef], environ: Mapping[str, str]) -> dict[ModelEntry, ModelRef]:
    """The models that have keys or addresses to check, each once at each address."""
    return {
        ModelEntry(ref.model, base_url(ref, environ), key_variable(ref, environ)): ref
        for ref in refs
        if ref.provider != KEYLESS_PANEL
    }


def _names(rows: Iterable[ModelEntry]) -> dict[ModelEntry, str]:
    """What each row is called: by its model, and by what differs where a model has several."""
    models = Counter(row.model for row in rows)
    return {
        row: row.model
        if models[row.model] == 1
        else f"{row.model} at {row.address} with {row.key_variable or 'no key'}"
        for row in rows
    }


def _can_be_called(ref: ModelRef, environ: Mapping[str, str]) -> bool:
    try:
        require(ref, environ)
    except ConfigError:
        return False
    return True


def _disk() -> Iterator[CheckupFinding]:
    here = Path.cwd()
    free = shutil.disk_usage(here).free
    level: Level = "ok" if free > 1e9 else "warn" if free > 5e7 else "bad"
    yield CheckupFinding(
        level, "disk", f"{free / 1e9:.1f} GB free", "" if level == "ok" else "make room"
    )


def _panel(panel: Panel, environ: Mapping[str, str], *, needed: bool) -> CheckupFinding:
    members = _members([panel])
    missing = sorted({str(key_variable(m, environ)) for m in members if not has_key(m, environ)})
    subject = f"panel {panel.name}"
    if not missing:
        return CheckupFinding("ok", subject, f"{len(members)} models, no key missing")
    hint = f"export {missing[0]}=…"
    return CheckupFinding("bad" if needed else "note", subject, f"needs {', '.join(missing)}", hint)


def _model(
    name: str,
    ref: ModelRef,
    environ: Mapping[str, str],
    retired: Mapping[str, Retirement],
    *,
    needed: bool,
) -> Iterator[CheckupFinding]:
    if needed:
        yield _reached(name, ref, environ)
    if not prices.known(ref):
        hint = "price: {input: …, output: …} in dollars per million tokens"
        yield CheckupFinding("warn" if needed else "note", name, "price unknown", hint)
    ends = retired.get(canonical(ref))
    if ends is not None:
        yield _retiring(name, ends, needed=needed)


def _reached(name: str, ref: ModelRef, environ: Mapping[str, str]) -> CheckupFinding:
    """Whether a model could be called, and where its key would go."""
    try:
        require(ref, environ)
    except ConfigError as error:
        return CheckupFinding("bad", name, error.message, error.hint or "")
    where = destination(ref, environ)
    return CheckupFinding("ok", name, str(where or f"no key -> {base_url(ref, environ)}"))


def _retiring(name: str, ends: Retirement, *, needed: bool) -> CheckupFinding:
    days = (ends.day - datetime.now(UTC).date()).days
    if days < 0 and ends.status == "announced":
        return CheckupFinding(
            "bad" if needed else "warn", name, f"retired on {ends.day}", f"use {ends.instead}"
        )
    when = f"retires on {ends.day}" if ends.status == "announced" else f"may retire from {ends.day}"
    level: Level = "warn" if days <= _SOON_DAYS else "note"
    return CheckupFinding(level, name, when, f"use {ends.instead}")


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


async def _ping_all(
    refs: Mapping[str, ModelRef], environ: Mapping[str, str]
) -> list[CheckupFinding]:
    found: list[CheckupFinding] = []

    async def one(name: str, ref: ModelRef) -> None:
        found.append(await _ping(name, ref, environ))

    async with anyio.create_task_group() as tasks:
        for name, ref in refs.items():
            tasks.start_soon(one, name, ref)
    return sorted(found, key=lambda finding: finding.subject)


async def _ping(name: str, ref: ModelRef, environ: Mapping[str, str]) -> CheckupFinding:
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
                return CheckupFinding("bad", name, f"{error.error_class}: {error.message}"[:160])
            return CheckupFinding("ok", name, f"answers in {reply.latency_s:.1f} s")
    finally:
        await provider.aclose()
    return CheckupFinding("bad", name, "refuses every form of a request")
