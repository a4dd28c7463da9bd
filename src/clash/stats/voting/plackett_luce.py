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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

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
class Choices:
    """Sufficient statistics: choices from sets of candidates.

    Attributes:
        left: (S, K), which candidates each distinct set holds.
        chosen: (S, K), weight of the choices of each candidate from it.
    """

    left: NDArray[np.bool_]
    chosen: Floats


def count_choices(ranks: ArrayLike, weights: ArrayLike | None = None) -> Choices:
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
    # Equal rankings once: a million ballots of four candidates are 75 at most.
    unique, inverse = np.unique(_dense(table), axis=0, return_inverse=True)
    worth = np.bincount(inverse.ravel(), weights=worth, minlength=len(unique))
    chosen: dict[int, Floats] = {}
    for row, weight in zip(unique, worth.tolist(), strict=True):
        orders = list(_orders(row))
        for order in orders:
            _choose(order, weight / len(orders), chosen, table.shape[1])
    sets = np.array(list(chosen), dtype=object)
    left = np.array([[bool(s >> i & 1) for i in range(table.shape[1])] for s in sets], dtype=bool)
    counts = np.array(list(chosen.values()))
    empty = (0, table.shape[1])
    return Choices(left.reshape(-1, table.shape[1]), counts if len(counts) else np.zeros(empty))


def _dense(table: Floats) -> Floats:
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


def _choose(order: list[int], weight: float, chosen: dict[int, Floats], k: int) -> None:
    left = sum(1 << i for i in order)
    for i in order[:-1]:
        chosen.setdefault(left, np.zeros(k))[i] += weight
        left &= ~(1 << i)


def plackett_luce(
    choices: Choices, *, prior: float = 0.5, tol: float = 1e-9, max_iter: int = 100
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
    pin = 0.0 if prior else max(1.0, float(choices.chosen.sum()))
    theta, scale = np.zeros(k), max(1.0, float(choices.chosen.sum()))
    gradient, hessian = _derivatives(choices, theta, prior, pin)
    steps = 0
    while np.abs(gradient).max() > tol * scale and steps < max_iter:
        moved = _step(choices, theta, prior, pin, gradient, hessian)
        if moved is None:
            break
        theta, steps = moved, steps + 1
        gradient, hessian = _derivatives(choices, theta, prior, pin)
    residual = float(np.abs(gradient).max())
    covariance: Floats = np.linalg.inv(hessian).astype(float)
    if pin:
        covariance = covariance - 1 / (pin * k)
    return PlackettLuce(theta, covariance, prior, residual <= tol * scale, steps, residual)


def _connected(choices: Choices) -> bool:
    """Whether everyone was preferred to everyone else, if through others."""
    beat = (choices.chosen > 0).T.astype(float) @ choices.left.astype(float) > 0
    reach = beat | np.eye(len(beat), dtype=bool)
    for _ in range(max(1, math.ceil(math.log2(len(beat))))):
        reach = (reach.astype(float) @ reach.astype(float)) > 0
    return bool(reach.all())


def _value(choices: Choices, theta: Floats, prior: float, pin: float) -> float:
    masked = np.where(choices.left, theta, -np.inf)
    top = masked.max(axis=1, initial=-np.inf, keepdims=True)
    log_total = np.log(np.exp(masked - top).sum(axis=1)) + top[:, 0]
    fit = choices.chosen.sum(axis=1) @ log_total - np.sum(choices.chosen @ theta)
    fit += prior * np.sum(np.logaddexp(0, theta) - theta / 2)
    return float(fit + pin * theta.sum() ** 2 / (2 * len(theta)))


def _derivatives(
    choices: Choices, theta: Floats, prior: float, pin: float
) -> tuple[Floats, Floats]:
    k, made = len(theta), choices.chosen.sum(axis=1)
    p = _softmax(np.where(choices.left, theta, -np.inf))
    phantom = np.exp(-np.logaddexp(0, -theta))
    gradient = made @ p - choices.chosen.sum(axis=0) + prior * (phantom - 0.5)
    gradient += pin * theta.sum() / k
    weighted = p * made[:, None]
    hessian = np.diag(weighted.sum(axis=0) + prior * phantom * (1 - phantom)) - weighted.T @ p
    return gradient, hessian + pin / k


def _step(
    choices: Choices, theta: Floats, prior: float, pin: float, gradient: Floats, hessian: Floats
) -> Floats | None:
    """A Newton step, halved until the objective falls; None where it cannot."""
    direction = -np.linalg.solve(hessian, gradient)
    value, slope = _value(choices, theta, prior, pin), float(gradient @ direction)
    slack, size = 1e-12 * max(1.0, abs(value)), 1.0
    while size > 1e-10:
        there: Floats = theta + size * direction
        if _value(choices, there, prior, pin) <= value + 1e-4 * size * slope + slack:
            return there
        size /= 2
    return None


def _softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max(axis=-1, keepdims=True, initial=-np.inf))
    p: Floats = e / e.sum(axis=-1, keepdims=True)
    return p
