"""Errors of methods that learn a panel's distribution from unlabelled votes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.reproduction.simulations.experiment import PaperComparison, SampleMean
from clash.stats.latent.dawid_skene import dawid_skene
from clash.stats.latent.ising import ising_class, ising_shared
from clash.stats.latent.majority import majority
from clash.stats.latent.patterns import collapse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.simulate import SimulatedSample
    from clash.stats.simulate.exchangeable import CountLaw

METHODS: dict[str, Callable[[Patterns], LatentFit]] = {
    "majority": majority,
    "Dawid-Skene": dawid_skene,
    "Ising, shared couplings": ising_shared,
    "Ising, couplings by class": ising_class,
}


def fitted_rows(
    where: str, samples: Sequence[SimulatedSample], law: CountLaw
) -> list[PaperComparison]:
    """The risk of each method on votes it was fitted to, and of the best rule on all votes."""
    rows = [
        _row(f"{where}: risk of {name}, fitted without labels", method, samples)
        for name, method in METHODS.items()
    ]
    return [
        *rows,
        PaperComparison(f"{where}: risk of the best possible rule", law.risk(law.bayes())),
    ]


def _row(
    quantity: str, method: Callable[[Patterns], LatentFit], samples: Sequence[SimulatedSample]
) -> PaperComparison:
    risks = []
    for sample in samples:
        says_one = method(collapse(sample.votes)).item_posterior >= 0.5
        risks.append((says_one != sample.labels).mean())
    mean = SampleMean.of(risks)
    return PaperComparison(quantity, mean.value, se=mean.se)
