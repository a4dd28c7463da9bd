"""Rank candidates by several methods, with intervals, and say why the methods differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.rankings import reasons
from clash.analysis.rankings.candidate_rankings import (
    CandidatePlace,
    CandidateRankings,
    MethodRanking,
)
from clash.analysis.rankings.weights import judge_weights
from clash.errors import ConfigError, StatisticsError, one_of
from clash.stats.voting.bootstrap import TWINS, RuleReplicates, draw, replicate
from clash.stats.voting.bradley_terry import linked_sets
from clash.stats.voting.condorcet import condorcet_winner, majority_cycle, places, smith_set
from clash.stats.voting.rank_intervals import RankIntervals, rank_intervals, ranks_of
from clash.stats.voting.rankings import RankingArray, with_twins
from clash.stats.voting.rules import RANKING_RULES, PairwiseTable, RankingRule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.stats.typing import Bools, Floats
    from clash.votes.named_rankings import NamedRankings


LEVEL = 0.95
REPLICATES = 1000
_STEP_SCORES = ("copeland", "schulze", "kemeny")
"""Scores that jump, and whose bootstrap is too sure where candidates are level."""
_FEWER_FROM = 13
_FEWER = 100
"""From so many candidates on Kemeny's search takes so long that fewer replicates have to do."""


def ranking_names() -> list[str]:
    """The methods that rank candidates."""
    return list(RANKING_RULES)


def rank_candidates(
    rankings: NamedRankings,
    methods: Sequence[str],
    *,
    seed: int = 42,
    replicates: int = REPLICATES,
    weights: str | None = None,
) -> CandidateRankings:
    """Rank the candidates by every method, on the same replicates.

    Args:
        rankings: of the judges, by candidate.
        methods: names of :func:`ranking_names`.
        seed: of the bootstrap.
        replicates: of it; 0 for no intervals.
        weights: of the judges, see :func:`clash.analysis.rankings.weights.judge_weights`; by
            default the panel's, and one-coin's in the weighted majority.

    Raises:
        ConfigError: an unknown method, or weights that leave no ranking.
        StatisticsError: fewer than two candidates were compared.
    """
    unknown = [name for name in methods if name not in RANKING_RULES]
    if unknown:
        raise ConfigError(
            f"no ranking {unknown[0]!r}",
            field="--method",
            hint=one_of(unknown[0], RANKING_RULES),
        )
    study = _Study.of(rankings, seed, replicates, weights or "panel")
    methods_ranked = tuple(study.method(name, weights) for name in dict.fromkeys(methods))
    counts = study.base.counts()
    prefers = counts.wins + counts.ties / 2
    best, top = condorcet_winner(prefers), smith_set(prefers).tolist()
    result = CandidateRankings(
        candidates=rankings.candidates,
        absent=rankings.absent,
        weights=dict(zip(rankings.judges, study.worth.tolist(), strict=True)),
        weights_by=weights or "panel",
        n_items=rankings.n_items,
        n_ranked_items=rankings.n_ranked_items,
        n_clusters=study.n_own,
        n_rankings=rankings.n_rankings,
        failed=rankings.failed,
        seed=seed,
        replicates=0 if study.draws is None else replicates,
        level=LEVEL,
        wins=counts.wins,
        ties=counts.ties,
        condorcet=rankings.candidates[best] if best >= 0 else None,
        smith=tuple(rankings.candidates[i] for i in top),
        cycle=tuple(rankings.candidates[i] for i in _cycle(prefers, top)),
        groups=_groups(linked_sets(counts), rankings.candidates),
        methods=methods_ranked,
        differences=(),
        warnings=(),
        notes=rankings.notes,
    )
    return replace(
        result, differences=reasons.differences(result), warnings=reasons.warnings(result)
    )


def _cycle(prefers: Floats, top: Sequence[int]) -> list[int]:
    """A shortest cycle among those that beat the rest; anywhere, where one beats all."""
    among = list(top) if len(top) > 1 else list(range(len(prefers)))
    return [among[i] for i in majority_cycle(prefers[np.ix_(among, among)]).tolist()]


def _groups(codes: NDArray[np.intp], names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    sets = [
        tuple(names[i] for i in np.flatnonzero(codes == code).tolist())
        for code in range(int(codes.max()) + 1)
    ]
    return tuple(sorted(sets, key=len, reverse=True))


@dataclass(frozen=True)
class _Study:
    """The rankings with their twins, and the draws that every method shares.

    Attributes:
        pool: the rankings and, after them, the twins; every judge weighs 1.
        n_own: clusters that are no twins.
        worth: (J,), weights of the judges.
        base: the pool so weighted, counted.
        draws: (B, G), null where there are no intervals.
        sure: (K,), whether a candidate was judged on two items or more.
    """

    rankings: NamedRankings
    pool: RankingArray
    n_own: int
    worth: Floats
    base: PairwiseTable
    draws: NDArray[np.uint16] | None
    sure: NDArray[np.bool_]

    @classmethod
    def of(cls, rankings: NamedRankings, seed: int, replicates: int, weights: str) -> _Study:
        rng, array = np.random.default_rng(seed), rankings.rankings
        n_own = array.n_clusters
        with_intervals = replicates > 0 and n_own > 1
        pool = with_twins(array, TWINS, rng) if with_intervals else array
        worth = judge_weights(weights, rankings)
        if not worth[np.unique(array.judges)].any():
            raise ConfigError("give no ranking a weight above 0", field="--weights")
        is_ranked = np.zeros((n_own, array.n_candidates), dtype=bool)
        np.logical_or.at(is_ranked, array.clusters, array.present)
        return cls(
            rankings,
            pool,
            n_own,
            worth,
            PairwiseTable.of(pool.with_judge_weights(worth), n_own),
            draw(n_own, TWINS, replicates, rng) if with_intervals else None,
            is_ranked.sum(axis=0) > 1,
        )

    def method(self, name: str, weights: str | None) -> MethodRanking:
        """A method's ranking; a refusal is a result."""
        try:
            rule = RANKING_RULES[name](self._tally(name, weights))
        except StatisticsError as refusal:
            return MethodRanking(name, "refused", notes=(str(refusal),))
        scores = rule.scores(self.base.own_weights())[0]
        draws = self.draws
        if draws is None:
            return MethodRanking(name, "ok", rule.fit, self._places(scores, rule))
        fewer = name == "kemeny" and len(scores) >= _FEWER_FROM
        rule_replicates = replicate(rule, draws[:_FEWER] if fewer else draws)
        better = self._better(scores, rule_replicates)
        if name in _STEP_SCORES:
            better &= self._better_by_points
        return MethodRanking(
            name,
            "ok",
            rule.fit,
            self._places(scores, rule, rule_replicates, ranks_of(better)),
            len(rule_replicates.scores),
            _notes(rule_replicates, fewer=fewer),
        )

    def _tally(self, name: str, weights: str | None) -> PairwiseTable:
        if name == "majority":
            return PairwiseTable.of(self.pool, self.n_own)
        if name == "weighted-majority" and weights is None:
            worth = judge_weights("one-coin", self.rankings)
            if not worth[np.unique(self.rankings.rankings.judges)].any():
                raise StatisticsError("by the one-coin model no judge is better than chance")
            return PairwiseTable.of(self.pool.with_judge_weights(worth), self.n_own)
        return self.base

    def _better(self, scores: Floats, rule_replicates: RuleReplicates) -> Bools:
        """Who is better than whom by a rule, all statements at once, (K, K)."""
        return rank_intervals(
            scores,
            rule_replicates.scores,
            LEVEL,
            freedom=self.n_own - 1,
            inflation=math.sqrt(self.n_own / (self.n_own - 1)),
            comparable=self.sure,
        ).better

    @cached_property
    def _better_by_points(self) -> Bools:
        """The same by Borda points, whose bootstrap is right where scores in steps jump."""
        rule = RANKING_RULES["borda"](self.base)
        draws = np.zeros((0, 0), np.uint16) if self.draws is None else self.draws
        return self._better(rule.scores(self.base.own_weights())[0], replicate(rule, draws))

    def _places(
        self,
        scores: Floats,
        rule: RankingRule,
        rule_replicates: RuleReplicates | None = None,
        intervals: RankIntervals | None = None,
    ) -> tuple[CandidatePlace, ...]:
        """Every candidate with a score, best first; equal ones in the order of their names."""
        ranks, names = places(scores, rule.slack), self.rankings.candidates
        without_intervals = [
            CandidatePlace(
                name,
                float(scores[k]),
                int(ranks[k]),
                tied=tuple(names[i] for i in np.flatnonzero(ranks == ranks[k]).tolist() if i != k),
            )
            for k, name in enumerate(names)
        ]
        all_places = (
            without_intervals
            if rule_replicates is None or intervals is None
            else _with_intervals(without_intervals, rule_replicates, intervals, self.sure)
        )
        ranked_places = [position for position in all_places if position.rank > 0]
        return tuple(
            sorted(ranked_places, key=lambda position: (position.rank, position.candidate))
        )


def _with_intervals(
    plain: Sequence[CandidatePlace],
    rule_replicates: RuleReplicates,
    intervals: RankIntervals,
    has_interval: NDArray[np.bool_],
) -> list[CandidatePlace]:
    low, high = rule_replicates.score_interval(LEVEL)
    # A candidate without a score has no rank, and takes none of the others'.
    n_ranked = sum(plain_place.rank > 0 for plain_place in plain)
    first, ahead = rule_replicates.first(), rule_replicates.ahead()
    reach = (1 - LEVEL) / 2
    unsure = (ahead > reach) & (ahead < 1 - reach)
    return [
        replace(
            plain_place,
            # A score that jumps may lie outside what its replicates show; it is no surprise to them.
            low=min(float(low[k]), plain_place.score),
            high=max(float(high[k]), plain_place.score),
            rank_low=int(intervals.low[k]),
            rank_high=int(intervals.high[k]) - len(plain) + n_ranked,
            first=float(first[k]),
            close=tuple(plain[i].candidate for i in np.flatnonzero(unsure[k]).tolist() if i != k),
        )
        if has_interval[k]
        else plain_place
        for k, plain_place in enumerate(plain)
    ]


def _notes(rule_replicates: RuleReplicates, *, fewer: bool) -> tuple[str, ...]:
    notes = []
    if fewer:
        notes.append(f"intervals from {_FEWER} replicates: the exact search is slow here")
    if rule_replicates.n_failed:
        notes.append(f"{rule_replicates.n_failed} replicates did not converge and are left out")
    return tuple(notes)
