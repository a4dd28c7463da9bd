"""Agreement statistics give the figures of statsmodels and of the textbooks."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from clash.errors import StatisticsError
from clash.stats.agreement import (
    cohen_kappa,
    confusion,
    kappa_from_table,
    krippendorff_alpha,
    landis_koch,
)
from clash.stats.intervals import wilson

THREE = [[44, 5, 1], [7, 20, 3], [9, 5, 6]]
NAN = math.nan
# Krippendorff 2011, "Computing Krippendorff's alpha-reliability", section C: twelve units.
UNITS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


# Fleiss' example of 14 raters, 10 items, 5 classes.
# statsmodels 0.15 cohens_kappa: kappa, std_kappa, std_kappa0.
@pytest.mark.parametrize(
    ("weighting", "kappa", "error", "null_error"),
    [
        ("none", 0.49152542372881347, 0.07212745929334068, 0.07350931675322524),
        ("linear", 0.4736842105263158, 0.07697890987030612, 0.07735230766683716),
        ("quadratic", 0.4545454545454546, 0.09397969777572601, 0.09525954107221604),
    ],
)
def test_kappa_and_its_errors_agree_with_statsmodels(weighting, kappa, error, null_error):
    actual_kappa = kappa_from_table(THREE, weighting=weighting)
    assert actual_kappa.estimate == pytest.approx(kappa, abs=1e-12)
    assert actual_kappa.error == pytest.approx(error, abs=1e-10)
    assert actual_kappa.z == pytest.approx(kappa / null_error, abs=1e-8)


@pytest.mark.parametrize(
    ("weighting", "observed_value", "expected_value"),
    [
        # Weights 1 on the diagonal, then 1/2 and 0, or 3/4 and 0; margins 50, 30, 20 and 60, 30, 10.
        ("none", 0.70, 0.41),
        ("linear", 0.70 + 0.20 / 2, 0.41 + (0.15 + 0.18 + 0.03 + 0.06) / 2),
        ("quadratic", 0.70 + 0.20 * 3 / 4, 0.41 + (0.15 + 0.18 + 0.03 + 0.06) * 3 / 4),
    ],
)
def test_weighted_agreement_by_hand(weighting, observed_value, expected_value):
    kappa = kappa_from_table(THREE, weighting=weighting)
    assert (kappa.observed, kappa.expected) == pytest.approx((observed_value, expected_value))
    assert (kappa_from_table(THREE).z == kappa.z) == (weighting == "none")


def test_weights_of_two_classes_are_no_weights():
    plain, weighted_kappa = (
        kappa_from_table([[7, 2], [3, 8]], weighting=w) for w in ("none", "linear")
    )
    assert (weighted_kappa.observed, weighted_kappa.expected) == (plain.observed, plain.expected)


# Landis and Koch 1977, the table of page 165.
@pytest.mark.parametrize(
    ("kappa", "word"),
    [
        (-0.01, "poor"),
        (0.0, "poor"),
        (0.01, "slight"),
        (0.2, "slight"),
        (0.4, "fair"),
        (0.6, "moderate"),
        (0.8, "substantial"),
        (0.81, "almost perfect"),
        (1.0, "almost perfect"),
        (NAN, "undefined"),
    ],
)
def test_the_adjectives_of_landis_and_koch(kappa, word):
    assert landis_koch(kappa) == word


def test_an_interval_of_kappa_says_how_it_was_made():
    plain = kappa_from_table(THREE, level=0.8).interval
    assert (plain.method, plain.level, plain.n_effective) == (
        "wilson, large-sample error",
        0.8,
        100,
    )
    clustered_interval = cohen_kappa(
        [0, 1, 0, 1, 0], [0, 1, 1, 1, 0], clusters=[1, 1, 2, 2, 3]
    ).interval
    assert (clustered_interval.method, clustered_interval.n_effective) == (
        "wilson, large-sample error, clustered",
        3,
    )
    perfect = kappa_from_table([[3, 0], [0, 4]]).interval
    assert perfect.method == "wilson at the expected agreement found"


def test_the_inter_run_table_of_the_agent_clash_paper():
    kappa = kappa_from_table([[71, 5], [4, 20]])
    assert kappa.observed == pytest.approx(0.91)
    assert kappa.estimate == pytest.approx(0.757, abs=5e-4)
    # The published interval is kappa ± 1.96 errors.
    reach = 1.959963984540054 * kappa.error
    assert (kappa.estimate - reach, kappa.estimate + reach) == pytest.approx(
        (0.6065, 0.9070), abs=1e-4
    )
    assert kappa.words == "substantial"


@pytest.mark.parametrize("weighting", ["none", "linear", "quadratic"])
def test_kappa_of_codes_agrees_with_scikit_learn(weighting):
    from sklearn.metrics import cohen_kappa_score

    first, second = np.random.default_rng(9).integers(0, 4, (2, 50))
    weights = None if weighting == "none" else weighting
    other_kappa = cohen_kappa_score(first, second, weights=weights)
    assert cohen_kappa(first, second, 4, weighting=weighting).estimate == pytest.approx(other_kappa)
    if weights is None:
        assert cohen_kappa(first, second, 4).estimate == pytest.approx(other_kappa)


def test_kappa_over_even_sides_is_twice_the_share_less_one():
    """So a concordance of 88% has a kappa of 0.76 by construction."""
    assert kappa_from_table([[44, 6], [6, 44]]).estimate == pytest.approx(2 * 0.88 - 1)


def test_kappa_over_sides_and_over_match_are_two_numbers():
    rng = np.random.default_rng(0)
    label, first, second = rng.integers(0, 2, (3, 400))
    sides = cohen_kappa(first, second)
    match = cohen_kappa(first == label, second == label)
    assert sides.observed == pytest.approx(match.observed)
    assert abs(sides.estimate - match.estimate) > 1e-4


def test_missing_codes_are_left_out():
    kappa = cohen_kappa([0, 1, -1, 1, 0], [0, 1, 1, -1, 1])
    assert kappa.table.tolist() == [[1, 1], [0, 1]]
    assert kappa.interval.n == 3


def test_copies_within_clusters_do_not_narrow_kappa():
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 80)
    b = np.where(rng.random(80) < 0.8, a, 1 - a)
    once = cohen_kappa(a, b, clusters=np.arange(80))
    copied_kappa = cohen_kappa(
        *(np.repeat(x, 6) for x in (a, b)), clusters=np.repeat(np.arange(80), 6)
    )
    blind = cohen_kappa(*(np.repeat(x, 6) for x in (a, b)))
    assert copied_kappa.interval.half_width == pytest.approx(once.interval.half_width)
    assert blind.interval.half_width < 0.5 * copied_kappa.interval.half_width


def test_the_clustered_error_of_kappa_by_hand():
    """Even margins: kappa = 2p - 1, and its error twice that of p, a mean of three cluster means.

    The means are 1, 1/2 and 1/2, their variance (n - 1 in the denominator) is 1/12, so the error
    of p is 1/6.
    """
    first, second = [0, 1, 0, 0, 1, 1], [0, 1, 0, 1, 1, 0]
    kappa = cohen_kappa(first, second, clusters=[7, 7, 8, 8, 9, 9], level=0.5)
    assert kappa.estimate == pytest.approx(1 / 3)
    assert kappa.error == pytest.approx(1 / 3)


@pytest.mark.slow
def test_the_interval_of_kappa_covers():
    rng, truth, hits, runs = np.random.default_rng(2), 0.6, 0, 600
    for _ in range(runs):
        a = rng.integers(0, 2, 100)
        b = np.where(rng.random(100) < 0.8, a, 1 - a)
        interval = cohen_kappa(a, b).interval
        hits += interval.low <= truth <= interval.high
    assert 0.92 < hits / runs < 0.98


def test_perfect_agreement_is_not_certainty():
    interval = kappa_from_table([[10, 0], [0, 10]], level=0.5).interval
    z = 0.6744897501960817  # Wilson of 20 of 20 is n / (n + z²), and kappa 2p - 1
    assert interval.low == pytest.approx(2 * 20 / (20 + z**2) - 1)
    interval = kappa_from_table([[10, 0], [0, 10]]).interval
    assert interval.estimate == 1
    assert 0.5 < interval.low < 0.9
    assert interval.high == 1


@pytest.mark.parametrize("table", [[[9, 0], [0, 0]], [[0, 0], [0, 0]]])
def test_kappa_of_one_class_is_undefined_and_says_so(table):
    kappa = kappa_from_table(table)
    assert math.isnan(kappa.estimate)
    assert (kappa.interval.low, kappa.interval.high) == (-1, 1)
    assert kappa.interval.method == "undefined"
    n = sum(map(sum, table))
    assert (kappa.interval.level, kappa.interval.n, kappa.interval.n_effective) == (0.95, n, n)
    assert kappa.words == "undefined"
    assert math.isnan(kappa.z)
    assert kappa.table.tolist() == table
    # One class: they agree always, and would by chance. No rows: nothing is known.
    assert (kappa.observed, kappa.expected) == pytest.approx(
        (1, 1) if n else (NAN, NAN), nan_ok=True
    )


@settings(deadline=None)
@given(hnp.arrays(int, (3, 3), elements=st.integers(0, 20)))
def test_kappa_is_symmetric_and_bounded(table):
    kappa, other_kappa = kappa_from_table(table), kappa_from_table(table.T)
    if not math.isnan(kappa.estimate):
        assert kappa.estimate == pytest.approx(other_kappa.estimate)
        assert -1 <= kappa.interval.low <= kappa.estimate <= kappa.interval.high <= 1


def test_confusion_counts_first_by_row():
    assert confusion([0, 0, 2], [1, 1, 0], 3).tolist() == [[0, 2, 0], [0, 0, 0], [1, 0, 0]]

    for first, second in (([0.0, 1.0], [True, True]), ([False, True], [1.0, 1.0])):
        assert confusion(first, second, 2).tolist() == [[0, 1], [0, 1]]


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([0, 3], [0, 1], r"codes lie in 0\.\.2, or are -1"),
        ([-2], [0], r"codes lie in 0\.\.2, or are -1"),
        ([0], [0, 1], r"shapes \(1,\) and \(2,\)"),
    ],
)
def test_bad_codes_are_refused(a, b, words):
    with pytest.raises(StatisticsError, match=words):
        confusion(a, b, 3)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([[1, 2, 3]], r"square, not \(1, 3\)"),
        ([[1, -1], [0, 1]], "^a table holds counts$"),
        ([[0.5, 1], [0, 1]], "^a table holds counts$"),
    ],
)
def test_a_table_that_is_none_is_refused(table, words):
    with pytest.raises(StatisticsError, match=words):
        kappa_from_table(table)


@pytest.mark.parametrize(
    ("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_of_krippendorffs_example(scale, alpha):
    assert krippendorff_alpha(UNITS, scale).estimate == pytest.approx(alpha, abs=5e-4)


def slow_alpha(values, distance):
    """The definition, pair by pair."""
    units = [[v for v in row if not math.isnan(v)] for row in values]
    units = [u for u in units if len(u) > 1]
    every = [v for u in units for v in u]
    within = sum(
        distance(a, b) / (len(u) - 1)
        for u in units
        for i, a in enumerate(u)
        for j, b in enumerate(u)
        if i != j
    )
    among = sum(distance(a, b) for i, a in enumerate(every) for j, b in enumerate(every) if i != j)
    return 1 - within / (among / (len(every) - 1))


@pytest.mark.parametrize(
    ("scale", "distance"),
    [("nominal", lambda a, b: float(a != b)), ("interval", lambda a, b: (a - b) ** 2)],
)
def test_alpha_is_its_definition(scale, distance):
    rng = np.random.default_rng(5)
    values = rng.integers(1, 6, size=(30, 4)).astype(float)
    values[rng.random((30, 4)) < 0.3] = NAN
    estimate = krippendorff_alpha(values, scale).estimate
    assert estimate == pytest.approx(slow_alpha(values, distance))


@pytest.mark.parametrize("scale", ["ordinal", "interval"])
def test_alpha_is_of_any_unit_and_origin(scale):
    """Distances far below 1 and values far from 0 are no other disagreement."""
    estimate = krippendorff_alpha(UNITS / 1000 - 7, scale).estimate
    assert estimate == pytest.approx(krippendorff_alpha(UNITS, scale).estimate)


def test_alpha_of_values_far_from_zero_keeps_its_digits():
    far = krippendorff_alpha(UNITS + 1e8, "interval").estimate
    assert far == pytest.approx(krippendorff_alpha(UNITS, "interval").estimate, abs=1e-12)


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_of_one_pair_that_differs_is_chance(scale):
    """Krippendorff's factor n - 1 makes it 0: two ratings are all that chance has to draw from."""
    assert krippendorff_alpha([[1, 2], [3, None]], scale).estimate == pytest.approx(0)


def test_alpha_is_nominal_unless_said_and_six_clusters_are_enough_for_an_interval():
    six, five = (
        krippendorff_alpha(UNITS, clusters=np.arange(12) % n, rng=np.random.default_rng(0))
        for n in (6, 5)
    )
    assert six.estimate == krippendorff_alpha(UNITS, "nominal").estimate
    assert six.estimate != krippendorff_alpha(UNITS, "interval").estimate
    assert (six.method != "no interval", five.method) == (True, "no interval")


def test_alpha_of_chance_is_nought_and_its_interval_holds_it():
    rng = np.random.default_rng(6)
    tables = rng.integers(0, 2, size=(60, 200, 3)).astype(float)
    alphas = [krippendorff_alpha(table, rng=rng, n_bootstrap=300) for table in tables]
    assert np.mean([record.estimate for record in alphas]) == pytest.approx(0, abs=0.02)
    assert np.mean([not record.excludes(0) for record in alphas]) > 0.85


@pytest.mark.parametrize("scale", ["nominal", "ordinal", "interval"])
def test_alpha_of_copies_is_one_and_of_one_value_undefined(scale):
    values = np.tile([[1.0], [2.0], [5.0]], (1, 3))
    assert krippendorff_alpha(values, scale).estimate == pytest.approx(1)
    assert math.isnan(krippendorff_alpha(np.ones((4, 3)), scale).estimate)
    assert math.isnan(krippendorff_alpha([[1, NAN], [NAN, 2]], scale).estimate)


def test_alpha_without_randomness_has_no_interval_and_says_so():
    alpha = krippendorff_alpha(UNITS)
    assert (alpha.low, alpha.high, alpha.method) == (-1.0, 1.0, "no interval")


def test_the_interval_of_alpha_takes_its_level_and_its_resamples():
    values = np.random.default_rng(3).integers(0, 2, size=(30, 3)).astype(float)

    def found(**options):
        return krippendorff_alpha(values, rng=np.random.default_rng(0), **options)

    assert (found(level=0.5).level, found(level=0.5).n) == (0.5, 30)
    assert found(level=0.5).half_width < 0.5 * found().half_width
    assert found(n_bootstrap=50).low != found(n_bootstrap=51).low
    alpha = krippendorff_alpha(values, level=0.8)
    assert (alpha.level, alpha.n, alpha.n_effective) == (0.8, 30, 30)
    undefined_alpha = krippendorff_alpha(np.ones((4, 3)), level=0.8)
    assert (undefined_alpha.level, undefined_alpha.n) == (0.8, 4)


def test_kappa_of_two_clusters_has_one_degree_of_freedom():
    """Cluster means of agreement 1 and 1/2: p has the error 1/4, kappa twice that; t is 1."""
    interval = cohen_kappa(
        [0, 1, 0, 1, 0, 1, 0, 1],
        [0, 1, 0, 1, 0, 1, 1, 0],
        clusters=[0, 0, 0, 0, 1, 1, 1, 1],
        level=0.5,
    ).interval
    # Wilson's interval of 3/4 at the size with the error 1/4 of t, for the quantile z.
    z = 0.6744897501960817
    share = wilson(3 / 4 * 3 * z**2, 3 * z**2, 0.5)
    assert (interval.low, interval.high) == pytest.approx((2 * share.low - 1, 2 * share.high - 1))
    assert interval.n_effective == 2


def test_the_interval_of_alpha_is_over_clusters():
    rng = np.random.default_rng(7)
    values = np.repeat(rng.integers(0, 2, size=(40, 3)), 10, axis=0).astype(float)
    blind = krippendorff_alpha(values, rng=np.random.default_rng(0))
    aware = krippendorff_alpha(
        values, rng=np.random.default_rng(0), clusters=np.repeat(np.arange(40), 10)
    )
    assert aware.half_width > 2 * blind.half_width


def test_one_cluster_bounds_kappa_by_what_is_possible():
    interval = cohen_kappa([0, 1, 0, 1], [0, 1, 1, 1], clusters=[3, 3, 3, 3]).interval
    assert (interval.low, interval.high) == (-1, 1)


def test_a_table_of_the_wrong_shape_is_refused():
    with pytest.raises(StatisticsError, match="items by raters"):
        krippendorff_alpha([1.0, 2.0])
