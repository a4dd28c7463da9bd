"""Orders in which judges join the panel, from selection evidence alone (section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.selection.joint_table import support

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.selection.panel import Evidence, PanelVotes
    from clash.stats.typing import Floats

MOST_PATHS = 32
"""Subsets that the calibration frontier keeps at each size (appendix C.1)."""
PATH_RULES = ("information-first", "random", "complexity-penalised", "calibration-frontier")


@dataclass(frozen=True, slots=True)
class JudgePath:
    """The panels that a rule puts forward.

    Attributes:
        name: the rule.
        panels: by size K, the judges in the order they joined.
    """

    name: str
    panels: dict[int, tuple[int, ...]]


def build_path(
    rule: str,
    panel: PanelVotes,
    seen: Evidence,
    budget: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> JudgePath:
    """A path by its rule.

    Args:
        rule: one of ``RULES``.
        panel: the panel.
        seen: selection evidence, by pattern of the whole panel.
        budget: planned calibration labels n_M.
        sizes: prefix sizes wanted.
        rng: of the random path.
    """
    makers: dict[str, Callable[[], dict[int, tuple[int, ...]]]] = {
        "information-first": lambda: _prefixes(_information_first(panel, seen), sizes),
        "random": lambda: _prefixes(rng.permutation(panel.n_judges).tolist(), sizes),
        "complexity-penalised": lambda: _prefixes(
            _penalised(panel, seen, budget, max(sizes)), sizes
        ),
        "calibration-frontier": lambda: _frontier(panel, seen, budget, sizes),
    }
    return JudgePath(rule, makers[rule]())


def _prefixes(order: list[int], sizes: Sequence[int]) -> dict[int, tuple[int, ...]]:
    return {k: tuple(order[:k]) for k in sizes}


def _information_first(panel: PanelVotes, seen: Evidence) -> list[int]:
    """Judges by the oracle risk of each alone; equals in their own order."""
    risks = [support(panel, seen, [judge]).risk for judge in range(panel.n_judges)]
    return [int(j) for j in np.argsort(risks, kind="stable")]


def _penalised(panel: PanelVotes, seen: Evidence, budget: int, most: int) -> list[int]:
    """Equation (4), lambda = 1, up to ``most`` judges; then the rest by information."""
    chosen: list[int] = []
    rest = _information_first(panel, seen)
    now = support(panel, seen, chosen)
    while rest and len(chosen) < min(most, _MOST_GREEDY):
        found = [support(panel, seen, [*chosen, judge]) for judge in rest]
        gains = [
            now.risk - after.risk - max(after.effective - now.effective, 0.0) / budget
            for after in found
        ]
        best = int(np.argmax(gains))
        chosen.append(rest.pop(best))
        now = found[best]
    return chosen + rest


_MOST_GREEDY = 10
"""Beyond so many judges a selection block has one row a cell, and says nothing of the next."""
_MOST_COMBINED = 8
"""Judges, the best by themselves, that subsets are made of."""


def _frontier(
    panel: PanelVotes, seen: Evidence, budget: int, sizes: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Appendix C.1: subsets on the frontier of oracle risk and expected cell pressure.

    Grown one judge at a time from the frontier of the size before; at each size the subset with
    the least sum of both is put forward. The panels of two sizes need not be nested.
    """
    order = _information_first(panel, seen)
    pool = order[:_MOST_COMBINED]
    kept: list[tuple[int, ...]] = [()]
    found: dict[int, tuple[int, ...]] = {}
    for size in range(1, min(max(sizes), len(pool)) + 1):
        grown = {tuple(sorted((*base, j))) for base in kept for j in pool if j not in base}
        scored = [(*_weighed(panel, seen, judges, budget), judges) for judges in sorted(grown)]
        kept = [judges for _, _, judges in _pareto(scored)[:MOST_PATHS]]
        found[size] = min(scored, key=lambda one: (one[0] + one[1], one[2]))[2]
    longest = found[max(found)]
    tail = [*longest, *(j for j in order if j not in longest)]
    return {k: found.get(k, tuple(tail[:k])) for k in sizes}


def _weighed(
    panel: PanelVotes, seen: Evidence, judges: tuple[int, ...], budget: int
) -> tuple[float, float]:
    here = support(panel, seen, judges)
    pressure = _pressure(round(seen.size), budget)[here.n.astype(int)].sum()
    # Pressure is in units of the label's variance, as risk is.
    return here.risk, float(pressure * here.risk)


def _pareto(
    scored: list[tuple[float, float, tuple[int, ...]]],
) -> list[tuple[float, float, tuple[int, ...]]]:
    """Those that no other beats in both, by risk."""
    best, kept = np.inf, []
    for risk, pressure, judges in sorted(scored):
        if pressure < best:
            best = pressure
            kept.append((risk, pressure, judges))
    return kept


@lru_cache(maxsize=64)
def _pressure(rows: int, budget: int) -> Floats:
    """Expected pressure of a cell with c of the block's rows: p E[1/N; N > 0] + p P(N = 0).

    N is binomial with ``budget`` trials and p = c / rows; shape (rows + 1,). Equation (7).
    """
    p = np.arange(rows + 1) / rows
    k = np.arange(1, budget + 1)
    inside = p[1:-1]
    # log pmf of k successes by cumulative sums: choose(n, k) p^k (1 - p)^(n - k).
    choose = np.cumsum(np.log(budget - k + 1) - np.log(k))
    logs = choose + np.outer(np.log(inside), k) + np.outer(np.log1p(-inside), budget - k)
    inverse = np.exp(logs) @ (1 / k)
    out = np.zeros(rows + 1)
    out[1:-1] = inside * (inverse + (1 - inside) ** budget)
    out[-1] = 1 / budget
    return out
