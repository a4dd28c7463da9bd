"""Judges that share a latent factor of the item, such as its difficulty or its length.

Source: Balasubramanian et al. (2026), proposition 1, theorem 3, simulation setup 2 of appendix G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr

from clash.errors import StatisticsError
from clash.stats.logistic import logit, sigmoid
from clash.stats.simulate.exchangeable import CountLaw
from clash.stats.simulate.sample import all_votes

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats

GRID, REACH = 2001, 8.5


@dataclass(frozen=True)
class LatentFactor:
    """J_j | y, z ~ Bernoulli(sigmoid(b + s a + s loading z)), s = 2y - 1, z ~ N(0, variance).

    Attributes:
        a: what the label adds to the log-odds of a vote for class 1.
        b: the log-odds' middle.
        loading: lambda, what one unit of the factor adds.
        variance: sigma_Z^2.
        prevalence: P(label = 1).
    """

    a: float
    b: float
    loading: float
    variance: float
    prevalence: float

    def __post_init__(self) -> None:
        if self.a <= 0 or self.loading == 0 or self.variance <= 0:
            raise StatisticsError("need a > 0, a loading other than 0, and a positive variance")

    @property
    def spread(self) -> float:
        """The standard deviation of a judge's log-odds within a class."""
        return float(abs(self.loading) * self.variance**0.5)

    def counts(self, n_judges: int) -> CountLaw:
        """The exact law of the vote count: the factor integrated out on a fine grid."""
        s = np.arange(n_judges + 1)[:, None]
        log_ways = gammaln(n_judges + 1) - gammaln(s + 1) - gammaln(n_judges - s + 1)
        pmf = []
        for theta, weight in self._classes():
            log_pmf = (
                log_ways - s * np.logaddexp(0, -theta) - (n_judges - s) * np.logaddexp(0, theta)
            )
            pmf.append(np.exp(log_pmf) @ weight)
        return CountLaw(np.stack(pmf), self.prevalence)

    def marginals(self) -> Floats:
        """q_0 and q_1, P(one judge votes 1 | y)."""
        return np.array([sigmoid(theta) @ weight for theta, weight in self._classes()])

    def _classes(self) -> list[tuple[Floats, Floats]]:
        """Log-odds of a vote and their weights, for class 0 and class 1."""
        z = np.linspace(-REACH, REACH, GRID)
        weight = np.exp(-(z**2) / 2)
        weight /= weight.sum()
        return [(self.b + sign * (self.a + self.spread * z), weight) for sign in (-1, 1)]

    @property
    def bayes_threshold(self) -> float:
        """Vote share from which the limiting Bayes rule says 1 (the root of l*)."""
        shift = self.spread**2 / (2 * self.a) * logit(self.prevalence)
        return float(sigmoid(self.b - shift))

    @property
    def independent_threshold(self) -> float:
        """Vote share from which the limiting independence rule says 1 (the root of l^ind)."""
        q0, q1 = self.marginals()
        against = np.log((1 - q0) / (1 - q1))
        return float(against / (np.log(q1 / q0) + against))

    def limiting_risk(self, threshold: float) -> float:
        """Risk, with infinitely many judges, of the rule that says 1 from a vote share on."""
        theta = logit(threshold)
        below_if_one = ndtr((theta - self.b - self.a) / self.spread)
        above_if_zero = ndtr((self.b - self.a - theta) / self.spread)
        return float(self.prevalence * below_if_one + (1 - self.prevalence) * above_if_zero)

    def share_rule(self, n_judges: int, threshold: float) -> Bools:
        """The rule "share of votes at least ``threshold``" at every count of votes."""
        return np.asarray(np.arange(n_judges + 1) / n_judges >= threshold)


def pairwise_interactions(intercepts: npt.ArrayLike, loadings: npt.ArrayLike) -> Floats:
    """The couplings that a one-factor model has at the vote vector 0, shape (K, K).

    W[j, k] is the second difference of log P(J) between judges j and k, all others voting 0:
    proposition 1 says that it tends to loadings[j] * loadings[k] as the loadings shrink.

    Args:
        intercepts: eta_j, the log-odds of a vote where the factor is 0, shape (K,).
        loadings: lambda_j, for a factor of variance 1, shape (K,).
    """
    eta, lam = np.asarray(intercepts, dtype=np.float64), np.asarray(loadings, dtype=np.float64)
    z = np.linspace(-REACH, REACH, GRID)
    weight = np.exp(-(z**2) / 2)
    theta = eta[:, None] + lam[:, None] * z
    J = all_votes(len(eta)).astype(np.float64)
    log_pmf = np.log(np.exp(J @ theta - np.logaddexp(0, theta).sum(axis=0)) @ weight)
    single = 2 ** np.arange(len(eta))[::-1]
    pair = single[:, None] + single
    W = log_pmf[pair % len(J)] - log_pmf[single][:, None] - log_pmf[single] + log_pmf[0]
    return np.where(np.eye(len(eta), dtype=bool), 0.0, W)
