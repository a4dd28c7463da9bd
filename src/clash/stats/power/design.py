"""Assumptions and result of every sample size: clusters, error rates, demand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from clash.errors import StatisticsError


@dataclass(frozen=True, slots=True)
class Clustering:
    """Clusters of observations that depend on each other (runs, items).

    Attributes:
        size: m > 0, mean observations of a cluster; below 1 where many clusters have none.
        icc: rho in [0, 1], correlation of two observations of one cluster, on the scale on
            which they are averaged (not the latent one of a logistic model).
        cv: standard deviation of the sizes over their mean.
    """

    size: float = 1.0
    icc: float = 0.0
    cv: float = 0.0

    def __post_init__(self) -> None:
        if not self.size > 0:
            raise StatisticsError(f"a cluster holds more than {self.size} observations on average")
        if not 0 <= self.icc <= 1:
            raise StatisticsError(f"an intra-cluster correlation lies in [0, 1], not {self.icc}")
        if not self.cv >= 0:
            raise StatisticsError(f"a coefficient of variation is not negative, as {self.cv}")

    @property
    def design_effect(self) -> float:
        """1 + (m (1 + cv^2) - 1) rho (Kish 1965; Eldridge et al. 2006), never below 1.

        With equal sizes it is 1 + (m - 1) rho. It is the factor on the variance of a mean over
        all observations: of the m^2 pairs in a cluster m are an observation with itself, the
        others have covariance rho; unequal sizes raise the mean of m^2 to m^2 (1 + cv^2).
        """
        return max(1.0, 1 + (self.size * (1 + self.cv**2) - 1) * self.icc)


@dataclass(frozen=True, slots=True)
class ErrorRates:
    """Error rates of a two-sided test: ``alpha`` and the ``power`` asked for."""

    alpha: float = 0.05
    power: float = 0.80

    def __post_init__(self) -> None:
        if not (0 < self.alpha < 1 and self.alpha < self.power < 1):
            raise StatisticsError(
                f"alpha lies in (0, 1) and power in (alpha, 1), not {self.alpha} and {self.power}"
            )

    @property
    def z_alpha(self) -> float:
        """The critical value, 1.96 for 0.05."""
        return NormalDist().inv_cdf(1 - self.alpha / 2)

    @property
    def z_power(self) -> float:
        """The normal quantile of the power, 0.84 for 0.80."""
        return NormalDist().inv_cdf(self.power)


@dataclass(frozen=True, slots=True)
class Demand:
    """How much is needed.

    Attributes:
        independent: observations, if none shared a cluster.
        observations: ``independent`` times the design effect.
        exact: ``observations`` over the mean size: clusters, not rounded.
        design_effect: what clustering costs.
    """

    independent: float
    observations: float
    exact: float
    design_effect: float

    @property
    def clusters(self) -> int:
        """Clusters, rounded up: the smallest number that is enough."""
        # 1e-9: a whole number computed in floats may lie just above itself.
        return math.ceil(self.exact - 1e-9)

    @classmethod
    def of(cls, independent: float, clustering: Clustering) -> Demand:
        """The demand in clusters of one in independent observations."""
        effect = clustering.design_effect
        return cls(
            independent, independent * effect, independent * effect / clustering.size, effect
        )


def two_sided_power(shift: float, level: ErrorRates) -> float:
    """P(|Z + shift| > z_alpha): both tails, so that it is alpha at shift 0."""
    normal = NormalDist()
    return normal.cdf(shift - level.z_alpha) + normal.cdf(-shift - level.z_alpha)
