"""Which rows to label next: those whose labels would most reduce the error of the map over all rows.

A linear map with parameters b predicts pattern x by x'b, or the log-odds of it. A label of the pattern
adds w x x' to the information about b, w = p (1 - p) being the Fisher information of a class and 1
that of a score. With C the inverse of the information so far (a ridge included), the mean over all rows
of the variance of their predictions is, to first order, tr(C S), S = mean of w^2 x x': an error of the
log-odds moves a probability by w times as much. By Sherman-Morrison one more label of x lowers it by

    w x'C S C x / (1 + w x'C x)

and the row with the largest gain is next: greedy V-optimal design (Chaloner and Verdinelli 1995).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.logistic import sigmoid
from clash.stats.selection.anchored import FREE, log_shares
from clash.stats.selection.families import FAMILIES, fit_family
from clash.stats.selection.metrics import expected_side
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.selector import plain_majority

if TYPE_CHECKING:
    from clash.stats.selection.panel import Cells, Evidence
    from clash.stats.typing import Floats, Index

LabelSampling = Literal["active", "random"]
FAMILY = "averaged"
"""The map whose test error replays measure: most splits give it the largest weight."""
MODEL = "anchored-logistic"
"""The map whose uncertainty chooses rows: it predicts sensibly before there is any label."""
RIDGE = 4.0
"""Pseudo-rows that shrink each judge's slope to zero while rows are chosen."""
ROUNDS = 8
"""Batches in which a replay labels; the map is refitted before each, as people label in batches too."""


@dataclass(frozen=True, slots=True)
class LabelInformation:
    """The linear map whose mean error over all rows labels are chosen to reduce.

    Attributes:
        x: (P, D), features of each pattern.
        weight: (P,), information of a label of the pattern: p (1 - p), or 1 for scores.
        spread: (D, D), S of the module: the quadratic cost of an error of the parameters.
    """

    x: Floats
    weight: Floats
    spread: Floats


def label_design(panel: PanelVotes, evidence: Evidence | None) -> LabelInformation:
    """Design on majority's log-odds, a constant and each judge, as in the anchored map."""
    cells = panel.cells(tuple(range(panel.n_judges)))
    x = _features(cells)[cells.of_pattern]
    weight = np.ones(len(x))
    if panel.target != "scalar":
        p = sigmoid(x[:, 0])
        if evidence is not None and evidence.size:
            p = expected_side(
                fit_family(FAMILIES[MODEL], cells, evidence.on(cells))[cells.of_pattern]
            )
        weight = p * (1 - p)
    rows = np.bincount(panel.pattern, minlength=len(x)) / panel.n_rows
    return LabelInformation(x, weight, (x * (rows * weight**2)[:, None]).T @ x)


def _features(cells: Cells) -> Floats:
    if cells.target == "scalar":
        share = expected_side(np.exp(log_shares(cells))[:, -1:])
        first = 2 * share - 1
    else:
        logs = log_shares(cells)
        first = logs[:, -1] - logs[:, 0]
    return np.column_stack([first, np.ones(len(first)), cells.design])


def plan_labels(
    panel: PanelVotes,
    rows: Index,
    n: int,
    rng: np.random.Generator,
    evidence: Evidence | None = None,
) -> Index:
    """The next ``n`` rows to label, the most useful first; at most one row of each source.

    Each is the one that most lowers the mean variance of predictions over all rows, given those
    before it (see the module). Where the map is wrong, for example because judges fail together on
    one kind of item, a random sample is safer: see :func:`budget_curve`.

    Rows chosen this way are not a random sample. Their labels fit a map well, but neither a
    controlled risk nor a win rate may be computed from them.

    Args:
        panel: the panel.
        rows: unlabelled rows to choose from.
        n: number of rows to choose.
        rng: order of the rows of one pattern.
        evidence: labels so far, by pattern of the whole panel.

    Raises:
        StatisticsError: fewer sources than ``n``.
    """
    order = one_row_of_each_source(panel, rows, n, rng)
    design = label_design(panel, evidence)
    x, weight = design.x, design.weight
    ridge = np.full(x.shape[1], RIDGE)
    ridge[:2] = 1.0, FREE
    information = np.diag(ridge)
    if evidence is not None:
        information = information + (x * (evidence.n * weight)[:, None]).T @ x
    covariance = np.linalg.inv(information)
    rows_of: dict[int, list[int]] = {}
    for row in order.tolist():
        rows_of.setdefault(int(panel.pattern[row]), []).append(row)
    patterns = np.array(list(rows_of))
    rows_chosen: list[int] = []
    for _ in range(n):
        best = _next(x[patterns], weight[patterns], covariance, design.spread)
        pattern = int(patterns[best])
        rows_chosen.append(rows_of[pattern].pop())
        direction = covariance @ x[pattern]
        covariance -= np.outer(direction, direction) * (
            weight[pattern] / (1 + weight[pattern] * float(x[pattern] @ direction))
        )
        if not rows_of[pattern]:
            patterns = np.delete(patterns, best)
    return np.array(rows_chosen, dtype=np.intp)


def _next(x: Floats, weight: Floats, covariance: Floats, spread: Floats) -> int:
    """Which pattern's label lowers the mean variance of predictions most."""
    directions = x @ covariance
    gain = weight * ((directions @ spread) * directions).sum(axis=1)
    return int(np.argmax(gain / (1 + weight * (directions * x).sum(axis=1))))


def one_row_of_each_source(
    panel: PanelVotes, rows: Index, n: int, rng: np.random.Generator
) -> Index:
    """A random row of each source among these, in random order.

    Raises:
        StatisticsError: fewer sources than ``n``.
    """
    order = rng.permutation(rows)
    _, first = np.unique(panel.group[order], return_index=True)
    order = np.asarray(order[np.sort(first)])
    if n > len(order):
        raise StatisticsError(
            f"{n} rows are requested, but only {len(order)} unlabelled sources exist"
        )
    return order


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Test error after some number of labels, on rows that were not labelled.

    Attributes:
        active: (R,), test squared error after active selection, by repetition.
        random: (R,), after random selection of as many.
    """

    labels: int
    active: Floats
    random: Floats


def budget_curve(
    panel: PanelVotes,
    budgets: list[int],
    repetitions: int,
    rng: np.random.Generator,
    *,
    simulate_labels: bool = False,
) -> list[CurvePoint]:
    """Active against random selection of rows to label, replayed on the labelled rows.

    In each repetition half of the sources are a sealed test block. The other half is treated as
    unlabelled, and labelled in up to ``ROUNDS`` batches.

    Args:
        panel: the panel.
        budgets: numbers of labels, rising.
        repetitions: splits.
        rng: of splits, samples and simulated labels.
        simulate_labels: draw labels from the vote shares in each repetition, where there are none: the curve
            to expect if majority is right as often as judges agree.
    """
    errors: dict[LabelSampling, Floats] = {
        sampling: np.zeros((repetitions, len(budgets))) for sampling in ("active", "random")
    }
    for repetition in range(repetitions):
        labelled_panel = _simulate_labels(panel, rng) if simulate_labels else panel
        labelled_rows = np.flatnonzero(labelled_panel.has_label)
        names = rng.permutation(np.unique(labelled_panel.group[labelled_rows]))
        inside = np.isin(labelled_panel.group[labelled_rows], names[: len(names) // 2])
        pool, test_block = labelled_rows[inside], labelled_panel.seal(labelled_rows[~inside])
        cells = labelled_panel.cells(tuple(range(labelled_panel.n_judges)))
        for sampling, test_errors in errors.items():
            for i_budget, training_rows in enumerate(
                _rows_by_budget(labelled_panel, pool, budgets, rng, sampling)
            ):
                evidence = labelled_panel.rows(training_rows).evidence(labelled_panel.n_patterns)
                p = fit_family(FAMILIES[FAMILY], cells, evidence.on(cells))[cells.of_pattern]
                test_errors[repetition, i_budget] = test_block.mse(p)
    return [
        CurvePoint(budget, errors["active"][:, i], errors["random"][:, i])
        for i, budget in enumerate(budgets)
    ]


def _simulate_labels(panel: PanelVotes, rng: np.random.Generator) -> PanelVotes:
    """The panel with a label for every row, drawn from its vote shares."""
    p = plain_majority(panel)[panel.pattern]
    u = rng.random(len(p))[:, None]
    label = (u > 1 - p)[:, 0] * 1.0
    if p.shape[1] > 1:
        label = (u > np.cumsum(p, axis=1)[:, :-1]).sum(axis=1) / 2
    elif panel.target == "scalar":
        label = p[:, 0]
    return PanelVotes.of(panel.values[panel.pattern], label, panel.group, panel.target, panel.item)


def _rows_by_budget(
    panel: PanelVotes,
    pool: Index,
    budgets: list[int],
    rng: np.random.Generator,
    sampling: LabelSampling,
) -> list[Index]:
    """The labelled rows at each budget; each includes those of the budget before."""
    if sampling == "random":
        order = one_row_of_each_source(panel, pool, 0, rng)
        return [order[:budget] for budget in budgets]
    by_budget: list[Index] = []
    step = max(1, budgets[-1] // ROUNDS)
    training_rows = np.zeros(0, dtype=np.intp)
    for budget in budgets:
        while len(training_rows) < budget:
            candidates = pool[~np.isin(panel.group[pool], panel.group[training_rows])]
            evidence = (
                panel.rows(training_rows).evidence(panel.n_patterns) if len(training_rows) else None
            )
            batch = plan_labels(
                panel, candidates, min(step, budget - len(training_rows)), rng, evidence
            )
            training_rows = np.concatenate([training_rows, batch])
        by_budget.append(training_rows)
    return by_budget
