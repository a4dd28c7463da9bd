"""Judges whose votes decide the label one by one, together, or both.

Source: Zhu and Rao (2026), appendix C.3 and tables 22, 24 and 25. The paper names the regimes and
not their coefficients; those here are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from clash.errors import StatisticsError
from clash.stats.simulate.sample import Codes, Floats, Sample, sigmoid

Regime = Literal["additive", "mixed", "parity", "xor", "and"]
JUDGES = 7
NOISE = 0.06
"""Share of labels that a rule of several judges gets wrong."""
WEIGHTS = np.array([1.1, 0.9, 0.7, 0.5, 0.4, 0.3, 0.2])


@dataclass(frozen=True, slots=True)
class Interaction:
    """Votes are fair coins; P(label = 1 | votes) is (1 - strength) additive + strength joint.

    Attributes:
        joint: the rule that several judges make together: parity of six, xor or and of two.
        strength: gamma, the weight of that rule, 0 to 1.
        noise: how often the rule is wrong.
    """

    joint: Literal["parity", "xor", "and"]
    strength: float
    noise: float = NOISE

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= 1 or not 0 <= self.noise < 0.5:
            raise StatisticsError("a strength lies in [0, 1], a noise below a half")

    def probability(self, votes: Codes) -> Floats:
        """P(label = 1 | votes), shape (n,)."""
        side = 2.0 * votes - 1
        additive = sigmoid(side @ WEIGHTS)
        joint = self.noise + (1 - 2 * self.noise) * self._rule(votes)
        return np.asarray((1 - self.strength) * additive + self.strength * joint)

    def _rule(self, votes: Codes) -> Floats:
        match self.joint:
            case "parity":
                return np.asarray(votes[:, :6].sum(axis=1) % 2, float)
            case "xor":
                return np.asarray(votes[:, 0] != votes[:, 1], float)
            case "and":
                return np.asarray(votes[:, 0] & votes[:, 1], float)

    def draw(self, n: int, rng: np.random.Generator) -> Sample:
        """``n`` items, seven judges."""
        votes = rng.integers(0, 2, (n, JUDGES)).astype(np.int8)
        return Sample(votes, (rng.random(n) < self.probability(votes)).astype(np.int8))

    @property
    def bayes_risk(self) -> float:
        """The squared error of the best map there is."""
        grid = np.arange(2**JUDGES)[:, None] >> np.arange(JUDGES) & 1
        p = self.probability(grid.astype(np.int8))
        return float((p * (1 - p)).mean())


def regime(name: Regime) -> Interaction:
    """A regime of tables 22 and 24 by its name."""
    return {
        "additive": Interaction("parity", 0.0),
        "mixed": Interaction("parity", 0.5),
        "parity": Interaction("parity", 1.0),
        "xor": Interaction("xor", 0.7),
        "and": Interaction("and", 0.7),
    }[name]
