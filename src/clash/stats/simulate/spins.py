"""Ising panels: of any couplings, by enumeration of every vote vector, and of one coupling for all.

In a Curie-Weiss panel every pair of judges couples alike, and one class has two moods.
Source: Balasubramanian et al. (2026), equations 1 and 3, appendix C; theorems 1 and 2, simulation
setup 1 of appendix G.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from clash.errors import StatisticsError
from clash.stats.logistic import logit, sigmoid, softmax
from clash.stats.simulate.panels import (
    CountLaw,
    SimulatedSample,
    all_votes,
    draw_labels,
    draw_states,
    risk_of,
)

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, VoteCodes
BISECTIONS = 200


@dataclass(frozen=True)
class IsingPanel:
    """Judges whose votes given the label are P(J|y) ~ exp(h_y'J + sum_{j<k} W_y[j,k] J_j J_k).

    Attributes:
        fields: shape (2, n_judges), h of class 0 and class 1.
        couplings: shape (2, n_judges, n_judges), W of class 0 and class 1, symmetric with a
            zero diagonal.
        prevalence: P(label = 1).

    Raises:
        StatisticsError: shapes that do not fit, or couplings that are not symmetric.
    """

    fields: Floats
    couplings: Floats
    prevalence: float = 0.5

    def __post_init__(self) -> None:
        K = self.fields.shape[-1]
        if self.fields.shape != (2, K) or self.couplings.shape != (2, K, K):
            raise StatisticsError("an Ising panel needs fields (2, K) and couplings (2, K, K)")
        symmetric = np.array_equal(self.couplings, np.swapaxes(self.couplings, 1, 2))
        if not symmetric or self.couplings[:, range(K), range(K)].any():
            raise StatisticsError("couplings must be symmetric with a zero diagonal")

    @classmethod
    def of(
        cls, fields: npt.ArrayLike, couplings: npt.ArrayLike, prevalence: float = 0.5
    ) -> IsingPanel:
        """A panel from plain lists; couplings (K, K) are shared by both classes."""
        W = np.asarray(couplings, dtype=np.float64)
        by_class = np.stack([W, W]) if W.ndim == 2 else W
        return cls(np.asarray(fields, dtype=np.float64), by_class, prevalence)

    @property
    def states(self) -> VoteCodes:
        """Every vote vector, shape (2**n_judges, n_judges)."""
        return all_votes(self.fields.shape[1])

    def pmf(self) -> Floats:
        """P(J|y) for every vote vector, shape (2, 2**n_judges)."""
        J = self.states.astype(np.float64)
        quadratic = 0.5 * np.einsum("sj,yjk,sk->ys", J, self.couplings, J)
        linear = self.fields @ J.T
        return softmax(linear + quadratic)

    def marginals(self) -> Floats:
        """P(J_j = 1 | y), shape (2, n_judges)."""
        return self.pmf() @ self.states

    def posterior(self) -> Floats:
        """P(y = 1 | J) for every vote vector, by Bayes' rule."""
        pmf = np.log(self.pmf())
        return sigmoid(logit(self.prevalence) + pmf[1] - pmf[0])

    def posterior_if_independent(self) -> Floats:
        """What P(y = 1 | J) would be if judges with the same marginals voted independently."""
        q, J = self.marginals(), self.states
        log_pmf = np.log(q) @ J.T + np.log1p(-q) @ (1 - J.T)
        return sigmoid(logit(self.prevalence) + log_pmf[1] - log_pmf[0])

    def risk(self, says_one: Bools) -> float:
        """P(the rule errs), for a rule given by its decision on every vote vector."""
        return risk_of(self.pmf(), self.prevalence, says_one)

    def sample(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items, drawn exactly."""
        states, labels = draw_states(self.pmf(), self.prevalence, n, rng)
        return SimulatedSample(self.states[states], labels)


@dataclass(frozen=True)
class CurieWeiss:
    """P(X|y) ~ exp(beta_y / (2K) (sum X)^2 + h_y sum X) for spins X = 2J - 1.

    Class 0 is hot (beta_0 < 1) in a fixed field; class 1 is cold (beta_1 > 1) in a field c / K
    so weak that the panel agrees on the wrong side with a probability that never vanishes.

    Attributes:
        beta: (beta_0, beta_1).
        field: h_0, the fixed field of class 0.
        c: the field of class 1 times the number of judges.
        prevalence: P(label = 1).
    """

    beta: tuple[float, float]
    field: float
    c: float
    prevalence: float

    def __post_init__(self) -> None:
        hot, cold = self.beta
        if not 0 < hot < 1 < cold:
            raise StatisticsError(f"need beta_0 < 1 < beta_1, not {hot} and {cold}")

    @property
    def hot_mean(self) -> float:
        """m_0, the mean spin of class 0 with many judges: the root of m = tanh(beta_0 m + h)."""
        return _root(self.beta[0], self.field, -1.0, 1.0)

    @property
    def cold_mean(self) -> float:
        """m_*, how far class 1 leans, either way: the positive root of m = tanh(beta_1 m)."""
        return _root(self.beta[1], 0.0, 1e-9, 1.0)

    @property
    def right_phase(self) -> float:
        """p, the limiting probability that a panel of class 1 agrees on the right side."""
        return float(sigmoid(2 * self.c * self.cold_mean))

    @property
    def independent_limit(self) -> float:
        """The risk left to the independence rule with infinitely many judges (theorem 2)."""
        return self.prevalence * (1 - self.right_phase)

    def counts(self, n_judges: int) -> CountLaw:
        """The exact law of the vote count with ``n_judges`` judges (equation 30)."""
        fields = (self.field, self.c / n_judges)
        pmf = [_count_pmf(n_judges, b, h) for b, h in zip(self.beta, fields, strict=True)]
        return CountLaw(np.stack(pmf), self.prevalence)

    def threshold_rule(self, n_judges: int) -> Bools:
        """The rule |M| >= (|m_0| + m_*) / 2 at every count of votes for class 1."""
        M = 2 * np.arange(n_judges + 1) / n_judges - 1
        return np.abs(M) >= (abs(self.hot_mean) + self.cold_mean) / 2

    def glauber(
        self, n_judges: int, n: int, sweeps: int, rng: np.random.Generator
    ) -> SimulatedSample:
        """``n`` items from single-spin Glauber dynamics after ``sweeps`` passes over the judges.

        Started from fair coins. It demonstrates a failure and is no way to sample: in the
        cold class a chain falls into the phase that its start leans to and does not leave it in
        any affordable time, so that the phases come out near 1/2 instead of ``right_phase``.
        """
        labels = draw_labels(self.prevalence, n, rng)
        X = np.where(rng.random((n, n_judges)) < 0.5, 1.0, -1.0)
        beta = np.asarray(self.beta)[labels]
        field = np.asarray([self.field, self.c / n_judges])[labels]
        total = X.sum(axis=1)
        for _ in range(sweeps):
            for j in range(n_judges):
                total_of_others = total - X[:, j]
                up = sigmoid(2 * (beta * total_of_others / n_judges + field))
                X[:, j] = np.where(rng.random(n) < up, 1.0, -1.0)
                total = total_of_others + X[:, j]
        return SimulatedSample((X > 0).astype(np.int8), labels)


def _count_pmf(K: int, beta: float, field: float) -> Floats:
    s = np.arange(K + 1)
    M = 2 * s / K - 1
    log_ways = gammaln(K + 1) - gammaln(s + 1) - gammaln(K - s + 1)
    return softmax(log_ways + beta * K / 2 * M**2 + field * K * M)


def _root(beta: float, field: float, low: float, high: float) -> float:
    """The root of tanh(beta m + field) - m between two points of opposite sign, by bisection."""
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if np.tanh(beta * middle + field) > middle:
            low = middle
        else:
            high = middle
    return (low + high) / 2
