"""Choose the items for a person to review, their order, and the side of each response."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from clash.analysis.rundata import RunData
    from clash.records import Criterion, Item, Verdict

UNSURE = 0.5
"""Verdicts up to this confidence need a person: with three judges, all that are not unanimous."""
SIDES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class ReviewTask:
    """An item to decide, with everything that a person may see before deciding.

    Attributes:
        candidates: authors of the responses, sorted; the page never holds these names.
        texts: their responses, in the same order.
    """

    item: Item
    candidates: tuple[str, ...]
    texts: tuple[str, ...]
    criteria: tuple[Criterion, ...]

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
    run: RunData,
    *,
    everything: bool = False,
    sample: int | None = None,
    rng: np.random.Generator | None = None,
) -> list[ReviewTask]:
    """The items to decide, those that need a person most first.

    Args:
        run: the run.
        everything: append all other items.
        sample: number of items drawn from all items, instead of those that need a person; this also
            shows how often the panel is right where it is sure.
        rng: draws the sample.

    Raises:
        InputError: no item has two responses to choose from.
    """
    tasks = {item.item_id: task for item in run.items if (task := _task(run, item))}
    if not tasks:
        raise InputError(f"{run.manifest.run}: no item has two responses to choose from")
    verdicts = sorted(
        (v for v in run.verdicts if v.item_id in tasks),
        key=lambda v: (not needs_person(v), _sure(v)),
    )
    selection = verdicts if everything else [v for v in verdicts if needs_person(v)]
    if sample is not None:
        assert rng is not None  # noqa: S101 - a sample is drawn by someone
        positions = set(rng.permutation(len(verdicts))[:sample].tolist())
        selection = [verdict for position, verdict in enumerate(verdicts) if position in positions]
    return [tasks[verdict.item_id] for verdict in selection]


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
    )
