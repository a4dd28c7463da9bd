"""A plan written down before the data, frozen by its hash, and what a run made of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from clash.analysis.registered import Outcome, Primary, primary
from clash.documents import read_json
from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clash.analysis.rundata import RunData

OUTCOMES: tuple[Outcome, ...] = ("points", "wins", "concordance")


class Seat(BaseModel):
    """A judge of the registered panel."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    id: str
    model: str
    role: str
    weight: float


class Registration(BaseModel):
    """What was decided before the data.

    Attributes:
        outcome: mean share of points, win rate, or concordance with labels.
        primary: the candidate that the outcome is of; null for concordance.
        clustering: the unit that intervals are clustered by.
        effect: smallest difference of interest; ``alpha`` two-sided; ``power`` planned.
        items: prompts planned.
        stopping: ``fixed`` (all items, one look), or a rule as ``ci<0.1`` with ``sequential``
            and the ``looks`` planned (null in plans of before these were registered).
        prompts: SHA-256 of the prompts file; null where it is not settled.
        both_orders: shown to each judge; ``per_judge`` a shuffle for each, as configured.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    v: int = 1
    panel: list[Seat] = Field(min_length=1)
    quorum: float | None = None
    method: str
    tie_break: str
    min_confidence: float | None = None
    outcome: Outcome
    primary: str | None = None
    candidates: list[str] = []
    clustering: Literal["prompt"] = "prompt"
    effect: float = Field(gt=0, lt=1)
    alpha: float = Field(gt=0, lt=1)
    power: float = Field(gt=0, lt=1)
    items: int = Field(gt=0)
    stopping: str = "fixed"
    sequential: str | None = None
    looks: int | None = None
    prompts: str | None = None
    criteria: str
    both_orders: bool
    per_judge: bool
    seed: int | None = None
    note: str | None = None


@dataclass(frozen=True)
class FrozenRegistration:
    """A registration with its time and seal.

    Attributes:
        frozen_at: when, in UTC.
        sha256: of time and plan; what a run records.
    """

    plan: Registration
    frozen_at: str
    sha256: str

    def as_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {"plan": _content(self.plan), "frozen": self.frozen_at, "sha256": self.sha256}


def freeze(plan: Registration, when: str) -> FrozenRegistration:
    """Seal a plan; the same plan at the same time has the same hash."""
    return FrozenRegistration(plan, when, _hash(plan, when))


def _content(plan: Registration) -> dict[str, Any]:
    """What is written and hashed; a plan without what came later keeps its hash."""
    content = plan.model_dump()
    later = ("looks", "min_confidence")
    return {n: value for n, value in content.items() if n not in later or value is not None}


def stopping(plan: Registration) -> str:
    """The stopping rule in words."""
    if plan.stopping == "fixed":
        return "fixed, all prompts judged once"
    looks = "" if plan.looks is None else f", {plan.looks} looks"
    return f"{plan.stopping} ({plan.sequential}{looks})"


def _hash(plan: Registration, when: str) -> str:
    content = {"plan": _content(plan), "frozen": when}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def parse(content: Mapping[str, Any], path: Path | None = None) -> FrozenRegistration:
    """A frozen registration from the content of its file.

    Raises:
        InputError: it is none, or was changed after it was frozen.
    """
    try:
        plan = Registration.model_validate(content["plan"])
        when, seal = str(content["frozen"]), str(content["sha256"])
    except (KeyError, TypeError, ValidationError) as error:
        raise InputError(
            f"is not a registration: {str(error).splitlines()[0]}", path=path, hint="clash prereg"
        ) from None
    if _hash(plan, when) != seal:
        raise InputError(
            "was changed after it was frozen: its hash does not match its content",
            path=path,
            field="sha256",
            hint="register again (clash prereg) before you collect",
        )
    return FrozenRegistration(plan, when, seal)


def read(path: Path) -> FrozenRegistration:
    """A frozen registration from its file.

    Raises:
        InputError: as :func:`parse`, or it cannot be read.
    """
    content = read_json(path).value
    if not isinstance(content, dict):
        raise InputError("is no registration", path=path, hint="clash prereg")
    return parse(content, path)


@dataclass(frozen=True)
class Deviation:
    """Something that is not as registered."""

    json_keys: ClassVar[Mapping[str, str]] = {"aspect": "what", "plan": "planned", "actual": "done"}

    aspect: str
    plan: str
    actual: str


@dataclass(frozen=True)
class Conformity:
    """A run against its registration.

    Attributes:
        stopping: the registered stopping rule in words.
        primary: the registered outcome; null where this run cannot show it.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"frozen_at": "frozen"}

    sha256: str
    frozen_at: str
    plan: dict[str, Any]
    stopping: str
    primary: Primary | None
    deviations: tuple[Deviation, ...]


def conformity(run: RunData) -> Conformity | None:
    """Every deviation of a run from its registration; null where it has none.

    The registration is in the manifest, whole, so that a report needs no other file.
    """
    content = run.manifest.registration
    if content is None:
        return None
    registration = parse(content)
    return Conformity(
        registration.sha256,
        registration.frozen_at,
        registration.plan.model_dump(),
        stopping(registration.plan),
        primary(run, registration.plan.outcome, registration.plan.primary, registration.plan.alpha),
        tuple(_deviations(registration, run)),
    )


def _deviations(registration: FrozenRegistration, run: RunData) -> Iterator[Deviation]:
    plan, manifest = registration.plan, run.manifest
    if manifest.preregistration != registration.sha256:
        yield Deviation("registration", registration.sha256, str(manifest.preregistration))
    if manifest.started and manifest.started < registration.frozen_at:
        yield Deviation(
            "time", f"frozen {registration.frozen_at}", f"the run began {manifest.started}"
        )
    yield from _panel(plan, run)
    yield from _settings(plan, run)
    yield from _extent(plan, run)


def _panel(plan: Registration, run: RunData) -> Iterator[Deviation]:
    planned_seats = {seat.id: seat for seat in plan.panel}
    panelists = {p.id: p for p in run.rules.panelists}
    for name, seat in planned_seats.items():
        if name not in panelists:
            yield Deviation(f"judge {name}", seat.role, "does not sit")
            continue
        panelist = panelists[name]
        for aspect in ("model", "role", "weight"):
            if getattr(seat, aspect) != getattr(panelist, aspect):
                old, new = str(getattr(seat, aspect)), str(getattr(panelist, aspect))
                yield Deviation(f"{aspect} of judge {name}", old, new)
    for name, judge in panelists.items():
        if name not in planned_seats and judge.role == "voting":
            yield Deviation(f"judge {name}", "does not sit", judge.role)
    if plan.quorum != run.rules.quorum:
        yield Deviation("quorum", str(plan.quorum), str(run.rules.quorum))


def _settings(plan: Registration, run: RunData) -> Iterator[Deviation]:
    config = run.manifest.config
    pairs: list[tuple[str, Any, Any]] = [
        ("aggregation", plan.method, run.rules.method),
        ("tie break", plan.tie_break, run.rules.tie_break),
        ("least confidence", plan.min_confidence, run.rules.min_confidence),
        ("both orders", plan.both_orders, config["blinding"]["both_orders"]),
        ("shuffle for each judge", plan.per_judge, config["blinding"]["per_judge"]),
        ("criteria", plan.criteria, config["criteria"]["mode"]),
    ]
    if plan.seed is not None:
        pairs.append(("seed", plan.seed, config["seed"]))
    if plan.candidates:
        pairs.append(("candidates", sorted(plan.candidates), run.candidates))
    if plan.prompts is not None:
        pairs.append(("prompts", plan.prompts[:12], str(run.manifest.hashes.get("prompts"))[:12]))
    # Reports give 95% intervals; a registered alpha of another size is not what they show.
    pairs.append(("alpha of the intervals", plan.alpha, 0.05))
    for aspect, plan_value, actual in pairs:
        if plan_value != actual:
            yield Deviation(aspect, _words(plan_value), _words(actual))


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _extent(plan: Registration, run: RunData) -> Iterator[Deviation]:
    """How many prompts were judged, and by which stopping rule the run ended."""
    manifest, n_items = run.manifest, len(run.items)
    rule = manifest.stopping or {}
    rule_name = str(rule.get("rule", "fixed"))
    if rule_name != plan.stopping:
        yield Deviation("stopping rule", plan.stopping, rule_name)
    if rule_name != "fixed" and rule.get("sequential") != plan.sequential:
        yield Deviation("price of peeking", str(plan.sequential), str(rule.get("sequential")))
    if rule_name != "fixed" and plan.looks not in (None, rule.get("looks_planned")):
        yield Deviation("looks planned", str(plan.looks), str(rule.get("looks_planned")))
    early = rule_name != "fixed" and bool(rule.get("met")) and n_items <= plan.items
    if n_items != plan.items and not early:
        yield Deviation("prompts judged", str(plan.items), str(n_items))
    missing = sum(verdict.ranking is None for verdict in run.verdicts)
    if missing:
        n_unjudged = len(run.unjudged_items)
        shortfall = f"; {n_unjudged} not judged yet" if n_unjudged else ""
        yield Deviation(
            "verdicts", f"{n_items} of {n_items}", f"{n_items - missing} of {n_items}{shortfall}"
        )
    if plan.outcome == "concordance" and not run.truth:
        yield Deviation("primary outcome", "concordance", "there are no labels")
    if plan.primary is not None and plan.primary not in run.candidates:
        yield Deviation("primary outcome", f"of {plan.primary}", "is not a candidate of this run")
