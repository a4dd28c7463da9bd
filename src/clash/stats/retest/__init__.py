"""Test-retest agreement: of runs, of both orders of a pair, of ranking cycles."""

from clash.stats.retest.orders import FlipRate, flip_rate, self_consistency
from clash.stats.retest.ranking_stability import RankingStability, kendall_tau, ranking_stability
from clash.stats.retest.runs import (
    Category,
    InterRun,
    MatchTable,
    Stability,
    inter_run,
    majority_over_runs,
    match_table,
    stability,
)
from clash.stats.retest.targets import (
    Confirmation,
    Targets,
    confirm,
    low_confidence_first,
    select_targets,
)
from clash.stats.retest.variance import Decomposition, decompose

__all__ = [
    "Category",
    "Confirmation",
    "Decomposition",
    "FlipRate",
    "InterRun",
    "MatchTable",
    "RankingStability",
    "Stability",
    "Targets",
    "confirm",
    "decompose",
    "flip_rate",
    "inter_run",
    "kendall_tau",
    "low_confidence_first",
    "majority_over_runs",
    "match_table",
    "ranking_stability",
    "select_targets",
    "self_consistency",
    "stability",
]
