"""Biases of a judge or a panel that votes alone can show: position, length, family, self.

Each function takes one observation a row and ``clusters`` (n,), codes of what may depend on
each other, so that its interval does not take copies for evidence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import (
    PairedDifference,
    Significance,
    paired_difference,
    two_sided,
)
from clash.stats.intervals import (
    Interval,
    encode_clusters,
    normal_quantile,
    t_quantile,
    wilson_clustered,
)
from clash.stats.logistic_regression import logistic_regression, score_totals

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.optimise import NewtonMinimum
    from clash.stats.typing import Floats


@dataclass(frozen=True, slots=True)
class BiasRate:
    """A rate that would be ``fair`` without the bias.

    Attributes:
        test: that it is; robust to clusters.
        left_out: rows that could not show the bias (missing, tied, of equal length).
    """

    interval: Interval
    fair: float
    test: Significance
    left_out: int


def first_slot_rate(
    wins: ArrayLike, clusters: ArrayLike, fair: float | ArrayLike = 0.5
) -> BiasRate:
    """How often the response shown first (A0) is ranked first.

    Orders are random, so whatever the quality of the responses the fair rate is 1/K.

    Args:
        wins: (n,), 1 where A0 won, 0 where another did, 1/m where it tied with m - 1 others for
            first place, NaN missing.
        clusters: (n,).
        fair: 1/K, or one for each row where K differs.
    """
    x, groups, chance = _drop_missing(wins, clusters, fair)
    interval = wilson_clustered(x, groups)
    return BiasRate(interval, _mean(chance), _against(x - chance, groups), _n_left_out(wins, x))


def longer_wins_rate(
    wins: ArrayLike, first_length: ArrayLike, second_length: ArrayLike, clusters: ArrayLike
) -> BiasRate:
    """How often the longer of two responses wins, ties and equal lengths left out.

    Longer may well be better: read it beside the same rate for people.

    Args:
        wins: (n,), 1 the first, 0 the second, 0.5 tied, NaN missing.
        first_length: (n,), characters or tokens.
        second_length: (n,), likewise.
        clusters: (n,).
    """
    outcome = np.asarray(wins, dtype=float)
    gap = np.asarray(first_length, dtype=float) - np.asarray(second_length, dtype=float)
    longer = np.where(gap > 0, outcome, 1 - outcome)
    usable = np.isin(outcome, [0, 1]) & (gap != 0) & ~np.isnan(gap)
    x, groups, chance = _drop_missing(np.where(usable, longer, np.nan), clusters, 0.5)
    return BiasRate(
        wilson_clustered(x, groups), 0.5, _against(x - chance, groups), _n_left_out(outcome, x)
    )


def _drop_missing(
    values: ArrayLike, clusters: ArrayLike, fair: float | ArrayLike
) -> tuple[Floats, NDArray[np.generic], Floats]:
    x, groups = np.asarray(values, dtype=float), np.asarray(clusters)
    if x.ndim != 1 or groups.shape != x.shape:
        raise StatisticsError(f"{x.shape} outcomes but clusters of shape {groups.shape}")
    present = ~np.isnan(x)
    chance = np.broadcast_to(np.asarray(fair, dtype=float), x.shape)
    return x[present], groups[present], chance[present]


def _n_left_out(before: ArrayLike, after: Floats) -> int:
    return len(np.asarray(before)) - len(after)


def _mean(x: Floats) -> float:
    return float(x.mean()) if len(x) else math.nan


def _against(gap: Floats, groups: NDArray[np.generic]) -> Significance:
    """The t test that outcomes exceed their chance by 0 on average, clustered."""
    return paired_difference(gap, np.zeros(len(gap)), groups).test


def favouritism(
    picks: ArrayLike, reference: ArrayLike, clusters: ArrayLike, level: float = 0.95
) -> PairedDifference:
    """How much more often a judge picks its own than the reference does on the same items.

    Own is the judge's family (family favouritism) or the judge itself (self-preference); the
    reference is people, the base rate, or the mean vote of judges of other families. Against a
    fixed 50% a judge that made the better model would look partial.

    Args:
        picks: (n,), 1 where the judge put its own first, 0.5 tied, 0 not, NaN missing.
        reference: (n,), the same by the reference, or a probability.
        clusters: (n,).
        level: confidence level.

    Returns:
        Mean of picked - reference over rows where both are known; NaN estimate without any.

    Raises:
        StatisticsError: shapes that differ.
    """
    x, y, groups = np.asarray(picks, float), np.asarray(reference, float), np.asarray(clusters)
    if not x.shape == y.shape == groups.shape:
        raise StatisticsError(f"{x.shape} picks, {y.shape} references, {groups.shape} clusters")
    present = ~np.isnan(x) & ~np.isnan(y)
    return paired_difference(x[present], y[present], groups[present], level)


@dataclass(frozen=True, slots=True)
class LengthControl:
    """Win rate at equal length, by a logistic regression of the win on the length difference.

    Attributes:
        raw: win rate as it is, ties half.
        controlled: win rate where both responses were equally long.
        slope: b, in log odds.
        slope_test: that it is 0 (Wald, robust to clusters).
        scale: root mean square of the length differences, in their unit.
        residual: largest |observed - expected| of the two equations the fit solves.
    """

    raw: Interval
    controlled: Interval
    slope: Interval
    slope_test: Significance
    scale: float
    converged: bool
    n_iter: int
    residual: float


def length_controlled_win_rate(
    wins: ArrayLike,
    length_difference: ArrayLike,
    clusters: ArrayLike,
    *,
    ridge: float = 0.5,
    level: float = 0.95,
) -> LengthControl:
    """P(win) = sigma(a + b tanh(difference / scale)), and sigma(a) as the controlled rate.

    As Dubois et al. 2024 (length-controlled AlpacaEval), without their terms for models and
    prompts. A weak normal prior keeps a and b finite where one side wins all.

    Args:
        wins: (n,), 1, 0, 0.5 tied, NaN missing (left out).
        length_difference: (n,), length of the response in question minus the other's.
        clusters: (n,).
        ridge: weight of a^2 / 2 and b^2 / 2 in the penalty (a prior variance of 1 / ridge).
        level: confidence level.

    Raises:
        StatisticsError: shapes that differ, no usable row, or a ridge that is not positive.
    """
    x, groups, _ = _drop_missing(wins, clusters, 0.5)
    gap = np.asarray(length_difference, dtype=float)[~np.isnan(np.asarray(wins, dtype=float))]
    if not len(x) or np.isnan(gap).any() or len(gap) != len(x):
        raise StatisticsError("length control needs outcomes, and the length of every response")
    if not ridge > 0:
        raise StatisticsError(f"a ridge is positive, not {ridge}")
    scale = float(np.sqrt(np.mean(gap**2))) or 1.0
    design = np.stack([np.ones(len(x)), np.tanh(gap / scale)], axis=1)
    fit = logistic_regression(
        design,
        x,
        np.ones(len(x)),
        np.full(2, ridge),
        gradient_tol=1e-9 * len(x),
        decrement_tol=None,
        longest_step=2.0,
    )
    errors, d = _errors(design, x, fit, groups, ridge)
    reach = normal_quantile(level) if d < 2 else t_quantile(level, d - 1)
    a, b = fit.x.tolist()
    ends = [a, a - reach * errors[0], a + reach * errors[0]]
    middle, low, high = (1 / (1 + math.exp(-float(end))) for end in ends)
    raw, n = wilson_clustered(x, groups, level), len(x)
    z = b / float(errors[1])
    return LengthControl(
        raw,
        Interval(middle, low, high, level, n, d, "logistic, clustered"),
        Interval(b, b - reach * errors[1], b + reach * errors[1], level, n, d, "wald, clustered"),
        Significance(two_sided(z), z, "wald test, clustered"),
        scale,
        bool(fit.converged),
        int(fit.n_iter),
        float(fit.gradient_norm),
    )


def _errors(
    design: Floats, y: Floats, fit: NewtonMinimum, groups: NDArray[np.generic], ridge: float
) -> tuple[Floats, int]:
    """Standard errors robust to clusters, never below those of the model, and the clusters."""
    _, codes, n_groups = encode_clusters(y, groups)
    bread = np.linalg.inv(fit.hessian)
    variance: Floats = np.diag(bread).astype(float)
    if n_groups >= 2:
        totals = score_totals(design, y, fit.x, codes, n_groups)
        # G / (G - 1), as for any variance around the mean of G totals. The ridge stands in the
        # bread as the prior's information, so the meat holds it too: H^-1 (M + ridge I) H^-1.
        meat = n_groups / (n_groups - 1) * totals.T @ totals + ridge * np.eye(2)
        # Where one side wins all, residuals vanish and a sandwich alone would claim certainty.
        variance = np.maximum(variance, np.diag(bread @ meat @ bread))
    return np.sqrt(variance), n_groups
