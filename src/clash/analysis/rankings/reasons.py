"""Sentences on why methods rank differently, and warnings on the ranking."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from clash.wording import part, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.rankings.candidate_rankings import CandidateRankings, MethodRanking


HEAD_TO_HEAD = ("copeland", "schulze", "kemeny")
ASKS = {
    "borda": "counts every position in every ranking",
    "majority": "counts items won, by most first places",
    "weighted-majority": "counts items won, by weighted first places",
    "copeland": "counts head-to-head wins, narrow or clear",
    "schulze": "asks who beats whom, directly or through others",
    "kemeny": "finds the order that contradicts the fewest preferences",
    "bradley-terry": "fits one strength a candidate to all pairs, so the strength of opponents "
    "counts",
    "plackett-luce": "fits one strength a candidate to the successive choices of whole rankings",
}
"""What each method looks at."""
_MOST = 4
_MISFIT = 3.0


def differences(rankings: CandidateRankings) -> tuple[str, ...]:
    """Where the methods differ, and which rankings cause it."""
    usable = [m for m in rankings.methods if m.status == "ok" and m.places]
    return (_majorities(rankings), *_firsts(rankings, usable), *_orders(usable))


def _majorities(rankings: CandidateRankings) -> str:
    if rankings.condorcet is not None:
        the_others = "the other" if len(rankings.candidates) == 2 else "every other candidate"
        return f"{rankings.condorcet} beats {the_others} head to head (the Condorcet winner)"
    loop = _loop(rankings)
    if loop:
        return f"no candidate beats every other head to head: {loop} is a cycle"
    top = rankings.smith
    if len(top) == 2:
        return f"{top[0]} and {top[1]} are level head to head{_score(rankings, *top)}"
    return f"no candidate beats every other head to head: {_join_names(top)} are level or never met"


def _loop(rankings: CandidateRankings) -> str:
    steps = zip(rankings.cycle, (*rankings.cycle[1:], *rankings.cycle[:1]), strict=True)
    return ", ".join(f"{a} beats {b}{_score(rankings, a, b)}" for a, b in steps)


def _score(rankings: CandidateRankings, a: str, b: str) -> str:
    """Ballots for the one and the other, as `` 34:26``."""
    i, j = rankings.candidates.index(a), rankings.candidates.index(b)
    half = rankings.ties[i, j] / 2
    return f" {rankings.wins[i, j] + half:.6g}:{rankings.wins[j, i] + half:.6g}"


def _firsts(rankings: CandidateRankings, usable: Sequence[MethodRanking]) -> Iterator[str]:
    """The first candidate by each method, and the comparisons behind the differences."""
    firsts: dict[tuple[str, ...], list[str]] = {}
    for method in usable:
        firsts.setdefault(method.first, []).append(method.method)
    if len(firsts) < 2:
        return
    for names, methods in firsts.items():
        questions = "; ".join(f"{method} {ASKS[method]}" for method in methods)
        yield f"{_join_names(names)} first by {_join_names(methods)}: {questions}"
    leaders = list(dict.fromkeys(names[0] for names in firsts))
    for name, rival in combinations(leaders[:3], 2):
        yield f"{name} against {rival}: {_compare_scores(rankings, usable, name, rival)}"


def _compare_scores(
    rankings: CandidateRankings, usable: Sequence[MethodRanking], name: str, rival: str
) -> str:
    parts = [f"head to head{_score(rankings, name, rival)}"]
    for method in usable:
        scores = {position.candidate: position.score for position in method.places}
        if method.method not in HEAD_TO_HEAD and name in scores and rival in scores:
            parts.append(f"{method.method} {scores[name]:.3g} to {scores[rival]:.3g}")
    return ", ".join(parts)


def _orders(usable: Sequence[MethodRanking]) -> Iterator[str]:
    """Which methods give one and the same order."""
    ranks_by_method = {
        m.method: {position.candidate: position.rank for position in m.places} for m in usable
    }
    groups: list[list[str]] = []
    for name, order in ranks_by_method.items():
        for group in groups:
            if ranks_by_method[group[0]] == order:
                group.append(name)
                break
        else:
            groups.append([name])
    if len(usable) > 1 and len(groups) == 1:
        yield "all methods agree on the order"
    for group in groups:
        if len(group) > 1 and len(groups) > 1:
            yield f"{_join_names(group)} agree on the order"


def warnings(rankings: CandidateRankings) -> tuple[str, ...]:
    """Warnings that limit how far a ranking can be trusted."""
    return (
        *_too_few(rankings),
        *_link_warnings(rankings),
        *_schedule(rankings),
        *_fits(rankings),
        *_misfits(rankings),
        *(f"{name} is in no ranking, so it has no rank" for name in rankings.absent),
    )


def _too_few(rankings: CandidateRankings) -> Iterator[str]:
    if rankings.n_clusters < 2:
        yield "all rankings are of one item, so the order has no intervals"
    n_without = rankings.n_items - rankings.n_ranked_items
    if n_without:
        yield f"{part(n_without, rankings.n_items, 'item')} no ranking: not counted"
    if rankings.failed:
        yield f"{plural(rankings.failed, 'failed judgment')}, not counted"


def _link_warnings(rankings: CandidateRankings) -> Iterator[str]:
    if len(rankings.groups) > 1:
        sets = " | ".join(_join_names(group) for group in rankings.groups[:_MOST])
        yield (
            f"the comparisons fall into {len(rankings.groups)} unconnected sets ({sets}): ranks "
            "across sets mean nothing, and a fitted model places each set by its prior"
        )


def _schedule(rankings: CandidateRankings) -> Iterator[str]:
    """Warn where some pairs were compared less often than others, or never."""
    games = rankings.wins + rankings.wins.T + rankings.ties
    pairs = games[np.triu_indices(len(games), 1)]
    never = int((pairs == 0).sum())
    if never:
        yield (
            f"{never} of {len(pairs)} pairs never met: borda and majority ignore which opponents "
            "a candidate met, copeland counts such a pair as level; bradley-terry allows for it"
        )
    elif pairs.max() > 2 * pairs.min():
        yield (
            "some pairs met more than twice as often as others: borda and majority ignore which "
            "opponents a candidate met, bradley-terry does not"
        )


def _fits(rankings: CandidateRankings) -> Iterator[str]:
    for method in rankings.methods:
        if method.fit is not None and not method.fit.converged:
            yield f"{method.method} stopped after {method.fit.n_iter} steps without converging"
        if method.fit is not None and method.fit.is_separated:
            yield (
                f"{method.method}: some candidates never lost a point to the rest, or never won"
                " one; only the prior of half a game keeps their strengths finite"
            )


def _misfits(rankings: CandidateRankings) -> Iterator[str]:
    """Pairs that one strength each does not describe."""
    fits = [m for m in rankings.methods if m.method == "bradley-terry" and m.status == "ok"]
    for method in fits:
        for name, rival, share, fit in _worst(rankings, method)[:_MOST]:
            yield (
                f"bradley-terry: {name} has a {share:.0%} win rate against {rival}, where the"
                f" model predicts {fit:.0%}"
            )


def _worst(
    rankings: CandidateRankings, method: MethodRanking
) -> list[tuple[str, str, float, float]]:
    """Pairs whose share of points is more than three standard errors from the fitted one."""
    scores = {position.candidate: position.score for position in method.places}
    theta = np.array([scores.get(name, np.nan) for name in rankings.candidates])
    # Davidson (1970): win, loss and tie are as exp(gap) : exp(-gap) : nu, with gap half the
    # difference of the log strengths, so that without ties this is Bradley-Terry.
    gap = (theta[:, None] - theta[None, :]) / 2
    nu = method.fit.tie if method.fit and method.fit.tie else 0.0
    total = np.exp(gap) + np.exp(-gap) + nu
    win, tie = np.exp(gap) / total, nu / total
    share = win + tie / 2
    games = rankings.wins + rankings.wins.T + rankings.ties
    # As if the rankings of one item were one: judges of an item are no independent evidence.
    scale = games * min(1.0, rankings.n_clusters / max(1, rankings.n_rankings))
    # Variance of the points of one game (1, 1/2 or 0): E[x^2] - E[x]^2 = win + tie / 4 - share^2.
    spread = np.sqrt(np.maximum(win + tie / 4 - share**2, 1e-12) / np.maximum(scale, 1e-12))
    actual = np.divide(
        rankings.wins + rankings.ties / 2, games, out=np.full(games.shape, np.nan), where=games > 0
    )
    off = np.where(games > 0, np.abs(actual - share) / spread, 0.0)
    pairs = [(off[i, j], i, j) for i, j in zip(*np.nonzero(off > _MISFIT), strict=True)]
    names = rankings.candidates
    return [
        (names[i], names[j], float(actual[i, j]), float(share[i, j]))
        for _, i, j in sorted(pairs, reverse=True)
        if actual[i, j] > share[i, j]
    ]


def _join_names(names: Sequence[str]) -> str:
    parts = list(names[:_MOST]) + ([f"{len(names) - _MOST} more"] if len(names) > _MOST else [])
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
