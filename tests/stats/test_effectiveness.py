"""Thresholds of a positive contribution: algebra, and the simulation that settles them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.effectiveness import (
    attenuation,
    break_even,
    contribution,
    derived_threshold,
    published_threshold,
    simulate_removal,
)

RATES = [0.556, 0.365, 0.148]


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_derived_threshold_solves_the_published_condition(k: int) -> None:
    """delta / (K - 1) = (1 - delta) / (K (K - 1)) holds at 1 / (K + 1), not at 1 / (2K - 1)."""
    delta = derived_threshold(k)
    assert delta / (k - 1) == pytest.approx((1 - delta) / (k * (k - 1)))
    threshold = published_threshold(k)
    gap = threshold / (k - 1) - (1 - threshold) / (k * (k - 1))
    assert (abs(gap) < 1e-12) == (k == 2)


def test_verdicts_on_the_pilot_judge_differ() -> None:
    """K = 4, delta = 0.148: 0.143 makes it marginally positive, 0.2 negative."""
    assert contribution(0.148, published_threshold(4)) == "marginally positive"
    assert contribution(0.148, derived_threshold(4)) == "negative"
    assert contribution(0.148, published_threshold(3)) == "negative"


def test_break_even_by_algebra() -> None:
    """At the break-even z with and without the judge are the same: sum / sqrt(J)."""
    other_accuracies = [0.556, 0.365]
    even = break_even(other_accuracies)
    assert (sum(other_accuracies) + even) / math.sqrt(3) == pytest.approx(
        sum(other_accuracies) / math.sqrt(2)
    )
    assert even == pytest.approx(0.207, abs=5e-4)
    assert break_even([]) == 0


def test_attenuation() -> None:
    assert attenuation(0.356) == pytest.approx(2.81, abs=0.01)
    assert attenuation(1.0) == 1
    assert math.isinf(attenuation(0.0))


@pytest.mark.slow
@pytest.mark.parametrize("k", [4, 6])
def test_removing_the_pilot_judge_raises_power_where_ties_are_half_wins(k: int) -> None:
    """So the published verdict (positive for K = 4 and 6) is wrong, and the derived one right for
    K = 4 only: at K = 6 its threshold is 0.143, and removal still raises the power. The break-even
    0.207 does not depend on K."""
    removals = simulate_removal(RATES, 2, k, np.random.default_rng(1), replications=500)
    assert removals.raises is True
    assert published_threshold(k) < 0.148 < break_even(RATES[:2])
    modelled_removals = simulate_removal(
        RATES, 2, k, np.random.default_rng(1), analysis="davidson", replications=500
    )
    assert modelled_removals.change.estimate < 0
    assert modelled_removals.raises is False


@pytest.mark.slow
def test_a_judge_above_the_break_even_is_missed() -> None:
    removals = simulate_removal(
        [0.556, 0.365, 0.35], 2, 4, np.random.default_rng(2), replications=400
    )
    assert removals.raises is False


@pytest.mark.slow
def test_an_inverted_judge_is_better_gone_however_ties_are_read() -> None:
    removals = simulate_removal(
        [0.6, 0.6, 0.6], 2, 3, np.random.default_rng(3), edges=[1, 1, -1],
        analysis="davidson", replications=200,
    )  # fmt: skip
    assert removals.raises is True


def test_simulation_is_repeatable_and_degenerate_panels_are_refused() -> None:
    removals, two = (
        simulate_removal([0.5, 0.5], 0, 2, np.random.default_rng(9), replications=20)
        for _ in range(2)
    )
    assert removals == two
    with pytest.raises(StatisticsError):
        simulate_removal([0.5], 0, 3, np.random.default_rng(0))
    with pytest.raises(StatisticsError):
        published_threshold(1)


def test_a_judge_that_never_decides_takes_nothing_where_ties_are_modelled() -> None:
    removals = simulate_removal(
        [0.8, 0.0], 1, 3, np.random.default_rng(4), analysis="davidson", replications=60
    )
    assert abs(removals.change.estimate) < 0.1
