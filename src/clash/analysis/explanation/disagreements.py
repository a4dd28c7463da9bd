"""The most telling disagreements: people against the panel, judges against each other."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Literal

from clash.labels import TIE
from clash.store.stored import of_items
from clash.votes.blinding_index import unblind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Item, Judgment, Verdict

ORDER = (
    "people against a unanimous panel first, then people against a split one, then judges against"
    " judges; against people the most confident verdict first, among judges the narrowest"
)
"""The rule by which disagreements are ordered; equal ones stay in the run's order."""
_NO_SCORE = 6
"""Sorts a reason without a score behind those of the scale from 1 to 5."""


@dataclass(frozen=True)
class Reason:
    """What a judge holds against a response: its words for one low score.

    Attributes:
        candidate: whose response.
        score: from 1 to 5; null where the judge gives none for this criterion.
    """

    candidate: str
    criterion: str
    score: int | None
    text: str


@dataclass(frozen=True)
class Opinion:
    """What one voting judge says of an item.

    Attributes:
        first: the candidate that it puts first, or ``tie``; null where the judgment failed.
        reason: what it holds against the choice of people, else of the panel, else of another
            judge, where its own choice is another; else its reason for the lowest score.
    """

    judge: str
    first: str | None
    reason: Reason | None


@dataclass(frozen=True)
class TellingDisagreement:
    """An item on which people and the panel, or the judges among themselves, disagree.

    Attributes:
        kind: ``people`` where the label is not the verdict, else ``judges``.
        panel: the winner of the verdict, or ``tie``.
        people: the label's winner, or ``tie``; null without a label.
    """

    kind: Literal["people", "judges"]
    item_id: str
    prompt: str
    panel: str
    people: str | None
    split: str | None
    unanimous: bool
    confidence: float
    opinions: tuple[Opinion, ...]


@dataclass(frozen=True)
class LongerChoices:
    """Items on which panel and people put different candidates first, and the longer response.

    Attributes:
        items: how many there are; a tie puts nobody first.
        longer: of these, where the panel's choice has more words than people's.
    """

    items: int
    longer: int


def longer_choices(run: RunData) -> LongerChoices:
    """Whether the panel chose the longer response where people chose another."""
    pairs = [
        (run.texts[verdict.item_id], verdict.winner, run.truth.get(verdict.item_id))
        for verdict in run.verdicts
    ]
    gaps = [
        len(texts[panel].split()) - len(texts[people].split())
        for texts, panel, people in pairs
        if panel != people and panel in texts and people in texts
    ]
    return LongerChoices(len(gaps), sum(gap > 0 for gap in gaps))


def telling_disagreements(run: RunData, most: int | None = None) -> list[TellingDisagreement]:
    """Items with a verdict that a label or some voting judges contradict, in the :data:`ORDER`.

    Args:
        run: the run.
        most: no more than so many; null for all.
    """
    candidates = (
        (*_rank(verdict, kind), row, kind)
        for row, verdict in enumerate(run.verdicts)
        if (kind := _kind(run, verdict)) is not None
    )
    firsts = sorted(candidates) if most is None else nsmallest(most, candidates)
    cases = [(run.items[row], run.verdicts[row], kind) for _, _, row, kind in firsts]
    names = {item.item_id for item, _, _ in cases}
    judgments: dict[str, dict[str, list[Judgment]]] = {name: {} for name in names}
    for judgment in of_items(run.judgments, names):
        if judgment.role == "voting":
            judgments[judgment.item_id].setdefault(judgment.judge, []).append(judgment)
    return [
        _disagreement(run, item, verdict, kind, judgments[item.item_id])
        for item, verdict, kind in cases
    ]


def _kind(run: RunData, verdict: Verdict) -> Literal["people", "judges"] | None:
    if verdict.ranking is None:
        return None
    label = run.truth.get(verdict.item_id)
    if label is not None and label != (verdict.winner or TIE):
        return "people"
    rankings = run.ballots.get(verdict.item_id)
    if rankings is None:
        return None
    tops = {top for p in run.rules.voting if (top := rankings.top(p.id)) is not None}
    return "judges" if len(tops) > 1 else None


def _rank(verdict: Verdict, kind: str) -> tuple[int, float]:
    confidence = verdict.confidence or 0.0
    if kind == "judges":
        return 2, confidence
    return (0 if verdict.unanimous else 1), -confidence


def _disagreement(
    run: RunData,
    item: Item,
    verdict: Verdict,
    kind: Literal["people", "judges"],
    judgments: Mapping[str, list[Judgment]],
) -> TellingDisagreement:
    return TellingDisagreement(
        kind=kind,
        item_id=item.item_id,
        prompt=item.turns[-1].content,
        panel=verdict.winner or TIE,
        people=run.truth.get(item.item_id),
        split=verdict.split,
        unanimous=verdict.unanimous,
        confidence=verdict.confidence or 0.0,
        opinions=_opinions(run, item, verdict, judgments),
    )


def _opinions(
    run: RunData, item: Item, verdict: Verdict, judgments: Mapping[str, list[Judgment]]
) -> tuple[Opinion, ...]:
    rankings = run.ballots.get(item.item_id)
    has_ranking = set() if rankings is None else set(rankings.ranks)
    firsts: dict[str, str | None] = {
        judge: (rankings.top(judge) or TIE) if rankings and judge in has_ranking else None
        for judge in judgments
    }
    choices = [run.truth.get(item.item_id), verdict.winner, *firsts.values()]
    return tuple(
        Opinion(judge, firsts[judge], _reason(run, presentations, firsts[judge], choices))
        for judge, presentations in judgments.items()
    )


def _reason(
    run: RunData, judgments: Sequence[Judgment], first: str | None, choices: Sequence[str | None]
) -> Reason | None:
    """A judge's most telling reason, over the presentations that it saw.

    Args:
        run: the run.
        judgments: of one judge and item.
        first: whom the judge puts first.
        choices: whom others put first, the most important ones first.
    """
    reasons = [
        Reason(labels[label], criterion, judgment.scores.get(label, {}).get(criterion), text)
        for judgment in judgments
        if unblind(judgment, labels := run.blinds.labels(judgment)) is not None
        for label, by_criterion in judgment.reasons.items()
        if label in labels
        for criterion, text in by_criterion.items()
        if text
    ]
    return min(
        reasons,
        key=lambda reason: (
            reason.candidate == first,
            choices.index(reason.candidate) if reason.candidate in choices else len(choices),
            reason.score or _NO_SCORE,
        ),
        default=None,
    )
