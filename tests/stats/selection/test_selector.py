"""Blocks that never share a source, paths, the guard, and what a choice is worth."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection import (
    anchored,
    blocks,
    families,
    joint_table,
    paths,
    scalar,
    unsupervised,
)
from clash.stats.selection import model_choice as choice
from clash.stats.selection.candidate_methods import SelectionSettings
from clash.stats.selection.joint_table import cell_pressure
from clash.stats.selection.model_choice import selection_penalty
from clash.stats.selection.panel import PanelVotes, SealedRows
from clash.stats.selection.selector import evaluate

RNG = np.random.default_rng
QUICK = SelectionSettings(
    rules=("information-first", "random"),
    sizes=(1, 2, 4),
    families=("mean-isotonic", "logistic", "joint-table"),
)


def noisy(n=400, skill=(0.55, 0.6, 0.7, 0.85), seed=0, copies=1):
    rng = RNG(seed)
    y = rng.random(n) < 0.5
    votes = np.where(rng.random((n, len(skill))) < np.array(skill), y[:, None], ~y[:, None])
    group = np.repeat(np.arange(n), copies)
    return PanelVotes.of(
        np.repeat(votes, copies, axis=0).astype(float), np.repeat(y, copies) * 1.0, group, "binary"
    )


@pytest.mark.parametrize("rotations", [1, 5])
def test_no_source_is_in_two_blocks_and_every_row_has_one_role(rotations):
    panel = noisy(120, copies=2)
    for seed in range(20):
        split = blocks.split(panel, blocks.SplitPlan(rotations=rotations), RNG(seed))
        assert not set(panel.group[split.train]) & set(panel.group[split.test])
        for role in split.roles:
            parts = [
                set(panel.group[b]) for b in (role.selection, role.calibration, role.validation)
            ]
            assert not parts[0] & parts[1]
            assert not parts[0] & parts[2]
            assert not parts[1] & parts[2]
            assert set.union(*parts) == set(panel.group[split.train])


def test_over_all_rotations_every_training_row_validates_once():
    panel = noisy(100)
    split = blocks.split(panel, blocks.SplitPlan(), RNG(0))
    validated_joined = np.concatenate([role.validation for role in split.roles])
    assert sorted(validated_joined) == sorted(split.train)


def test_cross_splits_test_every_row_once():
    panel = noisy(103)
    tested_joined = np.concatenate(
        [s.test for s in blocks.cross_splits(panel, blocks.SplitPlan(), 5, RNG(0))]
    )
    assert sorted(tested_joined) == list(range(103))


def test_no_fit_takes_a_sealed_block_and_it_gives_out_no_label():
    for module in (anchored, families, joint_table, paths, scalar, unsupervised):
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if function.__module__ != module.__name__:
                continue
            hints = [str(hint) for hint in function.__annotations__.values()]
            assert not any("Sealed" in hint or "Labelled" in hint for hint in hints), name
    public = [name for name in dir(SealedRows) if not name.startswith("_")]
    assert public == [
        "calibration_gap", "gains", "measure", "mse", "n", "patterns", "reliability", "stride", "together", "verdict_errors"
    ]  # fmt: skip


def test_labels_of_the_test_block_change_nothing_but_the_figures():
    panel = noisy(300)
    split = blocks.split(panel, blocks.SplitPlan(), RNG(1))
    flipped_y = panel._y.copy()
    flipped_y[split.test] = 1 - flipped_y[split.test]
    other_panel = replace(panel, _y=flipped_y)
    result, two = (evaluate(p, split, QUICK, RNG(5)) for p in (panel, other_panel))
    assert result.model.candidate == two.model.candidate
    assert np.array_equal(result.model.p, two.model.p)
    assert result.test.accuracy == pytest.approx(1 - two.test.accuracy)


def test_information_first_puts_the_best_judge_first():
    panel = noisy(2000)
    counts = panel.rows(np.arange(2000)).evidence(panel.n_patterns)
    path = paths.build_path("information-first", panel, counts, 500, (1, 4), RNG(0))
    assert path.panels == {1: (3,), 4: (3, 2, 1, 0)}


def test_the_penalised_path_prefers_news_to_an_echo():
    rng = RNG(0)
    y = rng.random(3000) < 0.5
    good = np.where(rng.random(3000) < 0.8, y, ~y)
    other_indices = np.where(rng.random(3000) < 0.65, y, ~y)
    panel = PanelVotes.of(
        np.column_stack([good, good, other_indices]) * 1.0, y * 1.0, np.arange(3000), "binary"
    )
    counts = panel.rows(np.arange(3000)).evidence(panel.n_patterns)
    for rule in ("complexity-penalised", "calibration-frontier"):
        pair = paths.build_path(rule, panel, counts, 5000, (1, 2), RNG(0)).panels[2]
        assert 2 in pair, rule


def test_expected_pressure_is_the_mean_over_draws():
    rng = RNG(0)
    counts = rng.binomial(20, 3 / 10, 200_000)
    expected_spread = 0.3 * np.where(counts > 0, 1 / np.maximum(counts, 1), 1.0).mean()
    assert paths._pressure(10, 20)[3] == pytest.approx(expected_spread, rel=0.01)


def test_pressure_by_hand():
    votes = np.array([[1.0], [1.0], [1.0], [0.0], [np.nan]])
    panel = PanelVotes.of(votes, [1, 0, 1, 0, np.nan], np.arange(5), "binary")
    counts = panel.rows(np.arange(4)).evidence(panel.n_patterns)
    pressure = cell_pressure(panel, [0], counts, panel.pattern[[0, 1, 3, 4]])
    assert pressure.h_k == pytest.approx(np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25))))
    assert pressure.unseen == 0.25
    assert pressure.cell_pressure == pytest.approx(0.5 / 3 + 0.25 / 1 + 0.25)
    assert pressure.v == pytest.approx(pressure.h_k / 4 + 0.25)


def test_theorem_1_by_hand():
    assert selection_penalty(100, 200, 0.05) == pytest.approx(2 * np.sqrt(np.log(4000) / 400))


def test_the_guard_keeps_majority_where_nothing_beats_it():
    panel = noisy(400, skill=(0.7,) * 5)
    settings = SelectionSettings(sizes=(1, 3, 5))
    plan = blocks.SplitPlan(labels=80)
    gains = []
    for seed in range(6):
        result = evaluate(panel, blocks.split(panel, plan, RNG(seed)), settings, RNG(seed))
        gains.append(result.test.accuracy - result.majority.accuracy)
    assert np.mean(gains) > -0.01


@pytest.mark.parametrize(
    ("gain_size", "loss_size", "method"),
    [
        (0, 0, 1),  # no verdict is overturned
        (4, 1, 1),  # 3 more right, with a standard error of 2.23
        (3, 2, 0),  # 1 more right, 2.25
        (1, 4, 0),
    ],
)
def test_a_firm_guard_wants_verdicts_better_by_one_standard_error(gain_size, loss_size, method):
    """Errors by hand: of 100 rows, sqrt(100/99 (gained + lost - (gained - lost)²/100)).

    The probabilities are better in every row, by 10 standard errors.
    """
    loss = np.random.default_rng(0).permutation(np.repeat([0.1, 0.2], 50))
    right = np.ones(100)
    home, other_panel = right.copy(), right.copy()
    home[:gain_size] = 0
    other_panel[gain_size : gain_size + loss_size] = 0
    choice_index = choice._paired_guard(
        np.array([np.full(100, 0.3), loss]),
        np.array([home, other_panel]),
        np.arange(100),
        errors=choice.FIRM,
        home=0,
    )
    assert choice_index == method


def test_a_wrong_signed_panel_is_turned():
    panel = noisy(600, skill=(0.3, 0.35, 0.25, 0.4))
    result = evaluate(panel, blocks.split(panel, blocks.SplitPlan(), RNG(0)), QUICK, RNG(0))
    assert result.majority.accuracy < 0.4
    assert result.test.accuracy > 0.65


def test_too_few_sources_are_refused():
    panel = noisy(6)
    with pytest.raises(StatisticsError, match="too few"):
        blocks.split(panel, blocks.SplitPlan(), RNG(0))
