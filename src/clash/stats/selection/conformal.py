"""Answering only where the error can be kept at a promised level: conformal risk control.

Source: Angelopoulos, Bates, Fisch, Lei and Schuster, Conformal Risk Control (2024); the
construction for selective error with a nested rule is the one stated at :func:`control`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RiskControl:
    """When to answer.

    Attributes:
        threshold: answer where the confidence is at least this; infinity: never.
        max_risk: the promise.
        coverage: share of the calibration rows that are answered.
        risk: share of all calibration rows that are answered wrongly.
        selective_risk: of those answered, the share that is wrong; NaN where none is.
        n: calibration rows (sources, where rows come in groups).
    """

    threshold: float
    max_risk: float
    coverage: float
    risk: float
    selective_risk: float
    n: int

    def answers(self, confidence: ArrayLike) -> NDArray[np.bool_]:
        """Where to answer."""
        return np.asarray(confidence, dtype=float) >= self.threshold


def control(
    confidence: ArrayLike, wrong: ArrayLike, max_risk: float, groups: ArrayLike | None = None
) -> RiskControl:
    """The lowest threshold whose error rate is at most ``max_risk`` in expectation.

    A row's loss at threshold t is 1 if its confidence is at least t and its verdict is wrong:
    it falls as t rises, so conformal risk control applies. With n calibration rows the
    threshold is the lowest at which (sum of losses + 1) / (n + 1) <= max_risk.

    Guarantee: P(a new row is answered and wrong) <= max_risk, over the draw of the calibration
    rows and the new one, if these are exchangeable, and if the map that gives the confidence
    was fitted on other rows. It is a statement on average over calibration samples, about all
    rows and not about the answered ones alone, and it breaks under a shift of the domain. Where
    rows come in groups (copies of one source) the loss of a group is its mean, and groups are
    what must be exchangeable.

    Args:
        confidence: (n,), of the verdict.
        wrong: (n,), in [0, 1], what the verdict loses against the label (a tie may be half).
        max_risk: between 0 and 1.
        groups: (n,), codes of sources; None where rows are independent.

    Returns:
        A threshold of infinity (answer nothing) where n < 1 / max_risk - 1: so few rows cannot
        promise it.

    Raises:
        StatisticsError: shapes that differ, NaN, or a risk outside (0, 1).
    """
    sure, loss = np.asarray(confidence, dtype=float), np.asarray(wrong, dtype=float)
    if not 0 < max_risk < 1:
        raise StatisticsError(f"a risk to keep lies between 0 and 1, not {max_risk}")
    if sure.shape != loss.shape or sure.ndim != 1 or np.isnan(sure).any():
        raise StatisticsError("confidence and losses are one number each a row, without NaN")
    if np.isnan(loss).any() or np.any((loss < 0) | (loss > 1)):
        raise StatisticsError("losses lie in [0, 1]")
    weight, n = _weights(groups, len(sure))
    threshold = _lowest(sure, loss * weight, max_risk * (n + 1) - 1)
    answered = sure >= threshold
    covered = float((weight * answered).sum())
    lost = float((weight * loss * answered).sum())
    return RiskControl(
        threshold,
        max_risk,
        covered / max(n, 1),
        lost / max(n, 1),
        lost / covered if covered else math.nan,
        n,
    )


def _weights(groups: ArrayLike | None, n: int) -> tuple[Floats, int]:
    """(n,), what a row counts for: one over the size of its group; and the number of groups."""
    if groups is None:
        return np.ones(n), n
    _, code, size = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    return np.asarray(1 / size[code]), len(size)


def _lowest(sure: Floats, loss: Floats, allowed: float) -> float:
    """The lowest threshold at which the summed loss of what is at or above it is allowed."""
    if allowed < 0:
        return math.inf
    values, code = np.unique(sure, return_inverse=True)
    above = np.cumsum(np.bincount(code, loss, len(values))[::-1])[::-1]
    passing = above <= allowed + 1e-12
    # The loss falls as the threshold rises, so what passes is an upper end of the values.
    if passing.all():
        return -math.inf
    if not passing.any():
        return math.inf
    return float(values[int(np.argmax(passing))])
