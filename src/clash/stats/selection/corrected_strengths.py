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
from clash.stats.intervals import LEVEL, Interval, normal_quantile, t_quantile, wilson
from clash.stats.logistic import sigmoid
from clash.stats.selection.corrected_share import rarity
from clash.stats.selection.sample_design import RANDOM_ROWS, SampleDesign
from clash.stats.selection.vote_regression import PRIOR_POWER, PRIOR_ROWS, cross_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        power: how much of the panel's say is used; 0 is the labels alone. Where each judge's vote is
            used, what would be used of their mean.
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
        weights: (N,), of the labelled rows, which sum to their number.
        source: (N,), codes.
    """

    labels: Floats
    design: Floats
    weights: Floats
    source: Codes

    @property
    def freedom(self) -> int:
        """Labelled sources, less one for the location and one for the power."""
        return max(1, len(np.unique(self.source[self.weights > 0])) - 2)

    def gaps(self, strengths: Floats) -> Floats:
        """(N, K), wins by each row's label less those expected; 0 without one."""
        gaps = self.labels - sigmoid(self.design @ strengths)
        return np.asarray(np.nan_to_num(gaps) @ self.design, np.float64)

    def scores(self, strengths: Floats) -> Floats:
        """(N, K), what each row's label adds to the score."""
        return self.gaps(strengths) * self.weights[:, None]

    def information(self, strengths: Floats) -> Floats:
        """(K, K), of the labelled pairs and the ridge."""
        p = sigmoid(self.design @ strengths)
        label_weight = self.weights @ (~np.isnan(self.labels)).astype(float)
        weighted = self.design * (label_weight * p * (1 - p))[:, None]
        return np.asarray(self.design.T @ weighted + RIDGE * np.eye(len(strengths)), np.float64)


@dataclass(frozen=True, slots=True)
class _Model:
    """What each row's label is expected to add to the score, (N, K), up to a constant.

    Attributes:
        everywhere: by fits to all labels.
        held_out: of labelled rows, by fits that did not see them.
    """

    everywhere: Floats
    held_out: Floats

    def rectifier(self, weights: Floats) -> Floats:
        """(K,), what all rows are expected to add more than the labelled ones."""
        return np.asarray(weights.sum() * self.everywhere.mean(axis=0) - weights @ self.held_out)


def corrected_strengths(
    labels: ArrayLike,
    panel: ArrayLike,
    pairs: ArrayLike,
    n_candidates: int,
    design: SampleDesign = RANDOM_ROWS,
    *,
    votes: ArrayLike | None = None,
) -> CorrectedStrengths:
    """Strengths that people's labels would give to all rows.

    Args:
        labels: (N, P), 1, 0.5 or 0: how the first of each pair does against the second; NaN where
            the label of the row does not tell, or there is none.
        panel: (N, P), in [0, 1], the same by the panel; 0.5 where it does not tell.
        pairs: (P, 2), the candidates of each pair.
        n_candidates: K.
        design: sources, and how rows came to be labelled.
        votes: (N, P, J), as ``panel`` by each judge; NaN where it says nothing. The score is then
            expected by a cross-fitted regression on each judge's wins, where that is more precise.

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
    data = _Data(y, sides, weights, design.sources(len(y)))
    strengths, is_solved = _solve(data, np.zeros(n_candidates))
    panel_wins = (f - 0.5) @ sides
    slope = _power(data, strengths, panel_wins - panel_wins.mean(axis=0))
    alone = _influence(data, strengths)
    influence, power = alone, 0.0
    floor = _floor(data, strengths, alone)
    for model in _models(data, strengths, slope, panel_wins, _wins(votes, sides)):
        solution, is_shifted = _solve(data, model.rectifier(weights))
        errors = _influence(data, solution, model)
        if is_shifted and (errors**2).sum() < (influence**2).sum():
            strengths, is_solved, influence, power = solution, True, errors, slope
    influence = influence * floor * _doubt(data, strengths, alone, influence)
    t_factor = t_quantile(LEVEL, data.freedom) / normal_quantile(LEVEL)
    return CorrectedStrengths(
        *_intervals(strengths, influence.T @ influence, int(has_label.sum()), data.freedom),
        power,
        is_solved,
        influence * t_factor,
    )


def _wins(votes: ArrayLike | None, sides: Floats) -> Floats | None:
    """(N, K, J), what each judge's votes add to the score; null without two judges."""
    if votes is None or (x := np.asarray(votes, dtype=float)).shape[2] < 2:
        return None
    wins = np.einsum("npj,pk->nkj", np.nan_to_num(x - 0.5), sides)
    return np.where(np.isnan(x).all(axis=1)[:, None, :], np.nan, wins)


def _models(
    data: _Data, strengths: Floats, power: float, panel: Floats, votes: Floats | None
) -> Iterator[_Model]:
    """By the panel's wins, and by each judge's; none where every row has a label."""
    if (data.weights > 0).all():
        return
    if power > 0:
        yield _Model(power * panel, power * panel)
    if votes is None:
        return
    # One regression for all candidates, whose gaps have a mean of 0 in each row.
    k = len(strengths)
    fit = cross_fit(
        data.gaps(strengths).ravel(),
        panel.ravel(),
        votes.reshape(-1, votes.shape[2]),
        np.repeat(data.weights / data.weights.sum() / k, k),
        np.repeat(data.source, k),
    )
    yield _Model(fit.everywhere.reshape(-1, k), fit.held_out.reshape(-1, k))


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


def _power(data: _Data, strengths: Floats, shift: Floats) -> float:
    """The slope of the labels' score on the panel's wins, shrunk as for a share; at least 0."""
    scores, w = data.scores(strengths), data.weights[:, None]
    prior = PRIOR_ROWS * float((shift**2).sum()) / len(shift)
    shift = shift - (w * shift).sum(axis=0) / w.sum()
    spread = float((w * w * shift**2).sum()) + prior
    if spread <= 0:
        return 0.0
    return max(0.0, (float((scores * w * shift).sum()) + prior * PRIOR_POWER) / spread)


def _influence(data: _Data, strengths: Floats, model: _Model | None = None) -> Floats:
    """(G, K), what each source adds to the error; the sum of its squares is the sandwich."""
    n, w = float(data.weights.sum()), data.weights[:, None]
    errors = data.scores(strengths)
    if model is not None:
        errors -= w * model.held_out
    errors -= errors.sum(axis=0) * w / n
    sources = len(np.unique(data.source[data.weights > 0]))
    errors *= math.sqrt(sources / data.freedom)
    if model is not None:
        centred = model.everywhere - model.everywhere.mean(axis=0)
        errors += n * centred / len(centred)
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


def _doubt(data: _Data, strengths: Floats, alone: Floats, influence: Floats) -> Floats:
    """(K,), factors that draw variances to those of the labels alone, by :func:`rarity`."""
    n_sources = len(np.unique(data.source[data.weights > 0]))
    shares = np.array([rarity(rate, n_sources) for rate in _rates(strengths).tolist()])
    variances = np.maximum((influence**2).sum(axis=0), 1e-12)
    excess = np.maximum((alone**2).sum(axis=0) / variances - 1, 0.0)
    return np.asarray(np.sqrt(1 + shares * excess), np.float64)


def _rates(strengths: Floats) -> Floats:
    """(K,), the mean chance to beat each of the others."""
    p = sigmoid(strengths[:, None] - strengths[None, :])
    return np.asarray((p.sum(axis=1) - 0.5) / (len(strengths) - 1), np.float64)


def _intervals(
    strengths: Floats, covariance: Floats, n: int, freedom: int
) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """Of the strengths, and of the win rates that they expect (delta method, as Wilson's)."""
    k, t = len(strengths), t_quantile(LEVEL, freedom)
    t_factor = t / normal_quantile(LEVEL)
    p = sigmoid(strengths[:, None] - strengths[None, :])
    slope = p * (1 - p)
    gradient: NDArray[np.float64] = -slope / (k - 1)
    np.fill_diagonal(gradient, 0.0)
    np.fill_diagonal(gradient, -gradient.sum(axis=1))
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    variances = np.einsum("ij,jk,ik->i", gradient, covariance, gradient)
    by_strength = tuple(
        Interval(float(s), float(s - t * e), float(s + t * e), LEVEL, n, n, "PPI, Bradley-Terry")
        for s, e in zip(strengths, errors, strict=True)
    )
    return by_strength, tuple(
        _rate(float(rate), float(variance) * t_factor**2, n)
        for rate, variance in zip(_rates(strengths), variances, strict=True)
    )


def _rate(rate: float, variance: float, n: int) -> Interval:
    effect = variance * n / (rate * (1 - rate)) if variance > 0 else 1.0
    interval = wilson(rate * n, n, LEVEL, design_effect=effect)
    return Interval(
        rate, interval.low, interval.high, LEVEL, n, interval.n_effective, "PPI, Bradley-Terry"
    )
