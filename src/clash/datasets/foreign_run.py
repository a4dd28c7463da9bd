"""A run of another tool, as the records that a run folder is written from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from pydantic import Field

from clash.datasets import published_models
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
    from collections.abc import Iterable, Mapping, Sequence

    from clash.records import Groups


class PublishedVerdict(Record):
    """The other tool's verdict on an item, in its own measures.

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
class PanelSeat:
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
        verdicts: the tool's own, with costs and times.
        claims: figures that its makers published of it, by the names that clash has for them.
        notes: what the source lacks or does differently, for people to read.
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
    verdicts: tuple[PublishedVerdict, ...] = ()
    parent: str | None = None
    licence: str = "as its source says"
    claims: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def candidates(self) -> list[str]:
        """Who responds, in order of appearance."""
        return candidates_of(self.responses)

    @property
    def panel(self) -> list[PanelSeat]:
        """The judges, in order of appearance, voting ones first."""
        seats = {
            j.judge: PanelSeat(j.judge, j.role, j.weight, family_of(j.judge))
            for j in self.judgments
        }
        return sorted(seats.values(), key=lambda seat: seat.role != "voting")

    @property
    def cost_usd(self) -> float | None:
        """What the items cost together, as far as it is published."""
        costs = [p.cost_usd for p in self.verdicts if p.cost_usd is not None]
        return round(sum(costs), 9) if costs else None

    @property
    def wall_s(self) -> float:
        """Seconds of all evaluations, as far as they are published."""
        return sum(p.elapsed_s or 0.0 for p in self.verdicts)

    @property
    def times(self) -> list[str]:
        """When items were judged, earliest first."""
        return sorted(p.time for p in self.verdicts if p.time)

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
        """Number of records of each kind."""
        return {
            "items": len(self.items),
            "responses": len(self.responses),
            "judgments": len(self.judgments),
            "failed_judgments": sum(j.ranking is None for j in self.judgments),
            "repaired_judgments": sum(j.parse == "repaired" for j in self.judgments),
            "labels": len(self.labels),
        }


def family_of(judge: str) -> str:
    """The maker of a judge, as far as its name tells; else the name itself."""
    vendor, slash, _ = judge.partition("/")
    if slash:
        return vendor
    model = published_models.find(judge)
    return model.family if model else judge


def no_criteria(items: Iterable[Item]) -> tuple[Criteria, ...]:
    """Criteria records that say there are none."""
    return tuple(Criteria(item_id=item.item_id, source="none", criteria=[]) for item in items)


ABSENT = "not among the imported files"


class ForeignRunBuilder:
    """Collects items and judgments one by one; of duplicates the last counts."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._responses: dict[tuple[str, str], Response] = {}
        self._blinding: dict[tuple[str, int], Blinding] = {}
        self._judgments: dict[tuple[str, int, str], Judgment] = {}
        self._criteria: dict[str, Criteria] = {}
        self._verdicts: dict[str, PublishedVerdict] = {}
        self._again = 0

    def item(self, item_id: str, prompt: str | None, **fields: Any) -> None:  # noqa: ANN401 - of Item
        """An item; ``about`` is further fields of it."""
        self._items.setdefault(item_id, Item(item_id=item_id, prompt=prompt, **fields))

    def response(self, item_id: str, candidate: str, text: str | None, **fields: Any) -> None:  # noqa: ANN401 - of Response
        """A candidate's response; a null text needs an ``error`` that says why."""
        self._responses[item_id, candidate] = Response(
            **{
                "item_id": item_id,
                "candidate": candidate,
                "text": text,
                "source": "injected",
                "error": None if text is not None else ABSENT,
                **fields,
            }
        )

    def criteria(self, criteria: Criteria) -> None:
        """What an item was judged by."""
        self._criteria[criteria.item_id] = criteria

    def add_verdict(self, verdict: PublishedVerdict) -> None:
        """The tool's own account of an item."""
        self._verdicts[verdict.item_id] = verdict

    def judgment(
        self,
        item_id: str,
        order: Sequence[str],
        judge: str,
        winners: Sequence[Sequence[str]] | None,
        *,
        presentation: int = 0,
        error: str | None = None,
        role: Role = "voting",
        flags: Iterable[str] = (),
    ) -> None:
        """One judge on one presentation.

        Args:
            item_id: the item.
            order: candidates in the order in which the judge saw them.
            judge: its name.
            winners: candidates in groups, best first; null where the judge failed.
            presentation: which showing of the item it was.
            error: why there is no ranking.
            role: whether it votes.
            flags: what is worth knowing of it.
        """
        labels = {f"A{number}": candidate for number, candidate in enumerate(order)}
        key = (item_id, presentation)
        self._blinding[key] = Blinding(item_id=item_id, presentation=presentation, labels=labels)
        self._again += (*key, judge) in self._judgments
        self._judgments[(*key, judge)] = Judgment(
            item_id=item_id,
            presentation=presentation,
            judge=judge,
            role=role,
            weight=1,
            ranking=None if winners is None else _blind_ranking(winners, labels),
            parse="failed" if winners is None else "clean",
            flags=list(flags),
            error=error if winners is None else None,
        )

    def build(self, name: str, source: str, *notes: str) -> ForeignRun:
        """The run."""
        if self._again:
            notes += (f"{self._again} judgments appeared more than once; the last of each counts",)
        missing = Counter(r.error for r in self._responses.values() if r.text is None)
        notes += tuple(f"{count} responses: {reason}" for reason, count in missing.items())
        items = tuple(self._items.values())
        return ForeignRun(
            name=name,
            kind="eval",
            source=source,
            items=items,
            responses=tuple(self._responses.values()),
            blinding=tuple(self._blinding.values()),
            criteria=tuple(
                self._criteria.get(record.item_id, record) for record in no_criteria(items)
            ),
            judgments=tuple(self._judgments.values()),
            verdicts=tuple(self._verdicts.values()),
            notes=notes,
        )


def pair_ranking(order: Sequence[str], winner: int | None) -> list[list[str]]:
    """The ranking of two responses: 0 the first wins, 1 the second, null a tie."""
    if winner is None:
        return [list(order)]
    return [[order[winner]], [order[1 - winner]]]


def _blind_ranking(winners: Sequence[Sequence[str]], labels: Mapping[str, str]) -> Groups:
    label_of = {candidate: label for label, candidate in labels.items()}
    return [[label_of[candidate] for candidate in group] for group in winners]
