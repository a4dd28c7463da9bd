"""Prediction-powered inference: many judged rows and few labelled ones make one interval.

Source: Angelopoulos, Duchi and Zrnic, PPI++ (2023), for a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, clustered, mean_clustered, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Powered:
    """A mean of labels, helped by the judges.

    Attributes:
        interval: of the mean label.
        labels_only: the interval of the labels alone.
        judges_only: mean of what the judges say, whose bias nothing corrects.
        power: how much of the judges' say is used, 0 to 1 (lambda); 0 is labels alone.
        bias: mean of judges minus labels on the labelled rows.
    """

    interval: Interval
    labels_only: Interval
    judges_only: float
    power: float
    bias: float


def powered_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    others: ArrayLike,
    groups: ArrayLike | None = None,
    other_groups: ArrayLike | None = None,
    level: float = 0.95,
) -> Powered:
    """The mean label of a population from which n rows are labelled and N more only judged.

    estimate = mean(label) - power (mean(judged | labelled) - mean(judged | unlabelled)), with
    the power that makes its variance least, estimated and kept in [0, 1]. However wrong the
    judges are the interval covers, if the labelled rows are a random sample of all rows and
    the judges' say was not fitted to these labels; good judges make it narrower. The variance
    is of cluster totals, and the quantile Student's with G - 2 degrees of freedom, G the
    labelled clusters. Asymptotic: below some twenty labelled clusters do not lean on it.

    Args:
        labels: (n,), any range.
        judged: (n,), what the judges say of the labelled rows, on the labels' scale.
        others: (N,), what they say of the rest; none gives labels alone.
        groups: (n,), codes of sources; None where rows are independent.
        other_groups: (N,), likewise; no source is on both sides.
        level: confidence level.

    Raises:
        StatisticsError: fewer than two labelled sources, NaN, or shapes that differ.
    """
    y, code, g = clustered(labels, groups)
    f = clustered(judged, groups)[0]
    rest, other_code, other_g = clustered(others, other_groups)
    if y.shape != f.shape:
        raise StatisticsError(f"{len(y)} labels but {len(f)} judged rows")
    if g < 2:
        raise StatisticsError("a mean needs labels of at least two sources")
    alone = mean_clustered(y, groups, level)
    if other_g < 2:
        return Powered(alone, alone, float(f.mean()), 0.0, float((f - y).mean()))
    shared = _covariance(y, f, code, g)
    spread = _covariance(f, f, code, g) + _covariance(rest, rest, other_code, other_g)
    power = float(np.clip(shared / spread, 0.0, 1.0)) if spread > 0 else 0.0
    estimate = float(y.mean() - power * (f.mean() - rest.mean()))
    variance = _covariance(y - power * f, y - power * f, code, g)
    variance += power**2 * _covariance(rest, rest, other_code, other_g)
    # The power was fitted to the same rows, which costs a degree of freedom.
    spent = (g - 1) / max(g - 2, 1)
    reach = t_quantile(level, max(g - 2, 1)) * math.sqrt(variance * spent)
    effective = float(y.var(ddof=1) / variance) if variance > 0 else float(len(y))
    found = Interval(
        estimate, estimate - reach, estimate + reach, level, len(y), effective, "PPI++, clustered"
    )
    everyone = float(np.concatenate([f, rest]).mean())
    return Powered(found, alone, everyone, power, float((f - y).mean()))


def _covariance(x: Floats, y: Floats, code: NDArray[np.intp], g: int) -> float:
    """Covariance of two means over the same rows, from cluster totals."""
    a = np.bincount(code, x - x.mean(), g)
    b = np.bincount(code, y - y.mean(), g)
    return float(g / (g - 1) * (a @ b)) / len(x) ** 2
