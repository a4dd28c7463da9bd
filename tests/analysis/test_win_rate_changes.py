"""Changes between two runs: by the measure of the leaderboard, with the error of a paired sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.simulated_runs import run_data
from clash.analysis.compare import compare
from clash.analysis.compare.win_rate_changes import win_rate_changes
from clash.analysis.leaderboard import standings
from clash.report.headline import comparison_headline
from clash.report.screens import comparison_screen

NAMES = ("ada", "bob", "cyd")
ALL = list(range(3))


def sample(seed, n=60, *, groups=(ALL,), clusters=None, strength=(0.9, 0.0, -0.4), run="made"):
    """A run in which item i has the candidates of ``groups[i % len(groups)]``."""
    rng = np.random.default_rng(seed)
    rows, missing = [], []
    for i in range(n):
        group = groups[i % len(groups)]
        utility = np.array(strength) + rng.gumbel(size=3)
        rows.append({"x": [[NAMES[k]] for k in sorted(group, key=lambda k: -utility[k])]})
        missing += [(i, NAMES[k]) for k in ALL if k not in group]
    data = run_data(rows, NAMES, clusters=clusters, missing=missing)
    responses = [r for r in data.responses if r.text is not None]
    manifest = data.manifest.model_copy(update={"run": run})
    return replace(data, responses=tuple(responses), manifest=manifest)


@pytest.mark.parametrize("groups", [(ALL,), ([0, 1], [1, 2], [0, 2], [0, 1])])
def test_a_win_rate_is_the_one_of_the_leaderboard(groups):
    runs = [sample(seed, groups=groups) for seed in (1, 2)]
    boards = [{r.candidate: r.win_rate_ties_half.estimate for r in standings(d)} for d in runs]
    for change in win_rate_changes(*runs):
        assert change.first == pytest.approx(boards[0][change.candidate])
        assert change.second == pytest.approx(boards[1][change.candidate])
        assert change.by_strengths == (len(groups) > 1)


@pytest.mark.parametrize("groups", [(ALL,), ([0, 1], [1, 2], [0, 2])])
def test_the_error_of_a_change_is_that_of_samples_drawn_again(groups):
    """The half width over 1.96 is the spread of the difference over 100 pairs of runs."""
    gaps, errors = [], []
    for seed in range(100):
        changes = win_rate_changes(sample(seed, groups=groups), sample(seed + 1000, groups=groups))
        gap = next(c.difference for c in changes if c.candidate == "ada")
        gaps.append(gap.estimate)
        errors.append(gap.half_width / 2.0)
    assert np.mean(errors) == pytest.approx(np.std(gaps), rel=0.2)


def test_two_runs_that_say_the_same_are_told_so():
    groups = ([0, 1], [1, 2], [0, 2])
    comparison = compare([sample(1, groups=groups, run=name) for name in ("one", "two")])
    headline = comparison_headline(comparison)
    assert headline.text == "one and two agree on each of the 60 items that both have."
    text = "\n".join(
        "".join(p for p, _ in line) for line in comparison_screen(comparison, 80).lines
    )
    assert "     0  [0, 0]" in text
    assert "by Bradley-Terry strengths" in text
    assert "60 in both" in text
