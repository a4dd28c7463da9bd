"""How many items, runs or judges a question needs, and what a given number can show."""

from clash.stats.power.comparisons import (
    Comparison,
    detectable_paired,
    detectable_two_proportions,
    power_paired,
    power_two_proportions,
    required_paired,
    required_two_proportions,
)
from clash.stats.power.design import Clustering, Demand, ErrorRates
from clash.stats.power.precision import (
    concordance_items,
    kappa_items,
    kappa_variance,
    retest_items,
)

__all__ = [
    "Clustering",
    "Comparison",
    "Demand",
    "ErrorRates",
    "concordance_items",
    "detectable_paired",
    "detectable_two_proportions",
    "kappa_items",
    "kappa_variance",
    "power_paired",
    "power_two_proportions",
    "required_paired",
    "required_two_proportions",
    "retest_items",
]
