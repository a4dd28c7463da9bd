"""Choose the items for a person to review, their order, and the side of each response."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from clash.analysis.label_sample import draw_order
from clash.errors import InputError
from clash.votes.from_run import require_rankings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import AnsweredTurn, Criterion, Item, LabelDraw, Verdict

    Order = Literal["drawn", "unsure", "all"]

UNSURE = 0.5
"""Verdicts up to this confidence need a person: with three judges, all that are not unanimous."""
SEED = 42
"""Of the draw, unless another is given: several people then decide the same items first."""
SIDES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class ReviewTask:
    """An item to decide, with everything that a person may see before deciding.

    Attributes:
        candidates: authors of the responses, sorted; the page never holds these names.
        texts: their responses, in the same order.
        turns: the turns of each response that is a conversation, by candidate.
        draw: how the item was drawn; null where it was not.
    """

    item: Item
    candidates: tuple[str, ...]
    texts: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    draw: LabelDraw | None = None
    turns: Mapping[str, Sequence[AnsweredTurn]] = field(default_factory=dict)

    def sides(self, key: str) -> dict[str, str]:
        """The candidate on each side, as ``{"A": candidate}``; the order depends on ``key`` alone.

        A hash of key, item and candidate sorts them, so that a page without names and the run
        together identify the candidate, without anything stored in between.
        """

        def sort_key(candidate: str) -> bytes:
            return hashlib.sha256(f"{key}\0{self.item.item_id}\0{candidate}".encode()).digest()

        return dict(zip(SIDES, sorted(self.candidates, key=sort_key), strict=False))

    def text(self, candidate: str) -> str:
        """The response of a candidate."""
        return self.texts[self.candidates.index(candidate)]


def needs_person(verdict: Verdict) -> bool:
    """Whether the panel was split or unsure, or has no verdict."""
    if verdict.ranking is None or verdict.winner is None or not verdict.unanimous:
        return True
    return verdict.confidence is not None and verdict.confidence <= UNSURE


def review_tasks(
    run: RunData, order: Order = "drawn", *, seed: int = SEED, sample: int | None = None
) -> list[ReviewTask]:
    """The items to decide, in their order.

    Args:
        run: the run.
        order: ``drawn``: at random, likelier where the panel is unsure, with chances that the labels
            keep; ``unsure``: those that need a person, the most doubtful first; ``all``: these, then
            all others.
        seed: of the draw.
        sample: only so many, drawn with equal chances from all items; of ``drawn`` only.

    Raises:
        InputError: no item has two responses to choose from, or the run judges single texts.
    """
    require_rankings(run.manifest, "clash review")
    tasks = {item.item_id: task for item in run.items if (task := _task(run, item))}
    if not tasks:
        raise InputError(f"{run.manifest.run}: no item has two responses to choose from")
    verdicts = [verdict for verdict in run.verdicts if verdict.item_id in tasks]
    if order == "drawn":
        draws = draw_order(verdicts, seed, equal=sample is not None)[:sample]
        return [replace(tasks[item_id], draw=draw) for item_id, draw in draws]
    verdicts.sort(key=lambda v: (not needs_person(v), _sure(v)))
    return [tasks[v.item_id] for v in verdicts if order == "all" or needs_person(v)]


def named_tasks(run: RunData, names: Sequence[str]) -> list[ReviewTask]:
    """The items of a list, in its order; a pair of candidates of an item stands for the item.

    Raises:
        InputError: a name that is no item of the run with two responses.
    """
    tasks = {task.item.item_id: task for task in review_tasks(run, "all")}
    selection = []
    for name in names:
        item = name if name in tasks else name.rpartition("#")[0]
        if item not in tasks:
            hint = "list ids of this run, one a line"
            raise InputError(f"{name!r} is no item with two responses", field="--items", hint=hint)
        selection.append(tasks[item])
    return list({task.item.item_id: task for task in selection}.values())


def _sure(verdict: Verdict) -> float:
    return -1.0 if verdict.confidence is None else verdict.confidence


def _task(run: RunData, item: Item) -> ReviewTask | None:
    texts = run.texts[item.item_id]
    if not 2 <= len(texts) <= len(SIDES):
        return None
    criteria = run.criteria.get(item.item_id)
    names = tuple(sorted(texts))
    return ReviewTask(
        item,
        names,
        tuple(texts[name] for name in names),
        tuple(criteria.criteria) if criteria else (),
        turns=run.turns[item.item_id],
    )
