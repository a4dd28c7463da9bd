"""The truth of an item, read from labels in one way for every command.

A label is a winner (a candidate, ``tie`` or ``both bad``) or a ranking; where it is both, the
ranking counts. The winner of a ranking is the sole candidate of its first group, and the outcome of
a pair is what the whole ranking says of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from clash.records import Groups, Item, Label

    Side = Literal["A", "B", "tie"]

S = TypeVar("S", bound=str)

TIE: Final = "tie"
BOTH_BAD: Final = "both bad"


@dataclass(frozen=True)
class ItemLabel:
    """What one person, or a gold standard, said of an item."""

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
    def _places(self) -> dict[str, int]:
        return places(self._groups)

    @cached_property
    def choice(self) -> str | None:
        """Who comes first: a candidate, ``tie``, or null where the label does not say."""
        if self._groups:
            first = self._groups[0]
            return first[0] if len(first) == 1 else TIE
        return TIE if self.winner == BOTH_BAD else self.winner

    def side(self, first: str, second: str) -> Side | None:
        """Which of two candidates is better; null where the label does not say.

        A winner is better than every other candidate. So is the first of a ranking, whether or not
        the ranking names the other one; of two candidates that it does not both name it says no
        more than that.
        """
        ranked = side(self._places, first, second)
        if ranked is not None:
            return ranked
        if self.choice == TIE:
            return None if self._groups else "tie"
        return "A" if self.choice == first else "B" if self.choice == second else None


@dataclass(frozen=True)
class Truth:
    """What most labels of an item say; a tie where two things are said equally often."""

    labels: tuple[ItemLabel, ...]

    @cached_property
    def winner(self) -> str | None:
        """A candidate, or ``tie``; null where no label says."""
        return commonest(label.choice for label in self.labels)

    def side(self, first: str, second: str) -> Side | None:
        """Which of two candidates is better; null where no label says."""
        return commonest(label.side(first, second) for label in self.labels)


def truths(items: Iterable[Item], labels: Iterable[Label]) -> dict[str, Truth]:
    """The truth of each item that has a label: people's decisions, else that of the prompts file."""
    given: dict[str, list[ItemLabel]] = defaultdict(list)
    for record in labels:
        label = ItemLabel.of(record)
        if label.choice is not None:
            given[record.item_id].append(label)
    in_file = {item.item_id: item.label for item in items if item.label is not None}
    own = {name: Truth((ItemLabel(label),)) for name, label in in_file.items()}
    return own | {name: Truth(tuple(stated)) for name, stated in given.items()}


def commonest(choices: Iterable[S | None]) -> S | Literal["tie"] | None:
    """What is said most often, ``tie`` where two things are; null where nothing is said."""
    ranked = Counter(choice for choice in choices if choice is not None).most_common(2)
    if not ranked:
        return None
    return TIE if len(ranked) == 2 and ranked[0][1] == ranked[1][1] else ranked[0][0]


def places(ranking: Groups) -> dict[str, int]:
    """The place of each candidate, 0 for the best; of a name that stands twice, its best place."""
    ranked: dict[str, int] = {}
    for place, group in enumerate(ranking):
        for name in group:
            ranked.setdefault(name, place)
    return ranked


def side(ranked: Mapping[str, int], first: str, second: str) -> Side | None:
    """Which of two candidates has the better place; null where one of them has none."""
    if first not in ranked or second not in ranked:
        return None
    gap = ranked[first] - ranked[second]
    return "tie" if gap == 0 else "A" if gap < 0 else "B"
