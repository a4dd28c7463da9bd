"""Monte-Carlo checks of the formulas: data are drawn as planned and the analysis is run.

Correlated ballots of a cluster are drawn from Dirichlet-multinomial distributions, in which any
two scores of a cluster have exactly the planned intra-cluster correlation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.intervals import Interval, normal_quantile, t_quantile, wilson
from clash.stats.power.design import Clustering
from clash.stats.power.precision import kappa_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from clash.stats.power.comparisons import Comparison
    from clash.stats.typing import Floats

    Counts = NDArray[np.int64]

REPLICATIONS = 1000


@dataclass(frozen=True, slots=True)
class SimulationCheck:
    """The claim of a formula beside the simulated rate.

    Attributes:
        claim: power, or coverage.
        rate: the share of replications, with its interval.
        width: mean half-width of the intervals drawn; null for a test.
    """

    claim: float
    rate: Interval
    width: float | None = None


def check_comparison(
    comparison: Comparison,
    clusters: int,
    rng: np.random.Generator,
    replications: int = REPLICATIONS,
) -> SimulationCheck:
    """How often a cluster-robust test finds the planned difference."""
    effect, freedom = comparison.effect, clusters - 1
    if comparison.question == "compare":
        sides = [comparison.middle + effect / 2, comparison.middle - effect / 2]
        samples = [_binary(clusters, p, comparison.clustering, rng, replications) for p in sides]
        (first, var_first), (second, var_second) = (_ratio(*sample) for sample in samples)
        gap, variance, freedom = first - second, var_first + var_second, 2 * freedom
    else:
        decisive = comparison.decisive
        shares = np.array([(decisive + effect) / 2, 1 - decisive, (decisive - effect) / 2])
        counts = _counts(clusters, shares, comparison.clustering, rng, replications)
        gap, variance = _ratio(counts[..., 0] - counts[..., 2], counts.sum(axis=2))
    reach = t_quantile(1 - comparison.level.alpha, freedom) if clusters > 1 else np.inf
    rejections = np.abs(gap) > reach * np.sqrt(variance)
    return SimulationCheck(comparison.power(clusters), wilson(int(rejections.sum()), replications))


def check_concordance(
    items: int,
    agreement: float,
    clustering: Clustering,
    rng: np.random.Generator,
    level: float = 0.95,
    replications: int = REPLICATIONS,
) -> SimulationCheck:
    """How wide Wilson's intervals turn out, and how often they hold the truth."""
    hits, sizes = _binary(items, agreement, clustering, rng, replications)
    intervals = [
        wilson(k, n, level, design_effect=clustering.design_effect)
        for k, n in zip(hits.sum(axis=1), sizes.sum(axis=1), strict=True)
    ]
    return _check_intervals(intervals, agreement)


def check_kappa(
    items: int,
    kappa: float,
    first: float,
    second: float,
    rng: np.random.Generator,
    level: float = 0.95,
    replications: int = REPLICATIONS,
) -> SimulationCheck:
    """The same for Cohen's kappa of independent items."""
    from clash.stats.agreement import kappa_from_table

    table = kappa_table(kappa, first, second)
    tables = rng.multinomial(items, table.ravel(), size=replications).reshape(-1, 2, 2)
    intervals = [kappa_from_table(counts, level=level).interval for counts in tables]
    return _check_intervals(intervals, kappa)


def _check_intervals(intervals: Sequence[Interval], truth: float) -> SimulationCheck:
    holds = sum(interval.low <= truth <= interval.high for interval in intervals)
    width = float(np.mean([interval.half_width for interval in intervals]))
    return SimulationCheck(intervals[0].level, wilson(holds, len(intervals)), width)


def check_retest(
    items: int,
    agreement: float,
    runs: int,
    rng: np.random.Generator,
    level: float = 0.95,
    replications: int = REPLICATIONS,
) -> SimulationCheck:
    """The same for the agreement of runs, by a normal interval over items."""
    clustering = Clustering(runs, 2 * agreement - 1)
    hits, _ = _binary(items, 0.5, clustering, rng, replications)
    agreements = (hits * (hits - 1) + (runs - hits) * (runs - hits - 1)) / (runs * (runs - 1))
    reach = normal_quantile(level) * agreements.std(axis=1, ddof=1) / np.sqrt(items)
    holds = int(np.sum(np.abs(agreements.mean(axis=1) - agreement) <= reach + 1e-12))
    return SimulationCheck(level, wilson(holds, replications), float(reach.mean()))


def _binary(
    clusters: int, p: float, clustering: Clustering, rng: np.random.Generator, replications: int
) -> tuple[Counts, Counts]:
    counts = _counts(clusters, np.array([p, 1 - p]), clustering, rng, replications)
    return counts[..., 0], counts.sum(axis=2)


def _counts(
    clusters: int,
    shares: Floats,
    clustering: Clustering,
    rng: np.random.Generator,
    replications: int,
) -> Counts:
    """Ballots by outcome, (replications, clusters, outcomes)."""
    shape = (replications, clusters)
    sizes = _sizes(shape, clustering, rng)
    rho = clustering.icc
    if rho == 0:
        return rng.multinomial(sizes, shares)
    if rho == 1:
        return rng.multinomial(np.ones(shape, dtype=np.int64), shares) * sizes[..., None]
    weights = rng.gamma(np.maximum(shares, 1e-300) * (1 / rho - 1), size=(*shape, len(shares)))
    # Where rho is near 1 every draw may underflow to 0; then one outcome has it all.
    underflow = weights.sum(axis=2) == 0
    weights[underflow] = rng.multinomial(1, shares, size=int(underflow.sum()))
    return rng.multinomial(sizes, weights / weights.sum(axis=2, keepdims=True))


def _sizes(
    shape: tuple[int, int], clustering: Clustering, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Cluster sizes with the mean and variation planned, by two points and random rounding."""
    swing = clustering.cv * rng.choice([-1.0, 1.0], shape)
    sizes = np.maximum(0.0, clustering.size * (1 + swing))
    return np.floor(sizes + rng.random(shape)).astype(np.int64)


def _ratio(totals: Counts, sizes: Counts) -> tuple[Floats, Floats]:
    """Mean over observations and its cluster-robust variance, by replication.

    A replication without any observation has mean 0 and an infinite variance: it finds nothing.
    """
    n, clusters = sizes.sum(axis=1), sizes.shape[1]
    divisor = np.maximum(n, 1)
    mean = totals.sum(axis=1) / divisor
    residual = totals - mean[:, None] * sizes
    variance = clusters / max(1, clusters - 1) * np.sum(residual**2, axis=1) / divisor**2
    return mean, np.where(n > 0, variance, np.inf)
