"""Length bias: how often the longer response wins, beyond its rate by a reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.diagnosis.judge_quality import weighted_rest
from clash.stats.bias import BiasRate, favouritism, longer_wins_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from clash.analysis.texts import Texts
    from clash.stats.intervals import Interval
    from clash.stats.typing import Floats
    from clash.votes import Votes


_ENOUGH_LABELS = 30


@dataclass(frozen=True)
class LengthBias:
    """A judge on pairs of unlike length.

    Attributes:
        longer: how often the longer response wins, of decisive ballots.
        pull: that, beyond the reference on the same rows: a panel of people may like length too;
            null without a reference.
        pull_by: what the reference is: labels where 30 of the ballots have one, else the rest.
    """

    judge: str
    longer: BiasRate
    pull: Interval | None
    pull_by: str


def length_biases(votes: Votes, texts: Mapping[str, Texts]) -> tuple[LengthBias, ...]:
    """Every judge with decisive ballots on responses of unlike length, in words.

    Args:
        votes: sides and ties.
        texts: responses by item id of the votes, side A first.
    """
    words = _words(votes, texts)
    unlike = ~np.isnan(words).any(axis=1) & (words[:, 0] != words[:, 1])
    if not unlike.any():
        return ()
    rest_votes = weighted_rest(votes)
    biases = []
    for index, judge in enumerate(votes.judges):
        column = votes.matrix[:, index]
        rows = unlike & np.isin(column, (0.0, 1.0))
        if rows.any():
            biases.append(_bias(votes, judge, column, rest_votes[:, index], words, rows))
    return tuple(biases)


def _words(votes: Votes, texts: Mapping[str, Texts]) -> Floats:
    """(N, 2), words of the responses of each row; NaN where there are no texts."""
    lengths = {
        item: (float(len(pair.first.split())), float(len(pair.second.split())))
        for item, pair in texts.items()
    }
    no_lengths = (np.nan, np.nan)
    return np.array([lengths.get(item, no_lengths) for item in votes.items])


def _bias(
    votes: Votes,
    judge: str,
    column: Floats,
    rest_votes: Floats,
    words: Floats,
    rows: NDArray[np.bool_],
) -> LengthBias:
    by_labels = int(np.sum(np.isin(votes.labels, (0.0, 1.0)) & rows)) >= _ENOUGH_LABELS
    reference = votes.labels if by_labels else rest_votes
    decisive = rows & np.isin(reference, (0.0, 1.0))
    rate = longer_wins_rate(column[rows], words[rows, 0], words[rows, 1], votes.groups[rows])
    pull = None
    if decisive.any():
        judge_longer, reference_longer = (
            _longer(side, words)[decisive] for side in (column, reference)
        )
        pull = favouritism(judge_longer, reference_longer, votes.groups[decisive]).difference
    return LengthBias(judge, rate, pull, "the labels" if by_labels else "the other judges")


def _longer(side: Floats, words: Floats) -> Floats:
    """1 where the longer response wins."""
    longer_wins: Floats = np.where(words[:, 0] > words[:, 1], side, 1 - side)
    return longer_wins
