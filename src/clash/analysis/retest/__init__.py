"""Concordance of a panel with itself: runs of the same items, compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.analysis.concordance.cases import Rate, rate
from clash.analysis.figures import Claim, Figure, claims, known
from clash.analysis.leaderboard import points_table
from clash.analysis.plain import plain
from clash.analysis.retest.align import Aligned, align
from clash.analysis.retest.targeted import Targeted, classify, ranking, targeted, targets
from clash.errors import StatisticsError
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.retest import (
    Decomposition,
    InterRun,
    MatchTable,
    RankingStability,
    decompose,
    inter_run,
    majority_over_runs,
    match_table,
    ranking_stability,
    self_consistency,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData

__all__ = ["Aligned", "Retest", "align", "figures", "retest", "targets"]

_LEAST_SURE = 40


@dataclass(frozen=True)
class RunLine:
    """One run of the comparison.

    Attributes:
        concordance: over its labelled items; null without labels.
    """

    run: str
    n: int
    seed: int
    fresh_responses: bool
    no_verdict: int
    unanimous: int
    concordance: Rate | None
    cost_usd: float | None
    mean_confidence: float | None


@dataclass(frozen=True)
class RunPair:
    """Two runs on all items.

    Attributes:
        verdicts: agreement and kappa over what was said.
        matches: the 2 x 2 table over whether it was right, with the kappa over match and miss;
            null without labels.
        same_responses: both judged the same texts.
    """

    first: str
    second: str
    verdicts: InterRun
    matches: MatchTable | None
    same_responses: bool


@dataclass(frozen=True)
class Category:
    """Items of one kind of stability."""

    name: str
    n: int
    share: Interval


@dataclass(frozen=True)
class Unsure:
    """An item and how sure its verdicts were."""

    item_id: str
    confidence: float | None
    category: str
    said: tuple[str, ...]


@dataclass(frozen=True)
class SelfConsistency:
    """How often a judge repeats its first place, run against run, on the same responses."""

    judge: str
    role: str
    consistency: Interval
    items: int


@dataclass(frozen=True)
class Retest:
    """A panel against itself.

    Attributes:
        combined: concordance over all verdicts of all whole runs, clustered by item: the runs
            repeat items, so as many independent ones there are not. ``combined_wilson`` ignores
            that, as published figures do.
        all_same: items with one and the same verdict in every whole run; ``pair_agreement``: how
            often two of them agree.
        systematic: of items that are not stably correct, those wrong in every run.
        majority: concordance of what most runs say, targeted runs included.
        variance: judgment against generation, where some runs have fresh responses.
        variance_why: why there is none.
    """

    runs: list[RunLine]
    n: int
    combined: Rate | None
    pairs: list[RunPair]
    all_same: Interval
    pair_agreement: Interval
    categories: list[Category]
    systematic: Interval | None
    majority: Rate | None
    majority_tied: int
    targeted: list[Targeted]
    least_sure: list[Unsure]
    rankings: RankingStability | None
    ranked: list[str]
    variance: Decomposition | None
    variance_why: str
    judges: list[SelfConsistency]
    changed: list[Unsure]
    published: list[Claim]

    def as_json(self) -> dict[str, Any]:
        """Plain data; what is not a number becomes null."""
        found = plain(asdict(self))
        assert isinstance(found, dict)  # noqa: S101 - for the type checker
        return found


def retest(runs: Sequence[RunData]) -> Retest:
    """Compare runs of the same items; the first one sets the items.

    Runs that hold a part of the items are taken for targeted ones: they add to the majority and
    are reported by themselves.

    Raises:
        StatisticsError: fewer than two runs of all items.
    """
    found = align(runs)
    if len(found.whole) < 2:
        raise StatisticsError(
            f"only {found.names[0]} holds all its items: a retest needs two such runs"
            " (`clash rerun` makes one)"
        )
    rng = np.random.default_rng(found.runs[0].manifest.seeds.get("seed", 0))
    all_labelled = bool(found.labelled.all())
    classes = classify(found, found.whole)
    table = found.verdicts[:, found.whole]
    names = sorted(set(classes.categories.tolist()))
    majority = majority_over_runs(found.verdicts)
    variance, why = _variance(found, rng)
    made = Retest(
        runs=[_line(found, index) for index in range(len(runs))],
        n=len(found.items),
        combined=_combined(found) if all_labelled else None,
        pairs=[_pair(found, a, b) for a, b in combinations(found.whole, 2)],
        all_same=wilson_clustered(np.all(table == table[:, :1], axis=1), found.clusters),
        pair_agreement=self_consistency(_with_none(table, found.n_classes), found.clusters),
        categories=[
            Category(str(name), classes.count(name), classes.share(name, found.clusters))
            for name in names
        ],
        systematic=classes.systematic if all_labelled and classes.systematic.n else None,
        majority=_rate(majority == found.labels, found) if all_labelled else None,
        majority_tied=int(np.sum(majority < 0)),
        targeted=[targeted(found, index) for index in found.partial],
        least_sure=[
            _unsure(found, row, classes.categories[row]) for row in ranking(found)[:_LEAST_SURE]
        ],
        rankings=_rankings(found),
        ranked=found.runs[0].candidates,
        variance=variance,
        variance_why=why,
        judges=_judges(found),
        changed=[
            _unsure(found, int(row), "unstable")
            for row in np.flatnonzero(classes.categories == "unstable")
        ],
        published=[],
    )
    return _beside_published(made, found)


def _beside_published(made: Retest, found: Aligned) -> Retest:
    from dataclasses import replace

    entries = _entries(found.runs, "rerun")
    return replace(made, published=claims(entries, figures(made))) if entries else made


def _entries(runs: Sequence[RunData], report: str) -> list[dict[str, Any]]:
    """Published figures that speak of exactly these runs."""
    names = [data.manifest.run for data in runs]
    stored = [entry for data in runs for entry in data.manifest.dataset.get("figures", [])]
    return [e for e in stored if e["report"] == report and e["runs"] == names]


def _line(found: Aligned, index: int) -> RunLine:
    data = found.runs[index]
    held = found.held[:, index]
    responses = found.responses[held, index]
    sure = found.confidence[held, index]
    known_sure = sure[~np.isnan(sure)]
    labelled = held & found.labelled
    return RunLine(
        run=data.manifest.run,
        n=int(held.sum()),
        seed=data.manifest.seeds.get("seed", 0),
        fresh_responses=bool(np.any(responses != found.responses[held, found.whole[0]])),
        no_verdict=int(np.sum(found.verdicts[held, index] < 0)),
        unanimous=sum(v.unanimous for v in data.verdicts),
        concordance=_rate(
            found.right[labelled, index], found, labelled, found.verdicts[labelled, index] >= 0
        )
        if labelled.any()
        else None,
        cost_usd=data.manifest.cost_usd,
        mean_confidence=float(known_sure.mean()) if len(known_sure) else None,
    )


def _rate(
    right: NDArray[np.bool_],
    found: Aligned,
    rows: NDArray[np.bool_] | None = None,
    judged: NDArray[np.bool_] | None = None,
) -> Rate:
    clusters = found.clusters if rows is None else found.clusters[rows]
    there = None if judged is None else judged.tolist()
    return rate(right.astype(float).tolist(), clusters, there)


def _combined(found: Aligned) -> Rate:
    """All verdicts of the whole runs; repeats of an item are one cluster."""
    right = found.right[:, found.whole]
    groups = np.repeat(found.clusters, len(found.whole))
    judged = (found.verdicts[:, found.whole] >= 0).ravel().tolist()
    return rate(right.astype(float).ravel().tolist(), groups, judged)


def _pair(found: Aligned, a: int, b: int) -> RunPair:
    labelled = found.labelled
    return RunPair(
        found.names[a],
        found.names[b],
        inter_run(found.verdicts[:, a], found.verdicts[:, b], found.n_classes, found.clusters),
        match_table(found.right[labelled, a], found.right[labelled, b]) if labelled.any() else None,
        bool(np.all(found.responses[:, a] == found.responses[:, b])),
    )


def _with_none(table: NDArray[np.intp], tie: int) -> NDArray[np.intp]:
    """No verdict as an outcome of its own: one run with a verdict and one without disagree."""
    return np.where(table < 0, tie, table)


def _unsure(found: Aligned, row: int, category: str) -> Unsure:
    sure = found.confidence[row, found.whole]
    known_sure = sure[~np.isnan(sure)]
    names = (*found.candidates[row], "tie")
    said = tuple(
        "no verdict" if code < 0 else names[code]
        for code, held in zip(found.verdicts[row], found.held[row], strict=True)
        if held
    )
    return Unsure(
        found.items[row],
        float(known_sure.mean()) if len(known_sure) else None,
        str(category),
        said,
    )


def _rankings(found: Aligned) -> RankingStability | None:
    """Tau between the leaderboards of the whole runs; null where a candidate has no points."""
    scores = []
    for index in found.whole:
        table = points_table(found.runs[index])
        there = ~np.isnan(table)
        if found.runs[index].candidates != found.runs[0].candidates or not there.any(axis=0).all():
            return None
        scores.append(np.where(there, table, 0.0).sum(axis=0) / there.sum(axis=0))
    if len(found.runs[0].candidates) < 2:
        return None
    return ranking_stability(np.round(scores, 9))


def _variance(found: Aligned, rng: np.random.Generator) -> tuple[Decomposition | None, str]:
    if not found.fresh:
        return None, "every run judged the same responses: all instability is the judgment's"
    table, responses = found.verdicts[:, found.whole], found.responses[:, found.whole]
    prompts = np.repeat(np.arange(len(table)), table.shape[1])
    values = _with_none(table, found.n_classes).ravel()
    try:
        return decompose(values, prompts, responses.ravel(), rng), ""
    except StatisticsError as error:
        return None, str(error)


def _judges(found: Aligned) -> list[SelfConsistency]:
    """Judges that sit in two whole runs or more, on items with the same responses in both."""
    made = []
    for panelist in found.runs[0].rules.panelists:
        table = _tops(found, panelist.id)
        paired = np.sum(table >= 0, axis=1) >= 2
        if paired.any():
            share = self_consistency(table, found.clusters)
            made.append(SelfConsistency(panelist.id, panelist.role, share, int(paired.sum())))
    return made


def _tops(found: Aligned, judge: str) -> NDArray[np.intp]:
    table = np.full((len(found.items), len(found.runs)), -1, dtype=np.intp)
    for column, data in enumerate(found.runs):
        for row, item in enumerate(found.items):
            said = data.ballots.get(item)
            same = found.responses[row, column] == found.responses[row, 0]
            if said is None or judge not in said.ranks or not same:
                continue
            top, names = said.top(judge), found.candidates[row]
            table[row, column] = len(names) if top is None else names.index(top)
    return table


def figures(found: Retest) -> dict[str, Figure]:
    """The numbers of the comparison under flat names, as :func:`clash.analysis.figures.figures`."""
    named: list[tuple[str, Figure]] = [("same", Figure.of(found.all_same))]
    named.append(("pair_agreement", Figure.of(found.pair_agreement)))
    costs = [line.cost_usd for line in found.runs if line.cost_usd is not None]
    if costs:
        named.append(("cost.all", Figure(sum(costs))))
    for number, line in enumerate(found.runs, start=1):
        named.append((f"run{number}.n", Figure(line.n)))
        if line.cost_usd is not None:
            named.append((f"run{number}.cost", Figure(line.cost_usd)))
            named.append((f"run{number}.cost.item", Figure(line.cost_usd / line.n)))
        if line.concordance is not None:
            named += _of_rate(f"run{number}", line.concordance)
    for name, share in (("combined", found.combined), ("majority", found.majority)):
        if share is not None:
            named += _of_rate(name, share)
    if found.pairs:
        named += _of_pair(found.pairs[0])
    for category in found.categories:
        named.append((category.name.replace(" ", "_"), Figure(category.n)))
        named.append((f"{category.name.replace(' ', '_')}.share", Figure.of(category.share)))
    if found.systematic is not None:
        named.append(("systematic", Figure.of(found.systematic)))
    for part in found.targeted[:1]:
        named += _of_targeted(part)
    return dict(known(named))


def _of_rate(name: str, share: Rate) -> list[tuple[str, Figure]]:
    return [
        (f"{name}.concordance", Figure.of(share.clustered)),
        (f"{name}.right", Figure(share.right)),
        (f"{name}.kappa", Figure(2 * share.estimate - 1)),
        (f"{name}.wilson.low", Figure(share.wilson.low)),
        (f"{name}.wilson.high", Figure(share.wilson.high)),
        (f"{name}.clustered.low", Figure(share.clustered.low)),
        (f"{name}.clustered.high", Figure(share.clustered.high)),
    ]


def _of_pair(pair: RunPair) -> list[tuple[str, Figure]]:
    made = [
        ("agreement", Figure.of(pair.verdicts.agreement)),
        ("kappa.verdicts", Figure.of(pair.verdicts.kappa.interval)),
    ]
    if pair.matches is not None:
        table = pair.matches
        made += [
            ("both", Figure(table.both)),
            ("first_only", Figure(table.first)),
            ("second_only", Figure(table.second)),
            ("neither", Figure(table.neither)),
            ("kappa.matches", Figure.of(table.kappa.interval)),
            ("mcnemar.p", Figure(table.change.p)),
            ("mcnemar.corrected", Figure(table.corrected.statistic)),
        ]
    return made


def _of_targeted(part: Targeted) -> list[tuple[str, Figure]]:
    made: list[tuple[str, Figure]] = []
    for group in part.groups:
        name = f"targeted.{group.name.replace(' ', '_')}"
        right = round(group.right.estimate * group.n)
        made += [
            (f"{name}.n", Figure(group.n)),
            (f"{name}.right", Figure(right)),
            (f"{name}.wrong", Figure(group.n - right)),
            (f"{name}.rate", Figure.of(group.right)),
        ]
    if part.confirmed is not None:
        made += [
            ("targeted.coin.p", Figure(part.confirmed.coin.p)),
            ("targeted.expected", Figure(part.confirmed.expected)),
        ]
    return made
