"""Calibration error, told apart from what few rows make of a perfect map."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.selection.metrics import calibration_error, mass_bins

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

BINS = 10
DRAWS = 200


@dataclass(frozen=True, slots=True)
class Reliability:
    """How far probabilities are from frequencies.

    Attributes:
        ece: plain expected calibration error, ten bins of equal mass: the mean of |gap| over
            rows, gap being the bin's mean prediction minus its share of labels. Few rows make it
            positive whatever the map.
        chance: its mean if the predictions were right: labels are drawn from them, one draw for
            all copies of a source.
        chance_high: 95th percentile of those draws; an ``ece`` above it is no chance.
        debiased: root of the unbiased estimate of the mean squared gap, 0 where that is negative.
            At least as large as the mean |gap| would be without noise. The variance of each gap
            is that over sources; NaN where a bin has one source only.
    """

    ece: float
    chance: float
    chance_high: float
    debiased: float


def reliability(
    p: Floats, y: Floats, groups: Index, rng: np.random.Generator, draws: int = DRAWS
) -> Reliability:
    """Measure predictions (n, C) against targets (n, C); over three classes, the mean.

    Source of the debiased figure: Kumar, Liang and Ma, Verified Uncertainty Calibration (2019),
    for bins of equal mass, with a variance that allows for copies of a source.

    Args:
        p: predictions.
        y: targets.
        groups: (n,), source of each row; rows of one source may repeat and depend on each other.
        rng: of the draws for ``chance``.
        draws: how many.
    """
    code = np.unique(groups, return_inverse=True)[1]
    shared = _alike(y, code)
    # Sources whose rows have different labels are drawn row by row.
    place = np.where(shared[code], code, len(shared) + np.arange(len(y)))
    place = np.unique(place, return_inverse=True)[1]
    drawn = [_drawn(p, place, rng) for _ in range(draws)]
    squares = [_mean_square(p[:, c], y[:, c], code) for c in range(p.shape[1])]
    square = float(np.mean(squares))
    return Reliability(
        calibration_error(p, y, BINS),
        float(np.mean(drawn)),
        float(np.quantile(drawn, 0.95)),
        math.sqrt(max(square, 0.0)) if not math.isnan(square) else math.nan,
    )


def _alike(y: Floats, code: Index) -> np.ndarray:
    """(G,), whether all rows of a source have one label."""
    first = np.unique(code, return_index=True)[1]
    differs = np.abs(y - y[first][code]).max(axis=1) > 0
    return np.asarray(np.bincount(code, differs, len(first)) == 0)


def _drawn(p: Floats, place: Index, rng: np.random.Generator) -> float:
    u = rng.random(int(place.max()) + 1)[place][:, None]
    if p.shape[1] == 1:
        return calibration_error(p, (u < p).astype(float), BINS)
    which = (u > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1)
    return calibration_error(p, np.eye(p.shape[1])[which], BINS)


def _mean_square(p: Floats, y: Floats, code: Index) -> float:
    """Mean over rows of the squared gap of their bin, each less its variance over sources."""
    bins = mass_bins(p, BINS)
    total = 0.0
    for b in np.unique(bins):
        inside = bins == b
        gap = p[inside] - y[inside]
        sources = np.unique(code[inside], return_inverse=True)[1]
        n = int(sources.max()) + 1
        if n < 2:
            return math.nan
        spread = np.bincount(sources, gap - gap.mean(), n)
        variance = n / (n - 1) * float(spread @ spread) / len(gap) ** 2
        total += len(gap) * (float(gap.mean()) ** 2 - variance)
    return total / len(p)
