"""Blocs and near-copies are found where they were planted, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from clash.stats.dependence.blocs import Bloc, class_rates, find_blocs
from clash.stats.dependence.residual_correlation import (
    pooled_replicates,
    resampled_counts,
    residual_correlations,
)
from clash.stats.latent.patterns import MISSING, Patterns, collapse
from clash.stats.simulate.panels import SimulatedSample
from stats.dependence import panels


def blocs(patterns: Patterns, seed: int = 0) -> tuple[Bloc, ...]:
    p = patterns.labels.astype(float)
    n = patterns.n_items
    counts = resampled_counts(patterns, np.arange(n), 200, np.random.default_rng(seed))
    return find_blocs(
        residual_correlations(patterns, p).within_classes,
        pooled_replicates(patterns, p, counts),
        class_rates(patterns, p, patterns.counts[None])[0],
        class_rates(patterns, p, counts),
    )


def test_near_copies_are_found_and_weighed() -> None:
    """Four noisy copies among seven judges: one bloc, worth m / (1 + (m - 1) r)."""
    sample = panels.with_copies(4, 3, 1500, np.random.default_rng(0))
    (bloc,) = blocs(panels.patterns(sample, with_labels=True))
    assert bloc.judges == (0, 1, 2, 3)
    assert bloc.near_copies
    # Copies agree with the original 90% of the time: r = 0.64 of its variance, less the truth's.
    assert bloc.within == pytest.approx(0.58, abs=0.06)
    assert bloc.outside == pytest.approx(0, abs=0.05)
    assert bloc.worth == pytest.approx(4 / (1 + 3 * bloc.within))


def test_independent_judges_make_no_bloc() -> None:
    """One panel in twenty has any: the threshold allows for the search over the tree."""
    rng = np.random.default_rng(1)
    bloc_lists = [
        blocs(panels.patterns(panels.independent(6).sample(400, rng), with_labels=True), run)
        for run in range(60)
    ]
    assert sum(bool(record) for record in bloc_lists) <= 7


def test_a_bloc_of_unequal_judges_is_no_set_of_copies() -> None:
    """Three judges that share errors, one of them right far more often."""
    rng = np.random.default_rng(2)
    sample = panels.with_copies(3, 3, 2000, rng)
    better = rng.random(2000) < 0.5
    sample.votes[better, 0] = sample.labels[better]
    bloc = next(b for b in blocs(panels.patterns(sample, with_labels=True)) if len(b.judges) == 3)
    assert bloc.judges == (0, 1, 2)
    assert not bloc.near_copies


def test_interchangeable_judges_that_hardly_correlate_are_no_copies() -> None:
    """A weak common factor makes a bloc, but each member is worth most of a judge."""
    rng = np.random.default_rng(3)
    labels = (rng.random(6000) < 0.5).astype(np.int8)
    is_moved = rng.random(6000) < 0.15
    wrong = (rng.random((6000, 6)) < 0.25) | (is_moved[:, None] & (np.arange(6) < 3))
    votes = np.where(wrong, 1 - labels[:, None], labels[:, None])
    bloc_list = blocs(
        panels.patterns(SimulatedSample(votes.astype(np.int8), labels), with_labels=True)
    )
    assert bloc_list[0].judges == (0, 1, 2)
    assert not bloc_list[0].near_copies


def test_judges_that_never_met_neither_make_nor_break_a_bloc() -> None:
    sample = panels.with_copies(3, 3, 1500, np.random.default_rng(4))
    sample.votes[::2, 0] = MISSING
    sample.votes[1::2, 5] = MISSING
    bloc_list = blocs(collapse(sample.votes, labels=sample.labels))
    assert [bloc.judges for bloc in bloc_list] == [(0, 1, 2)]


def test_names_of_judges_do_not_matter() -> None:
    sample = panels.with_copies(3, 3, 1500, np.random.default_rng(6))
    order = np.array([5, 2, 0, 4, 1, 3])
    (bloc,) = blocs(collapse(sample.votes[:, order], labels=sample.labels))
    assert {int(order[judge]) for judge in bloc.judges} == {0, 1, 2}


def test_two_judges_are_no_panel_to_divide() -> None:
    matrix_of_ones = np.ones((2, 2))
    assert find_blocs(matrix_of_ones, np.ones((5, 2, 2)), matrix_of_ones, np.ones((5, 2, 2))) == ()
