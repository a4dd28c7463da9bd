"""Groups of judges that err together, and among them those that are copies of one another."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.dependence.residual import off_diagonal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.stats.latent.patterns import Floats, Patterns

LEVEL = 0.05
LITTLE = 0.25
"""Independent judges that each further member of a set of near-copies adds, at most."""
LEAST_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class Bloc:
    """Judges that err with each other more than with the rest.

    Attributes:
        judges: columns, rising.
        within: mean residual correlation between them.
        outside: mean residual correlation between them and all other judges.
        low: lower bound of ``within - outside``, corrected for the number of groups looked at.
        worth: m / (1 + (m - 1) within): how many independent judges the m of them are worth.
        interchangeable: whether their rates in either class, their correlations with each other
            and those with every other judge are alike within error.
        distance: the largest of these differences, in standard errors.
    """

    judges: tuple[int, ...]
    within: float
    outside: float
    low: float
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
    """Blocs of an average-linkage tree that hold up under the bootstrap, largest first.

    A branch of the tree is a bloc if its judges correlate more with each other than with the
    others beyond doubt (one-sided, Bonferroni over the branches). Reported are the largest such
    branches and, inside them or on their own, the largest sets of near-copies.

    Args:
        correlations: residual correlations, shape (K, K).
        correlation_replicates: shape (B, K, K), B at least 2.
        rates: P(vote 1) by class, shape (2, K).
        rate_replicates: shape (B, 2, K).
    """
    K = len(correlations)
    if K < 3:
        return ()
    data = _Data(
        np.nan_to_num(correlations), np.nan_to_num(correlation_replicates), rates, rate_replicates
    )
    tree = _Tree.of(data.correlations)
    blocs = {judges: data.bloc(judges) for judges in tree.branches()}
    sure = {judges for judges, bloc in blocs.items() if bloc.low > 0}
    largest = {judges for judges in sure if not any(_inside(judges, other) for other in sure)}
    copies = {judges for judges in sure if blocs[judges].near_copies}
    largest_copies = {
        judges for judges in copies if not any(_inside(judges, other) for other in copies)
    }
    chosen = sorted(largest | largest_copies, key=lambda judges: (-len(judges), judges))
    return tuple(blocs[judges] for judges in chosen)


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
        seen, one = weight @ patterns.observed, weight @ patterns.for_one
        rates.append(np.divide(one, seen, out=np.full_like(seen, np.nan), where=seen > 0))
    return np.stack(rates, axis=1)


@dataclass(frozen=True, slots=True)
class _Data:
    correlations: Floats
    correlation_replicates: Floats
    rates: Floats
    rate_replicates: Floats

    def bloc(self, judges: tuple[int, ...]) -> Bloc:
        m = len(judges)
        within = _mean_within(self.correlations[None], judges)[0]
        outside = _mean_outside(self.correlations[None], judges)[0]
        gaps = _mean_within(self.correlation_replicates, judges) - _mean_outside(
            self.correlation_replicates, judges
        )
        looked_at = len(self.correlations) - 2
        reach = NormalDist().inv_cdf(1 - LEVEL / looked_at)
        distance, n_contrasts = self._distance(judges)
        return Bloc(
            judges,
            float(within),
            float(outside),
            float(within - outside - reach * gaps.std(ddof=1)),
            m / max(1 + (m - 1) * float(within), 1.0),
            distance < NormalDist().inv_cdf(1 - LEVEL / (2 * n_contrasts)),
            distance,
        )

    def _distance(self, judges: tuple[int, ...]) -> tuple[float, int]:
        """The largest difference between members, in standard errors, and how many there were."""
        estimate = self._contrasts(self.correlations[None], self.rates[None], judges)[0]
        drawn = self._contrasts(self.correlation_replicates, self.rate_replicates, judges)
        known = np.isfinite(drawn).all(axis=0) & np.isfinite(estimate)
        spread = drawn[:, known].std(axis=0, ddof=1)
        varying = spread > LEAST_SPREAD
        if not varying.any():
            return 0.0, 1
        apart = np.abs(estimate[known][varying] / spread[varying])
        return float(apart.max()), len(apart)

    @staticmethod
    def _contrasts(correlations: Floats, rates: Floats, judges: tuple[int, ...]) -> Floats:
        """Rates and correlations of each member less those of the members' mean, shape (B, c)."""
        own = list(judges)
        others = [k for k in range(correlations.shape[-1]) if k not in judges]
        pairs = off_diagonal(correlations[:, own][:, :, own])
        across = correlations[:, own][:, :, others]
        mine = rates[:, :, own]
        parts = [
            pairs - pairs.mean(axis=1, keepdims=True),
            (across - across.mean(axis=1, keepdims=True)).reshape(len(rates), -1),
            (mine - mine.mean(axis=2, keepdims=True)).reshape(len(rates), -1),
        ]
        return np.hstack(parts)


@dataclass(frozen=True, slots=True)
class _Tree:
    """An average-linkage tree as scipy has it, shape (K - 1, 4)."""

    merges: Floats

    @classmethod
    def of(cls, correlations: Floats) -> _Tree:
        from scipy.cluster.hierarchy import linkage

        return cls(np.asarray(linkage(1 - off_diagonal(correlations), method="average")))

    def branches(self) -> Iterator[tuple[int, ...]]:
        """The judges of every branch of at least two, the whole panel aside."""
        n = len(self.merges) + 1
        members = [(judge,) for judge in range(n)]
        for left, right in self.merges[:, :2].astype(int):
            members.append(tuple(sorted(members[left] + members[right])))
        yield from members[n:-1]


def _inside(judges: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(judges) < len(other) and set(judges) <= set(other)


def _mean_within(correlations: Floats, judges: tuple[int, ...]) -> Floats:
    own = list(judges)
    return np.asarray(off_diagonal(correlations[:, own][:, :, own]).mean(axis=1))


def _mean_outside(correlations: Floats, judges: tuple[int, ...]) -> Floats:
    own = list(judges)
    others = [k for k in range(correlations.shape[-1]) if k not in judges]
    return np.asarray(correlations[:, own][:, :, others].mean(axis=(1, 2)))
