"""Why methods rank differently, and what a ranking cannot say, in words."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clash.analysis.rankings import Ranked, Rankings


HEAD_TO_HEAD = ("copeland", "schulze", "kemeny")
ASKS = {
    "borda": "counts every place on every ballot",
    "majority": "counts items, by who has most first places there",
    "weighted-majority": "counts items, by weighted first places",
    "copeland": "counts head-to-head victories, narrow ones as much as clear ones",
    "schulze": "asks who beats whom, directly or through others",
    "kemeny": "seeks the order that contradicts fewest preferences",
    "bradley-terry": "fits one strength each to all pairs, so that whom one met counts",
    "plackett-luce": "fits one strength each to the successive choices of whole rankings",
}
"""What each method looks at."""
_MOST = 4
_MISFIT = 3.0


def differences(found: Rankings) -> tuple[str, ...]:
    """Where the methods differ, and what in the ballots makes them."""
    ranked = [m for m in found.methods if m.status == "ok" and m.places]
    return (_majorities(found), *_firsts(found, ranked), *_orders(ranked))


def _majorities(found: Rankings) -> str:
    if found.condorcet is not None:
        others = "the other" if len(found.candidates) == 2 else "every other candidate"
        return f"{found.condorcet} beats {others} head to head (the Condorcet winner)"
    loop = _loop(found)
    if loop:
        return f"no candidate beats every other head to head: {loop} is a cycle"
    top = found.smith
    if len(top) == 2:
        return f"{top[0]} and {top[1]} are level head to head{_score(found, *top)}"
    return f"no candidate beats every other head to head: {_listed(top)} are level or did not meet"


def _loop(found: Rankings) -> str:
    steps = zip(found.cycle, (*found.cycle[1:], *found.cycle[:1]), strict=True)
    return ", ".join(f"{a} beats {b}{_score(found, a, b)}" for a, b in steps)


def _score(found: Rankings, a: str, b: str) -> str:
    """Ballots for the one and the other, as `` 34:26``."""
    i, j = found.candidates.index(a), found.candidates.index(b)
    half = found.ties[i, j] / 2
    return f" {found.wins[i, j] + half:.6g}:{found.wins[j, i] + half:.6g}"


def _firsts(found: Rankings, ranked: Sequence[Ranked]) -> Iterator[str]:
    """Who is first by whom, and why not by the others."""
    firsts: dict[tuple[str, ...], list[str]] = {}
    for method in ranked:
        firsts.setdefault(method.first, []).append(method.method)
    if len(firsts) < 2:
        if len(ranked) > 1:
            yield f"every method puts {_listed(ranked[0].first)} first"
        return
    for names, methods in firsts.items():
        asks = "; ".join(f"{method} {ASKS[method]}" for method in methods)
        yield f"{_listed(names)} first by {_listed(methods)}: {asks}"
    leaders = list(dict.fromkeys(names[0] for names in firsts))
    for one, other in combinations(leaders[:3], 2):
        yield f"{one} against {other}: {_compared(found, ranked, one, other)}"


def _compared(found: Rankings, ranked: Sequence[Ranked], one: str, other: str) -> str:
    parts = [f"head to head{_score(found, one, other)}"]
    for method in ranked:
        scores = {place.candidate: place.score for place in method.places}
        if method.method not in HEAD_TO_HEAD and one in scores and other in scores:
            parts.append(f"{method.method} {scores[one]:.3g} to {scores[other]:.3g}")
    return ", ".join(parts)


def _orders(ranked: Sequence[Ranked]) -> Iterator[str]:
    """Which methods give one and the same order."""
    places = {m.method: {place.candidate: place.rank for place in m.places} for m in ranked}
    same: list[list[str]] = []
    for name, mine in places.items():
        for group in same:
            if places[group[0]] == mine:
                group.append(name)
                break
        else:
            same.append([name])
    if len(ranked) > 1 and len(same) == 1:
        yield "all methods give one order"
    for group in same:
        if len(group) > 1 and len(same) > 1:
            yield f"{_listed(group)} give one order"


def warnings(found: Rankings) -> tuple[str, ...]:
    """What a reader must know before believing a ranking."""
    return (
        *_too_few(found),
        *_unlinked(found),
        *_schedule(found),
        *_fits(found),
        *_misfits(found),
        *(f"{name} stands on no ballot and has no place" for name in found.absent),
    )


def _too_few(found: Rankings) -> Iterator[str]:
    if found.n_clusters < 2:
        yield "all ballots are of one item: there is a ranking of it, and no interval"
    lost = found.n_items - found.n_judged
    if lost:
        yield f"{lost} of {found.n_items} items have no ballot and count for nobody"
    if found.failed:
        yield f"{found.failed} judgments failed; they are no ballots"


def _unlinked(found: Rankings) -> Iterator[str]:
    if len(found.groups) > 1:
        sets = " | ".join(_listed(group) for group in found.groups[:_MOST])
        yield (
            f"the comparisons fall into {len(found.groups)} sets that nothing links ({sets}):"
            " places across them mean nothing, and a fit puts each set where its prior does"
        )


def _schedule(found: Rankings) -> Iterator[str]:
    """Who met whom, where that is not everybody equally often."""
    games = found.wins + found.wins.T + found.ties
    pairs = games[np.triu_indices(len(games), 1)]
    never = int((pairs == 0).sum())
    if never:
        yield (
            f"{never} of {len(pairs)} pairs never met: borda and majority do not know whom a"
            " candidate met, copeland takes such a pair for level; bradley-terry allows for it"
        )
    elif pairs.max() > 2 * pairs.min():
        yield (
            "some pairs met more than twice as often as others: borda and majority do not know"
            " whom a candidate met, bradley-terry does"
        )


def _fits(found: Rankings) -> Iterator[str]:
    for method in found.methods:
        if method.fit is not None and not method.fit.converged:
            yield f"{method.method} stopped after {method.fit.n_iter} steps, short of its tolerance"
        if method.fit is not None and method.fit.is_separated:
            yield (
                f"{method.method}: some candidates never lost a point to the rest, or never won"
                " one; only the prior of half a game keeps their strengths finite"
            )


def _misfits(found: Rankings) -> Iterator[str]:
    """Pairs that one strength each does not describe."""
    fitted = [m for m in found.methods if m.method == "bradley-terry" and m.status == "ok"]
    for method in fitted:
        for name, other, seen, fit in _worst(found, method)[:_MOST]:
            yield (
                f"bradley-terry: {name} takes {seen:.0%} of the points from {other}, where"
                f" one strength each makes it {fit:.0%}"
            )


def _worst(found: Rankings, method: Ranked) -> list[tuple[str, str, float, float]]:
    """Pairs whose share of points is more than three standard errors from the fitted one."""
    scores = {place.candidate: place.score for place in method.places}
    theta = np.array([scores.get(name, np.nan) for name in found.candidates])
    gap = (theta[:, None] - theta[None, :]) / 2
    nu = method.fit.tie if method.fit and method.fit.tie else 0.0
    total = np.exp(gap) + np.exp(-gap) + nu
    win, tie = np.exp(gap) / total, nu / total
    share = win + tie / 2
    games = found.wins + found.wins.T + found.ties
    # As if the ballots on one item were one: judges of an item are no independent evidence.
    scale = games * min(1.0, found.n_clusters / max(1, found.n_ballots))
    spread = np.sqrt(np.maximum(win + tie / 4 - share**2, 1e-12) / np.maximum(scale, 1e-12))
    seen = np.divide(
        found.wins + found.ties / 2, games, out=np.full(games.shape, np.nan), where=games > 0
    )
    off = np.where(games > 0, np.abs(seen - share) / spread, 0.0)
    pairs = [(off[i, j], i, j) for i, j in zip(*np.nonzero(off > _MISFIT), strict=True)]
    names = found.candidates
    return [
        (names[i], names[j], float(seen[i, j]), float(share[i, j]))
        for _, i, j in sorted(pairs, reverse=True)
        if seen[i, j] > share[i, j]
    ]


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_MOST]) + ([f"{len(names) - _MOST} more"] if len(names) > _MOST else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
