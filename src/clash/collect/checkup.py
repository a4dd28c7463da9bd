"""What `clash doctor` checks: keys, addresses, models being retired, prices, disk."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
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
    open_batches,
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
    """The result of one check; only ``bad`` makes doctor exit with 1.

    Attributes:
        says: what was found.
        hint: what follows, or what can be done about it.
    """

    level: Level
    subject: str
    says: str
    hint: str = ""


@dataclass(frozen=True)
class Retirement:
    """When a vendor retires a model, and what to use instead.

    Attributes:
        status: ``announced``, or not yet certain.
    """

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
    """All checks, cheap ones first; ``ping`` makes one short call to each model."""
    yield from _disk()
    try:
        config = read_config(config_file, {"panel": panel})
    except InputError as error:
        yield CheckupFinding("bad", "configuration", error.message, error.hint or "")
        return
    panels = _panels(config)
    has_panel = config.panel is not None
    for panel_config in panels:
        members = _refs_of([panel_config])
        if all(has_key(member, environ) for member in members):
            finding = f"{len(members)} models, no key missing"
            yield CheckupFinding("ok", f"panel {panel_config.name}", finding)
    other_refs = _refs_beside_panel(config, models)
    needed_refs = [*other_refs, *(_refs_of(panels) if has_panel else [])]
    yield from _missing_keys(panels, other_refs, environ, is_panel_needed=has_panel)
    refs_by_model = _refs_by_model([*needed_refs, *_refs_of(panels)], environ)
    needed_entries = set(_refs_by_model(needed_refs, environ))
    retirements = read_retirements()
    names = _names(refs_by_model)
    for identity, ref in refs_by_model.items():
        is_needed = identity in needed_entries
        yield from _model(names[identity], ref, environ, retirements, is_needed=is_needed)
    if ping:
        refs = {names[e]: ref for e, ref in refs_by_model.items() if _can_be_called(ref, environ)}
        yield from anyio.run(_ping_all, refs, environ)


class ModelEntry(NamedTuple):
    """What identifies a model to check: one model at two addresses is two entries."""

    model: str
    address: str | None
    key_variable: str | None


def _panels(config: Config) -> list[Panel]:
    """The panel that was chosen; all shipped ones where none was."""
    if isinstance(config.panel, Panel):
        return [config.panel]
    return [read_panel(name, "owner") for name in assets.panels()]


def _refs_of(panels: Iterable[Panel]) -> list[ModelRef]:
    refs: list[ModelRef] = []
    for panel in panels:
        for judge in panel.judges:
            refs += [judge, *judge.fallbacks]
        refs += [panel.criteria] if panel.criteria is not None else []
    return refs


def _refs_beside_panel(config: Config, models: str | None) -> list[ModelRef]:
    """The models that this configuration calls beside the panel's."""
    extra = [ModelRef(model=name.strip()) for name in (models or "").split(",") if name.strip()]
    criteria = [config.criteria.ref] if config.criteria.ref else []
    observers = config.observers.judges
    watching = observers if isinstance(observers, list) else []
    return [*config.candidates, *criteria, *watching, *extra]


def _refs_by_model(
    refs: Iterable[ModelRef], environ: Mapping[str, str]
) -> dict[ModelEntry, ModelRef]:
    """The models that have keys or addresses to check, each once at each address."""
    return {
        ModelEntry(ref.model, base_url(ref, environ), key_variable(ref, environ)): ref
        for model in refs
        for ref in model.servers
        if ref.provider != KEYLESS_PANEL
    }


def _names(models_to_check: Iterable[ModelEntry]) -> dict[ModelEntry, str]:
    """The name of each entry: its model, and what differs where a model has several entries."""
    counts = Counter(identity.model for identity in models_to_check)
    return {
        identity: identity.model
        if counts[identity.model] == 1
        else f"{identity.model} at {identity.address} with {identity.key_variable or 'no key'}"
        for identity in models_to_check
    }


def _can_be_called(ref: ModelRef, environ: Mapping[str, str]) -> bool:
    try:
        require(ref, environ)
    except ConfigError:
        return False
    return True


def _disk() -> Iterator[CheckupFinding]:
    free = shutil.disk_usage(Path.cwd()).free
    level: Level = "ok" if free > 1e9 else "warn" if free > 5e7 else "bad"
    yield CheckupFinding(
        level, "disk", f"{free / 1e9:.1f} GB free", "" if level == "ok" else "make room"
    )


def _missing_keys(
    panels: Iterable[Panel],
    other_refs: Iterable[ModelRef],
    environ: Mapping[str, str],
    *,
    is_panel_needed: bool,
) -> Iterator[CheckupFinding]:
    """One finding for each variable that is not set, however many models need it."""
    users: dict[str, dict[str, None]] = {}
    missing_variables: set[str] = set()
    members = [(f"panel {panel.name}", ref) for panel in panels for ref in _refs_of([panel])]
    models = [(ref.model, ref) for ref in other_refs]
    for user, ref in (*models, *members):
        variable = key_variable(ref, environ)
        if variable is None or has_key(ref, environ):
            continue
        users.setdefault(variable, {})[user] = None
        if is_panel_needed or (user, ref) in models:
            missing_variables.add(variable)
    for variable, names in users.items():
        yield CheckupFinding(
            "bad" if variable in missing_variables else "note",
            variable,
            f"is not set; needed by {', '.join(names)}",
            f"export {variable}=… or put it into .env",
        )


def _model(
    name: str,
    ref: ModelRef,
    environ: Mapping[str, str],
    retirements: Mapping[str, Retirement],
    *,
    is_needed: bool,
) -> Iterator[CheckupFinding]:
    if is_needed and has_key(ref, environ):
        yield _destination(name, ref, environ)
    if not prices.has_price(ref):
        hint = "price: {input: …, output: …} in dollars per million tokens"
        yield CheckupFinding("warn" if is_needed else "note", name, "price unknown", hint)
    retirement = retirements.get(canonical(ref))
    if retirement is not None:
        yield _retirement_finding(name, retirement, is_needed=is_needed)


def _destination(name: str, ref: ModelRef, environ: Mapping[str, str]) -> CheckupFinding:
    """Whether a model could be called, and where its key would go."""
    try:
        require(ref, environ)
    except ConfigError as error:
        return CheckupFinding("bad", name, error.message, error.hint or "")
    target = destination(ref, environ)
    return CheckupFinding("ok", name, str(target or f"no key -> {base_url(ref, environ)}"))


def _retirement_finding(name: str, retirement: Retirement, *, is_needed: bool) -> CheckupFinding:
    days = (retirement.day - datetime.now(UTC).date()).days
    if days < 0 and retirement.status == "announced":
        return CheckupFinding(
            "bad" if is_needed else "warn",
            name,
            f"retired on {retirement.day}",
            f"use {retirement.instead}",
        )
    when = (
        f"retires on {retirement.day}"
        if retirement.status == "announced"
        else f"may retire from {retirement.day}"
    )
    level: Level = "warn" if days <= _SOON_DAYS else "note"
    return CheckupFinding(level, name, when, f"use {retirement.instead}")


def canonical(ref: ModelRef) -> str:
    """``vendor/name``, whatever provider it is called through; dots and dashes are the same."""
    parts = ref.model.split("/")
    name = parts[-1].partition(":")[0].replace(".", "-")
    return f"{ref.vendor}/{name}"


def read_retirements() -> dict[str, Retirement]:
    """The models being retired, from ``configs/models.yaml``, by canonical name."""
    table = read_yaml(assets.path("configs", "models.yaml")).value
    return {
        model.replace(".", "-"): Retirement(row["date"], row["status"], row["instead"])
        for row in table["retiring"]
        for model in row["models"]
    }


async def _ping_all(
    refs: Mapping[str, ModelRef], environ: Mapping[str, str]
) -> list[CheckupFinding]:
    findings: list[CheckupFinding] = []

    async def ping(name: str, ref: ModelRef) -> None:
        findings.append(await _ping(name, ref, environ))

    async with anyio.create_task_group() as tasks:
        for name, ref in refs.items():
            tasks.start_soon(ping, name, ref)
    return sorted(findings, key=lambda finding: finding.subject)


async def _ping(name: str, ref: ModelRef, environ: Mapping[str, str]) -> CheckupFinding:
    """Ask a model for one word, in up to three attempts where it refuses a parameter."""
    if ref.provider == "vllm":
        return await _ping_cluster(name, ref, environ)
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
    return CheckupFinding("bad", name, "refuses every request format")


async def _ping_cluster(name: str, ref: ModelRef, environ: Mapping[str, str]) -> CheckupFinding:
    """Ask a Ray cluster for a batch that it does not have: to start an engine would take minutes."""
    from clash.providers.batch import Lot

    cluster = open_batches(ref, environ, _LIMITS)
    try:
        await cluster.find(Lot("ping", "", 0, datetime.now(UTC)))
    except ProviderError as error:
        return CheckupFinding("bad", name, f"{error.error_class}: {error.message}"[:160])
    finally:
        await cluster.aclose()
    return CheckupFinding("ok", name, "the cluster answers; its engines start with a batch")
