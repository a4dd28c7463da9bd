"""Scores of probabilities and verdicts are their definitions, and hide nothing."""

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.scoring import accuracy, balanced_accuracy, brier, calibration, ece, log_loss


def test_losses_agree_with_scikit_learn():
    from sklearn import metrics

    rng = np.random.default_rng(0)
    p, y = rng.uniform(0.01, 0.99, 200), rng.integers(0, 2, 200)
    assert log_loss(p, y) == pytest.approx(metrics.log_loss(y, p))
    assert brier(p, y) == pytest.approx(metrics.brier_score_loss(y, p))
    classes, table = rng.integers(0, 3, 200), rng.dirichlet([1, 1, 1], 200)
    assert log_loss(table, classes) == pytest.approx(metrics.log_loss(classes, table))


def test_two_columns_are_the_same_as_one():
    p, y = np.array([0.2, 0.9]), [0, 1]
    both_sides = np.stack([1 - p, p], axis=1)
    assert (log_loss(both_sides, y), brier(both_sides, y)) == pytest.approx(
        (log_loss(p, y), brier(p, y))
    )


def test_a_certain_error_costs_what_the_clip_says():
    assert log_loss([0.0], [1]) == pytest.approx(-math.log(1e-6))
    assert log_loss([0.0], [1], clip=0.01) == pytest.approx(-math.log(0.01))


def test_calibration_of_a_hand_made_case():
    """Four said 0.25 of which one is true, four said 0.75 of which four are: ECE 0.125."""
    p, y = [0.25] * 4 + [0.75] * 4, [1, 0, 0, 0, 1, 1, 1, 1]
    for bins in ("mass", "width"):
        calibration_findings = calibration(p, y, n_bins=2, bins=bins)
        assert calibration_findings.ece == pytest.approx(0.125)
        assert calibration_findings.accuracy.tolist() == [0.25, 1.0]
        assert calibration_findings.count.tolist() == [4, 4]


def test_certain_and_wrong_is_not_averaged_away():
    """p of 0 and 1 only, all wrong: a bin that held both would call that calibrated."""
    assert ece([0, 0, 1, 1], [1, 1, 0, 0]) == 1.0


def test_equal_probabilities_are_never_parted():
    calibration_findings = calibration([0.3] * 7 + [0.9] * 3, [0, 1] * 5, n_bins=10)
    assert calibration_findings.confidence.tolist() == pytest.approx([0.3, 0.9])
    assert calibration_findings.count.tolist() == [7, 3]


def test_calibrated_probabilities_have_a_small_error():
    rng = np.random.default_rng(1)
    p = rng.random(50000)
    y = (rng.random(50000) < p).astype(int)
    assert ece(p, y) < 0.01
    assert ece(p, y, bins="width") < 0.01
    assert ece(p**2 / (p**2 + (1 - p) ** 2), y) > 0.05


def test_bins_of_equal_width_keep_one_in_the_last():
    calibration_findings = calibration([0.0, 1.0], [0, 1], bins="width")
    assert calibration_findings.count.tolist() == [1, 1]
    assert calibration_findings.ece == 0


def test_accuracy_pays_half_for_ties_and_nothing_for_silence():
    assert accuracy([1, 0.5, np.nan, 0], [1, 1, 1, 1]) == pytest.approx(1.5 / 4)


def test_balanced_accuracy_sees_through_a_rare_class():
    verdict, label = [1] * 100, [1] * 92 + [0] * 8
    assert accuracy(verdict, label) == pytest.approx(0.92)
    assert balanced_accuracy(verdict, label) == pytest.approx(0.5)


@pytest.mark.parametrize("score", [log_loss, brier, ece, accuracy, balanced_accuracy])
def test_nothing_to_score_is_nan(score):
    assert math.isnan(score([], []))


@pytest.mark.parametrize("score", [log_loss, brier, ece])
@pytest.mark.parametrize(
    ("p", "y"), [([math.nan], [1]), ([1.5], [1]), ([0.5], [2]), ([0.5], [math.nan])]
)
def test_what_is_no_probability_or_label_is_refused(score, p, y):
    with pytest.raises(StatisticsError):
        score(p, y)


def test_a_missing_label_is_refused():
    with pytest.raises(StatisticsError, match="unlabelled"):
        accuracy([1], [math.nan])


def test_other_lengths_and_no_bins_are_refused():
    with pytest.raises(StatisticsError, match="2 probabilities for 1"):
        log_loss([0.1, 0.2], [1])
    with pytest.raises(StatisticsError, match="at least one bin"):
        ece([0.1], [1], n_bins=0)
