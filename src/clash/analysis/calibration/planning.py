"""Choose the items to label next, and estimate how much the labels reduce the error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.calibration.frame import ScoreFrame, unlabelled_frame
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
    from collections.abc import Mapping, Sequence

    from clash.stats.selection.panel import PanelVotes
    from clash.votes import Votes

BUDGETS = (20, 50, 100, 200, 400)
REPETITIONS = 20


@dataclass(frozen=True)
class LabelStep:
    """Test squared error by number of labels: mean over repetitions.

    Attributes:
        saved: random minus active, with its interval.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"active": "mse_active", "random": "mse_random"}

    labels: int
    active: float
    random: float
    saved: Interval


@dataclass(frozen=True)
class LabelPlan:
    """The items to label next.

    Attributes:
        items: the next ones; the most useful first where the way is ``active``.
        way: how they were chosen: ``active`` only where the curve shows that it saves error.
        why: the reason.
        labelled: rows that have a label.
        curve: the effect of more labels, replayed.
        imagined: the curve is of labels drawn from the vote shares, for want of real ones.
        win_rate: of side A, from labels and judges together; null without labels on some rows
            and votes on others.
    """

    items: tuple[str, ...]
    way: LabelSampling
    why: str
    labelled: int
    curve: tuple[LabelStep, ...]
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
    has_label = np.isin(panel.group, panel.group[panel.has_label])
    unlabelled_rows = np.flatnonzero(~has_label)
    labelled_rows = np.flatnonzero(panel.has_label)
    evidence = panel.rows(labelled_rows).evidence(panel.n_patterns) if len(labelled_rows) else None
    n_labels = min(n, len(np.unique(panel.group[unlabelled_rows])))
    if not n_labels:
        raise InputError("every item has a label already", path=votes.source or None)
    curve, is_imagined = _curve(panel, rng)
    reason = _reason(
        curve, len(np.unique(panel.group[labelled_rows])) + n_labels, is_imagined=is_imagined
    )
    way: LabelSampling = "random" if reason else "active"
    rows = (
        plan_labels(panel, unlabelled_rows, n_labels, rng, evidence)
        if way == "active"
        else one_row_of_each_source(panel, unlabelled_rows, n_labels, rng)[:n_labels]
    )
    return LabelPlan(
        tuple(votes.items[row] for row in rows),
        way,
        reason or "choosing items reduced the error in a replay of these labels",
        len(labelled_rows),
        tuple(curve),
        is_imagined,
        win_rate(votes, panel, frame),
    )


def _reason(curve: Sequence[LabelStep], labels: int, *, is_imagined: bool) -> str | None:
    """Why to draw at random; null where choosing is better at the nearest number of labels.

    A chosen sample promises no risk and no win rate, so it must buy something that is seen.
    """
    if is_imagined:
        return "too few labels to estimate what choosing items would save"
    nearest = min(curve, key=lambda step: abs(math.log(step.labels / max(labels, 1))))
    if nearest.saved.low > 0:
        return None
    return f"choosing items saves nothing with {nearest.labels} labels"


def _curve(panel: PanelVotes, rng: np.random.Generator) -> tuple[list[LabelStep], bool]:
    """Steps, and whether their labels were drawn for want of real ones."""
    sources = len(np.unique(panel.group[panel.has_label]))
    budgets = [budget for budget in BUDGETS if budget <= sources // 3]
    is_imagined = not budgets
    if is_imagined:
        sources = len(np.unique(panel.group))
        budgets = [b for b in BUDGETS[:3] if b <= sources // 3] or [max(sources // 3, 1)]
    repetitions = REPETITIONS // 2 if is_imagined else REPETITIONS
    points = budget_curve(panel, budgets, repetitions, rng, simulate_labels=is_imagined)
    steps = [
        LabelStep(
            point.labels,
            float(point.active.mean()),
            float(point.random.mean()),
            mean_clustered(point.random - point.active).within(-1.0, 1.0),
        )
        for point in points
    ]
    return steps, is_imagined


def win_rate(votes: Votes, panel: PanelVotes, frame: ScoreFrame) -> PoweredMean | None:
    """Mean label over all rows, judged and labelled ones together (PPI++).

    What the judges say is their plain vote share, to which no label was fitted. Valid where the
    labelled rows are a random sample: not where a plan chose them.
    """
    has_label = panel.has_label
    if has_label.all() or len(np.unique(panel.group[has_label])) < 2:
        return None
    side_by_votes = expected_side(plain_majority(panel))[panel.pattern]
    labels = frame.scale(votes.labels) if frame.target == "scalar" else votes.labels
    rows = has_label | ~np.isin(panel.group, panel.group[has_label])
    return powered_mean(
        np.where(has_label, labels, np.nan)[rows],
        side_by_votes[rows],
        panel.group[rows],
        are_shares=True,
    )
