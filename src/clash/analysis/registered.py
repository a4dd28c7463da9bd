"""The registered primary outcome of a run, at the registered level."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from clash.analysis.labelled import concordance_rate
from clash.analysis.leaderboard import points_table
from clash.stats.intervals import Interval, mean_clustered, wilson_clustered

if TYPE_CHECKING:
    from clash.analysis.rundata import RunData

Outcome = Literal["points", "wins", "concordance"]


@dataclass(frozen=True)
class Primary:
    """The registered outcome and its value in this run.

    Attributes:
        even: what it is without any difference; null for concordance, which is against nothing.
        interval: clustered by prompt, at 1 - alpha; of a run with a stopping rule the last look's,
            which peeking is paid for in.
    """

    outcome: Outcome
    candidate: str | None
    even: float | None
    interval: Interval


def primary(run: RunData, outcome: Outcome, candidate: str | None, alpha: float) -> Primary | None:
    """The primary outcome; null where nothing was registered that this run can show.

    Args:
        run: the run.
        outcome: mean share of points, share won of all items that the candidate was to answer, or
            concordance with labels. Items that an interrupted run has not judged count in none.
        candidate: whose; null for concordance.
        alpha: two-sided.
    """
    level = 1 - alpha
    if outcome == "concordance":
        concordance = concordance_rate(run, run.labelled_verdicts, level)
        return None if concordance is None else Primary(outcome, None, None, concordance)
    if candidate not in run.candidates:
        return None
    if outcome == "wins":
        item_ids = run.items_asked(candidate) - {*run.unjudged_items}
        verdicts = [verdict for verdict in run.verdicts if verdict.item_id in item_ids]
        wins = [float(verdict.winner == candidate) for verdict in verdicts]
        clusters = [run.clusters[verdict.item_id] for verdict in verdicts]
        return Primary(outcome, candidate, None, wilson_clustered(wins, clusters, level))
    last_look = _last_look(run, candidate, level)
    return Primary(outcome, candidate, 0.5, last_look or _points(run, candidate, level))


def _points(run: RunData, candidate: str, level: float) -> Interval:
    column = points_table(run)[:, run.candidates.index(candidate)]
    has_points = ~np.isnan(column)
    clusters = run.cluster_codes[has_points]
    return mean_clustered(column[has_points], clusters, level).within(0.0, 1.0)


def _last_look(run: RunData, candidate: str, level: float) -> Interval | None:
    """Looks are at 95%; another level has none of them."""
    looks = (run.manifest.stopping or {}).get("looks", [])
    if not looks or looks[-1]["candidate"] != candidate or not math.isclose(level, 0.95):
        return None
    last, n_items = looks[-1], len(run.items)
    estimate = math.nan if last["estimate"] is None else last["estimate"]
    name = str((run.manifest.stopping or {})["sequential"])
    return Interval(estimate, last["low"], last["high"], level, n_items, last["prompts"], name)
