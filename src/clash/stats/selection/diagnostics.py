"""How hard a joint table of a prefix is to estimate with the labels at hand (section 3.6)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.selection.joint_table import Level
from clash.stats.selection.paths import effective_support

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.panel import Evidence, Panel
    from clash.stats.typing import Index


@dataclass(frozen=True, slots=True)
class Pressure:
    """What the labels can tell of the patterns of some judges.

    Attributes:
        h_k: effective number of patterns among the labelled rows, exp of their entropy.
        occupied: patterns among them.
        cell_pressure: equation (7) by plug-in: sum over occupied cells of the share of new rows
            there over its labels, plus ``unseen``.
        unseen: share of new rows whose pattern no labelled row has.
        v: the cheap proxy, H / n + unseen.
        n: labelled rows.
    """

    h_k: float
    occupied: int
    cell_pressure: float
    unseen: float
    v: float
    n: float


def pressure(panel: Panel, judges: Sequence[int], seen: Evidence, new: Index) -> Pressure:
    """Diagnostics of a prefix; NaN for the three that need new rows where there are none.

    Args:
        panel: the panel.
        judges: the prefix.
        seen: labelled rows that a map is fitted to.
        new: (n,), patterns of rows it is to be used on; their labels are not looked at.
    """
    level = Level.of(panel.codes[:, list(judges)], seen)
    n = level.n
    effective = effective_support(n)
    if not len(new):
        return Pressure(effective, int((n > 0).sum()), math.nan, math.nan, math.nan, seen.size)
    share = np.bincount(level.of_cell[new], minlength=len(n)) / len(new)
    unseen = float(share[n == 0].sum())
    cells = float((share[n > 0] / n[n > 0]).sum()) + unseen
    proxy = effective / seen.size + unseen
    return Pressure(effective, int((n > 0).sum()), cells, unseen, proxy, seen.size)


def selection_penalty(candidates: int, validation: float, delta: float = 0.05) -> float:
    """Theorem 1: by how much the chosen candidate's risk can exceed the best one's.

    2 sqrt(log(2 |C| / delta) / (2 n_V)), with probability 1 - delta over a validation block of
    independent rows, for a loss in [0, 1]. A bound for any menu; what happens is far smaller.
    """
    if validation <= 0 or candidates <= 0:
        return math.inf
    return 2 * math.sqrt(math.log(2 * candidates / delta) / (2 * validation))
