"""What to label next: once a source, where judges disagree, and better than at random."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.active import budget_curve, plan
from clash.stats.selection.panel import Panel

RNG = np.random.default_rng


def panel_of(n=400, seed=0, copies=1, labelled=True):
    rng = RNG(seed)
    y = rng.random(n) < 0.5
    votes = np.where(rng.random((n, 4)) < [0.9, 0.8, 0.7, 0.45], y[:, None], ~y[:, None])
    labels = np.where(labelled, y, np.nan)
    group = np.repeat(np.arange(n), copies)
    return Panel.of(
        np.repeat(votes, copies, axis=0) * 1.0, np.repeat(labels, copies) * 1.0, group, "binary"
    )


def test_disagreement_comes_first_without_any_label():
    panel = panel_of(labelled=False)
    chosen = plan(panel, np.arange(400), 20, RNG(0))
    share = panel.values.mean(axis=1)[panel.pattern]
    assert np.abs(share[chosen] - 0.5).mean() < 0.8 * np.abs(share - 0.5).mean()


def test_a_source_is_labelled_once_and_patterns_are_spread():
    panel = panel_of(copies=2, labelled=False)
    chosen = plan(panel, np.arange(800), 60, RNG(0))
    assert len(set(panel.group[chosen])) == 60
    assert np.bincount(panel.pattern[chosen]).max() < 20


def test_more_than_there_are_is_refused():
    with pytest.raises(StatisticsError, match="unlabelled sources"):
        plan(panel_of(), np.arange(5), 6, RNG(0))


def test_the_curve_falls_and_selection_does_no_harm():
    points = budget_curve(panel_of(600), [20, 60, 180], 12, RNG(1))
    active = [point.active.mean() for point in points]
    assert active[0] > active[2]
    assert active[2] < points[2].random.mean() + 0.005
