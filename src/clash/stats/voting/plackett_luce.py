"""Plackett-Luce strengths from rankings, with a weak prior.

Model. A ranking is drawn from the top: of those that are left, the next is i with probability
e^theta_i / sum over them (Luce 1959, Plackett 1975). With two candidates it is Bradley-Terry.

Ties. A judge that ranks m candidates as equal counts as each of the m! orders, 1/m! times; of
two, that is half a win each.

Prior. As in :mod:`clash.stats.voting.bradley_terry`: each candidate plays ``prior`` games against
a phantom of strength 0 and wins half of them. The fit is where, for each i,

    times i was chosen + prior / 2 = sum over choices of P(i | who was left) + prior sigma(theta_i)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations, product
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.intervals import Interval, normal_quantile
from clash.stats.voting.newton import newton

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


_MOST_ORDERS = 720


@dataclass(frozen=True, slots=True)
class PlackettLuce:
    """A fit.

    Attributes:
        theta: (K,), log strengths; 0 is the prior's phantom (their mean, where prior = 0).
        covariance: (K, K), by the inverse curvature of the log posterior at theta.
        residual: largest |observed - expected| in times chosen.
    """

    theta: Floats
    covariance: Floats
    prior: float
    converged: bool
    n_iter: int
    residual: float

    @property
    def standard_errors(self) -> Floats:
        """(K,), of theta against the origin; of differences use :meth:`difference`."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def first_probability(self) -> Floats:
        """(K,), probability of being ranked first among all."""
        return _softmax(self.theta)

    def difference(self, first: int, second: int, level: float = 0.95) -> Interval:
        """theta_first - theta_second with its Wald interval."""
        c = self.covariance
        variance = float(c[first, first] + c[second, second] - 2 * c[first, second])
        gap = float(self.theta[first] - self.theta[second])
        reach = normal_quantile(level) * math.sqrt(max(variance, 0.0))
        return Interval(gap, gap - reach, gap + reach, level, math.nan, math.nan, "wald")


@dataclass(frozen=True, slots=True)
class ChoiceCounts:
    """Sufficient statistics: choices from sets of candidates.

    Attributes:
        left: (S, K), which candidates each distinct set holds.
        chosen: (S, K), weight of the choices of each candidate from it.
    """

    left: NDArray[np.bool_]
    chosen: Floats


@dataclass(frozen=True, slots=True)
class RankingChoices:
    """The choices that rankings are made of, n in all.

    Attributes:
        left: (S, K), which candidates each distinct set holds.
        at: (n,), the set that was chosen from.
        chosen: (n,), who was.
        ranking: (n,), by which ranking.
        share: (n,), of the ranking's weight: below 1 where ties stand for several orders.
    """

    left: NDArray[np.bool_]
    at: NDArray[np.intp]
    chosen: NDArray[np.intp]
    ranking: NDArray[np.intp]
    share: Floats


def count_choices(ranks: ArrayLike, weights: ArrayLike | None = None) -> ChoiceCounts:
    """Collapse rankings to choices from distinct sets.

    Args:
        ranks: (R, K), smaller is better, equal is tied, NaN is unranked: such a candidate was
            not there, it did not come last.
        weights: (R,), non-negative; 1 each where not given.

    Raises:
        StatisticsError: not (R, K) with K >= 2, bad weights, or a ranking whose ties stand for
            more than 720 orders.
    """
    table = np.asarray(ranks, dtype=float)
    if table.ndim != 2 or table.shape[1] < 2:
        raise StatisticsError(f"ranks of shape {table.shape}: expected (R, K) with K >= 2")
    worth = np.ones(len(table)) if weights is None else np.asarray(weights, dtype=float)
    if worth.shape != (len(table),) or not np.all(worth >= 0):
        raise StatisticsError(f"expected {len(table)} weights >= 0, one for each ranking")
    found = ranking_choices(table)
    chosen = np.zeros(found.left.shape)
    np.add.at(chosen, (found.at, found.chosen), found.share * worth[found.ranking])
    return ChoiceCounts(found.left, chosen)


def ranking_choices(ranks: Floats) -> RankingChoices:
    """The choices of every ranking, with what each stands for.

    Raises:
        StatisticsError: a ranking whose ties stand for more than 720 orders.
    """
    # Equal rankings once: a million ballots of four candidates are 75 at most.
    unique, inverse = np.unique(_competition_ranks(ranks), axis=0, return_inverse=True)
    sets: dict[int, int] = {}
    made = [np.array(list(_steps(row, sets)), dtype=float).reshape(-1, 3) for row in unique]
    pattern = inverse.ravel().tolist()
    every = np.concatenate([made[at] for at in pattern]) if pattern else np.zeros((0, 3))
    ranking = np.repeat(np.arange(len(pattern)), [len(made[at]) for at in pattern])
    left = [[bool(members >> i & 1) for i in range(ranks.shape[1])] for members in sets]
    at, chosen = every[:, :2].T.astype(np.intp)
    shape = (-1, ranks.shape[1])
    return RankingChoices(
        np.array(left, dtype=bool).reshape(shape), at, chosen, ranking, every[:, 2]
    )


def _competition_ranks(table: Floats) -> Floats:
    """Ranks as counts of better candidates, -1 for unranked."""
    better = np.sum(table[:, None, :] < table[:, :, None], axis=2).astype(float)
    return np.where(np.isnan(table), -1.0, better)


def _orders(row: Floats) -> Iterator[list[int]]:
    """Every strict order that a ranking with ties stands for."""
    groups = [np.flatnonzero(row == rank).tolist() for rank in np.unique(row[row >= 0])]
    if math.prod(math.factorial(len(group)) for group in groups) > _MOST_ORDERS:
        raise StatisticsError(
            "a ranking ties so many candidates that it stands for more than"
            f" {_MOST_ORDERS} orders; leave tied rankings out or use bradley_terry"
        )
    for parts in product(*(permutations(group) for group in groups)):
        yield [i for part in parts for i in part]


def _steps(row: Floats, sets: dict[int, int]) -> Iterator[tuple[int, int, float]]:
    """From which set each place was filled, by whom, and in what share; new sets are numbered."""
    orders = list(_orders(row))
    for order in orders:
        left = sum(1 << i for i in order)
        for i in order[:-1]:
            yield sets.setdefault(left, len(sets)), i, 1 / len(orders)
            left &= ~(1 << i)


def plackett_luce(
    choices: ChoiceCounts, *, prior: float = 0.5, tol: float = 1e-9, max_iter: int = 100
) -> PlackettLuce:
    """Fit strengths by Newton's method on the distinct choices.

    Args:
        choices: see :func:`count_choices`.
        prior: games of each candidate against the phantom, 0 for maximum likelihood.
        tol: stop where the residual is below ``tol`` times the choices.
        max_iter: Newton steps; the result says whether they were enough.

    Raises:
        StatisticsError: a negative prior.
        NotIdentifiedError: prior = 0, and some group of candidates was never chosen where one
            of the rest was left, or never met them.
    """
    if not prior >= 0:
        raise StatisticsError(f"a prior is a number of games >= 0, not {prior}")
    k = choices.left.shape[1]
    if prior == 0 and not _connected(choices):
        raise NotIdentifiedError(
            "without a prior, strengths are finite only where every group of candidates was"
            " chosen both before and after the rest; use prior > 0"
        )
    problem = _Problem(choices.left, choices.chosen[None], prior)
    found = newton(problem, np.zeros((1, k)), tol * problem.scale, max_iter)
    covariance: Floats = np.linalg.inv(found.hessian[0]).astype(float)
    if not prior:
        covariance = covariance - 1 / (problem.pin[0] * k)
    return PlackettLuce(
        found.x[0],
        covariance,
        prior,
        bool(found.converged[0]),
        int(found.n_iter[0]),
        float(found.residual[0]),
    )


def refit_luce_strengths(
    left: NDArray[np.bool_],
    chosen: Floats,
    start: Floats | None = None,
    *,
    prior: float = 0.5,
    tol: float = 1e-7,
    max_iter: int = 100,
) -> Floats:
    """Strengths of B tables of choices from the same sets, shape (B, K): refits of a bootstrap.

    Args:
        left: (S, K).
        chosen: (B, S, K).
        start: (K,), theta to start from.
        prior: games against the phantom, > 0.
        tol: as in :func:`plackett_luce`.
        max_iter: as there.

    Returns:
        A row that did not converge is NaN.
    """
    problem = _Problem(left, chosen, prior)
    first = np.zeros(left.shape[1]) if start is None else start
    found = newton(problem, np.tile(first, (len(chosen), 1)), tol * problem.scale, max_iter)
    theta: Floats = np.where(found.converged[:, None], found.x, np.nan)
    return theta


def _connected(choices: ChoiceCounts) -> bool:
    """Whether everyone was preferred to everyone else, if through others."""
    beat = (choices.chosen > 0).T.astype(float) @ choices.left.astype(float) > 0
    reach = beat | np.eye(len(beat), dtype=bool)
    for _ in range(max(1, math.ceil(math.log2(len(beat))))):
        reach = (reach.astype(float) @ reach.astype(float)) > 0
    return bool(reach.all())


class _Problem:
    """The negative log posteriors of theta for B tables of choices from the same sets."""

    def __init__(self, left: NDArray[np.bool_], chosen: Floats, prior: float) -> None:
        self.left, self.prior = left, prior
        self.made = chosen.sum(axis=2)
        self.times = chosen.sum(axis=1)
        self.scale = np.maximum(1.0, self.times.sum(axis=1))
        # For the origin, which nothing fixes without a prior.
        self.pin = 0 * self.scale if prior else self.scale

    def value(self, x: Floats) -> Floats:
        masked = np.where(self.left, x[:, None, :], -np.inf)
        top = masked.max(axis=2, initial=-np.inf, keepdims=True)
        log_total = np.log(np.exp(masked - top).sum(axis=2)) + top[:, :, 0]
        fit = np.sum(self.made * log_total, axis=1) - np.sum(self.times * x, axis=1)
        fit += self.prior * np.sum(np.logaddexp(0, x) - x / 2, axis=1)
        return np.asarray(fit + self.pin * x.sum(axis=1) ** 2 / (2 * x.shape[1]))

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        k = x.shape[1]
        p = _softmax(np.where(self.left, x[:, None, :], -np.inf))
        phantom = np.exp(-np.logaddexp(0, -x))
        weighted = p * self.made[:, :, None]
        expected = weighted.sum(axis=1)
        gradient = expected - self.times + self.prior * (phantom - 0.5)
        gradient += (self.pin * x.sum(axis=1) / k)[:, None]
        hessian = (self.pin / k)[:, None, None] - weighted.swapaxes(1, 2) @ p
        own = expected + self.prior * phantom * (1 - phantom)
        hessian[:, np.arange(k), np.arange(k)] += own
        return gradient, hessian


def _softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    p: Floats = e / e.sum(axis=-1, keepdims=True)
    return p
