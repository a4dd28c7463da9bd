"""People's own noise and the judge's error, told apart by items with several labels."""

from __future__ import annotations

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.label_noise import label_noise, majority_accuracy, person_accuracy


@pytest.mark.parametrize("options", [2, 3, 5])
@pytest.mark.parametrize("r", [0.6, 0.8, 1.0])
def test_a_person_is_as_right_as_the_agreement_of_two_says(options, r):
    agreement = r**2 + (1 - r) ** 2 / (options - 1)
    assert person_accuracy(agreement, options) == pytest.approx(r)
    assert person_accuracy(1 / options - 0.05, options) == pytest.approx(1 / options)


def noisy_labels(rng, truth, p, options):
    is_right = rng.random(truth.shape) < p
    return np.where(is_right, truth, (truth + rng.integers(1, options, truth.shape)) % options)


@pytest.mark.parametrize("options", [2, 3])
def test_the_two_parts_are_found_and_covered(options):
    rng = np.random.default_rng(options)
    r, a, n, runs = 0.8, 0.7, 150, 120
    single = a * r + (1 - a) * (1 - r) / (options - 1)
    n_covered = np.zeros(4)
    for _ in range(runs):
        truth = rng.integers(0, options, n)
        people = noisy_labels(rng, np.repeat(truth[:, None], 3, axis=1), r, options)
        panel = noisy_labels(rng, truth, a, options)
        pairs = np.mean([people[:, i] == people[:, j] for i, j in ((0, 1), (0, 2), (1, 2))], axis=0)
        noise = label_noise(
            pairs, (people == panel[:, None]).mean(axis=1), np.ones(n), options, np.arange(n)
        )
        truths = (r, a, 1 - r, r - single)
        intervals = (noise.person, noise.panel, noise.noise, noise.judge_error)
        n_covered += [i.low <= x <= i.high for i, x in zip(intervals, truths, strict=True)]
    assert (n_covered / runs > 0.89).all()


def test_people_who_agree_by_chance_say_nothing_of_the_panel():
    rng = np.random.default_rng(1)
    noise = label_noise(rng.random(40) < 0.5, rng.random(40) < 0.5, np.ones(40), 2, np.arange(40))
    assert np.isnan(noise.panel.estimate)
    assert (noise.panel.low, noise.panel.high) == (0, 1)


def test_a_panel_without_a_verdict_is_not_taken_to_guess():
    verdicts = np.arange(60) % 2 == 0
    noise = label_noise(np.ones(60), verdicts.astype(float), verdicts, 2, np.arange(60))
    assert noise.person.estimate == 1
    assert noise.panel.estimate == pytest.approx(0.5)
    assert noise.judge_error.estimate == pytest.approx(0.5)


def test_the_majority_of_several_is_righter_than_one_and_ties_are_left_out():
    assert majority_accuracy(0.8, 1, 2) == pytest.approx(0.8)
    assert majority_accuracy(0.8, 2, 2) == pytest.approx(0.64 / 0.68)
    assert majority_accuracy(0.8, 3, 2) == pytest.approx(0.896)
    assert (
        majority_accuracy(0.6, 5, 3) > majority_accuracy(0.6, 1, 3) == pytest.approx(0.6, abs=0.01)
    )


def test_one_option_or_no_item_is_refused():
    with pytest.raises(StatisticsError, match="two options"):
        label_noise([], [], [], 2, [])
    with pytest.raises(StatisticsError, match="two options"):
        label_noise([1.0], [1.0], [1.0], 1, [0])
