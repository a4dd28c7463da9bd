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
from clash.stats.logistic import sigmoid, softmax
from clash.stats.optimise import minimise
from clash.stats.voting.bradley_terry import LONGEST_STEP, reachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class ChoiceCounts:
    """Sufficient statistics: choices from sets of candidates.

    Attributes:
        choice_sets: (S, K), which candidates each distinct set holds.
        counts: (S, K), weight of the choices of each candidate from it.
    """

    choice_sets: NDArray[np.bool_]
    counts: Floats


@dataclass(frozen=True, slots=True)
class RankingChoices:
    """The choices that rankings consist of, n in all.

    Attributes:
        choice_sets: (S, K), which candidates each distinct set holds.
        set_index: (n,), the set that was chosen from.
        candidate: (n,), which of its candidates was chosen.
        ranking: (n,), row of the ranking that made the choice.
        share: (n,), of the ranking's weight: below 1 where ties stand for several orders.
    """

    choice_sets: NDArray[np.bool_]
    set_index: NDArray[np.intp]
    candidate: NDArray[np.intp]
    ranking: NDArray[np.intp]
    share: Floats


def ranking_choices(ranks: Floats) -> RankingChoices:
    """The choices of every ranking, with what each stands for.

    Raises:
        StatisticsError: a ranking whose ties stand for more than 720 orders.
    """
    # Equal rankings once: a million rankings of four candidates are 75 at most.
    unique, inverse = np.unique(_competition_ranks(ranks), axis=0, return_inverse=True)
    sets: dict[int, int] = {}
    patterns = [
        np.array(list(_choices_of(row, sets)), dtype=float).reshape(-1, 3) for row in unique
    ]
    pattern = inverse.ravel().tolist()
    rows = (
        np.concatenate([patterns[set_index] for set_index in pattern])
        if pattern
        else np.zeros((0, 3))
    )
    ranking = np.repeat(
        np.arange(len(pattern)), [len(patterns[set_index]) for set_index in pattern]
    )
    membership = [[bool(members >> i & 1) for i in range(ranks.shape[1])] for members in sets]
    set_index, candidate = rows[:, :2].T.astype(np.intp)
    shape = (-1, ranks.shape[1])
    return RankingChoices(
        np.array(membership, dtype=bool).reshape(shape), set_index, candidate, ranking, rows[:, 2]
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
            f"a ranking with so many ties represents more than {_MOST_ORDERS} orders; leave tied "
            "rankings out or use bradley_terry"
        )
    for parts in product(*(permutations(group) for group in groups)):
        yield [i for part in parts for i in part]


def _choices_of(row: Floats, sets: dict[int, int]) -> Iterator[tuple[int, int, float]]:
    """For each place but the last: the set chosen from, the candidate chosen, the order's share.

    A set that is not in ``sets`` (bits to number) yet is numbered there.
    """
    orders = list(_orders(row))
    for order in orders:
        remaining = sum(1 << i for i in order)
        for i in order[:-1]:
            yield sets.setdefault(remaining, len(sets)), i, 1 / len(orders)
            remaining &= ~(1 << i)


def plackett_luce(choices: ChoiceCounts, *, prior: float = 0.5) -> PlackettLuce:
    """Fit strengths by Newton's method on the distinct choices.

    Args:
        choices: weights of the choices from each set; :func:`ranking_choices` lists them.
        prior: games of each candidate against the phantom, 0 for maximum likelihood.

    Raises:
        StatisticsError: a negative prior.
        NotIdentifiedError: prior = 0, and some group of candidates was never chosen where one
            of the rest was left, or never met them.
    """
    if not prior >= 0:
        raise StatisticsError(f"a prior is a number of games >= 0, not {prior}")
    k = choices.choice_sets.shape[1]
    if prior == 0 and not _is_connected(choices):
        raise NotIdentifiedError(
            "without a prior, strengths are finite only where every group of candidates was"
            " chosen both before and after the rest; use prior > 0"
        )
    problem = _Problem(choices.choice_sets, choices.counts[None], prior)
    minimum = minimise(
        problem,
        np.zeros((1, k)),
        gradient_tol=1e-9 * problem.scale,
        max_iter=100,
        longest_step=LONGEST_STEP,
    )
    covariance: Floats = np.linalg.inv(minimum.hessian[0]).astype(float)
    if not prior:
        covariance = covariance - 1 / (problem.pin[0] * k)
    return PlackettLuce(
        minimum.x[0],
        covariance,
        prior,
        bool(minimum.converged[0]),
        int(minimum.n_iter[0]),
        float(minimum.gradient_norm[0]),
    )


def refit_luce_strengths(
    choice_sets: NDArray[np.bool_],
    counts: Floats,
    start: Floats | None = None,
    *,
    prior: float = 0.5,
) -> Floats:
    """Strengths of B tables of choices from the same sets, shape (B, K): refits of a bootstrap.

    Args:
        choice_sets: (S, K).
        counts: (B, S, K).
        start: (K,), theta to start from.
        prior: games against the phantom, > 0.

    Returns:
        A row that did not converge is NaN.
    """
    problem = _Problem(choice_sets, counts, prior)
    origin = np.zeros(choice_sets.shape[1]) if start is None else start
    minimum = minimise(
        problem,
        np.tile(origin, (len(counts), 1)),
        gradient_tol=1e-7 * problem.scale,
        max_iter=100,
        longest_step=LONGEST_STEP,
    )
    theta: Floats = np.where(minimum.converged[:, None], minimum.x, np.nan)
    return theta


def _is_connected(choices: ChoiceCounts) -> bool:
    """Whether everyone was chosen before everyone else, directly or through others."""
    was_preferred = (choices.counts > 0).T.astype(float) @ choices.choice_sets.astype(float) > 0
    return bool(reachable(was_preferred).all())


class _Problem:
    """The negative log posteriors of theta for B tables of choices from the same sets.

    With n_S choices from set S and p_S(i) = e^theta_i / sum over S, the log likelihood is
    sum_i times_i theta_i - sum_S n_S log(sum over S of e^theta). Hence the gradient of its negative
    is sum_S n_S p_S - times, and the Hessian sum_S n_S (diag(p_S) - p_S p_S'): a covariance, so that
    the problem is convex. ``pin`` fixes the origin where there is no prior, as in
    :mod:`clash.stats.voting.bradley_terry`.
    """

    def __init__(self, choice_sets: NDArray[np.bool_], counts: Floats, prior: float) -> None:
        self.choice_sets, self.prior = choice_sets, prior
        self.set_totals = counts.sum(axis=2)
        self.times = counts.sum(axis=1)
        self.scale = np.maximum(1.0, self.times.sum(axis=1))
        self.pin = 0 * self.scale if prior else self.scale

    def value(self, x: Floats) -> Floats:
        """See :class:`clash.stats.optimise.ConvexProblem`."""
        strengths = np.where(self.choice_sets, x[:, None, :], -np.inf)
        top = strengths.max(axis=2, initial=-np.inf, keepdims=True)
        log_total = np.log(np.exp(strengths - top).sum(axis=2)) + top[:, :, 0]
        value = np.sum(self.set_totals * log_total, axis=1) - np.sum(self.times * x, axis=1)
        value += self.prior * np.sum(np.logaddexp(0, x) - x / 2, axis=1)
        return np.asarray(value + self.pin * x.sum(axis=1) ** 2 / (2 * x.shape[1]))

    def derivatives(self, x: Floats) -> tuple[Floats, Floats]:
        """See :class:`clash.stats.optimise.ConvexProblem`."""
        k = x.shape[1]
        p = softmax(np.where(self.choice_sets, x[:, None, :], -np.inf))
        phantom = sigmoid(x)
        by_set = p * self.set_totals[:, :, None]
        expectation = by_set.sum(axis=1)
        gradient = expectation - self.times + self.prior * (phantom - 0.5)
        gradient += (self.pin * x.sum(axis=1) / k)[:, None]
        hessian = (self.pin / k)[:, None, None] - by_set.swapaxes(1, 2) @ p
        diagonal = expectation + self.prior * phantom * (1 - phantom)
        hessian[:, np.arange(k), np.arange(k)] += diagonal
        return gradient, hessian
