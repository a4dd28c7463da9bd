"""Several labelled runs as one body of items: judges against the panel, unanimity, self-evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from clash.analysis.concordance.biases import SelfRate, self_rates
from clash.analysis.concordance.cases import (
    CaseRate,
    LabelledCase,
    codes,
    concordance_of,
    labelled_cases,
    rate,
)
from clash.analysis.concordance.unanimity import ConcordanceBySplit, split
from clash.stats.hypothesis_tests import Significance, paired_difference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval


@dataclass(frozen=True)
class JudgeAblation:
    """A judge, or the panel, on each run and on all of them.

    Attributes:
        runs: in the order of the runs.
        ahead: the panel less this judge over the pooled items; null for the panel.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"overall": "pooled"}

    name: str
    runs: list[CaseRate]
    overall: CaseRate
    ahead: Interval | None
    test: Significance | None


@dataclass(frozen=True)
class PooledRuns:
    """Labelled runs taken together.

    Attributes:
        n: items; ``repeated`` of those the runs hold stand in an earlier run too: they are left
            out, or counted again where every record was asked for.
        over_mean: the panel less the mean of its judges, ``over_worst``: less the worst of them,
            on items with a verdict.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_repeated": "repeated"}

    n: int
    n_repeated: int
    every_record: bool
    judges: list[JudgeAblation]
    panel: JudgeAblation
    over_mean: float | None
    over_worst: float | None
    split: ConcordanceBySplit
    self_rates: list[SelfRate]


def pool_runs(runs: Sequence[RunData], *, every_record: bool = False) -> PooledRuns | None:
    """Pool labelled runs; null where fewer than two have labels, or no judge sits in all of them.

    An item that stands in several runs counts once, as the first of them judged it: records of
    one item are no independent evidence.

    Args:
        runs: in the order in which records count.
        every_record: count repeated items as often as they were judged, as some published tables
            do.
    """
    cases_by_run = [labelled_cases(run) for run in runs]
    if sum(bool(part) for part in cases_by_run) < 2:
        return None
    judges = [p.id for p in runs[0].rules.voting]
    common_judges = [j for j in judges if all(j in {p.id for p in d.rules.voting} for d in runs)]
    if not common_judges:
        return None
    first_records, n_repeated = _once(cases_by_run)
    parts = cases_by_run if every_record else first_records
    everything = [case for part in parts for case in part]
    panel = [float(case.right) for case in everything]
    lines = [_judge(judge, parts, everything, panel) for judge in common_judges]
    panel_line = JudgeAblation(
        "panel", [concordance_of(part) for part in parts], concordance_of(everything), None, None
    )
    alone = [line.overall.of_judged.estimate for line in lines]
    panel_rate = panel_line.overall.of_judged.estimate
    return PooledRuns(
        n=len(everything),
        n_repeated=n_repeated,
        every_record=every_record,
        judges=lines,
        panel=panel_line,
        over_mean=panel_rate - sum(alone) / len(alone),
        over_worst=panel_rate - min(alone),
        split=split(everything, common_judges),
        self_rates=self_rates(everything),
    )


def _once(cases_by_run: Sequence[Sequence[LabelledCase]]) -> tuple[list[list[LabelledCase]], int]:
    known_items: set[str] = set()
    first_records: list[list[LabelledCase]] = []
    n_repeated = 0
    for part in cases_by_run:
        fresh = [case for case in part if case.item_id not in known_items]
        n_repeated += len(part) - len(fresh)
        known_items |= {case.item_id for case in fresh}
        first_records.append(fresh)
    return first_records, n_repeated


def _judge(
    judge: str,
    parts: Sequence[Sequence[LabelledCase]],
    everything: Sequence[LabelledCase],
    panel: Sequence[float],
) -> JudgeAblation:
    credit = [float(case.tops.get(judge) == case.label) for case in everything]
    gap = paired_difference(panel, credit, codes(everything))
    return JudgeAblation(
        judge,
        [_rate(judge, part) for part in parts],
        _rate(judge, everything),
        gap.difference,
        gap.test,
    )


def _rate(judge: str, cases: Sequence[LabelledCase]) -> CaseRate:
    credit = [float(case.tops.get(judge) == case.label) for case in cases]
    return rate(credit, codes(cases), [judge in case.tops for case in cases])
