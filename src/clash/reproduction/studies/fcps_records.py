"""What a study of the fourth paper's experiment holds: a record for each row of its tables and figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.intervals import Interval
    from clash.stats.resample import RepeatMean
    from clash.stats.selection.panel import Target
    from clash.stats.selection.pressure_checks import WinnerForetold, WithinSlope


@dataclass(frozen=True)
class PrefixPoint:
    """One joint table: a split, budget, path rule and prefix."""

    split: int
    budget: int
    path: str
    k: int
    validation: float
    test: float
    h_k: float
    cell_pressure: float
    unseen: float


@dataclass(frozen=True)
class MethodRisk:
    """Test squared error of a way to choose, at one budget.

    Attributes:
        risk: over items and splits.
        by_split: as the paper prints it.
        k: mean number of judges.
    """

    name: str
    risk: Interval
    by_split: RepeatMean
    k: float


@dataclass(frozen=True)
class PressureAudit:
    """Table 2 at one budget: the chosen joint table, its pressure, and both families' risk."""

    budget: int
    k: float
    cells: float
    unseen: float
    pressure: float
    proxy: float
    table: float
    scalar: float


@dataclass(frozen=True)
class FamilyContest:
    """Table 11 at one budget.

    Attributes:
        rule: the path rule of the table with the least validation risk over splits.
        gap: risk of the table minus that of the scalar family, over items and splits; positive
            favours the scalar.
        by_split: of the gap, as the paper has it: its interval is this mean plus and minus 1.96
            standard errors, which is too short, since splits share items.
    """

    budget: int
    rule: str
    table: float
    scalar: float
    gap: Interval
    by_split: RepeatMean


@dataclass(frozen=True)
class ChosenFamily:
    """Table 9: the scalar family that validation chooses."""

    budget: int
    family: str
    share: float
    k: float
    by_split: RepeatMean


@dataclass(frozen=True)
class Spread:
    """Mean over splits, and the range that holds 80% of them."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """From a value per split."""
        low, high = np.quantile(values, (0.1, 0.9))
        return cls(float(np.mean(values)), float(low), float(high))


@dataclass(frozen=True)
class PathPoint:
    """A path rule at one prefix (figures 1, 3 and 9) or budget (figures 2 and 10).

    Attributes:
        at: prefix K, or calibration labels.
        test: test risk; at a budget, the prefix that validation chooses.
        validation: validation risk; null at a budget.
    """

    path: str
    at: int
    test: Spread
    validation: Spread | None = None


@dataclass(frozen=True)
class SplitContest:
    """A split at one budget: what table 17's score is made of, and who wins.

    Attributes:
        h_k: effective patterns of the table that validation chooses.
        pairwise_gain: validation risk of the best stacker without products, less that of the best
            with them, both on the whole pool.
        gap: test risk of the chosen table less that of the chosen scalar family.
    """

    split: int
    budget: int
    h_k: float
    unseen: float
    pairwise_gain: float
    gap: float


@dataclass(frozen=True)
class PressureChecks:
    """Tables 17, 26 and 27 of some panels.

    Attributes:
        by_pressure: test risk of joint tables on H / n, within panel, budget and path rule.
        by_unseen: the same on the share of unseen patterns.
        groups: of table 27.
        correlation: mean of the groups' correlations of H / n with test risk; NaN without any.
        positive: share of the groups where it is positive.
        score: whether table 17's score foretells that the scalar family wins; null where one
            family always does, or all cases are of one cluster.
    """

    by_pressure: WithinSlope
    by_unseen: WithinSlope
    groups: int
    correlation: float
    positive: float
    score: WinnerForetold | None


@dataclass(frozen=True)
class FcpsStudy:
    """The study of one panel.

    Attributes:
        blocks: rows for selection, validation and test.
        penalty: theorem 1's bound on what selection costs, for the whole menu; see
            :func:`~clash.stats.selection.model_choice.selection_penalty`.
        pressure: table 2, at every budget.
        baselines: table 3, at the largest budget; the path-family envelope's K is table 7.
        scalars: table 8, every scalar family on the whole pool.
        chosen: table 9, at every budget.
        ablation: table 10, at the largest budget.
        contests: table 11.
        prefixes: figures 1, 3 and 9: by prefix at the largest budget.
        sizes: figures 2 and 10: the chosen prefix by budget.
        points: every joint table of every split, for figures 4 to 8.
        splits_at: every split at every budget, for table 17.
        checks: tables 17, 26 and 27.
    """

    json_omits: ClassVar[tuple[str, ...]] = ("points", "splits_at")

    source: str
    judges: tuple[str, ...]
    target: Target
    n_labelled: int
    n_sources: int
    splits: int
    seed: int
    budgets: tuple[int, ...]
    blocks: tuple[int, int, int]
    penalty: float
    pressure: tuple[PressureAudit, ...]
    baselines: tuple[MethodRisk, ...]
    scalars: tuple[MethodRisk, ...]
    chosen: tuple[ChosenFamily, ...]
    ablation: tuple[MethodRisk, ...]
    contests: tuple[FamilyContest, ...]
    prefixes: tuple[PathPoint, ...]
    sizes: tuple[PathPoint, ...]
    notes: tuple[str, ...]
    points: tuple[PrefixPoint, ...] = field(repr=False)
    splits_at: tuple[SplitContest, ...] = field(repr=False)
    checks: PressureChecks
