"""One item from prompt to verdict: what a person reads to follow, and to contradict, a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

from clash.analysis.leaderboard import borda_by_name
from clash.analysis.verdicts import JudgePoints, contributions
from clash.errors import InputError, nearest
from clash.store.stored import item_ids
from clash.store.table import ItemRows
from clash.votes.ballots import weighted_score
from clash.votes.blinding_index import unblind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import (
        AnsweredTurn,
        Blinding,
        CallSummary,
        Criteria,
        Groups,
        Item,
        Judgment,
        Verdict,
    )


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
    vote: str | int | None = None

    @property
    def json_omits(self) -> tuple[str, ...]:
        """A ranking has no vote."""
        return ("vote",) if self.vote is None else ()


@dataclass(frozen=True)
class ItemCall:
    """One attempt of one call that was made for an item.

    Attributes:
        actor: the judge or the candidate; ``criteria`` for the criteria.
        error: the class of the error; null where the call was answered.
        cost_usd: null is unknown, never free.
    """

    purpose: str
    actor: str
    model: str
    attempt: int
    error: str | None
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    latency_s: float | None

    @classmethod
    def of(cls, call: CallSummary) -> ItemCall:
        """From what is counted of a call."""
        return cls(
            purpose=call.purpose,
            actor=call.actor,
            model=call.served_model or call.model,
            attempt=call.attempt,
            error=(call.error_class or "error") if call.outcome == "error" else None,
            tokens_in=None if call.tokens is None else call.tokens.input,
            tokens_out=None if call.tokens is None else call.tokens.output,
            cost_usd=call.cost_usd,
            latency_s=call.latency_s,
        )


@dataclass(frozen=True)
class Walk:
    """Every step of one item.

    Attributes:
        contributions: what each judge adds to the scores of the verdict.
        calls: every attempt of every call for the item; empty where they were not read.
        turns: the turns of each response that is a conversation, by candidate.
        text_verdicts: on each text of the item, where texts are judged by themselves.
        text_labels: what people say of these texts, a label or a score, by candidate.
    """

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
    contributions: list[JudgePoints] = field(default_factory=list)
    calls: list[ItemCall] = field(default_factory=list)
    turns: Mapping[str, list[AnsweredTurn]] = field(default_factory=dict)
    text_verdicts: list[Verdict] = field(default_factory=list)
    text_labels: Mapping[str, str | float] = field(default_factory=dict)

    @property
    def json_omits(self) -> tuple[str, ...]:
        """An item whose responses are ranked has one verdict."""
        return () if self.text_verdicts else ("text_verdicts", "text_labels")


def walk(run: RunData, item_id: str, calls: Iterable[CallSummary] = ()) -> Walk:
    """Collect the steps of an item.

    Args:
        run: the run.
        item_id: the item.
        calls: the calls of the run, of which those for the item are kept.

    Raises:
        InputError: the run has no such item.
    """
    item = next((i for i in run.items if i.item_id == item_id), None)
    if item is None:
        ids = [i.item_id for i in run.items]
        match = nearest(item_id, ids)
        hint = f'did you mean "{match}"?' if match else f"such as {', '.join(ids[:5])}"
        raise InputError(f"no item {item_id!r} in {run.manifest.run}", field="--item", hint=hint)
    rankings = run.ballots.get(item_id)
    return replace(
        next(walks(run, [item])),
        contributions=[] if rankings is None else contributions(rankings, run.rules),
        calls=[ItemCall.of(call) for call in calls if call.item_id == item_id],
    )


def walks(run: RunData, items: Sequence[Item] | None = None) -> Iterator[Walk]:
    """The steps of each item (default: of all), in the order of the items."""
    selection = run.items if items is None else items
    rows = {item_id: row for row, item_id in enumerate(item_ids(selection))}
    pages, judgments = ItemRows(run.blinds.records, rows), ItemRows(run.judgments, rows)
    verdicts = ItemRows(run.verdicts, rows)
    for item in selection:
        name = item.item_id
        criteria, responses = run.criteria.get(name), run.responses_of(name)
        weights = {c.name: c.weight for c in criteria.criteria} if criteria else {}
        item_pages, item_verdicts = pages(name), verdicts(name)
        yield Walk(
            item=item,
            responses={r.candidate: r.text for r in responses if r.text is not None},
            missing={r.candidate: r.error or "no text" for r in responses if r.text is None},
            labels=_shown_labels(run, item_pages),
            scrubs=sorted({f"{s.candidate}: {s.text!r}" for b in item_pages for s in b.scrubbed}),
            criteria=criteria,
            judgments=[_judgment_step(run, judgment, weights) for judgment in judgments(name)],
            verdict=item_verdicts[-1],
            label=run.truth.get(name),
            turns={r.candidate: r.turns for r in responses if r.turns},
            text_verdicts=[] if run.text_votes is None else item_verdicts,
            text_labels={
                verdict.candidate: label
                for verdict in item_verdicts
                if verdict.candidate is not None
                and (label := run.text_label(name, verdict.candidate)) is not None
            },
        )


def _shown_labels(run: RunData, pages: Sequence[Blinding]) -> Mapping[str, str]:
    """The labels of the first page; of texts that are judged by themselves, one for each text."""
    if run.text_votes is None:
        return pages[0].labels if pages else {}
    return {
        f"text {n}": name
        for n, name in enumerate(
            dict.fromkeys(name for page in pages for name in page.labels.values()), start=1
        )
    }


def _judgment_step(run: RunData, judgment: Judgment, weights: Mapping[str, float]) -> JudgmentStep:
    labels = run.blinds.labels(judgment)
    return JudgmentStep(
        judge=judgment.judge,
        role=judgment.role,
        weight=judgment.weight,
        presentation=judgment.presentation,
        labels=labels,
        ranking=judgment.ranking,
        unblinded=unblind(judgment, labels),
        points=dict(sorted(borda_by_name(judgment.ranking or []).items())),
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
        vote=judgment.vote,
    )
