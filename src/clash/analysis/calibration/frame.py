"""Votes and labels scaled to [0, 1], as panel selection reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import InputError
from clash.stats.selection.blocks import FEWEST_GROUPS
from clash.stats.selection.panel import PanelVotes
from clash.wording import plural

if TYPE_CHECKING:
    from clash.stats.selection.panel import Target
    from clash.stats.typing import Floats
    from clash.votes import Votes


FEWEST = 30
"""Labelled rows below which nothing is calibrated."""


@dataclass(frozen=True)
class ScoreFrame:
    """The scale that takes votes and labels of one source to [0, 1].

    Attributes:
        judges: in the order of the columns.
        target: binary, three (sides and tie) or scalar.
        low: the score that is 0; 0 where votes are sides.
        high: the score that is 1.
    """

    judges: tuple[str, ...]
    target: Target
    low: float = 0.0
    high: float = 1.0

    @classmethod
    def of(cls, votes: Votes, fewest: int = FEWEST) -> ScoreFrame:
        """The frame of labelled votes.

        Args:
            votes: with labels.
            fewest: labelled rows that are enough.

        Raises:
            InputError: too few labels, one label for all, labelled rows without a vote, scores
                against ties, or too few sources.
        """
        where = votes.source or None
        labels = votes.labels[votes.labelled]
        if len(labels) < fewest:
            verb = "has" if len(labels) == 1 else "have"
            raise InputError(
                f"{plural(len(labels), 'row')}{_of_items(votes)} {verb} a label, at least {fewest}"
                " are needed to calibrate",
                path=where,
                field="label",
                hint="label more items (clash review; clash calibrate --plan suggests which), or "
                "start with --prior",
            )
        if np.ptp(labels) == 0:
            raise InputError(
                "all labels are the same: there is nothing to learn from",
                path=where,
                field="label",
                hint="label items of the other outcome too",
            )
        if np.isnan(votes.matrix[votes.labelled]).all():
            raise InputError(
                "no judge voted on any labelled row: there are no votes to calibrate",
                path=where,
                field="vote",
                hint="label items that were judged",
            )
        _check_sources(votes)
        low, high = _range(votes, labels)
        if votes.label_kind == "numeric":
            return cls(votes.judges, "scalar", low, high)
        if votes.label_kind == "ternary":
            if votes.kind == "numeric":
                raise InputError(
                    "votes are scores, but labels have ties",
                    path=where,
                    hint="keep the decisive ones: --decisive",
                )
            return cls(votes.judges, "three")
        return cls(votes.judges, "binary", low, high)

    def scale(self, values: Floats) -> Floats:
        """Votes or labels on [0, 1]; scores beyond the range are taken to its ends."""
        if (self.low, self.high) == (0.0, 1.0):
            return values
        return np.asarray(np.clip((values - self.low) / (self.high - self.low), 0.0, 1.0))

    def panel(self, votes: Votes) -> PanelVotes:
        """The votes, collapsed to patterns."""
        scores = votes.label_kind == "numeric"
        labels = self.scale(votes.labels) if scores else votes.labels
        return PanelVotes.of(
            self.scale(votes.matrix), labels, votes.groups, self.target, votes.items
        )


def _of_items(votes: Votes) -> str:
    """Of how many items the labelled rows are, where items have several; else empty."""
    rows = np.flatnonzero(votes.labelled)
    n_items = len({votes.items[row] for row in rows})
    return "" if n_items == len(rows) else f" of {n_items} items"


def _check_sources(votes: Votes) -> None:
    """Refuse a ``group`` column that marks a category: its rows would all be copies of each other.

    Raises:
        InputError: many labelled items in few groups.
    """
    groups = np.unique(votes.groups[votes.labelled])
    n_items = len({votes.items[row] for row in np.flatnonzero(votes.labelled)})
    if len(groups) >= FEWEST_GROUPS or len(groups) == n_items:
        return
    names = [repr(votes.group_names[group]) for group in groups if votes.group_names]
    common_texts = (
        f"share group {names[0] if names else ''}".rstrip()
        if len(groups) == 1
        else f"are in {len(groups)} groups ({', '.join(names)})"
    )
    raise InputError(
        f"all {n_items} labelled items {common_texts}; a group marks copies of one source (both orders, "
        f"repeats), and labels of at least {FEWEST_GROUPS} sources are needed",
        path=votes.source or None,
        field="group",
        hint='for a category, rename the column "group" to "subset"; or read each item as a source '
        "of its own: --sources item",
    )


def _range(votes: Votes, labels: Floats) -> tuple[float, float]:
    """The values scaled to 0 and 1: the range of the labels, or of the votes where only votes are scores."""
    if votes.label_kind == "numeric":
        return float(labels.min()), float(labels.max())
    if votes.kind == "numeric":
        return float(np.nanmin(votes.matrix)), float(np.nanmax(votes.matrix))
    return 0.0, 1.0


def unlabelled_frame(votes: Votes) -> ScoreFrame:
    """The frame of votes that have few labels or none: sides unless votes or labels are scores."""
    if votes.kind == "numeric" or votes.label_kind == "numeric":
        values = votes.matrix[~np.isnan(votes.matrix)]
        values = np.concatenate([values, votes.labels[votes.labelled]])
        return ScoreFrame(votes.judges, "scalar", float(values.min()), float(values.max()))
    return ScoreFrame(votes.judges, "three" if votes.label_kind == "ternary" else "binary")
