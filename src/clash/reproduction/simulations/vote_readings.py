"""What the votes of a simulated panel tell, were there as many items as one likes.

Every model that ``auto`` may use is fitted to the law of a panel's votes itself (or to many items drawn
from it, where it has too many vote vectors), so that hardly any sampling error is left: what a model has
right there is what it can have right, and how far its law is from the votes' says how many items would
show that it is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from clash.stats.latent.candidate_models import candidate_models, class_dependent_models
from clash.stats.latent.cross_validation import fit_all
from clash.stats.latent.factor import fit_exchanged
from clash.stats.latent.fit import joint, vote_share
from clash.stats.latent.patterns import collapse
from clash.stats.logistic import sigmoid
from clash.stats.simulate.panels import all_votes

if TYPE_CHECKING:
    from clash.stats.latent.patterns import Patterns
    from clash.stats.simulate.designs import DesignPanel
    from clash.stats.typing import Floats

MOST_JUDGES_ENUMERATED = 9
"""Judges up to which the law of the votes is enumerated; above, and where votes are missing, it is drawn."""
WEIGHT = 100_000
"""Items that an enumerated law stands for in a fit."""
DRAWS, DRAWS_OF_MANY = 20_000, 4_000
"""Items drawn otherwise, and with more judges than are enumerated."""
TELLING = 2.0
"""Standard errors by which a worse reading must be expected to be behind: 98 panels in 100 show it behind."""
MARGIN = 0.01
"""Share of the items by which a reading must be right less often to be worse, or more often to be better."""
MAJORITY = "majority"


class Telling(Enum):
    """Whether votes say which reading is right."""

    YES = "tell"
    NO = "do not tell"
    EVEN = "even"
    """Nothing to tell: no reading is right more than a point more often than majority."""


@dataclass(frozen=True, slots=True)
class VoteReading:
    """A model of the panel, fitted to the law of its votes.

    Attributes:
        name: the model.
        right: how often its verdicts are right.
        n_params: its free parameters.
        log_likelihood: of each vote vector, shape (n_patterns,); None for majority, which has no law.
    """

    name: str
    right: float
    n_params: int
    log_likelihood: Floats | None


@dataclass(frozen=True, slots=True)
class PanelReadings:
    """All readings of a panel's votes.

    Attributes:
        share: of the items that have each vote vector, shape (n_patterns,).
        readings: majority first.
    """

    share: Floats
    readings: tuple[VoteReading, ...]

    @property
    def best(self) -> VoteReading:
        """The reading whose verdicts are right most often."""
        return max(self.readings, key=lambda reading: reading.right)

    def errors_behind(self, reading: VoteReading, n_items: int) -> float:
        """Standard errors by which a reading is expected to be behind the best on n held-out items.

        To how far its law is from that of the votes come what its parameters cost: fitted to n items, a
        model's held-out log-likelihood is lower by half of 1/n for each, and their errors add as many 1/n to the
        variance of an item's difference (Akaike 1974). Not a number where either has no law.
        """
        if reading.log_likelihood is None or self.best.log_likelihood is None:
            return float("nan")
        lead = self.best.log_likelihood - reading.log_likelihood
        mean = float(self.share @ lead)
        more = reading.n_params - self.best.n_params
        variance = float(self.share @ (lead - mean) ** 2) + abs(more) / n_items
        behind = mean + more / (2 * n_items)
        return behind * (n_items / variance) ** 0.5 if variance else 0.0

    def telling(self, n_items: int) -> Telling:
        """Whether n items are expected to show that every worse reading is wrong.

        The criterion: each reading that is right on a point less than the best is expected to be
        :data:`TELLING` standard errors behind it in the likelihood of n items. Where majority is within
        a point of the best, there is nothing to tell.
        """
        best = self.best
        if best.right - self.readings[0].right <= MARGIN:
            return Telling.EVEN
        worse = [r for r in self.readings[1:] if best.right - r.right > MARGIN]
        is_told_apart = all(self.errors_behind(reading, n_items) >= TELLING for reading in worse)
        return Telling.YES if is_told_apart else Telling.NO


def read_panel(panel: DesignPanel, rng: np.random.Generator) -> PanelReadings:
    """Fit every reading to the law of a panel's votes; the factor model with class and factor exchanged too."""
    patterns, oracle = _law_of_votes(panel, rng)
    fits, _ = fit_all({n: m.fit for n, m in candidate_models(patterns, None).items()}, patterns)
    fits |= fit_all(class_dependent_models(patterns), patterns)[0]
    if "factor" in fits:
        fits["factor, exchanged"] = fit_exchanged(patterns, fits["factor"])
    share = patterns.counts / patterns.weight

    def right(p: Floats) -> float:
        side = np.where(np.abs(p - 0.5) < 1e-9, 0.5, p > 0.5)
        return float(share @ (side * oracle + (1 - side) * (1 - oracle)))

    readings = [VoteReading(MAJORITY, right(vote_share(patterns)), 0, None)]
    for name, fit in fits.items():
        if fit.parameters is None:
            continue
        log_likelihood = np.logaddexp(*joint(fit.parameters, patterns.votes).T)
        is_right = right(fit.pattern_posterior)
        readings.append(VoteReading(name, is_right, fit.n_params, log_likelihood))
    return PanelReadings(share, tuple(readings))


def _law_of_votes(panel: DesignPanel, rng: np.random.Generator) -> tuple[Patterns, Floats]:
    """Vote vectors with their probabilities as counts, and P(truth = 1) of each."""
    sample = panel.sample(DRAWS_OF_MANY, rng)
    n_judges = sample.votes.shape[1]
    if panel.missing or n_judges > MOST_JUDGES_ENUMERATED:
        votes = (
            sample.votes if n_judges > MOST_JUDGES_ENUMERATED else panel.sample(DRAWS, rng).votes
        )
        patterns = collapse(votes)
        counts = patterns.counts
    else:
        patterns = collapse(all_votes(n_judges))
        counts = WEIGHT * np.exp(np.logaddexp(*joint(panel.law, patterns.votes).T))
    log_joint = joint(panel.law, patterns.votes)
    return patterns.with_counts(counts), sigmoid(log_joint[:, 1] - log_joint[:, 0])
