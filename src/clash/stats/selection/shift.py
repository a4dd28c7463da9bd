"""Whether unlabelled rows look like the labelled rows that a map was fitted to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.selection.metrics import verdicts
from clash.stats.selection.scalar import mean_vote

if TYPE_CHECKING:
    from clash.stats.selection.panel import Cells
    from clash.stats.typing import Floats

ALPHA = 0.001
"""Level of the test of the votes: strict, since a shift makes the deployment fall back."""
FLIPS = 0.15
"""Change in the share of verdicts against majority beyond which the map is not used."""
UNSEEN_SHARE = 0.1
"""Rise in the share of rows with a pattern without a label, likewise."""

FEWEST = 20
"""Fewest new rows to test: with fewer a shift cannot be told from chance."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How new rows differ from the labelled ones, as the judges of the map see them.

    Attributes:
        distance: total variation between the two distributions of patterns, 0 to 1.
        p: of the hypothesis that judges vote and agree alike in both, Holm's correction over
            judges and pairs of judges; 1 where there is nothing to compare.
        worst: the judge, or pair of them, that differs most, as columns.
        unseen: share of new rows whose pattern no labelled row has.
        expected_unseen: the share to expect in the domain of the labels (Good and Turing).
        flips: share of new rows on which the map contradicts majority.
        expected_flips: the share among the labelled rows.
        reasons: why the map should not be used on the new rows; empty where there is none.
    """

    distance: float
    p: float
    worst: tuple[int, ...]
    unseen: float
    expected_unseen: float
    flips: float
    expected_flips: float
    reasons: tuple[str, ...]

    @property
    def is_shift(self) -> bool:
        """Whether to fall back."""
        return bool(self.reasons)


def compare_votes(cells: Cells, labelled_counts: Floats, new_counts: Floats, p: Floats) -> Shift:
    """Compare labelled and new rows by their votes and by the verdicts of the map.

    No label of the new rows is needed. A change in how often votes are right, while they stay as
    frequent, cannot be detected this way.

    Args:
        cells: patterns of the judges of the map, covering both.
        labelled_counts: (P,), labelled rows by pattern.
        new_counts: (P,), new rows by pattern.
        p: (P, C), predictions of the map.
    """
    before, after = labelled_counts / labelled_counts.sum(), new_counts / max(new_counts.sum(), 1.0)
    distance = float(np.abs(before - after).sum() / 2)
    unlabelled_share = float(after[labelled_counts == 0].sum())
    expected_unseen = float((labelled_counts == 1).sum() / labelled_counts.sum())
    against = _against_majority(cells, p)
    flips, expected_flips = float(after @ against), float(before @ against)
    level, worst = _moments_differ(cells, labelled_counts, new_counts)
    reasons = _reasons(
        level,
        unlabelled_share - expected_unseen,
        flips,
        expected_flips,
        labelled_counts.sum(),
        new_counts.sum(),
    )
    return Shift(
        distance,
        level,
        worst,
        unlabelled_share,
        expected_unseen,
        flips,
        expected_flips,
        tuple(reasons),
    )


def _reasons(
    level: float, unlabelled_share: float, flips: float, usual: float, n: float, m: float
) -> list[str]:
    reasons: list[str] = []
    if m < FEWEST:
        return reasons
    if level < ALPHA:
        reasons.append(
            f"judges vote or agree differently than on the labelled rows (p {level:.1g})"
        )
    if unlabelled_share > UNSEEN_SHARE + 2 * math.sqrt(0.25 / max(m, 1)):
        reasons.append(
            f"{unlabelled_share:.0%} more rows than expected have a pattern without a label"
        )
    error = 2 * math.sqrt(usual * (1 - usual) * (1 / max(n, 1) + 1 / max(m, 1)))
    if abs(flips - usual) > FLIPS + error:
        reasons.append(f"the map contradicts majority on {flips:.0%} of the rows, not {usual:.0%}")
    return reasons


def _against_majority(cells: Cells, p: Floats) -> Floats:
    """(P,), 1 where no likeliest class is among the classes with most votes, else 0."""
    return np.asarray(
        1 - np.minimum((verdicts(p) > 0) * (verdicts(mean_vote(cells)) > 0), 1).max(1)
    )


def _moments_differ(cells: Cells, n: Floats, m: Floats) -> tuple[float, tuple[int, ...]]:
    """The smallest p, by Holm, over each judge's mean vote and each pair's agreement."""
    side = np.where(np.isnan(cells.values), np.nan, 2 * cells.values - 1)
    k = side.shape[1]
    tests: list[tuple[float, tuple[int, ...]]] = []
    for i in range(k):
        tests.append((_two_sample(side[:, i], n, m), (i,)))
        tests += [(_two_sample(side[:, i] * side[:, j], n, m), (i, j)) for j in range(i)]
        tests.append((_two_sample(np.isnan(side[:, i]).astype(float), n, m), (i,)))
    p, worst = min(tests)
    return min(1.0, p * len(tests)), worst


def _two_sample(x: Floats, n: Floats, m: Floats) -> float:
    """Two-sided p of equal means under two weightings; rows without a value are left out."""
    has_value = ~np.isnan(x)
    x, n, m = x[has_value], n[has_value], m[has_value]
    if n.sum() < 2 or m.sum() < 2:
        return 1.0
    first, second = float(n @ x / n.sum()), float(m @ x / m.sum())
    share = (n + m) / (n + m).sum()
    variance = float(share @ (x - share @ x) ** 2) * (1 / n.sum() + 1 / m.sum())
    return math.erfc(abs(first - second) / math.sqrt(2 * variance)) if variance > 0 else 1.0
