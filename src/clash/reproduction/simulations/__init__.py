"""The published simulations, rerun: a function per name, from seed and replications to findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.reproduction.simulations.agreeing_panels import curie_weiss, zero_field
from clash.reproduction.simulations.design_study import designs
from clash.reproduction.simulations.finite_calibration import (
    aggregator_regimes,
    calibration_growth,
    interaction_strength,
    regime_map,
)
from clash.reproduction.simulations.learned_weights import independent
from clash.reproduction.simulations.semi_real import semi_real
from clash.reproduction.simulations.shared_factor import latent_factor, weak_factor
from clash.reproduction.simulations.structured_tests import hypotheses
from clash.reproduction.simulations.three_judges import three_judges
from clash.reproduction.simulations.training_sweep import simulated_sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from clash.reproduction.simulations.experiment import Simulation


@dataclass(frozen=True)
class Experiment:
    """A simulation that can be rerun.

    Attributes:
        shows: what, in a line.
        source: where it was published.
        run: from a seed and replications; those on votes take the panels that a user brings too.
        replications: how many are enough for a first look.
        spreads: its replications are tasks that a cluster can share; false where it is exact.
    """

    shows: str
    source: str
    run: Callable[..., Simulation]
    replications: int
    spreads: bool = True


EXPERIMENTS = {
    "three-judges": Experiment(
        "three judges for whom assuming independence flips a sure answer",
        "appendix C",
        three_judges,
        1,
        spreads=False,
    ),
    "independent": Experiment(
        "independent judges: uniform majority against learned weights",
        "tables 3 and 4",
        independent,
        40,
    ),
    "zero-field": Experiment(
        "panels whose judges alone are coins and together tell all",
        "theorem 1",
        zero_field,
        5,
    ),
    "curie-weiss": Experiment(
        "panels that now and then agree on the wrong side",
        "theorem 2, figure 4",
        curie_weiss,
        20,
    ),
    "latent-factor": Experiment(
        "judges that share a latent factor of the item",
        "theorem 3, figure 5",
        latent_factor,
        20,
    ),
    "calibration-growth": Experiment(
        "joint tables against stackers as labels grow",
        "finite calibration, table 22",
        calibration_growth,
        10,
    ),
    "aggregator-regimes": Experiment(
        "which map from votes to labels wins in which regime",
        "finite calibration, table 24",
        aggregator_regimes,
        10,
    ),
    "interaction-strength": Experiment(
        "joint tables against stackers as two judges interact more",
        "finite calibration, table 25",
        interaction_strength,
        10,
    ),
    "regime-map": Experiment(
        "who wins at which prefix and how many labels",
        "finite calibration, corollary 1",
        regime_map,
        10,
    ),
    "sweep": Experiment(
        "Ising, factor and independence models by training items and judges",
        "the design of figure 3, simulated",
        simulated_sweep,
        5,
    ),
    "hypotheses": Experiment(
        "size and power of the tests of appendix B: families, equals, classes",
        "appendix B",
        hypotheses,
        20,
    ),
    "weak-factor": Experiment(
        "a weak factor looks like couplings of rank one",
        "proposition 1",
        weak_factor,
        1,
        spreads=False,
    ),
    "designs": Experiment(
        "auto against majority, Dawid-Skene and the best possible rule on twelve kinds of panels",
        "our own",
        designs,
        3,
    ),
}
ON_VOTES = {
    "semi-real": Experiment(
        "joint tables against stackers on patterns of real panels (--votes)",
        "finite calibration, table 23",
        semi_real,
        10,
    ),
}
