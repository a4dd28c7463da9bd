"""Answering only where the share of wrong answers can be promised: split-conformal selection.

Source: Jin and Candes, Selection by Prediction with Conformal p-values (2023).
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
    """What held-out labels say of wrong verdicts, and the risk to keep.

    Promise: of the rows of a batch that are answered, the share that is wrong is at most
    ``max_risk`` in expectation (over the draw of held-out rows and batch; a batch without an
    answer counts as 0). It holds for any map, however bad, at any sample size, if the held-out
    rows and the rows of the batch are independent draws of one domain, and if the map was fitted
    and chosen on other rows. It is an average over batches, not a bound for each, and it is void
    on another domain.

    Attributes:
        wrong: (w,), confidence of the map in those of its verdicts on held-out rows that are
            wrong.
        n: held-out rows, one of each source.
        max_risk: alpha, between 0 and 1.
    """

    wrong: Floats
    n: int
    max_risk: float

    def __post_init__(self) -> None:
        if not 0 < self.max_risk < 1:
            raise StatisticsError(f"a risk to keep lies between 0 and 1, not {self.max_risk}")
        if len(self.wrong) > self.n or not np.isfinite(self.wrong).all():
            raise StatisticsError(
                "wrong verdicts are some of the held-out ones, each with a number"
            )

    @property
    def fewest(self) -> int:
        """Held-out rows below which nothing can be answered at this risk."""
        return math.ceil(1 / self.max_risk - 1e-9) - 1

    def p_values(self, confidence: ArrayLike) -> Floats:
        """(m,), of the hypothesis that a row's verdict is wrong.

        (1 + held-out rows that are wrong with at least that confidence) / (n + 1).
        """
        sure = np.asarray(confidence, dtype=float)
        above = len(self.wrong) - np.searchsorted(np.sort(self.wrong), sure, side="left")
        return np.asarray((1 + above) / (self.n + 1))

    def answers(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """(m,), which rows of a batch to answer: Benjamini and Hochberg on the p values.

        Args:
            confidence: (m,), of the map in its verdict on each row.
        """
        p = self.p_values(confidence)
        ascending = np.sort(p)
        passing = ascending <= self.max_risk * np.arange(1, len(p) + 1) / max(len(p), 1)
        if not passing.any():
            return np.zeros(len(p), dtype=bool)
        return np.asarray(p <= ascending[int(np.flatnonzero(passing)[-1])])
