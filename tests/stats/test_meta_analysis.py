"""Random effects over data sets: closed forms, figures of statsmodels, and degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.hypothesis_tests import cochran_q
from clash.stats.intervals import t_quantile, wilson
from clash.stats.meta_analysis import random_effects, share_effects

EFFECTS = [0.10, 0.30, 0.35, 0.65, 0.45, 0.15]
VARIANCES = [0.03, 0.03, 0.05, 0.01, 0.05, 0.02]


def test_moments_are_those_of_statsmodels():
    """statsmodels 0.14, combine_effects(…, method_re="dl", use_t=True).

    Of the first data the spread is below the sampling error ("random effect"), of the second above
    it ("random effect wls", Hartung and Knapp).
    """
    fit = random_effects(EFFECTS, VARIANCES, method="moments")
    assert fit.tau2.estimate == pytest.approx(0.039785966460723785)
    assert fit.heterogeneity.statistic == pytest.approx(12.805627705627714)
    assert fit.i2.estimate == pytest.approx(0.609546668469626)
    assert (fit.mean.estimate, fit.mean.low, fit.mean.high) == pytest.approx(
        (0.34424967841900606, 0.069829, 0.618670), abs=1e-6
    )
    wide = random_effects([0.0, 1.2, 0.2, 0.3, -1.0], [0.3, 0.3, 0.01, 0.01, 0.3], method="moments")
    assert wide.tau2.estimate == pytest.approx(0.04283471837488458)
    assert (wide.mean.estimate, wide.mean.low, wide.mean.high) == pytest.approx(
        (0.21557687259362968, -0.33803604597538295, 0.7691897911626423)
    )


@pytest.mark.parametrize("method", ["reml", "moments"])
def test_equal_variances_have_a_closed_form(method):
    y, v = np.array([0.0, 1.0, 2.0, 5.0]), 0.5
    fit = random_effects(y, np.full(4, v), method=method)
    spread = y.var(ddof=1)
    assert fit.converged
    assert fit.tau2.estimate == pytest.approx(spread - v)
    reach = t_quantile(0.95, 3) * np.sqrt(spread / 4)
    assert (fit.mean.low, fit.mean.high) == pytest.approx((y.mean() - reach, y.mean() + reach))
    # The squares over v + tau² are chi-square with 3 degrees of freedom: 9.3484 and 0.21580.
    squares = 3 * spread
    assert (fit.tau2.low, fit.tau2.high) == pytest.approx(
        (squares / 9.348404 - v, squares / 0.2157953 - v), rel=1e-6
    )


def test_reml_is_where_the_restricted_likelihood_is_greatest():
    y, v = np.array(EFFECTS), np.array(VARIANCES)
    x = np.column_stack([np.ones(6), np.arange(6.0) - 2.5])

    def likelihood(tau2):
        w = 1 / (v + tau2)
        information = x.T @ (w[:, None] * x)
        beta = np.linalg.solve(information, x.T @ (w * y))
        squares = (w * (y - x @ beta) ** 2).sum()
        return np.log(w).sum() - np.linalg.slogdet(information)[1] - squares

    tau2 = random_effects(y, v, moderator=np.arange(6.0)).tau2.estimate
    grid = np.linspace(0, 0.3, 30001)
    assert tau2 == pytest.approx(grid[np.argmax([likelihood(t) for t in grid])], abs=1e-5)


def test_a_slope_without_noise_between_sets_is_that_of_least_squares():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    fit = random_effects(2 - 0.5 * x + [0.1, -0.1, -0.1, 0.1], np.full(4, 1.0), moderator=x)
    assert fit.tau2.estimate == 0
    assert fit.slope.estimate == pytest.approx(-0.5)
    assert fit.mean.estimate == pytest.approx(2 - 0.5 * 2.5)
    # The spread that is seen is below the sampling error, which stands.
    assert fit.slope.half_width == pytest.approx(t_quantile(0.95, 2) * np.sqrt(1 / 5))


def test_effects_that_happen_to_agree_rule_little_out():
    fit = random_effects([0.5, 0.5, 0.5], [2.0, 2.0, 2.0])
    assert fit.mean.half_width == pytest.approx(t_quantile(0.95, 2) * np.sqrt(2 / 3))
    assert fit.tau2.high == np.inf
    assert (fit.i2.low, fit.i2.high) == (0, 1)


def test_the_interval_covers_and_shares_stay_shares():
    rng, hits = np.random.default_rng(1), 0
    for _ in range(200):
        p = 1 / (1 + np.exp(-(1.0 + 0.6 * rng.normal(size=8))))
        shares = [wilson(int(rng.binomial(60, share)), 60) for share in p]
        fit = random_effects(*share_effects(shares))
        hits += fit.mean.low <= 1.0 <= fit.mean.high
    assert 0.925 <= hits / 200 <= 0.985
    effects, variances = share_effects([wilson(0, 3), wilson(3, 3)])
    assert np.isfinite(effects).all()
    assert (variances > 0).all()


@pytest.mark.parametrize(
    ("effects", "variances", "moderator"),
    [
        ([1.0], [1.0], None),
        ([1.0, 2.0], [1.0, 0.0], None),
        ([1.0, float("nan")], [1.0, 1.0], None),
        ([1.0, 2.0], [1.0, 1.0], [0.0, 1.0]),
        ([1.0, 2.0, 3.0], [1.0] * 3, [1.0] * 3),
    ],
)
def test_too_little_is_refused(effects, variances, moderator):
    with pytest.raises(StatisticsError):
        random_effects(effects, variances, moderator=moderator)


def test_cochrans_q_is_that_of_statsmodels_and_of_mcnemar():
    """statsmodels 0.14, cochrans_q of the same table."""
    x = (np.random.default_rng(1).random((30, 4)) < [0.5, 0.6, 0.7, 0.8]).astype(int)
    assert (cochran_q(x).statistic, cochran_q(x).p) == pytest.approx(
        (16.01298701298701, 0.001127053189151501)
    )
    two = x[:, :2]
    counts = int((two[:, 0] > two[:, 1]).sum()), int((two[:, 0] < two[:, 1]).sum())
    b, c = counts
    assert cochran_q(two).statistic == pytest.approx((b - c) ** 2 / (b + c))


def test_copies_of_items_make_cochrans_q_no_surer():
    rng = np.random.default_rng(2)
    x = (rng.random((12, 3)) < 0.6).astype(int)
    twice = cochran_q(np.repeat(x, 2, axis=0), np.repeat(np.arange(12), 2), rng).p
    copies = cochran_q(np.repeat(x, 5, axis=0), np.repeat(np.arange(12), 5), rng).p
    assert copies == pytest.approx(twice, abs=0.02)
    assert twice > cochran_q(np.repeat(x, 2, axis=0)).p
    assert cochran_q(np.ones((4, 3))).p == 1
    with pytest.raises(StatisticsError):
        cochran_q(np.ones((0, 3)))
