"""Judges with known thresholds are recovered, and trials that tell nothing are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from clash.errors import StatisticsError
from clash.stats.psychometric import PsychometricCurve, fit_psychometric

GAPS = np.tile([0.0, 0.1, 0.25, 0.5, 0.75, 1.0], 100)


def _trials(curve: PsychometricCurve, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    draw = rng.random(len(GAPS))
    worse, tie = curve.worse(GAPS), curve.tie(GAPS)
    return np.where(draw < worse, 0.0, np.where(draw < worse + tie, 0.5, 1.0))


@pytest.mark.parametrize(
    ("tau", "scale", "lapse"), [(0.1, 0.05, 0.02), (0.45, 0.15, 0.05), (0.0, 0.3, 0.1)]
)
def test_known_judges_are_recovered(tau: float, scale: float, lapse: float) -> None:
    truth = PsychometricCurve(tau, scale, lapse)
    curve_fit = fit_psychometric(
        GAPS, _trials(truth, 3), np.repeat(np.arange(100), 6),
        rng=np.random.default_rng(0), n_bootstrap=60,
    )  # fmt: skip
    assert curve_fit.tau.low - 0.02 <= tau <= curve_fit.tau.high + 0.02
    assert curve_fit.slope.low * 0.9 <= truth.slope <= curve_fit.slope.high * 1.1
    assert curve_fit.lapse.low - 0.02 <= lapse <= curve_fit.lapse.high + 0.02
    assert curve_fit.curve.tau == pytest.approx(tau, abs=0.06)
    assert curve_fit.band.estimate == pytest.approx(2 * curve_fit.tau.estimate)
    assert curve_fit.residual < 1e-3


def test_shyer_judges_have_wider_bands() -> None:
    bands = [
        fit_psychometric(
            GAPS,
            _trials(PsychometricCurve(tau, 0.1, 0.02), 1),
            rng=np.random.default_rng(0),
            n_bootstrap=20,
        ).band.estimate
        for tau in (0.05, 0.3, 0.8)
    ]
    assert bands == sorted(bands)


def test_probabilities_add_up_and_the_threshold_is_at_half() -> None:
    curve = PsychometricCurve(0.3, 0.05, 0.0)
    x = np.linspace(0, 1, 11)
    assert np.allclose(curve.better(x) + curve.worse(x) + curve.tie(x), 1)
    assert float(curve.better(0.3)) == pytest.approx(0.5)
    assert float(curve.better(curve.gap_for(0.75))) == pytest.approx(0.75)
    rise = (float(curve.better(0.3001)) - float(curve.better(0.2999))) / 0.0002
    assert curve.slope == pytest.approx(rise, rel=1e-4)
    assert math.isinf(PsychometricCurve(0.1, 0.1, 0.6).gap_for(0.9))


def test_a_coin_never_reaches_three_quarters_and_a_mute_judge_only_ties() -> None:
    rng = np.random.default_rng(2)
    coin = fit_psychometric(
        GAPS, rng.integers(0, 2, len(GAPS)).astype(float), rng=rng, n_bootstrap=20
    )
    assert coin.seventy_five.estimate > 1
    mute = fit_psychometric(GAPS, np.full(len(GAPS), 0.5), rng=rng, n_bootstrap=20)
    assert mute.tau.estimate > 1
    assert any("beyond the largest gap" in warning for warning in mute.warnings)


def test_no_control_pair_is_warned_about() -> None:
    rows_kept = GAPS > 0
    curve_fit = fit_psychometric(
        GAPS[rows_kept], _trials(PsychometricCurve(0.2, 0.1, 0.0), 5)[rows_kept],
        rng=np.random.default_rng(0), n_bootstrap=20,
    )  # fmt: skip
    assert any("without a gap" in warning for warning in curve_fit.warnings)


@pytest.mark.parametrize(
    ("gaps", "outcomes"),
    [([0.5] * 30, [1.0] * 30), ([0.1, 0.2], [1.0, 0.0]), ([-0.1, 0.2] * 20, [1.0, 0.0] * 20),
     ([0.1, 0.2] * 20, [0.3, 1.0] * 20)],
    ids=["one gap", "two trials", "negative", "no outcome"],
)  # fmt: skip
def test_trials_that_tell_nothing_are_refused(gaps, outcomes) -> None:
    with pytest.raises(StatisticsError):
        fit_psychometric(gaps, outcomes, rng=np.random.default_rng(0))
