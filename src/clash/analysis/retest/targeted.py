"""Targeted reruns: which items are worth judging again, and what a further run says of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.stats.intervals import Interval, wilson
from clash.stats.retest.repeats import (
    Confirmation,
    Stability,
    confirm,
    low_confidence_first,
    match_table,
    select_targets,
    stability,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.retest.align import AlignedRuns
    from clash.stats.retest.repeats import MatchTable, Targets

STABLE = 31
"""How many of the least confident stable items are taken, as in the first paper."""

_SELECTION = (
    "these items were chosen because they were wrong before, and some of them are wrong only "
    "half of the time; a coin flip is therefore easy to reject, and the fair comparison is the "
    "rate that selection alone predicts"
)


@dataclass(frozen=True)
class Group:
    """The outcome of some selected items in a further run.

    Attributes:
        right: items whose new verdict is the label; without labels, that repeats the old one.
        n_changed: new verdicts that are not the old ones' (of unstable items: the first run's).
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_changed": "changed"}

    name: str
    n: int
    right: Interval
    n_changed: int
    items: tuple[str, ...]


@dataclass(frozen=True)
class TargetedRun:
    """A further run on selected items.

    Attributes:
        groups: stably incorrect, unstable, stable.
        confirmation: whether stably incorrect items are wrong again; null without labels or items.
        caveat: what selection does to the test.
        n_others: items it holds that the selection does not name.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"confirmation": "confirmed", "n_others": "others"}

    run: str
    groups: list[Group]
    confirmation: Confirmation | None
    caveat: str
    n_others: int


def classify(alignment: AlignedRuns, runs: Sequence[int]) -> Stability:
    """Stability of every item over ``runs``, by labels where all items have one."""
    labels = alignment.labels if alignment.has_label.all() else None
    return stability(alignment.verdicts[:, runs], labels)


def targets(
    alignment: AlignedRuns, n_stable: int = STABLE, rng: np.random.Generator | None = None
) -> Targets:
    """The items worth judging again, from the runs on all items; ``rng`` draws among equals."""
    return select_targets(
        classify(alignment, alignment.complete_runs),
        alignment.confidence[:, alignment.complete_runs],
        n_stable,
        rng,
    )


def ranking(alignment: AlignedRuns) -> NDArray[np.intp]:
    """Items by rising mean confidence over the runs on all items."""
    return low_confidence_first(alignment.confidence[:, alignment.complete_runs])


def targeted_run(alignment: AlignedRuns, run: int) -> TargetedRun:
    """What run number ``run`` says of items that the runs on all items had judged."""
    classes = classify(alignment, alignment.complete_runs).categories
    present = alignment.present[:, run]
    names = ("stably incorrect", "unstable", "stably correct", "stable")
    groups = [
        _group(alignment, run, name, np.flatnonzero(present & (classes == name))) for name in names
    ]
    wrong = np.flatnonzero(present & (classes == "stably incorrect"))
    return TargetedRun(
        alignment.names[run],
        [group for group in groups if group.n],
        _confirmation(alignment, run, wrong) if len(wrong) else None,
        _SELECTION,
        int(present.sum()) - sum(group.n for group in groups),
    )


def _group(alignment: AlignedRuns, run: int, name: str, rows: NDArray[np.intp]) -> Group:
    new, old = alignment.verdicts[rows, run], alignment.verdicts[rows, alignment.complete_runs[0]]
    aim = old if name == "stable" or not alignment.has_label.all() else alignment.labels[rows]
    return Group(
        name,
        len(rows),
        wilson(int(np.sum((new == aim) & (new >= 0))), len(rows)),
        int(np.sum(new != old)),
        tuple(alignment.items[row] for row in rows),
    )


def _confirmation(alignment: AlignedRuns, run: int, wrong: NDArray[np.intp]) -> Confirmation:
    again = int(np.sum(~alignment.right[wrong, run]))
    return confirm(again, len(wrong), base_table(alignment))


def base_table(alignment: AlignedRuns) -> MatchTable:
    """Matches of the first two runs on all items."""
    first, second = alignment.complete_runs[:2]
    return match_table(alignment.right[:, first], alignment.right[:, second])
