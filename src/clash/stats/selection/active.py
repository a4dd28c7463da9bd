"""Which rows to label next: where judges disagree, the map is unsure, and nobody has looked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.selection.families import FAMILIES, fitted
from clash.stats.selection.metrics import expected_side
from clash.stats.selection.selector import plain_majority

if TYPE_CHECKING:
    from clash.stats.selection.panel import Evidence, Floats, Index, Panel

FAMILY = "logistic"
ROUNDS = 8
"""Times that the map is refitted while a plan is simulated; people label in batches too."""


def usefulness(panel: Panel, seen: Evidence | None) -> Floats:
    """(P,), what one more label of each pattern of votes is expected to be worth.

    The spread p (1 - p) of the label (by the map where there are labels, by the vote share where
    there are none) over one plus the labels that the pattern has: a pattern that is sure or
    known is worth little, and rows of one pattern are worth less one after the other.
    """
    cells = panel.cells(tuple(range(panel.n_judges)))
    p = plain_majority(panel)
    labelled = np.zeros(panel.n_patterns)
    if seen is not None and seen.size:
        labelled = seen.n
        p = fitted(FAMILIES[FAMILY], cells, seen.on(cells))[cells.of_pattern]
    side = expected_side(p)
    return np.asarray(side * (1 - side) / (1 + labelled))


def plan(
    panel: Panel, rows: Index, n: int, rng: np.random.Generator, seen: Evidence | None = None
) -> Index:
    """The next ``n`` rows to label, the most useful first; one row of each source.

    Labels chosen this way are no random sample: they fit a map well, but neither a promised
    risk nor a win rate may be computed from them.

    Args:
        panel: the panel.
        rows: candidates.
        n: how many.
        rng: breaks ties.
        seen: labels there are already, by pattern of the whole panel.

    Raises:
        StatisticsError: fewer sources than rows wanted.
    """
    order = rng.permutation(rows)
    _, first = np.unique(panel.group[order], return_index=True)
    order = order[np.sort(first)]
    if n > len(order):
        raise StatisticsError(f"{n} rows are wanted, {len(order)} unlabelled sources are there")
    worth = usefulness(panel, seen)[panel.pattern[order]]
    have = np.zeros(panel.n_patterns) if seen is None else seen.n
    base = worth * (1 + have[panel.pattern[order]])
    # The k-th row of a pattern is worth base / (labels + k).
    turn = _occurrence(panel.pattern[order])
    value = base / (1 + have[panel.pattern[order]] + turn)
    return np.asarray(order[np.argsort(-value, kind="stable")[:n]])


def _occurrence(codes: Index) -> Floats:
    """(n,), how many earlier entries have the same code."""
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    start = np.r_[0, np.flatnonzero(np.diff(ordered)) + 1]
    lengths = np.diff(np.r_[start, len(codes)])
    out = np.empty(len(codes))
    out[order] = np.arange(len(codes)) - np.repeat(start, lengths)
    return out


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a number of labels buys, on rows that were not labelled.

    Attributes:
        active: (R,), test squared error after active selection, by repetition.
        random: (R,), after random selection of as many.
    """

    labels: int
    active: Floats
    random: Floats


def budget_curve(
    panel: Panel, budgets: list[int], repetitions: int, rng: np.random.Generator
) -> list[CurvePoint]:
    """Active against random selection, replayed on the labelled rows.

    Half of the sources are a sealed test block in each repetition; the other half pretends to
    be unlabelled, and is labelled in up to ``ROUNDS`` batches.
    """
    known = np.flatnonzero(panel.labelled)
    names = np.unique(panel.group[known])
    errors = {kind: np.zeros((repetitions, len(budgets))) for kind in ("active", "random")}
    for repetition in range(repetitions):
        inside = rng.permutation(names)[: len(names) // 2]
        pool = known[np.isin(panel.group[known], inside)]
        sealed = panel.seal(known[~np.isin(panel.group[known], inside)])
        for kind, found in errors.items():
            for place, chosen in enumerate(_chosen(panel, pool, budgets, rng, kind)):
                seen = panel.rows(chosen).evidence(panel.n_patterns)
                cells = panel.cells(tuple(range(panel.n_judges)))
                p = fitted(FAMILIES[FAMILY], cells, seen.on(cells))[cells.of_pattern]
                found[repetition, place] = sealed.mse(p)
    return [
        CurvePoint(budget, errors["active"][:, i], errors["random"][:, i])
        for i, budget in enumerate(budgets)
    ]


def _chosen(
    panel: Panel, pool: Index, budgets: list[int], rng: np.random.Generator, kind: str
) -> list[Index]:
    """The rows labelled at each budget, each including the last."""
    out: list[Index] = []
    if kind == "random":
        order = rng.permutation(pool)
        _, first = np.unique(panel.group[order], return_index=True)
        order = order[np.sort(first)]
        return [order[:budget] for budget in budgets]
    step = max(1, budgets[-1] // ROUNDS)
    chosen = np.zeros(0, dtype=np.intp)
    for budget in budgets:
        while len(chosen) < budget:
            rest = pool[~np.isin(panel.group[pool], panel.group[chosen])]
            seen = panel.rows(chosen).evidence(panel.n_patterns) if len(chosen) else None
            more = plan(panel, rest, min(step, budget - len(chosen)), rng, seen)
            chosen = np.concatenate([chosen, more])
        out.append(chosen)
    return out
