"""Answer only where the share of wrong answers is controlled: split-conformal selection.

Under the hypothesis that a new row's verdict is wrong, its confidence and those of the held-out wrong
verdicts are exchangeable, so that

    p = (1 + number of held-out wrong verdicts with at least that confidence) / (n + 1)

is a conservative p value; Benjamini and Hochberg's procedure on the p values of a batch controls the
expected share of wrong verdicts among those it selects. Source: Jin and Candes, Selection by Prediction
with Conformal p-values (2023).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


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
