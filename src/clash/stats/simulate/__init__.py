"""Panels of judges with a known truth: samplers, and exact risks where they can be had.

``independent`` judges that err alone, ``ising`` judges of any couplings, ``curie_weiss`` and
``latent_factor``, the two mechanisms for which Balasubramanian, Podkopaev and Kasiviswanathan
(2026), *Dependence-aware label aggregation for LLM-as-a-judge via Ising models*, prove that
assuming independence costs accuracy whatever the number of judges.
"""

from clash.stats.simulate.panels import (
    IndependentPanel,
    LatentFactor,
    SimulatedSample,
    pairwise_interactions,
)
from clash.stats.simulate.spins import CurieWeiss, IsingPanel

__all__ = [
    "CurieWeiss",
    "IndependentPanel",
    "IsingPanel",
    "LatentFactor",
    "SimulatedSample",
    "pairwise_interactions",
]
