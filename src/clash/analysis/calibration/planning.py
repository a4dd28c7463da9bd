"""Which items people should label next, and what the labels are expected to buy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.calibration.frame import Frame, unlabelled_frame
from clash.errors import InputError
from clash.stats.intervals import Interval, mean_clustered
from clash.stats.selection.active import (
    LabelSampling,
    budget_curve,
    one_row_of_each_source,
    plan_labels,
)
from clash.stats.selection.metrics import expected_side
from clash.stats.selection.ppi import PoweredMean, powered_mean
from clash.stats.selection.selector import plain_majority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.votes import Votes

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
        items: the next ones; the most useful first where the way is ``active``.
        way: how they were chosen: ``active`` only where the curve shows that it saves error.
        why: the reason.
        labelled: rows that have a label.
        curve: what labels buy, replayed.
        imagined: the curve is of labels drawn from the vote shares, for want of real ones.
        win_rate: of side A, from labels and judges together; null without labels on some rows
            and votes on others.
    """

    items: tuple[str, ...]
    way: LabelSampling
    why: str
    labelled: int
    curve: tuple[Step, ...]
    imagined: bool
    win_rate: PoweredMean | None


def label_plan(votes: Votes, n: int, seed: int = 0) -> LabelPlan:
    """Plan the next ``n`` labels of a votes file or run, or as many as there are items without.

    Raises:
        InputError: every row has a label.
    """
    rng = np.random.default_rng([seed, 4])
    frame = unlabelled_frame(votes)
    panel = frame.panel(votes)
    # A source with a label on some copy needs no other.
    done = np.isin(panel.group, panel.group[panel.has_label])
    rest = np.flatnonzero(~done)
    known = np.flatnonzero(panel.has_label)
    seen = panel.rows(known).evidence(panel.n_patterns) if len(known) else None
    wanted = min(n, len(np.unique(panel.group[rest])))
    if not wanted:
        raise InputError("every item has a label already", path=votes.source or None)
    curve, imagined = _curve(panel, rng)
    why = _reason(curve, len(np.unique(panel.group[known])) + wanted, imagined=imagined)
    way: LabelSampling = "random" if why else "active"
    rows = (
        plan_labels(panel, rest, wanted, rng, seen)
        if way == "active"
        else one_row_of_each_source(panel, rest, wanted, rng)[:wanted]
    )
    return LabelPlan(
        tuple(votes.items[row] for row in rows),
        way,
        why or "the replay saves error by it",
        len(known),
        tuple(curve),
        imagined,
        win_rate(votes, panel, frame),
    )


def _reason(curve: Sequence[Step], labels: int, *, imagined: bool) -> str | None:
    """Why to draw at random; null where choosing is better at the nearest number of labels.

    A chosen sample promises no risk and no win rate, so it must buy something that is seen.
    """
    if imagined:
        return "too few labels to replay what choosing would save"
    nearest = min(curve, key=lambda step: abs(math.log(step.labels / max(labels, 1))))
    if nearest.saved.low > 0:
        return None
    return f"choosing saves nothing that is seen with {nearest.labels} labels"


def _curve(panel: PanelVotes, rng: np.random.Generator) -> tuple[list[Step], bool]:
    """Steps, and whether their labels were drawn for want of real ones."""
    sources = len(np.unique(panel.group[panel.has_label]))
    budgets = [budget for budget in BUDGETS if budget <= sources // 3]
    imagined = not budgets
    if imagined:
        sources = len(np.unique(panel.group))
        budgets = [b for b in BUDGETS[:3] if b <= sources // 3] or [max(sources // 3, 1)]
    repetitions = REPETITIONS // 2 if imagined else REPETITIONS
    points = budget_curve(panel, budgets, repetitions, rng, simulate_labels=imagined)
    steps = [
        Step(
            point.labels,
            float(point.active.mean()),
            float(point.random.mean()),
            mean_clustered(point.random - point.active),
        )
        for point in points
    ]
    return steps, imagined


def win_rate(votes: Votes, panel: PanelVotes, frame: Frame) -> PoweredMean | None:
    """Mean label over all rows, judged and labelled ones together (PPI++).

    What the judges say is their plain vote share, to which no label was fitted. Valid where the
    labelled rows are a random sample: not where a plan chose them.
    """
    known = panel.has_label
    if known.all() or len(np.unique(panel.group[known])) < 2:
        return None
    judged = expected_side(plain_majority(panel))[panel.pattern]
    rest = ~known & ~np.isin(panel.group, panel.group[known])
    labels = frame.scaled(votes.labels[known]) if frame.target == "scalar" else votes.labels[known]
    return powered_mean(labels, judged[known], judged[rest], panel.group[known], panel.group[rest])
