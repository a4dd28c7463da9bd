"""Errors of every family at every prefix as labels grow, for tables 22 to 25 and the regime map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.tasks import run_tasks
from clash.reproduction.simulations.experiment import (
    CurvePlot,
    PaperComparison,
    RiskCurve,
    SampleMean,
)
from clash.stats.selection.families import FAMILIES, fit_family
from clash.stats.selection.joint_table import ALPHA, joint_table
from clash.stats.selection.panel import PanelVotes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.selection.panel import Cells, Evidence, LabelledRows
    from clash.stats.simulate.interactions import ResampledVotes
    from clash.stats.simulate.panels import SimulatedSample
    from clash.stats.typing import Floats

    Draw = Callable[[int, np.random.Generator], SimulatedSample | ResampledVotes]

TABLE = "joint-table"
ADDITIVE = ("ridge-isotonic", "logistic")
SCALARS = (*ADDITIVE, "ridge-pairwise")
VALIDATION, TEST = 300, 4000
HALF_DIGIT = 5e-4
BOLD = 0.001
"""A gap below which the paper calls nobody the winner."""


@dataclass(frozen=True)
class ErrorGrid:
    """Families by prefix at one budget of labels.

    Attributes:
        validation: (F, K), squared error on the validation rows; the table first, then the scalar
            families.
        test: (F, K), on the test rows.
        unseen_share: (K,), share of test rows whose pattern no labelled row has.
    """

    validation: Floats
    test: Floats
    unseen_share: Floats

    def k(self, name: str = TABLE) -> int:
        """The prefix that validation chooses for a family."""
        return int(np.argmin(self.validation[_POSITION[name]])) + 1

    def risk(self, name: str) -> float:
        """Test error of a family at that prefix."""
        return float(self.test[_POSITION[name], self.k(name) - 1])

    def gap(self, scalars: Sequence[str] = SCALARS) -> float:
        """Best scalar by validation minus table: positive where the table is worth its labels."""
        best = min(scalars, key=lambda name: self.validation[_POSITION[name]].min())
        return self.risk(best) - self.risk(TABLE)

    @property
    def unseen_by_choice(self) -> float:
        """Unseen mass of the table at its prefix."""
        return float(self.unseen_share[self.k() - 1])


NAMES = (TABLE, *SCALARS)
_POSITION = {name: position for position, name in enumerate(NAMES)}


def learn(
    draw: Draw, budgets: Sequence[int], rng: np.random.Generator, *, test: int = TEST
) -> list[ErrorGrid]:
    """One draw: every family at every prefix of the judges in order, at each budget.

    Args:
        draw: so many rows of votes in [0, 1], with labels.
        budgets: labels to fit to; the smaller ones are the first rows of the largest.
        rng: of the draw.
        test: rows that nothing is fitted to.
    """
    most = max(budgets)
    sample = draw(most + VALIDATION + test, rng)
    rows = np.arange(len(sample.labels))
    panel = PanelVotes.of(sample.votes, sample.labels, rows, "binary")
    validation = panel.rows(rows[most : most + VALIDATION])
    test_rows = panel.rows(rows[most + VALIDATION :])
    return [_at(panel, panel.rows(np.arange(budget)), validation, test_rows) for budget in budgets]


def _at(
    panel: PanelVotes, rows: LabelledRows, validation: LabelledRows, test: LabelledRows
) -> ErrorGrid:
    evidence = rows.evidence(panel.n_patterns)
    shape = len(NAMES), panel.n_judges
    left, right, neither = np.empty(shape), np.empty(shape), np.empty(panel.n_judges)
    for k in range(panel.n_judges):
        cells = panel.cells(range(k + 1))
        cell_evidence = evidence.on(cells)
        neither[k] = (cell_evidence.n[cells.of_pattern][test.pattern] == 0).mean()
        for row, name in enumerate(NAMES):
            p = _fit(name, cells, cell_evidence)[cells.of_pattern]
            left[row, k] = validation.losses(p, "mse").mean()
            right[row, k] = test.losses(p, "mse").mean()
    return ErrorGrid(left, right, neither)


def _fit(name: str, cells: Cells, evidence: Evidence) -> Floats:
    """The paper's table has one alpha and the global fallback; the menu's chooses its own."""
    if name == TABLE:
        return joint_table(cells, evidence, alpha=ALPHA)
    return fit_family(FAMILIES[name], cells, evidence)


def repeat_draws(
    draw: Draw, budgets: Sequence[int], seed: list[int], replications: int
) -> list[list[ErrorGrid]]:
    """So many draws, each with its own generator."""
    seeds = [[*seed, r] for r in range(replications)]
    return list(run_tasks(_learn_draw, (draw, budgets), seeds))


def _learn_draw(law: tuple[Draw, Sequence[int]], seed: list[int]) -> list[ErrorGrid]:
    draw, budgets = law
    return learn(draw, budgets, np.random.default_rng(seed))


def gaps(runs: Sequence[Sequence[ErrorGrid]], scalars: Sequence[str] = SCALARS) -> list[SampleMean]:
    """Scalar minus table at each budget, over draws."""
    return [SampleMean.of([run[i].gap(scalars) for run in runs]) for i in range(len(runs[0]))]


def gap_rows(
    name: str,
    budgets: Sequence[int],
    means: Sequence[SampleMean],
    paper: Sequence[float],
    source: str,
    notes: Sequence[str],
) -> list[PaperComparison]:
    """A row for each budget beside the paper's."""
    return [
        PaperComparison.of(
            f"{name}, {n} labels", mean, figure, source, resolution=HALF_DIGIT, note=note
        )
        for n, mean, figure, note in zip(budgets, means, paper, notes, strict=True)
    ]


def mean_curve(
    name: str, budgets: Sequence[int], means: Sequence[SampleMean], colour: int = 0
) -> RiskCurve:
    """Means and their errors by budget."""
    values, errors = tuple(m.value for m in means), tuple(m.se for m in means)
    return RiskCurve(name, tuple(map(float, budgets)), values, errors, colour=colour)


def paper_curve(
    name: str, budgets: Sequence[int], figures: Sequence[float], colour: int = 0
) -> RiskCurve:
    """The paper's figures by budget."""
    x = tuple(map(float, budgets))
    return RiskCurve(f"{name}, paper", x, tuple(figures), colour=colour)


def gap_plot(name: str, titles: Sequence[str], panels: Sequence[Sequence[RiskCurve]]) -> CurvePlot:
    """Gaps by labels; above zero the table wins."""
    return CurvePlot(
        name,
        tuple(titles),
        tuple((*lines, RiskCurve("even", (), (0.0,), level=True)) for lines in panels),
        "calibration labels",
        "scalar - table, test MSE",
        log_x=True,
    )


def winner(gap: float) -> int:
    """Who wins by more than ``BOLD``: 1 the table, -1 the scalar family, 0 nobody."""
    return 0 if abs(gap) <= BOLD else int(np.sign(gap))


def best_possible(name: str, least: float, runs: Sequence[Sequence[ErrorGrid]]) -> str:
    """The errors at the largest budget beside the least that any rule can have, in a sentence."""
    n_judges = np.mean([run[-1].k() for run in runs])
    risks = {
        family: np.mean([run[-1].risk(family) for run in runs]) for family in (TABLE, *SCALARS)
    }
    errors = ", ".join(f"{family} {risk:.3f}" for family, risk in risks.items())
    return (
        f"{name}, 2048 labels: {errors}; the best possible {least:.3f};"
        f" the table asks {n_judges:.1f} judges"
    )
