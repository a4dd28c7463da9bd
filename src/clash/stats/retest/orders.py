"""One judge against itself: both orders, and repeats of one order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import Significance, sign_test
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.retest.runs import table_of_runs

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(frozen=True, slots=True)
class FlipRate:
    """A judge's verdicts in both orders of the responses.

    Attributes:
        rate: share of items with the other winner, among those decided in both orders.
        to_first: flips where the judge took the first response both times.
        to_second: likewise the second.
        softened: items decided in one order and tied in the other.
        lean: whether flips favour one slot (sign test).
    """

    rate: Interval
    to_first: int
    to_second: int
    softened: int
    lean: Significance


def flip_rate(
    original: ArrayLike, swapped: ArrayLike, clusters: ArrayLike | None = None
) -> FlipRate:
    """Compare verdicts in both orders.

    Args:
        original: (n,), 1 for the response shown first in the original order, 0 for the other,
            0.5 a tie, NaN missing.
        swapped: (n,), said of the swapped order, still 1 for the same response.
        clusters: (n,), items whose errors are shared.

    Raises:
        StatisticsError: shapes that differ.
    """
    a, b = np.asarray(original, dtype=float), np.asarray(swapped, dtype=float)
    if a.shape != b.shape:
        raise StatisticsError(f"orders of {a.shape} and {b.shape} items")
    decisive = np.isin(a, [0, 1]) & np.isin(b, [0, 1])
    groups = np.arange(len(a)) if clusters is None else np.asarray(clusters)
    flips = (a != b)[decisive].astype(float)
    first, second = int(np.sum((a == 1) & (b == 0))), int(np.sum((a == 0) & (b == 1)))
    softened = int(np.sum((a == 0.5) & np.isin(b, [0, 1]))) + int(
        np.sum((b == 0.5) & np.isin(a, [0, 1]))
    )
    return FlipRate(
        wilson_clustered(flips, groups[decisive]), first, second, softened, sign_test(first, second)
    )


def self_consistency(
    repeats: ArrayLike, clusters: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """How often two of a judge's answers to one item are the same, each item counting once.

    Args:
        repeats: (n, R), vote codes, -1 for missing; items with fewer than two are left out.
        clusters: (n,), items whose errors are shared.
        level: confidence level.

    Raises:
        StatisticsError: fewer than two columns.
    """
    table = table_of_runs(repeats)
    present = table >= 0
    m = present.sum(axis=1)
    agreements = np.zeros(len(table))
    for code in np.unique(table[present]):
        k = np.sum(table == code, axis=1)
        agreements += k * (k - 1)
    comparable = m >= 2
    share = agreements[comparable] / (m * (m - 1))[comparable]
    groups = np.arange(len(table)) if clusters is None else np.asarray(clusters)
    return wilson_clustered(share, groups[comparable], level)
