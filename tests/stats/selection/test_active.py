"""What to label next: once a source, where judges disagree, and better than at random."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.active import RIDGE, budget_curve, label_design, plan_labels
from clash.stats.selection.anchored import FREE
from clash.stats.selection.panel import PanelVotes

RNG = np.random.default_rng


def panel_of(n=400, seed=0, copies=1, with_labels=True):
    rng = RNG(seed)
    y = rng.random(n) < 0.5
    votes = np.where(rng.random((n, 4)) < [0.9, 0.8, 0.7, 0.45], y[:, None], ~y[:, None])
    labels = np.where(with_labels, y, np.nan)
    group = np.repeat(np.arange(n), copies)
    return PanelVotes.of(
        np.repeat(votes, copies, axis=0) * 1.0, np.repeat(labels, copies) * 1.0, group, "binary"
    )


def test_a_choice_lowers_the_variance_of_predictions_more_than_any_other_first_row():
    panel = panel_of(with_labels=False)
    design = label_design(panel, None)
    prior = np.full(design.x.shape[1], RIDGE)
    prior[:2] = 1.0, FREE

    def variance(pattern):
        x = design.x[pattern]
        information = np.diag(prior) + design.weight[pattern] * np.outer(x, x)
        return np.trace(np.linalg.inv(information) @ design.spread)

    first = plan_labels(panel, np.arange(400), 1, RNG(0))
    variances = [variance(pattern) for pattern in range(panel.n_patterns)]
    assert variance(panel.pattern[first[0]]) == pytest.approx(min(variances))


def test_a_source_is_labelled_once_and_patterns_are_spread():
    panel = panel_of(copies=2, with_labels=False)
    plan = plan_labels(panel, np.arange(800), 60, RNG(0))
    assert len(set(panel.group[plan])) == 60
    assert np.bincount(panel.pattern[plan]).max() < 30


def test_more_than_there_are_is_refused():
    with pytest.raises(StatisticsError, match="unlabelled sources"):
        plan_labels(panel_of(), np.arange(5), 6, RNG(0))


def test_the_curve_falls_with_labels_either_way():
    points = budget_curve(panel_of(600), [20, 60, 180], 8, RNG(1))
    for way in ("active", "random"):
        means = [getattr(point, way).mean() for point in points]
        assert means[0] > means[1] > means[2]


@pytest.mark.slow
@pytest.mark.parametrize("skill", [(0.7,) * 5, (0.9, 0.75, 0.65, 0.55, 0.5), (0.95,) * 5])
def test_twenty_chosen_labels_are_not_worse_than_twenty_drawn(skill):
    # Choosing by uncertainty alone was: 0.01 to 0.05 more squared error on such panels.
    savings = []
    for seed in range(30):
        rng = RNG(seed)
        y = rng.random(500) < 0.5
        votes = np.where(rng.random((500, 5)) < skill, y[:, None], ~y[:, None])
        panel = PanelVotes.of(votes * 1.0, y * 1.0, np.arange(500), "binary")
        (point,) = budget_curve(panel, [20], 1, rng)
        savings.append(point.random[0] - point.active[0])
    assert np.mean(savings) > -2 * np.std(savings) / np.sqrt(30)


@pytest.mark.parametrize("target", ["binary", "three", "scalar"])
def test_labels_can_be_imagined_for_every_target(target):
    rng = RNG(0)
    votes = rng.choice([0.0, 0.5, 1.0], (120, 4))
    panel = PanelVotes.of(votes, np.full(120, np.nan), np.arange(120), target)
    points = budget_curve(panel, [10, 30], 3, rng, simulate_labels=True)
    assert [point.labels for point in points] == [10, 30]
    assert all(np.isfinite(point.active).all() for point in points)
