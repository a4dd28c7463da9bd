"""A logistic stacker shrunk to majority: few labels move it little, many labels as far as they say.

A stacker shrunk to zero ignores, with few labels, that judges are mostly right. This one is shrunk to
the vote share, by the ridge that predicts left-out rows best. With o_p majority's log-odds of pattern p
and v_pj judge j's vote as -1, 0 or 1, the log-odds are

    t_0 o_p + t_1 + sum_j b_j v_pj,   penalty  (t_0 - 1)^2 / 2 + FREE t_1^2 / 2 + ridge sum_j b_j^2 / 2

so that b = 0 and t_0 = 1 is majority itself.
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
from clash.stats.selection.scalar import mean_vote, normalise, smoothed_shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.selection.panel import Cells, Evidence
    from clash.stats.typing import Floats

RIDGES = (128.0, 32.0, 8.0, 1.0)
"""Pseudo-rows that shrink each judge's own slope to zero; the first all but keeps majority."""
FREE = 1e-2
"""The same for intercepts, which are fitted to the labels almost freely."""
_SMALL = 1e-8


def log_shares(cells: Cells) -> Floats:
    """(P, C or 2), log of the smoothed vote shares, both sides where C = 1: majority's log-odds."""
    share = smoothed_shares(cells)
    return np.log(np.hstack([1 - share, share]) if share.shape[1] == 1 else share)


def anchored_logistic(cells: Cells, evidence: Evidence) -> Floats:
    """(P, C), majority's log-odds times a factor, plus a term for each judge.

    Logistic regression (multinomial for three classes, least squares for scores) on the vote
    share and the votes. One pseudo-row shrinks the factor to 1; the one of ``RIDGES`` that predicts
    left-out rows best shrinks the judges' slopes to 0. With many labels the map is a plain stacker,
    with few it is majority with a temperature.

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
    """Scores at the ridge that predicts left-out rows best; each fit starts from the one before."""
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
    penalty = np.full(shape[-1], ridge)
    penalty[0], penalty[1:classes] = 1.0, FREE
    return penalty


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
        # Exact for least squares: residual / (1 - lever). Whole cells are left out, since only the
        # mean of their rows is known.
        loss = float(n @ ((excess - correction) / np.maximum(1 - lever, _SMALL)) ** 2)
        if loss < least:
            best, least = offset + correction, loss
    return normalise(np.clip(best, 0.0, 1.0)[:, None])
