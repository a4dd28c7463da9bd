"""The pages of a run, and which judges still owe a judgment of each. Pages are made on demand.

A page is a function of the seed and of the responses that are there when its item is sealed, so
making it twice gives the same page, and few have to be kept.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.collect.blind import presentations
from clash.collect.judge import JudgmentSlot
from clash.records import Blinding, Criteria, Response
from clash.store.table import ItemRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from clash.collect.blind import Presentation
    from clash.collect.plan import Plan
    from clash.config import Judge
    from clash.records import Criterion, Item
    from clash.store.folder import RunFolder, RunWriter

    PageKey = tuple[str, int, str | None]
    ItemPages = tuple[Item, tuple[Presentation, ...]]

MOST_CHARACTERS = 2_000_000
"""Pages are kept up to so many characters of responses: with their prompts some 16 MB."""


class Pages:
    """The pages of the items of a run that have something to compare, in the order of the items.

    Args:
        plan: what the run does.
        folder: the responses that it has, and the pages that are sealed.
        least: number of items whose pages are kept however long they are: as many as judges are at,
            at one time. More are kept up to ``MOST_CHARACTERS``, for judges that lag.
    """

    def __init__(self, plan: Plan, folder: RunFolder, least: int = 1) -> None:
        self._plan = plan
        self._judges = [judge.id for judge in plan.judges]
        self._responses = ItemRows(folder.table(Response), plan.positions)
        self._sealed_pages = ItemRows(folder.table(Blinding), plan.positions)
        self._is_plain = bytearray(len(plan.items))
        self.of = RecentPages(self._of, least).of

    def __iter__(self) -> Iterator[tuple[Item, Presentation]]:
        for position in range(len(self._plan.items)):
            item, pages = self.of(position)
            for page in pages:
                yield item, page

    def _of(self, position: int) -> ItemPages:
        """The item at a position, and its pages."""
        plan, item = self._plan, self._plan.items[position]
        responses = self._shown_responses(position)
        if len(responses) < (1 if plan.config.judging.is_single else 2):
            return item, ()
        texts = {name: response.text or "" for name, response in responses.items()}
        pages = tuple(
            presentations(
                item.item_id,
                texts,
                self._judges,
                plan.config.blinding,
                plan.config.seed,
                names=plan.names,
                excluded_candidates=plan.excluded_candidates,
                turns={
                    name: response.turns for name, response in responses.items() if response.turns
                },
                judging=plan.config.judging,
                is_plain=bool(self._is_plain[position]),
            )
        )
        self._is_plain[position] = all(page.shows(texts) for page in pages)
        return item, pages

    def _shown_responses(self, position: int) -> dict[str, Response]:
        """The responses to an item by candidate; where a resumed run asked again, the last one.

        Of an item that is sealed, only the candidates on its pages: a later response is not judged.
        """
        sealed_pages = list(self._sealed_pages.of(position))
        on_pages = {name for page in sealed_pages for name in page.labels.values()}
        last = {response.candidate: response for response in self._responses.of(position)}
        return {
            name: response
            for name, response in last.items()
            if response.text is not None and (name in on_pages or not sealed_pages)
        }


class RecentPages:
    """The pages of the most recently used items: the same objects for as long as they are kept.

    Args:
        make: makes the pages of the item at a position.
        least: how many items' pages are kept, however long they are.
    """

    def __init__(self, make: Callable[[int], ItemPages], least: int) -> None:
        self._make, self._least = make, least
        self._by_position: OrderedDict[int, ItemPages] = OrderedDict()
        self._n_characters = 0

    def of(self, position: int) -> ItemPages:
        """The item at a position, and its pages."""
        pages = self._by_position.get(position)
        if pages is not None:
            self._by_position.move_to_end(position)
            return pages
        pages = self._by_position[position] = self._make(position)
        self._n_characters += _n_characters(pages)
        while len(self._by_position) > self._least and self._n_characters > MOST_CHARACTERS:
            _, oldest = self._by_position.popitem(last=False)
            self._n_characters -= _n_characters(oldest)
        return pages


def _n_characters(pages: ItemPages) -> int:
    return sum(len(text) for page in pages[1] for text in page.texts.values())


def seal_pages(plan: Plan, folder: RunWriter, pages: Pages) -> Iterator[Blinding]:
    """Record every page before a judge sees the first one.

    A resumed run makes the same ones again, and writes those that are missing.
    """
    sealed_pages = ItemRows(folder.table(Blinding), plan.positions)
    for item, page in pages:
        records = sealed_pages.of(plan.positions[item.item_id])
        if presentation_key(page.blinding) not in map(presentation_key, records):
            folder.append(page.blinding)
        yield page.blinding


def presentation_key(blinding: Blinding) -> PageKey:
    """The key of a page."""
    return blinding.item_id, blinding.presentation, blinding.judge


def rubrics_of(plan: Plan, folder: RunFolder) -> Callable[[str], tuple[Criterion, ...]]:
    """The criteria of an item, by its id."""
    criteria = ItemRows(folder.table(Criteria), plan.positions)

    def rubric(item_id: str) -> tuple[Criterion, ...]:
        *_, last = criteria.of(plan.positions[item_id])
        return tuple(last.criteria)

    return rubric


@dataclass(frozen=True)
class Duties:
    """The pages that a judge has yet to judge.

    Attributes:
        excluded_candidates: whose responses a judge is not shown, by judge.
        is_finished: whether the judgment of an item, presentation and judge stands.
    """

    excluded_candidates: Mapping[str, frozenset[str]]
    is_finished: Callable[[str, int, str], bool] = lambda *_: False

    def owes(self, judge: Judge, blinding: Blinding) -> bool:
        """Whether ``judge`` owes a judgment of a page."""
        hidden_candidates = self.excluded_candidates.get(judge.id, frozenset())
        return (
            blinding.judge in (None, judge.id)
            and not self.is_finished(blinding.item_id, blinding.presentation, judge.id)
            and hidden_candidates.isdisjoint(blinding.labels.values())
        )

    def slots(
        self, judge: Judge, pages: Iterable[tuple[Item, Presentation]]
    ) -> Iterator[JudgmentSlot]:
        """The judgments of these pages that ``judge`` owes."""
        for item, page in pages:
            if self.owes(judge, page.blinding):
                yield JudgmentSlot(judge, item, page)
