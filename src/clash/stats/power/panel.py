"""More judges or more items: what each buys, and at what price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.errors import StatisticsError
from clash.stats.power.design import Clustering

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.power.design import Demand


@dataclass(frozen=True, slots=True)
class Trade:
    """A panel, and what it would need.

    Attributes:
        judges: discrimination rates of its judges.
        size: informative ballots of a cluster.
        clusters: clusters needed with it.
        ballots: ballots cast on those, ties included.
        cost: clusters at ``per_cluster`` plus ballots at ``per_ballot``.
    """

    judges: tuple[float, ...]
    size: float
    clusters: int
    exact: float
    ballots: float
    cost: float


def trade(
    judges: Sequence[float],
    ballots_each: float,
    icc: float,
    required: Callable[[Clustering], Demand],
    *,
    cv: float = 0.0,
    per_cluster: float = 0.0,
    per_ballot: float = 1.0,
) -> Trade:
    """What a panel needs, if judges are exchangeable but for how often they tie.

    Adding a judge raises the informative ballots m of a cluster; by N = n (1 + (m - 1) rho) / m
    the clusters saved shrink to nothing as m rho grows, for what clusters share no judge can
    average out. That is when items are the better buy.

    Args:
        judges: (J,), share of ballots that are no tie, each in (0, 1].
        ballots_each: ballots that a judge casts on a cluster.
        icc: correlation of informative ballots of one cluster.
        required: the demand of the question at a clustering.
        cv: variation of cluster sizes.
        per_cluster: price of a cluster before anyone judges it.
        per_ballot: price of a ballot.

    Raises:
        StatisticsError: no judge, or a rate outside (0, 1].
    """
    if not judges or not all(0 < rate <= 1 for rate in judges):
        raise StatisticsError("a panel has judges with discrimination rates in (0, 1]")
    size = ballots_each * sum(judges)
    demand = required(Clustering(size, icc, cv))
    cast = demand.clusters * ballots_each * len(judges)
    cost = demand.clusters * per_cluster + cast * per_ballot
    return Trade(tuple(judges), size, demand.clusters, demand.exact, cast, cost)
