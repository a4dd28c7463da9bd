"""Ising panels by enumeration of every vote vector: exact posteriors, exact samples.

Source: Balasubramanian et al. (2026), equations 1 and 3, appendix C.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.logistic import logit, sigmoid, softmax
from clash.stats.simulate.sample import SimulatedSample, all_votes, draw_labels

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, VoteCodes


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
        pmf_zero, pmf_one = self.pmf()
        return float(
            self.prevalence * pmf_one[~says_one].sum()
            + (1 - self.prevalence) * pmf_zero[says_one].sum()
        )

    def sample(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items, drawn exactly."""
        labels = draw_labels(self.prevalence, n, rng)
        drawn_states = np.empty(n, np.intp)
        for y, pmf in enumerate(self.pmf()):
            of_class = labels == y
            drawn_states[of_class] = rng.choice(len(pmf), size=int(of_class.sum()), p=pmf)
        return SimulatedSample(self.states[drawn_states], labels)
