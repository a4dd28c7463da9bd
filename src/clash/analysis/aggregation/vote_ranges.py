"""What the votes allow: ranges of accuracies and probabilities, and the items to label next."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.stats.latent.patterns import MISSING, TIE
from clash.stats.selection import vote_range
from clash.stats.selection.expert_pool import PoolLabels
from clash.votes.binary import MethodTable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.stats.latent.patterns import Ties
    from clash.stats.typing import Floats
    from clash.votes import Votes
    from clash.votes.binary import Copies

NEXT = 20
"""Items to label next."""


@dataclass(frozen=True)
class AllowedRange:
    """The least and the largest value that is allowed."""

    low: float
    high: float


@dataclass(frozen=True)
class VoteRanges:
    """The ranges that the votes allow, and, with labels, the ranges that remain.

    Attributes:
        items: of each row.
        readings: models of the votes, and their other optima.
        n_labels: that were used.
        majority: share of majority's verdicts that are right.
        judges: by judge, the share of its votes that are right; a tie is half right.
        low, high: (N,), least and largest P(side 1) of each row.
        n_open: rows that some hypothesis gives to either side.
        label_next: items whose labels would narrow the probabilities most, the best first; none
            where every item has one.
        width_after: of the range of ``majority`` once these have labels, expected; of as many
            random items ``width_random``.
    """

    json_omits: ClassVar[tuple[str, ...]] = ("items", "low", "high")

    items: tuple[str, ...] = field(repr=False)
    readings: tuple[str, ...]
    n_labels: int
    majority: AllowedRange
    judges: Mapping[str, AllowedRange]
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    n_open: int
    label_next: tuple[str, ...]
    width_after: float
    width_random: float


def vote_ranges(
    votes: Votes,
    *,
    seed: int = 0,
    ties: Ties = "half",
    copies: Copies = "merge",
    use_labels: bool | None = None,
    threshold: float | None = None,
) -> VoteRanges:
    """The ranges of a panel, and the items to label next.

    Args:
        votes: from a file or a run.
        seed: of the cross-validation of the models, and of the labels that are imagined.
        ties: as for :func:`clash.analysis.aggregation.aggregate`.
        copies: likewise.
        use_labels: false leaves labels out.
        threshold: as for :func:`clash.analysis.aggregation.aggregate`.

    Raises:
        StatisticsError: no votes at all.
    """
    table = MethodTable.of(votes, threshold, ties, copies=copies)
    rng = np.random.default_rng(seed)
    readings = vote_range.read_otherwise(
        table.codes, rng, families=table.families, ties=ties, groups=table.groups
    )
    is_known = table.labelled & (use_labels is not False)
    rows = np.flatnonzero(table.decisive & is_known)
    labels = PoolLabels(rows, table.truth[rows], table.groups[rows])
    hypotheses = vote_range.hypotheses(readings, labels)
    majority = np.sign(readings.spins.sum(axis=1)) / 2 + 0.5
    without_label = np.flatnonzero(~is_known)
    label_next = vote_range.next_labels(hypotheses, without_label, NEXT)
    random = rng.permutation(without_label)[:NEXT]
    low, high = hypotheses.bounds(hypotheses.p)
    return VoteRanges(
        items=table.items,
        readings=readings.names,
        n_labels=len(rows),
        majority=_bounds(hypotheses, majority),
        judges={
            name: _bounds(hypotheses, _verdicts(table.codes[:, column]))
            for column, name in enumerate(votes.judges)
        },
        low=low,
        high=high,
        n_open=int(((low < 0.5) & (high > 0.5)).sum()),
        label_next=tuple(table.items[row] for row in label_next),
        width_after=vote_range.width_after(hypotheses, label_next, majority, rng),
        width_random=vote_range.width_after(hypotheses, random, majority, rng),
    )


def _verdicts(codes: np.ndarray) -> Floats:
    """Votes of a judge as verdicts: 0, 1, 0.5 for a tie, NaN for none."""
    return np.where(codes == MISSING, np.nan, np.where(codes == TIE, 0.5, codes))


def _bounds(hypotheses: vote_range.Hypotheses, verdicts: Floats) -> AllowedRange:
    low, high = hypotheses.bounds(hypotheses.accuracy(verdicts))
    return AllowedRange(float(low), float(high))
