"""What is known while judgments arrive, by intervals that hold however often one looks.

Whoever watches a run and stops when a difference appears finds differences that are not there: an
interval of a single look is exceeded sooner or later. The intervals here are confidence sequences
(:func:`clash.stats.sequential.always_valid`), which hold at all looks together, and are wider.

Only items that every judge is through with count, since a judge that is quick is not a fair sample
of the panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.leaderboard import placed_above
from clash.labels import TIE, ranks_of, side
from clash.stats.sequential import always_valid
from clash.votes.matrix import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.records import Verdict
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats
    from clash.votes.from_run import Panelist

ALPHA = 0.05
MARGIN = 0.05
"""Two candidates are as good as equal where the win rate of either against the other is surely
within this of one half: 10 points between them."""
FEWEST = 10
"""Prompts below which an interval says nothing."""
State = Literal["early", "open", "winner", "equal", "agreement"]
PANEL = "the panel"


@dataclass(frozen=True)
class LiveStanding:
    """A candidate so far; in a validation the panel, or a judge.

    Attributes:
        rate: its win rate over the items judged, ties counting half, or its agreement with people
            over those with a label, with an interval that holds at every look; null where nothing
            of it was judged.
    """

    candidate: str
    rate: Interval | None


@dataclass(frozen=True)
class LiveFindings:
    """What is known so far.

    Attributes:
        state: ``early``: too few items for any interval; ``open``: no winner yet; ``winner``: the
            leader is ahead of every other; ``equal``: the first two are as good as equal. These
            two hold with 95% over all looks and all pairs together. ``agreement``: the standings
            are of the panel and its judges, beside people.
        items: items of the run so far; ``n_judged`` those that every judge is through with.
        standings: best first.
        duel: win rate of the first against the second, corrected for looking at all pairs; null
            where they never met.
    """

    state: State
    items: int
    n_judged: int
    standings: tuple[LiveStanding, ...]
    duel: Interval | None


def live_findings(run: RunData, n_prompts: int | None = None) -> LiveFindings:
    """What a run that goes on shows.

    Args:
        run: the run, as far as it is.
        n_prompts: prompts that it may come to; by default those that it has.
    """
    verdicts = [verdict for verdict in run.verdicts if verdict.ranking is not None]
    finished_items = _finished_items(run)
    verdicts = [verdict for verdict in verdicts if verdict.item_id in finished_items]
    clusters = np.array([run.clusters[verdict.item_id] for verdict in verdicts], dtype=np.intp)
    half = max(1, (n_prompts or len(set(run.clusters.values()))) // 2)
    if run.manifest.kind == "validate":
        return _agreement(run, verdicts, len(finished_items), half)
    rates = {
        name: _interval([_rate(v, name) for v in verdicts], clusters, 1 - ALPHA, half)
        for name in run.candidates
    }
    order = sorted(rates, key=lambda name: (-_estimate(rates[name]), name))
    duels = _duels(verdicts, clusters, order, half)
    return LiveFindings(
        _state(order, duels, len(set(clusters.tolist()))),
        len(run.items),
        len(finished_items),
        tuple(LiveStanding(name, rates[name]) for name in order),
        duels.get((order[0], order[1])) if len(order) > 1 else None,
    )


def _agreement(run: RunData, verdicts: Sequence[Verdict], n_judged: int, half: int) -> LiveFindings:
    """How often the panel and each judge pick what people picked."""
    verdicts = [verdict for verdict in verdicts if verdict.item_id in run.truth]
    clusters = np.array([run.clusters[verdict.item_id] for verdict in verdicts], dtype=np.intp)

    def standing(name: str, matches: Sequence[float]) -> LiveStanding:
        return LiveStanding(name, _interval(matches, clusters, 1 - ALPHA, half))

    judges = [
        standing(p.id, [_match(run, verdict.item_id, p) for verdict in verdicts])
        for p in run.rules.seats
    ]
    judges.sort(key=lambda row: (-_estimate(row.rate), row.candidate))
    panel = standing(PANEL, [float((v.winner or TIE) == run.truth[v.item_id]) for v in verdicts])
    state: State = "early" if len(set(clusters.tolist())) < FEWEST else "agreement"
    return LiveFindings(state, len(run.items), n_judged, (panel, *judges), None)


def _match(run: RunData, item_id: str, judge: Panelist) -> float:
    """Whether a judge picks what people picked: a failure is a miss, NaN where it may not judge."""
    if judge not in run.rules.eligible(run.texts[item_id]):
        return np.nan
    rankings = run.ballots[item_id]
    if judge.id not in rankings.ranks:
        return 0.0
    return float((rankings.top(judge.id) or TIE) == run.truth[item_id])


def _finished_items(run: RunData) -> set[str]:
    """Items that have an answer, or a failure, of every judge that decides on them."""
    answers: dict[str, set[tuple[str, int]]] = {}
    for judgment in run.judgments:
        if judgment.role == "voting":
            pages = answers.setdefault(judgment.item_id, set())
            pages.add((judgment.seat, judgment.presentation))
    return {
        item_id
        for item_id, pages in answers.items()
        if len(pages) >= len(run.rules.eligible(run.texts[item_id])) * run.rules.presentations
    }


def _rate(verdict: Verdict, candidate: str) -> float:
    """The mean over its opponents of 1 for a win and one half for a tie; NaN where it was not there."""
    ranking = verdict.ranking or []
    is_contest = sum(map(len, ranking)) > 1
    return placed_above(ranking).get(candidate, np.nan) if is_contest else np.nan


def _interval(
    values: Sequence[float], clusters: np.ndarray, level: float, half: int
) -> Interval | None:
    points: Floats = np.array(values, dtype=float)
    is_judged = ~np.isnan(points)
    if not is_judged.any():
        return None
    return always_valid(points[is_judged], clusters[is_judged], level, n_planned=half, share=True)


def _estimate(rate: Interval | None) -> float:
    return -1.0 if rate is None else rate.estimate


def _duels(
    verdicts: Sequence[Verdict], clusters: np.ndarray, order: Sequence[str], half: int
) -> dict[tuple[str, str], Interval]:
    """The win rate of each against each below it; all of them hold together at 95%."""
    pairs = list(combinations(order, 2))
    level = 1 - ALPHA / max(1, len(pairs))
    duels = {
        (first, second): _interval(
            [_duel(verdict, first, second) for verdict in verdicts], clusters, level, half
        )
        for first, second in pairs
    }
    return {pair: interval for pair, interval in duels.items() if interval is not None}


def _duel(verdict: Verdict, first: str, second: str) -> float:
    return SIDES.get(side(ranks_of(verdict.ranking or []), first, second) or "", np.nan)


def _state(
    order: Sequence[str], duels: Mapping[tuple[str, str], Interval], n_prompts: int
) -> State:
    if n_prompts < FEWEST or len(order) < 2:
        return "early"
    leader, *rivals = order
    against = [duels.get((leader, rival)) for rival in rivals]
    if all(duel is not None and duel.low > 0.5 for duel in against):
        return "winner"
    first = against[0]
    if first is not None and first.low >= 0.5 - MARGIN and first.high <= 0.5 + MARGIN:
        return "equal"
    return "open"
