"""Priors from earlier panels: by hand, on tasks of known kind, and left out one by one."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.model_choice import published_guard
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.prior import (
    Experience,
    experience,
    pool_experience,
    prior_of_task,
)

FAMILIES = ("majority", "one-coin-isotonic", "logistic", "joint-table", "ising-temperature")


def _task(skills: tuple[float, ...], n: int = 300, seed: int = 0, copies: int = 1) -> PanelVotes:
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    right = rng.random((n, len(skills))) < np.array(skills)
    votes = np.where(right, label[:, None], 1 - label[:, None]).astype(float)
    rows = np.repeat(np.arange(n), copies)
    return PanelVotes.of(votes[rows], label[rows].astype(float), rows, "binary")


def _parity(n: int = 400) -> PanelVotes:
    votes = np.random.default_rng(3).integers(0, 2, (n, 3))
    return PanelVotes.of(votes.astype(float), votes.sum(axis=1) % 2, np.arange(n), "binary")


def test_the_papers_prior_is_reliabilities_for_sides_and_least_squares_for_scores():
    assert prior_of_task("binary").family == prior_of_task("three").family == "one-coin-isotonic"
    assert prior_of_task("scalar").weights == (("ridge-isotonic", 1.0),)


def test_experience_is_the_log_of_errors_over_majoritys():
    """On a parity the table errs next to nothing and majority a quarter; a stacker cannot help."""
    experience_table = experience(
        _parity(), 100, np.random.default_rng(0), families=FAMILIES, draws=4
    )
    ratio = dict(zip(experience_table.families, experience_table.ratio, strict=True))
    assert ratio["majority"] == 0
    assert ratio["joint-table"] < np.log(0.1)
    assert ratio["logistic"] > -0.05
    assert ratio["ising-temperature"] == 0, "refused with three judges: majority stands in"
    assert experience_table.labels == 100


def test_labels_are_counted_in_sources():
    """Five copies of each row: four sources are twenty rows, and no more than twenty left out."""
    experience_table = experience(
        _task((0.8, 0.7, 0.6), 60, copies=5), 500, np.random.default_rng(0), families=FAMILIES
    )
    assert experience_table.labels == 40


def test_weights_by_hand():
    """One family best on both panels: (2 x 1 + 1/3) / 3; the others keep a share of the third."""
    names = ("majority", "logistic", "joint-table")
    both_experiences = [Experience(names, np.array([0.0, -0.2, 0.3]), n) for n in (16, 20)]
    experience_table = pool_experience(both_experiences, np.random.default_rng(0))
    assert experience_table.weights == (
        ("logistic", pytest.approx((2 + 1 / 3) / 3)),
        ("majority", pytest.approx(1 / 9)),
        ("joint-table", pytest.approx(1 / 9)),
    )
    assert (experience_table.family, experience_table.panels, experience_table.labels) == (
        "logistic",
        2,
        16,
    )


def test_one_panel_of_many_does_not_decide():
    """A family that shone once, and was worse elsewhere, is not the prior."""
    names = ("majority", "logistic")
    experiences = [Experience(names, np.array([0.0, 0.1]), 16)] * 5
    experiences.append(Experience(names, np.array([0.0, -0.2]), 16))
    prior = pool_experience(experiences, np.random.default_rng(0))
    assert prior.family == "majority"
    assert sum(weight for _, weight in prior.weights) == pytest.approx(1)


def test_the_guard_moves_only_where_intervals_of_one_error_part():
    rng = np.random.default_rng(0)
    base = rng.random(100)
    groups = np.arange(100)
    error = base.std(ddof=1) / 10
    for shift, position in ((1.9, 0), (2.1, 1)):
        losses = np.stack([base, base - shift * error])
        assert published_guard(losses, groups, 0, 1) == position
    # The same rows as ten sources of ten equal copies say less.
    copies = np.repeat(base[:10], 10)
    wide = np.stack([copies, copies - 2.1 * copies.std(ddof=1) / 10])
    assert published_guard(wide, np.repeat(np.arange(10), 10), 0, 1) == 0


def test_left_out_task_by_task_the_pooled_prior_is_better_than_the_papers():
    """Eight tasks of even judges, where reliabilities cannot be told apart with 16 labels."""
    tasks = [_task((0.75,) * 5, 300, seed) for seed in range(8)]
    experience_tables = [
        experience(task, 16, np.random.default_rng(i), families=FAMILIES[:4], draws=6)
        for i, task in enumerate(tasks)
    ]
    names = experience_tables[0].families
    our_losses, papers = [], []
    for left in range(len(tasks)):
        other_experiences = [record for i, record in enumerate(experience_tables) if i != left]
        prior = pool_experience(other_experiences, np.random.default_rng(left))
        our_losses.append(experience_tables[left].ratio[names.index(prior.family)])
        papers.append(experience_tables[left].ratio[names.index(prior_of_task("binary").family)])
    assert np.mean(our_losses) < np.mean(papers) - 0.02
    assert max(our_losses) < 0.05


def test_nothing_to_learn_from_is_refused():
    with pytest.raises(StatisticsError, match="no earlier panel"):
        pool_experience([], np.random.default_rng(0))
    with pytest.raises(StatisticsError, match="too few"):
        experience(_task((0.7, 0.7), 30), 16, np.random.default_rng(0))
