"""One item from prompt to verdict: what a person reads to follow, and to contradict, a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from clash.analysis.verdicts import unblinded
from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.analysis.rundata import RunData
    from clash.records import Criteria, Groups, Item, Judgment, Verdict


@dataclass(frozen=True)
class Said:
    """What one judge said of one presentation.

    Attributes:
        points: Borda points by label.
        mean_scores: criteria scores by label, weighted by the criteria.
    """

    judge: str
    role: str
    weight: float
    presentation: int
    labels: Mapping[str, str]
    ranking: Groups | None
    unblinded: Groups | None
    points: dict[str, float]
    scores: dict[str, dict[str, int]]
    reasons: dict[str, dict[str, str]]
    mean_scores: dict[str, float]
    parse: str
    repairs: list[str]
    flags: list[str]
    error: str | None


@dataclass(frozen=True)
class Walk:
    """Every step of one item."""

    item: Item
    responses: dict[str, str]
    missing: dict[str, str]
    labels: Mapping[str, str]
    scrubbed: list[str]
    criteria: Criteria | None
    said: list[Said]
    verdict: Verdict
    label: str | None

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "item": self.item.model_dump(mode="json"),
            "criteria": self.criteria.model_dump(mode="json") if self.criteria else None,
            "verdict": self.verdict.model_dump(mode="json"),
            "said": [{**asdict(said), "labels": dict(said.labels)} for said in self.said],
            "responses": self.responses,
            "missing": self.missing,
            "labels": dict(self.labels),
            "scrubbed": self.scrubbed,
            "label": self.label,
        }


def walk(data: RunData, item_id: str) -> Walk:
    """Collect the steps of an item.

    Raises:
        InputError: the run has no such item.
    """
    found = next((i for i in data.items if i.item_id == item_id), None)
    if found is None:
        some = ", ".join(i.item_id for i in data.items[:5])
        raise InputError(
            f"no item {item_id!r} in {data.manifest.run}", field="--item", mend=f"such as {some}"
        )
    pages = [b for b in data.blinds.records if b.item_id == item_id]
    criteria = data.criteria.get(item_id)
    return Walk(
        item=found,
        responses=data.texts[item_id],
        missing={
            r.candidate: r.error or "no text"
            for r in data.responses
            if r.item_id == item_id and r.text is None
        },
        labels=pages[0].labels if pages else {},
        scrubbed=sorted({f"{s.candidate}: {s.text!r}" for b in pages for s in b.scrubbed}),
        criteria=criteria,
        said=[_said(data, j, criteria) for j in data.judgments if j.item_id == item_id],
        verdict=next(v for v in data.verdicts if v.item_id == item_id),
        label=data.truth.get(item_id),
    )


def _said(data: RunData, judgment: Judgment, criteria: Criteria | None) -> Said:
    labels = data.blinds.labels(judgment)
    weights = {c.name: c.weight for c in criteria.criteria} if criteria else {}
    return Said(
        judge=judgment.judge,
        role=judgment.role,
        weight=judgment.weight,
        presentation=judgment.presentation,
        labels=labels,
        ranking=judgment.ranking,
        unblinded=unblinded(judgment, labels),
        points=_points(judgment.ranking or []),
        scores=judgment.scores,
        reasons=judgment.reasons,
        mean_scores={label: _mean(row, weights) for label, row in judgment.scores.items()},
        parse=judgment.parse,
        repairs=judgment.repairs,
        flags=judgment.flags,
        error=judgment.error,
    )


def _points(ranking: Groups) -> dict[str, float]:
    """K - rank, shared within a tie."""
    below = sum(len(group) for group in ranking)
    points: dict[str, float] = {}
    for group in ranking:
        below -= len(group)
        for label in group:
            points[label] = below + (len(group) - 1) / 2
    return dict(sorted(points.items()))


def _mean(row: Mapping[str, int], weights: Mapping[str, float]) -> float:
    total = sum(weights.get(name, 0.0) for name in row)
    if total == 0:
        return sum(row.values()) / len(row)
    return sum(score * weights.get(name, 0.0) for name, score in row.items()) / total
