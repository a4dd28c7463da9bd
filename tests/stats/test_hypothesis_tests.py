"""Tests of hypotheses agree with scipy, with the paper, and hold their size."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clash.errors import StatisticsError
from clash.stats import hypothesis_tests as tests
from clash.stats.intervals import wilson

counts = st.integers(0, 40)


def test_the_figures_of_the_agent_clash_paper():
    """z = 2.21 (p = 0.027), chi-square 14.78, odds ratio 11.14, McNemar 0.00, P(>= 19 of 20)."""
    between = tests.two_proportions(88, 100, 76, 100)
    assert (between.statistic, between.p) == pytest.approx((2.21, 0.027), abs=5e-3)
    tiers = [[71, 3], [17, 8]]
    assert tests.chi_square(tiers).statistic == pytest.approx(14.78, abs=5e-3)
    assert tests.odds_ratio(tiers).estimate == pytest.approx(11.14, abs=5e-3)
    assert tests.mcnemar(5, 4, exact=False).statistic == 0
    # The paper says < 0.00002; it is a little more.
    assert tests.binomial_tail(19, 20).p == pytest.approx(21 / 2**20, rel=1e-12)
    assert tests.binomial_tail(19, 20).p == pytest.approx(2.003e-5, rel=1e-3)


@settings(deadline=None)
@given(counts, counts, counts, counts)
def test_tables_agree_with_scipy(a, b, c, d):
    from scipy import stats

    table = [[a, b], [c, d]]
    assert tests.fisher_exact(table).p == pytest.approx(stats.fisher_exact(table).pvalue, abs=1e-9)
    if min(a + b, c + d, a + c, b + d) > 0:
        for correction in (False, True):
            test = tests.chi_square(table, correction=correction)
            other_test = stats.chi2_contingency(table, correction=correction)
            assert test.statistic == pytest.approx(other_test.statistic, abs=1e-9)
            assert test.p == pytest.approx(other_test.pvalue, abs=1e-9)
            assert tests.smallest_expected(table) == pytest.approx(other_test.expected_freq.min())
    else:
        assert tests.chi_square(table).p == 1


@settings(deadline=None)
@given(counts, counts)
def test_sign_test_and_mcnemar_agree_with_scipy(wins, losses):
    from scipy.stats import binomtest

    expected_p = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert tests.sign_test(wins, losses).p == pytest.approx(expected_p)
    assert tests.mcnemar(wins, losses).p == pytest.approx(expected_p)


def test_binomial_tail_agrees_with_scipy():
    from scipy.stats import binom

    for k, n, p in [(0, 5, 0.3), (5, 5, 0.3), (3, 9, 0.62), (0, 0, 0.5), (2, 4, 0.0), (2, 4, 1.0)]:
        assert tests.binomial_tail(k, n, p).p == pytest.approx(binom.sf(k - 1, n, p))


def test_mcnemar_with_correction_of_a_known_table():
    """(|15 - 5| - 1)^2 / 20 = 4.05, p = 0.0442."""
    test = tests.mcnemar(15, 5, exact=False)
    assert (test.statistic, test.p) == pytest.approx((4.05, 0.04417), abs=1e-4)
    assert tests.mcnemar(0, 0, exact=False).p == 1


def test_the_odds_ratio_has_woolfs_interval():
    ratio = tests.odds_ratio([[10, 5], [4, 12]])
    error = math.sqrt(1 / 10 + 1 / 5 + 1 / 4 + 1 / 12)
    assert ratio.estimate == pytest.approx(6)
    assert math.log(ratio.high / 6) == pytest.approx(1.959964 * error, rel=1e-5)
    assert math.log(6 / ratio.low) == pytest.approx(1.959964 * error, rel=1e-5)


def test_an_empty_cell_is_raised_and_it_says_so():
    ratio = tests.odds_ratio([[20, 0], [10, 10]])
    assert ratio.estimate == pytest.approx(20.5 * 10.5 / (0.5 * 10.5))
    assert "0.5" in ratio.method
    assert math.isfinite(ratio.high)


@pytest.mark.parametrize("empty", range(4))
def test_any_empty_cell_is_raised(empty):
    """Haldane and Anscombe: a half to every cell, whichever of them is empty."""
    table = np.array([7.0, 3.0, 2.0, 5.0])
    table[empty] = 0
    a, b, c, d = table + 0.5
    ratio = tests.odds_ratio(table.reshape(2, 2), 0.8)
    assert ratio.estimate == pytest.approx(a * d / (b * c))
    assert math.log(ratio.high / ratio.estimate) == pytest.approx(
        1.2815515655446004 * math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    )
    assert (ratio.level, ratio.n, ratio.n_effective) == (0.8, table.sum(), table.sum())
    assert ratio.method == "woolf, cells raised by 0.5"
    assert tests.odds_ratio([[7, 3], [2, 5]]).method == "woolf"


@pytest.mark.parametrize(
    "table", [[[0, 0], [3, 4]], [[3, 4], [0, 0]], [[0, 3], [0, 4]], [[3, 0], [4, 0]]]
)
def test_any_empty_margin_leaves_the_odds_ratio_undefined(table):
    ratio = tests.odds_ratio(table, 0.8)
    assert math.isnan(ratio.estimate)
    assert (ratio.low, ratio.high) == (0, math.inf)
    assert (ratio.level, ratio.n, ratio.n_effective) == (0.8, 7, 7)
    assert ratio.method == "undefined"


@pytest.mark.parametrize("table", [[[3, 3], [4, 4]], [[3, 4], [3, 4]], [[4, 3], [3, 4]]])
def test_even_margins_are_no_empty_ones(table):
    (a, b), (c, d) = table
    assert tests.odds_ratio(table).estimate == pytest.approx(a * d / (b * c))


def test_an_empty_margin_has_no_odds_ratio():
    ratio = tests.odds_ratio([[0, 0], [3, 4]])
    assert math.isnan(ratio.estimate)
    assert (ratio.low, ratio.high) == (0, math.inf)


@pytest.mark.parametrize(("k1", "n1", "k2", "n2"), [(0, 0, 1, 2), (0, 5, 0, 7), (5, 5, 7, 7)])
def test_proportions_that_cannot_be_told_apart(k1, n1, k2, n2):
    assert tests.two_proportions(k1, n1, k2, n2).p == 1


def test_a_paired_difference_without_clusters_is_the_paired_t_test():
    from scipy.stats import ttest_rel

    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30))
    gap, reference_test = tests.paired_difference(x, y), ttest_rel(x, y)
    assert (gap.test.statistic, gap.test.p) == pytest.approx(
        (reference_test.statistic, reference_test.pvalue)
    )
    expected_interval = reference_test.confidence_interval(0.95)
    assert (gap.difference.low, gap.difference.high) == pytest.approx(
        (expected_interval.low, expected_interval.high)
    )


def test_copies_do_not_make_a_paired_difference_significant():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 20))
    copied_values = [np.repeat(v, 8) for v in (x, y)]
    once, blind = tests.paired_difference(x, y), tests.paired_difference(*copied_values)
    aware = tests.paired_difference(*copied_values, np.repeat(np.arange(20), 8))
    assert aware.test.p == pytest.approx(once.test.p)
    assert blind.test.p < aware.test.p


@pytest.mark.parametrize("gap", [0.0, 0.1, 1.0])
def test_paired_differences_that_are_all_alike(gap):
    actual_gap = tests.paired_difference(np.full(7, gap), np.zeros(7))
    # No spread to test by, but seven differences of one sign, whose mean is rounded; others may come.
    assert actual_gap.test.p == (1.0 if gap == 0 else 2 / 2**7)
    assert -1 <= actual_gap.difference.low < gap <= actual_gap.difference.high <= 1
    # At the end of the range the bound is Wilson's at 7 of 7.
    if gap == 1:
        assert actual_gap.difference.low == pytest.approx(2 * wilson(7, 7).low - 1)


def test_one_cluster_proves_nothing():
    gap = tests.paired_difference([1, 1, 1], [0, 0, 0], [4, 4, 4])
    assert gap.test.p == 1
    assert (gap.difference.low, gap.difference.high) == (-1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["t", "bootstrap", "flips"])
def test_paired_tests_hold_their_size_with_clusters(method):
    rng, runs, clusters = np.random.default_rng(2), 250, np.repeat(np.arange(25), 4)
    n_rejected = 0
    for _ in range(runs):
        x = np.repeat(rng.normal(size=25), 4) + 0.3 * rng.normal(size=100)
        zero = np.zeros(100)
        if method == "t":
            p = tests.paired_difference(x, zero, clusters).test.p
        elif method == "bootstrap":
            p = tests.paired_bootstrap(x, zero, clusters, rng, 300).test.p
        else:
            p = tests.sign_flip_test(x, zero, clusters, rng, 300).p
        n_rejected += p <= 0.05
    assert 0.01 < n_rejected / runs < 0.10


def test_few_clusters_are_flipped_in_every_way():
    test = tests.sign_flip_test([1, 2, 3, 0], [0, 0, 0, 0], [0, 1, 2, 3], np.random.default_rng(0))
    assert (test.p, test.statistic) == (0.25, 6)


def test_the_sign_flip_test_by_every_assignment_of_signs():
    """Clusters of several rows; gaps that tie, cancel and differ by less than 1."""
    gaps = np.array([0.3, 0.2, -0.25, 0.4, 0.05, 0.25, 0.1, -0.05])
    clusters = np.array([0, 0, 1, 2, 2, 3, 4, 5])
    totals = [0.5, -0.25, 0.45, 0.25, 0.1, -0.05]
    sums = [abs(np.dot(signs, totals)) for signs in itertools.product((1, -1), repeat=6)]
    share = np.mean([value >= abs(sum(totals)) - 1e-12 for value in sums])
    test = tests.sign_flip_test(gaps, 0 * gaps, clusters, np.random.default_rng(0))
    assert test.p == share
    assert test.statistic == pytest.approx(sum(totals))
    assert test.method == "sign-flip test over clusters"


@pytest.mark.parametrize(("clusters", "p"), [(12, 2 / 2**12), (13, 1 / 100)])
def test_twelve_clusters_are_flipped_in_every_way_and_thirteen_at_random(clusters, p):
    """All alike: only all signs as they are, and all turned, are as far from 0."""
    x = np.ones(clusters)
    assert tests.sign_flip_test(x, 0 * x, np.arange(clusters), np.random.default_rng(0), 99).p == p


def test_many_clusters_are_flipped_at_random_and_never_to_nought():
    x = np.ones(40)
    test = tests.sign_flip_test(x, 0 * x, np.arange(40), np.random.default_rng(0), 999)
    assert test.p == 1 / 1000
    assert tests.sign_flip_test(x, x, np.arange(40), np.random.default_rng(0)).p == 1


def test_the_bootstrap_of_a_difference_agrees_with_its_t_test():
    rng = np.random.default_rng(3)
    x, y = (rng.random((2, 300)) < [[0.8], [0.72]]).astype(float)
    boot = tests.paired_bootstrap(x, y, np.arange(300), rng, 4000)
    t = tests.paired_difference(x, y)
    assert boot.difference.low == pytest.approx(t.difference.low, abs=0.01)
    assert boot.test.p == pytest.approx(t.test.p, abs=0.02)


def test_the_bootstrap_of_a_difference_takes_its_number_and_level():
    """9 resamples of ten gaps that are all above 0: no p below 2 / 10."""
    rng, x = np.random.default_rng, np.linspace(1, 2, 10)
    assert tests.paired_bootstrap(x, 0 * x, np.arange(10), rng(0), 9).test.p == 0.2
    wide, narrow = (
        tests.paired_bootstrap(x, 0 * x, np.arange(10), rng(0), level=level).difference
        for level in (0.95, 0.5)
    )
    assert narrow.half_width == pytest.approx(wide.half_width * 0.6745 / 1.96, rel=0.1)
    assert narrow.level == 0.5


def test_the_bootstrap_of_a_difference_by_its_own_resamples():
    """Two clusters, of gaps 1, 1 and -2, -2, -2: drawn (0, 0), (0, 1) or (1, 1)."""
    gaps, zero = np.array([1.0, 1, -2, -2, -2]), np.zeros(5)
    test = tests.paired_bootstrap(gaps, zero, [0, 0, 1, 1, 1], np.random.default_rng(1), 20_000)
    # Both times the first cluster: the only replicates above 0, a quarter of them.
    assert test.test.p == pytest.approx(0.5, abs=0.02)
    assert test.test.statistic == test.difference.estimate == pytest.approx(-0.8)
    assert test.test.method == "paired bootstrap over clusters"
    assert (test.difference.low, test.difference.high) == (-2, 1)


def test_replicates_at_nought_count_on_both_sides():
    test = tests.paired_bootstrap([1, 0], [1, 0], [0, 1], np.random.default_rng(0), 50)
    assert test.test.p == 1


def test_a_paired_difference_is_at_the_level_that_was_asked_for():
    difference = tests.paired_difference([1, 3], [0, 0], level=0.5).difference
    assert (difference.low, difference.high) == pytest.approx(
        (1, 3)
    )  # t with 1 df: the quartile is 1
    assert difference.level == 0.5
    alike = tests.paired_difference([1, 1, 1], [3, 3, 3], level=0.5)
    assert alike.test == tests.Significance(2 / 2**3, -math.inf, "paired t test")
    assert (alike.difference.low, alike.difference.high) == (-2, -2)


@pytest.mark.parametrize("rows", [(0, 0, 3, 5), (3, 5, 0, 0), (4, 4, 6, 6), (0, 4, 0, 6)])
def test_proportions_without_a_difference_to_see_have_the_statistic_0(rows):
    test = tests.two_proportions(*rows)
    assert (test.p, test.statistic, test.method) == (1, 0, "two-proportion z test")


@pytest.mark.parametrize(
    ("make", "p", "statistic", "method"),
    [
        (lambda: tests.sign_test(4, 1), 12 / 32, 3, "sign test"),
        (lambda: tests.mcnemar(4, 1), 12 / 32, 1, "McNemar, exact"),
        # (|9 - 1| - 1)² / 10, of which the root is 2.2136
        (
            lambda: tests.mcnemar(9, 1, exact=False),
            0.026857,
            4.9,
            "McNemar, chi-square with continuity correction",
        ),
        (lambda: tests.binomial_tail(3, 4, 0.5), 5 / 16, 3, "binomial tail P(X >= 3 of 4)"),
        (lambda: tests.binomial_tail(1, 3, 0.5), 7 / 8, 1, "binomial tail P(X >= 1 of 3)"),
        (lambda: tests.binomial_tail(0, 3, 0.5), 1, 0, "binomial tail P(X >= 0 of 3)"),
        # z² of two proportions is the chi-square of their table.
        (
            lambda: tests.two_proportions(8, 10, 4, 10),
            0.067889,
            math.sqrt(10 / 3),
            "two-proportion z test",
        ),
        (
            lambda: tests.sign_flip_test([1, 2], [1, 2], [0, 1], np.random.default_rng(0)),
            1,
            0,
            "sign-flip test over clusters",
        ),
        # 20 (8·6 - 2·4)² / (10·10·12·8), without and with Yates' correction by 10
        (lambda: tests.chi_square([[8, 2], [4, 6]]), 0.067889, 10 / 3, "chi-square"),
        (
            lambda: tests.chi_square([[8, 2], [4, 6]], correction=True),
            0.170904,
            1.875,
            "chi-square with Yates' correction",
        ),
        (lambda: tests.chi_square([[0, 0], [4, 6]]), 1, 0, "chi-square"),
        # The margins 4, 4, 4, 4 have 70 tables; 1, 16, 36, 16, 1 of them have 0 to 4 in the corner.
        (lambda: tests.fisher_exact([[3, 1], [1, 3]]), 34 / 70, 3, "Fisher's exact test"),
        # Two clusters: t with one degree of freedom, 1 - 2/pi atan(2).
        (
            lambda: tests.paired_difference([1, 3], [0, 0], [0, 1]).test,
            1 - 2 / math.pi * math.atan(2),
            2,
            "paired t test, clustered",
        ),
        (
            lambda: tests.paired_difference([1, 3], [0, 0]).test,
            1 - 2 / math.pi * math.atan(2),
            2,
            "paired t test",
        ),
        (
            lambda: tests.paired_difference([1, 3], [0, 0], [5, 5]).test,
            1,
            0,
            "paired t test, clustered",
        ),
    ],
    ids=range(15),
)
def test_a_test_says_which_it_is_and_its_statistic(make, p, statistic, method):
    suite = make()
    assert suite.p == pytest.approx(p, abs=1e-6)
    assert suite.statistic == pytest.approx(statistic)
    assert suite.method == method


def test_holm_gives_the_textbook_steps():
    assert tests.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert tests.holm([0.6, 0.9]).tolist() == [1.0, 1.0]
    assert tests.holm([]).tolist() == []


@settings(deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_never_lowers_a_p_and_keeps_the_order(p):
    adjusted_p = tests.holm(p)
    assert np.all(adjusted_p >= np.array(p))
    assert np.all(np.diff(adjusted_p[np.argsort(p, kind="stable")]) >= 0)


RNG = np.random.default_rng(0)
PAIRS = ([1, None], [1, 2], [0, 1], RNG)
TURNED = ([1, 2], [1, None], [0, 1], RNG)


@pytest.mark.parametrize(
    ("test", "args", "words"),
    [
        (tests.two_proportions, (3, 2, 1, 2), "^3 of 2 is not a proportion"),
        (tests.binomial_tail, (3, 2), "^no tail of 3 of 2 at 0.5"),
        (tests.binomial_tail, (1, 2, 1.5), "^no tail of 1 of 2 at 1.5"),
        (tests.sign_test, (-1, 2), "^wins and losses are counts$"),
        (tests.sign_test, (2, -1), "^wins and losses are counts$"),
        (tests.mcnemar, (-1, 0), "^wins and losses are counts$"),
        (tests.chi_square, ([[1, 2]],), "^expected a 2 x 2 table of counts$"),
        (tests.fisher_exact, ([[1, -2], [0, 1]],), "^expected a 2 x 2 table of counts$"),
        (tests.odds_ratio, ([[1, math.inf], [0, 1]],), "^expected a 2 x 2 table of counts$"),
        (tests.holm, ([1.2],), r"^p values lie in \[0, 1\]$"),
        (tests.holm, ([math.nan],), r"^p values lie in \[0, 1\]$"),
        (tests.holm, ([0.5, None],), r"^p values lie in \[0, 1\]$"),
        (tests.paired_difference, ([1], [1, 2]), r"with \(1,\) and \(2,\) items are not paired"),
        (tests.paired_difference, ([1, math.nan], [1, 2]), "without NaN"),
        # A missing value is NaN, also where it is written None.
        (tests.paired_difference, PAIRS[:2], "without NaN"),
        (tests.paired_difference, TURNED[:2], "without NaN"),
        (tests.paired_bootstrap, PAIRS, "without NaN"),
        (tests.paired_bootstrap, TURNED, "without NaN"),
        (tests.sign_flip_test, PAIRS, "without NaN"),
        (tests.sign_flip_test, TURNED, "without NaN"),
    ],
)
def test_bad_input_is_refused(test, args, words):
    with pytest.raises(StatisticsError, match=words):
        test(*args)


def test_a_negative_count_is_refused_by_the_corrected_mcnemar():
    with pytest.raises(StatisticsError, match=r"^discordant pairs are counts$"):
        tests.mcnemar(-1, 0, exact=False)


def test_an_empty_table_expects_nothing():
    assert tests.smallest_expected([[0, 0], [0, 0]]) == 0


def test_resamples_unless_said_are_2000_and_10000():
    """All gaps are above 0, so that p is the smallest that this number of resamples can give."""
    x, clusters = np.ones(40), np.arange(40)
    assert tests.paired_bootstrap(x, 0 * x, clusters, RNG).test.p == pytest.approx(2 / 2001)
    assert tests.sign_flip_test(x, 0 * x, clusters, RNG).p == pytest.approx(1 / 10_001)


def test_a_difference_of_rates_on_few_items_stays_between_minus_1_and_1():
    result = tests.paired_difference([1, 1, 1, 0, 0, 1], [0, 0, 0, 0, 1, 0])
    assert -1 <= result.difference.low < result.difference.high <= 1
    few = tests.paired_difference([1, 1, 0], [0, 0, 0])
    assert (few.difference.low, few.difference.high) == (pytest.approx(2 / 3 - 1.434, abs=1e-3), 1)
    # Other quantities have no such bounds.
    assert tests.paired_difference([10, 12, 0], [0, 0, 0]).difference.high > 1


@pytest.mark.parametrize("seed", range(4))
def test_signed_ranks_are_scipys(seed):
    from scipy.stats import wilcoxon

    from clash.stats.hypothesis_tests import wilcoxon_signed_rank

    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=18), rng.normal(0.4, 1, size=18)
    assert wilcoxon_signed_rank(x, y).p == pytest.approx(wilcoxon(x, y, mode="exact").pvalue)
    x, y = rng.normal(size=400), rng.normal(0.1, 1, size=400)
    expected_pvalue = wilcoxon(x, y, mode="approx", correction=False).pvalue
    assert wilcoxon_signed_rank(x, y).p == pytest.approx(expected_pvalue)


def test_signed_ranks_with_ties_zeros_and_copies():
    from clash.stats.hypothesis_tests import sign_test, wilcoxon_signed_rank

    # All of one size, k of n positive: the ranks are equal, so it is the sign test.
    ups = np.array([1.0] * 7 + [0.0] * 5)
    downs = np.array([0.0] * 7 + [0.0] * 3 + [1.0] * 2)
    assert wilcoxon_signed_rank(ups, downs).p == pytest.approx(sign_test(7, 2).p)
    assert wilcoxon_signed_rank(ups, ups).p == 1
    assert wilcoxon_signed_rank([], []).p == 1
    copies = wilcoxon_signed_rank(np.tile(ups, 5), np.tile(downs, 5), np.tile(np.arange(12), 5))
    assert copies.p == pytest.approx(sign_test(7, 2).p)
