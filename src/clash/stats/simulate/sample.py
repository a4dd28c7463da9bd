"""What all simulated panels share: their sample, their labels, and the vote vectors there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError

if TYPE_CHECKING:
    from clash.stats.typing import VoteCodes


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


def all_votes(n_judges: int) -> VoteCodes:
    """Every vote vector of ``n_judges`` judges, shape (2**n_judges, n_judges), judge 0 slowest.

    Raises:
        StatisticsError: more judges than can be enumerated.
    """
    if not 1 <= n_judges <= MOST_JUDGES:
        raise StatisticsError(f"can enumerate 1 to {MOST_JUDGES} judges, not {n_judges}")
    states = np.arange(2**n_judges)
    return (states[:, None] >> np.arange(n_judges)[::-1] & 1).astype(np.int8)
