"""Losses, verdicts and metrics of predictions of a target with C columns; calibration error and chance.

Columns are as in :mod:`clash.stats.selection.panel`: P(side 1) or a score where C = 1, and side 0, tie
and side 1 where C = 3.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from clash.stats.scoring import ece

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

Loss = Literal["mse", "nll"]

CLIP = 1e-3
"""Probabilities are clipped this far from 0 and 1 in the log-loss: one certain error costs 6.9."""
LEVEL = 1e-9


@dataclass(frozen=True, slots=True)
class Metrics:
    """Means over rows.

    Attributes:
        mse: squared error; over three classes half the sum over classes, so that targets without ties
            give the same in either coding.
        nll: -log of the probability of the label, in nats; cross-entropy where targets are shares.
        accuracy: rows on the side of the label; a prediction in the middle earns half.
        balanced_accuracy: mean over classes of the accuracy in each.
        ece: expected calibration error over ten bins of equal mass; over three classes the mean
            of the three. Biased upwards by few rows.
        pearson: correlation of prediction (the expected side) and label; NaN where one is constant.
        spearman: the same of ranks.
    """

    mse: float
    nll: float
    accuracy: float
    balanced_accuracy: float
    ece: float
    pearson: float
    spearman: float

    @classmethod
    def names(cls) -> list[str]:
        """The metrics, in order."""
        return [f.name for f in fields(cls)]


def losses(p: Floats, y: Floats, loss: Loss) -> Floats:
    """(n,), squared error or cross-entropy of each row; p and y of shape (n, C)."""
    if loss == "mse":
        gap = ((p - y) ** 2).sum(axis=1)
        return np.asarray(gap if p.shape[1] == 1 else gap / 2)
    q = np.clip(p, CLIP, 1 - CLIP)
    if p.shape[1] == 1:
        return np.asarray(-(y * np.log(q) + (1 - y) * np.log1p(-q))[:, 0])
    return np.asarray(-(y * np.log(q)).sum(axis=1))


def expected_side(p: Floats) -> Floats:
    """(n,), the mean of the target in [0, 1]: a tie is 0.5."""
    return p[:, 0] if p.shape[1] == 1 else p[:, 2] + 0.5 * p[:, 1]


def verdicts(p: Floats) -> Floats:
    """(n, C) shares of the verdict: the likeliest class, shared where several are."""
    table = np.column_stack([1 - p[:, 0], p[:, 0]]) if p.shape[1] == 1 else p
    top = table >= table.max(axis=1, keepdims=True) - LEVEL
    return np.asarray(top / top.sum(axis=1, keepdims=True))


def confidence(p: Floats) -> Floats:
    """(n,), probability of the verdict."""
    return np.asarray(np.maximum(p[:, 0], 1 - p[:, 0]) if p.shape[1] == 1 else p.max(axis=1))


def classes(y: Floats) -> Floats:
    """(n, C or 2), the class of each target: scores by their side of the middle, shared there."""
    if y.shape[1] > 1:
        return y
    upper = np.where(np.abs(y[:, 0] - 0.5) <= LEVEL, 0.5, y[:, 0] > 0.5)
    return np.column_stack([1 - upper, upper])


def credits_of(p: Floats, y: Floats, verdict: Floats | None = None) -> Floats:
    """(n,), credit of each row's verdict: 1 right, 0 wrong, shared where verdict or label is tied."""
    shares = verdicts(p) if verdict is None else verdict
    return np.asarray((shares * classes(y)).sum(axis=1))


def measure(p: Floats, y: Floats, verdict: Floats | None = None) -> Metrics:
    """All metrics of predictions (n, C) against targets (n, C).

    Args:
        p: predictions.
        y: targets.
        verdict: shares of the verdict (see :func:`verdicts`), where it is not the likeliest class.
    """
    truth, row_credits = classes(y), credits_of(p, y, verdict)
    weight = truth.sum(axis=0)
    by_class = (row_credits @ truth)[weight > 0] / weight[weight > 0]
    side, label = expected_side(p), expected_side(y)
    return Metrics(
        mse=float(losses(p, y, "mse").mean()),
        nll=float(losses(p, y, "nll").mean()),
        accuracy=float(row_credits.mean()),
        balanced_accuracy=float(by_class.mean()),
        ece=calibration_error(p, y),
        pearson=_correlation(side, label),
        spearman=_correlation(_ranks(side), _ranks(label)),
    )


def calibration_error(p: Floats, y: Floats, n_bins: int = 10) -> float:
    """Expected calibration error, bins of equal mass; mean over classes where there are three."""
    if p.shape[1] > 1:
        return float(np.mean([ece(p[:, c], y[:, c], n_bins=n_bins) for c in range(p.shape[1])]))
    if np.isin(y, (0.0, 1.0)).all():
        return ece(p[:, 0], y[:, 0], n_bins=n_bins)
    return _soft_ece(p[:, 0], y[:, 0], n_bins)


def _soft_ece(p: Floats, y: Floats, n_bins: int) -> float:
    """The same where targets are shares."""
    gap = np.bincount(mass_bins(p, n_bins), p - y, n_bins)
    return float(np.abs(gap).sum() / len(p))


def mass_bins(p: Floats, n_bins: int = 10) -> npt.NDArray[np.intp]:
    """(n,), bins of about equal mass by rank; equal predictions are never parted."""
    height = (_ranks(p) - 0.5) / len(p)
    return np.minimum((height * n_bins).astype(np.intp), n_bins - 1)


def _ranks(x: Floats) -> Floats:
    """Ranks from 1, equal values sharing the middle one."""
    _, code, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[code])


def _correlation(x: Floats, y: Floats) -> float:
    a, b = x - x.mean(), y - y.mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 1e-12 else float("nan")


BINS = 10
DRAWS = 200


@dataclass(frozen=True, slots=True)
class Reliability:
    """Calibration error of probabilities, and the part of it that chance explains.

    Attributes:
        ece: plain expected calibration error, ten bins of equal mass: the mean of |gap| over
            rows, gap being the bin's mean prediction minus its share of labels. Few rows make it
            positive whatever the map.
        chance: its mean if the predictions were right: labels are drawn from them, one draw for
            all rows of a source.
        chance_high: 95th percentile of those draws; an ``ece`` above it is not chance.
    """

    ece: float
    chance: float
    chance_high: float


def reliability(
    p: Floats, y: Floats, groups: Index, rng: np.random.Generator, draws: int = DRAWS
) -> Reliability:
    """Measure predictions (n, C) against targets (n, C); over three classes, the mean.

    Args:
        p: predictions.
        y: targets.
        groups: (n,), source of each row; rows of one source may repeat and depend on each other.
        rng: of the draws for ``chance``.
        draws: how many.
    """
    code = np.unique(groups, return_inverse=True)[1]
    is_shared = _alike(y, code)
    # Rows of a source share one draw where they share a label; else each row has its own.
    draw_of = np.where(is_shared[code], code, len(is_shared) + np.arange(len(y)))
    draw_of = np.unique(draw_of, return_inverse=True)[1]
    chance_errors = [_chance_error(p, draw_of, rng) for _ in range(draws)]
    return Reliability(
        calibration_error(p, y, BINS),
        float(np.mean(chance_errors)),
        float(np.quantile(chance_errors, 0.95)),
    )


def _alike(y: Floats, code: Index) -> np.ndarray:
    """(G,), whether all rows of a source have one label."""
    first = np.unique(code, return_index=True)[1]
    differs = np.abs(y - y[first][code]).max(axis=1) > 0
    return np.asarray(np.bincount(code, differs, len(first)) == 0)


def _chance_error(p: Floats, draw_of: Index, rng: np.random.Generator) -> float:
    u = rng.random(int(draw_of.max()) + 1)[draw_of][:, None]
    if p.shape[1] == 1:
        return calibration_error(p, (u < p).astype(float), BINS)
    labels = (u > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return calibration_error(p, np.eye(p.shape[1])[labels], BINS)
