"""Measures of judges that need a run folder: cost, length bias, use of the scale, effects on candidates."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.bias import BiasRate, longer_wins_rate
from clash.stats.intervals import Interval, mean_clustered
from clash.stats.voting.bradley_terry import bradley_terry, count_comparisons
from clash.votes.blinding_index import unblind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.rundata import RunData
    from clash.stats.typing import Floats
    from clash.stats.voting.bradley_terry import BradleyTerry


RESTRICTED_SHARE = 0.8
"""A judge that gives two neighbouring scores to this share of what it scores uses no scale."""


@dataclass(frozen=True)
class ScoreScale:
    """How a judge uses the scores 1 to 5.

    Attributes:
        n: scores given.
        counts: how often each of 1..5.
        mean: of its scores; ``sd`` their standard deviation.
        two: share of its two commonest neighbouring scores.
        restricted: that is 80% or more.
        anchor: mean difference to the other judges' mean on the same response and criterion,
            clustered by prompt; null where nobody else scored.
    """

    n: int
    counts: tuple[int, ...]
    mean: float
    sd: float
    two: float
    restricted: bool
    anchor: Interval | None


@dataclass(frozen=True)
class RunJudge:
    """A judge of a run.

    Attributes:
        cost_usd: of all its calls; null where unknown.
        cost_per_informative: for each pair of candidates that it decided.
        longer: how often the longer of two responses wins.
        scale: null where it gave no scores.
    """

    judge: str
    cost_usd: float | None
    cost_per_informative: float | None
    longer: BiasRate | None
    scale: ScoreScale | None


@dataclass(frozen=True)
class CandidateEffect:
    """A candidate's log strength under several readings of ties.

    Attributes:
        half: ties as half wins, as most tools count them.
        corrected: ties modelled (Davidson): what ``half`` would be without their attenuation.
        weighted: ties as half wins, ballots weighted by the judge's discrimination over the
            greatest. All against the mean of the candidates, with intervals by curvature.
    """

    candidate: str
    half: Interval
    corrected: Interval
    weighted: Interval


@dataclass(frozen=True)
class RunFacts:
    """A run's judges and candidates."""

    candidates: int
    judges: tuple[RunJudge, ...]
    effects: tuple[CandidateEffect, ...]


@dataclass(frozen=True)
class _Pairs:
    """Every pair that a voting judge ordered.

    Attributes:
        first: (n,), index of a candidate; ``second`` of the other, later by name.
        outcome: (n,), 1, 0 or 0.5.
        lengths: (n, 2), words of the two responses.
    """

    judge: NDArray[np.intp]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    outcome: Floats
    lengths: Floats
    clusters: NDArray[np.intp]


def run_facts(data: RunData) -> RunFacts:
    """Read a run's judges; observers are left out, as from its votes."""
    judges = [panelist.id for panelist in data.rules.voting]
    pairs = _pairs(data, judges)
    sizes = {len(ballots.candidates) for ballots in data.ballots.values()}
    return RunFacts(
        candidates=max(sizes, default=2),
        judges=tuple(_judge(data, pairs, judges, index) for index in range(len(judges))),
        effects=_effects(data, pairs, len(judges)),
    )


def _pairs(data: RunData, judges: Sequence[str]) -> _Pairs:
    index_of = {name: index for index, name in enumerate(data.candidates)}
    rows, lengths = [], []
    for judgment in data.judgments:
        if judgment.judge not in judges or judgment.ranking is None:
            continue
        groups = unblind(judgment, data.blinds.labels(judgment)) or []
        rank = {name: at for at, group in enumerate(groups) for name in group}
        words = {name: len(text.split()) for name, text in data.texts[judgment.item_id].items()}
        for a, b in combinations(sorted(rank), 2):
            outcome = (np.sign(rank[b] - rank[a]) + 1) / 2
            cluster = data.clusters[judgment.item_id]
            rows.append((judges.index(judgment.judge), index_of[a], index_of[b], cluster, outcome))
            lengths.append((words.get(a, np.nan), words.get(b, np.nan)))
    table = np.array(rows, dtype=float).reshape(-1, 5)
    integers = table[:, :4].astype(np.intp)
    sizes = np.array(lengths, dtype=float).reshape(-1, 2)
    return _Pairs(
        integers[:, 0], integers[:, 1], integers[:, 2], table[:, 4], sizes, integers[:, 3]
    )


def _judge(data: RunData, pairs: _Pairs, judges: Sequence[str], index: int) -> RunJudge:
    by_judge = pairs.judge == index
    n_decisive = int(np.sum(by_judge & (pairs.outcome != 0.5)))
    use = data.usage.get(("judge", judges[index]))
    cost = None if use is None or use.unknown else use.cost_usd
    return RunJudge(
        judge=judges[index],
        cost_usd=cost,
        cost_per_informative=cost / n_decisive if cost is not None and n_decisive else None,
        longer=_longer(pairs, by_judge),
        scale=_scale(data, judges, judges[index]),
    )


def _longer(pairs: _Pairs, by_judge: NDArray[np.bool_]) -> BiasRate | None:
    usable = by_judge & ~np.isnan(pairs.lengths).any(axis=1)
    first, second = pairs.lengths[usable].T
    is_decisive = (pairs.outcome[usable] != 0.5) & (first != second)
    if not is_decisive.any():
        return None
    return longer_wins_rate(pairs.outcome[usable], first, second, pairs.clusters[usable])


def _scale(data: RunData, judges: Sequence[str], judge: str) -> ScoreScale | None:
    cells: dict[tuple[str, int, str, str], dict[str, int]] = {}
    for judgment in data.judgments:
        if judgment.judge not in judges:
            continue
        for label, by_criterion in judgment.scores.items():
            candidate = data.blinds.labels(judgment).get(label, label)
            for name, score in by_criterion.items():
                key = (judgment.item_id, judgment.presentation, candidate, name)
                cells.setdefault(key, {})[judgment.judge] = score
    own_scores = {key: by_judge[judge] for key, by_judge in cells.items() if judge in by_judge}
    if not own_scores:
        return None
    values = np.array(list(own_scores.values()))
    counts = np.bincount(np.clip(values, 1, 5), minlength=6)[1:]
    two = float(np.max(counts[:-1] + counts[1:]) / counts.sum())
    return ScoreScale(
        n=len(values),
        counts=tuple(int(count) for count in counts),
        mean=float(values.mean()),
        sd=float(values.std(ddof=1)) if len(values) > 1 else 0.0,
        two=two,
        restricted=two >= RESTRICTED_SHARE,
        anchor=_anchor(data, cells, own_scores, judge),
    )


_WIDEST = 4.0
"""Points between the ends of the scale of scores, 1 to 5."""


def _anchor(
    data: RunData,
    cells: Mapping[tuple[str, int, str, str], Mapping[str, int]],
    own_scores: Mapping[tuple[str, int, str, str], int],
    judge: str,
) -> Interval | None:
    gaps, clusters = [], []
    for key, score in own_scores.items():
        other_scores = [value for name, value in cells[key].items() if name != judge]
        if other_scores:
            gaps.append(score - float(np.mean(other_scores)))
            clusters.append(data.clusters[key[0]])
    return mean_clustered(gaps, clusters).within(-_WIDEST, _WIDEST) if gaps else None


def _effects(data: RunData, pairs: _Pairs, n_judges: int) -> tuple[CandidateEffect, ...]:
    k = len(data.candidates)
    if not len(pairs.outcome) or k < 2:
        return ()
    is_decisive = (pairs.outcome != 0.5).astype(float)
    ballots = np.bincount(pairs.judge, minlength=n_judges)
    rates = np.bincount(pairs.judge, weights=is_decisive, minlength=n_judges) / np.maximum(
        ballots, 1
    )
    weights = (rates / (rates.max() or 1.0))[pairs.judge]
    if not weights.any():
        weights = np.ones(len(weights))
    comparisons = count_comparisons(pairs.first, pairs.second, pairs.outcome, k)
    weighted_comparisons = count_comparisons(pairs.first, pairs.second, pairs.outcome, k, weights)
    half_fit, davidson_fit = (
        bradley_terry(comparisons, ties="half"),
        bradley_terry(comparisons, ties="davidson"),
    )
    weighted_fit = bradley_terry(weighted_comparisons, ties="half")
    return tuple(
        CandidateEffect(
            name, _strength(half_fit, i), _strength(davidson_fit, i), _strength(weighted_fit, i)
        )
        for i, name in enumerate(data.candidates)
    )


def _strength(fit: BradleyTerry, index: int, level: float = 0.95) -> Interval:
    """A log strength against the mean of all."""
    from clash.stats.intervals import normal_quantile

    k = len(fit.theta)
    contrast = np.full(k, -1 / k)
    contrast[index] += 1
    estimate = float(contrast @ fit.theta)
    reach = normal_quantile(level) * float(np.sqrt(contrast @ fit.covariance @ contrast))
    return Interval(estimate, estimate - reach, estimate + reach, level, k, k, "wald")
