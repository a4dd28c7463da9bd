"""A run that another tool made, as plain records: everything that a run folder is written from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import Field

from clash.datasets import models
from clash.records import (
    Blinding,
    Criteria,
    Item,
    Judgment,
    Kind,
    Label,
    Record,
    Response,
    Role,
    candidates_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Published(Record):
    """What the other tool says of an item, in its own measures.

    Attributes:
        confidence: as published; not normalised, so not comparable across tools.
        match: the tool says that its winner is the label.
        elapsed_s: seconds that the evaluation took.
    """

    item_id: str
    winner: str | None = None
    ranking: list[str] = Field(default_factory=list)
    confidence: float | None = None
    match: bool | None = None
    cost_usd: float | None = None
    elapsed_s: float | None = None
    time: str | None = None


@dataclass(frozen=True, slots=True)
class Seat:
    """A judge of the run, and in which role."""

    id: str
    role: Role
    weight: float
    family: str


@dataclass(frozen=True)
class ForeignRun:
    """One run of another tool.

    Attributes:
        name: unique among the runs of one import.
        parent: the run that it repeats, by name.
        published: the tool's own verdicts, with costs and times.
        claims: figures that its makers published of it, by the names that clash has for them.
        notes: what the source lacks or does otherwise, for people to read.
    """

    name: str
    kind: Kind
    source: str
    items: tuple[Item, ...]
    responses: tuple[Response, ...]
    blinding: tuple[Blinding, ...]
    judgments: tuple[Judgment, ...]
    criteria: tuple[Criteria, ...] = ()
    labels: tuple[Label, ...] = ()
    published: tuple[Published, ...] = ()
    parent: str | None = None
    licence: str = "as its source says"
    claims: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[str]:
        """Who responds, in order of appearance."""
        return candidates_of(self.responses)

    @property
    def panel(self) -> list[Seat]:
        """The judges, in order of appearance, voting ones first."""
        seats = {j.judge: Seat(j.judge, j.role, j.weight, family(j.judge)) for j in self.judgments}
        return sorted(seats.values(), key=lambda seat: seat.role != "voting")

    @property
    def cost_usd(self) -> float | None:
        """What the items cost together, as far as it is published."""
        known = [p.cost_usd for p in self.published if p.cost_usd is not None]
        return round(sum(known), 9) if known else None

    @property
    def wall_s(self) -> float:
        """Seconds of all evaluations, as far as they are published."""
        return sum(p.elapsed_s or 0.0 for p in self.published)

    @property
    def times(self) -> list[str]:
        """When items were judged, earliest first."""
        return sorted(p.time for p in self.published if p.time)

    def records(self) -> Iterable[Record]:
        """Every record of the run folder."""
        return chain(
            self.items,
            self.responses,
            self.blinding,
            self.criteria,
            self.judgments,
            self.labels,
        )

    def counts(self) -> dict[str, int]:
        """How much there is of what."""
        return {
            "items": len(self.items),
            "responses": len(self.responses),
            "judgments": len(self.judgments),
            "failed_judgments": sum(j.ranking is None for j in self.judgments),
            "repaired_judgments": sum(j.parse == "repaired" for j in self.judgments),
            "labels": len(self.labels),
        }


def family(judge: str) -> str:
    """Who made a judge, as far as its name tells."""
    vendor, slash, _ = judge.partition("/")
    if slash:
        return vendor
    known = models.find(judge)
    return known.family if known else judge


def no_criteria(items: Iterable[Item]) -> tuple[Criteria, ...]:
    """Criteria records that say there are none."""
    return tuple(Criteria(item_id=item.item_id, source="none", criteria=[]) for item in items)


def unlabelled(ranking: Iterable[Iterable[str]], labels: Mapping[str, str]) -> list[list[str]]:
    """A ranking of labels as a ranking of candidates."""
    return [[labels[label] for label in group] for group in ranking]
