"""Groups of judges that err together, and among them those that are copies of one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.dependence.residual_correlation import off_diagonal
from clash.stats.latent.vote_correlations import (
    LEAST_ERROR,
    contrast_threshold,
    largest_contrast,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.stats.latent.patterns import Patterns
    from clash.stats.typing import Bools, Floats

LEVEL = 0.05
"""Chance of finding a bloc where all judges correlate alike, and of calling copies different."""
NULL_TREES = 300
"""Trees of equally correlated judges that the threshold is a quantile of, at most."""
LITTLE = 0.25
"""Independent judges that each further member of a set of near-copies adds, at most."""


@dataclass(frozen=True, slots=True)
class Bloc:
    """Judges that err with each other more than with the rest.

    Attributes:
        judges: columns, rising.
        within: mean residual correlation between them.
        outside: mean residual correlation between them and all other judges.
        evidence: how far its least attached member is from belonging outside, over what the
            most striking branch of a tree of equally correlated judges reaches one time in
            twenty; above 1 it is no accident.
        worth: m / (1 + (m - 1) within): how many independent judges the m of them are worth.
        interchangeable: whether their rates in either class, their correlations with each other
            and those with every other judge are alike within error.
        distance: the largest of these differences, in standard errors.
    """

    judges: tuple[int, ...]
    within: float
    outside: float
    evidence: float
    worth: float
    interchangeable: bool
    distance: float

    @property
    def near_copies(self) -> bool:
        """Interchangeable, and each beyond the first adds less than a quarter of a judge."""
        return self.interchangeable and self.worth < 1 + LITTLE * (len(self.judges) - 1)


def find_blocs(
    correlations: Floats, correlation_replicates: Floats, rates: Floats, rate_replicates: Floats
) -> tuple[Bloc, ...]:
    """Blocs of an average-linkage tree that are no accident, largest first.

    A branch of the tree is a bloc if each of its judges correlates more with the others in it
    than with those outside, by more than trees find among judges that are all correlated alike:
    bootstrap errors around one common correlation go through the same search. Reported are the
    largest such branches and, inside them or on their own, the largest sets of near-copies.

    Args:
        correlations: residual correlations, shape (K, K); NaN where undefined.
        correlation_replicates: shape (B, K, K), B at least 20.
        rates: P(vote 1) by class, shape (2, K).
        rate_replicates: shape (B, 2, K).
    """
    if len(correlations) < 3:
        return ()
    data = _Data.of(correlations, correlation_replicates, rates, rate_replicates)
    blocs = {judges: data.bloc(judges) for judges in _branches(data.complete)}
    sure = {judges for judges, bloc in blocs.items() if bloc.evidence > 1}
    copies = {judges for judges in sure if blocs[judges].near_copies}
    reportable = _largest(sure) | _largest(copies)
    return tuple(blocs[judges] for judges in sorted(reportable, key=lambda js: (-len(js), js)))


def class_rates(patterns: Patterns, p: Floats, counts: Floats) -> Floats:
    """P(vote 1) of each judge in class 0 and class 1, shape (B, 2, K); NaN where it never voted.

    Args:
        patterns: the votes; a tie is half a vote.
        p: shape (n_patterns,), P(truth = 1).
        counts: shape (B, n_patterns).
    """
    rates = []
    for share in (1 - p, p):
        weight = counts * share
        n_votes, n_votes_one = weight @ patterns.present, weight @ patterns.for_one
        rates.append(
            np.divide(n_votes_one, n_votes, out=np.full_like(n_votes, np.nan), where=n_votes > 0)
        )
    return np.stack(rates, axis=1)


@dataclass(frozen=True, slots=True)
class _Data:
    """What a branch is judged by.

    Attributes:
        complete: correlations with undefined ones as the mean of the others, so that they make no
            bloc and break none.
        noise: root mean square error of a correlation.
        threshold: attachment that the best branch of a tree without blocs exceeds one time in
            twenty.
    """

    correlations: Floats
    correlation_replicates: Floats
    rates: Floats
    rate_replicates: Floats
    complete: Floats
    noise: float
    threshold: float

    @classmethod
    def of(
        cls, correlations: Floats, replicates: Floats, rates: Floats, rate_replicates: Floats
    ) -> _Data:
        replicates_complete = _fill_undefined(replicates[:NULL_TREES])
        errors = replicates_complete - replicates_complete.mean(axis=0)
        noise = max(float(np.sqrt((off_diagonal(errors) ** 2).mean())), LEAST_ERROR)
        best_attachments = [
            max(_attachment(tree, judges, noise) for judges in _branches(tree)) for tree in errors
        ]
        threshold = max(float(np.quantile(best_attachments, 1 - LEVEL)), LEAST_ERROR)
        complete = _fill_undefined(correlations)
        return cls(correlations, replicates, rates, rate_replicates, complete, noise, threshold)

    def bloc(self, judges: tuple[int, ...]) -> Bloc:
        m, members = len(judges), list(judges)
        outsiders = [k for k in range(len(self.complete)) if k not in judges]
        within = float(off_diagonal(self.complete[np.ix_(members, members)]).mean())
        distance, n_contrasts = self._distance(judges)
        return Bloc(
            judges,
            within,
            float(self.complete[np.ix_(members, outsiders)].mean()),
            _attachment(self.correlations, judges, self.noise) / self.threshold,
            m / max(1 + (m - 1) * within, 1.0),
            distance < contrast_threshold(n_contrasts, LEVEL),
            distance,
        )

    def _distance(self, judges: tuple[int, ...]) -> tuple[float, int]:
        """The largest difference between members, in standard errors, and how many there were."""
        estimate = self._contrasts(self.correlations[None], self.rates[None], judges)[0]
        replicates = self._contrasts(self.correlation_replicates, self.rate_replicates, judges)
        return largest_contrast(estimate, replicates)

    @staticmethod
    def _contrasts(correlations: Floats, rates: Floats, judges: tuple[int, ...]) -> Floats:
        """Rates and correlations of each member less those of the members' mean, shape (B, c)."""
        members = list(judges)
        outsiders = [k for k in range(correlations.shape[-1]) if k not in judges]
        pairs = off_diagonal(correlations[:, members][:, :, members])
        outside = correlations[:, members][:, :, outsiders]
        member_rates = rates[:, :, members]
        parts = [
            pairs - pairs.mean(axis=1, keepdims=True),
            (outside - outside.mean(axis=1, keepdims=True)).reshape(len(rates), -1),
            (member_rates - member_rates.mean(axis=2, keepdims=True)).reshape(len(rates), -1),
        ]
        return np.hstack(parts)


def _branches(correlations: Floats) -> Iterator[tuple[int, ...]]:
    """The judges of every branch of at least two of an average-linkage tree, the root aside."""
    from scipy.cluster.hierarchy import linkage

    merges = linkage(1 - off_diagonal(correlations), method="average")
    n = len(correlations)
    members = [(judge,) for judge in range(n)]
    for left, right in merges[:, :2].astype(int):
        members.append(tuple(sorted(members[left] + members[right])))
    yield from members[n:-1]


def _attachment(correlations: Floats, judges: tuple[int, ...], noise: float) -> float:
    """By how much the least attached member prefers the others in, in rough standard errors."""
    members = list(judges)
    outsiders = [k for k in range(len(correlations)) if k not in judges]
    defined_mask = ~np.isnan(correlations) & ~np.eye(len(correlations), dtype=bool)
    inside = _row_means(correlations, defined_mask, members, members)
    outside = _row_means(correlations, defined_mask, members, outsiders)
    scale = noise * (1 / (len(members) - 1) + 1 / len(outsiders)) ** 0.5
    return float((inside - outside).min() / scale)


def _row_means(
    correlations: Floats, defined_mask: Bools, rows: list[int], columns: list[int]
) -> Floats:
    """Means over the known columns of each row; 0 where none is."""
    mask = defined_mask[np.ix_(rows, columns)]
    total = np.where(mask, correlations[np.ix_(rows, columns)], 0.0).sum(axis=1)
    return np.asarray(total / np.maximum(mask.sum(axis=1), 1))


def _fill_undefined(correlations: Floats) -> Floats:
    """Undefined correlations as the mean of the others."""
    pairs = off_diagonal(correlations)
    defined_mask = ~np.isnan(pairs)
    total = np.where(defined_mask, pairs, 0.0).sum(axis=-1)
    mean = total / np.maximum(defined_mask.sum(axis=-1), 1)
    return np.where(np.isnan(correlations), mean[..., None, None], correlations)


def _largest(branches: set[tuple[int, ...]]) -> set[tuple[int, ...]]:
    """Those that are not part of another."""
    return {
        judges
        for judges in branches
        if not any(
            len(judges) < len(superset) and set(judges) <= set(superset) for superset in branches
        )
    }
