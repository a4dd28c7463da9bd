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
from clash.stats.choice import PRIOR_GAMES
from clash.stats.intervals import LEVEL, Interval, normal_quantile, t_quantile
from clash.stats.logistic import sigmoid
from clash.stats.selection.corrected_share import SKEWED_SHARE, rarity
from clash.stats.selection.sample_design import RANDOM_ROWS, SampleDesign
from clash.stats.selection.vote_regression import PRIOR_POWER, PRIOR_ROWS, cross_fit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from clash.stats.typing import Codes, Floats, Index

FARTHEST = 30.0
"""Log-odds beyond which no strength is looked for: the panel's correction asks for more wins than
there were games."""
_STEPS, _TOLERANCE = 100, 1e-10
_CLOSE = 1e-7
"""A step of log-odds below which a test has its strengths."""
_TINY = 1e-30
_ALIKE = 1e-9
"""Share of the model's variance below which labels are all alike but for rounding."""


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

    def games(self) -> Floats:
        """(K, K), labelled comparisons of every two candidates, weighted."""
        count = self.weights @ (~np.isnan(self.labels)).astype(float)
        sides = np.abs(self.design)
        return np.asarray((sides * count[:, None]).T @ sides, np.float64)

    def information(self, strengths: Floats) -> Floats:
        """(K, K), of the labelled pairs and the ridge."""
        p = sigmoid(self.design @ strengths)
        label_weight = self.weights @ (~np.isnan(self.labels)).astype(float)
        weighted_design = self.design * (label_weight * p * (1 - p))[:, None]
        pull = np.diag(PRIOR_GAMES * _slope(strengths))
        return np.asarray(self.design.T @ weighted_design + pull, np.float64)


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
    influence, power, at = alone, 0.0, strengths
    for model in _models(data, strengths, slope, panel_wins, _wins(votes, sides)):
        solution, is_shifted = _solve(data, model.rectifier(weights))
        if not is_shifted:
            continue
        errors = _influence(data, solution, model)
        if (errors**2).sum() < (influence**2).sum():
            at, is_solved, influence, power = solution, True, errors, slope
    sources = np.unique(data.source[weights > 0])
    doubt = _doubt(strengths, len(sources))
    before, after = (_Spread.of(data, *pair) for pair in ((strengths, alone), (at, influence)))
    by_strength, by_rate = (
        _effects(first, second, model, doubt)
        for first, second, model in zip(
            before.by_source, after.by_source, before.model, strict=True
        )
    )
    t_factor = t_quantile(LEVEL, data.freedom) / normal_quantile(LEVEL)
    covariance = _model_covariance(data, at)
    return CorrectedStrengths(
        *_intervals(data, at, after.model, by_strength, by_rate),
        power,
        is_solved,
        _scale(influence, covariance, by_strength, sources) * t_factor,
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
        pull = PRIOR_GAMES * (0.5 - sigmoid(strengths))
        score = data.scores(strengths).sum(axis=0) + rectifier + pull
        step = np.linalg.solve(data.information(strengths), score)
        strengths = strengths + step * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < _TOLERANCE:
            return strengths - strengths.mean(), True
        if np.abs(strengths).max() > FARTHEST:
            break
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
        centred_rows = model.everywhere - model.everywhere.mean(axis=0)
        errors += n * centred_rows / len(centred_rows)
    totals = np.column_stack([np.bincount(data.source, column) for column in errors.T])
    inverse = np.linalg.inv(data.information(strengths))
    inverse -= inverse.mean(axis=0)
    return np.asarray(totals @ inverse.T, np.float64)


def _effects(alone: Floats, panel_variances: Floats, least: Floats, doubt: Floats) -> Floats:
    """(K,) factors on variances that a model has for independent comparisons.

    Few labels show few outcomes, whose spread is then too small: the variance by the labels alone
    is at least the model's. What the panel saves of it is believed but for ``doubt``.

    Args:
        alone: (K,), variances by the labels alone.
        panel_variances: (K,), with what is used of the panel.
        least: (K,), of the model.
        doubt: (K,), 0 to 1.
    """
    has_spread = alone > _ALIKE * least
    ratio = np.divide(panel_variances, alone, out=np.ones(len(alone)), where=has_spread)
    ratio = np.minimum(ratio, 1.0)
    return np.asarray(np.maximum(alone / least, 1.0) * (ratio + doubt * (1 - ratio)), np.float64)


def _scale(influence: Floats, covariance: Floats, effects: Floats, rows: Index) -> Floats:
    """(G, K), the influence scaled to the model's variances times their effects.

    Labels that are all alike have none: the model's covariance is then spread over the labelled
    sources ``rows``, each of which gets one of its K directions.
    """
    variances = effects * np.diag(covariance)
    own_squares = (influence**2).sum(axis=0)
    if (own_squares <= _ALIKE * variances).any():
        values, vectors = np.linalg.eigh(covariance)
        roots = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        influence = np.zeros_like(influence)
        influence[rows] = roots[np.arange(len(rows)) % len(roots)]
        own_squares = (influence**2).sum(axis=0)
    return np.asarray(influence * np.sqrt(variances / np.maximum(own_squares, _TINY)), np.float64)


@dataclass(frozen=True, slots=True)
class _Spread:
    """Variances of the strengths and of the win rates, (2, K) each.

    Attributes:
        by_source: by what each source adds.
        model: of as many independent comparisons.
    """

    by_source: Floats
    model: Floats

    @classmethod
    def of(cls, data: _Data, strengths: Floats, influence: Floats) -> _Spread:
        gradient, covariance = _gradient(strengths), _model_covariance(data, strengths)
        squares = [(part**2).sum(axis=0) for part in (influence, influence @ gradient.T)]
        model = [np.diag(covariance), np.einsum("ij,jk,ik->i", gradient, covariance, gradient)]
        return cls(np.array(squares), np.maximum(model, _TINY))


def _model_covariance(data: _Data, strengths: Floats) -> Floats:
    """(K, K), of strengths less their mean, for independent comparisons."""
    inverse = np.linalg.inv(data.information(strengths))
    inverse = inverse - inverse.mean(axis=0)
    return np.asarray(inverse - inverse.mean(axis=1, keepdims=True), np.float64)


def _gradient(strengths: Floats) -> Floats:
    """(K, K), of each win rate by each strength."""
    k = len(strengths)
    gradient = -_slope(strengths[:, None] - strengths[None, :]) / (k - 1)
    np.fill_diagonal(gradient, 0.0)
    np.fill_diagonal(gradient, -gradient.sum(axis=1))
    return np.asarray(gradient, np.float64)


def _doubt(strengths: Floats, n_sources: int) -> Floats:
    """(K,), the :func:`rarity` of what decides a candidate's place.

    That of its mean chance against the others or, where it nearly always beats some and loses to
    others, so that the mean is not rare, the mean rarity against each, weighted by the information.
    """
    chances = sigmoid(strengths[:, None] - strengths[None, :])
    weight = chances * (1 - chances) * (1 - np.eye(len(strengths)))
    skews = (1 - 2 * chances) ** 2 / np.maximum(n_sources * weight, 1e-12)
    by_opponent = (weight * skews / (skews + SKEWED_SHARE)).sum(axis=1) / weight.sum(axis=1)
    means = (chances.sum(axis=1) - 0.5) / (len(strengths) - 1)
    overall = [rarity(mean, n_sources) for mean in means.tolist()]
    return np.asarray(np.maximum(overall, by_opponent), np.float64)


def _slope(strengths: Floats) -> Floats:
    """What a chance grows with its log-odds."""
    p = sigmoid(strengths)
    return np.asarray(p * (1 - p), np.float64)


def _intervals(
    data: _Data, strengths: Floats, model: Floats, by_strength: Floats, by_rate: Floats
) -> tuple[tuple[Interval, ...], tuple[Interval, ...]]:
    """Of the strengths, and of the win rates that they expect.

    Both are Wilson's idea: the values whose score, wins less those expected, is not rejected with
    the variance *under the value*. With two candidates that is Wilson's interval. At the estimate
    itself the variance is too small where a candidate nearly always wins. A strength moves alone; a
    win rate with all strengths, each as far as the labels make likely (:class:`_RateTest`). What
    sources and the panel do to the variance is a factor.

    Args:
        data: the labels.
        strengths: (K,), the estimates.
        model: (2, K), variances of strengths and win rates for independent comparisons.
        by_strength: (K,), factors on those of the strengths.
        by_rate: (K,), on those of the win rates.
    """
    k, n, games = len(strengths), int((data.weights > 0).sum()), data.games()
    errors = np.sqrt(model * [by_strength, by_rate])
    rise = np.diag(_gradient(strengths))
    t, method = t_quantile(LEVEL, data.freedom), "PPI, Bradley-Terry"
    on_scale, rates = [], []
    for c in range(k):
        is_other = np.arange(k) != c
        gaps = strengths[c] - strengths[is_other]
        line = _ScoreLine(np.append(gaps, strengths[c]), np.append(games[c, is_other], PRIOR_GAMES))
        error = errors[1, c] / rise[c]
        low, high = line.ends(t * error * math.sqrt(line.information(0.0)))
        strength, stretch = float(strengths[c]), errors[0, c] / error
        ends = strength + stretch * low, strength + stretch * high
        on_scale.append(Interval(strength, *ends, LEVEL, n, n, method))
        test = _RateTest(data, strengths, c)
        effective = test.estimate * (1 - test.estimate) / float(errors[1, c]) ** 2
        least, most = test.ends(t * math.sqrt(by_rate[c]))
        rates.append(Interval(test.estimate, least, most, LEVEL, n, effective, method))
    return tuple(on_scale), tuple(rates)


@dataclass(frozen=True, slots=True)
class _RateTest:
    """Rao's score test of the win rate of one candidate, all strengths refitted under each rate.

    Of the strengths at which the candidate has a rate, the likeliest are those where the wins that
    the estimate expects less those expected there are a multiple of the rate's gradient.

    Attributes:
        data: the labels.
        strengths: (K,), the estimates.
        candidate: its column.
    """

    data: _Data
    strengths: Floats
    candidate: int

    @property
    def estimate(self) -> float:
        """The rate at the estimates."""
        return float(self._rate(self.strengths)[0])

    def ends(self, reach: float) -> tuple[float, float]:
        """The lowest and the highest rate within ``reach`` standard errors of the score."""
        from scipy.optimize import brentq

        estimate, ends = self.estimate, []
        for edge in (0.0, 1.0):
            inner, outer = (estimate + share * (edge - estimate) for share in (1e-6, 1 - 1e-3))
            is_out = self._distance(outer) > reach
            ends.append(
                float(brentq(lambda r: self._distance(r) - reach, inner, outer, xtol=1e-5))
                if is_out
                else edge
            )
        return ends[0], ends[1]

    def _distance(self, rate: float) -> float:
        """Standard errors from the score under a rate to that of the estimate."""
        strengths, multiple = self._start(rate), 0.0
        k, wins = len(strengths), self._wins(self.strengths)
        for _ in range(_STEPS):
            value, gradient, bend = self._rate(strengths)
            information = self.data.information(strengths)
            lagrangian = np.zeros((k + 1, k + 1))
            lagrangian[:k, :k] = information - multiple * bend
            lagrangian[:k, k], lagrangian[k, :k] = -gradient, gradient
            excess = self._wins(strengths) - wins - multiple * gradient
            step = np.linalg.solve(lagrangian, -np.append(excess, value - rate))
            damping = min(1.0, 1.0 / max(float(np.abs(step[:k]).max()), _TINY))
            strengths, multiple = strengths + damping * step[:k], multiple + damping * step[k]
            if np.abs(step[:k]).max() < _CLOSE:
                break
        _, gradient, _ = self._rate(strengths)
        information = self.data.information(strengths)
        return abs(multiple) * math.sqrt(float(gradient @ np.linalg.solve(information, gradient)))

    def _start(self, rate: float) -> Floats:
        """The estimates, that of the candidate moved to where it has the rate."""
        from scipy.optimize import brentq

        unit = np.eye(len(self.strengths))[self.candidate]
        others = unit == 0
        gaps = self.strengths[self.candidate] - self.strengths[others]

        def excess(shift: float) -> float:
            return float(sigmoid(gaps + shift).mean()) - rate

        return np.asarray(self.strengths + unit * brentq(excess, -2 * FARTHEST, 2 * FARTHEST))

    def _wins(self, strengths: Floats) -> Floats:
        """(K,), wins less losses that are expected of the labelled games, and of the phantom's."""
        count = self.data.weights @ (~np.isnan(self.data.labels)).astype(float)
        expected = (count * sigmoid(self.data.design @ strengths)) @ self.data.design
        return np.asarray(expected + PRIOR_GAMES * sigmoid(strengths), np.float64)

    def _rate(self, strengths: Floats) -> tuple[Floats, Floats, Floats]:
        """The rate, its gradient (K,), and its second derivatives (K, K)."""
        c, k = self.candidate, len(strengths)
        others = np.arange(k) != c
        p = sigmoid(strengths[c] - strengths[others])
        slope = p * (1 - p) / (k - 1)
        bend = slope * (1 - 2 * p)
        gradient, second = np.zeros(k), np.zeros((k, k))
        gradient[others], gradient[c] = -slope, slope.sum()
        second[others, others], second[c, c] = bend, bend.sum()
        second[c, others] = second[others, c] = -bend
        return p.mean(), gradient, second


@dataclass(frozen=True, slots=True)
class _ScoreLine:
    """The games of one candidate, whose strength is shifted while the others' stay.

    Attributes:
        gaps: (J,), its log-odds against each opponent, the phantom among them.
        games: (J,), how many.
    """

    gaps: Floats
    games: Floats

    def information(self, shift: float) -> float:
        """Of the strength, where it is higher by ``shift``."""
        return float(self.games @ _slope(self.gaps + shift))

    def ends(self, reach: float) -> tuple[float, float]:
        """The lowest and the highest shift within ``reach`` standard errors of the score."""
        from scipy.optimize import brentq

        def excess(shift: float) -> float:
            score = float(self.games @ (sigmoid(self.gaps) - sigmoid(self.gaps + shift)))
            return abs(score) - reach * math.sqrt(self.information(shift))

        low, high = (
            brentq(excess, 0.0, side * FARTHEST, xtol=1e-6)
            if excess(side * FARTHEST) > 0
            else side * FARTHEST
            for side in (-1.0, 1.0)
        )
        return float(low), float(high)
