"""Whether votes can tell the parameters of a model at all; refusing is better than guessing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.errors import NotIdentifiedError, StatisticsError
from clash.stats.latent.patterns import TIE, Patterns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.typing import Bools, VoteCodes

ENOUGH_LABELS = 5
"""Labelled items of each class from which on the labels, not the votes, identify the classes."""


def informative_judges(patterns: Patterns) -> list[int]:
    """Judges that voted both ways and are not a copy of an earlier judge.

    A judge that always says the same separates nothing, and a copy adds nothing: neither helps
    to identify a model.
    """
    columns = np.ascontiguousarray(patterns.votes[patterns.counts > 0].T)
    first_with_votes: dict[bytes, int] = {}
    for judge in np.flatnonzero(_varies(columns)).tolist():
        first_with_votes.setdefault(columns[judge].tobytes(), judge)
    return list(first_with_votes.values())


def group_codes(families: Sequence[object], n_judges: int) -> list[int]:
    """Families as numbers 0, 1, … in order of appearance.

    Raises:
        StatisticsError: not one family per judge.
    """
    if len(families) != n_judges:
        raise StatisticsError(f"{len(families)} families for {n_judges} judges")
    numbers: dict[object, int] = {}
    return [numbers.setdefault(family, len(numbers)) for family in families]


def require_families(patterns: Patterns, groups: Sequence[int], name: str) -> None:
    """Refuse a family model without dependence to model or too few families to tell it apart.

    Raises:
        NotIdentifiedError: every judge its own family, or fewer than three families that vote
            both ways.
        StatisticsError: no votes at all.
    """
    require_votes(patterns)
    if len(set(groups)) == patterns.n_judges:
        raise NotIdentifiedError(f"{name}: no family has two judges, so there is no coupling")
    useful = {groups[judge] for judge in informative_judges(patterns)}
    if len(useful) < 3 and not has_labels(patterns):
        raise NotIdentifiedError(
            f"{name} needs three families whose judges vote both ways; there are {len(useful)}"
        )


def has_labels(patterns: Patterns) -> bool:
    """Whether both classes have enough labelled items to be told apart by them."""
    return all(patterns.counts[patterns.labels == truth].sum() >= ENOUGH_LABELS for truth in (0, 1))


def require_votes(patterns: Patterns) -> None:
    """Refuse a vote matrix without a single vote.

    Raises:
        StatisticsError: every vote is missing, or every item weighs nothing.
    """
    if not patterns.present[patterns.counts > 0].any():
        raise StatisticsError("no judge voted on any item")


def require_identified(patterns: Patterns, name: str, *, at_least: int, n_params: int) -> None:
    """Refuse a model that the votes cannot identify.

    Args:
        patterns: the votes.
        name: the model, for the message.
        at_least: informative judges it needs.
        n_params: its free parameters, to be identified from ``2^judges - 1`` pattern frequencies.

    Raises:
        NotIdentifiedError: too few informative judges or more parameters than free counts.
        StatisticsError: no votes at all.
    """
    require_votes(patterns)
    if has_labels(patterns):
        return
    useful = len(informative_judges(patterns))
    if useful < at_least:
        raise NotIdentifiedError(
            f"{name} needs {at_least} judges that vote both ways and are not copies of each "
            f"other; this panel has {useful} (of {patterns.n_judges})"
        )
    free = 2**useful - 1
    if n_params > free:
        raise NotIdentifiedError(
            f"{name} has {n_params} parameters, but {useful} judges give only {free} free counts"
        )


def _varies(columns: VoteCodes) -> Bools:
    """Which rows hold two different votes, shape (n_judges,)."""
    values = (0, 1, TIE)
    return np.asarray(sum((columns == value).any(axis=1).astype(int) for value in values) > 1)
