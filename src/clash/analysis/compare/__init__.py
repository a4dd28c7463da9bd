"""Runs beside each other: a test for every difference, paired where items are shared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.compare.data_sets import AcrossDataSets, DataSetRule, across_data_sets
from clash.analysis.compare.pairs import RunAgainstRun, against, right_on_shared_items
from clash.analysis.compare.pooled import PooledRuns, pool_runs
from clash.analysis.concordance import concordance
from clash.analysis.coverage import coverage, unanimity
from clash.analysis.figures import Claim, Figure, by_name, claims, published_entries, self_figures
from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import Significance, cochran_q, holm
from clash.votes.from_run import require_rankings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.concordance.headline import AgreementCoefficient
    from clash.analysis.figures import NamedFigures
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval
    from clash.store.folder import RunFolder


@dataclass(frozen=True)
class ComparedRun:
    """One run in a line.

    Attributes:
        concordance, kappa: null without labels.
        questions: clusters of the items.
        matchups: different sets of candidates that answered an item.
        n_unjudged: items that an interrupted run has not judged.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_decided": "decided", "n_unjudged": "unjudged"}

    run: str
    kind: str
    panel: str
    judges: int
    items: int
    questions: int
    candidates: int
    matchups: int
    n_decided: int
    concordance: CaseRate | None
    kappa: AgreementCoefficient | None
    unanimity: Interval
    cost_usd: float | None
    seconds: float
    n_unjudged: int = 0


@dataclass(frozen=True)
class RunComparison:
    """Runs side by side, every two of them tested, and the labelled ones pooled.

    Attributes:
        all_alike: Cochran's Q, that all runs agree with people equally often on the labelled items
            that all of them have; null for fewer than three runs, or without such items.
        across: what several data sets say together; null where there are fewer than two.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"pool": "pooled", "published_claims": "published"}

    runs: list[ComparedRun]
    pairs: list[RunAgainstRun]
    pool: PooledRuns | None
    published_claims: list[Claim]
    all_alike: Significance | None = None
    across: AcrossDataSets | None = None

    @property
    def first_and_last(self) -> RunAgainstRun | None:
        """The first run against the last; null where there is one run."""
        return self.pairs[len(self.runs) - 2] if self.pairs else None


def run_names(folders: Sequence[RunFolder]) -> list[str]:
    """What to call runs: their ids; copies of one run by as much of their paths as differs."""
    ids = [folder.manifest().run for folder in folders]
    parts = [folder.path.resolve().parts for folder in folders]
    names = []
    for name, path in zip(ids, parts, strict=True):
        copies = {copy for run, copy in zip(ids, parts, strict=True) if run == name} - {path}
        depth = 1 if copies else 0
        while any(copy[-depth:] == path[-depth:] for copy in copies):
            depth += 1
        names.append("/".join(path[-depth:]) if copies else name)
    return names


def compare(
    runs: Sequence[RunData],
    *,
    names: Sequence[str] | None = None,
    every_record: bool = False,
    rule: DataSetRule | None = None,
) -> RunComparison:
    """Compare runs, and the data sets that they are made of.

    Args:
        runs: two or more; one suffices where a rule takes it apart.
        names: of :func:`run_names`; by default their ids.
        every_record: see :func:`clash.analysis.compare.pooled.pool_runs`.
        rule: how data sets are told apart; by default each run is one.

    Raises:
        StatisticsError: fewer than two runs, or tags that leave fewer than two data sets.
        InputError: a run judges each text by itself.
    """
    for run in runs:
        require_rankings(run.manifest, "this comparison")
    rule = rule or DataSetRule()
    if len(runs) < 2 and not rule.tags:
        raise StatisticsError("a comparison needs at least two runs")
    rng = np.random.default_rng(runs[0].manifest.seeds.get("seed", 0))
    names = [run.manifest.run for run in runs] if names is None else names
    named_runs = list(zip(names, runs, strict=True))
    across = across_data_sets(named_runs, rule)
    if across is None and rule.tags:
        subject = f"{names[0]} is" if len(runs) < 2 else "these runs are"
        raise StatisticsError(
            f"{subject} one data set: fewer than two tags match"
            "\n  fix: name another run, or see the tags of its items in items.jsonl"
        )
    comparison = RunComparison(
        runs=[_summary(name, run) for name, run in named_runs],
        pairs=_with_holm([against(a, b, rng) for a, b in combinations(named_runs, 2)]),
        pool=pool_runs(runs, every_record=every_record),
        published_claims=[],
        all_alike=_all_alike(runs, rng),
        across=across,
    )
    figures_of_runs = [
        figure
        for figure in published_entries(runs, "compare")
        if figure.get("every_record", False) == every_record
    ]
    if not figures_of_runs:
        return comparison
    return replace(comparison, published_claims=claims(figures_of_runs, figures(comparison)))


def _with_holm(pairs: list[RunAgainstRun]) -> list[RunAgainstRun]:
    """The pairs with the p values of their agreement with people corrected for their number."""
    tests = {n: test.p for n, pair in enumerate(pairs) if (test := pair.agreement_test) is not None}
    if not tests:
        return pairs
    p_holm = dict(zip(tests, holm(np.array(list(tests.values()))).tolist(), strict=True))
    return [replace(pair, p_holm=p_holm.get(n)) for n, pair in enumerate(pairs)]


def _all_alike(runs: Sequence[RunData], rng: np.random.Generator) -> Significance | None:
    if len(runs) < 3:
        return None
    right, clusters = right_on_shared_items(runs)
    return cochran_q(right, clusters, rng) if len(right) else None


def _summary(name: str, run: RunData) -> ComparedRun:
    agreement = concordance(run)
    counts = coverage(run)
    cost = run.manifest.cost_usd
    return ComparedRun(
        run=name,
        kind=run.manifest.kind,
        panel=run.manifest.panel["name"],
        judges=len(run.rules.voting),
        items=len(run.items),
        questions=len(set(run.clusters.values())),
        candidates=len(run.candidates),
        matchups=len({frozenset(names) for names in run.responders.values()}),
        n_decided=counts.n_decided,
        concordance=agreement.headline.rate if agreement else None,
        kappa=agreement.kappas[0] if agreement else None,
        unanimity=unanimity(run).rate,
        cost_usd=cost,
        seconds=run.manifest.wall_s,
        n_unjudged=len(run.unjudged_items),
    )


def figures(comparison: RunComparison) -> dict[str, Figure]:
    """The numbers of the comparison under flat names, as :func:`clash.analysis.findings.figures`."""
    return by_name(_named_figures(comparison))


def _named_figures(comparison: RunComparison) -> NamedFigures:
    for number, line in enumerate(comparison.runs, start=1):
        yield f"run{number}.items", line.items
        yield f"run{number}.candidates", line.candidates
        yield f"run{number}.matchups", line.matchups
        if line.concordance is not None:
            yield f"run{number}.concordance", line.concordance.interval
        if line.kappa is not None:
            yield f"run{number}.kappa", line.kappa.interval
        if line.cost_usd is not None:
            yield f"run{number}.cost", line.cost_usd
            yield f"run{number}.cost.item", line.cost_usd / line.items
    yield "items.all", sum(line.items for line in comparison.runs)
    costs = [line.cost_usd for line in comparison.runs]
    if None not in costs:
        yield "cost.all", sum(cost for cost in costs if cost is not None)
    first = comparison.pairs[0].experiments if comparison.pairs else None
    if first is not None:
        yield "z", first.test.statistic
        yield "p", first.test.p
        yield "difference", first.clustered_difference
    if comparison.pool is not None:
        yield from _of_pooled(comparison.pool)


def _of_pooled(pool: PooledRuns) -> NamedFigures:
    yield "pooled.n", pool.n
    yield "pooled.judged", pool.panel.overall.n_judged
    for line in (*pool.judges, pool.panel):
        for number, part in enumerate(line.runs, start=1):
            yield f"{line.name}.run{number}", part.of_judged
            yield f"{line.name}.run{number}.n", part.n_judged
        yield f"{line.name}.pooled", line.overall.of_judged
    yield "over_mean", pool.over_mean
    yield "over_worst", pool.over_worst
    unanimous, split = pool.split.unanimous, pool.split.split
    for name, share in (("unanimous", unanimous), ("split", split)):
        if share is not None:
            yield f"{name}.n", share.n
            yield name, share.interval
    if unanimous is not None and split is not None:
        yield "unanimity.gap", unanimous.estimate - split.estimate
        yield "unanimity.n", unanimous.n + split.n
    for judge, share in pool.split.judges_on_split.items():
        yield f"split.{judge}", share.interval
    for rate in pool.self_rates:
        yield from self_figures(rate)
