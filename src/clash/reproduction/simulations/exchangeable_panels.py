"""What figures 4 and 5 share: risks of rules on a panel of judges that are all alike.

Exact by the law of the number of votes, by sampling from it, and of methods that learn it from
unlabelled votes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.analysis.tasks import run_tasks
from clash.reproduction.simulations.experiment import (
    CurvePlot,
    PaperComparison,
    RiskCurve,
    SampleMean,
)
from clash.stats.latent.dawid_skene import dawid_skene
from clash.stats.latent.ising import ising_class, ising_shared
from clash.stats.latent.patterns import collapse
from clash.stats.latent.vote_counting import majority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np

    from clash.stats.latent.fit import LatentFit
    from clash.stats.latent.patterns import Patterns
    from clash.stats.simulate.panels import CountLaw, SimulatedSample
    from clash.stats.typing import Bools

N_ITEMS = 1000
FITTED_SIZE = 7
"""Judges of the panels that methods are fitted to."""
METHODS: dict[str, Callable[[Patterns], LatentFit]] = {
    "majority": majority,
    "Dawid-Skene": dawid_skene,
    "Ising, shared couplings": ising_shared,
    "Ising, couplings by class": ising_class,
}


def excess_risk(law: CountLaw) -> float:
    """Risk of the independence rule minus that of Bayes' rule, exact."""
    return law.risk(law.if_independent()) - law.risk(law.bayes())


def exact_curve(
    name: str, laws: Sequence[CountLaw], rule: Callable[[CountLaw], Bools]
) -> RiskCurve:
    """The exact risk of a rule by number of judges; a rule says by count whether it is class 1."""
    sizes = tuple(law.n_judges for law in laws)
    return RiskCurve(name, sizes, tuple(law.risk(rule(law)) for law in laws))


def curves_by_judges(
    name: str, panels: Mapping[str, tuple[RiskCurve, ...]], y_label: str = "risk"
) -> CurvePlot:
    """Curves by number of judges, a panel for each title."""
    return CurvePlot(name, tuple(panels), tuple(panels.values()), "judges", y_label, log_x=True)


def sampled_curve(
    name: str, laws: Sequence[CountLaw], replications: int, rng: np.random.Generator
) -> RiskCurve:
    """The risk of the independence rule by sampling, with its standard error, by judges."""
    means = []
    for law in laws:
        rule = law.if_independent()
        draws = [law.draw(N_ITEMS, rng) for _ in range(replications)]
        means.append(
            SampleMean.of([(rule[sample.counts] != sample.labels).mean() for sample in draws])
        )
    return RiskCurve(
        name,
        tuple(law.n_judges for law in laws),
        tuple(mean.value for mean in means),
        tuple(mean.se for mean in means),
    )


def fitted_rows(
    name: str, law: CountLaw, replications: int, rng: np.random.Generator
) -> list[PaperComparison]:
    """The risk of each method on votes it was fitted to, and of the best rule on all votes."""
    samples = [law.sample(N_ITEMS, rng) for _ in range(min(replications, 10))]
    where = f"{name}, {law.n_judges} judges: risk of"
    rows = [
        _row(f"{where} {title}, fitted without labels", method, samples)
        for title, method in METHODS.items()
    ]
    return [*rows, PaperComparison(f"{where} the best possible rule", law.risk(law.bayes()))]


def _row(
    quantity: str, method: Callable[[Patterns], LatentFit], samples: Sequence[SimulatedSample]
) -> PaperComparison:
    return PaperComparison.of(quantity, SampleMean.of(list(run_tasks(_risk, method, samples))))


def _risk(method: Callable[[Patterns], LatentFit], sample: SimulatedSample) -> float:
    says_one = method(collapse(sample.votes)).item_posterior >= 0.5
    return float((says_one != sample.labels).mean())
