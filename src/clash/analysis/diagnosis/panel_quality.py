"""Measures of the whole panel: agreement, effective number of judges, attenuation by ties."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.agreement import krippendorff_alpha
from clash.stats.effectiveness import (
    Contribution,
    Removal,
    attenuation,
    break_even,
    contribution,
    derived_threshold,
    margin,
    published_threshold,
    simulate_removal,
    vote_weight,
)
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.resample import FEWEST_CLUSTERS, cluster_bootstrap

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.diagnosis.judge_quality import JudgeFacts
    from clash.analysis.judge_edges import JudgeEdge
    from clash.stats.typing import Floats
    from clash.votes import Votes


REPLICATES = 300
_MOST_JUDGES = 40


@dataclass(frozen=True)
class ThresholdStanding:
    """What a judge contributes to a panel in which each judge has one vote.

    Attributes:
        discrimination: delta, the share of its ballots that are no ties.
        published: verdict by 1 / (2K - 1), on delta alone; ``derived`` by 1 / (K + 1), which the
            published condition solves to. Both take every judge to be equally good.
        edge: how much better than chance it decides; null where nothing tells.
        signal: delta times edge, by an assumed edge where it is not known.
        break_even: the signal from which on it adds power where ties are half wins; whatever K.
        adds: whether it does, by the estimates.
        margin: signal less break-even: above 0 it surely adds, below 0 it surely takes away; null
            where the edge is not known.
        weight: of its decisive votes against the best judge's, by the log-odds of being right.
        removals: simulated changes of power when it leaves.
    """

    judge: str
    discrimination: float
    published: Contribution
    derived: Contribution
    break_even: float
    adds: bool
    weight: float
    edge: Interval | None = None
    signal: float = 0.0
    margin: Interval | None = None
    weight_interval: Interval | None = None
    removals: tuple[Removal, ...] = ()

    @property
    def takes_away(self) -> bool:
        """Whether the panel is surely better without its equal vote."""
        return self.margin is not None and self.margin.high < 0


@dataclass(frozen=True)
class Thresholds:
    """The thresholds for K candidates."""

    candidates: int
    published: float
    derived: float
    judges: tuple[ThresholdStanding, ...]


@dataclass(frozen=True)
class PanelFacts:
    """Measures of the panel.

    Attributes:
        ties: share of all ballots that are ties.
        discrimination: share that are none: the factor by which ties as half wins shrink effects.
        attenuation: how much larger an effect is than it looks.
        half: share of side A with ties as half, by ballot; ``corrected`` among decisive ballots.
        alpha: Krippendorff's alpha over all ballots; ``alpha_decisive`` over decisive ones.
        effective: number of independent judges that would be as good, by the mean correlation
            of errors (labels) or of votes (a lower bound then), over the ``effective_of`` judges
            that cast a fifth of the ballots of the busiest one or more.
        effective_by: which of them.
    """

    rows: int
    items: int
    judges: int
    ballots: int
    ties: Interval
    discrimination: Interval
    attenuation: float
    half: Interval
    corrected: Interval
    alpha: Interval
    alpha_decisive: Interval
    effective: Interval | None
    effective_of: int
    effective_by: str


def panel_facts(votes: Votes, seed: int = 0) -> PanelFacts:
    """Figures of the panel; intervals are clustered by group."""
    row, judge = np.nonzero(~np.isnan(votes.matrix))
    votes_cast, groups = votes.matrix[row, judge], votes.groups[row]
    is_decisive = votes_cast != 0.5
    discrimination = wilson_clustered(is_decisive.astype(float), groups)
    rng = np.random.default_rng(seed)
    decisive = np.where(votes.matrix == 0.5, np.nan, votes.matrix)
    effective, n_compared, effective_by = _effective(votes, rng)
    return PanelFacts(
        rows=votes.n_rows,
        items=votes.n_items,
        judges=len(votes.judges),
        ballots=len(votes_cast),
        ties=wilson_clustered(1 - is_decisive.astype(float), groups),
        discrimination=discrimination,
        attenuation=attenuation(discrimination.estimate),
        half=wilson_clustered(votes_cast, groups),
        corrected=wilson_clustered(votes_cast[is_decisive], groups[is_decisive]),
        alpha=_alpha(votes.matrix, votes, rng),
        alpha_decisive=_alpha(decisive, votes, rng),
        effective=effective,
        effective_of=n_compared,
        effective_by=effective_by,
    )


def _alpha(table: Floats, votes: Votes, rng: np.random.Generator) -> Interval:
    return krippendorff_alpha(table, rng=rng, clusters=votes.groups, n_bootstrap=REPLICATES)


def _effective(votes: Votes, rng: np.random.Generator) -> tuple[Interval | None, int, str]:
    """Kish's number J / (1 + (J - 1) r), r the mean correlation over pairs of judges."""
    has_label = np.isin(votes.labels, (0.0, 1.0))
    by_label = int(has_label.sum()) >= 30
    matrix = votes.matrix[has_label] if by_label else votes.matrix
    groups = votes.groups[has_label] if by_label else votes.groups
    if by_label:
        # Credit of a vote: 1 right, 0.5 tied, 0 wrong.
        matrix = 1 - np.abs(matrix - votes.labels[has_label][:, None])
    counts = np.sum(~np.isnan(matrix), axis=0)
    columns = np.argsort(-counts, kind="stable")[:_MOST_JUDGES]
    # Of judges that share few rows with the others, no correlation is known.
    columns = columns[counts[columns] >= max(30, counts.max() / 5)]
    name = (
        "correlation of errors, given the label"
        if by_label
        else ("correlation of votes, a lower bound: judges that are right agree too")
    )
    if len(columns) < 2 or len(np.unique(groups)) < FEWEST_CLUSTERS:
        return None, len(columns), name
    pair_votes = matrix[:, columns]
    try:
        replicates = cluster_bootstrap(
            lambda w: np.array([_kish(pair_votes, row) for row in w]), groups, rng, REPLICATES
        )
    except StatisticsError:
        return None, len(columns), name
    return replicates.interval().within(1.0, len(columns)), len(columns), name


def _kish(matrix: Floats, weights: Floats) -> float:
    """Judges over their inflation; NaN where no two judges can be compared."""
    present = (~np.isnan(matrix)).astype(float)
    x = np.nan_to_num(matrix)
    total = weights @ present
    deviations = (
        x - np.divide(weights @ x, total, out=np.zeros_like(total), where=total > 0)
    ) * present
    weighted_votes = deviations * weights[:, None]
    overlap = (present * weights[:, None]).T @ present
    cross = weighted_votes.T @ deviations
    # Variances over the shared rows of each pair, so that a correlation stays within [-1, 1].
    variances = (weighted_votes * deviations).T @ present
    bottom = np.sqrt(variances * variances.T)
    upper = np.triu_indices(matrix.shape[1], 1)
    usable = (overlap[upper] >= 10) & (bottom[upper] > 1e-12)
    if not usable.any():
        return math.nan
    r = float(np.mean(cross[upper][usable] / bottom[upper][usable]))
    judges = float(matrix.shape[1])
    inflation = 1 + (judges - 1) * r
    # A negative mean correlation would make judges worth more than their number.
    return judges / max(inflation, 1.0)


def thresholds(
    facts: Sequence[JudgeFacts],
    edges: Mapping[str, JudgeEdge],
    candidates: int,
    *,
    simulate: bool = False,
    replications: int = 400,
    seed: int = 0,
) -> Thresholds:
    """Compare what every judge contributes with what it takes, with a simulation where asked for.

    Judges whose edge is not known are taken to be as good as the mean of the others.

    Args:
        facts: of the judges that cast a ballot.
        edges: by judge.
        candidates: K of the published thresholds and of the simulation.
        simulate: whether to simulate the removal of each judge.
        replications: of that simulation.
        seed: of that simulation.

    Raises:
        StatisticsError: fewer than two candidates.
    """
    rates = [judge.discrimination.estimate for judge in facts]
    paper, derivation = published_threshold(candidates), derived_threshold(candidates)
    intervals = [edges[judge.judge].edge for judge in facts]
    estimates = [edge.estimate for edge in intervals if edge is not None]
    typical = float(np.mean(estimates)) if estimates else 1.0
    assumptions = [
        _at(typical, judge) if e is None else e for e, judge in zip(intervals, facts, strict=True)
    ]
    signals = [
        edge.transform(partial(mul, rate)) for edge, rate in zip(assumptions, rates, strict=True)
    ]
    best = max(estimates, default=1.0)
    standings = []
    for index, (judge, rate) in enumerate(zip(facts, rates, strict=True)):
        colleagues = [signal.estimate for at, signal in enumerate(signals) if at != index]
        threshold = break_even(colleagues) if colleagues else 0.0
        removals = (
            _removals(
                rates, [e.estimate for e in assumptions], index, candidates, replications, seed
            )
            if simulate
            else ()
        )
        edge = intervals[index]
        standings.append(
            ThresholdStanding(
                judge=judge.judge,
                discrimination=rate,
                published=contribution(rate, paper),
                derived=contribution(rate, derivation),
                break_even=threshold,
                adds=signals[index].estimate > threshold,
                weight=round(vote_weight(assumptions[index].estimate, best), 4),
                edge=edge,
                signal=signals[index].estimate,
                margin=None if edge is None else margin(signals, index),
                weight_interval=None
                if edge is None
                else edge.transform(lambda end: vote_weight(end, best)),
                removals=removals,
            )
        )
    return Thresholds(candidates, paper, derivation, tuple(standings))


def _at(edge: float, judge: JudgeFacts) -> Interval:
    return Interval(edge, edge, edge, 0.95, judge.decisive, judge.decisive, "assumed")


def _removals(
    rates: Sequence[float],
    edges: Sequence[float],
    index: int,
    candidates: int,
    replications: int,
    seed: int,
) -> tuple[Removal, ...]:
    if len(rates) < 2:
        return ()
    return tuple(
        simulate_removal(
            rates,
            index,
            candidates,
            np.random.default_rng(seed),
            edges=edges,
            analysis=analysis,
            replications=replications,
        )
        for analysis in ("half", "davidson")
    )
