"""What votes allow: it holds the truth, labels narrow it, and the items to label are those that do."""

import numpy as np
import pytest

from clash.stats.logistic import log_odds
from clash.stats.selection.expert_pool import ANCHOR, PoolLabels, Readings
from clash.stats.selection.vote_range import (
    Hypotheses,
    hypotheses,
    next_labels,
    read_otherwise,
    width_after,
)

SKILL = (0.7, 0.68, 0.65, 0.62, 0.6)


def panel(skill=SKILL, n=500, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(float)
    votes = np.where(rng.random((n, len(skill))) < skill, y[:, None], 1 - y[:, None])
    share = log_odds((votes.sum(axis=1) + 1) / (len(skill) + 2))
    return Readings((ANCHOR,), share[:, None], 2 * votes - 1), y


def bounds(read, pool_labels=None):
    """Of the accuracy of majority."""
    readings = hypotheses(read, pool_labels)
    return readings.bounds(readings.accuracy((read.odds[:, 0] > 0).astype(float)))


def labels(y, rows):
    return PoolLabels(rows, y[rows], rows)


def test_labels_narrow_what_the_votes_allow_about_the_truth():
    for seed in range(5):
        read, y = panel(seed=seed)
        right = ((read.odds[:, 0] > 0) == y).mean()
        without = bounds(read)
        with_labels = bounds(read, labels(y, np.random.default_rng(seed).permutation(500)[:60]))
        assert without[0] <= right <= without[1]
        assert with_labels[0] <= right <= with_labels[1]
        assert with_labels[1] - with_labels[0] < without[1] - without[0]


def test_labels_can_show_that_most_judges_are_wrong_together():
    read, y = panel((0.38,) * 5)
    assert bounds(read)[0] > 0.5
    low, high = bounds(read, labels(y, np.arange(60)))
    assert low <= ((read.odds[:, 0] > 0) == y).mean() <= high < 0.5


def test_the_next_label_takes_most_of_the_variance():
    """Against the same formula with the whole covariance matrix, one label after another."""
    rng = np.random.default_rng(4)
    p = rng.uniform(0.1, 0.9, (6, 30))
    rows = next_labels(Hypotheses(("h",) * 6, p, np.zeros(6)), np.arange(30), 5)
    mean = p.mean(axis=0)
    covariance, noise, expected_noise = (p - mean).T @ (p - mean) / 6, mean * (1 - mean), []
    for _ in range(5):
        gain = (covariance**2).sum(axis=0) / (np.diag(covariance) + noise)
        gain[expected_noise] = -1
        best = int(gain.argmax())
        expected_noise.append(best)
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (column[best] + noise[best])
    assert rows.tolist() == expected_noise


def test_more_labels_leave_less_and_none_leave_all():
    read, _ = panel()
    readings = hypotheses(read)
    verdicts = (read.odds[:, 0] > 0).astype(float)
    low, high = readings.bounds(readings.accuracy(verdicts))
    widths = [
        width_after(readings, np.arange(n), verdicts, np.random.default_rng(1))
        for n in (0, 20, 100)
    ]
    assert widths[0] == pytest.approx(high - low)
    assert widths[0] > widths[1] > widths[2]


def test_there_may_be_nothing_to_label_and_nobody_to_be_right():
    read, _ = panel(n=20)
    readings = hypotheses(read)
    assert not len(next_labels(readings, np.array([], np.intp), 20))
    assert len(next_labels(readings, np.arange(3), 20)) == 3
    assert np.isnan(readings.accuracy(np.full(20, np.nan))).all()


@pytest.mark.parametrize("n_judges", [1, 4])
def test_models_with_another_optimum_are_two_readings(n_judges):
    """Two blocs: which of them is the truth, the votes do not say."""
    rng = np.random.default_rng(3)
    blocs = rng.integers(0, 2, (150, 2))
    votes = np.where(
        rng.random((150, 4)) < 0.92, blocs[:, [0, 0, 1, 1]], 1 - blocs[:, [0, 0, 1, 1]]
    )
    read = read_otherwise(votes[:, :n_judges].astype(np.int8), rng)
    assert read.odds.shape == (150, len(read.names))
    assert any("reading 2" in name for name in read.names) == (n_judges == 4)
