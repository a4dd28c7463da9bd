"""Bradley-Terry strengths on people's scale, from few labels and what a panel says of all rows.

The score equation of labelled pairs is shifted by how far the panel's wins on the labelled rows are
from those on all rows: prediction-powered inference for a generalised linear model (Angelopoulos,
Duchi and Zrnic 2023), whose rectifier does not depend on the strengths, so that the problem stays
concave.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, normal_quantile, t_quantile, wilson
from clash.stats.logistic import sigmoid
from clash.stats.selection.sample_design import RANDOM_ROWS, SampleDesign
from clash.stats.selection.vote_regression import PRIOR_POWER, PRIOR_ROWS

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Codes, Floats

RIDGE = 0.5
"""Pseudo-comparisons that draw each strength to 0: strengths stay finite where one always wins."""
_STEPS, _TOLERANCE = 100, 1e-10


@dataclass(frozen=True, slots=True)
class CorrectedStrengths:
    """Strengths of K candidates as people see them, log-odds, which sum to 0.

    Attributes:
        strengths: (K,) intervals of the strengths.
        win_rates: (K,) intervals of the mean chance to beat each of the others.
        power: how much of the panel's say is used; 0 is the labels alone.
        converged: whether the score equation is solved.
        influence: (G, K), what each source adds to the error of the strengths, with Student's
            quantile over the normal one in it.
    """

    strengths: tuple[Interval, ...]
    win_rates: tuple[Interval, ...]
    power: float
    converged: bool
    influence: Floats


@dataclass(frozen=True, slots=True)
class _Data:
    """Labelled outcomes and the panel's, by row and pair.

    Attributes:
        labels: (N, P), of the first of each pair; NaN where untold.
        design: (P, K), +1 for the first and -1 for the second of each pair.
        shift: (N, K), the panel's wins of each candidate, centred over all rows.
        weights: (N,), of the labelled rows, which sum to their number.
        source: (N,), codes.
    """

    labels: Floats
    design: Floats
    shift: Floats
    weights: Floats
    source: Codes

    @property
    def freedom(self) -> int:
        """Labelled sources, less one for the location and one for the power."""
        return max(1, len(np.unique(self.source[self.weights > 0])) - 2)

    def scores(self, strengths: Floats) -> Floats:
        """(N, K), what each row's label adds to the score."""
        gaps = self.labels - sigmoid(self.design @ strengths)
        return np.asarray(np.nan_to_num(gaps) @ self.design * self.weights[:, None], np.float64)

    def information(self, strengths: Floats) -> Floats:
        """(K, K), of the labelled pairs and the ridge."""
        p = sigmoid(self.design @ strengths)
        label_weight = self.weights @ (~np.isnan(self.labels)).astype(float)
        weighted = self.design * (label_weight * p * (1 - p))[:, None]
        return np.asarray(self.design.T @ weighted + RIDGE * np.eye(len(strengths)), np.float64)


def corrected_strengths(
    labels: ArrayLike,
    panel: ArrayLike,
    pairs: ArrayLike,
    n_candidates: int,
    design: SampleDesign = RANDOM_ROWS,
    *,
    level: float = 0.95,
) -> CorrectedStrengths:
    """Strengths that people's labels would give to all rows.

    Args:
        labels: (N, P), 1, 0.5 or 0: how the first of each pair does against the second; NaN where
            the label of the row does not tell, or there is none.
        panel: (N, P), in [0, 1], the same by the panel; 0.5 where it does not tell.
        pairs: (P, 2), the candidates of each pair.
        n_candidates: K.
        design: sources, and how rows came to be labelled.
        level: confidence level.

    Raises:
        StatisticsError: no label, a stratum without one, shapes that differ, or a chance that is not
            positive.
    """
    y, f = np.asarray(labels, dtype=float), np.asarray(panel, dtype=float)
    if y.shape != f.shape or y.ndim != 2:
        raise StatisticsError(f"labels {y.shape} but judgments {f.shape}")
    has_label = ~np.isnan(y).all(axis=1)
    if not has_label.any():
        raise StatisticsError("strengths need a label")
    sides = np.zeros((y.shape[1], n_candidates))
    for row, (first, second) in enumerate(np.asarray(pairs).tolist()):
        sides[row, first], sides[row, second] = 1.0, -1.0
    weights = design.weights(has_label) * has_label.sum()
    wins = (f - 0.5) @ sides
    data = _Data(y, sides, wins - wins.mean(axis=0), weights, design.sources(len(y)))
    alone, is_solved = _solve(data, np.zeros(n_candidates))
    power = 0.0 if has_label.all() else _power(data, alone)
    influence = _influence(data, alone, 0.0)
    floor = _floor(data, alone, influence)
    strengths = alone
    if power > 0:
        rectifier = -power * (weights @ data.shift)
        solution, is_shifted = _solve(data, rectifier)
        shifted_influence = _influence(data, solution, power)
        if is_shifted and (shifted_influence**2).sum() < (influence**2).sum():
            strengths, is_solved, influence = solution, True, shifted_influence
        else:
            power = 0.0
    influence = influence * floor
    t_factor = t_quantile(level, data.freedom) / normal_quantile(level)
    return CorrectedStrengths(
        *_intervals(strengths, influence.T @ influence, int(has_label.sum()), data.freedom, level),
        power,
        is_solved,
        influence * t_factor,
    )


def _solve(data: _Data, rectifier: Floats) -> tuple[Floats, bool]:
    """The strengths at which score and rectifier cancel, by damped Newton steps."""
    strengths = np.zeros(len(rectifier))
    for _ in range(_STEPS):
        score = data.scores(strengths).sum(axis=0) + rectifier - RIDGE * strengths
        step = np.linalg.solve(data.information(strengths), score)
        strengths = strengths + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < _TOLERANCE:
            return strengths - strengths.mean(), True
    return strengths - strengths.mean(), False


def _power(data: _Data, strengths: Floats) -> float:
    """The slope of the labels' score on the panel's wins, shrunk as for a share; at least 0."""
    scores, w = data.scores(strengths), data.weights[:, None]
    shift = data.shift - (w * data.shift).sum(axis=0) / w.sum()
    prior = PRIOR_ROWS * float((data.shift**2).sum()) / len(data.shift)
    spread = float((w * w * shift**2).sum()) + prior
    if spread <= 0:
        return 0.0
    return max(0.0, (float((scores * w * shift).sum()) + prior * PRIOR_POWER) / spread)


def _influence(data: _Data, strengths: Floats, power: float) -> Floats:
    """(G, K), what each source adds to the error; the sum of its squares is the sandwich."""
    n = float(data.weights.sum())
    centre = (data.weights @ data.shift) / n
    errors = data.scores(strengths) - power * data.weights[:, None] * (data.shift - centre)
    errors -= errors.sum(axis=0) * data.weights[:, None] / n
    sources = len(np.unique(data.source[data.weights > 0]))
    errors *= math.sqrt(sources / data.freedom)
    errors += power * n * data.shift / len(data.shift)
    totals = np.column_stack([np.bincount(data.source, column) for column in errors.T])
    inverse = np.linalg.inv(data.information(strengths))
    inverse -= inverse.mean(axis=0)
    return np.asarray(totals @ inverse.T, np.float64)


def _floor(data: _Data, strengths: Floats, influence: Floats) -> Floats:
    """(K,), factors that raise standard errors from the labels to those of the model.

    Few labels show few outcomes, and their spread is then too small: no candidate's variance may be
    below that of as many independent comparisons.
    """
    k = len(strengths)
    centre = np.eye(k) - 1 / k
    least = np.diag(centre @ np.linalg.inv(data.information(strengths)) @ centre)
    variances = np.maximum((influence**2).sum(axis=0), 1e-12)
    return np.asarray(np.sqrt(np.maximum(1.0, least / variances)), np.float64)


def _intervals(
    strengths: Floats, covariance: Floats, n: int, freedom: int, level: float
) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """Of the strengths, and of the win rates that they expect (delta method, as Wilson's)."""
    k, t = len(strengths), t_quantile(level, freedom)
    t_factor = t / normal_quantile(level)
    p = sigmoid(strengths[:, None] - strengths[None, :])
    slope = p * (1 - p)
    gradient: NDArray[np.float64] = -slope / (k - 1)
    np.fill_diagonal(gradient, 0.0)
    np.fill_diagonal(gradient, -gradient.sum(axis=1))
    rates = (p.sum(axis=1) - 0.5) / (k - 1)
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    variances = np.einsum("ij,jk,ik->i", gradient, covariance, gradient)
    by_strength = tuple(
        Interval(float(s), float(s - t * e), float(s + t * e), level, n, n, "PPI, Bradley-Terry")
        for s, e in zip(strengths, errors, strict=True)
    )
    return by_strength, tuple(
        _rate(float(rate), float(variance) * t_factor**2, n, level)
        for rate, variance in zip(rates, variances, strict=True)
    )


def _rate(rate: float, variance: float, n: int, level: float) -> Interval:
    effect = variance * n / (rate * (1 - rate)) if variance > 0 else 1.0
    interval = wilson(rate * n, n, level, design_effect=effect)
    return Interval(
        rate, interval.low, interval.high, level, n, interval.n_effective, "PPI, Bradley-Terry"
    )
