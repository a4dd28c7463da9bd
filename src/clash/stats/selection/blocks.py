"""Who may see which rows: blocks of whole sources, never a copy of one row on both sides.

Table 4's guardrails hold by construction: the blocks of a split are disjoint in sources, a path
is built from selection evidence, a map is fitted to calibration evidence, a choice is made by
validation losses, and the test block is sealed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.stats.typing import Floats, Index

FEWEST_GROUPS = 8
"""Labelled sources below which four blocks cannot be had."""
MOST_TRAIN = 0.8
"""Share of the labelled sources that may be learnt from: fewer test rows measure nothing."""


@dataclass(frozen=True, slots=True)
class RowRoles:
    """One assignment of the rows that are not the test's; a row has one role.

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
        train: rows that are not the test's.
        test: rows that nothing is fitted to, chosen by or tuned on.
        roles: assignments of the training rows; several where the roles rotate.
        seen: (P,), votes that may be looked at: all but the test's.
    """

    train: Index
    test: Index
    roles: tuple[RowRoles, ...]
    votes: Floats


def check_apart(groups: Index, *blocks: Index) -> None:
    """Refuse blocks that share a source.

    Raises:
        StatisticsError: two blocks have rows of one source.
    """
    seen: set[int] = set()
    for block in blocks:
        here = set(groups[block].tolist())
        if seen & here:
            raise StatisticsError("two blocks share a source: copies of one row on both sides")
        seen |= here


def divide(groups: Index, shares: Sequence[float], rng: np.random.Generator) -> tuple[Index, ...]:
    """Rows in blocks of about these shares of the sources, at random; every block gets one.

    Raises:
        StatisticsError: fewer sources than blocks.
    """
    names = rng.permutation(np.unique(groups))
    if len(names) < len(shares):
        raise StatisticsError(f"{len(names)} sources cannot be divided into {len(shares)} blocks")
    total = np.cumsum([0.0, *shares]) / sum(shares)
    at = np.round(total * len(names)).astype(int)
    for place in range(1, len(at)):
        at[place] = max(at[place], at[place - 1] + 1)
    for place in range(len(at) - 1, 0, -1):
        at[place] = min(at[place], len(names) - (len(at) - 1 - place))
    return tuple(np.flatnonzero(np.isin(groups, names[a:b])) for a, b in pairwise(at.tolist()))


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How rows are divided.

    Attributes:
        labels: labelled sources that may be learnt from, four fifths of them at most; the rest
            is the test's. Null: four fifths. A person labels a source once, whatever its copies.
        rotations: how many times the roles of selection, calibration and validation are dealt;
            1 is the paper's protocol.
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
    known = np.flatnonzero(panel.has_label)
    groups = panel.group[known]
    n_groups = len(np.unique(groups))
    if n_groups < FEWEST_GROUPS:
        raise StatisticsError(
            f"{n_groups} labelled sources are too few to select, calibrate, validate and test"
        )
    wanted = MOST_TRAIN if plan.labels is None else plan.labels / n_groups
    share = min(max(wanted, 4 / n_groups), MOST_TRAIN)
    inside, outside = divide(groups, (share, 1 - share), rng)
    return _split(panel, known[inside], known[outside], plan, rng)


def cross_splits(
    panel: PanelVotes, plan: SplitPlan, folds: int, rng: np.random.Generator
) -> tuple[RowSplit, ...]:
    """Folds of whole sources, each of which is the test block once.

    Raises:
        StatisticsError: fewer labelled sources than folds.
    """
    known = np.flatnonzero(panel.has_label)
    blocks = divide(panel.group[known], [1.0] * folds, rng)
    return tuple(
        _split(panel, known[np.setdiff1d(np.arange(len(known)), block)], known[block], plan, rng)
        for block in blocks
    )


def _split(
    panel: PanelVotes, train: Index, test: Index, plan: SplitPlan, rng: np.random.Generator
) -> RowSplit:
    roles = deal(panel.group, train, plan, rng)
    check_apart(panel.group, train, test)
    others = np.setdiff1d(np.arange(panel.n_rows), test)
    return RowSplit(train, test, roles, panel.votes(others))


def deal(
    groups: Index, train: Index, plan: SplitPlan, rng: np.random.Generator
) -> tuple[RowRoles, ...]:
    """Roles of the training rows; over all rotations every row validates once."""
    own = groups[train]
    if plan.rotations == 1:
        parts = divide(own, plan.shares, rng)
        return (_roles(groups, train, *parts),)
    turns = min(plan.rotations, len(np.unique(own)))
    blocks = divide(own, [1.0] * turns, rng)
    roles = []
    for block in blocks:
        rest = np.setdiff1d(np.arange(len(own)), block)
        parts = divide(own[rest], plan.shares[:2], rng)
        roles.append(_roles(groups, train, rest[parts[0]], rest[parts[1]], block))
    return tuple(roles)


def _roles(
    groups: Index, train: Index, selection: Index, calibration: Index, validation: Index
) -> RowRoles:
    made = RowRoles(train[selection], train[calibration], train[validation])
    check_apart(groups, made.selection, made.calibration, made.validation)
    return made
