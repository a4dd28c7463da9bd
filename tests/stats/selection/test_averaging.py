"""Weights of the menu, stackers that start from majority, and what a deployed average is worth."""

from __future__ import annotations

import numpy as np
import pytest

from clash.stats.selection import blocks
from clash.stats.selection.anchored import anchored_logistic
from clash.stats.selection.candidate_methods import CandidateMethod, SelectionSettings
from clash.stats.selection.families import FAMILIES, fit_family
from clash.stats.selection.model_choice import DEPLOYED_SHARE, posterior_weights, prior_weights
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.penalised_regression import binary_regression, softmax_regression
from clash.stats.selection.selector import evaluate

RNG = np.random.default_rng


def panel_of(n, skill, seed=0, target="binary"):
    rng = RNG(seed)
    y = rng.random(n) < 0.5
    votes = np.where(rng.random((n, len(skill))) < np.array(skill), y[:, None], ~y[:, None])
    return PanelVotes.of(votes * 1.0, y * 1.0, np.arange(n), target)


def learn_from(panel):
    cells = panel.cells(range(panel.n_judges))
    return cells, panel.rows(np.arange(panel.n_rows)).evidence(panel.n_patterns).on(cells)


def counts(rng, classes):
    x = rng.normal(size=(40, classes, 4))
    return x, rng.integers(0, 5, (40, classes)).astype(float)


@pytest.mark.parametrize("classes", [2, 3])
def test_softmax_regression_solves_its_equation(classes):
    x, s = counts(RNG(0), classes)
    penalty, centre = np.array([1.0, 0.5, 4.0, 2.0]), np.array([1.0, 0, 0, 0])
    fit = softmax_regression(x, s, penalty, centre, centre)
    p = np.exp(fit.scores)
    p /= p.sum(axis=1, keepdims=True)
    slope = np.einsum("pcd,pc->d", x, s.sum(axis=1)[:, None] * p - s)
    assert fit.converged
    assert slope + penalty * (fit.theta - centre) == pytest.approx(np.zeros(4), abs=1e-3)


@pytest.mark.parametrize("classes", [2, 3])
def test_its_left_out_loss_is_that_of_fits_without_each_row(classes):
    rng = RNG(1)
    x, s = counts(rng, classes)
    penalty, centre = np.full(4, 3.0), np.zeros(4)
    fit = softmax_regression(x, s, penalty, centre, centre)
    loss = 0.0
    for row, c in np.argwhere(s > 0):
        less = s.copy()
        less[row, c] -= 1
        scores = softmax_regression(x, less, penalty, centre, fit.theta).scores[row]
        loss += s[row, c] * (np.log(np.exp(scores).sum()) - scores[c])
    assert fit.left_out == pytest.approx(loss / s.sum(), rel=2e-3)


def test_two_classes_are_the_softmax_of_two():
    rng = RNG(4)
    x, s = rng.normal(size=(50, 3)), rng.integers(0, 4, (50, 2)).astype(float)
    penalty, centre = np.array([1.0, 0.2, 3.0]), np.array([1.0, 0, 0])
    two = binary_regression(x, s.sum(axis=1), s[:, 1], penalty, centre, centre)
    cube = np.stack([np.zeros_like(x), x], axis=1)
    many = softmax_regression(cube, s, penalty, centre, centre)
    assert two.theta == pytest.approx(many.theta, abs=1e-4)
    assert two.left_out == pytest.approx(many.left_out, rel=1e-4)


def test_few_labels_leave_majority_and_many_move_it():
    log_losses = {"anchored-logistic": [], "logistic": []}
    for seed in range(20):
        panel = panel_of(30, (0.7,) * 5, seed)
        cells, evidence = learn_from(panel)
        side = np.nanmean(cells.values, axis=1) > 0.5
        for name, value in log_losses.items():
            value.append(((fit_family(FAMILIES[name], cells, evidence)[:, 0] > 0.5) == side).mean())
    assert np.mean(log_losses["anchored-logistic"]) > np.mean(log_losses["logistic"]) + 0.02
    cells, evidence = learn_from(panel_of(4000, (0.95, 0.55, 0.55, 0.55, 0.55)))
    p = anchored_logistic(cells, evidence)[:, 0]
    assert np.array_equal(p > 0.5, cells.values[:, 0] > 0.5)


def test_three_classes_and_scores_have_their_own_anchor():
    rng = RNG(2)
    y = rng.choice([0.0, 0.5, 1.0], 400)
    noise = rng.choice([0.0, 0.5, 1.0], (400, 4))
    votes = np.where(rng.random((400, 4)) < 0.7, y[:, None], noise)
    for target in ("three", "scalar"):
        cells, evidence = learn_from(PanelVotes.of(votes, y, np.arange(400), target))
        p = anchored_logistic(cells, evidence)
        side = p[:, 0] if target == "scalar" else p[:, 2] + p[:, 1] / 2
        assert np.corrcoef(side, np.nanmean(cells.values, axis=1))[0, 1] > 0.9


def test_the_average_is_the_mean_of_its_members():
    cells, evidence = learn_from(panel_of(200, (0.8, 0.7, 0.6, 0.6)))
    parts = [fit_family(FAMILIES[name], cells, evidence) for name in FAMILIES["averaged"].members]
    assert fit_family(FAMILIES["averaged"], cells, evidence) == pytest.approx(
        np.mean(parts, axis=0)
    )


MENU = [CandidateMethod("all", 3, "majority"), CandidateMethod("random", 3, "averaged"),
        CandidateMethod("random", 3, "logistic"), CandidateMethod("random", 2, "logistic")]  # fmt: skip


def test_the_prior_is_in_thirds_and_passes_on_what_is_missing():
    full_weights = prior_weights(MENU, np.ones(4, bool))
    assert full_weights == pytest.approx([5 / 12, 5 / 12, 1 / 12, 1 / 12])
    refused_weights = prior_weights(MENU, np.array([True, False, True, False]))
    assert refused_weights == pytest.approx([(1 / 3 + 1 / 6) / (2 / 3), 0, 0.25, 0])


def test_weights_follow_the_losses_and_do_not_count_copies():
    rng = RNG(3)
    losses = rng.random((4, 100)) * 0.1 + np.array([0.1, 0.1, 0.3, 0.3])[:, None]
    prior = np.full(4, 0.25)
    weights = posterior_weights(losses, np.arange(100), prior, "nll", RNG(0))
    assert weights.sum() == pytest.approx(1)
    assert weights[:2].sum() > DEPLOYED_SHARE - 1e-9
    copied_weights = posterior_weights(
        np.repeat(losses, 3, axis=1), np.repeat(np.arange(100), 3), prior, "nll", RNG(0)
    )
    assert copied_weights == pytest.approx(weights)


def test_a_lucky_row_or_two_do_not_take_everything():
    losses = np.full((2, 60), 0.2)
    losses[0, :2] = 3.0
    weights = posterior_weights(losses, np.arange(60), np.full(2, 0.5), "nll", RNG(0))
    assert weights[0] > 0.05


def test_an_average_asks_every_judge_of_its_members_and_predicts_their_weighted_mean():
    panel = panel_of(400, (0.6, 0.7, 0.8, 0.9))
    settings = SelectionSettings(rules=("information-first",), sizes=(1, 2, 4))
    model = evaluate(panel, blocks.split(panel, blocks.SplitPlan(), RNG(0)), settings, RNG(0)).model
    assert sum(m.weight for m in model.members) == pytest.approx(1)
    assert set(model.all_judges) == set(range(4))
    assert model.all_judges[: len(model.judges)] == model.judges


@pytest.mark.slow
@pytest.mark.parametrize(
    "skill", [(0.7,) * 5, (0.9, 0.75, 0.65, 0.55, 0.5), (0.3, 0.35, 0.4, 0.45, 0.8)]
)
def test_with_a_hundred_labels_it_is_not_worse_than_majority_nor_than_one_guarded_choice(skill):
    plan, gains, better = blocks.SplitPlan(labels=100), [], []
    rules = ("information-first", "random")
    for seed in range(5):
        panel = panel_of(900, skill, seed)
        split = blocks.split(panel, plan, RNG(seed))
        mean, result = (
            evaluate(panel, split, SelectionSettings(rules, combine=setting), RNG(seed))
            for setting in ("average", "one")
        )
        gains.append(mean.test.accuracy - mean.majority.accuracy)
        better.append(result.test.mse - mean.test.mse)
    assert np.mean(gains) > -0.015
    assert np.mean(better) > -0.005
