"""Panels of judges with a known truth: samplers, and exact risks where they can be had.

``independent`` judges that err alone, ``ising`` judges of any couplings, ``curie_weiss`` and
``latent_factor``, the two mechanisms for which Balasubramanian, Podkopaev and Kasiviswanathan
(2026), *Dependence-aware label aggregation for LLM-as-a-judge via Ising models*, prove that
assuming independence costs accuracy whatever the number of judges.
"""

from clash.stats.simulate.curie_weiss import CurieWeiss
from clash.stats.simulate.independent import IndependentPanel
from clash.stats.simulate.ising import IsingPanel
from clash.stats.simulate.latent_factor import LatentFactor, pairwise_interactions
from clash.stats.simulate.sample import SimulatedSample

__all__ = [
    "CurieWeiss",
    "IndependentPanel",
    "IsingPanel",
    "LatentFactor",
    "SimulatedSample",
    "pairwise_interactions",
]
