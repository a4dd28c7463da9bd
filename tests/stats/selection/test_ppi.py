"""Labels and judges together: intervals that cover, clustered and stratified, narrower than labels."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.ppi import powered_mean

RNG = np.random.default_rng


def test_one_stratum_is_the_formula():
    rng = RNG(0)
    y, f, rest = rng.random(50), rng.random(50), rng.random(400)
    y += f
    found = powered_mean(y, f, rest)
    share = np.cov(y, f)[0, 1] / 50 / (f.var(ddof=1) / 50 + rest.var(ddof=1) / 400)
    assert found.power == pytest.approx(min(share, 1.0))
    assert found.interval.estimate == pytest.approx(
        y.mean() - found.power * (f.mean() - rest.mean())
    )
    residual = y - found.power * f
    variance = residual.var(ddof=1) / 50 + found.power**2 * rest.var(ddof=1) / 400
    t = 2.0106  # 97.5% of Student's t with 48 degrees of freedom
    assert found.interval.half_width == pytest.approx(t * np.sqrt(variance * 49 / 48), rel=1e-4)


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
    covered, narrower, naive = [], [], []
    for _ in range(500):
        y, f, sure, group = population(rng, 600 // size, size)
        # Whole prompts are labelled, and every unsure row twice as often as a sure one.
        asked = np.isin(group, rng.permutation(600 // size)[: 240 // size])
        asked &= (sure == 0) | (rng.random(600) < 0.5)
        found = powered_mean(
            y[asked], f[asked], f[~asked], group[asked], group[~asked],
            strata=sure[asked], other_strata=sure[~asked],
        )  # fmt: skip
        covered.append(not found.interval.excludes(0.5))
        narrower.append(found.interval.half_width / found.labels_only.half_width)
        naive.append(found.judges_mean)
    assert 0.93 <= np.mean(covered) <= 0.975
    assert np.mean(narrower) < 0.95


def test_strata_mend_labels_that_favour_what_is_unsure():
    rng = RNG(3)
    gaps, plain = [], []
    for _ in range(200):
        y = np.r_[rng.random(300) < 0.9, rng.random(300) < 0.3].astype(float)
        sure = np.r_[np.ones(300, int), np.zeros(300, int)]
        asked = rng.random(600) < np.where(sure == 1, 0.05, 0.5)
        noise = rng.random(600)
        strata = {"strata": sure[asked], "other_strata": sure[~asked]}
        gaps.append(
            powered_mean(y[asked], noise[asked], noise[~asked], **strata).interval.estimate - 0.6
        )
        plain.append(powered_mean(y[asked], noise[asked], noise[~asked]).interval.estimate - 0.6)
    assert abs(np.mean(gaps)) < 0.015
    assert np.mean(plain) < -0.2


def test_a_stratum_with_one_labelled_source_is_refused():
    with pytest.raises(StatisticsError, match="fewer than two sources"):
        powered_mean([1, 0, 1], [1, 0, 1], [1, 1], strata=[0, 0, 1], other_strata=[0, 1])


def test_codes_that_do_not_fit_are_refused():
    with pytest.raises(StatisticsError, match="codes"):
        powered_mean([1, 0, 1], [1, 0, 1], [1, 1], strata=[0, 0])
