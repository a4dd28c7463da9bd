"""Which family wins at which prefix and number of labels, and whether the next judge helps.

Both are measured on test blocks after the fact: they explain choices and are not used to make any.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.selection import blocks
from clash.stats.selection.candidate_methods import CandidateMethod, MethodFitter, SelectionSettings
from clash.stats.selection.families import FAMILIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.stats.selection.selector import SplitOutcome
    from clash.stats.typing import Floats, Index

BUDGETS = (25, 50, 100, 200, 400, 800, 1600)
MOST_TRAIN = 0.75
"""Share of the labelled sources that the largest budget may take: the rest is the test block."""
RULE = "information-first"


@dataclass(frozen=True, slots=True)
class RegimeCell:
    """One prefix at one budget.

    Attributes:
        k: judges.
        labels: labelled sources that maps are fitted to.
        winner: family with the least mean test error; null where all were refused.
        risk: that error.
        gap: test error of the best scalar family minus that of the best table: positive where the
            table pays off. NaN without either.
        se: its standard error over splits.
    """

    k: int
    labels: int
    winner: str | None
    risk: float
    gap: float
    se: float

    @property
    def clear(self) -> bool:
        """Whether table and scalar families are two standard errors apart."""
        return abs(self.gap) > 2 * self.se


@dataclass(frozen=True)
class RegimeMap:
    """Test error by split, budget, prefix and family.

    Attributes:
        budgets: B numbers of labels.
        sizes: K prefix sizes.
        families: F names.
        risk: (S, B, K, F), mean squared error; NaN where a family was refused.
    """

    budgets: tuple[int, ...]
    sizes: tuple[int, ...]
    families: tuple[str, ...]
    risk: Floats = field(repr=False)

    def cell(self, labels: int, k: int) -> RegimeCell:
        """The winning family there, and by how much table and scalar families differ."""
        risks = self.risk[:, self.budgets.index(labels), self.sizes.index(k)]
        mean = risks.mean(axis=0)
        best = None if np.isnan(mean).all() else int(np.nanargmin(mean))
        gap, se = self._gap(risks, mean)
        if best is None:
            return RegimeCell(k, labels, None, math.nan, gap, se)
        return RegimeCell(k, labels, self.families[best], float(mean[best]), gap, se)

    def cells(self) -> list[RegimeCell]:
        """All of them, by budget and prefix."""
        return [self.cell(n, k) for n in self.budgets for k in self.sizes]

    def _gap(self, risks: Floats, mean: Floats) -> tuple[float, float]:
        table, scalar = self._of_kind("table", mean), self._of_kind("scalar", mean)
        if table is None or scalar is None:
            return math.nan, math.nan
        gaps = risks[:, scalar] - risks[:, table]
        se = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else math.nan
        return float(gaps.mean()), se

    def _of_kind(self, kind: str, mean: Floats) -> int | None:
        """The best family of a kind."""
        members = [i for i, name in enumerate(self.families) if FAMILIES[name].kind == kind]
        fitted_members = [i for i in members if not np.isnan(mean[i])]
        return min(fitted_members, key=lambda i: mean[i]) if fitted_members else None


def budgets_for(n_items: int) -> tuple[int, ...]:
    """Those of ``BUDGETS`` that leave a test block; else the largest number of labels that does."""
    most = int(MOST_TRAIN * n_items)
    return tuple(n for n in BUDGETS if n <= most) or (most,)


def survey(
    panel: PanelVotes,
    settings: SelectionSettings,
    *,
    splits: int,
    seed: int,
    budgets: Sequence[int] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> RegimeMap:
    """Fit every family to every prefix of the information-first path at growing budgets.

    Path and maps are made from the same rows, and measured on the rows of other sources. Models of
    votes alone see the votes of all rows, and no label.

    Args:
        panel: with labels.
        settings: its families and prefix sizes.
        splits: random splits at each budget.
        seed: of the splits.
        budgets: labelled items; by default those that leave a test block.
        on_progress: called with the number of splits done and of all.

    Raises:
        StatisticsError: too few labelled sources.
    """
    n_items = len(np.unique(panel.item[panel.has_label]))
    labels_by_column = tuple(budgets or budgets_for(n_items))
    sizes = tuple(k for k in settings.sizes if k <= panel.n_judges)
    fitter = MethodFitter(
        panel, SelectionSettings(rules=(RULE,), sizes=sizes, families=settings.families)
    )
    risk = np.empty((splits, len(labels_by_column), len(sizes), len(settings.families)))
    for b, budget in enumerate(labels_by_column):
        for i in range(splits):
            rng = np.random.default_rng([seed, 4, budget, i])
            risk[i, b] = _at(panel, fitter, budget, sizes, rng)
            if on_progress is not None:
                on_progress(b * splits + i + 1, splits * len(labels_by_column))
    return RegimeMap(labels_by_column, sizes, settings.families, risk)


def _at(
    panel: PanelVotes,
    fitter: MethodFitter,
    budget: int,
    sizes: tuple[int, ...],
    rng: np.random.Generator,
) -> Floats:
    """(K, F), test errors of one split."""
    row_split = blocks.split(panel, blocks.SplitPlan(labels=budget, rotations=1), rng)
    everybody = panel.votes(np.arange(panel.n_rows))
    evidence = panel.rows(row_split.train).evidence(panel.n_patterns, everybody)
    paths = fitter.paths(evidence, len(row_split.train), rng)
    families = fitter.settings.families
    menu = [CandidateMethod(RULE, k, family) for k in sizes for family in families]
    test_block = panel.seal(row_split.test)
    risks = [
        math.nan if p is None else test_block.mse(p)
        for p in fitter.predictions(menu, paths, evidence)
    ]
    return np.array(risks).reshape(len(sizes), len(families))


@dataclass(frozen=True, slots=True)
class StepBand:
    """Median cost of some steps, and 10%, 50% and 90% of their change in test error."""

    cost: float
    low: float
    middle: float
    high: float


@dataclass(frozen=True)
class JudgeSteps:
    """Steps from a prefix to the next longer one, over splits and paths.

    Attributes:
        cost: (n,), rise in H / n, the effective patterns per label.
        change: (n,), change in test error; negative where the judge helped.
        k: (n,), judges before.
    """

    cost: Floats = field(repr=False)
    change: Floats = field(repr=False)
    k: Floats = field(repr=False)

    def bands(self, n: int = 6) -> list[StepBand]:
        """Groups of equal size by cost, cheapest first; none without steps."""
        order = np.argsort(self.cost, kind="stable")
        return [self._band(part) for part in np.array_split(order, n) if len(part)]

    def _band(self, part: Index) -> StepBand:
        low, middle, high = np.quantile(self.change[part], (0.1, 0.5, 0.9)).tolist()
        return StepBand(float(np.median(self.cost[part])), low, middle, high)


def judge_steps(outcomes: Sequence[SplitOutcome], family: str = "joint-table") -> JudgeSteps:
    """Steps from each prefix to the next longer one of the same path (appendix D.2).

    Args:
        outcomes: one for each split.
        family: whose test error changes; the cost is that of the joint table for every family.
    """
    changes: list[tuple[float, float, float]] = []
    for outcome in outcomes:
        risk = dict(zip(outcome.choice.candidates, outcome.risks.tolist(), strict=True))
        for (path, k), before in outcome.pressures.items():
            larger = [size for name, size in outcome.pressures if name == path and size > k]
            if not larger:
                continue
            after = min(larger)
            left, right = (risk.get(CandidateMethod(path, size, family)) for size in (k, after))
            if left is None or right is None or math.isnan(left + right):
                continue
            rise = outcome.pressures[path, after].h_k / before.n - before.h_k / before.n
            changes.append((rise, right - left, float(k)))
    table = np.array(changes, dtype=float).reshape(-1, 3)
    return JudgeSteps(table[:, 0], table[:, 1], table[:, 2])
