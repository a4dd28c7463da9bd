"""Which items people should label next, and what the labels are expected to buy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.calibration.frame import Frame, unlabelled_frame
from clash.errors import InputError, StatisticsError
from clash.stats.intervals import Interval, mean_clustered
from clash.stats.selection.active import budget_curve, plan
from clash.stats.selection.metrics import expected_side
from clash.stats.selection.ppi import Powered, powered_mean
from clash.stats.selection.selector import plain_majority

if TYPE_CHECKING:
    from clash.analysis.encode import Votes
    from clash.stats.selection.panel import Panel

BUDGETS = (20, 50, 100, 200, 400)
REPETITIONS = 20


@dataclass(frozen=True)
class Step:
    """Test squared error by number of labels: mean over repetitions.

    Attributes:
        saved: random minus active, with its interval.
    """

    labels: int
    active: float
    random: float
    saved: Interval


@dataclass(frozen=True)
class LabelPlan:
    """What to label.

    Attributes:
        items: the next ones, the most useful first.
        labelled: rows that have a label.
        curve: replayed on these; empty where there are too few.
        win_rate: of side A, from labels and judges together; null without labels on some rows
            and votes on others.
    """

    items: tuple[str, ...]
    labelled: int
    curve: tuple[Step, ...]
    win_rate: Powered | None


def label_plan(votes: Votes, n: int, seed: int = 0) -> LabelPlan:
    """Plan the next ``n`` labels of a votes file or run.

    Raises:
        InputError: every row has a label, or fewer rows than wanted are without.
    """
    rng = np.random.default_rng([seed, 4])
    frame = unlabelled_frame(votes)
    panel = frame.panel(votes)
    # A source with a label on some copy needs no other.
    done = np.isin(panel.group, panel.group[panel.labelled])
    rest = np.flatnonzero(~done)
    known = np.flatnonzero(panel.labelled)
    seen = panel.rows(known).evidence(panel.n_patterns) if len(known) else None
    try:
        rows = plan(panel, rest, min(n, len(np.unique(panel.group[rest]))), rng, seen)
    except StatisticsError as error:
        raise InputError(str(error), path=votes.source or None) from None
    return LabelPlan(
        tuple(votes.items[row] for row in rows),
        len(known),
        tuple(_curve(panel, rng)),
        win_rate(votes, panel, frame),
    )


def _curve(panel: Panel, rng: np.random.Generator) -> list[Step]:
    sources = len(np.unique(panel.group[panel.labelled]))
    budgets = [budget for budget in BUDGETS if budget <= sources // 3]
    if not budgets:
        return []
    return [
        Step(
            point.labels,
            float(point.active.mean()),
            float(point.random.mean()),
            mean_clustered(point.random - point.active),
        )
        for point in budget_curve(panel, budgets, REPETITIONS, rng)
    ]


def win_rate(votes: Votes, panel: Panel, frame: Frame) -> Powered | None:
    """Mean label over all rows, judged and labelled ones together (PPI++).

    What the judges say is their plain vote share, to which no label was fitted. Valid where the
    labelled rows are a random sample: not where a plan chose them.
    """
    known = panel.labelled
    if known.all() or len(np.unique(panel.group[known])) < 2:
        return None
    judged = expected_side(plain_majority(panel))[panel.pattern]
    rest = ~known & ~np.isin(panel.group, panel.group[known])
    labels = frame.scaled(votes.labels[known]) if frame.target == "scalar" else votes.labels[known]
    return powered_mean(labels, judged[known], judged[rest], panel.group[known], panel.group[rest])
