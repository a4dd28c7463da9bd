"""One item from prompt to verdict: what a person reads to follow, and to contradict, a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, TypeVar

from clash.errors import InputError
from clash.records import Blinding, Judgment, Response
from clash.votes.from_run import unblind, weighted_score

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Criteria, Groups, Item, Verdict

R = TypeVar("R", Blinding, Judgment, Response)


@dataclass(frozen=True)
class JudgmentStep:
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

    json_keys: ClassVar[Mapping[str, str]] = {"judgments": "said", "scrubs": "scrubbed"}

    item: Item
    criteria: Criteria | None
    verdict: Verdict
    judgments: list[JudgmentStep]
    responses: dict[str, str]
    missing: dict[str, str]
    labels: Mapping[str, str]
    scrubs: list[str]
    label: str | None


def walk(run: RunData, item_id: str) -> Walk:
    """Collect the steps of an item.

    Raises:
        InputError: the run has no such item.
    """
    item = next((i for i in run.items if i.item_id == item_id), None)
    if item is None:
        examples = ", ".join(i.item_id for i in run.items[:5])
        raise InputError(
            f"no item {item_id!r} in {run.manifest.run}", field="--item", hint=f"such as {examples}"
        )
    return next(walks(run, [item]))


def walks(run: RunData, items: Sequence[Item] | None = None) -> Iterator[Walk]:
    """The steps of each item (default: of all), in the order of the items."""
    selection = run.items if items is None else items
    names = {item.item_id for item in selection}
    pages, judgments = _by_item(run.blinds.records, names), _by_item(run.judgments, names)
    responses = _by_item(run.responses, names)
    verdicts = {verdict.item_id: verdict for verdict in run.verdicts}
    for item in selection:
        name = item.item_id
        criteria = run.criteria.get(name)
        yield Walk(
            item=item,
            responses=run.texts[name],
            missing={r.candidate: r.error or "no text" for r in responses[name] if r.text is None},
            labels=pages[name][0].labels if pages[name] else {},
            scrubs=sorted({f"{s.candidate}: {s.text!r}" for b in pages[name] for s in b.scrubbed}),
            criteria=criteria,
            judgments=[_judgment_step(run, judgment, criteria) for judgment in judgments[name]],
            verdict=verdicts[name],
            label=run.truth.get(name),
        )


def _by_item(records: Iterable[R], names: set[str]) -> dict[str, list[R]]:
    by_item: dict[str, list[R]] = {name: [] for name in names}
    for record in records:
        if record.item_id in names:
            by_item[record.item_id].append(record)
    return by_item


def _judgment_step(run: RunData, judgment: Judgment, criteria: Criteria | None) -> JudgmentStep:
    labels = run.blinds.labels(judgment)
    weights = {c.name: c.weight for c in criteria.criteria} if criteria else {}
    return JudgmentStep(
        judge=judgment.judge,
        role=judgment.role,
        weight=judgment.weight,
        presentation=judgment.presentation,
        labels=labels,
        ranking=judgment.ranking,
        unblinded=unblind(judgment, labels),
        points=_points(judgment.ranking or []),
        scores=judgment.scores,
        reasons=judgment.reasons,
        mean_scores={
            label: mean
            for label, row in judgment.scores.items()
            if (mean := weighted_score(row, weights)) is not None
        },
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
