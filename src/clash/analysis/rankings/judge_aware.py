"""Bradley-Terry strengths of candidates that account for judges, also at equal style."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.errors import ConfigError, StatisticsError, one_of
from clash.stats.voting.judge_aware import JudgeAware, JudgedPairs, judge_aware, judged_pairs
from clash.stats.voting.rank_intervals import rank_intervals, ranks_of
from clash.stats.voting.rankings import pairwise_outcomes
from clash.votes.named_rankings import ballot_rankings
from clash.votes.style import POSITION, STYLES
from clash.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats
    from clash.stats.voting.rankings import PairwiseOutcomes
    from clash.votes.named_rankings import NamedRankings

LEVEL = 0.95
FEWEST = 20
"""Items or prompts below which a report says nothing about reliability and style."""
_DRAWS = 4000
"""Draws from the estimated errors for the limit that differences must exceed."""
_LEAST_SHARE = 0.5
"""Of the comparisons that must have a trait; else it is left out."""
_OWN_SHARE = 1e-3
"""Of a trait's variation that candidates do not explain; below, the two cannot be told apart."""
UNITS = {
    "length": "twice as long",
    "markdown": "twice as much Markdown",
    "position": "shown first",
    "self": "same organisation as the judge",
}
"""What the odds of a style are for."""


@dataclass(frozen=True)
class Strength:
    """A candidate in a fit.

    Attributes:
        strength: log strength against the mean, on the scale of the average judge.
        rank_low, rank_high: of the rank, for all candidates together.
    """

    strength: Interval
    rank: int
    rank_low: int
    rank_high: int


@dataclass(frozen=True)
class StrengthRow:
    """A candidate at equal style, and as it is; the same where no style could be adjusted for."""

    candidate: str
    at_equal_style: Strength
    plain: Strength


@dataclass(frozen=True)
class ReliabilityRow:
    """A judge.

    Attributes:
        reliability: how strongly it follows the strengths, against the panel's mean of 1; 0 is a
            coin, below 0 the opposite. It is agreement with the panel, not with people.
        tie_odds: odds of a tie against a decision between two equals.
        n: its comparisons.
    """

    judge: str
    reliability: Interval
    tie_odds: float
    n: int


@dataclass(frozen=True)
class StyleRow:
    """A style: how a response's odds of winning change with it, between equals.

    Attributes:
        effect: log-odds for ``unit``.
        odds: their factor, with its interval.
    """

    style: str
    unit: str
    effect: Interval
    odds: Interval


@dataclass(frozen=True)
class JudgeAwareRanking:
    """Strengths, reliabilities and styles.

    Attributes:
        rows: best first, by adjusted strengths.
        adjusted_for: the styles in the fit; ``left_out`` why others are not.
        n: comparisons, in ``n_clusters`` items or prompts.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"rows": "candidates"}

    rows: tuple[StrengthRow, ...]
    judges: tuple[ReliabilityRow, ...]
    styles: tuple[StyleRow, ...]
    adjusted_for: tuple[str, ...]
    left_out: Mapping[str, str]
    n: int
    n_clusters: int
    seed: int
    level: float
    converged: bool
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to beware of."""
        lines = []
        if not self.converged:
            lines.append("the fit with the judges' reliability did not converge")
        if len(self.judges) == 2:
            lines.append(
                "of two judges who disagree, reliability follows the one with the clearer order, "
                "right or wrong"
            )
        return tuple(lines)


def parse_styles(text: str) -> tuple[str, ...]:
    """The requested styles: comma separated, ``all`` or ``none``.

    Raises:
        ConfigError: there is no such style.
    """
    if text in ("all", "none"):
        return STYLES if text == "all" else ()
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in names if name not in STYLES]
    if unknown or not names:
        name = unknown[0] if unknown else ""
        raise ConfigError(
            f"no style {name!r}", field="--style", hint=one_of(name, ("all", "none", *STYLES))
        )
    return names


def rank_by_judges(
    rankings: NamedRankings, styles: Sequence[str], *, seed: int = 42
) -> JudgeAwareRanking:
    """Fit strengths with the judges' reliabilities, as they are and at equal style.

    Weights of judges play no part: their reliabilities stand in for them.

    Args:
        rankings: of the judges, with the traits of the responses.
        styles: to adjust for, of :data:`STYLES`.
        seed: of the draws behind the rank intervals.

    Raises:
        StatisticsError: no ranking orders two candidates.
    """
    return _fit(_Design.of(rankings, styles), seed)


def _fit(design: _Design, seed: int) -> JudgeAwareRanking:
    plain = judge_aware(replace(design.pairs, style=design.pairs.style[:, :0]))
    names = design.usable
    at_equal_style = judge_aware(design.pairs) if names else None
    best = plain if at_equal_style is None else at_equal_style
    plain_places = _places(plain, seed)
    places = plain_places if at_equal_style is None else _places(at_equal_style, seed)
    rows = [
        StrengthRow(name, *pair_of_places)
        for name, *pair_of_places in zip(design.candidates, places, plain_places, strict=True)
    ]
    return JudgeAwareRanking(
        rows=tuple(sorted(rows, key=lambda row: (row.at_equal_style.rank, row.candidate))),
        judges=_judges(design, best),
        styles=_styles(names, best),
        adjusted_for=names,
        left_out=design.left_out,
        n=best.n,
        n_clusters=best.n_clusters,
        seed=seed,
        level=LEVEL,
        converged=plain.converged and best.converged,
        notes=design.notes,
    )


def run_strengths(run: RunData) -> JudgeAwareRanking | None:
    """The strengths of a run's candidates at equal style; null below ``FEWEST`` items or prompts."""
    voting = [panelist for panelist in run.rules.panelists if panelist.role == "voting"]
    if len(set(run.clusters.values())) < FEWEST:
        return None
    try:
        rankings = ballot_rankings(run.items, run.ballots, voting, run.responses, style=True)
    except StatisticsError:  # nothing was compared with anything
        return None
    if rankings is None or len(np.unique(rankings.rankings.clusters)) < FEWEST:
        return None
    design = _Design.of(rankings, STYLES)
    del rankings  # of a large run, most of the memory
    return _fit(design, run.manifest.seeds.get("seed", 0))


@dataclass(frozen=True)
class _Design:
    """Comparisons with the traits that can be adjusted for.

    Attributes:
        pairs: the comparisons in which all usable traits are known, with their differences.
        judges: those that have such a comparison, as they are numbered in the fit.
    """

    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    usable: tuple[str, ...]
    left_out: Mapping[str, str]
    pairs: JudgedPairs
    notes: tuple[str, ...]

    @classmethod
    def of(cls, rankings: NamedRankings, styles: Sequence[str]) -> _Design:
        array, outcomes = rankings.rankings, pairwise_outcomes(rankings.rankings)
        style, left_out = _differences(outcomes, array.traits), {}
        usable = []
        for name in styles:
            reason = _why_not(style[:, STYLES.index(name)], outcomes, array.n_candidates)
            if reason is None:
                usable.append(name)
            else:
                left_out[name] = reason
        columns = [STYLES.index(name) for name in usable]
        has_traits = ~np.isnan(style[:, columns]).any(axis=1)
        n_lost = len(style) - int(has_traits.sum())
        notes = (
            (f"{plural(n_lost, 'comparison')} without text or order left out",) if n_lost else ()
        )
        rows = has_traits if n_lost else slice(None)  # a slice is no copy
        ranking = outcomes.ranking[rows]
        judges, codes = np.unique(array.judges[ranking], return_inverse=True)
        pairs = judged_pairs(
            outcomes.first[rows],
            outcomes.second[rows],
            np.where(outcomes.tied[rows], 0.5, 1.0),
            codes,
            array.clusters[ranking],
            n_candidates=array.n_candidates,
            style=style[rows][:, columns],
            weights=array.weights[ranking],
        )
        names = tuple(rankings.judges[code] for code in judges.tolist())
        return cls(rankings.candidates, names, tuple(usable), left_out, pairs, notes)


def _differences(outcomes: PairwiseOutcomes, traits: Floats | None) -> Floats:
    """(n, 4), traits of the first less those of the second in every comparison; of position the sign."""
    gap = np.full((len(outcomes.first), len(STYLES)), np.nan)
    if traits is not None:
        for column in range(len(STYLES)):  # one at a time: there may be millions of comparisons
            gap[:, column] = traits[outcomes.ranking, outcomes.first, column]
            gap[:, column] -= traits[outcomes.ranking, outcomes.second, column]
        gap[:, POSITION] = -np.sign(gap[:, POSITION])
    return gap


def _why_not(column: Floats, outcomes: PairwiseOutcomes, n_candidates: int) -> str | None:
    """Why a trait cannot be adjusted for; null where it can."""
    has_trait = ~np.isnan(column)
    if has_trait.mean() < _LEAST_SHARE:
        return (
            "not known"
            if not has_trait.any()
            else f"known of {has_trait.mean():.0%} of the comparisons"
        )
    values = column[has_trait]
    if not np.any(values):
        return "no difference in any comparison"
    first, second = outcomes.first[has_trait], outcomes.second[has_trait]
    # Normal equations: K x K however many comparisons there are.
    meetings = np.bincount(first * n_candidates + second, minlength=n_candidates**2)
    table = meetings.reshape(n_candidates, n_candidates)
    table = np.diag(table.sum(axis=0) + table.sum(axis=1)) - table - table.T
    sums = np.bincount(first, values, n_candidates) - np.bincount(second, values, n_candidates)
    share = np.linalg.lstsq(table.astype(float), sums, rcond=None)[0]
    if np.sum((values - share[first] + share[second]) ** 2) < _OWN_SHARE * np.sum(values**2):
        return "goes with the candidates: it cannot be told apart from their strength"
    return None


def _places(fit: JudgeAware, seed: int) -> list[Strength]:
    """Strengths and ranks; with one cluster, every rank is possible."""
    k, theta = len(fit.theta), fit.theta
    rank = 1 + (theta[:, None] > theta[None, :] + 1e-9).sum(axis=0)
    ranks = ranks_of(np.zeros((k, k), dtype=bool))
    if fit.n_clusters > 1:
        values, vectors = np.linalg.eigh(fit.covariance[:k, :k])
        root = vectors * np.sqrt(np.maximum(0.0, values))
        noise = np.random.default_rng(seed).standard_normal((_DRAWS, k))
        ranks = rank_intervals(theta, theta + noise @ root.T, LEVEL, freedom=fit.n_clusters - 1)
    columns = (rank.tolist(), ranks.low.tolist(), ranks.high.tolist())
    return [Strength(*bounds) for bounds in zip(fit.strengths(LEVEL), *columns, strict=True)]


def _judges(design: _Design, fit: JudgeAware) -> tuple[ReliabilityRow, ...]:
    counts = np.bincount(design.pairs.judge).tolist()
    rows = [
        ReliabilityRow(name, interval, float(tie) / 2, count)
        for name, interval, tie, count in zip(
            design.judges, fit.reliabilities(LEVEL), fit.tie, counts, strict=True
        )
    ]
    return tuple(sorted(rows, key=lambda row: (-row.reliability.estimate, row.judge)))


def _styles(names: Sequence[str], fit: JudgeAware) -> tuple[StyleRow, ...]:
    return tuple(
        StyleRow(name, UNITS[name], effect, _odds(effect))
        for name, effect in zip(names, fit.style_effects(LEVEL), strict=True)
    )


def _odds(effect: Interval) -> Interval:
    """The interval of e^effect; log-odds beyond 700 are no number."""
    return effect.transform(lambda log_odds: float(np.exp(np.clip(log_odds, -700, 700))))
