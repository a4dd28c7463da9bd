"""The value of a judge's ballots to a panel in which ballots may tie.

A ballot decides with probability delta (the discrimination rate), and then for the better side
with probability (1 + e) / 2; e is the judge's edge. An analysis that counts a tie as half a win
shrinks every effect by delta, and treats the tie as a ballot with the same noise as any other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.intervals import Interval, newcombe_paired, normal_quantile
from clash.stats.voting.bradley_terry import BradleyTerry, Comparisons, bradley_terry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Floats


Contribution = Literal["positive", "marginally positive", "marginally negative", "negative"]
Analysis = Literal["half", "davidson"]
TARGET = 0.40
"""The discrimination rate that a replacement should reach (judge-effectiveness pilot, 5)."""
_MARGIN = 0.1
"""Relative distance from a threshold within which a contribution is called marginal."""
_SUREST = 0.98
"""The edge beyond which a larger one counts no more: right on 99% of the votes."""
_STRONGEST = 3.0
"""Log strength of the best candidate at most: it then wins 95% of its decisive ballots."""
_BALLOTS = 120
"""Of each judge in a simulated study."""
_SHIFT = 2.2
"""Mean z of the whole panel in a simulated study, were each tie half a win; it sets the effect."""


def published_threshold(candidates: int) -> float:
    """1 / (2K - 1), as published for K candidates; it does not follow from its own condition."""
    _check_candidates(candidates)
    return 1 / (2 * candidates - 1)


def derived_threshold(candidates: int) -> float:
    """1 / (K + 1), the solution of the published condition.

    A judge contributes where the information of its decisive ballots exceeds the noise of its
    ties, delta / (K - 1) > (1 - delta) / (K (K - 1)). Times K (K - 1): K delta > 1 - delta, so
    delta > 1 / (K + 1). The two agree for K = 2 only.
    """
    _check_candidates(candidates)
    return 1 / (candidates + 1)


def _check_candidates(candidates: int) -> None:
    if candidates < 2:
        raise StatisticsError(f"{candidates} candidate(s) cannot be compared")


def break_even(signals: Sequence[float]) -> float:
    """The delta e from which a further judge raises the power where ties are half wins.

    Such an analysis has z proportional to sum_j delta_j e_j / sqrt(J), J judges with equally many
    ballots: a tie adds to the denominator as much as a decision does. With S the sum over the
    others, judge j adds power where delta_j e_j > S (sqrt(J / (J - 1)) - 1), a little less than
    half of the others' mean. The number of candidates does not enter. Where the variance is that
    of the ballots (ties modelled, or left out), a tie costs nothing and the threshold for delta
    is 0.

    Args:
        signals: delta e of the other judges; their discrimination rates give a threshold for delta
            for judges of one edge.

    Returns:
        In units of delta e; 0 where there are no others.
    """
    if not len(signals):
        return 0.0
    judges = len(signals) + 1
    return float(np.sum(signals)) * (math.sqrt(judges / (judges - 1)) - 1)


def margin(signals: Sequence[Interval], judge: int) -> Interval:
    """By how much a judge's delta e exceeds the break-even that the others set.

    Above 0 its removal lowers the power where ties are half wins, below 0 raises it; a judge alone
    has to be better than a coin. The interval is by the method of variance estimates recovery
    (Zou and Donner 2008) from those of the judges, taken as independent: where judges are measured
    on the same items and err together it is too wide rather than too narrow.

    Args:
        signals: (J,), delta e of each judge, negative where it inverts the truth.
        judge: which of them.
    """
    signal = signals[judge]
    colleagues = [s for index, s in enumerate(signals) if index != judge]
    share = math.sqrt(len(signals) / len(colleagues)) - 1 if colleagues else 0.0
    estimate = signal.estimate - share * sum(colleague.estimate for colleague in colleagues)
    down = (signal.estimate - signal.low) ** 2
    down += share**2 * sum((colleague.high - colleague.estimate) ** 2 for colleague in colleagues)
    up = (signal.high - signal.estimate) ** 2
    up += share**2 * sum((colleague.estimate - colleague.low) ** 2 for colleague in colleagues)
    return replace(
        signal,
        estimate=estimate,
        low=estimate - math.sqrt(down),
        high=estimate + math.sqrt(up),
        method="variance estimates recovery",
    )


def vote_weight(edge: float, best: float) -> float:
    """What a judge's decisive vote should count beside the best judge's: from 0 to 1.

    The ratio of the log-odds of being right, by which a majority of independent judges is right
    most often (Nitzan and Paroush 1982). 0 for a judge no better than a coin.

    Args:
        edge: of the judge, from -1 to 1.
        best: of the best judge; at most 0 makes every judge 0.
    """
    if not best > 0:
        return 0.0
    limit = _SUREST
    return min(1.0, math.atanh(min(max(edge, 0.0), limit)) / math.atanh(min(best, limit)))


def contribution(rate: float, threshold: float) -> Contribution:
    """``rate`` against a threshold, marginal within a tenth of it."""
    gap = rate / threshold - 1
    near = abs(gap) < _MARGIN
    if gap > 0:
        return "marginally positive" if near else "positive"
    return "marginally negative" if near else "negative"


def attenuation(rate: float) -> float:
    """How much larger an effect is than it looks with ties as half wins: 1 / delta.

    Infinite where all ballots are ties.
    """
    return 1 / rate if rate > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Removal:
    """What taking a judge off the panel does to the power of a comparison, by simulation.

    Attributes:
        with_judge: power with the whole panel.
        without: power without the judge, on the same draws.
        change: without minus with; its interval is of the paired difference.
    """

    analysis: Analysis
    with_judge: float
    without: float
    change: Interval
    replications: int

    @property
    def raises(self) -> bool | None:
        """Whether removal raises the power; null where the simulation does not tell."""
        if not self.change.excludes(0):
            return None
        return self.change.estimate > 0


def simulate_removal(
    rates: Sequence[float],
    judge: int,
    candidates: int,
    rng: np.random.Generator,
    *,
    edges: Sequence[float] | None = None,
    analysis: Analysis = "half",
    replications: int = 600,
) -> Removal:
    """Draw panels, compare one candidate with the rest, with and without a judge.

    Every judge casts 120 ballots, spread evenly over the pairs of K candidates. One candidate is
    stronger than all others, by so much that the whole panel's z is 2.2 on average, were each tie
    half a win; the others are equal. Strengths are fitted by Bradley and Terry with ties as ``half``
    wins and the standard error of that model, or with ties modelled (``davidson``), and the
    contrast of the strong one with the mean of the others is tested at 5%.

    Args:
        rates: (J,), discrimination rates, J >= 2.
        judge: which of them goes.
        candidates: K.
        rng: source of randomness.
        edges: (J,), 1 a judge that follows the strengths, 0 one that tosses a coin, -1 one
            that inverts them.
        analysis: how ties are read.
        replications: studies.

    Raises:
        StatisticsError: one judge or one candidate.
    """
    discrimination = np.asarray(rates, dtype=float)
    _check_candidates(candidates)
    if len(discrimination) < 2:
        raise StatisticsError("a panel of one judge is empty without it")
    follow = np.ones(len(discrimination)) if edges is None else np.asarray(edges, dtype=float)
    signal = float(discrimination @ follow)
    strength = _strength(signal, len(discrimination), candidates)
    detections = np.array(
        [
            _study(discrimination, follow, judge, candidates, strength, analysis, rng)
            for _ in range(replications)
        ]
    )
    with_judge, without = detections[:, 0], detections[:, 1]
    change = newcombe_paired(
        int(np.sum(with_judge & without)),
        int(np.sum(without & ~with_judge)),
        int(np.sum(with_judge & ~without)),
        int(np.sum(~with_judge & ~without)),
    )
    return Removal(analysis, float(with_judge.mean()), float(without.mean()), change, replications)


def _strength(signal: float, judges: int, candidates: int) -> float:
    """The log strength of the best that gives z = 2.2 with ties as half wins, for small ones.

    The contrast with the mean of K - 1 equals meets it in ballots 2 / K of all ballots.
    """
    n_informative = 2 / candidates * _BALLOTS * judges
    edge = _SHIFT / math.sqrt(n_informative) * judges / max(abs(signal), 1e-9)
    return _STRONGEST if edge >= math.tanh(_STRONGEST / 2) else 2 * math.atanh(edge)


def _study(
    rates: Floats,
    edges: Floats,
    judge: int,
    candidates: int,
    strength: float,
    analysis: Analysis,
    rng: np.random.Generator,
) -> tuple[bool, bool]:
    """Whether the difference is found with the panel, and without the judge."""
    panels = [
        _draw(rate, edge, candidates, strength, rng)
        for rate, edge in zip(rates, edges, strict=True)
    ]
    all_counts = _sum(panels)
    other_counts = _sum([part for index, part in enumerate(panels) if index != judge])
    return _finds(all_counts, analysis), _finds(other_counts, analysis)


def _draw(
    rate: float, edge: float, candidates: int, strength: float, rng: np.random.Generator
) -> Comparisons:
    first, second = np.triu_indices(candidates, 1)
    n_ballots = np.full(len(first), _BALLOTS // len(first))
    n_ballots[: _BALLOTS % len(first)] += 1
    # Candidate 0 is the strong one; it is always the first of its pairs.
    p = 0.5 + edge * np.where(first == 0, math.tanh(strength / 2) / 2, 0.0)
    n_decisive = rng.binomial(n_ballots, rate)
    first_wins = rng.binomial(n_decisive, p)
    wins, ties = np.zeros((2, candidates, candidates))
    wins[first, second], wins[second, first] = first_wins, n_decisive - first_wins
    ties[first, second] = ties[second, first] = n_ballots - n_decisive
    return Comparisons(wins, ties)


def _sum(parts: Sequence[Comparisons]) -> Comparisons:
    wins: Floats = np.sum([part.wins for part in parts], axis=0)
    ties: Floats = np.sum([part.ties for part in parts], axis=0)
    return Comparisons(wins, ties)


def _finds(counts: Comparisons, analysis: Analysis) -> bool:
    # A weak prior keeps strengths finite where a candidate lost all its decisive ballots.
    fit = bradley_terry(counts, prior=0.01, ties=analysis)
    return abs(contrast_with_rest(fit, 0)) > normal_quantile(0.95)


def contrast_with_rest(fit: BradleyTerry, candidate: int) -> float:
    """Z of one strength against the mean of the others, by the fit's own covariance."""
    k = len(fit.theta)
    weights = np.full(k, -1 / (k - 1))
    weights[candidate] = 1.0
    error = math.sqrt(float(weights @ fit.covariance @ weights))
    return float(weights @ fit.theta) / error
