"""Boundaries against published tables, and error rates under peeking by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.intervals import mean_clustered
from clash.stats.sequential import (
    alpha_spent,
    always_valid,
    boundaries,
    boundary,
    group_sequential,
)

FIFTHS = [0.2, 0.4, 0.6, 0.8, 1.0]


@pytest.mark.parametrize(
    ("spending", "bounds"),
    [
        # R gsDesign (sfLDOF, sfLDPocock) and ldbounds, two-sided 0.05, five equal looks.
        ("obrien-fleming", [4.877, 3.357, 2.680, 2.290, 2.031]),
        ("pocock", [2.438, 2.427, 2.410, 2.397, 2.386]),
    ],
)
def test_boundaries_are_the_published_ones(spending, bounds) -> None:
    assert boundaries(FIFTHS, 0.05, spending) == pytest.approx(bounds, abs=0.012)


def test_one_look_costs_nothing_and_all_alpha_is_spent() -> None:
    assert boundaries([1.0]) == pytest.approx([1.95996], abs=2e-3)
    for kind in ("obrien-fleming", "pocock"):
        assert alpha_spent(1.0, 0.05, kind) == pytest.approx(0.05)
        assert alpha_spent(0.0, 0.05, kind) == 0


@pytest.mark.slow
def test_peeking_is_paid_for() -> None:
    """Ten looks at nothing: naive intervals exclude the truth often, these as seldom as they say."""
    rng = np.random.default_rng(1)
    looks = [50 * k for k in range(1, 11)]
    shares = [n / 500 for n in looks]
    bounds = boundaries(shares)
    n_missed = {"naive": 0, "always": 0, "spending": 0}
    for _ in range(500):
        x = rng.exponential(size=500) - 1
        mean = [float(x[:n].mean()) for n in looks]
        error = [float(x[:n].std(ddof=1)) / math.sqrt(n) for n in looks]
        z = np.abs(np.array(mean) / np.array(error))
        n_missed["naive"] += bool(np.any(z > 1.96))
        n_missed["spending"] += bool(np.any(z > bounds))
        n_missed["always"] += any(always_valid(x[:n], n_planned=250).excludes(0) for n in looks)
    assert n_missed["naive"] / 500 > 0.12
    assert n_missed["spending"] / 500 < 0.085
    assert n_missed["always"] / 500 < 0.05


def test_confidence_sequence_is_narrowest_for_its_plan() -> None:
    """At n = 100 a sequence planned for 100 beats those planned for 5 and 5000."""
    best = boundary(100, 0.05, 100)
    assert best < boundary(100, 0.05, 5)
    assert best < boundary(100, 0.05, 5000)
    assert 1.2 < best / (1.96 / 10) < 1.7


def test_clusters_widen_it_as_they_widen_a_mean() -> None:
    rng = np.random.default_rng(2)
    x = np.repeat(rng.normal(size=40), 5)
    codes = np.repeat(np.arange(40), 5)
    together, alone = always_valid(x, codes), always_valid(x)
    naive = mean_clustered(x, codes)
    assert together.half_width > 1.5 * alone.half_width
    assert 1.2 < together.half_width / naive.half_width < 1.7


def test_last_look_is_hardly_wider_than_one_look() -> None:
    x = np.random.default_rng(3).normal(size=500)
    last = group_sequential(x, None, 4, FIFTHS)
    assert 1.0 < last.half_width / mean_clustered(x).half_width < 1.06
    first = group_sequential(x[:100], None, 0, FIFTHS)
    assert first.half_width / mean_clustered(x[:100]).half_width > 2


def test_little_data_is_endless_and_a_wrong_plan_refused() -> None:
    assert math.isinf(always_valid([1.0, 0.0]).half_width)
    assert math.isinf(group_sequential([1.0], None, 0, FIFTHS).half_width)
    for wrong in ([], [0.5, 0.5], [0.0, 1.0], [0.5, 1.2]):
        with pytest.raises(StatisticsError):
            boundaries(wrong)
    with pytest.raises(StatisticsError):
        alpha_spent(1.5)
    with pytest.raises(StatisticsError):
        group_sequential([1.0, 2.0], None, 7, FIFTHS)
    with pytest.raises(StatisticsError):
        always_valid([1.0], n_planned=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "shares",
    [[0.5, 0.0, 0.5], [0.1, 0.0, 0.9], [0.03, 0.0, 0.97], [0.0, 0.9, 0.1], [0.02, 0.96, 0.02]],
    ids=["even", "lopsided", "hardly ever lost", "ties and wins", "hardly ever decided"],
)
def test_shares_miss_the_truth_at_any_look_as_seldom_as_they_say(shares) -> None:
    """Losses, ties and wins of 40 prompts, three items each, looked at five times."""
    rng = np.random.default_rng(7)
    values, planned_looks, runs = np.array([0.0, 0.5, 1.0]), [8, 16, 24, 32, 40], 150
    truth = float(values @ shares)
    n_missed = dict.fromkeys(("always-valid", "obrien-fleming", "pocock"), 0)
    for _ in range(runs):
        x = np.repeat(rng.choice(values, size=40, p=shares), 3)
        codes = np.repeat(np.arange(40), 3)
        for name in n_missed:
            n_missed[name] += any(_misses(x[: 3 * n], codes[: 3 * n], at, name, truth)
                                for at, n in enumerate(planned_looks))  # fmt: skip
    # 5% of 150 runs, and two standard errors more.
    assert all(count / runs < 0.086 for count in n_missed.values())


def _misses(x, codes, at: int, name: str, truth: float) -> bool:
    if name == "always-valid":
        interval = always_valid(x, codes, n_planned=20, share=True)
    else:
        interval = group_sequential(x, codes, at, FIFTHS, spending=name, share=True)
    return interval.excludes(truth)


def test_wins_in_a_row_are_no_certainty() -> None:
    """No spread at all is not an interval without length, for a stopping rule would stop there."""
    for value in (
        always_valid(np.ones(13), share=True),
        group_sequential(np.ones(13), None, 4, FIFTHS, share=True),
        group_sequential(np.full(13, 0.5), None, 4, FIFTHS, share=True),
    ):
        assert 0 <= value.low <= value.estimate <= value.high <= 1
        assert value.high - value.low > 0.2
    assert (always_valid([1.0], share=True).low, always_valid([1.0], share=True).high) == (0, 1)
    with pytest.raises(StatisticsError):
        always_valid([0.5, 1.5], share=True)


def test_smoothing_is_agresti_and_coulls() -> None:
    """One look at independent wins and losses: their interval, by hand (there with z = 1.96)."""
    interval = group_sequential([1.0] * 60 + [0.0] * 20, None, 0, [1.0], share=True)
    z = 1.9905  # of Student with 79 degrees of freedom
    n = 80 + z * z
    middle = (60 + z * z / 2) / n
    reach = z * math.sqrt(middle * (1 - middle) / n)
    assert (interval.low, interval.high) == pytest.approx(
        (middle - reach, middle + reach), abs=2e-3
    )
