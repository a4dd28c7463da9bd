"""Runs beside each other: a test for every difference, paired where items are shared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from clash.analysis.compare.pairs import RunAgainstRun, against
from clash.analysis.compare.pooled import PooledRuns, pool_runs
from clash.analysis.concordance import concordance
from clash.analysis.coverage import coverage, unanimity
from clash.analysis.figures import Claim, Figure, claims, finite_figures
from clash.analysis.serialize import to_dict
from clash.errors import StatisticsError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.concordance import AgreementCoefficient, CaseRate
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval

__all__ = ["RunComparison", "compare", "figures"]


@dataclass(frozen=True)
class RunSummary:
    """One run in a line.

    Attributes:
        concordance, kappa: null without labels.
        questions: clusters of the items.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_decided": "decided"}

    run: str
    kind: str
    panel: str
    judges: int
    items: int
    questions: int
    candidates: int
    n_decided: int
    concordance: CaseRate | None
    kappa: AgreementCoefficient | None
    unanimity: Interval
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True)
class RunComparison:
    """Runs side by side, every two of them tested, and the labelled ones pooled."""

    json_keys: ClassVar[Mapping[str, str]] = {"pool": "pooled", "published_claims": "published"}

    runs: list[RunSummary]
    pairs: list[RunAgainstRun]
    pool: PooledRuns | None
    published_claims: list[Claim]

    def as_json(self) -> dict[str, Any]:
        """Plain data; what is not a number becomes null."""
        return to_dict(self)


def compare(runs: Sequence[RunData], *, every_record: bool = False) -> RunComparison:
    """Compare runs.

    Args:
        runs: two or more.
        every_record: see :func:`clash.analysis.compare.pooled.pool_runs`.

    Raises:
        StatisticsError: fewer than two runs.
    """
    if len(runs) < 2:
        raise StatisticsError("a comparison takes two runs, or more")
    rng = np.random.default_rng(runs[0].manifest.seeds.get("seed", 0))
    made = RunComparison(
        runs=[_summary(run) for run in runs],
        pairs=[against(a, b, rng) for a, b in combinations(runs, 2)],
        pool=pool_runs(runs, every_record=every_record),
        published_claims=[],
    )
    names = [run.manifest.run for run in runs]
    stored = [entry for run in runs for entry in run.manifest.dataset.get("figures", [])]
    mine = [
        entry
        for entry in stored
        if entry["report"] == "compare"
        and entry["runs"] == names
        and entry.get("every_record", False) == every_record
    ]
    return replace(made, published_claims=claims(mine, figures(made))) if mine else made


def _summary(run: RunData) -> RunSummary:
    found = concordance(run)
    covered = coverage(run)
    cost = run.manifest.cost_usd
    return RunSummary(
        run=run.manifest.run,
        kind=run.manifest.kind,
        panel=run.manifest.panel["name"],
        judges=len(run.rules.voting),
        items=len(run.items),
        questions=len(set(run.clusters.values())),
        candidates=len(run.candidates),
        n_decided=covered.n_decided,
        concordance=found.headline.rate if found else None,
        kappa=found.kappas[0] if found else None,
        unanimity=unanimity(run).rate,
        cost_usd=cost,
        seconds=run.manifest.wall_s,
    )


def figures(found: RunComparison) -> dict[str, Figure]:
    """The numbers of the comparison under flat names, as :func:`clash.analysis.figures.figures`."""
    named: list[tuple[str, Figure]] = []
    for number, line in enumerate(found.runs, start=1):
        named.append((f"run{number}.items", Figure(line.items)))
        named.append((f"run{number}.candidates", Figure(line.candidates)))
        if line.concordance is not None:
            named.append((f"run{number}.concordance", Figure.of(line.concordance.interval)))
        if line.kappa is not None:
            named.append((f"run{number}.kappa", Figure.of(line.kappa.interval)))
        if line.cost_usd is not None:
            named.append((f"run{number}.cost", Figure(line.cost_usd)))
            named.append((f"run{number}.cost.item", Figure(line.cost_usd / line.items)))
    first = found.pairs[0].experiments
    if first is not None:
        named += [("z", Figure(first.test.statistic)), ("p", Figure(first.test.p))]
        named.append(("difference", Figure.of(first.clustered_difference)))
    if found.pool is not None:
        named += _of_pooled(found.pool)
    return dict(finite_figures(named))


def _of_pooled(found: PooledRuns) -> list[tuple[str, Figure]]:
    made = [("pooled.n", Figure(found.n)), ("pooled.judged", Figure(found.panel.overall.n_judged))]
    for line in (*found.judges, found.panel):
        for number, part in enumerate(line.runs, start=1):
            made.append((f"{line.name}.run{number}", Figure.of(part.of_judged)))
            made.append((f"{line.name}.run{number}.n", Figure(part.n_judged)))
        made.append((f"{line.name}.pooled", Figure.of(line.overall.of_judged)))
    for name, gain in (("over_mean", found.over_mean), ("over_worst", found.over_worst)):
        if gain is not None:
            made.append((name, Figure(gain)))
    for name, share in (("unanimous", found.split.unanimous), ("split", found.split.split)):
        if share is not None:
            made += [(f"{name}.n", Figure(share.n)), (name, Figure.of(share.interval))]
    if found.split.unanimous is not None and found.split.split is not None:
        gap = found.split.unanimous.estimate - found.split.split.estimate
        made.append(("unanimity.gap", Figure(gap)))
        total = found.split.unanimous.n + found.split.split.n
        made.append(("unanimity.n", Figure(total)))
    for judge, share in found.split.judges_on_split.items():
        made.append((f"split.{judge}", Figure.of(share.interval)))
    for own in found.self_rates:
        made += [
            (f"self.{own.judge}.n", Figure(own.n)),
            (f"self.{own.judge}.own", Figure.of(own.own_rate)),
            (f"self.{own.judge}.people", Figure.of(own.people)),
            (f"self.{own.judge}.difference", Figure.of(own.test.difference)),
        ]
    return made
