"""Paths: the order in which judges join the panel, from selection evidence alone (section 3.2)."""

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
    """The panels that a path rule proposes, one of each size.

    Attributes:
        name: the rule.
        panels: by size K, the judges in the order they joined.
    """

    name: str
    panels: dict[int, tuple[int, ...]]


def build_path(
    rule: str,
    panel: PanelVotes,
    evidence: Evidence,
    budget: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
) -> JudgePath:
    """A path by its rule.

    Args:
        rule: one of ``RULES``.
        panel: the panel.
        evidence: selection evidence, by pattern of the whole panel.
        budget: planned calibration labels n_M.
        sizes: prefix sizes wanted.
        rng: of the random path.
    """
    makers: dict[str, Callable[[], dict[int, tuple[int, ...]]]] = {
        "information-first": lambda: _prefixes(_information_first(panel, evidence), sizes),
        "random": lambda: _prefixes(rng.permutation(panel.n_judges).tolist(), sizes),
        "complexity-penalised": lambda: _prefixes(
            _complexity_penalised(panel, evidence, budget, max(sizes)), sizes
        ),
        "calibration-frontier": lambda: _frontier(panel, evidence, budget, sizes),
    }
    return JudgePath(rule, makers[rule]())


def _prefixes(order: list[int], sizes: Sequence[int]) -> dict[int, tuple[int, ...]]:
    return {k: tuple(order[:k]) for k in sizes}


def _information_first(panel: PanelVotes, evidence: Evidence) -> list[int]:
    """Judges by the oracle risk of each alone; equals in their own order."""
    risks = [support(panel, evidence, [judge]).risk for judge in range(panel.n_judges)]
    return [int(j) for j in np.argsort(risks, kind="stable")]


def _complexity_penalised(
    panel: PanelVotes, evidence: Evidence, budget: int, most: int
) -> list[int]:
    """Equation (4) with lambda = 1 for up to ``most`` judges; the others follow by information."""
    order: list[int] = []
    remaining = _information_first(panel, evidence)
    current = support(panel, evidence, order)
    while remaining and len(order) < min(most, _MOST_GREEDY):
        supports = [support(panel, evidence, [*order, judge]) for judge in remaining]
        gains = [
            current.risk - after.risk - max(after.effective - current.effective, 0.0) / budget
            for after in supports
        ]
        best = int(np.argmax(gains))
        order.append(remaining.pop(best))
        current = supports[best]
    return order + remaining


_MOST_GREEDY = 10
"""Judges beyond which a selection block has one row a cell, and cannot rank the next judge."""
_MOST_COMBINED = 8
"""Number of judges, the best on their own, that subsets are made of."""


def _frontier(
    panel: PanelVotes, evidence: Evidence, budget: int, sizes: Sequence[int]
) -> dict[int, tuple[int, ...]]:
    """Appendix C.1: subsets on the frontier of oracle risk and expected cell pressure.

    Subsets grow by one judge at a time from the frontier of the size before; at each size the subset
    with the least sum of both is proposed. The panels of two sizes need not be nested.
    """
    order = _information_first(panel, evidence)
    pool = order[:_MOST_COMBINED]
    frontier: list[tuple[int, ...]] = [()]
    panels: dict[int, tuple[int, ...]] = {}
    for size in range(1, min(max(sizes), len(pool)) + 1):
        subsets = {tuple(sorted((*base, j))) for base in frontier for j in pool if j not in base}
        ratings = [
            (*_risk_and_pressure(panel, evidence, judges, budget), judges)
            for judges in sorted(subsets)
        ]
        frontier = [judges for _, _, judges in _pareto(ratings)[:MOST_PATHS]]
        panels[size] = min(ratings, key=lambda rating: (rating[0] + rating[1], rating[2]))[2]
    longest = panels[max(panels)]
    tail = [*longest, *(j for j in order if j not in longest)]
    return {k: panels.get(k, tuple(tail[:k])) for k in sizes}


def _risk_and_pressure(
    panel: PanelVotes, evidence: Evidence, judges: tuple[int, ...], budget: int
) -> tuple[float, float]:
    table = support(panel, evidence, judges)
    pressure = _pressure(round(evidence.size), budget)[table.n.astype(int)].sum()
    # Scaled by the risk, pressure is an estimation error in the units of the loss.
    return table.risk, float(pressure * table.risk)


def _pareto(
    ratings: list[tuple[float, float, tuple[int, ...]]],
) -> list[tuple[float, float, tuple[int, ...]]]:
    """The subsets that no other beats in both risk and pressure, by risk."""
    best, frontier = np.inf, []
    for risk, pressure, judges in sorted(ratings):
        if pressure < best:
            best = pressure
            frontier.append((risk, pressure, judges))
    return frontier


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
