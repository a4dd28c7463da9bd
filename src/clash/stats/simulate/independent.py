"""Judges that err independently given the label: where majority and Dawid-Skene are right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from clash.errors import StatisticsError
from clash.stats.simulate.sample import SimulatedSample, all_votes, draw_labels

if TYPE_CHECKING:
    from clash.stats.typing import Floats


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
