"""The regime map and the stopping diagnostic: read off known risks, and on data of known regime."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection import blocks
from clash.stats.selection.candidate_methods import CandidateMethod, SelectionSettings
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.regime import RegimeMap, budgets_for, judge_steps, survey
from clash.stats.selection.selector import evaluate
from clash.stats.simulate.interactions import Interaction, regime

FAMILIES = ("logistic", "ridge-isotonic", "joint-table", "residual-shrinkage")


def _panel(law: Interaction, n: int, seed: int = 0) -> PanelVotes:
    draws = law.draw(n, np.random.default_rng(seed))
    return PanelVotes.of(
        draws.votes.astype(float), draws.labels.astype(float), np.arange(n), "binary"
    )


def test_a_cell_by_hand():
    """Two splits: logistic 0.20 and 0.22, the table 0.17 and 0.18; the gap 0.03 and 0.04."""
    risk = np.array([[[[0.20, np.nan, 0.17]]], [[[0.22, 0.19, 0.18]]]])
    regimes = RegimeMap((50,), (3,), ("logistic", "ridge-isotonic", "joint-table"), risk)
    (cell,) = regimes.cells()
    assert (cell.winner, cell.k, cell.labels) == ("joint-table", 3, 50)
    assert cell.risk == pytest.approx(0.175)
    assert cell.gap == pytest.approx(0.035)
    assert cell.se == pytest.approx(0.005)
    assert cell.clear


def test_a_cell_without_a_table_or_where_all_refused_has_no_gap():
    risk = np.full((2, 1, 1, 2), 0.2)
    (cell,) = RegimeMap((50,), (3,), ("logistic", "majority"), risk).cells()
    assert math.isnan(cell.gap)
    assert not cell.clear
    (cell,) = RegimeMap((50,), (3,), ("logistic", "joint-table"), risk * np.nan).cells()
    assert cell.winner is None


def test_budgets_leave_a_test_block():
    assert budgets_for(800) == (25, 50, 100, 200, 400)
    assert budgets_for(30) == (22,)


def test_the_map_finds_the_regime():
    """Three judges whose parity is the label: only tables see it, and only with all three."""
    settings = SelectionSettings(sizes=(1, 2, 3), families=FAMILIES)
    votes = regime("parity").draw(700, np.random.default_rng(0)).votes[:, :3]
    rng = np.random.default_rng(1)
    flip = rng.random(len(votes)) < 0.06
    label = (votes.sum(axis=1) % 2 == 1) != flip
    panel = PanelVotes.of(votes.astype(float), label.astype(float), np.arange(len(votes)), "binary")
    regimes = survey(panel, settings, splits=6, seed=0, budgets=(50, 300))
    assert regimes.cell(300, 3).winner in ("joint-table", "residual-shrinkage")
    assert regimes.cell(300, 3).gap > 0.1
    assert regimes.cell(300, 2).gap < 0.02
    again = survey(panel, settings, splits=6, seed=0, budgets=(50, 300))
    assert np.array_equal(regimes.risk, again.risk)


def test_an_additive_panel_is_the_scalar_families():
    settings = SelectionSettings(sizes=(1, 4, 7), families=FAMILIES)
    regimes = survey(_panel(regime("additive"), 900), settings, splits=8, seed=0, budgets=(60,))
    cell = regimes.cell(60, 7)
    assert cell.clear
    assert cell.gap < 0


def test_labels_of_the_test_block_never_reach_a_fit():
    """With labels that are pure noise no cell is better than the base rate's 1/4."""
    rng = np.random.default_rng(3)
    votes = rng.integers(0, 2, (300, 4)).astype(float)
    panel = PanelVotes.of(votes, rng.integers(0, 2, 300).astype(float), np.arange(300), "binary")
    regimes = survey(
        panel, SelectionSettings(sizes=(1, 4), families=FAMILIES), splits=8, seed=0, budgets=(100,)
    )
    assert min(cell.risk for cell in regimes.cells()) > 0.245


def test_steps_are_differences_along_a_path():
    """Each by hand from the outcome it comes from."""
    panel = _panel(regime("additive"), 400)
    settings = SelectionSettings(
        rules=("information-first",), sizes=(1, 3, 7), families=("joint-table", "logistic")
    )
    split = blocks.split(panel, blocks.SplitPlan(labels=200), np.random.default_rng(0))
    outcome = evaluate(panel, split, settings, np.random.default_rng(1))
    steps = judge_steps([outcome])
    assert steps.k.tolist() == [1, 3]
    risk = dict(zip(outcome.choice.candidates, outcome.risks, strict=True))
    table = [risk[CandidateMethod("information-first", k, "joint-table")] for k in (1, 3, 7)]
    assert steps.change == pytest.approx(np.diff(table))
    h = [outcome.pressures["information-first", k].h_k for k in (1, 3, 7)]
    assert steps.cost == pytest.approx(np.diff(h) / 200)
    assert len(judge_steps([outcome], "majority").k) == 0


def test_bands_of_equal_size_in_order_of_cost():
    from clash.stats.selection.regime import JudgeSteps

    n = np.arange(60.0)
    bands = JudgeSteps(n[::-1], n[::-1] / 10, n).bands(6)
    assert [band.cost for band in bands] == [4.5, 14.5, 24.5, 34.5, 44.5, 54.5]
    assert (bands[0].low, bands[0].middle, bands[0].high) == pytest.approx((0.09, 0.45, 0.81))
    assert JudgeSteps(n[:0], n[:0], n[:0]).bands() == []


def test_too_few_sources_are_refused():
    panel = _panel(regime("additive"), 6)
    with pytest.raises(StatisticsError, match="sources"):
        survey(panel, SelectionSettings(sizes=(1,), families=FAMILIES), splits=2, seed=0)
