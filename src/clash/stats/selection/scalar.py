"""Maps that weigh judges one by one: vote means, reliabilities, ridge and logistic stackers."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import logit, sigmoid, softmax
from clash.stats.selection.penalised_regression import binomial, multinomial

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.selection.panel import Cells, Evidence
    from clash.stats.typing import Bools, Floats


ALPHA = 0.5
"""Pseudo-rows of the base rate in every block of an isotonic map."""


def normalise(p: Floats) -> Floats:
    """Predictions by class that add up to one; a single column is left alone."""
    if p.shape[1] == 1:
        return p
    q = np.maximum(p, 1e-6)
    return np.asarray(q / q.sum(axis=1, keepdims=True))


def isotonic(score: Floats, evidence: Evidence) -> Floats:
    """Calibrate scores by isotonic regression on the labelled rows, column by column.

    The direction is that of the correlation, so that a score that points the wrong way is reversed.
    Blocks are smoothed as cells of the joint table are, since a block of three rows that agree is
    weak evidence; the map is linear between blocks and constant beyond them.

    Args:
        score: (P, C).
        evidence: the labelled rows.

    Returns:
        (P, C); the base rate where nothing is labelled.
    """
    base, has_rows = evidence.base, evidence.n > 0
    if not has_rows.any():
        return np.tile(base, (len(score), 1))
    columns = [
        _monotone(score[:, c], has_rows, evidence.n, evidence.mean[:, c], float(base[c]))
        for c in range(score.shape[1])
    ]
    return normalise(np.column_stack(columns))


def _monotone(score: Floats, has_rows: Bools, n: Floats, mean: Floats, base: float) -> Floats:
    from scipy.optimize import isotonic_regression

    x, code = np.unique(np.round(score[has_rows], 9), return_inverse=True)
    weight = np.bincount(code, n[has_rows])
    y = np.bincount(code, n[has_rows] * mean[has_rows]) / weight
    centre = x - weight @ x / weight.sum()
    rising = bool(weight @ (centre * y) >= 0)
    fit = isotonic_regression(y, weights=weight, increasing=rising)
    size = np.repeat(fit.weights, np.diff(fit.blocks))
    smooth = (size * fit.x + ALPHA * base) / (size + ALPHA)
    # Small blocks are pulled further, which can put two of them out of order.
    level = isotonic_regression(smooth, weights=weight, increasing=rising).x
    return np.asarray(np.interp(score, x, level))


def mean_vote(cells: Cells) -> Floats:
    """(P, C), share of the votes for each class; equal shares where nobody voted."""
    votes = cells.for_class
    is_vote = ~np.isnan(votes)
    count = is_vote.sum(axis=1)
    prior = 0.5 if cells.n_classes == 1 else 1 / 3
    total = np.where(is_vote, votes, 0.0).sum(axis=1)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), prior))


def vote_shares(cells: Cells) -> Floats:
    """(P, C), prediction of uniform majority without any label.

    Shares of votes are smoothed, since a few judges who agree are not certain. A mean score is used
    as it stands, so that judges who all give the highest score predict the highest.
    """
    return mean_vote(cells) if cells.target == "scalar" else smoothed_shares(cells)


def smoothed_shares(cells: Cells) -> Floats:
    """(P, C), share of the votes for each class after two more votes, spread evenly over the classes."""
    votes = cells.for_class
    cast = ~np.isnan(votes)
    prior = 1.0 if cells.n_classes == 1 else 2 / 3
    return np.asarray((np.where(cast, votes, 0.0).sum(axis=1) + prior) / (cast.sum(axis=1) + 2))


def majority(cells: Cells, evidence: Evidence) -> Floats:
    """Uniform majority with one temperature on its log-odds, which never changes a verdict.

    The anchor: every other family has to beat it.
    """
    share, has_rows = smoothed_shares(cells), evidence.n > 0
    n, s = evidence.n[has_rows], evidence.s[has_rows]
    if cells.n_classes == 1:
        odds = logit(share)
        x = odds[has_rows, 0]
        return sigmoid(
            _best_factor(lambda a: float(n @ np.logaddexp(0, a * x) - s[:, 0] @ (a * x))) * odds
        )
    logs = np.log(share)
    y = logs[has_rows]
    return softmax(
        _best_factor(lambda a: float(n @ np.logaddexp.reduce(a * y, axis=1) - (s * a * y).sum()))
        * logs
    )


def _best_factor(loss: Callable[[float], float]) -> float:
    """The positive factor on log-odds with the least log-loss, shrunk to 1 by one pseudo-row."""
    from scipy.optimize import minimize_scalar

    minimum = minimize_scalar(
        lambda a: loss(a) + 0.5 * (a - 1) ** 2, bounds=_FACTORS, method="bounded"
    )
    return float(minimum.x)


_FACTORS = (0.02, 8.0)


def one_coin_score(cells: Cells, evidence: Evidence) -> Floats:
    """(P, C), log-odds by each judge's accuracy on the labelled rows, as if independent.

    A judge that is right with probability r, and else names each other class alike, adds
    log(r (C - 1) / (1 - r)) to the class it names. Two pseudo-votes, one right and one wrong, keep a
    judge without an observed error from deciding alone.
    """
    votes, two_sided = cells.for_class, cells.n_classes == 1
    is_vote = ~np.isnan(votes[:, :, 0])
    values = np.nan_to_num(votes)
    rows = evidence.n[:, None]
    if two_sided:
        v, m = values[:, :, 0], evidence.mean
        # Expected credit of a vote v against a share m of labels for side 1.
        hit = np.where(is_vote, v * m + (1 - v) * (1 - m), 0.0)
    else:
        hit = np.einsum("pkc,pc->pk", values, evidence.mean)
    right = ((rows * hit).sum(axis=0) + 1) / ((rows * is_vote).sum(axis=0) + 2)
    weight = np.log(right * (1 if two_sided else 2)) - np.log1p(-right)
    if two_sided:
        return np.asarray(np.where(is_vote, 2 * values[:, :, 0] - 1, 0.0) @ weight)[:, None]
    return softmax(np.einsum("pkc,k->pc", values, weight))


def with_products(design: Floats) -> Floats:
    """The design, followed by the product of every two columns."""
    pairs = list(combinations(range(design.shape[1]), 2))
    if not pairs:
        return design
    first, second = np.array(pairs).T
    return np.hstack([design, design[:, first] * design[:, second]])


def ridge_score(cells: Cells, evidence: Evidence, *, products: bool = False) -> Floats:
    """(P, C), least squares on the votes with a ridge of one row, by the normal equations."""
    x = with_products(cells.design) if products else cells.design
    n, mean = evidence.n, evidence.mean
    centre_x, centre_y = n @ x / n.sum(), n @ mean / n.sum()
    a, b = x - centre_x, mean - centre_y
    rows = a * n[:, None]
    slopes = np.linalg.solve(rows.T @ a + np.eye(x.shape[1]), rows.T @ b)
    return np.asarray(centre_y + a @ slopes)


def logistic(cells: Cells, evidence: Evidence, *, products: bool = False) -> Floats:
    """(P, C), logistic regression on the votes, ridge of one row; multinomial for three classes.

    A target that is a share counts as a fraction of a row of either side.
    """
    x = with_products(cells.design) if products else cells.design
    if cells.n_classes == 1:
        odds = binomial(x, evidence.n, evidence.s[:, 0])
        return sigmoid(odds)[:, None]
    return _multinomial(x, evidence)


def _multinomial(x: Floats, evidence: Evidence) -> Floats:
    """(P, 3); a class without a labelled row gets its base rate."""
    classes = np.flatnonzero(evidence.s.sum(axis=0) > 0)
    p = np.tile(evidence.base, (len(x), 1))
    if len(classes) < 2:
        return p
    p[:, classes] = multinomial(x, evidence.s[:, classes]) * evidence.base[classes].sum()
    return normalise(p)
