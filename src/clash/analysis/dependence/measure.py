"""Correlations, couplings, blocs and effective numbers, with intervals over clusters of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.dependence.results import (
    Alternative,
    BlocFinding,
    EffectiveNumber,
    FamilyFinding,
    PairFinding,
)
from clash.analysis.dependence.truth import others
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

    from clash.analysis.dependence.truth import Estimated
    from clash.stats.typing import Floats

LEVEL = 0.95
TOGETHER = 10
"""Rows on which two judges must both have voted to be correlated."""
METHOD = "bootstrap over clusters"


@dataclass(frozen=True)
class Measured:
    """Residual correlations and their bootstrap.

    Attributes:
        correlations: of the data.
        replicates: shape (B, K, K).
        counts: shape (B, n_patterns).
    """

    correlations: ResidualCorrelations
    replicates: Floats
    counts: Floats


def measure(estimated: Estimated, replicates: int, rng: np.random.Generator) -> Measured:
    """Correlate, and redraw clusters of rows."""
    patterns, p = estimated.patterns, estimated.p
    counts = resampled_counts(patterns, estimated.rows.groups, replicates, rng)
    return Measured(
        residual_correlations(patterns, p, least=TOGETHER),
        pooled_replicates(patterns, p, counts, least=TOGETHER),
        counts,
    )


def effective(estimated: Estimated, measured: Measured) -> EffectiveNumber:
    """The three effective numbers with percentile intervals."""
    found = [_effective(estimated, measured.correlations.pooled, None)]
    found += [
        _effective(estimated, matrix, counts)
        for matrix, counts in zip(measured.replicates, measured.counts, strict=True)
    ]
    whole = accuracies(estimated.patterns, estimated.p)
    fields = ("by_mean", "by_spectrum", "by_accuracy", "mean_correlation")
    by_mean, by_spectrum, by_accuracy, r = (
        percentiles(getattr(found[0], name), [getattr(one, name) for one in found[1:]])
        for name in fields
    )
    return EffectiveNumber(
        estimated.patterns.n_judges,
        by_mean,
        by_spectrum,
        by_accuracy,
        r,
        float(np.nanmean(whole.judges)),
        whole.majority,
    )


def alternatives(estimated: Estimated) -> tuple[Alternative, ...]:
    """What the panel would be worth by other estimates; nothing where labels are the truth."""
    if estimated.about.known:
        return ()
    found = []
    for method, p in others(estimated).items():
        matrix = residual_correlations(estimated.patterns, p, least=TOGETHER).pooled
        number = effective_number(matrix, np.nan, np.nan)
        if np.isfinite(number.by_mean):
            found.append(Alternative(method, number.by_mean, number.mean_correlation))
    return tuple(found)


def _effective(estimated: Estimated, matrix: Floats, counts: Floats | None) -> EffectiveNumbers:
    found = accuracies(estimated.patterns, estimated.p, counts)
    return effective_number(matrix, float(np.nanmean(found.judges)), found.majority)


def percentiles(estimate: float, replicates: Floats | list[float]) -> Interval | None:
    """A percentile interval; null where the estimate or most replicates are undefined."""
    drawn = np.asarray(replicates, dtype=np.float64)
    kept = drawn[np.isfinite(drawn)]
    if not np.isfinite(estimate) or len(kept) < max(2, len(drawn) / 2):
        return None
    low, high = np.quantile(kept, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    n = len(drawn)
    return Interval(float(estimate), float(low), float(high), LEVEL, n, n, METHOD)


def pairs(
    measured: Measured,
    tests: PairwiseIndependence | None,
    fitted: Couplings | None,
    judges: Sequence[str],
    families: Sequence[str],
) -> tuple[PairFinding, ...]:
    """Every pair with what is known of it."""
    first, second = np.triu_indices(len(judges), 1)
    estimates = off_diagonal(measured.correlations.pooled)
    drawn = off_diagonal(measured.replicates)
    p = _p_values(tests, len(first))
    p_holm = _corrected(p)
    ratio = np.full(len(first), np.nan) if fitted is None else off_diagonal(fitted.p_ratio)
    ratio_holm = _corrected(ratio)
    wald = np.full(len(first), np.nan) if fitted is None else off_diagonal(fitted.p_wald)
    wald_holm = _corrected(wald)
    together = off_diagonal(measured.correlations.together)
    return tuple(
        PairFinding(
            judges[j],
            judges[k],
            families[j] == families[k],
            round(float(together[i])),
            percentiles(estimates[i], drawn[:, i]),
            _number(p[i]),
            _number(p_holm[i]),
            None if fitted is None else percentiles(fitted.matrix[j, k], fitted.replicates[:, i]),
            None if fitted is None else _number(fitted.error[j, k]),
            _number(wald[i]),
            _number(wald_holm[i]),
            _number(ratio[i]),
            _number(ratio_holm[i]),
        )
        for i, (j, k) in enumerate(zip(first.tolist(), second.tolist(), strict=True))
    )


def _p_values(tests: PairwiseIndependence | None, n: int) -> Floats:
    if tests is None:
        return np.full(n, np.nan)
    return np.array([np.nan if test is None else test.p for test in tests.tests])


def _corrected(p: Floats) -> Floats:
    out = np.full_like(p, np.nan)
    known = ~np.isnan(p)
    out[known] = holm(p[known])
    return out


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def family_table(
    measured: Measured, fitted: Couplings | None, families: Sequence[str]
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
    if sum(which.any() for _, which in rows) > 1:
        rows.append(("within families", within))
    rows.append(("across families", ~within))
    return tuple(
        FamilyFinding(
            name,
            int(which.sum()),
            _mean(
                off_diagonal(measured.correlations.pooled), off_diagonal(measured.replicates), which
            ),
            None
            if fitted is None
            else _mean(off_diagonal(fitted.matrix), fitted.replicates, which),
        )
        for name, which in rows
        if which.any()
    )


def _mean(values: Floats, replicates: Floats, which: np.ndarray) -> Interval | None:
    kept = which & ~np.isnan(values)
    if not kept.any():
        return None
    return percentiles(float(values[kept].mean()), replicates[:, kept].mean(axis=1))


def blocs(
    estimated: Estimated, measured: Measured, judges: Sequence[str]
) -> tuple[BlocFinding, ...]:
    """Groups that err together, by name."""
    if len(measured.replicates) < 2:
        return ()
    patterns, p = estimated.patterns, estimated.p
    found = find_blocs(
        measured.correlations.pooled,
        measured.replicates,
        class_rates(patterns, p, patterns.counts[None])[0],
        class_rates(patterns, p, measured.counts),
    )
    return tuple(
        BlocFinding(
            tuple(judges[j] for j in bloc.judges),
            bloc.within,
            bloc.outside,
            bloc.worth,
            bloc.near_copies,
        )
        for bloc in found
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
