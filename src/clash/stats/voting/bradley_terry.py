"""Bradley-Terry strengths from paired comparisons, with ties by Davidson and a weak prior.

Model. With strengths theta and a tie parameter nu, of one comparison of i with j

    P(i wins) = e^theta_i / D,   P(tie) = nu e^((theta_i + theta_j) / 2) / D,
    D = e^theta_i + e^theta_j + nu e^((theta_i + theta_j) / 2)

(Bradley, Terry 1952; Davidson 1970). Without ties nu = 0.

Prior. Each candidate also plays ``prior`` games against a phantom of strength 0 and wins half
of them; where there are ties, ``prior`` games between two equals are added of which a third is
tied. So a candidate that never wins has a finite strength with a wide interval, groups that
never met are tied together only by the prior (see ``linked_set``), and strengths have an origin.
The log posterior is concave, and its maximum is where, for each i,

    wins_i + ties_i / 2 + prior / 2 = expected wins_i + expected ties_i / 2 + prior sigma(theta_i)

with ties counted as half wins: the fit's ``residual`` is the largest difference of the two sides.

Derivatives. Let x be i's points (1, 1/2, 0) and t whether the two tied: one comparison has the log
probability x theta_i + (1 - x) theta_j + t log nu - log D, an exponential family whose log
normaliser is log D. Hence the gradient of log D in (theta_i, log nu) is (E x, E t), and its Hessian
their covariance:

    Var x = P(win) + P(tie) / 4 - (E x)^2,   Cov(x, t) = P(tie) (1/2 - E x),
    Var t = P(tie) (1 - P(tie)),

with -Var x between theta_i and theta_j, since j has the points 1 - x. A covariance is positive
semidefinite: this is why the log posterior is concave, and Newton's method finds its only maximum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.logistic import sigmoid
from clash.stats.optimise import minimise

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


TieModel = Literal["davidson", "half"]

LONGEST_STEP = 8.0
"""Of a log strength: of a candidate that only won or lost, the posterior is nearly flat far out."""


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


@dataclass(frozen=True, slots=True)
class BradleyTerry:
    """A fit.

    Attributes:
        theta: (K,), log strengths; 0 is the prior's phantom (their mean, where prior = 0).
        nu: tie parameter; 0 where no ties were modelled.
        covariance: (K, K) of theta, by the inverse curvature of the log posterior at theta.
        prior: games of the prior for each candidate.
        linked_set: (K,), a number for each set of candidates that comparisons link, in either
            direction; across sets only the prior compares.
        is_separated: there is a group that never lost a point to the rest, so that without the
            prior there would be no finite fit.
        residual: largest |observed - expected| in wins.
    """

    theta: Floats
    nu: float
    covariance: Floats
    prior: float
    linked_set: NDArray[np.intp]
    is_separated: bool
    converged: bool
    n_iter: int
    residual: float


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
    wins, losses, ties = (
        _count_matrix(pair, w, y == value, n_candidates) for value in (1.0, 0.0, 0.5)
    )
    return Comparisons(wins + losses.T, ties + ties.T)


def _count_matrix(pair: NDArray[np.intp], w: Floats, mask: NDArray[np.bool_], k: int) -> Floats:
    total: Floats = np.bincount(pair, w * mask, k * k).reshape(k, k).astype(float)
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
    counts: Comparisons, *, prior: float = 0.5, ties: TieModel = "davidson"
) -> BradleyTerry:
    """Fit strengths by Newton's method on the K x K counts.

    Args:
        counts: see :func:`count_comparisons`. Weights count as repeated comparisons in the
            standard errors.
        prior: games of each candidate against the phantom, 0 for maximum likelihood.
        ties: ``davidson`` models them; ``half`` counts each as half a win for both.

    Raises:
        StatisticsError: counts that are negative or not K x K, or a negative prior.
        NotIdentifiedError: prior = 0 and some group of candidates never lost to, or never met,
            the rest.
    """
    _check_counts(counts, prior)
    as_halves = ties == "half" or not counts.ties.any()
    if as_halves:
        counts = Comparisons(counts.wins + counts.ties / 2, np.zeros_like(counts.ties))
    sets, apart = linked_sets(counts), is_separated(counts)
    if prior == 0 and (apart or sets.max(initial=0) > 0):
        raise NotIdentifiedError(
            "without a prior, strengths are finite only where every group of candidates has both"
            " won and lost against the rest; use prior > 0"
        )
    problem = _Problem(counts.wins[None], counts.ties[None], prior, davidson=not as_halves)
    start = np.zeros((1, problem.k + problem.davidson))
    minimum = minimise(
        problem,
        start,
        gradient_tol=1e-9 * _scale(problem),
        max_iter=100,
        longest_step=LONGEST_STEP,
    )
    return BradleyTerry(
        theta=minimum.x[0, : problem.k],
        nu=float(np.exp(minimum.x[0, problem.k])) if problem.davidson else 0.0,
        covariance=_covariance(problem, minimum.hessian[0]),
        prior=prior,
        linked_set=sets,
        is_separated=apart,
        converged=bool(minimum.converged[0]),
        n_iter=int(minimum.n_iter[0]),
        residual=float(minimum.gradient_norm[0]),
    )


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
    """The negative log posteriors of (theta, log nu) for B tables of counts."""

    def __init__(self, wins: Floats, ties: Floats, prior: float, *, davidson: bool) -> None:
        self.prior, self.davidson = prior, davidson
        self.k = wins.shape[-1]
        self.games = wins + wins.swapaxes(1, 2) + ties
        self.n_games = self.games.sum(axis=2)
        self.points = (wins + ties / 2).sum(axis=2)
        self.tied = ties.sum(axis=(1, 2)) / 2
        # The likelihood does not change when all strengths are raised alike, so that its Hessian is
        # singular along (1, …, 1). pin (sum theta)^2 / (2 K) gives it the curvature pin there and
        # none elsewhere: the maximum with sum 0 is found, and no difference of strengths moves.
        self.pin = np.maximum(1.0, self.games.mean(axis=(1, 2))) if not prior else 0 * self.tied

    def value(self, x: Floats) -> Floats:
        theta = x[:, : self.k]
        lam = x[:, self.k] if self.davidson else np.full(len(x), -np.inf)
        half = np.abs(theta[:, :, None] - theta[:, None, :]) / 2
        # log D less the mean of the two strengths: finite however far apart they are.
        log_d = half + np.logaddexp(np.log1p(np.exp(-2 * half)), lam[:, None, None] - half)
        fit = np.sum(self.games * log_d, axis=(1, 2)) / 2
        fit -= np.sum((self.points - self.n_games / 2) * theta, axis=1)
        fit += self.prior * np.sum(np.logaddexp(0, theta) - theta / 2, axis=1)
        fit += self.pin * theta.sum(axis=1) ** 2 / 2 / self.k
        if self.davidson:  # between two equals P(tie) = nu / (2 + nu), a third at nu = 1
            fit += -self.tied * lam + self.prior * (np.logaddexp(np.log(2), lam) - lam / 3)
        return np.asarray(fit)

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        theta, k = x[:, : self.k], self.k
        gap = theta[:, :, None] - theta[:, None, :]
        nu = np.exp(x[:, k]) if self.davidson else np.zeros(len(x))
        e = np.exp(-np.abs(gap) / 2)
        d = 1 + e**2 + nu[:, None, None] * e
        win = np.where(gap >= 0, 1.0, e**2) / d
        tie = nu[:, None, None] * e / d
        expectation = win + tie / 2
        phantom = sigmoid(theta)
        gradient = np.zeros(x.shape)
        gradient[:, :k] = np.sum(self.games * expectation, axis=2) - self.points
        gradient[:, :k] += self.prior * (phantom - 0.5)
        gradient[:, :k] += (self.pin * theta.sum(axis=1) / k)[:, None]
        hessian = np.zeros((*x.shape, x.shape[1]))
        # Variance of the points (1, 0.5, 0) of one comparison.
        spread = self.games * (win + tie / 4 - expectation**2)
        hessian[:, :k, :k] = self.pin[:, None, None] / k - spread
        pull = self.prior * phantom * (1 - phantom) + self.pin[:, None] / k
        hessian[:, np.arange(k), np.arange(k)] = spread.sum(axis=2) + pull
        if self.davidson:
            share = nu / (2 + nu)
            gradient[:, k] = np.sum(self.games * tie, axis=(1, 2)) / 2 - self.tied
            gradient[:, k] += self.prior * (share - 1 / 3)
            cross = np.sum(self.games * tie * (0.5 - expectation), axis=2)
            hessian[:, k, :k] = hessian[:, :k, k] = cross
            hessian[:, k, k] = np.sum(self.games * tie * (1 - tie), axis=(1, 2)) / 2
            hessian[:, k, k] += self.prior * share * (1 - share)
        return gradient, hessian


def refit_strengths(
    wins: Floats,
    ties: Floats,
    start: Floats | None = None,
    *,
    prior: float = 0.5,
    davidson: bool = True,
    tol: float = 1e-7,
    max_iter: int = 100,
) -> Floats:
    """Strengths of B tables of counts at once, shape (B, K): the refits of a bootstrap.

    Args:
        wins: (B, K, K).
        ties: (B, K, K), symmetric.
        start: (K + 1,), theta and log nu to start from.
        prior: games against the phantom, > 0.
        davidson: ties are modelled; else each is half a win for both.
        tol: as in :func:`bradley_terry`.
        max_iter: as there.

    Returns:
        A row that did not converge is NaN.
    """
    if not davidson:
        wins, ties = wins + ties / 2, np.zeros_like(ties)
    problem = _Problem(wins, ties, prior, davidson=davidson)
    size = problem.k + davidson
    origin = np.zeros(size) if start is None else start[:size]
    minimum = minimise(
        problem,
        np.tile(origin, (len(wins), 1)),
        gradient_tol=tol * _scale(problem),
        max_iter=max_iter,
        longest_step=LONGEST_STEP,
    )
    theta: Floats = np.where(minimum.converged[:, None], minimum.x[:, : problem.k], np.nan)
    return theta


def _scale(problem: _Problem) -> Floats:
    """The games of the candidate with most, (B,): the residual is measured by them."""
    most: Floats = np.maximum(1.0, problem.n_games.max(axis=1))
    return most


def _covariance(problem: _Problem, hessian: Floats) -> Floats:
    inverse: Floats = np.linalg.inv(hessian)[: problem.k, : problem.k].astype(float)
    if not problem.prior:
        # Along the unit vector (1, …, 1) / sqrt(K) the Hessian is the pin alone, whose inverse adds
        # 1 / (pin K) to every entry: no information of the data.
        inverse = inverse - 1 / (problem.pin[0] * problem.k)
    return inverse


def linked_sets(counts: Comparisons) -> NDArray[np.intp]:
    """A number for each set of candidates that comparisons link, in either direction, (K,)."""
    edges = counts.games > 0
    _, sets = np.unique(np.argmax(reachable(edges), axis=1), return_inverse=True)
    return sets.astype(np.intp)


def is_separated(counts: Comparisons) -> bool:
    """Whether some group never lost a point to others that it met: no fit without a prior.

    Ford (1957): strengths are finite exactly where, of every two groups that candidates can be
    parted into, each has won from the other, that is, where "has won from" joins every candidate
    to every other in both directions.
    """
    sets = linked_sets(counts)
    same_set = sets[:, None] == sets[None, :]
    return bool(np.any(same_set & ~reachable(counts.wins + counts.ties > 0)))


def reachable(edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which candidates are joined by a path of edges, (K, K); everyone to themselves.

    Squaring doubles the length of the paths that are covered, and none need be longer than K.
    """
    reach = edges | np.eye(len(edges), dtype=bool)
    for _ in range(max(1, int(np.ceil(np.log2(len(edges)))))):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    return reach
