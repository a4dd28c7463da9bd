"""Maps that look a vote pattern up, and how hard their table is to estimate (sections 3.5 and 3.6).

The joint table estimates the target of each pattern by itself; hierarchical backoff and residual
shrinkage stand between it and a stacker. Smoothing constants that are not given are chosen by the squared
error of rows predicted from the counts without themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.stats.selection.panel import NO_VOTE, sum_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from clash.stats.selection.panel import Cells, Evidence, PanelVotes
    from clash.stats.typing import Floats, Index

Fallback = Literal["global", "lower-prefix"]
ALPHA = 0.5
ALPHAS = (0.5, 1.0, 2.0, 5.0)
_MOST_KEYS = 1 << 48
PULLS = (1.0, 3.0, 9.0, 27.0)


@dataclass(frozen=True, slots=True)
class PrefixTable:
    """The table of the first k judges.

    Attributes:
        of_cell: (P,), which of its entries each cell of the whole prefix falls into.
        n: (Q,), labelled rows.
        s: (Q, C), their targets.
    """

    of_cell: Index
    n: Floats
    s: Floats

    @classmethod
    def of(cls, codes: npt.NDArray[np.int16], evidence: Evidence) -> PrefixTable:
        """Group the cells by some columns of their codes."""
        return cls._count(_row_numbers(codes), evidence)

    @classmethod
    def at(cls, cells: Cells, k: int, evidence: Evidence) -> PrefixTable:
        """The table of the first k judges of some cells; the grouping of cells is cached."""
        if k not in cells.prefix_entries:
            cells.prefix_entries[k] = _row_numbers(cells.codes[:, :k])
        return cls._count(cells.prefix_entries[k], evidence)

    @classmethod
    def _count(cls, of_cell: Index, evidence: Evidence) -> PrefixTable:
        size = int(of_cell.max()) + 1
        sums = [sum_by(of_cell, column, size) for column in evidence.s.T]
        return cls(of_cell, sum_by(of_cell, evidence.n, size), np.column_stack(sums))


def _row_numbers(codes: npt.NDArray[np.int16]) -> Index:
    """(P,), rows with equal codes have equal numbers, from 0 on."""
    if codes.shape[1] == 0:
        return np.zeros(len(codes), np.intp)
    return np.unique(_keys(codes), return_inverse=True)[1].astype(np.intp)


def _keys(codes: npt.NDArray[np.int16]) -> npt.NDArray[np.int64]:
    """A number for each row, equal for equal rows and only for them."""
    base = int(codes.max()) - NO_VOTE + 1
    key, size = np.zeros(len(codes), np.int64), 1
    for column in codes.T:
        key = key * base + (column - NO_VOTE)
        size *= base
        if size > _MOST_KEYS:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            size = len(codes)
    return key


def prefix_tables(cells: Cells, evidence: Evidence) -> list[PrefixTable]:
    """The tables of 0, 1, …, K judges along the path."""
    return [PrefixTable.at(cells, k, evidence) for k in range(cells.codes.shape[1] + 1)]


def joint_table(
    cells: Cells,
    evidence: Evidence,
    *,
    alpha: float | None = None,
    fallback: Fallback = "global",
) -> Floats:
    """Equation (12): smoothed mean of each cell, the base rate or a shorter prefix where it is empty.

    Makes no assumption about how votes combine, at the cost of needing labels in every cell. With many
    cells it fails without a sign of it: see :func:`cell_pressure`.

    Args:
        cells: the patterns of the prefix.
        evidence: the labelled rows.
        alpha: pseudo-rows of the base rate; by default the one of ``ALPHAS`` that predicts
            left-out rows best.
        fallback: ``lower-prefix`` looks an empty cell up in the longest prefix that was seen.

    Returns:
        (P, C).
    """
    table = PrefixTable.at(cells, cells.codes.shape[1], evidence)
    base = evidence.base
    if alpha is None:
        risks = [_left_out(table, evidence, base, a) for a in ALPHAS]
        alpha = ALPHAS[int(np.argmin(risks))]
    p = _smooth(table, base, alpha)
    if fallback == "lower-prefix":
        empty = table.n[table.of_cell] == 0
        for shorter in prefix_tables(cells, evidence)[:-1]:
            fillable = empty & (shorter.n[shorter.of_cell] > 0)
            p[fillable] = _smooth(shorter, base, alpha)[fillable]
    return p


def _smooth(level: PrefixTable, base: Floats, alpha: float) -> Floats:
    table = (level.s + alpha * base) / (level.n + alpha)[:, None]
    return np.asarray(table[level.of_cell])


def _left_out(level: PrefixTable, evidence: Evidence, base: Floats, alpha: float) -> float:
    """Squared error of rows predicted from their cell without themselves, for 0/1 targets."""
    total_weight = np.maximum(level.n - 1, 0)[:, None] + alpha
    if_one = (level.s - 1 + alpha * base) / total_weight
    if_zero = (level.s + alpha * base) / total_weight
    total = level.s * (1 - if_one) ** 2 + (level.n[:, None] - level.s) * if_zero**2
    return float(total.sum() / max(evidence.size, 1.0))


def hierarchical_backoff(cells: Cells, evidence: Evidence, *, pull: float | None = None) -> Floats:
    """Each cell shrunk to the cell of one judge fewer, that to the next, and so to the base rate.

    Args:
        cells: the patterns of the prefix.
        evidence: the labelled rows.
        pull: pseudo-rows that a shorter prefix is worth; by default the one of ``PULLS`` that
            predicts left-out rows best.

    Returns:
        (P, C).
    """
    tables = prefix_tables(cells, evidence)
    if pull is None:
        risks = [_backoff_left_out(tables, evidence, tau) for tau in PULLS]
        pull = PULLS[int(np.argmin(risks))]
    p = np.broadcast_to(evidence.base, (len(cells.codes), cells.n_classes))
    for level in tables[1:]:
        p = (level.s[level.of_cell] + pull * p) / (level.n[level.of_cell] + pull)[:, None]
    return np.asarray(p)


def _backoff_left_out(tables: list[PrefixTable], evidence: Evidence, pull: float) -> float:
    """Squared error of left-out rows; leaving one out takes one from every table it is in."""
    total = 0.0
    for out, weight in ((1.0, evidence.s), (0.0, evidence.n[:, None] - evidence.s)):
        p = np.broadcast_to(evidence.base, evidence.s.shape)
        for level in tables[1:]:
            n = np.maximum(level.n[level.of_cell] - 1, 0)[:, None]
            p = (np.maximum(level.s[level.of_cell] - out, 0) + pull * p) / (n + pull)
        total += float((weight * (out - p) ** 2).sum())
    return total / max(evidence.size, 1.0)


def residual_shrinkage(
    cells: Cells, evidence: Evidence, scalar: Floats, *, pull: float | None = None
) -> Floats:
    """Equation (13): a scalar map plus the mean residual of each cell, shrunk by its count.

    Args:
        cells: the patterns of the prefix.
        evidence: the labelled rows.
        scalar: (P, C), predictions of the scalar map, fitted to the same rows.
        pull: tau; by default the one of ``PULLS``, or no table at all, that predicts left-out
            rows best, the scalar map held fixed.

    Returns:
        (P, C), clipped to [0, 1].
    """
    level = PrefixTable.at(cells, cells.codes.shape[1], evidence)
    size = len(level.n)
    excess = evidence.s - evidence.n[:, None] * scalar
    total = np.column_stack([sum_by(level.of_cell, c, size) for c in excess.T])[level.of_cell]
    n = level.n[level.of_cell][:, None]
    if pull is None:
        risks = [_residual_left_out(evidence, scalar, total, n, tau) for tau in (*PULLS, np.inf)]
        pull = (*PULLS, np.inf)[int(np.argmin(risks))]
    # n / (n + tau) times the mean residual total / n.
    return np.clip(scalar + total / (n + pull), 0.0, 1.0)


def _residual_left_out(
    evidence: Evidence, scalar: Floats, total: Floats, n: Floats, pull: float
) -> float:
    risk = 0.0
    for out, weight in ((1.0, evidence.s), (0.0, evidence.n[:, None] - evidence.s)):
        residual = (total - (out - scalar)) / (np.maximum(n - 1, 0) + pull)
        risk += float((weight * (out - np.clip(scalar + residual, 0, 1)) ** 2).sum())
    return risk / max(evidence.size, 1.0)


@dataclass(frozen=True)
class Support:
    """The table of some judges on the selection block.

    Attributes:
        risk: mean squared error of its best table on the block itself: the empirical oracle risk.
        effective: H, exp of the entropy of the patterns.
        n: (Q,), rows of each occupied cell.
    """

    risk: float
    effective: float
    n: Floats


def support(panel: PanelVotes, evidence: Evidence, judges: Sequence[int]) -> Support:
    """Risk and effective size of the table of these judges on the selection block."""
    level = PrefixTable.of(panel.codes[:, list(judges)], evidence)
    has_rows = level.n > 0
    n, s = level.n[has_rows], level.s[has_rows]
    mean = s / n[:, None]
    # For 0/1 targets the spread within a cell is n p (1 - p); for scores this bounds it.
    spread = float((n[:, None] * mean * (1 - mean)).sum()) / evidence.size
    risk = spread if s.shape[1] == 1 else spread / 2
    return Support(risk, effective_support(n), n)


def effective_support(n: Floats) -> float:
    """H = exp(entropy) of the cells' shares, natural logarithm (remark 1); 0 for no rows."""
    share = n[n > 0] / n.sum() if n.sum() > 0 else np.zeros(0)
    return float(np.exp(-(share * np.log(share)).sum())) if len(share) else 0.0


@dataclass(frozen=True, slots=True)
class CellPressure:
    """How well the labels cover the patterns of some judges.

    Attributes:
        h_k: effective number of patterns among the labelled rows, exp of their entropy.
        n_occupied: distinct patterns among them.
        cell_pressure: equation (7) by plug-in: sum over occupied cells of the share of new rows
            there over its labels, plus ``unseen``.
        unseen: share of new rows whose pattern no labelled row has.
        v: the cheap proxy, H / n + unseen.
        n: labelled rows.
    """

    h_k: float
    n_occupied: int
    cell_pressure: float
    unseen: float
    v: float
    n: float


def cell_pressure(
    panel: PanelVotes, judges: Sequence[int], evidence: Evidence, new: Index
) -> CellPressure:
    """Diagnostics of a prefix; NaN for the three that need new rows where there are none.

    Args:
        panel: the panel.
        judges: the prefix.
        evidence: labelled rows that a map is fitted to.
        new: (n,), patterns of the rows to predict; their labels are not used.
    """
    level = PrefixTable.of(panel.codes[:, list(judges)], evidence)
    n = level.n
    effective = effective_support(n)
    if not len(new):
        return CellPressure(
            effective, int((n > 0).sum()), math.nan, math.nan, math.nan, evidence.size
        )
    share = np.bincount(level.of_cell[new], minlength=len(n)) / len(new)
    unlabelled_share = float(share[n == 0].sum())
    cells = float((share[n > 0] / n[n > 0]).sum()) + unlabelled_share
    proxy = effective / evidence.size + unlabelled_share
    return CellPressure(
        effective, int((n > 0).sum()), cells, unlabelled_share, proxy, evidence.size
    )
