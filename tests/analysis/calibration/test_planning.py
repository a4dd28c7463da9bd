"""Which items to label: chosen where that was seen to save error, drawn at random elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from clash.analysis.calibration.planning import LabelStep, _reason, label_plan
from clash.stats.intervals import mean_clustered
from clash.votes import VoteRow, encode


def step(labels, saving):
    return LabelStep(labels, 0.2, 0.2, mean_clustered(np.array(saving)))


SAVES, HARMS = [0.02, 0.03, 0.025, 0.02], [-0.02, -0.03, -0.01, -0.02]


@pytest.mark.parametrize(("labels", "way"), [(30, None), (90, "100 labels"), (2000, "100 labels")])
def test_the_nearest_step_of_the_curve_decides(labels, way):
    reason = _reason([step(20, SAVES), step(100, HARMS)], labels, is_imagined=False)
    assert (reason is None) == (way is None)
    if way is not None:
        assert way in reason


def test_an_imagined_curve_never_decides():
    assert "too few labels" in _reason([step(20, SAVES)], 20, is_imagined=True)


def test_judges_that_fail_together_on_one_kind_are_where_choosing_pays():
    rng = np.random.default_rng(0)
    rows = []
    for item in range(260):
        truth, trap = int(rng.random() < 0.5), rng.random() < 0.5
        for judge in range(12):
            right = rng.random() < (0.25 if trap and judge > 2 else 0.8)
            rows.append(
                VoteRow(f"q{item}", f"j{judge}", truth if right else 1 - truth,
                        truth if item < 200 else None)
            )  # fmt: skip
    plan = label_plan(encode(rows), 10, seed=1)
    assert plan.curve[0].saved.estimate > 0
    assert len(set(plan.items)) == 10
    assert all(int(item[1:]) >= 200 for item in plan.items)
    assert plan.win_rate.interval.n == 200
