"""Calibration error beside what chance makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from clash.stats.selection.metrics import calibration_error, reliability

RNG = np.random.default_rng


def drawn(rng, n, shift=0.0, copies=1):
    p = np.repeat(rng.uniform(0.1, 0.8, n), copies)[:, None]
    u = np.repeat(rng.random(n), copies)[:, None]
    return p, (u < p + shift).astype(float), np.repeat(np.arange(n), copies)


def test_few_rows_make_an_error_of_a_perfect_map_and_chance_says_how_much():
    rng = RNG(0)
    found = [reliability(*drawn(rng, 60), rng, draws=40) for _ in range(60)]
    plain = np.mean([one.ece for one in found])
    assert plain > 0.1
    assert np.mean([one.chance for one in found]) == pytest.approx(plain, rel=0.1)
    assert np.mean([one.ece > one.chance_high for one in found]) < 0.15
    assert np.mean([one.root_mean_gap**2 for one in found]) < plain**2


def test_a_true_gap_is_found_whatever_the_number_of_rows():
    for n in (100, 1000):
        rng = RNG(n)
        squares = [
            reliability(*drawn(rng, n, shift=0.15), rng, draws=20).root_mean_gap ** 2
            for _ in range(40)
        ]
        assert np.sqrt(np.mean(squares)) == pytest.approx(0.15, abs=0.03)


def test_copies_of_a_source_are_one_draw_and_not_more_evidence():
    rng = RNG(1)
    once = reliability(*drawn(rng, 50), rng)
    copied = reliability(*drawn(RNG(2), 50, copies=8), rng)
    assert copied.chance > 0.8 * once.chance
    assert np.mean([
        reliability(*drawn(RNG(s), 50, copies=8), rng, draws=5).root_mean_gap for s in range(30)
    ]) < 0.1  # fmt: skip


def test_three_classes_are_the_mean_of_three():
    rng = RNG(3)
    p = rng.dirichlet([2, 1, 2], 500)
    y = np.array([rng.multinomial(1, row) for row in p]).astype(float)
    found = reliability(p, y, np.arange(500), rng, draws=60)
    assert found.ece == calibration_error(p, y)
    assert found.ece == pytest.approx(found.chance, rel=0.5)


def test_one_source_has_no_variance_to_take_away():
    assert np.isnan(
        reliability(
            np.full((4, 1), 0.5), np.ones((4, 1)), np.zeros(4, int), RNG(0), 5
        ).root_mean_gap
    )
