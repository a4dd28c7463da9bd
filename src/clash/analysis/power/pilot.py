"""Estimate the inputs of a sample size from a pilot, and the sample size that follows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.judge_edges import judge_edges
from clash.analysis.power.candidate_pairs import FEW
from clash.errors import StatisticsError
from clash.stats.icc import RandomIntercept, anova_icc, random_intercept
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.power.comparisons import Comparison
from clash.stats.power.design import Clustering, ErrorRates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.judge_edges import JudgeEdge, PanelEdges
    from clash.analysis.power.candidate_pairs import CandidatePair
    from clash.stats.typing import Codes, Floats
    from clash.votes import Votes


_LEAST_EFFECT, _MOST_EFFECT = 0.005, 0.99
"""Differences that a sample size is computed for."""
Outcome = Literal["wins", "agreement"]
ASSUMED_ICC = 0.20
"""What is assumed where a pilot cannot tell: the middle of what was found for panels of models."""


@dataclass(frozen=True)
class JudgeRate:
    """How often a judge decides.

    Attributes:
        ballots: mean ballots on a cluster.
    """

    judge: str
    discrimination: Interval
    ballots: float


@dataclass(frozen=True)
class Addition:
    """A further judge that resembles one of the panel.

    Attributes:
        like: the judge it resembles.
        needed: clusters needed with it; null where the panel would show no difference at all.
        saves: clusters saved; 0 where correlation leaves nothing to gain, below 0 where such a
            judge dilutes the panel; null with ``needed``.
        edge: how much better than chance the judge decides; null where it is not known, and it is
            taken to be as good as the others' mean.
        advised: it saves clusters, and is surely better than a coin where its edge is known.
    """

    like: str
    needed: int | None
    saves: int | None
    edge: Interval | None = None
    advised: bool = False


@dataclass(frozen=True)
class Pilot:
    """Estimates from a pilot, and the sample size that follows from them.

    Attributes:
        pair: whose wins over whom, where the votes name them; null where side A is nobody in
            particular, or agreement is asked for.
        outcome: ``wins`` of the first side, or ``agreement`` with the label.
        clusters: prompts or groups that have ballots; ``ballots`` of all judges on them.
        size: ballots of a cluster that the question counts (compare: informative ones).
        base: share of successes among informative ballots, clustered.
        model: random-intercept logistic model of informative ballots.
        icc: correlation that enters the design effect, and where it comes from.
        needed: clusters needed; ``needed_low`` and ``needed_high`` at the ends of the ICC's
            interval.
        more: clusters beyond those of the pilot.
        power_now: of the pilot itself at the effect asked for.
    """

    source: str
    question: Literal["compare", "paired"]
    pair: CandidatePair | None
    outcome: Outcome
    effect: float
    level: ErrorRates
    clusters: int
    ballots: int
    size: float
    cv: float
    judges: tuple[JudgeRate, ...]
    discrimination: Interval
    base: Interval
    model: RandomIntercept
    anova: Interval
    icc: Interval
    design_effect: float
    needed: int
    needed_low: int
    needed_high: int
    more: int
    power_now: float
    detectable_now: float | None
    additions: tuple[Addition, ...]
    next_step: str
    notes: tuple[str, ...]


def pilot(
    votes: Votes,
    question: Literal["compare", "paired"] = "paired",
    *,
    pair: CandidatePair | None = None,
    outcome: Outcome = "wins",
    effect: float = 0.10,
    level: ErrorRates | None = None,
    edges: PanelEdges | None = None,
    seed: int = 0,
) -> Pilot:
    """Estimate the inputs of a sample size from votes, and compute it.

    Args:
        votes: sides and ties.
        question: ``paired``: two candidates on the same prompts; ``compare``: two conditions on
            different ones.
        pair: the two candidates that the votes are of, the first on side A.
        outcome: what counts as a success.
        effect: difference to detect.
        level: error rates.
        edges: how good the judges are, where more votes than these tell it; else these do.
        seed: of the bootstrap of the scores' correlation.

    Raises:
        StatisticsError: scores instead of sides, no decisive ballot, or no label where agreement
            is asked for.
    """
    error_rates = level or ErrorRates()
    table = _Ballots.of(votes, outcome)
    counted_ballots = table if question == "paired" else table.informative()
    sizes = np.bincount(counted_ballots.clusters, minlength=table.n_clusters)
    informative = table.informative()
    model = _intercept(informative)
    rng = np.random.default_rng(seed)
    anova = anova_icc(counted_ballots.scores, counted_ballots.clusters, rng=rng)
    icc, notes = _correlation(question, model, anova, table.n_clusters)
    rates = _rates(votes, table)
    size, cv = float(sizes.mean()), float(sizes.std() / sizes.mean())
    setting = Comparison(
        question,
        effect,
        Clustering(size, icc.estimate, cv),
        error_rates,
        middle=float(np.clip(np.mean(informative.scores > 0), effect / 2, 1 - effect / 2)),
        decisive=float(np.mean(table.scores != 0)),
    )
    clusters = table.n_clusters
    n_needed, needed_low, needed_high = (
        replace(setting, clustering=Clustering(size, rho, cv)).demand().clusters
        for rho in (icc.estimate, icc.low, icc.high)
    )
    panel = judge_edges(votes, seed) if edges is None else edges
    crew = _Crew.of(rates, panel)
    additions = tuple(_addition(setting, crew, rate, n_needed) for rate in rates)
    notes += crew.notes(panel)
    estimates = Pilot(
        source=votes.source,
        question=question,
        pair=pair,
        outcome=outcome,
        effect=effect,
        level=error_rates,
        clusters=clusters,
        ballots=len(table.scores),
        size=size,
        cv=cv,
        judges=rates,
        discrimination=wilson_clustered((table.scores != 0).astype(float), table.clusters),
        base=wilson_clustered((informative.scores > 0).astype(float), informative.clusters),
        model=model,
        anova=anova,
        icc=icc,
        design_effect=setting.clustering.design_effect,
        needed=n_needed,
        needed_low=needed_low,
        needed_high=needed_high,
        more=max(0, n_needed - clusters),
        power_now=setting.power(clusters),
        detectable_now=setting.detectable(clusters),
        additions=additions,
        next_step="",
        notes=tuple(notes),
    )
    return replace(estimates, next_step=_next_step(estimates))


@dataclass(frozen=True)
class _Ballots:
    """One score a ballot: 1, -1, or 0 for a tie.

    Attributes:
        judges: (n,), index of its judge.
    """

    scores: Floats
    clusters: Codes
    judges: Codes
    n_clusters: int

    @classmethod
    def of(cls, votes: Votes, outcome: Outcome) -> _Ballots:
        if votes.kind == "numeric":
            raise StatisticsError("a sample size needs outcomes of pairs, and these are scores")
        if outcome == "agreement":
            usable = votes.take(np.isin(votes.labels, (0.0, 1.0)))
            if not usable.n_rows:
                raise StatisticsError(
                    "agreement needs labels that are a side\n  fix: label some items, or --outcome wins"
                )
            matrix = np.where(usable.labels[:, None] == 1, usable.matrix, 1 - usable.matrix)
        else:
            usable, matrix = votes, votes.matrix
        row, judge = np.nonzero(~np.isnan(matrix))
        scores = 2 * matrix[row, judge] - 1
        if not np.any(scores):
            raise StatisticsError(
                "every ballot is a tie, so a sample size cannot be planned"
                "\n  fix: name votes with decisions, or give rates with --panel instead of --from"
            )
        clusters = np.unique(usable.groups[row], return_inverse=True)[1].astype(np.intp)
        return cls(scores, clusters, judge.astype(np.intp), int(clusters.max()) + 1)

    def informative(self) -> _Ballots:
        """Without ties; clusters keep their codes."""
        is_decisive = self.scores != 0
        return _Ballots(
            self.scores[is_decisive],
            self.clusters[is_decisive],
            self.judges[is_decisive],
            self.n_clusters,
        )


def _with_judge(setting: Comparison, rate: JudgeRate, edge: float) -> Comparison:
    """The comparison with one more judge, which decides and errs as this one does.

    Of two candidates' difference a ballot shows its judge's edge, and nothing where it ties:
    the difference looked for shrinks or grows with the mean of what the ballots show.

    Args:
        setting: the comparison by the panel as it is.
        rate: how often the judge decides.
        edge: its edge in units of the panel's mean edge over decisive ballots.
    """
    decides, before = rate.discrimination.estimate, setting.clustering.size
    if setting.question == "compare":
        more = rate.ballots * decides
        size = before + more
        effect, decisive = setting.effect * (before + more * edge) / size, setting.decisive
    else:
        size = before + rate.ballots
        n_decisive = setting.decisive * before
        decisive = (n_decisive + decides * rate.ballots) / size
        signal = n_decisive + decides * rate.ballots * edge
        effect = setting.effect * signal / size / setting.decisive
    clustering = replace(setting.clustering, size=size)
    return replace(setting, clustering=clustering, decisive=decisive, effect=effect)


def _intercept(ballots: _Ballots) -> RandomIntercept:
    trials = np.bincount(ballots.clusters, minlength=ballots.n_clusters)
    wins = np.bincount(ballots.clusters, weights=ballots.scores > 0, minlength=ballots.n_clusters)
    return random_intercept(wins, trials)


def _correlation(
    question: str, model: RandomIntercept, anova: Interval, clusters: int
) -> tuple[Interval, list[str]]:
    """The intra-cluster correlation of the outcome that is averaged, within [0, 1]."""
    estimate = model.observed if question == "compare" else anova
    if math.isnan(estimate.estimate) or clusters < FEW:
        reason = f"{clusters} prompts" if clusters < FEW else estimate.method
        note = (
            f"the pilot does not show how ballots of one prompt are correlated ({reason});"
            f" {ASSUMED_ICC:g} is assumed, and the range is 0 to 1"
        )
        default_icc = Interval(
            ASSUMED_ICC, 0.0, 1.0, 0.95, estimate.n, estimate.n_effective, "assumed"
        )
        return default_icc, [note]
    return estimate.transform(lambda icc: float(np.clip(icc, 0, 1))), []


def _rates(votes: Votes, table: _Ballots) -> tuple[JudgeRate, ...]:
    rates = []
    for index, judge in enumerate(votes.judges):
        by_judge = table.judges == index
        if by_judge.any():
            decides = (table.scores[by_judge] != 0).astype(float)
            share = wilson_clustered(decides, table.clusters[by_judge])
            rates.append(JudgeRate(judge, share, float(by_judge.sum()) / table.n_clusters))
    return tuple(rates)


@dataclass(frozen=True)
class _Crew:
    """The edges of the judges of the panel.

    Attributes:
        edges: by judge; null where it is not known.
        mean: over decisive ballots, by the estimates; null where no edge is known, or the mean is
            not above chance.
    """

    edges: Mapping[str, JudgeEdge]
    mean: float | None

    @classmethod
    def of(cls, rates: Sequence[JudgeRate], panel: PanelEdges) -> _Crew:
        edges = {edge.judge: edge for edge in panel.judges}
        weights = [
            (rate.ballots * rate.discrimination.estimate, edges[rate.judge].estimate)
            for rate in rates
        ]
        pairs = [(weight, edge) for weight, edge in weights if not math.isnan(edge) and weight > 0]
        total = sum(weight for weight, _ in pairs)
        mean = sum(weight * edge for weight, edge in pairs) / total if total else 0.0
        return cls(edges, mean if mean > 0 else None)

    def relative(self, judge: str) -> float:
        """The edge of a judge in units of the mean; 1 where either is not known."""
        edge = self.edges[judge].estimate
        return 1.0 if self.mean is None or math.isnan(edge) else edge / self.mean

    def is_sound(self, judge: str) -> bool:
        """Whether it is reliably better than a coin, or its edge is unknown."""
        edge = self.edges[judge].edge
        return edge is None or edge.low > 0

    def notes(self, panel: PanelEdges) -> list[str]:
        """Where the edges come from."""
        if self.mean is None:
            reason = panel.unknown or "the judges are no better than a coin on average"
            return [f"another judge is taken to be as good as the others: {reason}"]
        by = "the labels" if panel.source == "labels" else "agreement alone"
        return [f"edge: how much better than a coin a judge decides, by {by} (clash diagnose)"]


def _addition(setting: Comparison, crew: _Crew, rate: JudgeRate, n_needed: int) -> Addition:
    more = _with_judge(setting, rate, crew.relative(rate.judge))
    edge = crew.edges[rate.judge].edge
    if more.effect <= _LEAST_EFFECT:
        return Addition(rate.judge, None, None, edge)
    with_it = replace(more, effect=min(more.effect, _MOST_EFFECT)).demand().clusters
    saves = n_needed - with_it
    return Addition(rate.judge, with_it, saves, edge, saves > 0 and crew.is_sound(rate.judge))


def _no_addition(estimates: Pilot) -> str:
    if any((addition.saves or 0) > 0 for addition in estimates.additions):
        return "no judge is surely better than a coin, so another like it may save none"
    return "another judge saves none: ballots of one prompt are too similar"


def _next_step(estimates: Pilot) -> str:
    level, points = estimates.level, 100 * estimates.effect
    goal = f"{level.power:.0%} power at a {points:g}-point difference"
    # "in each" condition: a pilot of one condition is no more than a guide to both.
    unit = "prompts in each condition" if estimates.question == "compare" else "prompts"
    if estimates.more:
        step = f"{estimates.more} more {unit} for {goal} ({estimates.clusters} so far)"
    else:
        step = f"{estimates.clusters} {unit} are enough for {goal} ({estimates.needed} needed)"
    step += f"; {estimates.needed_low} to {estimates.needed_high} needed over the ICC's interval"
    if estimates.pair is not None:
        step = f"{estimates.pair.name}: {step}"
    best = max(
        (a for a in estimates.additions if a.advised), key=lambda a: a.saves or 0, default=None
    )
    if best is None:
        return step + f"; {_no_addition(estimates)}"
    return step + f"; another judge like {best.like} saves {best.saves}"
