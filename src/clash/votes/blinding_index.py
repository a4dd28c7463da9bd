"""Which candidate stands behind each label on the page that a judge saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.errors import RunFolderError
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clash.records import Blinding, Judgment, JudgmentFacts
    from clash.store.manifest import Manifest


class BlindingIndex:
    """Labels of each presentation, by item and judge.

    Attributes:
        records: the presentations.
    """

    def __init__(self, records: Sequence[Blinding] = ()) -> None:
        """Args: the presentations, which may stay on disk."""
        self.records = records
        self._pages: dict[tuple[int, str | None], dict[str, _Page]] = {}
        unique_pages: dict[object, _Page] = {}
        for record in records:
            choices = None if record.choices is None else tuple(record.choices)
            page = unique_pages.setdefault(
                (tuple(record.labels.items()), choices), _Page(record.labels, choices or ())
            )
            self._pages.setdefault((record.presentation, record.judge), {})[record.item_id] = page

    @classmethod
    def of(cls, records: Iterable[Blinding]) -> BlindingIndex:
        """An index of ``blinding.jsonl``."""
        return cls(records if isinstance(records, Sequence) else list(records))

    @property
    def presentations(self) -> int:
        """How many presentations an item has at most, 1 where none is on record."""
        return 1 + max((presentation for presentation, _ in self._pages), default=0)

    def _page(self, item_id: str, presentation: int, judge: str | None) -> _Page | None:
        pages = self._pages.get((presentation, judge))
        return None if pages is None else pages.get(item_id)

    def is_own(self, judgment: JudgmentFacts) -> bool:
        """Whether the judge of a judgment saw a shuffle of its own."""
        page = self._page(judgment.item_id, judgment.presentation, judgment.seat)
        return page is not None

    def labels(self, judgment: JudgmentFacts) -> Mapping[str, str]:
        """Candidates by label on the page of a judgment; empty if it failed before it had a page.

        Raises:
            RunFolderError: the judgment ranks a page that is not on record.
        """
        item_id, presentation = judgment.item_id, judgment.presentation
        page = self._page(item_id, presentation, judgment.seat)
        page = page or self._page(item_id, presentation, None)
        if page is None and judgment.is_usable:
            raise RunFolderError(
                f"{layout.BLINDING}: lacks the page of {judgment.item_id!r} that"
                f" {judgment.judge!r} judged\n  fix: `clash resume` on the run writes it again"
            )
        return {} if page is None else page.labels

    def choices(self, judgment: JudgmentFacts) -> Sequence[str]:
        """The labels in the order of the page of a judgment; empty where responses are ranked."""
        item_id, presentation = judgment.item_id, judgment.presentation
        own_page = self._page(item_id, presentation, judgment.seat)
        shared_page = self._page(item_id, presentation, None)
        return (own_page and own_page.choices) or (shared_page and shared_page.choices) or ()


@dataclass(frozen=True)
class _Page:
    """The candidate behind each label on a page, and the choices for a single text."""

    labels: Mapping[str, str]
    choices: Sequence[str]


def count_presentations(manifest: Manifest) -> int:
    """How often each judge was asked about an item: twice where it saw both orders."""
    return 2 if manifest.config.get("blinding", {}).get("both_orders") else 1


def unblind(judgment: Judgment, labels: Mapping[str, str]) -> list[list[str]] | None:
    """The ranking in names of candidates; null where the judgment failed."""
    if judgment.ranking is None:
        return None
    return [sorted(labels[label] for label in group) for group in judgment.ranking]
