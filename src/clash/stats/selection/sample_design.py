"""How rows came to be labelled, and what each labelled row therefore stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import encode_clusters

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from clash.stats.typing import Bools, Codes, Floats


@dataclass(frozen=True)
class SampleDesign:
    """Which rows depend on each other, and with what chance each was labelled.

    Attributes:
        clusters: (N,), codes of sources; None where rows are independent.
        chances: (N,), of each row to be labelled, in (0, 1]; None for equal ones.
        strata: (N,), codes; labels are then a random sample within each stratum, and chances the
            share of it that is labelled. None for one.
    """

    clusters: ArrayLike | None = None
    chances: ArrayLike | None = None
    strata: ArrayLike | None = None

    def sources(self, n: int) -> Codes:
        """(N,), codes of the sources of n rows."""
        return encode_clusters(np.zeros(n), self.clusters)[1]

    def stratum(self, n: int) -> Codes:
        """(N,), codes of the strata of n rows."""
        if self.strata is None:
            return np.zeros(n, np.intp)
        return encode_clusters(np.zeros(n), self.strata)[1]

    def weights(self, has_label: Bools) -> Floats:
        """(N,), one over the chance of each labelled row, summing to 1; 0 elsewhere.

        Raises:
            StatisticsError: a stratum without a label, or a labelled row without a chance.
        """
        stratum = self.stratum(len(has_label))
        rows = np.bincount(stratum)
        labelled_rows = np.bincount(stratum[has_label], minlength=len(rows))
        if np.any(labelled_rows == 0):
            raise StatisticsError("a stratum has no label")
        if self.chances is not None and self.strata is None:
            chance = np.asarray(self.chances, dtype=float)
            if chance.shape != has_label.shape or np.any(~(chance[has_label] > 0)):
                raise StatisticsError("every labelled row had a chance above 0 of being labelled")
        else:
            chance = (labelled_rows / rows)[stratum]
        weights = np.where(has_label, 1 / np.where(has_label, chance, 1.0), 0.0)
        return np.asarray(weights / weights.sum(), np.float64)


RANDOM_ROWS = SampleDesign()
"""Independent rows with equal chances."""
