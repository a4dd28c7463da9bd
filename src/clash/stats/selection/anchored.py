"""Stackers that start from majority: few labels move them little, many labels as far as they say.

A stacker shrunk towards nothing forgets, with few labels, that judges are mostly right. These are
shrunk towards the vote share instead, by a strength that predicts left-out rows best.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import sigmoid, softmax
from clash.stats.selection.penalised_regression import (
    PenalisedFit,
    binary_regression,
    softmax_regression,
)
from clash.stats.selection.scalar import mean_vote, normalise

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.selection.panel import Cells, Evidence
    from clash.stats.typing import Floats

RIDGES = (128.0, 32.0, 8.0, 1.0)
"""Pseudo-rows that hold each judge's own slope at zero; the first nearly leaves majority alone."""
FREE = 1e-2
"""The same for intercepts, which the labels have to themselves."""
_SMALL = 1e-8


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
    return softmax(_best_of(partial(softmax_regression, cube, evidence.s), cube.shape))


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
