"""Tables 2, 3, 7 to 11, 17, 26 and 27 and figures 1 to 10 of the fourth paper on anyone's labelled votes.

The protocol of section 3.5: each split divides the sources into selection, calibration, validation
and test blocks. Paths are built on the first, maps fitted to the second, choices made on the third,
and the fourth only measures. Budgets are the first rows of one calibration block.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.calibration.frame import ScoreFrame
from clash.errors import InputError
from clash.reproduction.studies.fcps_records import (
    ChosenFamily,
    FamilyContest,
    FcpsStudy,
    MethodRisk,
    PathPoint,
    PrefixPoint,
    PressureAudit,
    SplitContest,
    Spread,
)
from clash.reproduction.studies.pressure import pressure_checks
from clash.reproduction.studies.trials import over_items, whole_sources
from clash.stats.resample import RepeatMean
from clash.stats.selection.candidate_methods import (
    CandidateMethod,
    MethodFitter,
    SelectionSettings,
    judges_of,
)
from clash.stats.selection.families import FAMILIES
from clash.stats.selection.joint_table import CellPressure, cell_pressure
from clash.stats.selection.model_choice import selection_penalty
from clash.stats.selection.paths import JudgePath

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.stats.typing import Bools, Floats, Index
    from clash.votes import Votes

JUDGES = 7
"""Judges of the paper's pool; of a larger file, those that voted most."""
BUDGETS = (50, 100, 200, 400, 800)
SHARES = (0.15, 0.15, 0.3)
"""Of the labelled rows, for selection, validation and test, as on RewardBench (table 1)."""
FEWEST_ROWS, FEWEST_BUDGET = 60, 16
INFORMATION = "information-first"
RULES = (INFORMATION, "complexity-penalised", "random")
TABLE = "joint-table-global"
SCALARS = (
    "mean-isotonic",
    "one-coin-isotonic",
    "ridge-isotonic",
    "logistic",
    "ridge-pairwise",
    "logistic-pairwise",
)
ADDITIVE = ("ridge-isotonic", "logistic")
WITH_PRODUCTS = ("ridge-pairwise", "logistic-pairwise")
_SINGLE = "single"


@dataclass(frozen=True)
class FcpsPlan:
    """What the study varies.

    Attributes:
        splits: random splits by source.
        budgets: calibration labels; null for 50, 100, … as far as the votes reach, and the most.
        judges: judges of the pool.
        most_items: labelled rows pool_votes, drawn by source; null keeps all.
    """

    splits: int = 30
    budgets: tuple[int, ...] | None = None
    judges: int = JUDGES
    most_items: int | None = None


def fcps_study(
    votes: Votes, plan: FcpsPlan, seed: int, on_split: Callable[[int], None] = lambda _n: None
) -> FcpsStudy:
    """Joint tables against scalar families at every budget.

    Raises:
        InputError: too few labels, sources or judges, or a budget that the votes do not reach.
    """
    pool_votes, notes = _pool(votes, plan, np.random.default_rng([seed, 1]))
    frame = ScoreFrame.of(pool_votes, FEWEST_ROWS)
    panel = frame.panel(pool_votes)
    rows = np.flatnonzero(panel.has_label)
    sizes = tuple(max(FEWEST_BUDGET, round(share * len(rows))) for share in SHARES)
    largest = int(np.bincount(panel.group[rows]).max())
    # A block may be larger than its share by part of a source.
    budgets = _budgets(plan, len(rows) - sum(sizes) - len(sizes) * (largest - 1))
    menu = _Menu(panel)
    splits = []
    for s in range(plan.splits):
        splits.append(
            menu.run(_deal(panel, rows, sizes, np.random.default_rng([seed, s])), budgets)
        )
        on_split(s + 1)
    grid = _Grid(menu, budgets, splits, panel.group)
    points, contests = tuple(grid.points()), tuple(grid.split_contests())
    return FcpsStudy(
        votes.source,
        frame.judges,
        frame.target,
        len(rows),
        len(np.unique(panel.group[rows])),
        plan.splits,
        seed,
        budgets,
        (sizes[0], sizes[1], sizes[2]),
        selection_penalty(len(menu.tables) + len(menu.scalars), sizes[1]),
        *grid.findings(),
        tuple(notes),
        points,
        contests,
        pressure_checks([points], [contests], seed),
    )


def _pool(votes: Votes, plan: FcpsPlan, rng: np.random.Generator) -> tuple[Votes, list[str]]:
    """The labelled rows of the judges that voted most, and what was left out."""
    notes = []
    with_labels = votes.take(votes.labelled)
    counts = (~np.isnan(with_labels.matrix)).sum(axis=0)
    if len(counts) < 2:
        raise InputError(
            f"too few judges for a panel: 2 are needed, and there are {len(counts)}",
            path=votes.source or None,
            field="judge",
            hint="votes of more judges, or without --judges",
        )
    pool = np.sort(np.argsort(-counts, kind="stable")[: plan.judges])
    if len(pool) < len(counts):
        notes.append(f"{len(pool)} of {len(counts)} judges: those that voted most")
        with_labels = replace(
            with_labels,
            judges=tuple(with_labels.judges[j] for j in pool),
            families=tuple(with_labels.families[j] for j in pool),
            matrix=with_labels.matrix[:, pool],
            failed=with_labels.failed[pool],
        )
    is_kept: Bools = np.asarray(~np.isnan(with_labels.matrix).all(axis=1))
    if not is_kept.all():
        notes.append(f"{int((~is_kept).sum())} rows without a vote of these judges are left out")
    if plan.most_items is not None and is_kept.sum() > plan.most_items:
        notes.append(f"a random {plan.most_items} of {int(is_kept.sum())} rows (--most-items)")
        is_kept = whole_sources(with_labels.groups, is_kept, plan.most_items, rng)
    return with_labels.take(is_kept), notes


def _budgets(plan: FcpsPlan, most: int) -> tuple[int, ...]:
    if most < FEWEST_BUDGET:
        raise InputError(
            "too few labelled rows: after selection, validation and test"
            f" {max(most, 0)} are left to calibrate on, and {FEWEST_BUDGET} are needed",
            field="label",
            hint="label more rows: clash review RUN, or a votes file with more labels",
        )
    if plan.budgets is None:
        last = min(most, max(BUDGETS))
        return (*(n for n in BUDGETS if n <= 0.8 * last), last)
    if max(plan.budgets) > most:
        raise InputError(
            f"{max(plan.budgets)} calibration labels are more than the {most} that selection,"
            " validation and test leave",
            field="--labels",
            hint=f"--labels with numbers up to {most}",
        )
    return tuple(sorted(plan.budgets))


@dataclass(frozen=True)
class _Blocks:
    """Rows of one split; calibration in a random order of its sources."""

    selection: Index
    validation: Index
    test: Index
    calibration: Index
    rng: np.random.Generator


def _deal(
    panel: PanelVotes, rows: Index, sizes: Sequence[int], rng: np.random.Generator
) -> _Blocks:
    """Whole sources in random order, cut where the blocks are full."""
    sources = rng.permutation(np.unique(panel.group[rows]))
    rank = np.empty(int(panel.group.max()) + 1, np.intp)
    rank[sources] = np.arange(len(sources))
    order = rows[np.argsort(rank[panel.group[rows]], kind="stable")]
    # The block of a source is that of its first row, so no source is in two blocks.
    first = np.searchsorted(rank[panel.group[order]], np.arange(len(sources)))
    block = np.searchsorted(np.cumsum(sizes), first, side="right")[rank[panel.group[order]]]
    parts = [order[block == b] for b in range(4)]
    return _Blocks(parts[0], parts[1], parts[2], parts[3], rng)


@dataclass(frozen=True)
class _Outcome:
    """One split at one budget.

    Attributes:
        validation: (M,), risk of each candidate; NaN where it was refused.
        losses: (M, n), squared error on each test row.
        pressures: of the joint table by path rule and prefix.
        test: the rows.
    """

    validation: Floats
    losses: Floats
    pressures: Mapping[tuple[str, int], CellPressure]
    test: Index

    @property
    def risks(self) -> Floats:
        return np.asarray(self.losses.mean(axis=1))

    def best(self, places: Sequence[int]) -> int:
        """Of some candidates, the one with the least validation risk."""
        index = np.asarray(places)
        return int(index[int(np.nanargmin(self.validation[index]))])


class _Menu:
    """The candidates of a panel and their fits."""

    def __init__(self, panel: PanelVotes) -> None:
        self.panel = panel
        n = panel.n_judges
        self.sizes = tuple(range(1, n + 1))
        tables = [CandidateMethod(rule, k, TABLE) for rule in RULES for k in self.sizes]
        scalars = [
            CandidateMethod(INFORMATION, k, family)
            for k in self.sizes
            for family in SCALARS
            if k <= (FAMILIES[family].most or n)
        ]
        singles = [CandidateMethod(f"{_SINGLE} {j}", 1, TABLE) for j in range(n)]
        self.candidates = [*tables, *scalars, *singles]
        self.tables = range(len(tables))
        self.scalars = range(len(tables), len(tables) + len(scalars))
        self.singles = range(len(tables) + len(scalars), len(self.candidates))
        self._fitter = MethodFitter(panel, SelectionSettings(rules=RULES, sizes=self.sizes))

    def run(self, blocks: _Blocks, budgets: Sequence[int]) -> list[_Outcome]:
        """Every candidate at every budget of a split."""
        state = blocks.rng.bit_generator.state
        outcomes = []
        for budget in budgets:
            blocks.rng.bit_generator.state = state  # the random path is that of the split
            outcomes.append(self._at(blocks, budget))
        return outcomes

    def _at(self, blocks: _Blocks, budget: int) -> _Outcome:
        panel = self.panel
        selection = panel.rows(blocks.selection).evidence(panel.n_patterns)
        rows = blocks.calibration[:budget]
        evidence = panel.rows(rows).evidence(panel.n_patterns)
        paths = self._fitter.paths(selection, budget, blocks.rng)
        for j in range(panel.n_judges):
            paths[f"{_SINGLE} {j}"] = JudgePath(_SINGLE, {1: (j,)})
        predictions = self._fitter.predictions(self.candidates, paths, evidence)
        validation, test = panel.rows(blocks.validation), panel.rows(blocks.test)
        no_losses = np.full(len(blocks.test), np.nan)
        return _Outcome(
            np.array(
                [math.nan if p is None else validation.losses(p, "mse").mean() for p in predictions]
            ),
            np.stack([no_losses if p is None else test.losses(p, "mse") for p in predictions]),
            {
                (c.path, c.k): cell_pressure(panel, judges_of(c, paths), evidence, test.pattern)
                for c in (self.candidates[i] for i in self.tables)
            },
            blocks.test,
        )


class _Grid:
    """Reductions of all splits: what the tables and figures show."""

    def __init__(
        self,
        menu: _Menu,
        budgets: tuple[int, ...],
        splits: Sequence[Sequence[_Outcome]],
        groups: Index,
    ) -> None:
        self.menu, self.budgets, self.groups = menu, budgets, groups
        self.by_budget = [[split[b] for split in splits] for b in range(len(budgets))]
        self.last = self.by_budget[-1]

    def findings(
        self,
    ) -> tuple[
        tuple[PressureAudit, ...],
        tuple[MethodRisk, ...],
        tuple[MethodRisk, ...],
        tuple[ChosenFamily, ...],
        tuple[MethodRisk, ...],
        tuple[FamilyContest, ...],
        tuple[PathPoint, ...],
        tuple[PathPoint, ...],
    ]:
        """Tables 2, 3, 8 to 11, and the curves, in the order of the fields of ``FcpsStudy``."""
        at = range(len(self.budgets))
        return (
            tuple(self._pressure(b) for b in at),
            tuple(self._baselines()),
            tuple(self._scalars()),
            tuple(self._choice(b) for b in at),
            tuple(self._ablation()),
            tuple(self._contest(b) for b in at),
            tuple(self._prefixes()),
            tuple(self._sizes()),
        )

    def points(self) -> list[PrefixPoint]:
        """Every joint table of every split and budget."""
        menu = self.menu
        return [
            PrefixPoint(
                s,
                budget,
                c.path,
                c.k,
                float(outcome.validation[i]),
                float(outcome.risks[i]),
                outcome.pressures[c.path, c.k].h_k,
                outcome.pressures[c.path, c.k].cell_pressure,
                outcome.pressures[c.path, c.k].unseen,
            )
            for budget, outcomes in zip(self.budgets, self.by_budget, strict=True)
            for s, outcome in enumerate(outcomes)
            for i, c in ((i, menu.candidates[i]) for i in menu.tables)
        ]

    def split_contests(self) -> list[SplitContest]:
        """Every split at every budget; the gain is 0 where nothing can be paired."""
        menu, pool_size = self.menu, len(self.menu.sizes)
        additive, with_products = (
            [i for f in families for i in self._places(menu.scalars, k=pool_size, family=f)]
            for families in (ADDITIVE, WITH_PRODUCTS)
        )
        contests = []
        for budget, outcomes in zip(self.budgets, self.by_budget, strict=True):
            for s, o in enumerate(outcomes):
                table = menu.candidates[o.best(menu.tables)]
                pressure = o.pressures[table.path, table.k]
                risks = [o.validation[places] for places in (additive, with_products)]
                can_pair = all(np.isfinite(risk).any() for risk in risks)
                gain = float(np.nanmin(risks[0]) - np.nanmin(risks[1])) if can_pair else 0.0
                gap = float(o.risks[o.best(menu.tables)] - o.risks[o.best(menu.scalars)])
                contests.append(SplitContest(s, budget, pressure.h_k, pressure.unseen, gain, gap))
        return contests

    def _places(
        self, where: Sequence[int], *, rule: str | None = None, k: int | None = None,
        family: str | None = None,
    ) -> list[int]:  # fmt: skip
        menu = self.menu.candidates
        return [
            i
            for i in where
            if (rule is None or menu[i].path == rule)
            and (k is None or menu[i].k == k)
            and (family is None or menu[i].family == family)
        ]

    def _risk(self, name: str, outcomes: Sequence[_Outcome], picks: Sequence[int]) -> MethodRisk:
        """One candidate of each split, on its test rows."""
        losses = [o.losses[i] for o, i in zip(outcomes, picks, strict=True)]
        return MethodRisk(
            name,
            over_items([o.test for o in outcomes], losses, self.groups),
            RepeatMean.of([float(x.mean()) for x in losses]),
            float(np.mean([self.menu.candidates[i].k for i in picks])),
        )

    def _by_validation(self, name: str, places: Sequence[int]) -> MethodRisk:
        return self._risk(name, self.last, [o.best(places) for o in self.last])

    def _pressure(self, b: int) -> PressureAudit:
        outcomes, menu = self.by_budget[b], self.menu
        picks = [menu.candidates[o.best(menu.tables)] for o in outcomes]
        pressures = [o.pressures[c.path, c.k] for o, c in zip(outcomes, picks, strict=True)]
        cells = [p.cell_pressure - p.unseen for p in pressures]
        mean = {
            name: float(np.mean([getattr(p, name) for p in pressures]))
            for name in ("unseen", "cell_pressure", "v")
        }
        return PressureAudit(
            self.budgets[b],
            float(np.mean([c.k for c in picks])),
            float(np.mean(cells)),
            mean["unseen"],
            mean["cell_pressure"],
            mean["v"],
            float(np.mean([o.risks[o.best(menu.tables)] for o in outcomes])),
            float(np.mean([o.risks[o.best(menu.scalars)] for o in outcomes])),
        )

    def _baselines(self) -> list[MethodRisk]:
        menu = self.menu
        most = len(menu.sizes)
        everybody = self._places(menu.tables, rule=INFORMATION, k=most)
        oracle = [menu.tables[int(np.nanargmin(o.risks[list(menu.tables)]))] for o in self.last]
        return [
            self._by_validation("best single judge, by validation", menu.singles),
            self._by_validation(f"all {most} judges", everybody),
            *(
                self._by_validation(f"{rule} path, K by validation",
                                    self._places(menu.tables, rule=rule))
                for rule in RULES
            ),
            self._by_validation("path-family envelope", menu.tables),
            self._risk("test oracle envelope, not deployable", self.last, oracle),
        ]  # fmt: skip

    def _scalars(self) -> list[MethodRisk]:
        menu = self.menu
        most = len(menu.sizes)
        return [
            self._by_validation(family, places)
            for family in SCALARS
            if (places := self._places(menu.scalars, k=most, family=family))
        ]

    def _choice(self, b: int) -> ChosenFamily:
        outcomes, menu = self.by_budget[b], self.menu
        picks = [o.best(menu.scalars) for o in outcomes]
        candidates = [menu.candidates[i] for i in picks]
        family, times = Counter(c.family for c in candidates).most_common(1)[0]
        return ChosenFamily(
            self.budgets[b],
            family,
            times / len(picks),
            float(np.mean([c.k for c in candidates])),
            RepeatMean.of([float(o.risks[i]) for o, i in zip(outcomes, picks, strict=True)]),
        )

    def _ablation(self) -> list[MethodRisk]:
        menu = self.menu
        most = len(menu.sizes)
        groups = {
            "table": list(menu.tables),
            "scalar": list(menu.scalars),
            "full": [*menu.tables, *menu.scalars],
        }
        return [
            self._by_validation(f"{name}, {setting}", self._places(where, k=k))
            for name, where in groups.items()
            for setting, k in ((f"K = {most}", most), ("K by validation", None))
        ]

    def _contest(self, b: int) -> FamilyContest:
        outcomes, menu = self.by_budget[b], self.menu
        places = {rule: self._places(menu.tables, rule=rule) for rule in RULES}
        mean = {
            rule: np.mean([o.validation[o.best(at)] for o in outcomes])
            for rule, at in places.items()
        }
        rule = min(mean, key=lambda name: mean[name])
        table = [o.losses[o.best(places[rule])] for o in outcomes]
        scalar = [o.losses[o.best(menu.scalars)] for o in outcomes]
        gaps = [t - s for t, s in zip(table, scalar, strict=True)]
        return FamilyContest(
            self.budgets[b],
            rule,
            float(np.mean([x.mean() for x in table])),
            float(np.mean([x.mean() for x in scalar])),
            over_items([o.test for o in outcomes], gaps, self.groups, least=-1.0),
            RepeatMean.of([float(gap.mean()) for gap in gaps]),
        )

    def _prefixes(self) -> list[PathPoint]:
        menu = self.menu
        return [
            PathPoint(
                c.path,
                c.k,
                Spread.of([float(o.risks[i]) for o in self.last]),
                Spread.of([float(o.validation[i]) for o in self.last]),
            )
            for i, c in ((i, menu.candidates[i]) for i in menu.tables)
        ]

    def _sizes(self) -> list[PathPoint]:
        menu = self.menu
        return [
            PathPoint(
                rule,
                budget,
                Spread.of([menu.candidates[o.best(places)].k for o in self.by_budget[b]]),
            )
            for rule in RULES
            for places in [self._places(menu.tables, rule=rule)]
            for b, budget in enumerate(self.budgets)
        ]
