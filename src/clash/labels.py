"""The truth of an item, read from labels in the same way for every command.

A label is a winner (a candidate, ``tie`` or ``both bad``) or a ranking; where it has both, the
ranking counts. The winner of a ranking is the sole candidate of its first group; the outcome of a
pair follows from the whole ranking.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clash.records import Groups, Label

    Side = Literal["A", "B", "tie"]

S = TypeVar("S", bound=str)

TIE: Final = "tie"
BOTH_BAD: Final = "both bad"


@dataclass(frozen=True)
class ItemLabel:
    """The label that one person, or a gold standard, gives an item."""

    winner: str | None
    ranking: Groups | None = None

    @classmethod
    def of(cls, label: Label) -> ItemLabel:
        """The label of a line of ``labels.jsonl``."""
        return cls(label.winner, label.ranking)

    @cached_property
    def _groups(self) -> Groups:
        return [group for group in self.ranking or [] if group]

    @cached_property
    def _ranks(self) -> dict[str, int]:
        return ranks_of(self._groups)

    @cached_property
    def choice(self) -> str | None:
        """The first choice: a candidate or ``tie``; null where the label does not state one."""
        if self._groups:
            first = self._groups[0]
            return first[0] if len(first) == 1 else TIE
        return TIE if self.winner == BOTH_BAD else self.winner

    def side(self, first: str, second: str) -> Side | None:
        """Which of two candidates is better; null where the label does not tell.

        A winner is better than every other candidate, and so is the first of a ranking, whether or
        not the ranking names the other candidate. Apart from that, a ranking orders only
        candidates that it names.
        """
        outcome = side(self._ranks, first, second)
        if outcome is not None:
            return outcome
        if self.choice == TIE:
            return None if self._groups else "tie"
        return "A" if self.choice == first else "B" if self.choice == second else None


@dataclass(frozen=True)
class Truth:
    """The majority of an item's labels; a tie where two choices are equally frequent."""

    labels: tuple[ItemLabel, ...]

    @cached_property
    def winner(self) -> str | None:
        """A candidate or ``tie``; null where no label states one."""
        return commonest(label.choice for label in self.labels)

    def side(self, first: str, second: str) -> Side | None:
        """Which of two candidates is better; null where no label tells."""
        return commonest(label.side(first, second) for label in self.labels)


class LabelledItem(Protocol):
    """An item of a prompts file, as far as its label goes."""

    @property
    def item_id(self) -> str:
        """Its id."""

    @property
    def label(self) -> str | None:
        """The candidate that wins it, or ``tie``; null without a label."""


def truths(items: Iterable[LabelledItem], labels: Iterable[Label]) -> dict[str, Truth]:
    """The truth of each labelled item: people's decisions, else the label in the prompts file."""
    labels_by_item: dict[str, list[ItemLabel]] = defaultdict(list)
    for record in labels:
        label = ItemLabel.of(record)
        if label.choice is not None:
            labels_by_item[record.item_id].append(label)
    in_file = {item.item_id: item.label for item in items if item.label is not None}
    file_truths = {name: Truth((ItemLabel(label),)) for name, label in in_file.items()}
    return file_truths | {
        name: Truth(tuple(item_labels)) for name, item_labels in labels_by_item.items()
    }


def commonest(choices: Iterable[S | None]) -> S | Literal["tie"] | None:
    """The most frequent choice, ``tie`` where two are equally frequent; null without any."""
    counts = Counter(choice for choice in choices if choice is not None).most_common(2)
    if not counts:
        return None
    return TIE if len(counts) == 2 and counts[0][1] == counts[1][1] else counts[0][0]


def ranks_of(ranking: Groups) -> dict[str, int]:
    """The rank of each candidate, 0 for the best; a name that appears twice keeps its best rank."""
    ranks: dict[str, int] = {}
    for rank, group in enumerate(ranking):
        for name in group:
            ranks.setdefault(name, rank)
    return ranks


def outcome_code(outcome: str | None, candidates: Sequence[str]) -> int:
    """A winner as its place among K candidates, K for ``tie``, -1 for no outcome."""
    if outcome is None:
        return -1
    return len(candidates) if outcome == TIE else candidates.index(outcome)


def side(ranks: Mapping[str, int], first: str, second: str) -> Side | None:
    """Which of two candidates has the better rank; null where one of them has none."""
    if first not in ranks or second not in ranks:
        return None
    gap = ranks[first] - ranks[second]
    return "tie" if gap == 0 else "A" if gap < 0 else "B"
