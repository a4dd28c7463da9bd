"""Calibration error beside what chance makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from clash.stats.selection.calibration_gap import MeasuredBlock, calibration_gap
from clash.stats.selection.metrics import calibration_error, reliability

RNG = np.random.default_rng


def draw(rng, n, shift=0.0, copies=1):
    p = np.repeat(rng.uniform(0.1, 0.8, n), copies)[:, None]
    u = np.repeat(rng.random(n), copies)[:, None]
    return p, (u < p + shift).astype(float), np.repeat(np.arange(n), copies)


def test_few_rows_make_an_error_of_a_perfect_map_and_chance_says_how_much():
    rng = RNG(0)
    reliability_fits = [reliability(*draw(rng, 60), rng, draws=40) for _ in range(60)]
    plain = np.mean([record.ece for record in reliability_fits])
    assert plain > 0.1
    assert np.mean([record.chance for record in reliability_fits]) == pytest.approx(plain, rel=0.1)
    assert np.mean([record.ece > record.chance_high for record in reliability_fits]) < 0.15


def blocks_of(rng, n, shift=0.0, copies=1, maps=10):
    """Test blocks of several maps, a fifth of the sources each."""
    p, y, source = draw(rng, n, shift, copies)
    source_masks = [np.isin(source, rng.permutation(n)[: n // 5]) for _ in range(maps)]
    return [MeasuredBlock(p[rows], y[rows], source[rows]) for rows in source_masks]


@pytest.mark.parametrize(
    ("n", "shift", "copies"), [(60, 0.0, 1), (60, 0.15, 1), (300, 0.0, 1), (300, 0.15, 3)]
)
def test_the_gap_of_one_map_has_no_bias_and_an_interval_that_covers(n, shift, copies):
    rng = RNG(n)
    gaps = [calibration_gap(blocks_of(rng, n, shift, copies), rng) for _ in range(150)]
    assert np.mean([record.low <= shift <= record.high for record in gaps]) >= 0.93
    assert all(0 <= record.low <= record.estimate <= record.high <= 1 for record in gaps)
    assert np.mean([record.estimate for record in gaps]) == pytest.approx(shift, abs=0.06)


def test_a_perfect_map_is_ruled_out_as_often_as_the_level_allows():
    """Its interval can miss at the lower end alone, which has all of the 5%."""
    rng = RNG(11)
    gaps = [calibration_gap(blocks_of(rng, 100, maps=4), rng) for _ in range(600)]
    assert 0.035 < np.mean([gap.low > 0 for gap in gaps]) < 0.07


def test_errors_that_differ_by_map_are_known_better_than_one_that_all_share():
    rng = RNG(12)
    shared, own = [], []
    for _ in range(20):
        p, y, source = draw(rng, 1000)
        blocks = [np.isin(source, rng.permutation(1000)[:200]) for _ in range(20)]
        for gaps, signs in ((shared, np.ones(20)), (own, np.resize([1.0, -1.0], 20))):
            maps = [
                MeasuredBlock(np.clip(p[rows] + 0.08 * sign, 0, 1), y[rows], source[rows])
                for rows, sign in zip(blocks, signs, strict=True)
            ]
            gaps.append(calibration_gap(maps, rng))
    lengths = [np.mean([gap.high - gap.low for gap in gaps]) for gaps in (shared, own)]
    assert lengths[1] < 0.7 * lengths[0]
    assert np.mean([gap.low <= 0.08 <= gap.high for gap in own]) >= 0.85


def test_gaps_of_maps_that_cancel_do_not_hide_each_other():
    rng = RNG(4)
    p, y, source = draw(rng, 1000)
    maps = [np.clip(p + shift, 0, 1) for shift in (0.1, -0.1)]
    gap = calibration_gap([MeasuredBlock(q, y, source) for q in maps], rng)
    assert gap.estimate == pytest.approx(0.1, abs=0.03)
    assert gap.low > 0.05


@pytest.mark.parametrize("n", [10, 100])
def test_a_map_without_an_error_may_still_have_as_many_as_that_few_labels_hide(n):
    y = np.resize([0.0, 1.0], n)[:, None]
    gap = calibration_gap([MeasuredBlock(y, y, np.arange(n))], RNG(0))
    assert (gap.estimate, gap.low) == (0, 0)
    assert gap.high == pytest.approx(1.96**2 / (n + 1.96**2), rel=0.01)


def test_copies_of_a_source_are_one_draw_and_not_more_evidence():
    rng = RNG(1)
    once = reliability(*draw(rng, 50), rng)
    copied_reliability_fit = reliability(*draw(RNG(2), 50, copies=8), rng)
    assert copied_reliability_fit.chance > 0.8 * once.chance


def test_three_classes_are_the_mean_of_three():
    rng = RNG(3)
    p = rng.dirichlet([2, 1, 2], 500)
    y = np.array([rng.multinomial(1, row) for row in p]).astype(float)
    reliability_fit = reliability(p, y, np.arange(500), rng, draws=60)
    assert reliability_fit.ece == calibration_error(p, y)
    assert reliability_fit.ece == pytest.approx(reliability_fit.chance, rel=0.5)


def test_three_classes_have_one_gap():
    rng = RNG(6)
    p = rng.dirichlet([2, 1, 2], 900)
    y = np.array([rng.multinomial(1, row) for row in p]).astype(float)
    right = calibration_gap([MeasuredBlock(p, y, np.arange(900))], rng)
    wrong = calibration_gap([MeasuredBlock(p[:, ::-1].copy(), y, np.arange(900))], rng)
    assert right.low == 0
    assert wrong.low > 0.2


def test_one_source_shows_no_gap():
    gap = calibration_gap(
        [MeasuredBlock(np.full((4, 1), 0.5), np.ones((4, 1)), np.zeros(4, int))], RNG(0)
    )
    assert np.isnan(gap.estimate)
    assert (gap.low, gap.high) == (0, 1)
