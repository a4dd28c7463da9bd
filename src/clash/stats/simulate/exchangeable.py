"""Judges that only count: rules and risks as functions of the number of votes for class 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.logistic import logit
from clash.stats.simulate.sample import SimulatedSample, draw_labels

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, Index, VoteCodes


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
        pmf_zero, pmf_one = self.pmf
        return float(
            self.prevalence * pmf_one[~says_one].sum()
            + (1 - self.prevalence) * pmf_zero[says_one].sum()
        )

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
        labels = draw_labels(self.prevalence, n, rng)
        counts = np.empty(n, np.intp)
        for y, pmf in enumerate(self.pmf):
            of_class = labels == y
            counts[of_class] = rng.choice(len(pmf), size=int(of_class.sum()), p=pmf)
        return SimulatedCounts(counts, labels)

    def sample(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items: a count by its law, then which judges cast those votes, at random."""
        draws = self.draw(n, rng)
        ranks = rng.random((n, self.n_judges)).argsort(axis=1)
        return SimulatedSample((ranks < draws.counts[:, None]).astype(np.int8), draws.labels)
