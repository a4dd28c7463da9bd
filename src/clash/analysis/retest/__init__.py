"""Concordance of a panel with itself: runs of the same items, compared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.figures import Claim, Figure, by_name, claims, published_entries
from clash.analysis.leaderboard import points_table
from clash.analysis.retest.align import AlignedRuns, align
from clash.analysis.retest.judge_consistency import Flips, SelfConsistency, consistencies, flips_of
from clash.analysis.retest.run_lines import (
    Category,
    MissedPair,
    RunLine,
    RunOutcome,
    RunPair,
    Unsure,
    combined_rate,
    missed_pairs,
    rate_of,
    run_line,
    run_outcome,
    run_pair,
    unsure,
)
from clash.analysis.retest.targeted import TargetedRun, classify, ranking, targeted_run
from clash.errors import StatisticsError
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.retest.ranking_stability import (
    Decomposition,
    RankingStability,
    decompose,
    ranking_stability,
)
from clash.stats.retest.repeats import majority_over_runs
from clash.votes.from_run import require_rankings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.concordance.cases import CaseRate
    from clash.analysis.figures import NamedFigures
    from clash.analysis.retest.run_lines import RunPair
    from clash.analysis.retest.targeted import TargetedRun
    from clash.analysis.rundata import RunData

_LEAST_SURE = 40


@dataclass(frozen=True)
class Retest:
    """A panel against itself.

    Attributes:
        all_runs: concordance over all verdicts of all whole runs, clustered by item: the runs
            repeat items, so as many independent ones there are not. ``combined_wilson`` ignores
            that, as published figures do.
        all_same: items with one and the same verdict in every whole run.
        pair_agreement: how often two whole runs agree; where some pairs of them judged the same
            responses, over these pairs alone.
        fresh_pair_agreement: over the pairs whose responses differ, where there are both kinds.
        systematic: of items that are not stably correct, those wrong in every run.
        majority: concordance of what most runs say, targeted runs included.
        variance: judgment against generation, where some runs have fresh responses.
        variance_why: why there is none.
        flips: of runs in which each judge saw both orders; empty without such runs.
        n_same: items with one and the same verdict in every whole run; the other ``n`` changed.
        n_changed_split: of those that changed, items on which the panel of the first run was not
            unanimous.
        outcomes: what each whole run would have decided by itself.
        missed_pairs: pairs of candidates with an item that is wrong in every whole run, those with
            the most first; empty without labels.
        n_unjudged: further items that are left out, since one of the runs was interrupted before it
            judged them.
    """

    json_keys: ClassVar[Mapping[str, str]] = {
        "all_runs": "combined",
        "targeted_runs": "targeted",
        "candidates": "ranked",
        "unstable": "changed",
        "published_claims": "published",
        "n_unjudged": "unjudged",
    }

    runs: list[RunLine]
    n: int
    all_runs: CaseRate | None
    pairs: list[RunPair]
    all_same: Interval
    pair_agreement: Interval
    fresh_pair_agreement: Interval | None
    categories: list[Category]
    systematic: Interval | None
    majority: CaseRate | None
    majority_tied: int
    targeted_runs: list[TargetedRun]
    least_sure: list[Unsure]
    rankings: RankingStability | None
    candidates: list[str]
    variance: Decomposition | None
    variance_why: str
    judges: list[SelfConsistency]
    flips: list[Flips]
    unstable: list[Unsure]
    published_claims: list[Claim]
    n_same: int
    n_changed_split: int
    outcomes: list[RunOutcome]
    missed_pairs: list[MissedPair]
    n_unjudged: int = 0


def retest(runs: Sequence[RunData]) -> Retest:
    """Compare runs of the same items; the first one sets the items.

    Runs that hold a part of the items are taken for targeted ones: they add to the majority and
    are reported by themselves.

    Raises:
        StatisticsError: fewer than two runs of all items.
        InputError: a run judges each text by itself.
    """
    result = _retest(_align_whole_runs(runs))
    published_figures = published_entries(runs, "rerun")
    return (
        replace(result, published_claims=claims(published_figures, figures(result)))
        if published_figures
        else result
    )


def _align_whole_runs(runs: Sequence[RunData]) -> AlignedRuns:
    """The runs on the items of the first; two of them at least are whole."""
    for run in runs:
        require_rankings(run.manifest, "a retest")
    alignment = align(runs)
    if len(alignment.complete_runs) < 2:
        raise StatisticsError(
            f"only {alignment.names[0]} holds all its items: a retest needs two such runs"
            " (`clash rerun` makes one)"
        )
    return alignment


def _retest(alignment: AlignedRuns) -> Retest:
    rng = np.random.default_rng(alignment.runs[0].manifest.seeds.get("seed", 0))
    all_labelled = bool(alignment.has_label.all())
    classes = classify(alignment, alignment.complete_runs)
    table = alignment.verdicts[:, alignment.complete_runs]
    names = sorted(set(classes.categories.tolist()))
    is_same = np.all(table == table[:, :1], axis=1)
    first_verdicts = {v.item_id: v for v in alignment.runs[0].verdicts}
    majority = majority_over_runs(alignment.verdicts)
    parts = variance(alignment, rng)
    pairs = [run_pair(alignment, a, b) for a, b in combinations(alignment.complete_runs, 2)]
    panel_agreement, fresh_agreement = _agreement_by_responses(alignment, pairs)
    return Retest(
        runs=[run_line(alignment, index) for index in range(len(alignment.runs))],
        n=len(alignment.items),
        all_runs=combined_rate(alignment) if all_labelled else None,
        pairs=pairs,
        all_same=wilson_clustered(is_same, alignment.clusters),
        pair_agreement=panel_agreement,
        fresh_pair_agreement=fresh_agreement,
        categories=[
            Category(str(name), classes.count(name), classes.share(name, alignment.clusters))
            for name in names
        ],
        systematic=classes.systematic if all_labelled and classes.systematic.n else None,
        majority=rate_of(majority == alignment.labels, alignment) if all_labelled else None,
        majority_tied=int(np.sum(majority < 0)),
        targeted_runs=[targeted_run(alignment, index) for index in alignment.partial],
        least_sure=[
            unsure(alignment, row, classes.categories[row])
            for row in ranking(alignment)[:_LEAST_SURE]
        ],
        rankings=rankings(alignment),
        candidates=alignment.runs[0].candidates,
        variance=parts.split,
        variance_why=parts.reason,
        judges=consistencies(alignment),
        flips=flips_of(alignment),
        unstable=[
            unsure(alignment, int(row), "unstable")
            for row in np.flatnonzero(classes.categories == "unstable")
        ],
        published_claims=[],
        n_unjudged=alignment.n_unjudged,
        n_same=int(is_same.sum()),
        n_changed_split=sum(
            not first_verdicts[alignment.items[row]].unanimous for row in np.flatnonzero(~is_same)
        ),
        outcomes=[run_outcome(alignment.runs[index]) for index in alignment.complete_runs],
        missed_pairs=missed_pairs(alignment) if all_labelled else [],
    )


def _agreement_by_responses(
    alignment: AlignedRuns, pairs: Sequence[RunPair]
) -> tuple[Interval, Interval | None]:
    """How often two whole runs agree; on the same responses and on others, where there are both.

    Each item counts once, however many pairs of runs there are.
    """
    table = with_none(alignment.verdicts[:, alignment.complete_runs], alignment.n_classes)
    first, second = np.triu_indices(table.shape[1], 1)
    is_equal = table[:, first] == table[:, second]
    is_same = np.array([pair.same_responses for pair in pairs])
    kinds = (is_same, ~is_same) if 0 < is_same.sum() < len(is_same) else (np.ones_like(is_same),)
    rates = [wilson_clustered(is_equal[:, kind].mean(axis=1), alignment.clusters) for kind in kinds]
    return rates[0], rates[1] if len(rates) == 2 else None


def figures(retest: Retest) -> dict[str, Figure]:
    """The numbers of the comparison under flat names, as :func:`clash.analysis.findings.figures`."""
    return by_name(_named_figures(retest))


def _named_figures(retest: Retest) -> NamedFigures:
    yield "same", retest.all_same
    yield "pair_agreement", retest.pair_agreement
    costs = [line.cost_usd for line in retest.runs if line.cost_usd is not None]
    yield "cost.all", sum(costs) if costs else None
    for number, line in enumerate(retest.runs, start=1):
        yield f"run{number}.n", line.n
        yield f"run{number}.cost", line.cost_usd
        yield f"run{number}.cost.item", None if line.cost_usd is None else line.cost_usd / line.n
        yield from _of_rate(f"run{number}", line.concordance)
    yield from _of_rate("combined", retest.all_runs)
    yield from _of_rate("majority", retest.majority)
    for pair in retest.pairs[:1]:
        yield from _of_pair(pair)
    for category in retest.categories:
        name = category.name.replace(" ", "_")
        yield name, category.n
        yield f"{name}.share", category.share
    yield "systematic", retest.systematic
    for part in retest.targeted_runs[:1]:
        yield from _of_targeted(part)
    for misses in retest.missed_pairs:
        yield f"missed_always.{misses.pair}", misses.missed_always


def _of_rate(name: str, share: CaseRate | None) -> NamedFigures:
    if share is not None:
        yield f"{name}.concordance", share.interval
        yield f"{name}.right", share.right
        yield f"{name}.kappa", share.interval.transform(lambda end: 2 * end - 1)
        yield f"{name}.wilson.low", share.wilson.low
        yield f"{name}.wilson.high", share.wilson.high
        yield f"{name}.clustered.low", share.interval.low
        yield f"{name}.clustered.high", share.interval.high


def _of_pair(pair: RunPair) -> NamedFigures:
    yield "agreement", pair.verdicts.agreement
    yield "kappa.verdicts", pair.verdicts.kappa.interval
    if pair.matches is not None:
        yield "both", pair.matches.both
        yield "first_only", pair.matches.first
        yield "second_only", pair.matches.second
        yield "neither", pair.matches.neither
        yield "kappa.matches", pair.matches.kappa.interval
        yield "mcnemar.p", pair.matches.change.p
        yield "mcnemar.corrected", pair.matches.corrected.statistic


def _of_targeted(part: TargetedRun) -> NamedFigures:
    for group in part.groups:
        name = f"targeted.{group.name.replace(' ', '_')}"
        right = round(group.right.estimate * group.n)
        yield f"{name}.n", group.n
        yield f"{name}.right", right
        yield f"{name}.wrong", group.n - right
        yield f"{name}.rate", group.right
    if part.confirmation is not None:
        yield "targeted.coin.p", part.confirmation.coin.p
        yield "targeted.expected", part.confirmation.expected


# -- what many runs tell: how stable rankings are, and whether generation or judgment varies ------


def rankings(alignment: AlignedRuns) -> RankingStability | None:
    """Tau between the leaderboards of the whole runs; null where a candidate has no points."""
    scores = []
    for index in alignment.complete_runs:
        table = points_table(alignment.runs[index])
        has_points = ~np.isnan(table)
        if (
            alignment.runs[index].candidates != alignment.runs[0].candidates
            or not has_points.any(axis=0).all()
        ):
            return None
        scores.append(np.where(has_points, table, 0.0).sum(axis=0) / has_points.sum(axis=0))
    if len(alignment.runs[0].candidates) < 2:
        return None
    return ranking_stability(np.round(scores, 9))


@dataclass(frozen=True)
class Variance:
    """Judgment against generation; ``reason`` says what is missing where there is no ``split``."""

    split: Decomposition | None
    reason: str = ""


def variance(alignment: AlignedRuns, rng: np.random.Generator) -> Variance:
    """Split the variance of the verdicts, where the runs can tell generation from judgment."""
    if not alignment.fresh:
        return Variance(
            None, "every run judged the same responses, so all instability comes from judging"
        )
    table, responses = (
        alignment.verdicts[:, alignment.complete_runs],
        alignment.responses[:, alignment.complete_runs],
    )
    prompts = np.repeat(np.arange(len(table)), table.shape[1])
    values = with_none(table, alignment.n_classes).ravel()
    try:
        return Variance(decompose(values, prompts, responses.ravel(), rng))
    except StatisticsError as error:
        return Variance(None, str(error))


def with_none(table: NDArray[np.intp], tie: int) -> NDArray[np.intp]:
    """No verdict as an outcome of its own: one run with a verdict and one without disagree."""
    return np.where(table < 0, tie, table)
