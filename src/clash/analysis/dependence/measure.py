"""Correlations, couplings, blocs and effective numbers, with intervals over clusters of rows."""

from __future__ import annotations

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
from clash.stats.dependence import (
    Couplings,
    EffectiveNumbers,
    PairwiseIndependence,
    ResidualCorrelations,
    accuracies,
    class_rates,
    effective_number,
    find_blocs,
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
    from clash.stats.typing import Floats

LEVEL = 0.95
TOGETHER = 10
"""Rows on which two judges must both have voted to be correlated."""
METHOD = "bootstrap over clusters"


@dataclass(frozen=True)
class ErrorCorrelations:
    """Residual correlations and their bootstrap.

    Attributes:
        correlations: of the data.
        replicates: shape (B, K, K).
        counts: shape (B, n_patterns).
    """

    correlations: ResidualCorrelations
    replicates: Floats
    counts: Floats


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
    )


def effective(estimate: TruthEstimate, correlations: ErrorCorrelations) -> EffectiveNumber:
    """The three effective numbers with percentile intervals."""
    numbers = [_effective(estimate, correlations.correlations.pooled, None)]
    numbers += [
        _effective(estimate, matrix, counts)
        for matrix, counts in zip(correlations.replicates, correlations.counts, strict=True)
    ]
    accuracy = accuracies(estimate.patterns, estimate.p)
    fields = ("by_mean", "by_spectrum", "by_accuracy", "mean_correlation")
    by_mean, by_spectrum, by_accuracy, r = (
        percentiles(
            getattr(numbers[0], name), [getattr(replicate, name) for replicate in numbers[1:]]
        )
        for name in fields
    )
    return EffectiveNumber(
        estimate.patterns.n_judges,
        by_mean,
        by_spectrum,
        by_accuracy,
        r,
        float(np.nanmean(accuracy.judges)),
        accuracy.majority,
    )


def alternatives(estimate: TruthEstimate) -> tuple[Alternative, ...]:
    """Effective numbers by other estimates of the truth; empty where labels are the truth."""
    if estimate.source.from_labels:
        return ()
    results = []
    for method, p in other_estimates(estimate).items():
        matrix = residual_correlations(estimate.patterns, p, least=TOGETHER).pooled
        number = effective_number(matrix, np.nan, np.nan)
        if np.isfinite(number.by_mean):
            results.append(Alternative(method, number.by_mean, number.mean_correlation))
    return tuple(results)


def _effective(estimate: TruthEstimate, matrix: Floats, counts: Floats | None) -> EffectiveNumbers:
    accuracy = accuracies(estimate.patterns, estimate.p, counts)
    return effective_number(matrix, float(np.nanmean(accuracy.judges)), accuracy.majority)


def percentiles(estimate: float, replicates: Floats | list[float]) -> Interval | None:
    """A percentile interval; null where the estimate or most replicates are undefined."""
    values = np.asarray(replicates, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if not np.isfinite(estimate) or len(finite) < max(2, len(values) / 2):
        return None
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    n = len(values)
    return Interval(float(estimate), float(low), float(high), LEVEL, n, n, METHOD)


def pairs(
    correlations: ErrorCorrelations,
    tests: PairwiseIndependence | None,
    coupling_fit: Couplings | None,
    judges: Sequence[str],
    families: Sequence[str],
) -> tuple[PairFinding, ...]:
    """Every pair of judges: correlation, coupling and tests."""
    first, second = np.triu_indices(len(judges), 1)
    estimates = off_diagonal(correlations.correlations.pooled)
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
    return tuple(
        PairFinding(
            judges[j],
            judges[k],
            families[j] == families[k],
            round(float(together[i])),
            percentiles(estimates[i], replicates[:, i]),
            number_or_none(p[i]),
            number_or_none(p_holm[i]),
            None
            if coupling_fit is None
            else percentiles(coupling_fit.matrix[j, k], coupling_fit.replicates[:, i]),
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
                off_diagonal(correlations.correlations.pooled),
                off_diagonal(correlations.replicates),
                in_group,
            ),
            None
            if coupling_fit is None
            else _mean(off_diagonal(coupling_fit.matrix), coupling_fit.replicates, in_group),
        )
        for name, in_group in rows
        if in_group.any()
    )


def _mean(values: Floats, replicates: Floats, in_group: np.ndarray) -> Interval | None:
    usable = in_group & ~np.isnan(values)
    if not usable.any():
        return None
    return percentiles(float(values[usable].mean()), replicates[:, usable].mean(axis=1))


def blocs(
    estimate: TruthEstimate, correlations: ErrorCorrelations, judges: Sequence[str]
) -> tuple[BlocFinding, ...]:
    """Groups that err together, by name."""
    if len(correlations.replicates) < 2:
        return ()
    patterns, p = estimate.patterns, estimate.p
    bloc_results = find_blocs(
        correlations.correlations.pooled,
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
