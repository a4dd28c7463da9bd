"""Bradley-Terry strengths from paired comparisons, with ties by Davidson and a weak prior.

Model. With strengths theta and a tie parameter nu, of one comparison of i with j

    P(i wins) = e^theta_i / D,   P(tie) = nu e^((theta_i + theta_j) / 2) / D,
    D = e^theta_i + e^theta_j + nu e^((theta_i + theta_j) / 2)

(Bradley, Terry 1952; Davidson 1970). Without ties nu = 0.

Prior. Each candidate also plays ``prior`` games against a phantom of strength 0 and wins half
of them; where there are ties, ``prior`` games between two equals are added of which a third is
tied. So a candidate that never wins has a finite strength with a wide interval, groups that
never met are tied together only by the prior (see ``connected``), and strengths have an origin.
The log posterior is concave, and its maximum is where, for each i,

    wins_i + ties_i / 2 + prior / 2 = expected wins_i + expected ties_i / 2 + prior sigma(theta_i)

with ties counted as half wins: the fit's ``residual`` is the largest difference of the two sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.intervals import Interval, normal_quantile
from clash.stats.resample import Bootstrap, cluster_weights

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

Ties = Literal["davidson", "half"]


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Sufficient statistics of paired comparisons of K candidates.

    Attributes:
        wins: (K, K), weight of the comparisons that the row won against the column.
        ties: (K, K), symmetric: weight of the ties of the two.
    """

    wins: Floats
    ties: Floats

    @property
    def games(self) -> Floats:
        """(K, K), symmetric: weight of all comparisons of the two."""
        return self.wins + self.wins.T + self.ties

    @property
    def half_wins(self) -> Floats:
        """(K,), wins with a tie as half a win."""
        scored: Floats = (self.wins + self.ties / 2).sum(axis=1)
        return scored


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """A fit.

    Attributes:
        theta: (K,), log strengths; 0 is the prior's phantom (their mean, where prior = 0).
        nu: tie parameter; 0 where no ties were modelled.
        covariance: (K, K) of theta, by the inverse curvature of the log posterior at theta.
        prior: games of the prior for each candidate.
        connected: (K,), a number for each set of candidates that comparisons link, in either
            direction; across sets only the prior compares.
        separated: there is a group that never lost a point to the rest, so that without the
            prior there would be no finite fit.
        residual: largest |observed - expected| in wins.
    """

    theta: Floats
    nu: float
    covariance: Floats
    prior: float
    connected: NDArray[np.intp]
    separated: bool
    converged: bool
    n_iter: int
    residual: float

    @property
    def standard_errors(self) -> Floats:
        """(K,), of theta against the origin; of differences use :meth:`difference`."""
        return np.sqrt(np.diag(self.covariance))

    def difference(self, first: int, second: int, level: float = 0.95) -> Interval:
        """theta_first - theta_second with its Wald interval."""
        c = self.covariance
        variance = c[first, first] + c[second, second] - 2 * c[first, second]
        gap = float(self.theta[first] - self.theta[second])
        reach = normal_quantile(level) * float(np.sqrt(max(variance, 0.0)))
        n = float("nan")
        return Interval(gap, gap - reach, gap + reach, level, n, n, "wald")

    def win_probability(self) -> Floats:
        """(K, K), probability that the row wins against the column; 0.5 on the diagonal.

        Ties are left out: the probability is given that one of the two wins.
        """
        gap = self.theta[:, None] - self.theta[None, :]
        return _sigmoid(gap)

    def tie_probability(self) -> Floats:
        """(K, K), probability of a tie; 0 where no ties were modelled."""
        gap = self.theta[:, None] - self.theta[None, :]
        tied: Floats = self.nu / (self.nu + 2 * np.cosh(gap / 2))
        return tied

    def elo(self, origin: float = 1000.0) -> Floats:
        """(K,), on the Elo scale: 400 points are odds of 10 to 1."""
        scaled: Floats = origin + 400 / np.log(10) * self.theta
        return scaled


def count_comparisons(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    n_candidates: int,
    weights: ArrayLike | None = None,
) -> Comparisons:
    """Collapse n comparisons to K x K sums.

    Args:
        first: (n,), index of one candidate.
        second: (n,), index of the other.
        outcome: (n,), 1 where ``first`` won, 0 where ``second`` did, 0.5 a tie, NaN missing
            (left out).
        n_candidates: K.
        weights: (n,), non-negative; 1 each where not given.

    Raises:
        StatisticsError: an index out of range, a candidate against itself, another outcome, or
            a negative weight.
    """
    i, j = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp)
    y = np.asarray(outcome, dtype=float)
    _check(i, j, y, n_candidates)
    w = _comparison_weights(weights, y)
    pair = i * n_candidates + j
    won, lost, tied = (_summed(pair, w, y == value, n_candidates) for value in (1.0, 0.0, 0.5))
    return Comparisons(won + lost.T, tied + tied.T)


def _summed(pair: NDArray[np.intp], w: Floats, which: NDArray[np.bool_], k: int) -> Floats:
    total: Floats = np.bincount(pair, w * which, k * k).reshape(k, k).astype(float)
    return total


def _comparison_weights(weights: ArrayLike | None, y: Floats) -> Floats:
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    if w.shape != y.shape or not np.all(w >= 0):
        raise StatisticsError(f"expected {len(y)} weights >= 0, one for each comparison")
    return w


def _check(i: NDArray[np.intp], j: NDArray[np.intp], y: Floats, k: int) -> None:
    if not i.shape == j.shape == y.shape or i.ndim != 1:
        raise StatisticsError("first, second and outcome are rows of equal length")
    if not len(i):
        return
    if min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= k:
        raise StatisticsError(f"candidate indices lie in 0..{k - 1}")
    if np.any(i == j):
        raise StatisticsError("a candidate was compared with itself")
    if not np.all((y == 1) | (y == 0) | (y == 0.5) | np.isnan(y)):
        raise StatisticsError("an outcome is 1, 0, 0.5 (a tie) or NaN (missing)")


def bradley_terry(
    counts: Comparisons,
    *,
    prior: float = 0.5,
    ties: Ties = "davidson",
    tol: float = 1e-9,
    max_iter: int = 100,
) -> BradleyTerry:
    """Fit strengths by Newton's method on the K x K counts.

    Args:
        counts: see :func:`count_comparisons`. Weights count as repeated comparisons in the
            standard errors.
        prior: games of each candidate against the phantom, 0 for maximum likelihood.
        ties: ``davidson`` models them; ``half`` counts each as half a win for both.
        tol: stop where the residual is below ``tol`` times the games of a candidate.
        max_iter: Newton steps; the result says whether they were enough.

    Raises:
        StatisticsError: counts that are negative or not K x K, or a negative prior.
        NotIdentifiedError: prior = 0 and some group of candidates never lost to, or never met,
            the rest.
    """
    _check_counts(counts, prior)
    split = ties == "half" or not counts.ties.any()
    if split:
        counts = Comparisons(counts.wins + counts.ties / 2, np.zeros_like(counts.ties))
    connected, separated = _structure(counts)
    if prior == 0 and (separated or connected.max(initial=0) > 0):
        raise NotIdentifiedError(
            "without a prior, strengths are finite only where every group of candidates has both"
            " won and lost against the rest; use prior > 0"
        )
    problem = _Problem(counts, prior, davidson=not split)
    return _newton(problem, connected, separated, tol, max_iter)


def _check_counts(counts: Comparisons, prior: float) -> None:
    k = len(counts.wins)
    if counts.wins.shape != (k, k) or counts.ties.shape != (k, k) or k < 2:
        raise StatisticsError("wins and ties are K x K with K >= 2")
    if not (np.all(counts.wins >= 0) and np.all(counts.ties >= 0)):
        raise StatisticsError("wins and ties are counts >= 0")
    if not np.array_equal(counts.ties, counts.ties.T):
        raise StatisticsError("ties are symmetric")
    if not prior >= 0:
        raise StatisticsError(f"a prior is a number of games >= 0, not {prior}")


class _Problem:
    """The negative log posterior of (theta, log nu), its gradient and Hessian."""

    def __init__(self, counts: Comparisons, prior: float, *, davidson: bool) -> None:
        self.prior, self.davidson = prior, davidson
        self.k = len(counts.wins)
        self.games, self.observed = counts.games, counts.half_wins
        self.tied = counts.ties.sum() / 2
        # For the origin, which nothing fixes without a prior.
        self.pin = 0.0 if prior else max(1.0, float(self.games.mean()))

    def start(self) -> Floats:
        return np.zeros(self.k + self.davidson)

    def value(self, x: Floats) -> float:
        theta = x[: self.k]
        lam = x[self.k] if self.davidson else -np.inf
        half = np.abs(theta[:, None] - theta[None, :]) / 2
        # log D less the mean of the two strengths: finite however far apart they are.
        log_d = half + np.log1p(np.exp(-2 * half) + np.exp(lam - half))
        mean_part = self.games.sum(axis=1) / 2
        fit = np.sum(self.games * log_d) / 2 - np.dot(self.observed - mean_part, theta)
        fit += self.prior * np.sum(np.logaddexp(0, theta) - theta / 2)
        fit += self.pin * theta.sum() ** 2 / 2 / self.k
        if self.davidson:
            fit += -self.tied * lam + self.prior * (np.logaddexp(np.log(2), lam) - lam / 3)
        return float(fit)

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        theta, k = x[: self.k], self.k
        gap = theta[:, None] - theta[None, :]
        nu = np.exp(x[k]) if self.davidson else 0.0
        e = np.exp(-np.abs(gap) / 2)
        d = 1 + e**2 + nu * e
        win = np.where(gap >= 0, 1.0, e**2) / d
        tie = nu * e / d
        expected = win + tie / 2
        phantom = _sigmoid(theta)
        gradient = np.zeros(len(x))
        gradient[:k] = np.sum(self.games * expected, axis=1) - self.observed
        gradient[:k] += self.prior * (phantom - 0.5) + self.pin * theta.sum() / k
        hessian = np.zeros((len(x), len(x)))
        # Variance of the points (1, 0.5, 0) of one comparison.
        spread = self.games * (win + tie / 4 - expected**2)
        hessian[:k, :k] = -spread + self.pin / k
        pull = self.prior * phantom * (1 - phantom)
        hessian[np.arange(k), np.arange(k)] = spread.sum(axis=1) + pull + self.pin / k
        if self.davidson:
            share = nu / (2 + nu)
            gradient[k] = np.sum(self.games * tie) / 2 - self.tied
            gradient[k] += self.prior * (share - 1 / 3)
            cross = np.sum(self.games * tie * (0.5 - expected), axis=1)
            hessian[k, :k] = hessian[:k, k] = cross
            hessian[k, k] = np.sum(self.games * tie * (1 - tie)) / 2
            hessian[k, k] += self.prior * share * (1 - share)
        return gradient, hessian


def _newton(
    problem: _Problem, connected: NDArray[np.intp], separated: bool, tol: float, max_iter: int
) -> BradleyTerry:
    x = problem.start()
    value = problem.value(x)
    scale = max(1.0, float(problem.games.sum(axis=1).max()))
    gradient, hessian = problem.derivatives(x)
    steps = 0
    while np.abs(gradient).max() > tol * scale and steps < max_iter:
        x, value, moved = _step(problem, x, value, gradient, hessian)
        steps += 1
        gradient, hessian = problem.derivatives(x)
        if not moved:
            break
    residual = float(np.abs(gradient).max())
    return BradleyTerry(
        theta=x[: problem.k],
        nu=float(np.exp(x[problem.k])) if problem.davidson else 0.0,
        covariance=_covariance(problem, hessian),
        prior=problem.prior,
        connected=connected,
        separated=separated,
        converged=residual <= tol * scale,
        n_iter=steps,
        residual=residual,
    )


def _step(
    problem: _Problem, x: Floats, value: float, gradient: Floats, hessian: Floats
) -> tuple[Floats, float, bool]:
    """A Newton step, halved until the objective falls; whether it could move at all."""
    direction = -np.linalg.solve(hessian, gradient)
    slope = float(gradient @ direction)
    size = 1.0
    # Near the optimum the fall drowns in rounding, which is no reason to stop short of it.
    slack = 1e-12 * max(1.0, abs(value))
    while size > 1e-10:
        there = x + size * direction
        reached = problem.value(there)
        if reached <= value + 1e-4 * size * slope + slack:
            return there, reached, True
        size /= 2
    return x, value, False


def _covariance(problem: _Problem, hessian: Floats) -> Floats:
    inverse: Floats = np.linalg.inv(hessian)[: problem.k, : problem.k].astype(float)
    if problem.pin:
        # What the pin says of the origin is no information of the data.
        inverse = inverse - 1 / (problem.pin * problem.k)
    return inverse


def _structure(counts: Comparisons) -> tuple[NDArray[np.intp], bool]:
    """Sets of candidates that were compared, and whether some group never lost to the rest."""
    scored = counts.wins + counts.ties > 0
    linked = scored | scored.T
    _, sets = np.unique(np.argmax(_reach(linked), axis=1), return_inverse=True)
    same = sets[:, None] == sets[None, :]
    separated = bool(np.any(same & ~_reach(scored)))
    return sets.astype(np.intp), separated


def _reach(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which pairs are joined by a path, by repeated squaring."""
    reach = edges | np.eye(len(edges), dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(len(edges)))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach


def _sigmoid(x: Floats) -> Floats:
    e = np.exp(-np.abs(x))
    p: Floats = np.where(x >= 0, 1.0, e) / (1 + e)
    return p


def bootstrap_strengths(
    first: ArrayLike,
    second: ArrayLike,
    outcome: ArrayLike,
    n_candidates: int,
    clusters: ArrayLike,
    rng: np.random.Generator,
    n: int = 1000,
    *,
    weights: ArrayLike | None = None,
    prior: float = 0.5,
    ties: Ties = "davidson",
    level: float = 0.95,
) -> Bootstrap:
    """Percentile intervals of theta from refits on resampled clusters (usually items).

    A candidate that won nothing wins nothing in any resample: for it, this interval is too
    narrow and the one by curvature (``BradleyTerry.difference``) is the honest one.

    Args:
        first: (n,), index of one candidate.
        second: (n,), index of the other.
        outcome: (n,), as in :func:`count_comparisons`.
        n_candidates: K.
        clusters: (n,), codes.
        rng: source of randomness.
        n: refits.
        weights: (n,), non-negative.
        prior: as in :func:`bradley_terry`.
        ties: as in :func:`bradley_terry`.
        level: confidence level.

    Raises:
        StatisticsError: as :func:`count_comparisons` and :func:`bradley_terry`; a refit that
            does not converge.
    """
    base = _comparison_weights(weights, np.asarray(outcome, dtype=float))

    def theta(w: Floats) -> Floats:
        counts = count_comparisons(first, second, outcome, n_candidates, base * w)
        fit = bradley_terry(counts, prior=prior, ties=ties)
        if not fit.converged:
            raise StatisticsError("a refit of the bootstrap did not converge")
        return fit.theta

    estimate = theta(np.ones(len(base)))
    draws = [theta(row) for block in cluster_weights(clusters, rng, n) for row in block]
    replicates = np.array(draws)
    tails = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(replicates, tails, axis=0)
    n_clusters = len(np.unique(np.asarray(clusters)))
    return Bootstrap(estimate, replicates, low, high, level, "percentile", 0, len(base), n_clusters)
