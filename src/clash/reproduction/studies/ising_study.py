"""Table 1 and figure 3 of the second paper on anyone's labelled votes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import InputError
from clash.reproduction.studies.sweep import (
    FEWEST_SOURCES,
    FEWEST_TRAIN,
    TEST_SHARE,
    USUAL,
    PanelData,
    SweepCell,
    SweepPoint,
    sweep,
)
from clash.reproduction.studies.trials import whole_sources
from clash.stats.latent.patterns import MISSING
from clash.votes.binary import MethodTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.stats.typing import Bools, Index
    from clash.votes import Votes

POOL = 10
"""Judges of the paper's panels; of a larger file, those that voted most."""
HELD_JUDGES, HELD_SHARE = 6, 0.2
"""Judges while items vary, and share of the items while judges vary (section 4.1)."""
STEPS = (50, 100, 200, 500, 1000, 2000)
SIZES = (3, 4, 6, 8, 10)


@dataclass(frozen=True)
class IsingPlan:
    """What the study varies; null is the usual choice for the votes.

    Attributes:
        trials: random draws of items and judges.
        train: numbers of training items of figure 3, left.
        sizes: numbers of judges of figure 3, right.
        held_judges: judges while items vary.
        pool: judges that trials draw from.
        most_items: rows kept, drawn by source; null keeps all.
        methods: models of the sweep, by name.
        threshold: score from which on a vote or label is side 1.
    """

    trials: int = 20
    train: tuple[int, ...] | None = None
    sizes: tuple[int, ...] | None = None
    held_judges: int = HELD_JUDGES
    pool: int = POOL
    most_items: int | None = None
    methods: tuple[str, ...] = USUAL
    threshold: float | None = None


@dataclass(frozen=True)
class IsingStudy:
    """The study of one panel.

    Attributes:
        source: file or run.
        judges: the pool.
        n_rows: rows that may train.
        n_labelled: rows that may be tested: those whose label is a side.
        n_sources: sources of all rows.
        positive: share of the labels that are side 1.
        trials: random draws.
        seed: of everything random.
        table: every model with the whole pool and the most training items: table 1.
        by_train: figure 3, left.
        by_judges: figure 3, right.
        notes: how votes were read and what was left out.
    """

    source: str
    judges: tuple[str, ...]
    n_rows: int
    n_labelled: int
    n_sources: int
    positive: float
    trials: int
    seed: int
    table: tuple[SweepCell, ...]
    by_train: tuple[SweepCell, ...]
    by_judges: tuple[SweepCell, ...]
    notes: tuple[str, ...]


def ising_study(
    votes: Votes, plan: IsingPlan, seed: int, on_trial: Callable[[int], None] = lambda _n: None
) -> IsingStudy:
    """Accuracy without labels in the fit, by training items and by judges.

    Raises:
        InputError: no labels of two sides, fewer than three judges, or too few sources.
    """
    table, judges, notes = _read(votes, plan, np.random.default_rng([seed, 1]))
    data = PanelData(table.codes, np.where(table.decisive, table.truth, np.nan), table.groups)
    n_rows, n_judges = data.codes.shape
    most = _most_train(data)
    train = _train_sizes(plan, most)
    sizes = tuple(k for k in plan.sizes or SIZES if k <= n_judges)
    n_held = min(plan.held_judges, n_judges)
    few = max(FEWEST_TRAIN, round(HELD_SHARE * n_rows))
    left = [SweepPoint(n, n_held) for n in train]
    right = [SweepPoint(min(few, most), k) for k in sizes]
    points = [SweepPoint(most, n_judges), *left, *right]
    cells = sweep(data, points, plan.methods, plan.trials, seed, on_trial)
    n = len(plan.methods)
    cut = n * (1 + len(left))
    labels = data.truth[~np.isnan(data.truth)]
    return IsingStudy(
        votes.source,
        judges,
        n_rows,
        len(labels),
        len(np.unique(data.groups)),
        float(labels.mean()),
        plan.trials,
        seed,
        tuple(cells[:n]),
        tuple(cells[n:cut]),
        tuple(cells[cut:]),
        tuple(notes),
    )


def _most_train(data: PanelData) -> int:
    """Training rows that every trial has: four fifths of the sources, however large they are."""
    sizes = np.sort(np.bincount(np.unique(data.groups, return_inverse=True)[1]))
    n_test = max(1, round(TEST_SHARE * len(sizes)))
    return int(sizes[: len(sizes) - n_test].sum())


def _train_sizes(plan: IsingPlan, most: int) -> tuple[int, ...]:
    if plan.train is not None:
        too_many = [n for n in plan.train if n > most]
        if too_many:
            raise InputError(
                f"{too_many[0]} training items are more than the {most} that a test of a fifth of"
                " the sources leaves",
                field="--train",
                hint=f"--train with numbers up to {most}",
            )
        return plan.train
    return (*(n for n in STEPS if n <= 0.8 * most), most)


def _read(
    votes: Votes, plan: IsingPlan, rng: np.random.Generator
) -> tuple[MethodTable, tuple[str, ...], list[str]]:
    """Two-sided rows of the pool; what was left out is in the notes."""
    where = votes.source or None
    table = MethodTable.of(votes, plan.threshold)
    notes = list(table.notes)
    counts = (table.codes != MISSING).sum(axis=0)
    pool = np.sort(np.argsort(-counts, kind="stable")[: plan.pool])
    pool = pool[counts[pool] > 0]
    if len(pool) < 3:
        raise InputError(
            "too few judges to compare ways of aggregating: 3 are needed, and there are"
            f" {len(pool)}",
            path=where,
            field="judge",
            hint="votes of more judges, or without --judges",
        )
    if len(pool) < len(votes.judges):
        notes.append(f"{len(pool)} of {len(votes.judges)} judges: those that voted most")
    is_kept = (table.codes[:, pool] != MISSING).any(axis=1)
    n_tied = int((table.labelled & ~table.decisive & is_kept).sum())
    if n_tied:
        notes.append(f"{n_tied} rows with a tie as label train and are not tested")
    if not is_kept.all():
        notes.append(f"{int((~is_kept).sum())} rows without a vote of these judges are left out")
    is_kept = _sample(table, is_kept, plan.most_items, rng, notes)
    judges = tuple(votes.judges[table.judges[j]] for j in pool)
    panel_table = _take(table, is_kept, pool)
    _check(panel_table, where)
    return panel_table, judges, notes


def _sample(
    table: MethodTable,
    is_kept: Bools,
    most: int | None,
    rng: np.random.Generator,
    notes: list[str],
) -> Bools:
    """Whole sources at random until there are ``most`` rows."""
    if most is None or is_kept.sum() <= most:
        return is_kept
    notes.append(f"a random {most} of {int(is_kept.sum())} rows (--most-items)")
    return is_kept & whole_sources(table.groups, is_kept, most, rng)


def _take(table: MethodTable, is_kept: Bools, pool: Index) -> MethodTable:
    return replace(
        table,
        items=tuple(table.items[row] for row in np.flatnonzero(is_kept)),
        codes=table.codes[is_kept][:, pool],
        truth=table.truth[is_kept],
        groups=np.unique(table.groups[is_kept], return_inverse=True)[1].astype(np.intp),
        judges=table.judges[pool],
        families=None,
        presentation_rows=None,
    )


def _check(table: MethodTable, where: str | None) -> None:
    if len(np.unique(table.truth[table.decisive])) < 2:
        raise InputError(
            "labels of both sides are needed to measure accuracy",
            path=where,
            field="label",
            hint="a votes file with labels 1 and 0, or A and B; --threshold cuts scores in two",
        )
    n_sources = len(np.unique(table.groups))
    if n_sources < FEWEST_SOURCES:
        raise InputError(
            f"too few sources to train and test on: {FEWEST_SOURCES} are needed, and there are"
            f" {n_sources}",
            path=where,
            field="item",
            hint="votes on more items, or without --most-items",
        )
