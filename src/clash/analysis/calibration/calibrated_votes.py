"""Apply a calibrator to a votes file: a probability for each row, and its error on labelled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.analysis.calibration.calibrator import (
    CalibratedRows,
    Calibrator,
    RiskLimit,
    apply,
    check_limit,
    check_panel,
)
from clash.errors import InputError
from clash.stats.selection.metrics import Metrics, credits_of, measure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.stats.typing import Floats
    from clash.votes import Votes

WINNERS = {1.0: "A", 0.0: "B", 0.5: "tie"}


@dataclass(frozen=True)
class CalibratedVotes:
    """A calibrator applied to rows of votes.

    Attributes:
        test: over the labelled rows, whether or not they were answered; null without labels.
        wrong: share of wrong verdicts among the labelled rows that were answered.
        n: labelled rows.
    """

    rows: CalibratedRows
    votes: Votes
    test: Metrics | None
    wrong: float | None
    n: int

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings on the domain and on the risk."""
        return self.rows.warnings

    def lines(self) -> Iterator[dict[str, Any]]:
        """A line for each row, as ``clash aggregate --out`` writes them."""
        side, verdict = self.rows.side, self.rows.verdict
        for row, item in enumerate(self.votes.items):
            where = {
                "presentation": self.votes.presentations[row],
                "repeat": self.votes.repeats[row],
            }
            is_answered = bool(self.rows.is_answered[row])
            yield {
                "item": item,
                **{name: value for name, value in where.items() if value is not None},
                "method": "calibrated",
                "p": round(float(side[row]), 9),
                "winner": WINNERS[float(verdict[row])] if is_answered else None,
                "abstained": not is_answered,
            }


def calibrate_votes(
    calibrator: Calibrator, votes: Votes, limit: RiskLimit | None, where: str
) -> CalibratedVotes:
    """Apply a calibrator to the rows of a votes file or run.

    Raises:
        InputError: the votes lack a judge it asks, or are scores where it knows sides.
    """
    check_panel(calibrator, votes.judges, where=where)
    check_limit(calibrator, limit, where)
    if votes.kind == "numeric" and (calibrator.low, calibrator.high) == (0.0, 1.0):
        raise InputError(
            "the calibrator was fitted to sides, but these votes are scores", path=where
        )
    columns = [votes.judges.index(judge) for judge in calibrator.asked]
    predictions = apply(calibrator, votes.matrix[:, columns], limit)
    has_label = _has_label(calibrator, votes)
    if not has_label.any():
        return CalibratedVotes(predictions, votes, None, None, 0)
    y = _targets(calibrator, votes.labels[has_label])
    p, is_answered = predictions.p[has_label], predictions.is_answered[has_label]
    wrong = 1 - credits_of(p, y)
    share = float(wrong[is_answered].mean()) if is_answered.any() else None
    return CalibratedVotes(predictions, votes, measure(p, y), share, int(has_label.sum()))


def _has_label(calibrator: Calibrator, votes: Votes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    has_label = votes.labelled
    return has_label & (votes.labels != 0.5) if calibrator.target == "binary" else has_label


def _targets(calibrator: Calibrator, labels: Floats) -> Floats:
    if calibrator.target == "three":
        return np.asarray((labels[:, None] == np.array([0.0, 0.5, 1.0])).astype(float))
    if calibrator.target == "scalar":
        return np.clip((labels - calibrator.low) / (calibrator.high - calibrator.low), 0.0, 1.0)[
            :, None
        ]
    return labels[:, None]
