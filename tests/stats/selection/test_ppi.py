"""Labels and judges together: intervals that cover, clustered and stratified, narrower than labels."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.ppi import powered_mean

RNG = np.random.default_rng


def test_one_stratum_is_the_formula():
    rng = RNG(0)
    y, f, unlabelled_f = rng.random(50), rng.random(50), rng.random(400)
    y += f
    estimate = powered_mean(np.r_[y, np.full(400, np.nan)], np.r_[f, unlabelled_f])
    share = np.cov(y, f)[0, 1] / 50 / (f.var(ddof=1) / 50 + unlabelled_f.var(ddof=1) / 400)
    assert estimate.power == pytest.approx(min(share, 1.0))
    assert estimate.interval.estimate == pytest.approx(
        y.mean() - estimate.power * (f.mean() - unlabelled_f.mean())
    )
    residual = y - estimate.power * f
    variance = residual.var(ddof=1) / 50 + estimate.power**2 * unlabelled_f.var(ddof=1) / 400
    t = 2.0106  # 97.5% of Student's t with 48 degrees of freedom
    assert estimate.interval.half_width == pytest.approx(t * np.sqrt(variance * 49 / 48), rel=1e-4)


def population(rng, groups, size):
    """Rows of prompts: people's preference and a judge that is sure where it is right."""
    ease = np.repeat(rng.random(groups), size)
    y = (rng.random(groups * size) < 0.2 + 0.6 * ease).astype(float)
    sure = rng.random(groups * size) < 0.6
    right = rng.random(groups * size) < np.where(sure, 0.95, 0.55)
    return y, np.where(right, y, 1 - y), sure.astype(int), np.repeat(np.arange(groups), size)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 4])
def test_it_covers_where_people_look_more_often_at_what_is_unsure(size):
    rng = RNG(size)
    is_covered, narrower, naive = [], [], []
    for _ in range(500):
        y, f, sure, group = population(rng, 600 // size, size)
        # Whole prompts are labelled, and every unsure row twice as often as a sure one.
        is_labelled = np.isin(group, rng.permutation(600 // size)[: 240 // size])
        is_labelled &= (sure == 0) | (rng.random(600) < 0.5)
        estimate = powered_mean(np.where(is_labelled, y, np.nan), f, group, strata=sure)
        is_covered.append(not estimate.interval.excludes(0.5))
        narrower.append(estimate.interval.half_width / estimate.labels_only.half_width)
        naive.append(estimate.judges_mean)
    assert 0.93 <= np.mean(is_covered) <= 0.975
    assert np.mean(narrower) < 0.95


def test_strata_mend_labels_that_favour_what_is_unsure():
    rng = RNG(3)
    gaps, plain = [], []
    for _ in range(200):
        y = np.r_[rng.random(300) < 0.9, rng.random(300) < 0.3].astype(float)
        sure = np.r_[np.ones(300, int), np.zeros(300, int)]
        is_labelled = rng.random(600) < np.where(sure == 1, 0.05, 0.5)
        noise = rng.random(600)
        labels = np.where(is_labelled, y, np.nan)
        gaps.append(powered_mean(labels, noise, strata=sure).interval.estimate - 0.6)
        plain.append(powered_mean(labels, noise).interval.estimate - 0.6)
    assert abs(np.mean(gaps)) < 0.015
    assert np.mean(plain) < -0.2


def test_a_stratum_with_one_labelled_source_is_refused():
    with pytest.raises(StatisticsError, match="fewer than two sources"):
        powered_mean([1, 0, 1, np.nan], [1, 0, 1, 1], strata=[0, 0, 1, 1])


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(StatisticsError, match="shape"):
        powered_mean([1, 0, np.nan], [1, 0, 1], strata=[0, 0])
    with pytest.raises(StatisticsError, match="judged rows"):
        powered_mean([1, 0], [1, 0, 1])


@pytest.mark.parametrize(("p", "copies"), [(0.95, 1), (0.98, 1), (0.5, 1), (0.95, 3)])
def test_an_interval_of_a_share_covers_at_thirty_labels_and_never_leaves_zero_to_one(p, copies):
    rng, hits, widths = np.random.default_rng(5), [], []
    for _ in range(400):
        of_source = rng.beta(p * 1.5, (1 - p) * 1.5, 330) if copies > 1 else np.full(330, p)
        y = (rng.random((330, copies)) < of_source[:, None]).astype(float)
        judge = rng.binomial(3, np.where(y == 1, 0.8, 0.2)) / 3
        source = np.repeat(np.arange(330), copies).reshape(y.shape)
        labels = np.where(source < 30, y, np.nan)
        estimate = powered_mean(labels.ravel(), judge.ravel(), source.ravel(), are_shares=True)
        assert (
            0 <= estimate.interval.low <= estimate.interval.estimate <= estimate.interval.high <= 1
        )
        hits.append(estimate.interval.low <= p <= estimate.interval.high)
        widths.append(estimate.interval.half_width / estimate.labels_only.half_width)
    assert 0.925 <= np.mean(hits) <= 0.99
    assert np.mean(widths) < 0.97


def test_a_share_without_a_failure_has_the_interval_of_its_labels():
    labels, judge = np.r_[np.ones(30), np.full(200, np.nan)], np.r_[np.ones(30), np.full(200, 0.7)]
    estimate = powered_mean(labels, judge, are_shares=True)
    assert estimate.interval.low == pytest.approx(estimate.labels_only.low)
    assert estimate.interval.high == 1


def test_strata_labelled_at_other_rates_widen_the_interval_of_a_share():
    rng = np.random.default_rng(0)
    stratum = np.repeat([0, 1], [100, 900])
    y = (rng.random(1000) < 0.5).astype(float)
    is_labelled = np.isin(np.arange(1000), [*range(80), *range(100, 120)])
    labels = np.where(is_labelled, y, np.nan)
    estimate = powered_mean(labels, np.ones(1000), strata=stratum, are_shares=True)
    # Nine tenths of the weight rest on twenty labels: sd = sqrt(.01 / 80 + .81 / 20) / 2.
    expected_half_width = 1.96 * np.sqrt(0.01 / 80 + 0.81 / 20) / 2
    assert estimate.interval.half_width == pytest.approx(expected_half_width, rel=0.15)
