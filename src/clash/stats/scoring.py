"""How good probabilities and verdicts are against labels.

``p`` is the probability of class 1, shape (n,), ``y`` the label, 1 or 0, shape (n,). Rows with a
NaN label are left out by the caller; a NaN probability is an error here, for it would otherwise
be a silent omission.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.voting.majority import credit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from clash.stats.typing import Floats


Bins = Literal["mass", "width"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A reliability diagram and its summary.

    Attributes:
        ece: expected calibration error, mean |accuracy - confidence| over items.
        confidence: (B,), mean p of each bin that holds items, in rising order.
        accuracy: (B,), share of label 1 in each.
        count: (B,), items in each.
    """

    ece: float
    confidence: Floats
    accuracy: Floats
    count: NDArray[np.intp]


def log_loss(p: ArrayLike, y: ArrayLike, *, clip: float = 1e-6) -> float:
    """Mean of -log of the probability that the label had, in nats.

    Args:
        p: (n,), or (n, C) class probabilities.
        y: (n,), 1 or 0, or class codes where ``p`` has columns.
        clip: probabilities are kept this far from 0 and 1, so that one certain error costs
            13.8 and not infinity. State it beside the figure.

    Returns:
        NaN for n = 0.

    Raises:
        StatisticsError: probabilities outside [0, 1] or NaN, labels that are no class.
    """
    table, label = _probabilities(p, y)
    if not len(label):
        return math.nan
    p_label = table[np.arange(len(label)), label]
    return float(-np.log(np.clip(p_label, clip, 1 - clip)).mean())


def brier(p: ArrayLike, y: ArrayLike) -> float:
    """Mean squared error of p, in [0, 1]; NaN for n = 0.

    With (n, C) it is half the sum over classes, so that two classes give the same either way.

    Raises:
        StatisticsError: as :func:`log_loss`.
    """
    table, label = _probabilities(p, y)
    if not len(label):
        return math.nan
    truth = np.eye(table.shape[1])[label]
    return float(np.sum((table - truth) ** 2, axis=1).mean() / 2)


def _probabilities(p: ArrayLike, y: ArrayLike) -> tuple[Floats, NDArray[np.intp]]:
    table, label = np.asarray(p, dtype=float), np.asarray(y, dtype=float)
    if table.ndim == 1:
        table = np.stack([1 - table, table], axis=1)
    if len(table) != len(label) or label.ndim != 1:
        raise StatisticsError(f"{len(table)} probabilities for {len(label)} labels")
    if not np.all((table >= 0) & (table <= 1 + 1e-12)):
        raise StatisticsError("probabilities lie in [0, 1] and are not NaN")
    if not np.all((label >= 0) & (label < table.shape[1]) & (label == np.round(label))):
        raise StatisticsError(f"labels are class codes 0..{table.shape[1] - 1}, without NaN")
    return table, label.astype(np.intp)


def calibration(
    p: ArrayLike, y: ArrayLike, *, n_bins: int = 10, bins: Bins = "mass"
) -> Calibration:
    """Expected calibration error of P(class 1), and the bins behind it.

    With few items the error is biased upwards (a perfectly calibrated p has one above 0), by
    bins of equal mass less than by bins of equal width.

    Args:
        p: (n,).
        y: (n,).
        n_bins: most bins.
        bins: equal mass (by rank; equal p are never parted, so that a vote share of few values
            has a bin each) or equal width.

    Raises:
        StatisticsError: as :func:`log_loss`, or no bins.
    """
    table, label = _probabilities(np.asarray(p, dtype=float).ravel(), y)
    p_one = table[:, 1]
    if n_bins < 1:
        raise StatisticsError("calibration needs at least one bin")
    # Bins by mid-rank: equal p have equal ranks, so that a bin's edge never parts them.
    height = _mid_ranks(p_one) if bins == "mass" else p_one
    bin_index = np.minimum((height * n_bins).astype(np.intp), n_bins - 1)
    occupied_bins, bin_index, count = np.unique(bin_index, return_inverse=True, return_counts=True)
    confidence = np.bincount(bin_index, weights=p_one, minlength=len(occupied_bins)) / count
    accuracy = np.bincount(bin_index, weights=label, minlength=len(occupied_bins)) / count
    gap = np.abs(accuracy - confidence)
    error = float(count @ gap / len(p_one)) if len(p_one) else math.nan
    return Calibration(error, confidence, accuracy, count.astype(np.intp))


def _mid_ranks(values: Floats) -> Floats:
    """Where each value stands among all, in (0, 1); equal values stand together in the middle."""
    _, codes, count = np.unique(values, return_inverse=True, return_counts=True)
    middle: Floats = (np.cumsum(count) - count / 2)[codes] / max(1, len(values))
    return middle


def ece(p: ArrayLike, y: ArrayLike, *, n_bins: int = 10, bins: Bins = "mass") -> float:
    """The expected calibration error alone; NaN for n = 0. See :func:`calibration`."""
    return calibration(p, y, n_bins=n_bins, bins=bins).ece


def accuracy(verdict: ArrayLike, label: ArrayLike) -> float:
    """Mean credit of the verdicts (see :func:`clash.stats.voting.majority.credit`).

    A tie earns half, no verdict nothing. NaN for n = 0.

    Raises:
        StatisticsError: a NaN label.
    """
    item_credit = _credit(verdict, label)
    return float(item_credit.mean()) if len(item_credit) else math.nan


def balanced_accuracy(verdict: ArrayLike, label: ArrayLike) -> float:
    """Mean over the classes that occur of the mean credit in each; NaN for n = 0.

    Read it where one class is rare: the accuracy of always saying the other is high.

    Raises:
        StatisticsError: a NaN label.
    """
    item_credit, truth = _credit(verdict, label), np.asarray(label, dtype=float)
    classes = np.unique(truth)
    if not len(classes):
        return math.nan
    return float(np.mean([item_credit[truth == c].mean() for c in classes]))


def _credit(verdict: ArrayLike, label: ArrayLike) -> Floats:
    if np.isnan(np.asarray(label, dtype=float)).any():
        raise StatisticsError("labels without NaN: leave unlabelled rows out")
    return credit(verdict, label)
