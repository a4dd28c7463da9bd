"""Answer only where the share of wrong answers is controlled: on average, or with confidence.

On average: split-conformal selection. Under the hypothesis that a new row's verdict is wrong, its confidence and those of the held-out wrong
verdicts are exchangeable, so that

    p = (1 + number of held-out wrong verdicts with at least that confidence) / (n + 1)

is a conservative p value; Benjamini and Hochberg's procedure on the p values of a batch controls the
expected share of wrong verdicts among those it selects. Source: Jin and Candes, Selection by Prediction
with Conformal p-values (2023).

With confidence: learn then test. The least confidence at which to answer is a hypothesis, tested by
the exact binomial test on the held-out verdicts above it, in a fixed sequence. Source: Angelopoulos,
Bates, Candes, Jordan and Lei, Learn then Test (2021).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats, Index


@dataclass(frozen=True, slots=True)
class ConformalControl:
    """The confidence of wrong verdicts on held-out rows, and the risk to stay below.

    Guarantee: of the answered rows of a batch, the expected share of wrong ones is at most
    ``max_risk`` (over the draw of held-out rows and batch; a batch without an answer counts as 0).
    It holds for any map, however bad, at any sample size, if the held-out rows and the batch are
    independent draws from one domain, and if the map was fitted and chosen on other rows. It is an
    average over batches, not a bound for each, and does not hold on another domain.

    Attributes:
        wrong: (w,), confidence of the map in its wrong verdicts on held-out rows.
        n: number of held-out rows, one of each source.
        max_risk: alpha, between 0 and 1.

    Raises:
        StatisticsError: a risk outside (0, 1), or wrong verdicts that are not finite or more than n.
    """

    wrong: Floats
    n: int
    max_risk: float

    def __post_init__(self) -> None:
        if not 0 < self.max_risk < 1:
            raise StatisticsError(f"a maximum risk must be between 0 and 1, not {self.max_risk}")
        if len(self.wrong) > self.n or not np.isfinite(self.wrong).all():
            raise StatisticsError(
                "wrong verdicts are some of the held-out ones, each with a number"
            )

    @property
    def fewest(self) -> int:
        """Fewest held-out rows with which anything can be answered: the least n with 1 / (n + 1) <= alpha."""
        return math.ceil(1 / self.max_risk - 1e-9) - 1

    def p_values(self, confidence: ArrayLike) -> Floats:
        """(m,), p values of the hypothesis that a row's verdict is wrong."""
        sure = np.asarray(confidence, dtype=float)
        above = len(self.wrong) - np.searchsorted(np.sort(self.wrong), sure, side="left")
        return np.asarray((1 + above) / (self.n + 1))

    def answers(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """(m,), which rows of a batch to answer, by Benjamini and Hochberg's procedure.

        Args:
            confidence: (m,), of the map in its verdict on each row.
        """
        p = self.p_values(confidence)
        ascending = np.sort(p)
        passing = ascending <= self.max_risk * np.arange(1, len(p) + 1) / max(len(p), 1)
        if not passing.any():
            return np.zeros(len(p), dtype=bool)
        return np.asarray(p <= ascending[int(np.flatnonzero(passing)[-1])])


STEP = 0.1
"""Share of rows by which the threshold is lowered at a time: a test that gains few rows mostly adds
a chance to fail."""


@dataclass(frozen=True, slots=True)
class BinomialControl:
    """The confidence and errors of held-out verdicts, and the risk to stay below with confidence.

    Guarantee: with probability ``level`` over the draw of the held-out rows, the share of wrong
    verdicts among all future rows that are answered is at most ``max_risk``. It holds for any map
    and sample size, under the assumptions of :class:`ConformalControl`; held-out rows are one of
    each source, so that they are independent.

    The thresholds, and their order, come from ``reference`` alone, which no held-out label has
    touched: the first is the one that most likely passes, if the share of wrong verdicts there is
    half way between what the map's confidence says and ``max_risk``; from there the threshold is
    lowered by a tenth of the rows at a time, each tested at 1 - ``level``, until a test fails
    (fixed-sequence testing, which needs no correction).

    Attributes:
        right: confidence in the held-out verdicts that are right.
        wrong: confidence in those that are wrong.
        reference: (m,), confidence on other rows of the same domain.
        weights: (m,), how often each occurs.
        max_risk: share of wrong verdicts, between 0 and 1.
        level: confidence, between 0 and 1.

    Raises:
        StatisticsError: a risk or a level outside (0, 1), or confidences that are not finite.
    """

    right: Floats
    wrong: Floats
    reference: Floats
    weights: Floats
    max_risk: float
    level: float = 0.9

    def __post_init__(self) -> None:
        for value, name in ((self.max_risk, "maximum risk"), (self.level, "confidence level")):
            if not 0 < value < 1:
                raise StatisticsError(f"a {name} must be between 0 and 1, not {value}")
        if not all(np.isfinite(x).all() for x in (self.right, self.wrong, self.reference)):
            raise StatisticsError("each held-out verdict has a number for its confidence")

    @property
    def n(self) -> int:
        """Held-out rows."""
        return len(self.right) + len(self.wrong)

    @property
    def fewest(self) -> int:
        """Fewest held-out rows with which anything can be answered: all right, (1 - r)^n <= 1 - level."""
        return math.ceil(math.log(1 - self.level) / math.log1p(-self.max_risk) - 1e-9)

    @property
    def threshold(self) -> float:
        """Least confidence at which to answer; infinite where nothing can be promised."""
        lowest = math.inf
        right, wrong = np.sort(self.right), np.sort(self.wrong)
        for threshold in self._sequence():
            n_wrong = len(wrong) - int(np.searchsorted(wrong, threshold, side="left"))
            n_right = len(right) - int(np.searchsorted(right, threshold, side="left"))
            if self._p_value(n_wrong, n_wrong + n_right) > 1 - self.level:
                break
            lowest = threshold
        return lowest

    def answers(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """(m,), which rows to answer; a row's answer does not depend on the other rows."""
        return np.asarray(np.asarray(confidence, dtype=float) >= self.threshold)

    def _p_value(self, n_wrong: int, n: int) -> float:
        """P(at most so many wrong of n) at the risk; 1 without a row."""
        from scipy.special import bdtr

        return float(bdtr(n_wrong, n, self.max_risk)) if n else 1.0

    def _sequence(self) -> list[float]:
        """Thresholds in the order of their tests; none where no number of errors would pass."""
        from scipy.special import bdtr

        if not self.weights.sum() > 0:
            return []
        values, at = np.unique(-self.reference, return_inverse=True)
        weight = np.bincount(at, self.weights, len(values))
        rows = np.cumsum(weight)
        share = rows / rows[-1]
        risk = np.cumsum(weight * (1 + values)) / np.maximum(rows, _TINY)
        # Half way to the risk that is allowed: the map may be surer than it should be.
        risk = np.clip((risk + self.max_risk) / 2, 0, 1)
        n = np.floor(self.n * share).astype(np.intp)
        most = _most_errors(self.n, self.max_risk, self.level)[n]
        power = np.where(most >= 0, bdtr(np.maximum(most, 0), n, risk), 0.0)
        if not power.any():
            return []
        first = int(np.argmax(power))
        chain, last_share = [first], share[first]
        for index in range(first + 1, len(values)):
            if share[index] >= last_share + STEP or index == len(values) - 1:
                chain.append(index)
                last_share = share[index]
        return [float(-values[index]) for index in chain]


_TINY = 1e-300


@cache
def _most_errors(n: int, max_risk: float, level: float) -> Index:
    """(n + 1,), most errors with which the test of 0 to n rows passes; -1 where none do."""
    from scipy.special import bdtr

    most, table = -1, np.full(n + 1, -1, dtype=np.intp)
    for rows in range(1, n + 1):
        # A row more allows at most one error more.
        if most + 1 <= rows and bdtr(most + 1, rows, max_risk) <= 1 - level:
            most += 1
        table[rows] = most
    return table
