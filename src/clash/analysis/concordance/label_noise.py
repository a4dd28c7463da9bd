"""Concordance against the best that labels allow: people's own noise, and the panel's error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance.cases import codes
from clash.labels import TIE
from clash.stats.intervals import Interval, wilson_clustered
from clash.stats.label_noise import LabelNoise, label_noise, majority_accuracy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance.cases import LabelledCase

FEWEST = 10
"""Items with two decisive votes or more, from which label noise is estimated."""


@dataclass(frozen=True)
class Ceiling:
    """The panel's concordance beside that of a perfect judge with the same labels; ties left out.

    Attributes:
        n: items with two votes or more that are no ties, from which the noise is estimated.
        options: responses that an item has to choose from.
        split: the disagreement with single people on these, in two parts.
        concordance: verdicts that equal the label, of all items whose label is no tie.
        ceiling: the same of a judge that always says what most people would: the labels of an item
            are few, and their majority is sometimes wrong.
        of_ceiling: the first as a share of the second; over 1 where the panel guesses people's
            errors.
    """

    n: int
    options: int
    split: LabelNoise
    concordance: Interval
    ceiling: Interval
    of_ceiling: float


def label_ceiling(cases: Sequence[LabelledCase]) -> Ceiling | None:
    """The ceiling that labels set; null where fewer than ten items have two votes that are no ties."""
    sizes = {len(case.candidates) for case in cases}
    several = [case for case in cases if len(_votes(case)) > 1]
    if len(sizes) != 1 or len(several) < FEWEST:
        return None
    (options,) = sizes
    if options < 2:
        return None
    split = label_noise(
        [_pair_agreement(case) for case in several],
        [_panel_agreement(case) for case in several],
        [case.outcome is not None for case in several],
        options,
        codes(several),
    )
    decisive = [case for case in cases if case.label != TIE]
    if not decisive:
        return None
    concordance = wilson_clustered([float(case.right) for case in decisive], codes(decisive))
    n_votes = Counter(max(len(_votes(case)), 1) for case in decisive)
    ceiling = split.person.transform(lambda person: _mean_ceiling(person, n_votes, options))
    share = concordance.estimate / ceiling.estimate
    ceiling = replace(ceiling, n=len(decisive))
    return Ceiling(len(several), options, split, concordance, ceiling, share)


def _votes(case: LabelledCase) -> list[str]:
    """People's votes on an item that are no ties."""
    return [winner for winner in case.annotators.values() if winner != TIE]


def _pair_agreement(case: LabelledCase) -> float:
    votes = _votes(case)
    n = len(votes)
    return sum(k * (k - 1) for k in Counter(votes).values()) / (n * (n - 1))


def _panel_agreement(case: LabelledCase) -> float:
    return float(np.mean([winner == case.outcome for winner in _votes(case)]))


def _mean_ceiling(person: float, n_votes: Counter[int], options: int) -> float:
    """Over items with different numbers of votes."""
    total = sum(n_votes.values())
    return sum(n * majority_accuracy(person, m, options) for m, n in n_votes.items()) / total
