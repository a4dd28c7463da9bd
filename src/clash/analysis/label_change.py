"""Effect of new labels: on concordance and on the calibrated result, and how many more are needed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clash.stats.intervals import normal_quantile

if TYPE_CHECKING:
    from clash.analysis.calibration_change import CalibrationChange
    from clash.analysis.corrected import PeopleDecision
    from clash.analysis.findings import Findings
    from clash.analysis.labelled import LabelConcordance
    from clash.stats.intervals import Interval

TARGET_HALF_WIDTH = 0.05
"""Half the width of the interval that is worth having: five percentage points."""


@dataclass(frozen=True)
class LabelChange:
    """A session and its consequences.

    Attributes:
        written: decisions written, those taken back included.
        before, after: concordance with the labels; null without any.
        people: annotators, and how often two of them say the same; null with fewer than two.
        more: further labels after which the interval would reach 5 points to each side, if the
            concordance stays what it is; 0 where it does already.
        calibrated: the calibrated result before and after; null where the run has no votes.
        decision_before, decision: what people would decide; null where labels do not suffice.
    """

    written: int
    before: LabelConcordance | None
    after: LabelConcordance | None
    people: Interval | None
    more: int | None
    calibrated: CalibrationChange | None
    decision_before: PeopleDecision | None = None
    decision: PeopleDecision | None = None


def label_change(
    before: Findings, after: Findings, n_written: int, calibration: CalibrationChange | None = None
) -> LabelChange:
    """Compare the report on the new labels with the one before."""
    concordance = after.label_concordance
    people = after.concordance.people if after.concordance is not None else None
    return LabelChange(
        written=n_written,
        before=before.label_concordance,
        after=concordance,
        people=people.agreement if people is not None and people.items else None,
        more=None if concordance is None else more_labels(concordance),
        calibrated=calibration,
        decision_before=before.correction.decision if before.correction is not None else None,
        decision=after.correction.decision if after.correction is not None else None,
    )


def more_labels(concordance: LabelConcordance) -> int:
    """Further labelled items for an interval of 5 points to each side.

    From the half width of Wilson's interval, with the design effect of the items at hand; the
    share is drawn towards one half as Wilson's centre is, so that 100% of three labels does not
    promise that no more are needed.
    """
    rate, z = concordance.concordance, normal_quantile(0.95)
    n = rate.n_effective or rate.n
    share = (rate.estimate * n + z**2 / 2) / (n + z**2)
    effect = rate.n / n if n else 1.0
    need = share * (1 - share) * (z / TARGET_HALF_WIDTH) ** 2 - z**2
    return max(0, math.ceil(need * max(effect, 1.0)) - concordance.n)
