"""Votes as a matrix, with ids as indices."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from clash.errors import InputError
from clash.files.inputs import matches_any
from clash.wording import part, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.stats.typing import Floats


VoteKind = Literal["binary", "ternary", "numeric"]
COLUMNS = ("item", "judge", "vote", "label", "family", "subset", "group", "presentation", "repeat")
"""The keys of a votes file that clash reads."""

SIDES = {"A": 1.0, "B": 0.0, "tie": 0.5}
"""How outcomes in words are coded."""


def matches_globs(name: str | None, globs: Sequence[str] | None) -> bool:
    """Whether a filter keeps a name: it equals or matches one of the patterns; null keeps all."""
    if globs is None:
        return True
    return name is not None and matches_any(name, globs)


def pair_item(item: str, first: str, second: str, n_candidates: int) -> str:
    """The item id under which votes on a pair of an item's candidates stand.

    An item of two candidates keeps its own id; of more, each pair has one (``q1#a|b``).
    """
    return item if n_candidates == 2 else f"{item}#{first}|{second}"


@dataclass(frozen=True, slots=True)
class VoteRow:
    """A line of a votes file.

    Attributes:
        vote: 1/0, "A"/"B"/"tie" or a score; None where the judge failed.
        extra: further keys, written as they are.
    """

    item: str
    judge: str
    vote: float | str | None
    label: float | str | None = None
    family: str | None = None
    subset: str | None = None
    group: str | None = None
    presentation: str | None = None
    repeat: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LabelUse:
    """The labels that votes came with, and whether they are used.

    Attributes:
        rows: rows of votes.
        labelled: rows that have a label, used or not.
        used: whether the labels that are there are used.
        noun: what a row is.
        n_unknown_items: labelled items that the run does not have; their labels are not used.
    """

    json_omits: ClassVar[tuple[str, ...]] = ("noun", "n_unknown_items")

    rows: int
    labelled: int
    used: bool
    noun: str = "row"
    n_unknown_items: int = 0

    @property
    def sentence(self) -> str:
        """What happens to the labels, for a screen."""
        if not self.labelled:
            return f"no {self.noun} has a label{self._unknown_items}"
        have = f"{part(self.labelled, self.rows, self.noun)} a label"
        if self.used:
            use = "the labels are used (--no-labels leaves them out)"
        else:
            use = "--no-labels leaves the labels out"
        return f"{have}; {use}{self._unknown_items}"

    @property
    def _unknown_items(self) -> str:
        if not self.n_unknown_items:
            return ""
        return f"; labels of {plural(self.n_unknown_items, self.noun)} that the run does not have are left out"


@dataclass(frozen=True)
class Votes:
    """N rows by J judges.

    A row is an item in one presentation and repeat, so that an item whose order was swapped, or
    that was judged several times, has several rows; ``groups`` says which rows hang together.

    Attributes:
        items: item id of each row (N).
        judges: judge ids (J), sorted.
        families: vendor of each judge (J), None where unknown.
        matrix: (N, J) float64, NaN for missing. Binary: 1 is side A (or yes), 0 side B.
            Ternary: also 0.5, a tie. Numeric: the score.
        kind: what the votes are.
        labels: (N,), coded like the votes; NaN where there is none.
        label_kind: what the labels are; None without any.
        groups: (N,) codes 0..G-1 of what errors may be shared in: ``group`` where the file has
            it, else the item. Clusters of every interval.
        subsets: subset of each row (N), None where unknown.
        presentations: presentation of each row (N), None where unknown.
        repeats: repeat of each row (N), None where unknown.
        failed: (J,), votes that were recorded as null.
        source: where they were read from.
        group_names: (G,), the ``group`` or item that each code of ``groups`` stands for.
        n_unused_labels: rows whose label was left out on request; ``labels`` is then all NaN.
    """

    items: tuple[str, ...]
    judges: tuple[str, ...]
    families: tuple[str | None, ...]
    matrix: Floats
    kind: VoteKind
    labels: Floats
    label_kind: VoteKind | None
    groups: NDArray[np.intp]
    subsets: tuple[str | None, ...]
    presentations: tuple[str | None, ...]
    repeats: tuple[str | None, ...]
    failed: NDArray[np.intp]
    source: str = ""
    group_names: tuple[str, ...] = ()
    n_unused_labels: int = 0

    def without_labels(self) -> Votes:
        """The same votes, their labels left out."""
        n_labels = int(self.labelled.sum()) + self.n_unused_labels
        labels = np.full(self.n_rows, np.nan)
        return replace(self, labels=labels, label_kind=None, n_unused_labels=n_labels)

    @property
    def label_use(self) -> LabelUse:
        """How many rows have a label, and whether the labels are used."""
        labels_are_used = not self.n_unused_labels
        n_labels = int(self.labelled.sum()) if labels_are_used else self.n_unused_labels
        return LabelUse(self.n_rows, n_labels, labels_are_used)

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.items)

    @property
    def n_items(self) -> int:
        """Distinct items; smaller than N where items were swapped or repeated."""
        return len(set(self.items))

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """(N,), whether the row has a label."""
        return ~np.isnan(self.labels)

    @property
    def classes(self) -> tuple[float, ...]:
        """The categories, (0, 1) or (0, 0.5, 1); empty for scores."""
        if self.kind == "numeric":
            return ()
        tied = "ternary" in (self.kind, self.label_kind)
        return (0.0, 0.5, 1.0) if tied else (0.0, 1.0)

    def codes(self) -> NDArray[np.int8]:
        """(N, J), votes as indices into ``classes``, -1 for missing.

        Raises:
            InputError: the votes are scores.
        """
        if self.kind == "numeric":
            raise InputError(
                "these votes are scores, which have no classes",
                path=self.source or None,
                field="vote",
                hint='write votes as "A", "B", "tie" or 1, 0',
            )
        scale = 2 if len(self.classes) == 3 else 1
        missing = np.isnan(self.matrix)
        return np.where(missing, -1, np.where(missing, 0, self.matrix) * scale).astype(np.int8)

    def label_codes(self) -> NDArray[np.int8]:
        """(N,), labels as indices into ``classes``, -1 where there is none."""
        scale = 2 if len(self.classes) == 3 else 1
        missing = np.isnan(self.labels)
        return np.where(missing, -1, np.where(missing, 0, self.labels) * scale).astype(np.int8)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Votes:
        """The given rows, groups numbered anew."""
        index = np.arange(self.n_rows)[rows]
        codes, groups = np.unique(self.groups[index], return_inverse=True)
        return replace(
            self,
            items=tuple(self.items[i] for i in index),
            matrix=self.matrix[index],
            labels=self.labels[index],
            groups=groups.astype(np.intp),
            subsets=tuple(self.subsets[i] for i in index),
            presentations=tuple(self.presentations[i] for i in index),
            repeats=tuple(self.repeats[i] for i in index),
            n_unused_labels=min(self.n_unused_labels, len(index)),
            group_names=tuple(self.group_names[code] for code in codes if self.group_names),
        )

    def by_item(self) -> Votes:
        """The same votes, each item a source of its own, whatever its ``group``."""
        names, first, groups = np.unique(self.items, return_index=True, return_inverse=True)
        order = np.argsort(first)  # codes in the order of the file, as a reader gives them
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return replace(
            self, groups=rank[groups].astype(np.intp), group_names=tuple(names[order].tolist())
        )
