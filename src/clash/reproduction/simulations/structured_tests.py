"""Appendix B: how often the tests of structured hypotheses reject what is true, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.tasks import run_tasks
from clash.errors import StatisticsError
from clash.reproduction.simulations.experiment import PaperComparison, Simulation
from clash.stats.dependence.hypotheses import (
    classes_alike,
    exchangeable,
    families_independent,
    score_test,
)
from clash.stats.intervals import wilson
from clash.stats.latent.dawid_skene import dawid_skene
from clash.stats.latent.patterns import collapse
from clash.stats.simulate.spins import IsingPanel

if TYPE_CHECKING:
    from clash.stats.dependence.hypotheses import CouplingHypothesis

LEVEL = 0.05
FAMILIES = np.array([0, 0, 0, 1, 1])
SETTINGS = (("labels", 700), ("no labels", 3000))
"""What is known of the truth, and how many items."""
HYPOTHESES = {
    "families": families_independent(FAMILIES),
    "equals": exchangeable(FAMILIES),
    "classes": classes_alike(len(FAMILIES)),
}
BREAKS: dict[str, tuple[float, ...]] = {
    "families": (0.3, 0.6, 0.9),
    "equals": (0.6, 1.2, 1.8),
    "classes": (0.5, 1.0, 1.5),
}
"""By how much each hypothesis is broken: the coupling across families; what one pair has beyond the
others of its family; what couplings of class 1 have beyond those of class 0."""


def family_panel(*, cross: float = 0.0, uneven: float = 0.0, by_class: float = 0.0) -> IsingPanel:
    """Three and two judges of two families, coupled by 1 within each; all three hypotheses hold.

    Args:
        cross: coupling between judges of different families; breaks family independence.
        uneven: what the first pair has beyond the others; breaks exchangeability.
        by_class: what class 1 has beyond class 0; breaks W0 = W1.
    """
    n_judges = len(FAMILIES)
    couplings_of_both = np.where(FAMILIES[:, None] == FAMILIES, 1.0, cross) * (1 - np.eye(n_judges))
    couplings_of_both[0, 1] = couplings_of_both[1, 0] = 1 + uneven
    couplings = np.stack(
        [couplings_of_both, couplings_of_both + by_class * (couplings_of_both > 0)]
    )
    lean = np.array([-1.2, 1.2])[:, None]
    return IsingPanel(lean - couplings.sum(axis=2) / 2, couplings, 0.5)


def hypotheses(seed: int, replications: int) -> Simulation:
    """Rejections at 5%: of true hypotheses (size), and of false ones as they are broken (power)."""
    rows = []
    for truth, n_items in SETTINGS:
        for number, (name, hypothesis) in enumerate(HYPOTHESES.items()):
            start = [seed, n_items, number]
            rows.append(_row(hypothesis, truth, n_items, "true", {}, replications, [*start, 0]))
            for step, strength in enumerate(BREAKS[name], start=1):
                broken = {_KEYWORDS[name]: strength}
                label = f"broken by {strength:g}"
                rows.append(
                    _row(hypothesis, truth, n_items, label, broken, replications, [*start, step])
                )
    return Simulation(
        "hypotheses",
        f"Share of panels on which a hypothesis is rejected at {LEVEL:.0%}",
        "appendix B",
        {
            "judges": "5, families of 3 and 2, coupled by 1 within each",
            "items": ", ".join(f"{n} with {truth}" for truth, n in SETTINGS),
            "panels of each row": str(replications),
        },
        tuple(rows),
        _findings(rows, replications),
        seed,
        replications,
    )


_KEYWORDS = {"families": "cross", "equals": "uneven", "classes": "by_class"}


def _row(
    hypothesis: CouplingHypothesis,
    truth: str,
    n_items: int,
    label: str,
    broken: dict[str, float],
    replications: int,
    seed: list[int],
) -> PaperComparison:
    """The share rejected; panels on which the test is refused count as not rejected, and are noted."""
    setting = hypothesis, truth, n_items, broken
    seeds = [[*seed, r] for r in range(replications)]
    is_rejected = list(run_tasks(_is_rejected, setting, seeds))
    n_refused = is_rejected.count(None)
    share = is_rejected.count(True) / replications
    is_true = not broken
    # The error of a true 5%, since a share of 0 would have none.
    rate = LEVEL if is_true else min(max(share, 1 / replications), 1 - 1 / replications)
    return PaperComparison(
        f"{hypothesis.name}, {label}, {n_items} items with {truth}",
        share,
        LEVEL if is_true else None,
        "nominal level" if is_true else "",
        (rate * (1 - rate) / replications) ** 0.5,
        note=f"refused on {n_refused}" if n_refused else "",
    )


def _is_rejected(
    setting: tuple[CouplingHypothesis, str, int, dict[str, float]], seed: list[int]
) -> bool | None:
    """Whether the test rejects on one panel; null where it is refused."""
    hypothesis, truth, n_items, broken = setting
    rng = np.random.default_rng(seed)
    sample = family_panel(**broken).sample(n_items, rng)
    patterns = collapse(sample.votes, labels=sample.labels if truth == "labels" else None)
    p = (
        patterns.labels.astype(float)
        if truth == "labels"
        else dawid_skene(patterns).pattern_posterior
    )
    try:
        return bool(score_test(hypothesis, patterns, p, rng).p < LEVEL)
    except StatisticsError:
        return None


def _findings(rows: list[PaperComparison], replications: int) -> tuple[str, ...]:
    sizes = [row for row in rows if row.paper is not None]
    times = round(sum(row.ours for row in sizes) * replications)
    n = len(sizes) * replications
    interval = wilson(times, n)
    refusals = [f"{row.quantity}: {row.note}" for row in rows if row.note]
    return (
        f"True hypotheses: rejected on {times} of {n} panels, {times / n:.1%}"
        f" [{interval.low:.1%}, {interval.high:.1%}] at a nominal {LEVEL:.0%}.",
        "Without labels the tests see less for the same number of items: the hidden truth is estimated"
        " along with the couplings.",
        *refusals,
    )
