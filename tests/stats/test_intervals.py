"""Intervals agree with published and independent figures, and never run out of range."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clash.errors import StatisticsError
from clash.stats.intervals import (
    Interval,
    difference,
    mean_clustered,
    newcombe,
    newcombe_paired,
    normal_quantile,
    wilson,
    wilson_clustered,
)

# statsmodels 0.15: proportion_confint(k, n, method="wilson"), …(method="beta").
PROPORTIONS = [
    (0, 10, (0.0, 0.27753279986288926)),
    (10, 10, (0.7224672001371106, 1.0)),
    (88, 100, (0.8018790057328857, 0.9300059356298052)),
    (3, 7, (0.15821985525146964, 0.7495416354723428)),
]


@pytest.mark.parametrize(("k", "n", "score"), PROPORTIONS)
def test_proportions_agree_with_statsmodels(k, n, score):
    interval = wilson(k, n)
    assert (interval.low, interval.high) == pytest.approx(score, abs=1e-12)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(88, 100, 80.2, 93.0), (29, 29, 88.3, 100.0), (0, 2, 0.0, 65.8), (71, 74, 88.7, 98.6)],
)
def test_wilson_gives_the_intervals_printed_in_the_agent_clash_paper(k, n, low, high):
    interval = wilson(k, n)
    assert (100 * interval.low, 100 * interval.high) == pytest.approx((low, high), abs=0.06)


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(0, 50), st.floats(0.5, 0.999))
def test_a_proportion_and_its_interval_stay_in_order_and_in_range(k, more, level):
    n = k + more
    interval = wilson(k, n, level)
    assert 0 <= interval.low < interval.high <= 1
    assert (
        math.isnan(interval.estimate)
        if n == 0
        else interval.low <= interval.estimate <= interval.high
    )


def test_nothing_observed_is_everything_possible():
    interval = wilson(0, 0)
    assert math.isnan(interval.estimate)
    assert (interval.low, interval.high, interval.n) == (0.0, 1.0, 0.0)


@pytest.mark.parametrize(("k", "n"), [(-1, 5), (6, 5), (math.nan, 5)])
def test_what_is_no_proportion_is_refused(k, n):
    with pytest.raises(StatisticsError, match="not a proportion"):
        wilson(k, n)


@pytest.mark.parametrize("level", [0, 1, 1.5, math.nan])
def test_a_level_outside_zero_to_one_is_refused(level):
    with pytest.raises(StatisticsError, match="level"):
        wilson(1, 2, level)


def test_a_design_effect_is_worth_as_many_fewer_trials():
    interval = wilson(40, 100, design_effect=4)
    same_interval = wilson(10, 25)
    assert (interval.low, interval.high, interval.n_effective) == (
        same_interval.low,
        same_interval.high,
        25,
    )


def test_without_repeats_the_clustered_interval_is_wilsons():
    values = [1] * 88 + [0] * 12
    interval, plain = wilson_clustered(values, np.arange(100)), wilson(88, 100)
    assert (interval.low, interval.high) == (plain.low, plain.high)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_copies_of_an_observation_tell_nothing(n):
    """n items five times each are n items: the interval is Wilson's of the originals."""
    originals = np.arange(n) % 4 < 3
    interval = wilson_clustered(np.repeat(originals, 5), np.repeat(np.arange(n), 5))
    plain = wilson(originals.sum(), n)
    assert interval.n_effective == pytest.approx(n)
    assert (interval.low, interval.high) == pytest.approx((plain.low, plain.high))


def test_half_correlated_clusters_by_hand():
    """20 clusters of 5; ten hold 4 of one kind and 1 of the other, ten are of one kind."""
    values = np.array([[1, 1, 1, 1, 0]] * 10 + [[1] * 5] * 5 + [[0] * 5] * 5, dtype=float)
    interval = wilson_clustered(values.ravel(), np.repeat(np.arange(20), 5))
    # p = 0.65; cluster totals less 5 p: 0.75 ten times, 1.75 and -3.25 five times each.
    squares = 10 * 0.75**2 + 5 * 1.75**2 + 5 * 3.25**2
    effect = squares / (65 * 0.35**2 + 35 * 0.65**2)
    assert 1 < effect < 5
    student = (1.98422 / 2.09302) ** 2
    assert interval.n_effective == pytest.approx(100 / effect * student, rel=1e-4)


def test_the_bounds_are_where_the_score_test_with_clusters_turns():
    """At a bound pi, z = |p - pi| / sqrt(pi (1 - pi) d(pi) / n), with t for z by the size of n."""
    from scipy import stats

    totals = np.array([5] * 8 + [4, 4, 3, 1])
    values = (np.arange(5) < totals[:, None]).astype(float)
    interval = wilson_clustered(values.ravel(), np.repeat(np.arange(12), 5))
    p, n = totals.sum() / 60, 60
    for pi in (interval.low, interval.high):
        squares = (totals / 5 - pi) ** 2
        freedom = min(11, 2 * squares.sum() ** 2 / (12 * squares.var()))
        student = (stats.t.ppf(0.975, 59) / stats.t.ppf(0.975, freedom)) ** 2
        effect = np.sum((totals - 5 * pi) ** 2) / np.sum((values - pi) ** 2)
        size = np.clip(n * student / effect, 12, n * student)
        assert abs(p - pi) / np.sqrt(pi * (1 - pi) / size) == pytest.approx(1.959964, rel=1e-5)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_where_all_agree_clusters_are_taken_as_copies(value):
    interval = wilson_clustered(np.full(30, value), np.repeat(np.arange(6), 5))
    assert interval.n_effective == pytest.approx(6)
    assert 0 <= interval.low < interval.high <= 1


@settings(max_examples=200)
@given(
    st.lists(
        st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=1, max_size=6), min_size=1, max_size=6
    )
)
def test_clusters_are_worth_no_less_than_copies_and_no_more_than_their_observations(clusters):
    sizes = np.array([len(c) for c in clusters])
    interval = wilson_clustered(np.concatenate(clusters), np.repeat(np.arange(len(sizes)), sizes))
    copies = sizes.sum() ** 2 / np.sum(sizes**2)
    assert 1 - 1e-9 <= copies - 1e-9 <= interval.n_effective <= sizes.sum() + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("groups", [2, 3, 4, 5])
def test_few_clusters_cover_a_truth_drawn_at_random(groups):
    """Any correlation, equal and unequal clusters, the truth anywhere from 0.05 to 0.95."""
    rng = np.random.default_rng(groups)
    for rho, size, equal in [(0.0, 4, True), (0.3, 20, True), (0.3, 8, False), (1.0, 4, True)]:
        hits = 0
        for _ in range(500):
            p = rng.uniform(0.05, 0.95)
            sizes = np.full(groups, size) if equal else rng.integers(1, 2 * size, groups)
            codes = np.repeat(np.arange(groups), sizes)
            lean = _leans(p, rho, groups, rng)
            interval = wilson_clustered((rng.random(len(codes)) < lean[codes]).astype(float), codes)
            hits += interval.low <= p <= interval.high
        assert hits / 500 > 0.93


def _leans(p, rho, groups, rng):
    """P(success) of each cluster: beta with mean p and intra-cluster correlation rho."""
    if rho in (0.0, 1.0):
        return np.full(groups, p) if rho == 0 else (rng.random(groups) < p).astype(float)
    weight = 1 / rho - 1
    return rng.beta(p * weight, (1 - p) * weight, groups)


def test_one_cluster_counts_as_one_observation():
    interval = wilson_clustered([1, 1, 0, 1], [7, 7, 7, 7])
    assert interval.n_effective == 1
    assert interval.high - interval.low > 0.7


@pytest.mark.slow
def test_clustered_wilson_covers_where_plain_wilson_does_not():
    """Questions with 4 pairs each that mostly succeed or fail together, p = 0.8."""
    rng = np.random.default_rng(11)
    clusters, truth, runs = np.repeat(np.arange(30), 4), 0.8, 400
    hits = {"plain": 0, "clustered": 0}
    for _ in range(runs):
        easy = rng.random(30) < 0.5
        x = (rng.random((30, 4)) < np.where(easy, 1.0, 0.6)[:, None]).astype(float).ravel()
        interval = wilson_clustered(x, clusters)
        hits["clustered"] += interval.low <= truth <= interval.high
        plain = wilson(x.sum(), len(x))
        hits["plain"] += plain.low <= truth <= plain.high
    assert hits["clustered"] / runs > 0.93
    assert hits["plain"] / runs < hits["clustered"] / runs


@pytest.mark.parametrize("values", [[0.5, 1.2], [0.5, math.nan]])
def test_values_that_are_no_successes_are_refused(values):
    with pytest.raises(StatisticsError):
        wilson_clustered(values, [0, 1])


def test_clusters_of_another_length_are_refused():
    with pytest.raises(StatisticsError, match="clusters of shape"):
        wilson_clustered([0, 1, 1], [0, 1])


def test_newcombe_gives_his_published_example():
    """56/70 - 48/80: (0.0524, 0.3339), Newcombe 1998, table II; statsmodels agrees."""
    interval = newcombe(56, 70, 48, 80)
    assert (interval.low, interval.high) == pytest.approx((0.05243147240, 0.3338726540), abs=1e-9)


@pytest.mark.parametrize(("k1", "n1", "k2", "n2"), [(10, 10, 0, 20), (0, 5, 0, 9), (7, 7, 4, 4)])
def test_a_difference_has_length_even_at_the_ends(k1, n1, k2, n2):
    interval = newcombe(k1, n1, k2, n2)
    assert -1 <= interval.low < interval.high <= 1
    assert interval.low <= interval.estimate <= interval.high


def test_a_difference_with_nothing_is_bounded_by_what_is_possible():
    gap = difference(wilson(3, 4), wilson(0, 0))
    assert math.isnan(gap.estimate)
    assert gap.low == pytest.approx(wilson(3, 4).low - 1)


def test_differences_of_unlike_levels_are_refused():
    with pytest.raises(StatisticsError, match="levels"):
        difference(wilson(1, 2, 0.9), wilson(1, 2))


@pytest.mark.parametrize(
    ("cells", "low", "high"),
    [
        ((36, 12, 2, 0), 0.0569, 0.3404),  # phi below 0: not corrected
        ((20, 12, 2, 16), 0.0562, 0.3292),  # without the correction 0.0618, 0.3242
        ((18, 12, 2, 18), 0.0562, 0.3290),
        ((36, 14, 0, 0), 0.1528, 0.4167),
        ((35, 14, 0, 1), 0.1461, 0.4175),  # ad - bc = 35 > n / 2
        ((18, 14, 0, 18), 0.1441, 0.3963),
        ((0, 30, 0, 0), 0.8395, 1.0000),
        ((54, 0, 0, 0), -0.0664, 0.0664),
        ((53, 0, 0, 1), -0.0729, 0.0729),
        ((27, 0, 0, 27), -0.0351, 0.0351),  # without the correction of no length
    ],
)
def test_newcombe_paired_gives_his_published_table(cells, low, high):
    """Newcombe 1998b, table III, method 10: its corrected phi is what sets it off from method 8."""
    interval = newcombe_paired(*cells)
    assert interval.estimate == pytest.approx((cells[1] - cells[2]) / sum(cells))
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5.1e-5)


@pytest.mark.parametrize(("cells", "margins"), [((3, 2, 1, 1), (5, 4)), ((6, 3, 2, 2), (9, 8))])
def test_a_correlation_within_its_correction_is_none(cells, margins):
    """ad - bc is 1 of n = 7 and 6 of n = 13, no more than n / 2: as if the items were not shared."""
    paired_interval, n = newcombe_paired(*cells, level=0.8), sum(cells)
    apart = newcombe(margins[0], n, margins[1], n, level=0.8)
    assert (paired_interval.low, paired_interval.high) == pytest.approx(
        (apart.low, apart.high), abs=1e-12
    )


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_differences_are_at_the_level_that_was_asked_for(level):
    """Equal rates, unshared: square-and-add of two equal halves is one of them times sqrt(2)."""
    interval = wilson(10, 20, level)
    actual_interval = newcombe(10, 20, 10, 20, level)
    assert (actual_interval.level, actual_interval.n, actual_interval.n_effective) == (
        level,
        40,
        40,
    )
    assert actual_interval.high == pytest.approx(math.sqrt(2) * (interval.high - 0.5), abs=1e-12)
    assert actual_interval.low == pytest.approx(-actual_interval.high, abs=1e-12)
    paired_interval = newcombe_paired(5, 5, 5, 5, level)
    assert (paired_interval.level, paired_interval.n, paired_interval.n_effective) == (
        level,
        20,
        20,
    )
    assert (paired_interval.low, paired_interval.high) == pytest.approx(
        (actual_interval.low, actual_interval.high), abs=1e-12
    )
    nothing = newcombe_paired(0, 0, 0, 0, level)
    assert math.isnan(nothing.estimate)
    assert (nothing.low, nothing.high) == (-1, 1)
    assert (nothing.level, nothing.n, nothing.n_effective) == (level, 0, 0)


def test_pairing_narrows_the_difference_of_alike_methods():
    paired_interval, unpaired_interval = newcombe_paired(70, 5, 4, 21), newcombe(75, 100, 74, 100)
    assert paired_interval.high - paired_interval.low < 0.6 * (
        unpaired_interval.high - unpaired_interval.low
    )


@pytest.mark.parametrize("cells", [(0, 0, 0, 0), (0, 5, 0, 0), (5, 0, 0, 0), (0, 0, 0, 5)])
def test_paired_differences_of_degenerate_tables_are_bounded(cells):
    interval = newcombe_paired(*cells)
    assert -1 <= interval.low < interval.high <= 1


def test_a_mean_without_clusters_is_students():
    from scipy.stats import ttest_1samp

    x = np.array([0.3, 1.7, -2.0, 0.1, 5.5])
    interval = mean_clustered(x)
    expected_interval = ttest_1samp(x, 0).confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx(
        (expected_interval.low, expected_interval.high)
    )
    assert interval.n_effective == pytest.approx(5)


def test_a_mean_of_copies_is_the_mean_of_the_originals():
    x = np.array([0.3, 1.7, -2.0, 0.1, 5.5])
    interval, plain = mean_clustered(np.repeat(x, 3), np.repeat(np.arange(5), 3)), mean_clustered(x)
    assert (interval.low, interval.high) == pytest.approx((plain.low, plain.high))


def test_a_single_cluster_says_nothing_of_a_mean():
    interval = mean_clustered([1.0, 2.0], [0, 0])
    assert (interval.low, interval.high) == (-math.inf, math.inf)


def test_an_interval_is_a_test():
    interval = newcombe(90, 100, 60, 100)
    assert interval.excludes(0)
    assert not interval.excludes(interval.estimate)
    assert interval.half_width == pytest.approx((interval.high - interval.low) / 2)


def test_the_normal_quantile_is_the_one_in_the_tables():
    assert normal_quantile(0.95) == pytest.approx(1.959963984540054)


def test_a_design_effect_is_positive():
    with pytest.raises(StatisticsError, match="design effect"):
        wilson(1, 2, design_effect=0)


HALVES, PAIRED = [0, 0, 1, 1], [5, 5, 8, 8]


@pytest.mark.parametrize(
    ("make", "estimate", "n", "n_effective", "method"),
    [
        (lambda: wilson(3, 12, 0.8), 0.25, 12, 12, "wilson"),
        (lambda: wilson(3, 12, 0.8, design_effect=3), 0.25, 12, 4, "wilson, design effect"),
        # Copies: as many as there are clusters.
        (lambda: wilson_clustered(HALVES, PAIRED, 0.8), 0.5, 4, 2, "wilson, clustered"),
        (lambda: wilson_clustered([], [], 0.8), math.nan, 0, 0, "wilson, clustered"),
        # Variance 1/3; squared error 2/1 (1² + 1²) / 4² = 1/4; a third over a quarter.
        (lambda: mean_clustered(HALVES, PAIRED, 0.8), 0.5, 4, 4 / 3, "t, clustered"),
        (lambda: mean_clustered(HALVES, None, 0.8), 0.5, 4, 4, "t, clustered"),
        (lambda: mean_clustered([2, 2, 2], [1, 2, 2], 0.8), 2, 3, 2, "t, clustered"),
        (lambda: mean_clustered([2, 4], [1, 1], 0.8), 3, 2, 1, "t, clustered"),
        (
            lambda: difference(wilson(3, 12, 0.8), wilson(2, 4, 0.8)),
            -0.25,
            16,
            16,
            "square-and-add",
        ),
        (lambda: newcombe_paired(3, 2, 1, 4, 0.8), 0.1, 10, 10, "newcombe, paired"),
        (lambda: newcombe_paired(0, 0, 0, 0, 0.8), math.nan, 0, 0, "newcombe, paired"),
    ],
    ids=range(11),
)
def test_an_interval_says_what_it_is_of(make, estimate, n, n_effective, method):
    suite = make()
    assert suite.estimate == pytest.approx(estimate, nan_ok=True)
    assert (suite.level, suite.n, suite.method) == (0.8, n, method)
    assert suite.n_effective == pytest.approx(n_effective)


def test_a_small_design_effect_by_hand():
    """Clusters 11, 10, 10, 11: totals 1/2 from 3/2, 1 / (6/16 + 18/16) < 1; t of 7 and 3 degrees."""
    interval = wilson_clustered([1, 1, 1, 0, 0, 1, 1, 1], [1, 1, 2, 2, 3, 3, 4, 4], level=0.5)
    student = 0.7111418 / 0.7648923  # the upper quartiles, from a table of Student's t
    assert interval.n_effective == pytest.approx(8 * student**2, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.1, 0.4, 0.8])
def test_rare_misses_in_clusters_are_covered(rho):
    """30 clusters of 5, p = 0.95: a design effect at the estimate alone covers 88 to 91%."""
    rng, clusters, runs = np.random.default_rng(7), np.repeat(np.arange(30), 5), 1000
    hits = 0
    for _ in range(runs):
        x = (rng.random(150) < _leans(0.95, rho, 30, rng)[clusters]).astype(float)
        interval = wilson_clustered(x, clusters)
        hits += interval.low <= 0.95 <= interval.high
    assert hits / runs > 0.935


def test_the_ends_of_an_interval_are_not_excluded():
    interval = Interval(0.5, 0.25, 0.75, 0.95, 10, 10, "made")
    assert not interval.excludes(0.25)
    assert not interval.excludes(0.75)
    assert interval.excludes(0.2499)
    assert interval.excludes(0.7501)


def test_both_bounds_of_a_difference_with_nothing():
    gap = difference(wilson(3, 4), wilson(0, 0))
    assert (gap.low, gap.high) == pytest.approx((wilson(3, 4).low - 1, wilson(3, 4).high))
    gap = difference(wilson(0, 0), wilson(3, 4))
    assert (gap.low, gap.high) == pytest.approx((-wilson(3, 4).high, 1 - wilson(3, 4).low))


@pytest.mark.parametrize(
    ("interval", "method"),
    [(wilson(0, 0), "wilson"), (wilson_clustered([], []), "wilson, clustered")],
)
def test_without_observations_every_proportion_is_possible(interval, method):
    assert math.isnan(interval.estimate)
    assert (interval.low, interval.high, interval.n, interval.n_effective) == (0, 1, 0, 0)
    assert interval.method == method


def test_at_the_end_of_the_range_the_bound_is_the_end():
    assert wilson(0, 7).low == 0.0
    assert wilson(7, 7).high == 1.0
    assert wilson(1e9, 1e9 + 1e-6).high <= 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: wilson_clustered([2.0], [0]), "lie in [0, 1]"),
        (lambda: mean_clustered([math.nan], [0]), "without NaN"),
    ],
)
def test_a_refusal_says_what_was_expected(call, words):
    with pytest.raises(StatisticsError, match=re.escape(words)):
        call()


@pytest.mark.parametrize("value", [0.1, 1 / 3, 0.7, 0.1 + 0.2])
def test_values_that_are_all_alike_rule_out_no_other_value(value):
    for n in (3, 6, 7, 10):
        interval = mean_clustered([value] * n, None).within(0.0, 1.0)
        reach = 1.96**2 / (n + 1.96**2)
        assert interval.low == pytest.approx(value * (1 - reach), abs=1e-4)
        assert interval.high == pytest.approx(value + (1 - value) * reach, abs=1e-4)
