"""Score tests: whether a restriction holds, from the fit that obeys it.

Only the restricted model is fitted. That matters without labels, where the unrestricted one may
find another hidden class than the truth to explain the votes by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from clash.stats.typing import Floats, Index

LEAST_INFORMATION = 1e-6
"""Share of its information that a tested direction must keep once the others are estimated."""


@dataclass(frozen=True, slots=True)
class ScoreTest:
    """What a score test found.

    Attributes:
        p: P(data at least this far from the restriction), if it holds.
        statistic: chi-square, or Hotelling's T^2 where clusters were allowed for.
        df: directions tested.
        direction: sign of the single direction tested, 0 for several.
        clusters: clusters of items that the variance was estimated over; 0 where the model's
            own information was used.
    """

    p: float
    statistic: float
    df: int
    direction: int = 0
    clusters: int = 0


@dataclass(frozen=True, slots=True)
class RestrictedScores:
    """Scores of a restricted fit, in parameters that include the tested ones.

    Attributes:
        rows: shape (n_patterns, p): gradient of each pattern's log-likelihood.
        counts: shape (n_patterns,).
        information: shape (p, p): expected information of all items under the restricted fit.
        tested_columns: columns that the restriction sets to 0.
    """

    rows: Floats
    counts: Floats
    information: Floats
    tested_columns: Index

    def efficient(self) -> tuple[Floats, Floats]:
        """Scores of the tested parameters, what the others explain taken out, and their variance.

        Returns:
            Rows of shape (n_patterns, r), and the variance (r, r) of their weighted sum if items
            are independent and the restricted model is right.
        """
        nuisance = np.setdiff1d(np.arange(self.rows.shape[1]), self.tested_columns)
        cross = self.information[np.ix_(self.tested_columns, nuisance)]
        explain = cross @ np.linalg.pinv(
            self.information[np.ix_(nuisance, nuisance)], rcond=1e-10, hermitian=True
        )
        rows = self.rows[:, self.tested_columns] - self.rows[:, nuisance] @ explain.T
        variance = (
            self.information[np.ix_(self.tested_columns, self.tested_columns)] - explain @ cross.T
        )
        return rows, (variance + variance.T) / 2


def joint_test(
    scores: RestrictedScores, inverse: Index, clusters: Index | None = None
) -> ScoreTest:
    """Whether all tested parameters are 0.

    Args:
        scores: of the restricted fit.
        inverse: the pattern of each item, shape (n_items,).
        clusters: the cluster of each item, shape (n_items,), where items of one cluster may
            depend on each other; None where they are independent.

    Raises:
        StatisticsError: the tested directions are not identified, or there are no more clusters
            than directions.
    """
    rows, variance = scores.efficient()
    information_left = np.diag(variance) / np.diag(scores.information)[scores.tested_columns]
    if (
        not (information_left > LEAST_INFORMATION).all()
        or np.linalg.cond(variance) > 1 / LEAST_INFORMATION**2
    ):
        raise StatisticsError("the votes cannot distinguish these parameters from the others")
    total = scores.counts @ rows
    df = len(scores.tested_columns)
    if clusters is None:
        return _chi_square(float(total @ np.linalg.solve(variance, total)), df)
    sums = cluster_sums(rows, inverse, clusters)
    n = len(sums)
    if n <= df:
        raise StatisticsError(f"{n} clusters are too few to test {df} parameters at once")
    deviations = sums - sums.mean(axis=0)
    spread = deviations.T @ deviations * n / (n - 1)
    return _hotelling(float(total @ np.linalg.solve(spread, total)), df, n)


def single_tests(
    scores: RestrictedScores, inverse: Index, clusters: Index | None = None
) -> tuple[ScoreTest | None, ...]:
    """Each tested parameter on its own, the other tested ones at 0; None where not identified.

    Raises:
        StatisticsError: a single cluster.
    """
    rows, variance = scores.efficient()
    total = scores.counts @ rows
    spread, n = np.diag(variance), 0
    identified_mask = (
        spread > LEAST_INFORMATION * np.diag(scores.information)[scores.tested_columns]
    )
    if clusters is not None:
        sums = cluster_sums(rows, inverse, clusters)
        n = len(sums)
        if n < 2:
            raise StatisticsError("the scores of one cluster have no variance")
        spread = n / (n - 1) * ((sums - sums.mean(axis=0)) ** 2).sum(axis=0)
        identified_mask &= spread > 0
    return tuple(
        _single(float(value), float(scale), n) if fine else None
        for value, scale, fine in zip(total, spread, identified_mask, strict=True)
    )


def cluster_sums(rows: Floats, inverse: Index, clusters: Index) -> Floats:
    """Scores added up within clusters, shape (n_clusters, r)."""
    order = np.argsort(clusters, kind="stable")
    starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
    return np.asarray(np.add.reduceat(rows[inverse[order]], starts, axis=0))


def _single(total: float, variance: float, clusters: int) -> ScoreTest:
    statistic = total**2 / variance
    test = _hotelling(statistic, 1, clusters) if clusters else _chi_square(statistic, 1)
    return ScoreTest(test.p, statistic, 1, int(np.sign(total)), clusters)


def _chi_square(statistic: float, df: int) -> ScoreTest:
    from scipy.special import chdtrc

    return ScoreTest(float(chdtrc(df, max(statistic, 0.0))), statistic, df)


def _hotelling(statistic: float, df: int, clusters: int) -> ScoreTest:
    from scipy.special import fdtrc

    f_statistic = statistic * (clusters - df) / (df * (clusters - 1))
    p = float(fdtrc(df, clusters - df, max(f_statistic, 0.0)))
    return ScoreTest(p, statistic, df, clusters=clusters)
