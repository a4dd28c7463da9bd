"""Measures of the whole panel: agreement, effective number of judges, attenuation by ties."""

from __future__ import annotations

import math
from dataclasses import dataclass
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
    published_threshold,
    simulate_removal,
)
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.resample import cluster_bootstrap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.diagnosis.judge_quality import JudgeFacts
    from clash.stats.typing import Floats
    from clash.votes import Votes


REPLICATES = 300
_MOST_JUDGES = 40


@dataclass(frozen=True)
class ThresholdStanding:
    """A judge compared with the three thresholds of a positive contribution.

    Attributes:
        published: verdict by 1 / (2K - 1).
        derived: verdict by 1 / (K + 1), which the published condition solves to.
        break_even: from this discrimination on a judge of the panel's edge adds power where
            ties are half wins; whatever K is.
        adds: whether it does, by that.
        weight: delta_j / max delta, for a weighted Bradley-Terry fit.
    """

    judge: str
    discrimination: float
    published: Contribution
    derived: Contribution
    break_even: float
    adds: bool
    weight: float
    removals: tuple[Removal, ...] = ()


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
    if len(columns) < 2:
        return None, len(columns), name
    pair_votes = matrix[:, columns]
    try:
        replicates = cluster_bootstrap(
            lambda w: np.array([_kish(pair_votes, row) for row in w]), groups, rng, REPLICATES
        )
    except StatisticsError:
        return None, len(columns), name
    return replicates.interval(), len(columns), name


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
    candidates: int,
    *,
    simulate: bool = False,
    replications: int = 400,
    seed: int = 0,
) -> Thresholds:
    """Compare every judge with the thresholds, with a simulation where asked for.

    Raises:
        StatisticsError: fewer than two candidates.
    """
    rates = [judge.discrimination.estimate for judge in facts]
    paper, derived = published_threshold(candidates), derived_threshold(candidates)
    greatest = max(rates, default=0.0)
    standings = []
    for index, (judge, rate) in enumerate(zip(facts, rates, strict=True)):
        break_even_rate = break_even([*rates[:index], *rates[index + 1 :]])
        removals = _removals(rates, index, candidates, replications, seed) if simulate else ()
        standings.append(
            ThresholdStanding(
                judge.judge,
                rate,
                contribution(rate, paper),
                contribution(rate, derived),
                break_even_rate,
                rate > break_even_rate,
                rate / greatest if greatest else 0.0,
                removals,
            )
        )
    return Thresholds(candidates, paper, derived, tuple(standings))


def _removals(
    rates: Sequence[float], index: int, candidates: int, replications: int, seed: int
) -> tuple[Removal, ...]:
    if len(rates) < 2:
        return ()
    return tuple(
        simulate_removal(
            rates,
            index,
            candidates,
            np.random.default_rng(seed),
            analysis=analysis,
            replications=replications,
        )
        for analysis in ("half", "davidson")
    )
