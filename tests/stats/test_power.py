"""Sample sizes against the published tables, statsmodels, closed forms and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.intervals import wilson
from clash.stats.power.comparisons import (
    Comparison,
    detectable_paired,
    detectable_two_proportions,
    power_paired,
    power_two_proportions,
    required_paired,
    required_two_proportions,
)
from clash.stats.power.design import Clustering, ErrorRates
from clash.stats.power.monte_carlo import (
    check_comparison,
    check_concordance,
    check_kappa,
    check_retest,
)
from clash.stats.power.precision import (
    concordance_items,
    kappa_items,
    kappa_variance,
    retest_items,
    retest_variance,
)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260228)


@pytest.mark.parametrize(
    ("m", "rho", "runs"),
    [(7.1, 0.05, 72), (7.1, 0.10, 88), (7.1, 0.20, 121), (7.1, 0.30, 155), (7.1, 0.50, 221),
     (9.8, 0.05, 57), (9.8, 0.10, 74), (9.8, 0.20, 109), (9.8, 0.30, 144), (9.8, 0.50, 214)],
)  # fmt: skip
def test_published_tables_within_a_run(m: float, rho: float, runs: int) -> None:
    """Tables 3.3 and 3.4 of the pilot, which round to the nearest run and z to two digits."""
    assert required_two_proportions(0.10, 0.5, Clustering(m, rho)).exact == pytest.approx(
        runs, abs=0.7
    )


def test_two_proportions_by_hand() -> None:
    """388 ballots: (1.96 + 0.84)^2 (0.2475 + 0.2475) / 0.01, with z to all digits."""
    assert required_two_proportions(0.10).independent == pytest.approx(388.52, abs=0.01)


@pytest.mark.parametrize(
    ("n", "p1", "p2", "power"),
    # statsmodels 0.15.0: power_proportions_2indep(p1 - p2, p2, n, ratio=1, alpha=0.05).power, whose
    # variance under the null is pooled; n large enough for both to agree to a percent.
    [(388.52, 0.55, 0.45, 0.7972), (200, 0.15, 0.05, 0.9182), (1000, 0.92, 0.88, 0.8470)],
)
def test_power_of_two_proportions_like_statsmodels(
    n: float, p1: float, p2: float, power: float
) -> None:
    our_power = power_two_proportions(n, p1 - p2, (p1 + p2) / 2)
    assert our_power == pytest.approx(power, abs=0.01)


def test_required_power_and_detectable_invert_each_other() -> None:
    clustering, level = Clustering(3.0, 0.4, 0.5), ErrorRates(0.01, 0.9)
    for effect in (0.02, 0.1, 0.3):
        need = required_two_proportions(effect, 0.6, clustering, level)
        assert power_two_proportions(need.exact, effect, 0.6, clustering, level) == pytest.approx(
            0.9
        )
        detectable = detectable_two_proportions(need.exact, 0.6, clustering, level)
        assert detectable == pytest.approx(effect)
        need = required_paired(effect, 0.7, clustering, level)
        assert power_paired(need.exact, effect, 0.7, clustering, level) == pytest.approx(
            0.9, abs=1e-4
        )
        assert detectable_paired(need.exact, 0.7, clustering, level) == pytest.approx(
            effect, abs=1e-4
        )


def test_power_at_no_effect_is_alpha() -> None:
    assert power_two_proportions(50, 0.0) == pytest.approx(0.05)
    assert power_paired(50, 0.0, 0.4) == pytest.approx(0.05)


def test_nothing_is_detectable_with_two_clusters() -> None:
    assert math.isnan(detectable_two_proportions(2, 0.9))
    assert math.isnan(detectable_paired(2, 0.3))


def test_paired_size_by_connor() -> None:
    """Connor's formula by hand: d = 0.4, effect 0.1: (1.96 sqrt .4 + .8416 sqrt .39)^2 / .01."""
    by_hand = (1.959964 * math.sqrt(0.4) + 0.841621 * math.sqrt(0.39)) ** 2 / 0.01
    assert required_paired(0.1, 0.4).independent == pytest.approx(by_hand, rel=1e-5)


def test_design_effect() -> None:
    assert Clustering(7.1, 0.2).design_effect == pytest.approx(2.22)
    assert Clustering(4, 0.25, 0.5).design_effect == pytest.approx(1 + (4 * 1.25 - 1) * 0.25)
    assert Clustering(0.3, 0.9).design_effect == 1.0


def test_one_wholly_correlated_cluster_counts_once() -> None:
    """rho = 1: ballots of a run are one ballot."""
    alone = required_two_proportions(0.1)
    assert required_two_proportions(0.1, 0.5, Clustering(20, 1)).exact == pytest.approx(
        alone.independent
    )


@pytest.mark.parametrize(("half", "p"), [(0.05, 0.8), (0.1, 0.98), (0.03, 0.5)])
def test_concordance_items_give_that_half_width(half: float, p: float) -> None:
    n = concordance_items(half, p).independent
    assert wilson(p * n, n).half_width == pytest.approx(half, abs=1e-9)


def test_kappa_variance_of_even_margins() -> None:
    """With even margins kappa = 2p - 1, so its variance is 4p(1 - p)."""
    assert kappa_variance(0.6, 0.5) == pytest.approx(4 * 0.8 * 0.2)


def test_kappa_variance_like_statsmodels() -> None:
    """cohens_kappa([[24, 6], [16, 54]]) of statsmodels 0.15.0: 0.5217391, std_kappa 0.0870370."""
    variance = kappa_variance(0.5217391304347826, 0.30, 0.40)
    assert math.sqrt(variance / 100) == pytest.approx(0.0870370302083251, rel=1e-9)


def test_retest_of_two_runs_is_a_proportion() -> None:
    assert retest_variance(0.8, 2) == pytest.approx(0.16)
    assert retest_items(0.05, 0.8).exact == pytest.approx(concordance_items(0.05, 0.8).exact)


def test_more_runs_need_fewer_items() -> None:
    needs = [retest_items(0.05, 0.8, runs).exact for runs in (2, 3, 5, 10)]
    assert needs == sorted(needs, reverse=True)


def test_perfect_and_chance_agreement_have_an_answer() -> None:
    assert retest_items(0.05, 1.0, 3).exact > 0
    assert retest_items(0.05, 0.5, 3).exact > 0


@pytest.mark.parametrize(
    "comparison",
    [
        Comparison("compare", 0.1, Clustering(7.12, 0.2)),
        Comparison("compare", 0.1, Clustering(3, 0.4), middle=0.9),
        Comparison("compare", 0.1, Clustering(5, 0.3, 0.6)),
        Comparison("paired", 0.1, Clustering(3, 0.3), decisive=0.6),
        Comparison("paired", 0.1),
        Comparison("paired", 0.1, Clustering(2, 1), decisive=0.2),
    ],
    ids=str,
)
def test_simulated_power_is_what_was_planned(
    comparison: Comparison, rng: np.random.Generator
) -> None:
    check = check_comparison(comparison, comparison.demand().clusters, rng, replications=600)
    assert check.claim == pytest.approx(0.8, abs=0.01)
    assert check.rate.low - 0.02 < 0.8 < check.rate.high + 0.02


def test_simulated_error_rate_is_alpha(rng: np.random.Generator) -> None:
    no_effect = Comparison("compare", 0.0, Clustering(7, 0.3))
    check = check_comparison(no_effect, 60, rng, replications=1500)
    assert check.claim == pytest.approx(0.05)
    assert check.rate.low < 0.05 < check.rate.high


def test_simulated_intervals_are_as_narrow_and_cover(rng: np.random.Generator) -> None:
    clustering = Clustering(2, 0.4)
    need = concordance_items(0.05, 0.85, clustering)
    kappa = kappa_items(0.1, 0.6, 0.3)
    checks = [
        (0.05, check_concordance(need.clusters, 0.85, clustering, rng, replications=600)),
        (0.10, check_kappa(kappa.clusters, 0.6, 0.3, 0.3, rng, replications=400)),
        (0.05, check_retest(retest_items(0.05, 0.8, 3).clusters, 0.8, 3, rng, replications=600)),
    ]
    for width, check_result in checks:
        assert check_result.width == pytest.approx(width, rel=0.03)
        assert check_result.rate.estimate > 0.92


WRONG = {
    "no effect": lambda: required_two_proportions(0.0),
    "beyond one": lambda: required_two_proportions(0.5, 0.9),
    "more than decides": lambda: required_paired(0.3, 0.2),
    "nothing decides": lambda: required_paired(0.1, 0.0),
    "no cluster": lambda: power_two_proportions(0, 0.1),
    "empty clusters": lambda: Clustering(0, 0.1),
    "correlation": lambda: Clustering(2, 1.5),
    "variation": lambda: Clustering(2, 0.5, -1),
    "power below alpha": lambda: ErrorRates(0.5, 0.4),
    "half-width": lambda: concordance_items(0.6),
    "concordance": lambda: concordance_items(0.1, 1.2),
    "no such table": lambda: kappa_items(0.1, 0.9, 0.1, 0.9),
    "one class": lambda: kappa_variance(0.5, 1.0),
    "below chance": lambda: retest_items(0.1, 0.4),
    "one run": lambda: retest_items(0.1, 0.8, 1),
}


@pytest.mark.parametrize("problem", WRONG)
def test_assumptions_out_of_range_are_refused(problem: str) -> None:
    with pytest.raises(StatisticsError):
        WRONG[problem]()
