"""Calibration error of one map, without the part that few rows add, and with an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.intervals import Interval, normal_quantile
from clash.stats.selection.metrics import BINS, mass_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Floats, Index

REPLICATES = 400
FEWEST_IN_BIN = 3
"""Mean number of sources in a bin below which there are fewer bins: a gap needs pairs of sources."""
_CELLS = 2_000_000
"""Signs that are drawn at once: 16 MB."""


@dataclass(frozen=True, slots=True)
class MeasuredBlock:
    """Predictions of one map for rows that it was not fitted to.

    Attributes:
        p: (n, C), predictions.
        y: (n, C), targets.
        groups: (n,), code of each row's source, the same in all blocks; rows of a source may
            depend on each other.
    """

    p: Floats
    y: Floats
    groups: Index


def calibration_gap(
    blocks: Sequence[MeasuredBlock], rng: np.random.Generator, level: float = 0.95
) -> Interval:
    """Calibration error of one map: root mean squared gap of prediction and share of labels.

    Each block is measured with its own map, so that errors of several maps do not cancel, and the
    mean of their squared gaps is the estimate. A squared gap is the mean of the products of
    residuals of two sources in one bin (up to ten of equal mass in each block), whose expectation
    is the squared gap exactly, however few rows (the debiased estimator of Kumar, Liang and Ma,
    Verified Uncertainty Calibration, 2019). The blocks may share sources, as random splits do.

    The interval inverts a test of each gap c. The error of the estimate is that of a perfect map,
    from random signs for the residuals of each source (wild bootstrap), and a part whose variance
    is c^2 times a factor from the influences of the sources. Where the estimate may be that of a
    perfect map, the interval is [0, upper end], and its lower end errs with probability
    1 - level, because the upper one cannot. The upper end is never below what no error among so
    many sources allows. It describes the maps of the blocks, as they are.

    Args:
        blocks: one for each map.
        rng: of the signs.
        level: confidence level.

    Returns:
        The gap, between 0 and 1; NaN and [0, 1] where no bin has two sources. ``n`` is the number
        of distinct sources.
    """
    sources = np.unique(np.concatenate([block.groups for block in blocks]))
    parts = [
        _BinnedResiduals.of(block.p[:, c] - block.y[:, c], block, c, sources)
        for block in blocks
        for c in range(block.p.shape[1])
    ]
    parts = [part for part in parts if part.has_pairs]
    n = len(sources)
    if not parts:
        return Interval(math.nan, 0.0, 1.0, level, n, n, "debiased, wild bootstrap")
    square = float(np.mean([part.square(part.total[None])[0] for part in parts]))
    null = _null_squares(parts, n, rng)
    low, high = _square_bounds(square, null, _slope(parts, square, null, n), level)
    # Without an error there is no variance to see: Wilson's upper end for none of n.
    z_square = normal_quantile(level) ** 2
    high = max(high, (z_square / (n + z_square)) ** 2)
    return Interval(
        math.sqrt(max(square, 0.0)),
        math.sqrt(low),
        math.sqrt(min(high, 1.0)),
        level,
        n,
        n,
        "debiased, wild bootstrap",
    )


@dataclass(frozen=True, slots=True)
class _BinnedResiduals:
    """Residuals of one class in one block, added up by bin and source, in the order of the bins.

    Attributes:
        total: (T,), sum of the residuals of a source in a bin.
        source: (T,), its source.
        first: (B,), where each bin begins.
        bin: (T,), its bin.
        weight: (B,), what a product of two different sources of a bin counts: 0 without a pair.
        size: (T,), rows of the source in the bin.
        spread: (T,), sum of their squared p (1 - p).
        column: the class.
    """

    total: Floats
    source: Index
    first: Index
    bin: Index
    weight: Floats
    size: Floats
    spread: Floats
    column: int

    @classmethod
    def of(cls, residual: Floats, block: MeasuredBlock, c: int, sources: Index) -> _BinnedResiduals:
        code = np.searchsorted(sources, block.groups)
        n_bins = int(np.clip(len(np.unique(code)) // FEWEST_IN_BIN, 1, BINS))
        bins = mass_bins(block.p[:, c], n_bins)
        key, of_cell = np.unique(bins * len(sources) + code, return_inverse=True)
        total, size = np.bincount(of_cell, residual), np.bincount(of_cell).astype(float)
        of_bin, source = np.divmod(key, len(sources))
        _, first, bin_ = np.unique(of_bin, return_index=True, return_inverse=True)
        rows = np.add.reduceat(size, first)
        pairs = rows**2 - np.add.reduceat(size**2, first)
        has_pairs = pairs > 0
        weight = np.where(has_pairs, rows / np.where(has_pairs, pairs, 1.0), 0.0)
        n_used = float(rows[has_pairs].sum())
        return cls(
            np.asarray(total, np.float64),
            source.astype(np.intp),
            first.astype(np.intp),
            bin_.astype(np.intp),
            weight / max(n_used, 1.0),
            size,
            np.asarray(
                np.bincount(of_cell, (block.p[:, c] * (1 - block.p[:, c])) ** 2), np.float64
            ),
            c,
        )

    @property
    def has_pairs(self) -> bool:
        """Whether a bin has two sources."""
        return bool(self.weight.any())

    def square(self, totals: Floats) -> Floats:
        """(R,), mean squared gap under totals (R, T)."""
        sums = np.add.reduceat(totals, self.first, axis=1)
        squares = np.add.reduceat(totals**2, self.first, axis=1)
        return np.asarray((sums**2 - squares) @ self.weight)

    def influence(self, n_sources: int) -> Floats:
        """(G,), twice each source's residual times the residuals of the others in its bin."""
        sums = np.add.reduceat(self.total, self.first)[self.bin]
        value = 2 * self.total * (sums - self.total) * self.weight[self.bin]
        return np.asarray(np.bincount(self.source, value, n_sources), np.float64)


def _null_squares(
    parts: Sequence[_BinnedResiduals], n_sources: int, rng: np.random.Generator
) -> Floats:
    """(REPLICATES,), the estimate with random signs: what a perfect map shows."""
    widest = max(len(part.total) for part in parts)
    chunk = max(1, min(REPLICATES, _CELLS // max(widest, n_sources)))
    squares = np.zeros(REPLICATES)
    for at in range(0, REPLICATES, chunk):
        rows = min(chunk, REPLICATES - at)
        signs = rng.integers(0, 2, (rows, n_sources), dtype=np.int8) * 2 - 1
        for part in parts:
            squares[at : at + rows] += part.square(part.total * signs[:, part.source])
    return squares / len(parts)


def _slope(parts: Sequence[_BinnedResiduals], square: float, null: Floats, n_sources: int) -> float:
    """By how much the variance of the estimate grows with the squared gap.

    To first order the error is twice the sum over sources of gap times residual. The influences of
    the sources show its variance (less twice that of a perfect map, which they contain), relative
    to the squared gap that is seen. Of no gap they show nothing: where maps are wrong in log-odds,
    gaps grow with v = p (1 - p), and the variance is 4 c^2 sum (v t)^2 / (n sum v^2), t being a
    source's mean total. Either counts by how far the squared gap stands out of chance.
    """
    influence = np.zeros(n_sources)
    for part in parts:
        influence += part.influence(n_sources) / len(parts)
    columns = sorted({part.column for part in parts})
    usual = float(
        np.mean([_column_slope([p for p in parts if p.column == c], n_sources) for c in columns])
    )
    chance, visible = float(null.var()), max(square, 0.0)
    variance = max(n_sources * float(influence.var()) - 2 * chance, 0.0)
    weight = visible**2 + chance
    return (variance * visible + usual * chance) / weight if weight > 0 else usual


def _column_slope(parts: Sequence[_BinnedResiduals], n_sources: int) -> float:
    """4 sum (v t)^2 / (n sum v^2) over the sources of the blocks of one class, n in rows."""
    total, size, spread, times = np.zeros((4, n_sources))
    for part in parts:
        total += np.bincount(part.source, part.total, n_sources)
        size += np.bincount(part.source, part.size, n_sources)
        spread += np.bincount(part.source, part.spread, n_sources)
        times += np.bincount(part.source, minlength=n_sources) > 0
    has_rows = times > 0
    mean_total, rows = total[has_rows] / times[has_rows], size[has_rows] / times[has_rows]
    weight = spread[has_rows] / size[has_rows]
    if not weight.any():
        weight = np.ones(len(rows))
    return 4 * float(mean_total**2 @ weight) / float(rows.sum() * (rows @ weight))


def _square_bounds(square: float, null: Floats, slope: float, level: float) -> tuple[float, float]:
    """The squared gaps that the estimate does not rule out.

    No estimate is so low that it rules out a gap below the upper end of a map without a visible one:
    of such gaps only the lower end can miss, and has all of 1 - level. Above, each end has half.
    """
    two_sided_level = (1 + level) / 2
    high = _upper_end(max(square, 0.0), null, slope, two_sided_level)
    always = _upper_end(0.0, null, slope, two_sided_level)
    low = _lower_end(square, null, slope, level)
    if low > always:
        low = max(always, _lower_end(square, null, slope, two_sided_level))
    return low, high


def _upper_end(square: float, null: Floats, slope: float, chance: float) -> float:
    """The largest c with c - square <= sqrt(q^2 + z^2 slope c); q and z at ``chance`` on one side."""
    below = float(np.quantile(null, 1 - chance))
    half = square + normal_quantile(2 * chance - 1) ** 2 * slope / 2
    return half + math.sqrt(half**2 - square**2 + below**2)


def _lower_end(square: float, null: Floats, slope: float, chance: float) -> float:
    """The least c whose estimates reach ``square`` with probability 1 - chance.

    What residuals add in the direction of the gap, s z with s^2 = slope / 4, is squared with it:
    (sqrt(c) + s z)^2 less the mean, c + s^2. In all other directions they add as without a gap.
    """
    from scipy.optimize import brentq

    above = float(np.quantile(null, chance))
    if square <= above:
        return 0.0
    z, s = normal_quantile(2 * chance - 1), math.sqrt(slope) / 2
    elsewhere = max(above**2 - (s**2 * (z**2 - 1)) ** 2, 0.0)

    def excess(root: float) -> float:
        along = 2 * root * s * z + s**2 * (z**2 - 1)
        return root**2 + math.sqrt(along**2 + elsewhere) - square

    return float(brentq(excess, 0.0, math.sqrt(square))) ** 2 if excess(0.0) < 0 else 0.0
