"""Labels made by judges together: the rates that a rule implies, and what each map can see."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.reproduction.simulations.growth import ADDITIVE, learn
from clash.stats.simulate.interactions import (
    SHARPNESS,
    WEIGHTS,
    Interaction,
    ResampledPanels,
    regime,
)

GRID = (np.arange(2**7)[:, None] >> np.arange(7) & 1).astype(np.int8)


@pytest.mark.parametrize("name", ["additive", "mixed", "parity", "xor", "and"])
def test_drawn_labels_have_their_probability(name):
    law = regime(name)
    sample = law.draw(20_000, np.random.default_rng(0))
    p = law.probability(sample.votes)
    assert ((sample.labels - p) ** 2).mean() == pytest.approx(law.bayes_risk, abs=0.005)
    high = p > np.median(p)
    assert sample.labels[high].mean() == pytest.approx(p[high].mean(), abs=0.02)


def test_log_odds_are_the_weighted_sum_and_the_rule_by_hand():
    """Votes 1 1 0 0 0 0 0: the sum is 1.2 + 1.0 - 0.8 - 0.5 - 0.3; two votes are even."""
    votes = np.array([[1, 1, 0, 0, 0, 0, 0]], np.int8)
    alone = WEIGHTS[:2].sum() - WEIGHTS[2:].sum()
    for strength in (0.0, 0.3, 1.0):
        p = Interaction("parity", 6, strength).probability(votes)[0]
        odds = (1 - strength) * alone - strength * SHARPNESS
        assert np.log(p / (1 - p)) == pytest.approx(odds)


def test_parity_says_nothing_of_a_judge_or_of_two():
    """Over all patterns of fair coins, exactly."""
    p = regime("parity").probability(GRID)
    side = 2.0 * GRID - 1
    products = [side[:, i] * side[:, j] for i in range(7) for j in range(i)]
    assert np.abs(side.T @ p).max() < 1e-9
    assert max(abs(product @ p) for product in products) < 1e-9


@pytest.mark.parametrize(("judges", "share"), [(2, 1 / 3), (3, 1 / 4)])
def test_isotonic_of_a_sum_sees_this_share_of_an_xor(judges, share):
    """Which is why an XOR of two judges cannot make table 25's gap of 0.188 of at most 0.25."""
    from scipy.optimize import isotonic_regression

    grid = (np.arange(2**judges)[:, None] >> np.arange(judges) & 1).astype(float)
    label = grid.sum(axis=1) % 2
    for weights in permutations([1.0, 1.7, 2.9][:judges]):
        order = np.argsort((2 * grid - 1) @ np.array(weights))
        fits = [isotonic_regression(label[order], increasing=up).x for up in (True, False)]
        left = min(((fit - label[order]) ** 2).mean() for fit in fits)
        assert 1 - left / 0.25 == pytest.approx(share)


def test_the_table_wins_where_judges_interact_and_loses_where_they_do_not():
    rng = np.random.default_rng(2)
    together = learn(regime("parity").draw, (1024,), rng)[0]
    assert together.k() >= 6
    assert together.gap() > 0.15
    assert together.risk("joint-table") == pytest.approx(regime("parity").bayes_risk, abs=0.015)
    alone = np.mean([learn(regime("additive").draw, (256,), rng)[0].gap() for _ in range(5)])
    assert alone < 0


def test_products_of_two_judges_see_an_xor_that_sums_do_not():
    law = Interaction("parity", 2, 1.0)
    learned_law = learn(law.draw, (1000,), np.random.default_rng(3))[0]
    assert learned_law.gap(ADDITIVE) > 0.1
    assert abs(learned_law.gap()) < 0.01


def test_real_patterns_are_resampled_in_equal_shares_and_labelled_by_the_rule():
    rng = np.random.default_rng(4)
    constant_votes = np.tile([1.0, 0.5, 0.0], (10, 1))
    many = rng.choice([0.0, 0.5, 1.0], (90, 3))
    many[:, 0] = 0.0
    law = ResampledPanels((constant_votes, many), regime("parity"))
    draws = law.draw(20_000, rng)
    first = draws.votes[:, 0] == 1
    assert first.mean() == pytest.approx(0.5, abs=0.02)
    assert (draws.votes[first] == constant_votes[0]).all()
    # One vote for side 1 is odd; the tie counts as a vote for side 0.
    right = 1 / (1 + np.exp(-SHARPNESS))
    assert draws.labels[first].mean() == pytest.approx(right, abs=0.01)
    assert law.bayes_risk == pytest.approx(right * (1 - right))


def test_what_is_no_law_is_refused():
    with pytest.raises(StatisticsError, match="strength"):
        Interaction("parity", 2, 1.5)
    with pytest.raises(StatisticsError, match="panels"):
        ResampledPanels((np.zeros((3, 2)), np.zeros((3, 4))), regime("parity"))
