"""Division of the labelled rows into blocks of whole sources: selection, calibration, validation, test.

The guardrails of table 4 hold by construction: no source has rows in two blocks, paths are built from
selection evidence, maps fitted to calibration evidence, choices made by validation losses, and the
test block is sealed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.stats.typing import Floats, Index

FEWEST_GROUPS = 8
"""Fewest labelled sources that can be divided into four blocks."""
FEWEST_TRAIN = 4
"""Fewest labelled sources to train on."""
MOST_TRAIN = 0.8
"""Largest share of the labelled items to train on: a smaller test block measures too little."""


@dataclass(frozen=True, slots=True)
class RowRoles:
    """One assignment of roles to the training rows; a row has one role.

    Attributes:
        selection: rows that paths are built from.
        calibration: rows that maps are fitted to.
        validation: rows that candidates are compared on.
    """

    selection: Index
    calibration: Index
    validation: Index


@dataclass(frozen=True, slots=True)
class RowSplit:
    """One division of the labelled rows.

    Attributes:
        train: all rows but the test's.
        test: rows that no fit, choice or tuning uses.
        roles: assignments of the training rows; several where the roles rotate.
        votes: (P,), rows of each pattern whose votes may be used: all but the test's.
    """

    train: Index
    test: Index
    roles: tuple[RowRoles, ...]
    votes: Floats


def check_apart(groups: Index, *blocks: Index) -> None:
    """Check that no source has rows in two blocks.

    Raises:
        StatisticsError: two blocks have rows of one source.
    """
    sources: set[int] = set()
    for block in blocks:
        block_sources = set(groups[block].tolist())
        if sources & block_sources:
            raise StatisticsError("two blocks share a source: copies of one row are on both sides")
        sources |= block_sources


def divide(groups: Index, shares: Sequence[float], rng: np.random.Generator) -> tuple[Index, ...]:
    """Rows in random blocks with about these shares of the sources; every block gets one at least.

    Raises:
        StatisticsError: fewer sources than blocks.
    """
    names = rng.permutation(np.unique(groups))
    if len(names) < len(shares):
        raise StatisticsError(f"{len(names)} sources cannot be divided into {len(shares)} blocks")
    total = np.cumsum([0.0, *shares]) / sum(shares)
    bounds = np.round(total * len(names)).astype(int)
    for i in range(1, len(bounds)):
        bounds[i] = max(bounds[i], bounds[i - 1] + 1)
    for i in range(len(bounds) - 1, 0, -1):
        bounds[i] = min(bounds[i], len(names) - (len(bounds) - 1 - i))
    return tuple(np.flatnonzero(np.isin(groups, names[a:b])) for a, b in pairwise(bounds.tolist()))


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How rows are divided.

    Attributes:
        labels: labelled items to train on, four fifths of all at most (the default); the rest is
            the test block. Sources stay whole, so their number is the nearest that whole sources
            have. A person labels an item once, in however many orders it was judged.
        rotations: times that the roles of selection, calibration and validation are dealt; 1 is the
            paper's protocol.
        shares: of the training sources, for selection, calibration and validation.
    """

    labels: int | None = None
    rotations: int = 5
    shares: tuple[float, float, float] = (0.2, 0.6, 0.2)


def split(panel: PanelVotes, plan: SplitPlan, rng: np.random.Generator) -> RowSplit:
    """A random split by source.

    Raises:
        StatisticsError: too few labelled sources for the blocks.
    """
    rows = np.flatnonzero(panel.has_label)
    n_groups = len(np.unique(panel.group[rows]))
    if n_groups < FEWEST_GROUPS:
        raise StatisticsError(
            f"{n_groups} labelled sources are too few to select, calibrate, validate and test"
        )
    n_items = len(np.unique(panel.item[rows]))
    most = MOST_TRAIN * n_items
    n_train = most if plan.labels is None else min(plan.labels, most)
    inside = _around(panel, rows, n_train, n_groups - 1, rng)
    return _split(panel, rows[inside], rows[~inside], plan, rng)


def _around(
    panel: PanelVotes, rows: Index, n_items: float, most_groups: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """(n,), which rows are in random whole sources that have about so many items together."""
    groups = panel.group[rows]
    names, source = np.unique(groups, return_inverse=True)
    order = rng.permutation(len(names))
    # An item's rows are of one source, so each item is counted at its first row.
    first = np.unique(panel.item[rows], return_index=True)[1]
    items = np.cumsum(np.bincount(source[first], minlength=len(names))[order])
    nearest = 1 + int(np.argmin(np.abs(items - n_items)))
    size = min(max(nearest, min(FEWEST_TRAIN, most_groups)), most_groups)
    return np.asarray(np.isin(source, order[:size]))


def cross_splits(
    panel: PanelVotes, plan: SplitPlan, folds: int, rng: np.random.Generator
) -> tuple[RowSplit, ...]:
    """Folds of whole sources; each is the test block once, and ``plan.labels`` others are trained on.

    Raises:
        StatisticsError: fewer labelled sources than folds.
    """
    rows = np.flatnonzero(panel.has_label)
    splits = []
    for block in divide(panel.group[rows], [1.0] * folds, rng):
        train = rows[np.setdiff1d(np.arange(len(rows)), block)]
        if plan.labels is not None:
            n_groups = len(np.unique(panel.group[train]))
            train = train[_around(panel, train, plan.labels, n_groups, rng)]
        splits.append(_split(panel, train, rows[block], plan, rng))
    return tuple(splits)


def _split(
    panel: PanelVotes, train: Index, test: Index, plan: SplitPlan, rng: np.random.Generator
) -> RowSplit:
    roles = deal(panel.group, train, plan, rng)
    check_apart(panel.group, train, test)
    not_test = np.setdiff1d(np.arange(panel.n_rows), test)
    return RowSplit(train, test, roles, panel.votes(not_test))


def deal(
    groups: Index, train: Index, plan: SplitPlan, rng: np.random.Generator
) -> tuple[RowRoles, ...]:
    """Roles of the training rows; over all rotations every row validates once."""
    sources = groups[train]
    if plan.rotations == 1:
        parts = divide(sources, plan.shares, rng)
        return (_roles(groups, train, *parts),)
    turns = min(plan.rotations, len(np.unique(sources)))
    blocks = divide(sources, [1.0] * turns, rng)
    roles = []
    for block in blocks:
        remaining = np.setdiff1d(np.arange(len(sources)), block)
        parts = divide(sources[remaining], plan.shares[:2], rng)
        roles.append(_roles(groups, train, remaining[parts[0]], remaining[parts[1]], block))
    return tuple(roles)


def _roles(
    groups: Index, train: Index, selection: Index, calibration: Index, validation: Index
) -> RowRoles:
    roles = RowRoles(train[selection], train[calibration], train[validation])
    check_apart(groups, roles.selection, roles.calibration, roles.validation)
    return roles
