"""Promises kept over many draws: the risk of answers, the coverage of intervals, and their limits."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.selection.conformal import BinomialControl, ConformalControl
from clash.stats.selection.panel import PanelVotes
from clash.stats.selection.ppi import powered_mean
from clash.stats.selection.shift import compare_votes

RNG = np.random.default_rng


def draw(rng, n):
    """Confidences that are overconfident, and whether the verdict is wrong."""
    sure = rng.uniform(0.5, 1, n)
    return sure, rng.random(n) > 0.5 + 0.8 * (sure - 0.5)


@pytest.mark.parametrize(("risk", "n"), [(0.05, 60), (0.1, 30), (0.2, 200)])
def test_the_share_of_wrong_answers_is_kept_over_400_batches(risk, n):
    rng = RNG(1)
    shares = []
    for _ in range(400):
        sure, wrong = draw(rng, n)
        new, new_wrong = draw(rng, 150)
        answers_by_row = ConformalControl(sure[wrong], n, risk).answers(new)
        shares.append(new_wrong[answers_by_row].mean() if answers_by_row.any() else 0.0)
    mean, se = np.mean(shares), np.std(shares) / 20
    assert mean <= risk + 2 * se


def test_answers_are_given_where_the_risk_allows_them():
    rng = RNG(2)
    sure, wrong = draw(rng, 500)
    new, _ = draw(rng, 500)
    is_answered = [
        ConformalControl(sure[wrong], 500, risk).answers(new).mean() for risk in (0.1, 0.2, 0.4)
    ]
    assert 0.1 < is_answered[0] < is_answered[1] < is_answered[2] == 1.0


def test_too_few_held_rows_answer_nothing():
    control = ConformalControl(np.zeros(0), 18, 0.05)
    assert control.fewest == 19
    assert not control.answers(np.ones(50)).any()
    assert ConformalControl(np.zeros(0), 19, 0.05).answers(np.ones(50)).all()


def test_p_values_by_hand():
    control = ConformalControl(np.array([0.6, 0.9]), 9, 0.2)
    assert control.p_values([0.95, 0.9, 0.7, 0.5]) == pytest.approx([0.1, 0.2, 0.2, 0.3])


@pytest.mark.parametrize("bad", [0.0, 1.0, 2.0])
def test_a_risk_that_is_none_is_refused(bad):
    with pytest.raises(StatisticsError, match="between 0 and 1"):
        ConformalControl(np.zeros(0), 10, bad)


def test_ppi_covers_with_biased_judges_and_is_narrower_than_labels_alone():
    rng = RNG(3)
    is_covered, widths = [], []
    for _ in range(300):
        y = (rng.random(1060) < 0.6).astype(float)
        judge = np.where(rng.random(1060) < 0.85, y, 1.0)
        estimate = powered_mean(np.where(np.arange(1060) < 120, y, np.nan), judge)
        is_covered.append(not estimate.interval.excludes(0.6))
        widths.append(estimate.interval.half_width / estimate.labels_only.half_width)
        assert estimate.judges_mean > 0.55
    assert np.mean(is_covered) > 0.92
    assert np.mean(widths) < 0.8


def test_ppi_with_useless_judges_is_labels_alone_and_with_perfect_ones_the_whole():
    rng = RNG(4)
    y = rng.random(400)
    noise = powered_mean(np.r_[y[:100], np.full(10_000, np.nan)], rng.random(10_100))
    assert noise.interval.half_width == pytest.approx(noise.labels_only.half_width, rel=0.05)
    perfect = powered_mean(np.where(np.arange(400) < 100, y, np.nan), y)
    assert perfect.power == pytest.approx(0.75, abs=0.05)
    assert perfect.interval.half_width < 0.6 * perfect.labels_only.half_width


def test_ppi_without_further_rows_is_the_mean_of_the_labels():
    estimate = powered_mean([1, 0, 1], [1, 1, 1])
    assert estimate.interval == estimate.labels_only
    assert estimate.power == 0


def shift_between(first, second, seed=0, n=400):
    rng = RNG(seed)
    skills = [np.broadcast_to(skill, n) for skill in (first, second)]
    y = rng.random(2 * n) < 0.5
    right = rng.random((2 * n, 4)) < np.concatenate(skills)[:, None]
    votes = np.where(right, y[:, None], ~y[:, None]).astype(float)
    panel = PanelVotes.of(votes, y * 1.0, np.arange(2 * n), "binary")
    cells = panel.cells(range(4))
    counts = [panel.votes(np.arange(n)), panel.votes(np.arange(n, 2 * n))]
    p = cells.values.mean(axis=1, keepdims=True)
    return compare_votes(cells, *(np.bincount(cells.of_pattern, c) for c in counts), p)


def test_a_shift_is_seen_and_none_is_not_imagined():
    assert shift_between(0.6, 0.9).is_shift
    assert sum(shift_between(0.7, 0.7, seed).is_shift for seed in range(100)) <= 2


REFERENCE = np.linspace(0.5, 1, 200)


def bound(sure, wrong, risk, level=0.9):
    return BinomialControl(
        sure[~wrong], sure[wrong], REFERENCE, np.ones(len(REFERENCE)), risk, level
    )


@pytest.mark.parametrize(
    "errors",
    [
        pytest.param(lambda sure: 1 - sure, id="calibrated"),
        pytest.param(lambda sure: np.minimum(2.5 * (1 - sure), 1), id="too sure"),
        pytest.param(lambda sure: np.full(len(sure), 0.1001), id="just above the risk"),
        pytest.param(lambda sure: np.where(sure > 0.8, 0.16, 0.02), id="wrong where it is sure"),
        pytest.param(lambda sure: np.zeros(len(sure)), id="no errors"),
        pytest.param(lambda sure: np.ones(len(sure)), id="all errors"),
    ],
)
@pytest.mark.parametrize("n", [20, 90, 400])
def test_the_share_of_wrong_answers_is_kept_with_the_confidence_that_is_promised(errors, n):
    rng = np.random.default_rng(n)
    everybody = np.random.default_rng(0).uniform(0.5, 1, 20_000)
    rate = errors(everybody)
    is_broken = []
    for _ in range(250):
        sure = rng.uniform(0.5, 1, n)
        answers_by_row = bound(sure, rng.random(n) < errors(sure), 0.1).answers(everybody)
        is_broken.append(answers_by_row.any() and rate[answers_by_row].mean() > 0.1)
    # 0.1 and three standard errors of 250 repetitions.
    assert np.mean(is_broken) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 250)


def test_too_few_held_out_rows_promise_nothing_and_say_how_many_would():
    sure = np.linspace(0.6, 1, 21)
    upper_bound = bound(sure, np.zeros(21, bool), 0.1)
    assert upper_bound.fewest == 22
    assert np.isinf(upper_bound.threshold)
    assert not upper_bound.answers([1.0]).any()
    enough = np.full(22, 0.9)
    # The most that the exact test allows: 0.9^22 < 0.1 < 0.9^21.
    assert BinomialControl(
        enough, np.zeros(0), enough, np.ones(22), 0.1
    ).threshold == pytest.approx(0.9)


def test_a_map_that_is_never_wrong_answers_everything():
    sure = np.random.default_rng(0).uniform(0.5, 1, 300)
    upper_bound = bound(sure, np.zeros(300, bool), 0.1)
    assert upper_bound.threshold == 0.5
    assert np.isinf(bound(sure, np.ones(300, bool), 0.1).threshold)


@pytest.mark.parametrize(("risk", "level"), [(0, 0.9), (0.1, 1)])
def test_a_promise_is_a_share_with_a_confidence(risk, level):
    with pytest.raises(StatisticsError):
        bound(np.ones(3), np.zeros(3, bool), risk, level)
