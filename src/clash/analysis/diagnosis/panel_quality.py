"""The panel as a whole: agreement, redundancy, and what ties do to effects."""

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
class Standing:
    """A judge against the three thresholds of a positive contribution.

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
    judges: tuple[Standing, ...]


@dataclass(frozen=True)
class PanelFacts:
    """What the votes show of the panel.

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
    said, groups = votes.matrix[row, judge], votes.groups[row]
    decided = said != 0.5
    discrimination = wilson_clustered(decided.astype(float), groups)
    rng = np.random.default_rng(seed)
    decisive = np.where(votes.matrix == 0.5, np.nan, votes.matrix)
    effective, of, by = _effective(votes, rng)
    return PanelFacts(
        rows=votes.n_rows,
        items=votes.n_items,
        judges=len(votes.judges),
        ballots=len(said),
        ties=wilson_clustered(1 - decided.astype(float), groups),
        discrimination=discrimination,
        attenuation=attenuation(discrimination.estimate),
        half=wilson_clustered(said, groups),
        corrected=wilson_clustered(said[decided], groups[decided]),
        alpha=_alpha(votes.matrix, votes, rng),
        alpha_decisive=_alpha(decisive, votes, rng),
        effective=effective,
        effective_of=of,
        effective_by=by,
    )


def _alpha(table: Floats, votes: Votes, rng: np.random.Generator) -> Interval:
    return krippendorff_alpha(table, rng=rng, clusters=votes.groups, n_bootstrap=REPLICATES)


def _effective(votes: Votes, rng: np.random.Generator) -> tuple[Interval | None, int, str]:
    """Kish's number J / (1 + (J - 1) r), r the mean correlation over pairs of judges."""
    labelled = np.isin(votes.labels, (0.0, 1.0))
    by_label = int(labelled.sum()) >= 30
    matrix = votes.matrix[labelled] if by_label else votes.matrix
    groups = votes.groups[labelled] if by_label else votes.groups
    if by_label:
        # Credit of a vote: 1 right, 0.5 tied, 0 wrong.
        matrix = 1 - np.abs(matrix - votes.labels[labelled][:, None])
    counts = np.sum(~np.isnan(matrix), axis=0)
    chosen = np.argsort(-counts, kind="stable")[:_MOST_JUDGES]
    # Of judges that share few rows with the others, no correlation is known.
    chosen = chosen[counts[chosen] >= max(30, counts.max() / 5)]
    name = (
        "correlation of errors, given the label"
        if by_label
        else ("correlation of votes, a lower bound: judges that are right agree too")
    )
    if len(chosen) < 2:
        return None, len(chosen), name
    kept = matrix[:, chosen]
    try:
        found = cluster_bootstrap(
            lambda w: np.array([_kish(kept, row) for row in w]), groups, rng, REPLICATES
        )
    except StatisticsError:
        return None, len(chosen), name
    return found.interval(), len(chosen), name


def _kish(matrix: Floats, weights: Floats) -> float:
    """Judges over their inflation; NaN where no two judges can be compared."""
    seen = (~np.isnan(matrix)).astype(float)
    x = np.nan_to_num(matrix)
    total = weights @ seen
    centred = (x - np.divide(weights @ x, total, out=np.zeros_like(total), where=total > 0)) * seen
    weighted = centred * weights[:, None]
    shared = (seen * weights[:, None]).T @ seen
    cross = weighted.T @ centred
    # Variances over the shared rows of each pair, so that a correlation stays within [-1, 1].
    mine = (weighted * centred).T @ seen
    bottom = np.sqrt(mine * mine.T)
    upper = np.triu_indices(matrix.shape[1], 1)
    usable = (shared[upper] >= 10) & (bottom[upper] > 1e-12)
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
    """Every judge against the thresholds, and by simulation where asked for.

    Raises:
        StatisticsError: fewer than two candidates.
    """
    rates = [judge.discrimination.estimate for judge in facts]
    paper, derived = published_threshold(candidates), derived_threshold(candidates)
    greatest = max(rates, default=0.0)
    made = []
    for index, (judge, rate) in enumerate(zip(facts, rates, strict=True)):
        even = break_even([*rates[:index], *rates[index + 1 :]])
        found = _removals(rates, index, candidates, replications, seed) if simulate else ()
        made.append(
            Standing(
                judge.judge,
                rate,
                contribution(rate, paper),
                contribution(rate, derived),
                even,
                rate > even,
                rate / greatest if greatest else 0.0,
                found,
            )
        )
    return Thresholds(candidates, paper, derived, tuple(made))


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
