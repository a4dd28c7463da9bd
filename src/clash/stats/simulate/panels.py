"""Simulated panels of a known truth: independent judges, judges that only count, a shared factor.

Judges that err independently given the label are where majority and Dawid-Skene are right. Judges of
one kind are described by the number of their votes for class 1, of which rules and risks are then
functions. Judges that share a latent factor of the item, such as its difficulty or its length, err
together (Balasubramanian et al. 2026, proposition 1, theorem 3, simulation setup 2 of appendix G).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, ndtr

from clash.errors import StatisticsError
from clash.stats.logistic import logit, sigmoid

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index, VoteCodes

MOST_JUDGES = 20


@dataclass(frozen=True, slots=True)
class SimulatedSample:
    """Simulated items.

    Attributes:
        votes: int8 of shape (n_items, n_judges), 0 or 1.
        labels: int8 of shape (n_items,), the truth, 0 or 1.
    """

    votes: VoteCodes
    labels: VoteCodes


def draw_labels(prevalence: float, n: int, rng: np.random.Generator) -> VoteCodes:
    """``n`` labels, each 1 with probability ``prevalence``."""
    if not 0 < prevalence < 1:
        raise StatisticsError(f"prevalence must lie between 0 and 1, not {prevalence}")
    if n < 1:
        raise StatisticsError(f"a sample needs at least one item, not {n}")
    return (rng.random(n) < prevalence).astype(np.int8)


def draw_states(
    pmf: Floats, prevalence: float, n: int, rng: np.random.Generator
) -> tuple[Index, VoteCodes]:
    """States (n,), by their laws in class 0 and class 1, shape (2, S), and labels (n,)."""
    labels = draw_labels(prevalence, n, rng)
    states = np.empty(n, np.intp)
    for y, law in enumerate(pmf):
        of_class = labels == y
        states[of_class] = rng.choice(len(law), size=int(of_class.sum()), p=law)
    return states, labels


def risk_of(pmf: Floats, prevalence: float, says_one: Bools) -> float:
    """P(a rule errs) that decides by the state, given the laws of the states, shape (2, S)."""
    pmf_zero, pmf_one = pmf
    return float(
        prevalence * pmf_one[~says_one].sum() + (1 - prevalence) * pmf_zero[says_one].sum()
    )


def all_votes(n_judges: int) -> VoteCodes:
    """Every vote vector of ``n_judges`` judges, shape (2**n_judges, n_judges), judge 0 slowest.

    Raises:
        StatisticsError: more judges than can be enumerated.
    """
    if not 1 <= n_judges <= MOST_JUDGES:
        raise StatisticsError(f"can enumerate 1 to {MOST_JUDGES} judges, not {n_judges}")
    states = np.arange(2**n_judges)
    return (states[:, None] >> np.arange(n_judges)[::-1] & 1).astype(np.int8)


@dataclass(frozen=True)
class IndependentPanel:
    """Judge j votes 1 with probability sensitivity[j] if the truth is 1, else 1 - specificity[j].

    Attributes:
        sensitivity: shape (n_judges,).
        specificity: shape (n_judges,).
        prevalence: P(label = 1).

    Source: Balasubramanian et al. (2026), appendix D.1.
    """

    sensitivity: Floats
    specificity: Floats
    prevalence: float = 0.5

    def __post_init__(self) -> None:
        rates = np.concatenate([self.sensitivity, self.specificity])
        if self.sensitivity.shape != self.specificity.shape or self.sensitivity.ndim != 1:
            raise StatisticsError("one sensitivity and one specificity per judge")
        if not ((rates >= 0) & (rates <= 1)).all():
            raise StatisticsError("sensitivities and specificities lie between 0 and 1")

    @classmethod
    def of(
        cls, sensitivity: npt.ArrayLike, specificity: npt.ArrayLike, prevalence: float = 0.5
    ) -> IndependentPanel:
        """A panel from plain lists."""
        return cls(
            np.asarray(sensitivity, dtype=np.float64),
            np.asarray(specificity, dtype=np.float64),
            prevalence,
        )

    def pmf(self) -> Floats:
        """P(J|y) for every vote vector of :func:`all_votes`, shape (2, 2**n_judges)."""
        J = all_votes(len(self.sensitivity))
        rates = np.stack([1 - self.specificity, self.sensitivity])
        return np.stack([np.prod(np.where(J == 1, q, 1 - q), axis=1) for q in rates])

    def bayes_accuracy(self) -> float:
        """The accuracy of the best rule there is: nobody who reads the votes can beat it."""
        pmf_zero, pmf_one = self.pmf()
        return float(np.maximum(self.prevalence * pmf_one, (1 - self.prevalence) * pmf_zero).sum())

    def majority_accuracy(self, tied: float = 0.5) -> float:
        """The accuracy of the uniform majority.

        Args:
            tied: how often a tied vote is read as class 1. 1/2 is a fair coin.
        """
        J = all_votes(len(self.sensitivity))
        lead = 2 * J.sum(axis=1) - J.shape[1]
        says_one = np.where(lead == 0, tied, lead > 0)
        pmf_zero, pmf_one = self.pmf()
        right = self.prevalence * pmf_one * says_one + (1 - self.prevalence) * pmf_zero * (
            1 - says_one
        )
        return float(right.sum())

    def sample(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items."""
        labels = draw_labels(self.prevalence, n, rng)
        rates = np.where(labels[:, None] == 1, self.sensitivity, 1 - self.specificity)
        return SimulatedSample((rng.random(rates.shape) < rates).astype(np.int8), labels)


@dataclass(frozen=True, slots=True)
class SimulatedCounts:
    """Simulated items, by their number of votes for class 1.

    Attributes:
        counts: shape (n_items,).
        labels: int8 of shape (n_items,), the truth.
    """

    counts: Index
    labels: VoteCodes


@dataclass(frozen=True)
class CountLaw:
    """The law of the number of votes for class 1 among exchangeable judges.

    Attributes:
        pmf: P(S = s | y), shape (2, n_judges + 1).
        prevalence: P(label = 1).
    """

    pmf: Floats
    prevalence: float

    @property
    def n_judges(self) -> int:
        """Judges on the panel."""
        return int(self.pmf.shape[1]) - 1

    def marginals(self) -> Floats:
        """P(one judge votes 1 | y), shape (2,)."""
        return np.asarray(self.pmf @ np.arange(self.n_judges + 1) / self.n_judges)

    def risk(self, says_one: Bools) -> float:
        """P(the rule errs), for a rule given by its decision at every count."""
        return risk_of(self.pmf, self.prevalence, says_one)

    def bayes(self) -> Bools:
        """The rule with the least risk: where P(y = 1 | S) is at least one half."""
        return np.asarray(self.prevalence * self.pmf[1] >= (1 - self.prevalence) * self.pmf[0])

    def if_independent(self) -> Bools:
        """The rule of one who knows the true marginals and takes judges for independent."""
        s = np.arange(self.n_judges + 1)
        q0, q1 = self.marginals()
        evidence = s * np.log(q1 / q0) + (self.n_judges - s) * np.log((1 - q1) / (1 - q0))
        return np.asarray(logit(self.prevalence) + evidence >= 0)

    def draw(self, n: int, rng: np.random.Generator) -> SimulatedCounts:
        """The labels and vote counts of ``n`` items: all that a rule on counts needs."""
        return SimulatedCounts(*draw_states(self.pmf, self.prevalence, n, rng))

    def sample(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items: a count by its law, then which judges cast those votes, at random."""
        draws = self.draw(n, rng)
        ranks = rng.random((n, self.n_judges)).argsort(axis=1)
        return SimulatedSample((ranks < draws.counts[:, None]).astype(np.int8), draws.labels)


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
