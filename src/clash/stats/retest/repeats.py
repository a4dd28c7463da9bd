"""The same items judged again: runs against runs, both orders of a pair, repeats of one order.

It also says which items to judge once more, and what it means when their errors repeat.

Verdict codes are integers >= 0 (side, candidate, or a code of its own for a tie), -1 where a run
reached no verdict. Runs are columns, items rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.agreement import Kappa, cohen_kappa, kappa_from_table
from clash.stats.hypothesis_tests import Significance, binomial_tail, mcnemar, sign_test
from clash.stats.intervals import Interval, wilson, wilson_clustered
from clash.stats.voting.majority import plurality

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats


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


def low_confidence_first(confidence: ArrayLike) -> Codes:
    """Items by rising mean confidence over runs, (n,) indices; NaN means none, and comes first.

    Args:
        confidence: (n, R), or (n,).
    """
    return np.argsort(_mean_confidence(confidence), kind="stable")


def _mean_confidence(confidence: ArrayLike) -> Floats:
    """(n,), over runs, rounded: equal ones are equal; -1 where no run has one."""
    table = np.atleast_2d(np.asarray(confidence, dtype=float).T).T
    present = ~np.isnan(table)
    total = np.where(present, table, 0.0).sum(axis=1)
    mean = np.divide(
        total, present.sum(axis=1), out=np.full(len(table), -1.0), where=present.any(axis=1)
    )
    to_nine_digits: Floats = np.round(mean, 9)
    return to_nine_digits


@dataclass(frozen=True, slots=True)
class Targets:
    """Items worth judging again, as sorted indices.

    Attributes:
        n_level: stable items as confident as the last one taken.
        n_level_taken: how many of these were taken: a part of them means that lots, or the order
            of the rows, decided.
    """

    stably_incorrect: Codes
    unstable: Codes
    low_confidence: Codes
    n_level: int
    n_level_taken: int

    @property
    def indices(self) -> Codes:
        """All of them, sorted."""
        return np.sort(np.concatenate([self.stably_incorrect, self.unstable, self.low_confidence]))


def select_targets(
    stability: Stability,
    confidence: ArrayLike,
    n_stable: int = 31,
    rng: np.random.Generator | None = None,
) -> Targets:
    """All stably incorrect, all unstable, and the least confident of the other stable items.

    Among items of equal confidence lots are drawn, so that no part of the file is preferred.

    Args:
        stability: of the runs so far.
        confidence: (n,) or (n, R), of the verdicts.
        n_stable: how many of the last kind, fewer where there are not as many.
        rng: of the lots; without it, items of equal confidence are taken in the order of the rows.

    Raises:
        StatisticsError: confidence of another length.
    """
    mean = _mean_confidence(confidence)
    if len(mean) != len(stability.categories):
        raise StatisticsError(f"{len(mean)} confidences for {len(stability.categories)} items")
    lots = np.arange(len(mean)) if rng is None else rng.permutation(len(mean))
    order = np.lexsort((lots, mean))
    stable = np.isin(stability.categories, ["stably correct", "stable"])
    least = order[stable[order]][:n_stable]
    is_level = stable & (mean == mean[least[-1]]) if len(least) else np.zeros(len(mean), bool)
    return Targets(
        np.flatnonzero(stability.categories == "stably incorrect"),
        np.flatnonzero(stability.categories == "unstable"),
        np.sort(least),
        int(is_level.sum()),
        int(is_level[least].sum()),
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
    original: ArrayLike, other_order: ArrayLike, clusters: ArrayLike | None = None
) -> FlipRate:
    """Compare verdicts in both orders.

    Args:
        original: (n,), 1 for the response shown first in the original order, 0 for the other,
            0.5 a tie, NaN missing.
        other_order: (n,), said of the swapped order, still 1 for the same response.
        clusters: (n,), items whose errors are shared.

    Raises:
        StatisticsError: shapes that differ.
    """
    a, b = np.asarray(original, dtype=float), np.asarray(other_order, dtype=float)
    if a.shape != b.shape:
        raise StatisticsError(f"orders of {a.shape} and {b.shape} items")
    decisive = np.isin(a, [0, 1]) & np.isin(b, [0, 1])
    groups = np.arange(len(a)) if clusters is None else np.asarray(clusters)
    flips = (a != b)[decisive].astype(float)
    first, second = int(np.sum((a == 1) & (b == 0))), int(np.sum((a == 0) & (b == 1)))
    n_softened = int(np.sum((a == 0.5) & np.isin(b, [0, 1]))) + int(
        np.sum((b == 0.5) & np.isin(a, [0, 1]))
    )
    return FlipRate(
        wilson_clustered(flips, groups[decisive]),
        first,
        second,
        n_softened,
        sign_test(first, second),
    )


def self_consistency(repeats: ArrayLike, clusters: ArrayLike | None = None) -> Interval:
    """How often two of a judge's answers to one item are the same, each item counting once.

    Args:
        repeats: (n, R), vote codes, -1 for missing; items with fewer than two are left out.
        clusters: (n,), items whose errors are shared.

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
    return wilson_clustered(share, groups[comparable])
