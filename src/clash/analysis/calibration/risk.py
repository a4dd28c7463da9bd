"""Which risk can be promised with how many labels, and how many rows are then answered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.calibration.calibrator import CONTROL_SHARE, RiskLimit, apply
from clash.stats.selection.conformal import BinomialControl, ConformalControl

if TYPE_CHECKING:
    from clash.analysis.calibration.calibrator import Calibrator
    from clash.analysis.calibration.study import CalibrationStudy
    from clash.stats.typing import Floats
    from clash.votes import Votes

RISKS = (0.02, 0.05, 0.1, 0.2)
LABELS = (50, 100, 200, 500, 1000, 2000)
LEVEL = 0.9
DRAWS = 100
BATCH = 300
"""Rows of a batch of new items, for the promise on average."""


@dataclass(frozen=True)
class RiskStep:
    """What so many labels allow, mean over draws.

    Attributes:
        labels: labelled sources, of which three tenths are held out.
        max_risk: share of wrong verdicts that is allowed.
        on_average: share of rows answered where the risk is kept on average.
        with_confidence: share of rows answered where it is kept with confidence.
        promised: share of draws in which a promise with confidence was possible at all.
    """

    labels: int
    max_risk: float
    on_average: float
    with_confidence: float
    promised: float


@dataclass(frozen=True)
class RiskByLabels:
    """Risk and share answered by number of labels.

    The maps and their errors are those of the study's test blocks: what more labels do to the map
    itself is not in it.

    Attributes:
        level: confidence of the promise.
        labels: labelled sources of the study.
        steps: by labels, then risk.
        fewest: by risk, the fewest labels with which any promise with confidence is possible.
    """

    level: float
    labels: int
    steps: tuple[RiskStep, ...]
    fewest: dict[float, int]


@dataclass(frozen=True)
class AnsweredShare:
    """Share of the rows of a votes file that a written calibrator answers.

    Attributes:
        limit: the promise.
        share: of the rows.
        why: why none is answered; empty where some are.
    """

    limit: RiskLimit
    share: float
    why: str


def fewest_labels(max_risk: float) -> int:
    """Labels with which a risk can be promised if no held-out verdict is wrong."""
    nothing = np.zeros(0)
    n_held_out = BinomialControl(nothing, nothing, nothing, nothing, max_risk, LEVEL).fewest
    return math.ceil(n_held_out / CONTROL_SHARE)


def risk_curve(study: CalibrationStudy, seed: int) -> RiskByLabels:
    """Draw held-out rows from the test blocks, as often as labels would hold out, and test them.

    Args:
        study: whose test blocks tell how confidence and errors go together.
        seed: of the draws.
    """
    rng = np.random.default_rng([seed, 6])
    parts = [o.test_block.verdict_errors(o.model.p, rng) for o in study.outcomes]
    sure = np.concatenate([confidence for confidence, _ in parts])
    wrong = np.concatenate([is_wrong for _, is_wrong in parts])
    values, count = np.unique(sure, return_counts=True)
    steps = []
    for n_labels in sorted({*LABELS, study.n_groups}):
        n = max(round(CONTROL_SHARE * n_labels), 1)
        draws = [rng.integers(len(sure), size=n) for _ in range(DRAWS)]
        batches = [rng.choice(sure, BATCH) for _ in range(DRAWS)]
        for max_risk in RISKS:
            on_average, bounds = [], []
            for rows, batch in zip(draws, batches, strict=True):
                held_out, is_wrong = sure[rows], wrong[rows]
                control = ConformalControl(held_out[is_wrong], n, max_risk)
                on_average.append(float(control.answers(batch).mean()))
                bound = BinomialControl(
                    held_out[~is_wrong],
                    held_out[is_wrong],
                    values,
                    count.astype(float),
                    max_risk,
                    LEVEL,
                )
                bounds.append(bound.threshold)
            thresholds: Floats = np.array(bounds)
            share = np.mean([float((sure >= threshold).mean()) for threshold in thresholds])
            steps.append(
                RiskStep(
                    n_labels,
                    max_risk,
                    float(np.mean(on_average)),
                    float(share),
                    float(np.isfinite(thresholds).mean()),
                )
            )
    fewest = {max_risk: fewest_labels(max_risk) for max_risk in RISKS}
    return RiskByLabels(LEVEL, study.n_groups, tuple(steps), fewest)


def answered_shares(calibrator: Calibrator, votes: Votes) -> tuple[AnsweredShare, ...]:
    """How many rows of these votes a written calibrator answers, by risk, on average and with confidence."""
    columns = [votes.judges.index(judge) for judge in calibrator.asked]
    shares = []
    for max_risk in RISKS:
        for limit in (RiskLimit(max_risk), RiskLimit(max_risk, LEVEL)):
            rows = apply(calibrator, votes.matrix[:, columns], limit)
            share = float(rows.is_answered.mean())
            reason = "" if share or not rows.warnings else rows.warnings[-1]
            shares.append(AnsweredShare(limit, share, reason))
    return tuple(shares)
