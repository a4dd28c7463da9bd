"""Which items to judge again, and what it means when their errors repeat."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import Significance, binomial_tail
from clash.stats.intervals import Interval, wilson

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.retest.runs import MatchTable, Stability
    from clash.stats.typing import Codes


def low_confidence_first(confidence: ArrayLike) -> Codes:
    """Items by rising mean confidence over runs, (n,) indices; NaN means none, and comes first.

    Args:
        confidence: (n, R), or (n,).
    """
    table = np.atleast_2d(np.asarray(confidence, dtype=float).T).T
    present = ~np.isnan(table)
    total = np.where(present, table, 0.0).sum(axis=1)
    mean = np.divide(
        total, present.sum(axis=1), out=np.full(len(table), -1.0), where=present.any(axis=1)
    )
    return np.argsort(mean, kind="stable")


@dataclass(frozen=True, slots=True)
class Targets:
    """Items worth judging again, as sorted indices."""

    stably_incorrect: Codes
    unstable: Codes
    low_confidence: Codes

    @property
    def indices(self) -> Codes:
        """All of them, sorted."""
        return np.sort(np.concatenate([self.stably_incorrect, self.unstable, self.low_confidence]))


def select_targets(stability: Stability, confidence: ArrayLike, n_stable: int = 31) -> Targets:
    """All stably incorrect, all unstable, and the least confident of the other stable items.

    Items of equal confidence are taken in the order of the rows.

    Args:
        stability: of the runs so far.
        confidence: (n,) or (n, R), of the verdicts.
        n_stable: how many of the last kind, fewer where there are not as many.

    Raises:
        StatisticsError: confidence of another length.
    """
    order = low_confidence_first(confidence)
    if len(order) != len(stability.categories):
        raise StatisticsError(f"{len(order)} confidences for {len(stability.categories)} items")
    stable = np.isin(stability.categories, ["stably correct", "stable"])
    least = order[stable[order]][:n_stable]
    return Targets(
        np.flatnonzero(stability.categories == "stably incorrect"),
        np.flatnonzero(stability.categories == "unstable"),
        np.sort(least),
    )


@dataclass(frozen=True, slots=True)
class Confirmation:
    """How many of the selected errors were errors again.

    Attributes:
        rate: with Wilson's interval.
        coin: P(at least as many | every verdict is a coin flip). Selection does not bias it,
            but its hypothesis is easy to reject.
        expected: the rate that selection alone predicts: were each item wrong with a
            probability of its own, Beta distributed as the earlier runs say, those wrong in
            all of them would be wrong again this often. NaN where the runs cannot tell.
    """

    rate: Interval
    coin: Significance
    expected: float


def confirm(again: int, n: int, table: MatchTable) -> Confirmation:
    """Test a targeted run on the items that two earlier runs both got wrong.

    Args:
        again: how many of them are wrong again.
        n: how many were judged again.
        table: of the two earlier runs.

    Raises:
        StatisticsError: again outside 0..n.
    """
    return Confirmation(wilson(again, n), binomial_tail(again, n), _expected_again(table))


def _expected_again(table: MatchTable) -> float:
    """E[wrong³] / E[wrong²] of a Beta with the moments of two exchangeable runs.

    E[p] = m is the mean error rate, E[p²] = t the share wrong twice. For Beta(m s, (1 - m) s) the
    variance t - m² is m (1 - m) / (s + 1), which gives s, and E[p³] / E[p²] = (m s + 2) / (s + 2).
    """
    if table.n == 0:
        return math.nan
    mean = (table.neither + (table.first + table.second) / 2) / table.n
    twice = table.neither / table.n
    spread = twice - mean**2
    if mean in (0, 1) or spread <= 0:
        return math.nan
    size = mean * (1 - mean) / spread - 1
    return (mean * size + 2) / (size + 2)
