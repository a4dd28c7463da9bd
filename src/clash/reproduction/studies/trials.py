"""Figures of repeated random trials: what their mean says of other items and of other trials."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.intervals import mean_clustered, normal_quantile, wilson, wilson_clustered
from clash.stats.resample import RepeatMean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.intervals import Interval
    from clash.stats.typing import Bools, Floats, Index


def over_items(
    rows: Sequence[Index],
    values: Sequence[Floats],
    groups: Index,
    *,
    share: bool = False,
    least: float = 0.0,
) -> Interval:
    """The mean of what trials measured on their test rows, with an interval for other items.

    The variance is that over sources, clustered, with the trials as they are, plus that over
    trials: other items and other draws would both have given another figure.

    Args:
        rows: test rows of each trial.
        values: of each trial, by test row, in [``least``, 1].
        groups: (N,), source of every row.
        share: whether the mean is a share of successes, which has an interval of its own.
        least: 0 for a share or a loss, -1 for a difference of two.

    Returns:
        Within the range of the values. Where no row differs, the interval is that of no event
        in as many sources, not a point.
    """
    flat = np.concatenate(values)
    codes = np.unique(groups[np.concatenate(rows)], return_inverse=True)[1]
    if share:
        items = wilson_clustered(np.clip(flat, 0.0, 1.0), codes)
    elif not flat.any():
        reach = wilson(0, int(codes.max()) + 1).high
        items = replace(mean_clustered(flat, codes), low=-reach, high=reach)
    else:
        items = mean_clustered(flat, codes)
    trials = RepeatMean.of([float(v.mean()) for v in values]).se
    spread = 0.0 if math.isnan(trials) else normal_quantile(items.level) * trials
    low = items.estimate - math.hypot(items.estimate - items.low, spread)
    high = items.estimate + math.hypot(items.high - items.estimate, spread)
    interval = replace(items, low=low, high=high, method="over items and trials")
    return interval.within(least, 1.0)


def whole_sources(groups: Index, is_kept: Bools, most: int, rng: np.random.Generator) -> Bools:
    """(N,), which rows are of random whole sources that have at most ``most`` kept rows."""
    sources = rng.permutation(np.unique(groups[is_kept]))
    sizes = np.bincount(groups[is_kept], minlength=int(groups.max()) + 1)[sources]
    return np.isin(groups, sources[np.cumsum(sizes) <= most])
