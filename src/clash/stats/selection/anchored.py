"""Stackers that start from majority: few labels move them little, many labels as far as they say.

A stacker shrunk towards nothing forgets, with few labels, that judges are mostly right. These are
shrunk towards the vote share instead, by a strength that predicts left-out rows best.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import sigmoid
from clash.stats.selection.scalar import mean_vote, normalise

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.selection.panel import Cells, Evidence
    from clash.stats.typing import Floats

RIDGES = (128.0, 32.0, 8.0, 1.0)
"""Pseudo-rows that hold each judge's own slope at zero; the first nearly leaves majority alone."""
FREE = 1e-2
"""The same for intercepts, which the labels have to themselves."""
_MOST_STEPS = 30
_SMALL = 1e-8


@dataclass(frozen=True, slots=True)
class PenalisedFit:
    """A penalised regression of counts.

    Attributes:
        theta: (D,), the parameters.
        scores: (P, C), log-probabilities up to a constant, of every row of the design; (P,)
            log-odds of class 1 where there are two.
        left_out: mean log-loss of rows predicted without themselves, to first order.
        converged: the last step changed the penalised deviance by less than 1e-8 of it.
    """

    theta: Floats
    scores: Floats
    left_out: float
    converged: bool


def log_shares(cells: Cells) -> Floats:
    """(P, C or 2), log of the vote shares after one vote for each side: majority's own odds."""
    share = mean_vote(cells)
    count = (~np.isnan(cells.values)).sum(axis=1)[:, None]
    classes = max(share.shape[1], 2)
    if share.shape[1] == 1:
        share = np.hstack([1 - share, share])
    prior = 1.0 if classes == 2 else 2 / 3
    return np.asarray(np.log((share * count + prior) / (count + classes * prior)))


def anchored_logistic(cells: Cells, evidence: Evidence) -> Floats:
    """(P, C), majority's log-odds times a factor, plus what each judge adds to them.

    Logistic regression (multinomial for three classes, least squares for scores) on the vote
    share and the votes. The factor is held near 1 by one row, the slope of each judge near 0 by
    the one of ``RIDGES`` that predicts left-out rows best. Many strong labels make it a plain
    stacker; few leave majority with a temperature.

    Fails where votes interact, and where one judge is right only for some kinds of items.
    """
    if cells.target == "scalar":
        return _anchored_mean(cells, evidence)
    shares = log_shares(cells)
    if cells.n_classes == 1:
        x = np.column_stack([shares[:, 1] - shares[:, 0], np.ones(len(shares)), cells.design])
        return sigmoid(
            _best_of(partial(binary_regression, x, evidence.n, evidence.s[:, 0]), x.shape)
        )[:, None]
    cube = _design(shares, cells)
    return _softmax(_best_of(partial(softmax_regression, cube, evidence.s), cube.shape))


def _best_of(fit: Callable[..., PenalisedFit], shape: tuple[int, ...]) -> Floats:
    """Scores of the ridge that predicts left-out rows best; each fit starts from the one before."""
    centre = np.zeros(shape[-1])
    centre[0] = 1.0
    theta, fits = centre, []
    for ridge in RIDGES:
        fits.append(fit(_penalty(shape, ridge), centre, theta))
        theta = fits[-1].theta
    return min(fits, key=lambda candidate: candidate.left_out).scores


def _design(shares: Floats, cells: Cells) -> Floats:
    """(P, C, D): the shares' factor, an intercept for each class but the first, and the judges.

    A judge adds to the class it names, one weight where that is a side and one where it is the
    tie.
    """
    n, classes = shares.shape
    votes = np.nan_to_num(cells.for_class).transpose(0, 2, 1)
    side = np.array([1.0, 0.0, 1.0])[:, None]
    levels = np.broadcast_to(np.eye(classes)[:, 1:], (n, classes, classes - 1))
    return np.concatenate([shares[:, :, None], levels, votes * side, votes * (1 - side)], axis=2)


def _penalty(shape: tuple[int, ...], ridge: float) -> Floats:
    """(D,), pseudo-rows on each parameter: the factor, the intercepts, the judges."""
    classes = shape[1] if len(shape) == _CUBE else 2
    out = np.full(shape[-1], ridge)
    out[0], out[1:classes] = 1.0, FREE
    return out


_CUBE = 3


def binary_regression(
    x: Floats, n: Floats, s: Floats, penalty: Floats, centre: Floats, start: Floats
) -> PenalisedFit:
    """Logistic regression of s in n, as :func:`softmax_regression` has it for more classes.

    Args:
        x: (P, D).
        n: (P,), observations.
        s: (P,), of class 1; a share of an observation counts as so much of a row of either class.
        penalty: (D,), ridge towards ``centre``, positive.
        centre: (D,), where the parameters are without data.
        start: (D,), where the search begins.
    """
    used = n > 0
    a, n, s = x[used], n[used], s[used]

    def deviance(theta: Floats) -> float:
        odds = a @ theta
        away = theta - centre
        return float(n @ np.logaddexp(0, odds) - s @ odds + 0.5 * penalty @ away**2)

    theta, value, converged, curve = start, deviance(start), False, np.diag(penalty)
    for _ in range(_MOST_STEPS):
        mean = sigmoid(a @ theta)
        slope = (n * mean - s) @ a + penalty * (theta - centre)
        curve = (a * (n * mean * (1 - mean))[:, None]).T @ a + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        new = deviance(theta - step)
        while new > value + _SMALL and np.abs(step).max() > _SMALL:
            step = step / 2
            new = deviance(theta - step)
        theta = theta - step
        converged = bool(abs(value - new) < _SMALL * (1 + abs(new)))
        value = new
        if converged:
            break
    odds = a @ theta
    mean = sigmoid(odds)
    lever = ((a @ np.linalg.inv(curve)) * a).sum(axis=1)
    reach = lever / (1 - mean * (1 - mean) * lever)
    # Without itself a row's log-odds move by its residual, mean minus label.
    if_one, if_zero = odds + reach * (mean - 1), odds + reach * mean
    loss = s @ np.logaddexp(0, -if_one) + (n - s) @ np.logaddexp(0, if_zero)
    return PenalisedFit(theta, np.asarray(x @ theta), float(loss / n.sum()), converged)


def softmax_regression(
    x: Floats, counts: Floats, penalty: Floats, centre: Floats, start: Floats
) -> PenalisedFit:
    """Newton's method on the penalised likelihood of counts, and its leave-one-out loss.

    The loss of left-out rows is the approximation of Rad and Maleki (2020): one Newton step from
    the optimum, exact for least squares.

    Args:
        x: (P, C, D); the score of class c in row p is ``x[p, c] @ theta``.
        counts: (P, C), observations; they need not be whole.
        penalty: (D,), ridge towards ``centre``, positive.
        centre: (D,), where the parameters are without data.
        start: (D,), where the search begins.
    """
    used = counts.sum(axis=1) > 0
    a, s = x[used], counts[used]
    n = s.sum(axis=1)
    theta, converged = start, False
    value = _deviance(a, s, penalty, theta - centre, theta)
    curve = np.diag(penalty)
    for _ in range(_MOST_STEPS):
        mean = _softmax(a @ theta)
        slope = np.tensordot(n[:, None] * mean - s, a, axes=2) + penalty * (theta - centre)
        curve = _curvature(a, n, mean) + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        new = _deviance(a, s, penalty, theta - step - centre, theta - step)
        while new > value + _SMALL and np.abs(step).max() > _SMALL:
            step = step / 2
            new = _deviance(a, s, penalty, theta - step - centre, theta - step)
        theta = theta - step
        converged = bool(abs(value - new) < _SMALL * (1 + abs(new)))
        value = new
        if converged:
            break
    return PenalisedFit(theta, x @ theta, _left_out(a, s, theta, curve), converged)


def _curvature(a: Floats, n: Floats, mean: Floats) -> Floats:
    """(D, D), sum of n a'(diag(mean) - mean mean')a."""
    size = a.shape[2]
    scaled = (a * (n[:, None] * mean)[:, :, None]).reshape(-1, size)
    centre = np.einsum("pcd,pc->pd", a, mean)
    return np.asarray(scaled.T @ a.reshape(-1, size) - (centre * n[:, None]).T @ centre)


def _deviance(a: Floats, s: Floats, penalty: Floats, away: Floats, theta: Floats) -> float:
    scores = a @ theta
    return float(s.sum(axis=1) @ _log_total(scores) - (s * scores).sum() + 0.5 * penalty @ away**2)


def _log_total(scores: Floats) -> Floats:
    """(n,), log of the sum of exp of each row; numpy's own reduction takes ten times as long."""
    top = scores.max(axis=1)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))


def _left_out(a: Floats, s: Floats, theta: Floats, curve: Floats) -> float:
    scores = a @ theta
    mean = _softmax(scores)
    inverse = np.linalg.inv(curve)
    lever = a @ inverse @ a.transpose(0, 2, 1)
    classes = mean.shape[1]
    variance = mean[:, :, None] * (np.eye(classes) - mean[:, None, :])
    shrink = np.linalg.inv(np.eye(classes) - variance @ lever)
    loss = 0.0
    for c in range(classes):
        residual = mean - np.eye(classes)[c]
        scores_without = scores + np.einsum(
            "pcd,pd->pc", lever, np.einsum("pcd,pd->pc", shrink, residual)
        )
        loss += float(s[:, c] @ (_log_total(scores_without) - scores_without[:, c]))
    return loss / float(s.sum())


def _softmax(scores: Floats) -> Floats:
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def _anchored_mean(cells: Cells, evidence: Evidence) -> Floats:
    """(P, 1), the mean vote plus a factor, an intercept and a slope for each judge, in [0, 1]."""
    side = 2 * mean_vote(cells) - 1
    x = np.hstack([side, np.ones((len(side), 1)), cells.design])
    offset = (side[:, 0] + 1) / 2
    n, excess = evidence.n, evidence.mean[:, 0] - offset
    best, least = offset, np.inf
    for ridge in RIDGES:
        penalty = np.full(x.shape[1], ridge)
        penalty[:2] = 1.0, FREE
        inverse = np.linalg.inv((x * n[:, None]).T @ x + np.diag(penalty))
        correction = x @ (inverse @ (x.T @ (n * excess)))
        lever = n * np.einsum("pd,de,pe->p", x, inverse, x)
        # Whole cells are left out, for of their rows only the mean is known.
        loss = float(n @ ((excess - correction) / np.maximum(1 - lever, _SMALL)) ** 2)
        if loss < least:
            best, least = offset + correction, loss
    return normalise(np.clip(best, 0.0, 1.0)[:, None])
