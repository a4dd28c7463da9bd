"""Judges whose votes decide the label one by one, together, or both.

Source: Zhu and Rao (2026), appendices C.3 and C.4 and tables 22 to 25. The paper names the regimes
and not their coefficients; those here are ours. Three things in its tables narrow them down:

- Both parts add up in log-odds. Table 25's gap at interaction strengths 0.3, 0.5, 0.7 and 1 goes as
  0.06 : 0.30 : 0.72 : 1; if probabilities were mixed it would go as the square of the strength.
- Its XOR is of more than two judges. Isotonic regression on any weighted sum of two votes sees a
  third of their XOR, and of three votes a quarter, so the gaps could be 1/6 and 3/16 at most, for
  rules that never err; table 25 has 0.188. Table 24 fits three judges, table 25 four.
- A joint rule errs about 6 times in 100: the table of six-way parity comes to 0.061 at 512 labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.logistic import sigmoid
from clash.stats.simulate.panels import SimulatedSample

if TYPE_CHECKING:
    from clash.stats.typing import Bools, Floats, VoteCodes

Regime = Literal["additive", "mixed", "parity", "xor", "and"]
InteractionRule = Literal["parity", "and"]
JUDGES = 7
SHARPNESS = 2.75
"""Log-odds of a rule of several judges: wrong once in 17 times."""
WEIGHTS = np.array([1.2, 1.0, 0.8, 0.5, 0.3, 0.0, 0.0])


@dataclass(frozen=True, slots=True)
class Interaction:
    """The log-odds of the label: (1 - strength) a weighted sum, + strength a rule of several judges.

    Attributes:
        rule: parity (an odd number of votes for side 1) or and (all of them).
        of: how many judges, the first, the rule is made by; all where there are fewer.
        strength: gamma, the weight of the rule, 0 to 1.
    """

    rule: InteractionRule
    of: int
    strength: float

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1 or self.of < 1:
            raise StatisticsError(
                "a strength lies in [0, 1], and a rule is made by a judge or more"
            )

    def probability(self, votes: VoteCodes) -> Floats:
        """P(label = 1 | votes), shape (n,), of votes 0 or 1 of up to seven judges."""
        side = 2.0 * votes - 1
        alone = side @ WEIGHTS[: side.shape[1]]
        together = SHARPNESS * (2.0 * self._holds(votes[:, : self.of]) - 1)
        return sigmoid((1 - self.strength) * alone + self.strength * together)

    def _holds(self, votes: VoteCodes) -> Bools:
        odd = votes.sum(axis=1) % 2 == 1
        return np.asarray(odd if self.rule == "parity" else votes.all(axis=1), bool)

    def draw(self, n: int, rng: np.random.Generator) -> SimulatedSample:
        """``n`` items, seven judges whose votes are fair coins."""
        votes = rng.integers(0, 2, (n, JUDGES)).astype(np.int8)
        return self.label(votes, rng)

    def label(self, votes: VoteCodes, rng: np.random.Generator) -> SimulatedSample:
        """Labels for given votes."""
        return SimulatedSample(
            votes, (rng.random(len(votes)) < self.probability(votes)).astype(np.int8)
        )

    @property
    def bayes_risk(self) -> float:
        """The squared error of the best map there is, for votes that are fair coins."""
        grid = np.arange(2**JUDGES)[:, None] >> np.arange(JUDGES) & 1
        p = self.probability(grid.astype(np.int8))
        return float((p * (1 - p)).mean())


def regime(name: Regime) -> Interaction:
    """A regime of tables 22 to 24 by its name."""
    return {
        "additive": Interaction("parity", 6, 0.0),
        "mixed": Interaction("parity", 6, 0.5),
        "parity": Interaction("parity", 6, 1.0),
        "xor": Interaction("parity", 3, 0.7),
        "and": Interaction("and", 3, 0.6),
    }[name]


@dataclass(frozen=True, slots=True)
class ResampledVotes:
    """Votes of real panels with made labels.

    Attributes:
        votes: shape (n, J), in [0, 1]; 0.5 is a tie.
        labels: int8 of shape (n,), 0 or 1.
    """

    votes: Floats
    labels: VoteCodes


@dataclass(frozen=True, slots=True)
class ResampledPanels:
    """Votes drawn from those of real panels, labels made by a rule (appendix C.4).

    Attributes:
        panels: of each panel, votes in [0, 1] (0.5 a tie), shape (n, J); the same J for all. Each
            panel gives the same number of rows, whatever its size.
        law: makes the label; a vote that is not for side 1 counts as one for side 0.
    """

    panels: tuple[Floats, ...]
    law: Interaction

    def __post_init__(self) -> None:
        shapes = {panel.shape[1:] for panel in self.panels}
        if len(shapes) != 1 or any(panel.size == 0 for panel in self.panels):
            raise StatisticsError("panels to resample have as many judges each, and votes")

    def draw(self, n: int, rng: np.random.Generator) -> ResampledVotes:
        """``n`` rows of votes as they were cast, with labels."""
        panel_of_row = rng.integers(0, len(self.panels), n)
        rows = [panel[rng.integers(0, len(panel), n)] for panel in self.panels]
        votes = np.choose(panel_of_row[:, None], rows)
        return ResampledVotes(votes, self.law.label((votes > 0.5).astype(np.int8), rng).labels)

    @property
    def bayes_risk(self) -> float:
        """The squared error of the best map there is."""
        of = [self.law.probability((panel > 0.5).astype(np.int8)) for panel in self.panels]
        return float(np.mean([(p * (1 - p)).mean() for p in of]))
