"""Measures of one judge: discrimination, agreement with a reference, position bias.

The *rest* of a judge is, on each row, the majority of the decisive votes of judges of other
families (people are a family of one each: they do not share weights). A family says the same
thing twice, and agreement with a near-copy of oneself is no evidence. It is formed twice: at first
of all alike, then each weighted by its edge in the first round (none below 0), so that one bad
judge does not spoil the measure of the good ones.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.judge_edges import ENOUGH_LABELS, PEOPLE, own_voices
from clash.stats.agreement import Kappa, cohen_kappa
from clash.stats.bias import BiasRate, favouritism, first_slot_rate, longer_wins_rate
from clash.stats.intervals import Interval, wilson, wilson_clustered
from clash.stats.retest.repeats import FlipRate, flip_rate, self_consistency

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from clash.analysis.texts import Texts
    from clash.stats.intervals import Interval
    from clash.stats.typing import Codes, Floats
    from clash.votes import Votes


@dataclass(frozen=True)
class Agreement:
    """Agreement with a reference on ballots where both decide.

    Attributes:
        share: of equal sides, with its interval.
        kappa: beyond chance, with its interval.
        commoner: share of the reference's more common side: the agreement of always naming it.
    """

    share: Interval
    kappa: Interval
    commoner: float

    @property
    def n(self) -> int:
        """Ballots."""
        return int(self.share.n)


@dataclass(frozen=True)
class SlotBias:
    """Whether the place on the page sways a judge.

    Attributes:
        first: how often the response shown first wins, of decisive ballots.
        pull: first wins beyond the reference on the same rows (labels where there are some, else
            the rest); null without a reference.
        pull_by: what the reference is.
        both_orders: it saw both orders often enough (a fifth of its rows) for ``pull`` to be of
            the place, not of the candidates that stand there.
        flips: winners that change with the order; null where orders were not swapped.
    """

    first: BiasRate | None
    pull: Interval | None
    pull_by: str | None
    both_orders: bool
    flips: FlipRate | None


@dataclass(frozen=True)
class JudgeFacts:
    """Measures of one judge.

    Attributes:
        ballots: usable votes, ties included; ``decisive`` of them no tie.
        failures: share of its ballots that failed.
        ties: share of ballots that are ties; discrimination is 1 less that.
        prompts: prompts (groups) that it saw: the unit of every interval, and a run of a study.
        informative: decisive ballots for each of them.
        rest: agreement with the rest; null where no row has one.
        label: agreement with labels that are a side; null without any.
        tied_labels: share of ties where people tie too; null without such labels.
        consistency: how often two of its votes on one presentation are the same.
    """

    judge: str
    family: str | None
    ballots: int
    decisive: int
    items: int
    prompts: int
    failed: int
    failures: Interval
    ties: Interval
    discrimination: Interval
    informative: float
    rest: Agreement | None
    label: Agreement | None
    tied_labels: Interval | None
    slots: SlotBias
    consistency: Interval | None

    @property
    def person(self) -> bool:
        """Whether it is a person. Labels are made of the votes of people, including this one."""
        return (self.family or "").lower() in PEOPLE


def judge_facts(votes: Votes) -> tuple[JudgeFacts, ...]:
    """Every judge that cast a ballot or failed to, in their order."""
    rest_votes = weighted_rest(votes)
    return tuple(_facts(votes, index, rest_votes[:, index]) for index in range(len(votes.judges)))


def weighted_rest(votes: Votes) -> Floats:
    """(N, J), as :func:`rest_of_panel`, each judge weighted by its edge in a first round."""
    first_round = rest_of_panel(votes)
    edges = np.array(
        [_edge(votes, index, first_round[:, index]) for index in range(len(votes.judges))]
    )
    return rest_of_panel(votes, edges) if edges.any() else first_round


def _edge(votes: Votes, index: int, panel_mean: Floats) -> float:
    """2 agreement - 1, with the label where 30 ballots have one, else with the rest; at least 0."""
    column = votes.matrix[:, index]
    for reference in (votes.labels, panel_mean):
        decisive = np.isin(column, (0.0, 1.0)) & np.isin(reference, (0.0, 1.0))
        if reference is panel_mean or decisive.sum() >= ENOUGH_LABELS:
            agreeing = (column == reference)[decisive]
            return max(0.0, 2 * float(agreeing.mean()) - 1) if len(agreeing) else 0.0
    return 0.0


def rest_of_panel(votes: Votes, weights: Floats | None = None) -> Floats:
    """(N, J), the side that the rest of each judge takes: 1, 0, or NaN where there is none.

    Args:
        votes: sides and ties.
        weights: (J,), of the judges' votes; 1 each where not given.
    """
    decisive = np.isin(votes.matrix, (0.0, 1.0))
    leans = np.where(decisive, 2 * votes.matrix - 1, 0.0)
    if weights is not None:
        leans = leans * weights
    codes = own_voices(votes)
    member = (codes[:, None] == np.unique(codes)).astype(float)
    # Own family out: the sum over all, less the sum over the family.
    rest_lean = leans.sum(axis=1)[:, None] - (leans @ member) @ member.T
    # Sums of weights cancel to rounding errors only.
    side = np.where(rest_lean > 1e-9, 1.0, np.where(rest_lean < -1e-9, 0.0, np.nan))
    result: Floats = side
    return result


def _facts(votes: Votes, index: int, rest_votes: Floats) -> JudgeFacts:
    column = votes.matrix[:, index]
    has_vote = ~np.isnan(column)
    votes_cast, groups = column[has_vote], votes.groups[has_vote]
    is_tie = (votes_cast == 0.5).astype(float)
    n_failed = int(votes.failed[index])
    items = len({votes.items[i] for i in np.flatnonzero(has_vote)})
    prompts = len(np.unique(groups))
    decisive = int(np.sum(is_tie == 0))
    ties = wilson_clustered(is_tie, groups)
    return JudgeFacts(
        judge=votes.judges[index],
        family=votes.families[index],
        ballots=len(votes_cast),
        decisive=decisive,
        items=items,
        prompts=prompts,
        failed=n_failed,
        failures=wilson(n_failed, n_failed + len(votes_cast)),
        ties=ties,
        discrimination=wilson_clustered(1 - is_tie, groups),
        informative=decisive / prompts if prompts else 0.0,
        rest=agreement(column, rest_votes, votes.groups),
        label=agreement(column, votes.labels, votes.groups),
        tied_labels=_tied_labels(votes, column),
        slots=_slots(votes, column, rest_votes),
        consistency=_consistency(votes, column),
    )


def agreement(column: Floats, reference: Floats, groups: Codes) -> Agreement | None:
    """Agreement of one row of votes with another, where both are a side."""
    decisive = np.isin(column, (0.0, 1.0)) & np.isin(reference, (0.0, 1.0))
    if not decisive.any():
        return None
    agreeing = (column == reference)[decisive].astype(float)
    kappa: Kappa = cohen_kappa(
        column[decisive].astype(np.intp),
        reference[decisive].astype(np.intp),
        clusters=groups[decisive],
    )
    share_of_first = float(reference[decisive].mean())
    return Agreement(
        wilson_clustered(agreeing, groups[decisive]),
        kappa.interval,
        max(share_of_first, 1 - share_of_first),
    )


def _tied_labels(votes: Votes, column: Floats) -> Interval | None:
    rows = (column == 0.5) & ~np.isnan(votes.labels)
    if votes.label_kind != "ternary" or not rows.any():
        return None
    return wilson_clustered((votes.labels[rows] == 0.5).astype(float), votes.groups[rows])


def _slots(votes: Votes, column: Floats, rest_votes: Floats) -> SlotBias:
    is_swapped = np.array([presentation == "swap" for presentation in votes.presentations])
    order_known = np.array(
        [presentation in ("orig", "swap") for presentation in votes.presentations]
    )
    decisive = np.isin(column, (0.0, 1.0)) & order_known
    if not decisive.any():
        return SlotBias(None, None, None, False, None)
    reference, name = _reference(votes, rest_votes, decisive)
    return SlotBias(
        first_slot_rate(_first(column, is_swapped)[decisive], votes.groups[decisive]),
        _pull(_first(column, is_swapped), _first(reference, is_swapped), decisive, votes.groups),
        name,
        bool(0.2 <= is_swapped[decisive].mean() <= 0.8),
        _flips(votes, column, is_swapped),
    )


def _reference(votes: Votes, rest_votes: Floats, rows: NDArray[np.bool_]) -> tuple[Floats, str]:
    """What a judge's ballots are held against, and its name: labels where enough of them have one."""
    n_labelled = np.sum(np.isin(votes.labels, (0.0, 1.0)) & rows)
    if n_labelled >= ENOUGH_LABELS:
        return votes.labels, "the labels"
    return rest_votes, "the other judges"


def _first(votes: Floats, is_swapped: NDArray[np.bool_]) -> Floats:
    """1 where the response shown first wins."""
    first_wins: Floats = np.where(is_swapped, 1 - votes, votes)
    return first_wins


def _pull(
    first: Floats, reference: Floats, rows: NDArray[np.bool_], groups: Codes
) -> Interval | None:
    decisive = rows & np.isin(reference, (0.0, 1.0))
    if not decisive.any():
        return None
    return favouritism(first[decisive], reference[decisive], groups[decisive]).difference


def _flips(votes: Votes, column: Floats, is_swapped: NDArray[np.bool_]) -> FlipRate | None:
    """Rows of one item and repeat in both orders."""
    rows: dict[tuple[str, str | None], dict[bool, int]] = defaultdict(dict)
    for at in np.flatnonzero(~np.isnan(column)).tolist():
        rows[votes.items[at], votes.repeats[at]][bool(is_swapped[at])] = at
    pairs = [by_order for by_order in rows.values() if len(by_order) == 2]
    if not pairs:
        return None
    orig, swap = ([by_order[side] for by_order in pairs] for side in (False, True))
    return flip_rate(column[orig], column[swap], votes.groups[orig])


def _consistency(votes: Votes, column: Floats) -> Interval | None:
    rows: dict[tuple[str, str | None], list[int]] = defaultdict(list)
    for at in np.flatnonzero(~np.isnan(column)).tolist():
        rows[votes.items[at], votes.presentations[at]].append(at)
    repeated_rows = [votes_of_row for votes_of_row in rows.values() if len(votes_of_row) > 1]
    if not repeated_rows:
        return None
    table = np.full((len(repeated_rows), max(map(len, repeated_rows))), -1, dtype=np.intp)
    for row, votes_of_row in enumerate(repeated_rows):
        table[row, : len(votes_of_row)] = (2 * column[votes_of_row]).astype(np.intp)
    return self_consistency(
        table, votes.groups[[votes_of_row[0] for votes_of_row in repeated_rows]]
    )


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
    reference, name = _reference(votes, rest_votes, rows)
    rate = longer_wins_rate(column[rows], words[rows, 0], words[rows, 1], votes.groups[rows])
    pull = _pull(_longer(column, words), _longer(reference, words), rows, votes.groups)
    return LengthBias(judge, rate, pull, name)


def _longer(side: Floats, words: Floats) -> Floats:
    """1 where the longer response wins."""
    longer_wins: Floats = np.where(words[:, 0] > words[:, 1], side, 1 - side)
    return longer_wins
