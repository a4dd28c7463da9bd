"""Panels with a known dependence, for the tests of how it is measured."""

from __future__ import annotations

import numpy as np

from clash.stats.latent.patterns import Patterns, collapse
from clash.stats.simulate.panels import IndependentPanel, SimulatedSample
from clash.stats.simulate.spins import IsingPanel

FAMILIES = np.array([0, 0, 0, 1, 1])


def independent(n_judges: int) -> IndependentPanel:
    """Judges of different skill and lean that err on their own."""
    return IndependentPanel.of(
        np.linspace(0.65, 0.85, n_judges), np.linspace(0.8, 0.6, n_judges), 0.45
    )


def families(*, cross: float = 0.0, uneven: float = 0.0, by_class: float = 0.0) -> IsingPanel:
    """Five judges of two families, coupled by 1 within each, votes balanced."""
    is_same = FAMILIES[:, None] == FAMILIES
    shared_couplings = np.where(is_same, 1.0, cross) * (1 - np.eye(5))
    shared_couplings[0, 1] = shared_couplings[1, 0] = 1 + uneven
    by_both_classes = np.stack(
        [shared_couplings, shared_couplings + by_class * (shared_couplings > 0)]
    )
    lean = np.array([-1.2, 1.2])[:, None]
    return IsingPanel(lean - by_both_classes.sum(axis=2) / 2, by_both_classes, 0.5)


def with_copies(copies: int, n_others: int, n: int, rng: np.random.Generator) -> SimulatedSample:
    """``copies`` noisy copies of one judge, then ``others`` that err on their own."""
    labels = (rng.random(n) < 0.5).astype(np.int8)
    original = np.where(rng.random(n) < 0.7, labels, 1 - labels)
    near = np.where(rng.random((copies, n)) < 0.9, original, 1 - original)
    own_indices = np.where(rng.random((n_others, n)) < 0.75, labels, 1 - labels)
    return SimulatedSample(np.vstack([near, own_indices]).T.astype(np.int8), labels)


def patterns(sample: SimulatedSample, *, with_labels: bool, times: int = 1) -> Patterns:
    """The items of a sample, each as often as asked for, with or without their labels."""
    votes = np.repeat(sample.votes, times, axis=0)
    labels = np.repeat(sample.labels, times)
    return collapse(votes, labels=labels if with_labels else None)
