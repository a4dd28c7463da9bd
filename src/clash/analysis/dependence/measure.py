"""Correlations, couplings, blocs and effective numbers, with intervals over clusters of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence.dependence_findings import (
    Alternative,
    BlocFinding,
    EffectiveNumber,
    FamilyFinding,
    PairFinding,
)
from clash.analysis.dependence.truth import other_estimates
from clash.stats.dependence.blocs import class_rates, find_blocs
from clash.stats.dependence.residual_correlation import (
    EffectiveNumbers,
    ResidualCorrelations,
    accuracies,
    effective_number,
    off_diagonal,
    pooled_replicates,
    resampled_counts,
    residual_correlations,
)
from clash.stats.hypothesis_tests import holm
from clash.stats.intervals import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.dependence.truth import TruthEstimate
    from clash.stats.dependence.couplings import Couplings
    from clash.stats.dependence.independence import PairwiseIndependence
    from clash.stats.typing import Floats

LEVEL = 0.95
TOGETHER = 10
"""Rows on which two judges must both have voted to be correlated, and groups of rows of a panel:
with fewer, the bootstrap sees next to nothing vary and is sure of anything."""
METHOD = "bootstrap over clusters"
FREE = (-np.inf, np.inf)
WIDEST_JURY = 10.0
"""An interval that reaches so many times the panel's judges says nothing of what it is worth."""


@dataclass(frozen=True)
class ErrorCorrelations:
    """Residual correlations and their bootstrap.

    Attributes:
        correlations: of the data.
        replicates: shape (B, K, K).
        counts: shape (B, n_patterns).
        n_clusters: groups of rows.
    """

    correlations: ResidualCorrelations
    replicates: Floats
    counts: Floats
    n_clusters: int


def measure(
    estimate: TruthEstimate, replicates: int, rng: np.random.Generator
) -> ErrorCorrelations:
    """Correlate, and redraw clusters of rows."""
    patterns, p = estimate.patterns, estimate.p
    counts = resampled_counts(patterns, estimate.rows.groups, replicates, rng)
    return ErrorCorrelations(
        residual_correlations(patterns, p, least=TOGETHER),
        pooled_replicates(patterns, p, counts, least=TOGETHER),
        counts,
        n_clusters(estimate),
    )


def effective(estimate: TruthEstimate, correlations: ErrorCorrelations) -> EffectiveNumber:
    """The three effective numbers with percentile intervals.

    By correlations it is at most the number of judges: errors that happen to correlate negatively
    would make the panel worth more than it has. By accuracy it may be more, since the majority of
    unequal judges is right more often than that of equal ones with their mean.
    """
    numbers = [_effective(estimate, correlations.correlations.within_classes, None)]
    numbers += [
        _effective(estimate, matrix, counts)
        for matrix, counts in zip(correlations.replicates, correlations.counts, strict=True)
    ]
    accuracy = accuracies(estimate.patterns, estimate.p)
    judges = estimate.patterns.n_judges
    ranges = {
        "by_mean": (1.0, judges),
        "by_spectrum": (1.0, judges),
        "by_accuracy": (0.0, WIDEST_JURY * judges),
        "mean_correlation": (-1.0, 1.0),
    }
    by_mean, by_spectrum, by_accuracy, r = (
        percentiles(
            getattr(numbers[0], name),
            [getattr(replicate, name) for replicate in numbers[1:]],
            ends,
            n_clusters(estimate),
        )
        for name, ends in ranges.items()
    )
    no_end = by_accuracy is None or by_accuracy.high >= WIDEST_JURY * judges
    return EffectiveNumber(
        judges,
        by_mean,
        by_spectrum,
        None if no_end else by_accuracy,
        r,
        _mean_rate(accuracy.judges),
        accuracy.majority,
    )


def n_clusters(estimate: TruthEstimate) -> int:
    """Groups of rows that may depend on each other."""
    return int(estimate.rows.groups.max()) + 1


def alternatives(estimate: TruthEstimate) -> tuple[Alternative, ...]:
    """Effective numbers by other estimates of the truth; empty where labels are the truth."""
    if estimate.source.from_labels:
        return ()
    results = []
    for method, p in other_estimates(estimate).items():
        matrix = residual_correlations(estimate.patterns, p, least=TOGETHER).within_classes
        number = effective_number(matrix, np.nan, np.nan)
        if not np.isnan(number.by_mean):
            by_mean = min(number.by_mean, float(estimate.patterns.n_judges))
            results.append(Alternative(method, by_mean, number.mean_correlation))
    return tuple(results)


def _effective(estimate: TruthEstimate, matrix: Floats, counts: Floats | None) -> EffectiveNumbers:
    accuracy = accuracies(estimate.patterns, estimate.p, counts)
    return effective_number(matrix, _mean_rate(accuracy.judges), accuracy.majority)


def _mean_rate(rates: Floats) -> float:
    """Of the judges that decided something; NaN where none did, as a replicate of few rows may be."""
    known_rates = rates[~np.isnan(rates)]
    return float(known_rates.mean()) if len(known_rates) else math.nan


def percentiles(
    estimate: float, replicates: Floats | list[float], ends: tuple[float, float], n: int
) -> Interval | None:
    """A percentile interval that holds its estimate, within the range of the quantity.

    A mean of squares is larger in each replicate than in the data, so that the percentiles alone
    may lie to one side of the estimate.

    Args:
        estimate: of the data.
        replicates: shape (B,), NaN where undefined.
        ends: the least and the largest value that the quantity can have.
        n: groups of rows.

    Returns:
        Null for fewer than ten groups, where the estimate or most replicates are undefined, and
        where a quantity without ends is the same in all of them.
    """
    values = np.asarray(replicates, dtype=np.float64)
    usable = np.clip(values[~np.isnan(values)], *ends)
    if n < TOGETHER or np.isnan(estimate) or len(usable) < max(2, len(values) / 2):
        return None
    value = float(np.clip(estimate, *ends))
    low, high = np.quantile(usable, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    if ends == FREE and high - low <= 1e-9:
        return None
    interval = Interval(value, min(low, value), max(high, value), LEVEL, n, n, METHOD)
    return interval.within(*ends)


def pairs(
    correlations: ErrorCorrelations,
    tests: PairwiseIndependence | None,
    coupling_fit: Couplings | None,
    judges: Sequence[str],
    families: Sequence[str],
) -> tuple[PairFinding, ...]:
    """Every pair of judges: correlation, coupling and tests."""
    first, second = np.triu_indices(len(judges), 1)
    estimates = off_diagonal(correlations.correlations.within_classes)
    replicates = off_diagonal(correlations.replicates)
    p = _p_values(tests, len(first))
    p_holm = _holm_corrected(p)
    ratio = (
        np.full(len(first), np.nan) if coupling_fit is None else off_diagonal(coupling_fit.p_ratio)
    )
    ratio_holm = _holm_corrected(ratio)
    wald = (
        np.full(len(first), np.nan) if coupling_fit is None else off_diagonal(coupling_fit.p_wald)
    )
    wald_holm = _holm_corrected(wald)
    together = off_diagonal(correlations.correlations.together)
    n = correlations.n_clusters
    return tuple(
        PairFinding(
            judges[j],
            judges[k],
            families[j] == families[k],
            round(float(together[i])),
            percentiles(estimates[i], replicates[:, i], (-1.0, 1.0), n),
            number_or_none(p[i]),
            number_or_none(p_holm[i]),
            None
            if coupling_fit is None
            else percentiles(coupling_fit.matrix[j, k], coupling_fit.replicates[:, i], FREE, n),
            None if coupling_fit is None else number_or_none(coupling_fit.error[j, k]),
            number_or_none(wald[i]),
            number_or_none(wald_holm[i]),
            number_or_none(ratio[i]),
            number_or_none(ratio_holm[i]),
        )
        for i, (j, k) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
    )


def _p_values(tests: PairwiseIndependence | None, n: int) -> Floats:
    if tests is None:
        return np.full(n, np.nan)
    return np.array([np.nan if test is None else test.p for test in tests.tests])


def _holm_corrected(p: Floats) -> Floats:
    out = np.full_like(p, np.nan)
    is_tested = ~np.isnan(p)
    out[is_tested] = holm(p[is_tested])
    return out


def number_or_none(value: float) -> float | None:
    """A figure; null where it is undefined (NaN)."""
    return None if np.isnan(value) else float(value)


def family_table(
    correlations: ErrorCorrelations, coupling_fit: Couplings | None, families: Sequence[str]
) -> tuple[FamilyFinding, ...]:
    """Mean residual correlation and coupling within each family and across families.

    Empty where no family has two judges or all judges are of one.
    """
    codes = np.unique(families, return_inverse=True)[1]
    first, second = np.triu_indices(len(families), 1)
    n = correlations.n_clusters
    within = codes[first] == codes[second]
    if not within.any() or within.all():
        return ()
    rows = [
        (family, within & (codes[first] == codes[list(families).index(family)]))
        for family in dict.fromkeys(families)
    ]
    if sum(in_group.any() for _, in_group in rows) > 1:
        rows.append(("within families", within))
    rows.append(("across families", ~within))
    return tuple(
        FamilyFinding(
            name,
            int(in_group.sum()),
            _mean(
                off_diagonal(correlations.correlations.within_classes),
                off_diagonal(correlations.replicates),
                in_group,
                (-1.0, 1.0),
                n,
            ),
            None
            if coupling_fit is None
            else _mean(
                off_diagonal(coupling_fit.matrix), coupling_fit.replicates, in_group, FREE, n
            ),
        )
        for name, in_group in rows
        if in_group.any()
    )


def _mean(
    values: Floats, replicates: Floats, in_group: np.ndarray, ends: tuple[float, float], n: int
) -> Interval | None:
    usable = in_group & ~np.isnan(values)
    if not usable.any():
        return None
    means = replicates[:, usable].mean(axis=1)
    return percentiles(float(values[usable].mean()), means, ends, n)


def blocs(
    estimate: TruthEstimate, correlations: ErrorCorrelations, judges: Sequence[str]
) -> tuple[BlocFinding, ...]:
    """Groups that err together, by name."""
    if len(correlations.replicates) < 2 or correlations.n_clusters < TOGETHER:
        return ()
    patterns, p = estimate.patterns, estimate.p
    bloc_results = find_blocs(
        correlations.correlations.within_classes,
        correlations.replicates,
        class_rates(patterns, p, patterns.counts[None])[0],
        class_rates(patterns, p, correlations.counts),
    )
    return tuple(
        BlocFinding(
            tuple(judges[j] for j in bloc.judges),
            bloc.within,
            bloc.outside,
            bloc.worth,
            bloc.near_copies,
        )
        for bloc in bloc_results
    )


def family_ratio(table: Sequence[FamilyFinding]) -> float | None:
    """Mean coupling within families over that across; null unless both are surely positive.

    Pairs within families are weighted alike, whichever family they are of.
    """
    by_name = {row.name: row.coupling for row in table}
    across = by_name.pop("across families", None)
    inside = by_name.get("within families") or next(iter(by_name.values()), None)
    if across is None or inside is None or across.low <= 0 or inside.low <= 0:
        return None
    return inside.estimate / across.estimate
