"""Labels made by judges together: the rates that a rule implies, and what each map can see."""

from __future__ import annotations

import numpy as np
import pytest

from clash.analysis.simulations.finite_calibration import ADDITIVE, learn
from clash.errors import StatisticsError
from clash.stats.simulate.interactions import Interaction, regime


@pytest.mark.parametrize("name", ["additive", "mixed", "parity", "xor", "and"])
def test_drawn_labels_have_their_probability(name):
    law = regime(name)
    sample = law.draw(20_000, np.random.default_rng(0))
    p = law.probability(sample.votes)
    assert ((sample.labels - p) ** 2).mean() == pytest.approx(law.bayes_risk, abs=0.005)
    high = p > np.median(p)
    assert sample.labels[high].mean() == pytest.approx(p[high].mean(), abs=0.02)


def test_parity_says_nothing_of_a_judge_alone():
    sample = regime("parity").draw(20_000, np.random.default_rng(1))
    assert abs(np.corrcoef(sample.votes.T, sample.labels)[-1, :-1]).max() < 0.03


def test_the_table_wins_where_judges_interact_and_loses_where_they_do_not():
    rng = np.random.default_rng(2)
    together = learn(regime("parity"), (1024,), rng)[0]
    assert together.k >= 6
    assert together.gap() > 0.15
    assert together.risk["joint-table"] == pytest.approx(regime("parity").bayes_risk, abs=0.015)
    alone = np.mean([learn(regime("additive"), (256,), rng)[0].gap() for _ in range(5)])
    assert alone < 0


def test_products_of_two_judges_see_an_xor_that_sums_do_not():
    found = learn(Interaction("xor", 1.0), (1000,), np.random.default_rng(3))[0]
    assert found.gap(ADDITIVE) > 0.1
    assert abs(found.gap()) < 0.01


def test_a_strength_outside_the_unit_interval_is_refused():
    with pytest.raises(StatisticsError, match="strength"):
        Interaction("xor", 1.5)
