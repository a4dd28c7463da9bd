"""Collects the judgments of other tools into a run, whatever order they stand in."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from clash.datasets.foreign import ForeignRun, Published, no_criteria
from clash.records import Blinding, Criteria, Item, Judgment, Response, Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.records import Groups

ABSENT = "not among the imported files"


class Collector:
    """Takes in items and judgments one by one; of what stands twice the last counts."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._responses: dict[tuple[str, str], Response] = {}
        self._blinding: dict[tuple[str, int], Blinding] = {}
        self._judgments: dict[tuple[str, int, str], Judgment] = {}
        self._criteria: dict[str, Criteria] = {}
        self._published: dict[str, Published] = {}
        self._again = 0

    def item(self, item_id: str, prompt: str | None, **about: Any) -> None:  # noqa: ANN401 - of Item
        """An item; ``about`` is further fields of it."""
        self._items.setdefault(item_id, Item(item_id=item_id, prompt=prompt, **about))

    def response(self, item_id: str, candidate: str, text: str | None, **about: Any) -> None:  # noqa: ANN401 - of Response
        """A candidate's response; a null text needs an ``error`` that says why."""
        self._responses[item_id, candidate] = Response(
            **{
                "item_id": item_id,
                "candidate": candidate,
                "text": text,
                "source": "injected",
                "error": None if text is not None else ABSENT,
                **about,
            }
        )

    def criteria(self, criteria: Criteria) -> None:
        """What an item was judged by."""
        self._criteria[criteria.item_id] = criteria

    def published(self, published: Published) -> None:
        """The tool's own account of an item."""
        self._published[published.item_id] = published

    def judgment(
        self,
        item_id: str,
        shown: Sequence[str],
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
            shown: candidates in the order in which the judge saw them.
            judge: its name.
            winners: candidates in groups, best first; null where the judge failed.
            presentation: which showing of the item it was.
            error: why there is no ranking.
            role: whether it votes.
            flags: what is worth knowing of it.
        """
        labels = {f"A{place}": candidate for place, candidate in enumerate(shown)}
        key = (item_id, presentation)
        self._blinding[key] = Blinding(item_id=item_id, presentation=presentation, labels=labels)
        self._again += (*key, judge) in self._judgments
        self._judgments[(*key, judge)] = Judgment(
            item_id=item_id,
            presentation=presentation,
            judge=judge,
            role=role,
            weight=1,
            ranking=None if winners is None else _labelled(winners, labels),
            parse="failed" if winners is None else "clean",
            flags=list(flags),
            error=error if winners is None else None,
        )

    def build(self, name: str, source: str, *notes: str) -> ForeignRun:
        """The run."""
        if self._again:
            notes += (f"{self._again} judgments stood more than once; the last of each counts",)
        absent = Counter(r.error for r in self._responses.values() if r.text is None)
        notes += tuple(f"{count} responses: {why}" for why, count in absent.items())
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
            published=tuple(self._published.values()),
            notes=notes,
        )


def pair(shown: Sequence[str], winner: int | None) -> list[list[str]]:
    """The ranking of two responses: 0 the first wins, 1 the second, null a tie."""
    if winner is None:
        return [list(shown)]
    return [[shown[winner]], [shown[1 - winner]]]


def _labelled(winners: Sequence[Sequence[str]], labels: Mapping[str, str]) -> Groups:
    label_of = {candidate: label for label, candidate in labels.items()}
    return [[label_of[candidate] for candidate in group] for group in winners]
