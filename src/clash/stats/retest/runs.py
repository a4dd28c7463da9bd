"""Runs against runs on the same items: agreement, matches, stability.

Verdict codes are integers >= 0 (side, candidate, or a code of its own for a tie), -1 where a run
reached no verdict. Runs are columns, items rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.agreement import Kappa, cohen_kappa, kappa_from_table
from clash.stats.hypothesis_tests import Significance, mcnemar
from clash.stats.intervals import Interval, wilson, wilson_clustered
from clash.stats.voting.majority import plurality

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes


Category = Literal["stable", "unstable", "stably correct", "stably incorrect"]


@dataclass(frozen=True, slots=True)
class InterRun:
    """Agreement of two runs.

    Attributes:
        agreement: share of items with the same verdict, among those where either run has one;
            a verdict in one run only is a difference.
        kappa: over the verdicts, where both runs have one.
        unjudged: items without a verdict in both runs, left out.
    """

    agreement: Interval
    kappa: Kappa
    unjudged: int


def inter_run(
    first: ArrayLike, second: ArrayLike, n_classes: int, clusters: ArrayLike | None = None
) -> InterRun:
    """Agreement of two runs on the same items.

    Args:
        first: (n,), verdict codes.
        second: (n,), of the other run.
        n_classes: codes are 0..n_classes - 1.
        clusters: (n,), items whose errors are shared.

    Raises:
        StatisticsError: shapes that differ or codes out of range.
    """
    kappa = cohen_kappa(first, second, n_classes, clusters=clusters)
    a, b = np.asarray(first), np.asarray(second)
    in_either = (a >= 0) | (b >= 0)
    groups = np.arange(len(a)) if clusters is None else np.asarray(clusters)
    agreements = (a == b)[in_either].astype(float)
    return InterRun(wilson_clustered(agreements, groups[in_either]), kappa, int(np.sum(~in_either)))


@dataclass(frozen=True, slots=True)
class MatchTable:
    """The 2 x 2 table of two runs against the label.

    Attributes:
        both: items where both runs met the label; ``first`` and ``second``: only that run.
        kappa: over match and miss, which is not the kappa over verdicts.
        change: whether one run is better (McNemar exact); ``corrected`` the chi-square form.
    """

    both: int
    first: int
    second: int
    neither: int
    kappa: Kappa
    change: Significance
    corrected: Significance

    @property
    def n(self) -> int:
        """All items."""
        return self.both + self.first + self.second + self.neither


def match_table(first: ArrayLike, second: ArrayLike) -> MatchTable:
    """Cross two runs' matches.

    Args:
        first: (n,), true where the first run met the label; no verdict is a miss.
        second: (n,), of the second run.

    Raises:
        StatisticsError: shapes that differ.
    """
    a, b = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if a.shape != b.shape:
        raise StatisticsError(f"runs of {a.shape} and {b.shape} items")
    n_both, neither = int(np.sum(a & b)), int(np.sum(~a & ~b))
    only_a, only_b = int(np.sum(a & ~b)), int(np.sum(~a & b))
    return MatchTable(
        n_both,
        only_a,
        only_b,
        neither,
        kappa_from_table([[n_both, only_a], [only_b, neither]]),
        mcnemar(only_a, only_b),
        mcnemar(only_a, only_b, exact=False),
    )


@dataclass(frozen=True, slots=True)
class Stability:
    """Stability of each item over R runs.

    Attributes:
        categories: (n,), ``stable`` or ``unstable``; with labels, stable items are ``stably
            correct`` or ``stably incorrect``. Unstable: the runs did not all say the same.
        incomplete: items where some run has no verdict. No verdict is an outcome like another
            and never correct.
        systematic: share of errors that repeat: stably incorrect among all that are not stably
            correct; NaN without labels or errors.
    """

    categories: NDArray[np.str_]
    incomplete: int
    systematic: Interval

    def count(self, category: Category) -> int:
        """Items in a category."""
        return int(np.sum(self.categories == category))

    def share(self, category: Category, clusters: ArrayLike | None = None) -> Interval:
        """Share of all items in a category, with its interval."""
        member = (self.categories == category).astype(float)
        return wilson_clustered(member, np.arange(len(member)) if clusters is None else clusters)


def stability(verdicts: ArrayLike, labels: ArrayLike | None = None) -> Stability:
    """Classify items by whether runs repeat themselves, and the label where there is one.

    Args:
        verdicts: (n, R), codes.
        labels: (n,), codes; every item has one.

    Raises:
        StatisticsError: fewer than two runs, or labels of another length or missing.
    """
    table = table_of_runs(verdicts)
    is_stable = np.all(table == table[:, :1], axis=1)
    incomplete = int(np.sum(np.any(table < 0, axis=1)))
    if labels is None:
        categories = np.where(is_stable, "stable", "unstable")
        return Stability(categories, incomplete, wilson(0, 0))
    truth = np.asarray(labels)
    if truth.shape != (len(table),) or np.any(truth < 0):
        raise StatisticsError("one label for each item: leave unlabelled items out")
    right = is_stable & (table[:, 0] == truth)
    wrong = is_stable & ~right
    categories = np.where(right, "stably correct", np.where(wrong, "stably incorrect", "unstable"))
    return Stability(categories, incomplete, wilson(int(wrong.sum()), int(np.sum(~right))))


def table_of_runs(verdicts: ArrayLike) -> Codes:
    """Codes of items by runs, (n, R).

    Raises:
        StatisticsError: fewer than two columns.
    """
    table = np.asarray(verdicts, dtype=np.intp)
    if table.ndim != 2 or table.shape[1] < 2:
        raise StatisticsError("expected items by runs, with two runs or more")
    return table


def majority_over_runs(verdicts: ArrayLike) -> Codes:
    """The verdict that most runs reached, (n,); -1 where tied or no run has one.

    Runs without a verdict, -1, do not count, so runs on a part of the items can be put beside
    whole ones.
    """
    table = np.asarray(verdicts, dtype=np.intp)
    n_classes = int(table.max(initial=0)) + 1
    return plurality(table, n_classes).winner
