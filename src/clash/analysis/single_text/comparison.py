"""Compares two runs of which at least one judges each text by itself.

Two such runs are compared text by text: do they say the same, and by how much do shares, scores and
the agreement with people differ? A run of either kind also orders two responses to one item: a
ranking does so by its verdict, single texts by their scores, or by which of two labels they have. So
rankings and single judgments of the same items can be held against each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.single_text import comparable, passes, verdict_value
from clash.analysis.single_text.people import agreement_beyond_chance, matches, paired_gap
from clash.labels import TIE, Truth, ranks_of, side, truths
from clash.stats.agreement import cohen_kappa
from clash.stats.intervals import Interval, wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.config import JudgingConfig
    from clash.stats.typing import Floats, Index
    from clash.votes.text_labels import TextKey

    PairKey = tuple[str, str, str]

_SIDES = {"A": 0, "B": 1, "tie": 2}


@dataclass(frozen=True)
class TextChange:
    """A figure in two runs over the texts that both have.

    Attributes:
        difference: second less first, paired by text.
    """

    figure: str
    first: float
    second: float
    n: int
    difference: Interval
    p: float


@dataclass(frozen=True)
class TextAgreement:
    """How often two runs give a text the same verdict; a missing verdict is no agreement.

    Attributes:
        kappa: over the texts with both verdicts; of scores with quadratic weights.
    """

    n: int
    agreement: Interval
    kappa: Interval
    changes: list[TextChange]


@dataclass(frozen=True)
class WinnerAgreement:
    """How often two runs order two responses alike, over every pair of responses to an item.

    Attributes:
        agreement: the same side, or a tie by both; no verdict by either is no agreement.
        decisive: of the pairs that both decide, those with the same side.
        kappa: over first, second and tie.
        tied: share of the pairs that each run leaves level.
        people: of the pairs with a label, how often each run says what people say; null without.
        n_labelled: these pairs; ``people_gap`` is the second run less the first on them.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"n_labelled": "labelled"}

    n: int
    agreement: Interval
    n_decisive: int
    decisive: Interval | None
    kappa: Interval
    tied: tuple[float, float]
    n_labelled: int
    people: tuple[Interval, Interval] | None
    people_gap: Interval | None
    people_p: float | None


@dataclass(frozen=True)
class TextComparison:
    """Two runs, at least one of which judges each text by itself.

    Attributes:
        modes: what the judges of each run were asked.
        texts: null unless both runs judge single texts by the same labels or scale.
        winners: null where they share no two responses that both order.
        n_unjudged: texts (of a ranking: items) that each run was interrupted before it judged. No
            figure counts them.
    """

    runs: tuple[str, str]
    modes: tuple[str, str]
    texts: TextAgreement | None
    winners: WinnerAgreement | None
    n_unjudged: tuple[int, int] = (0, 0)


def compare_texts(
    named_first: tuple[str, RunData], named_second: tuple[str, RunData]
) -> TextComparison:
    """Compare two runs; at least one of them judges each text by itself."""
    (first_name, first), (second_name, second) = named_first, named_second
    return TextComparison(
        (first_name, second_name),
        (_mode(first), _mode(second)),
        _text_agreement(first, second),
        _winner_agreement(first, second),
        (len(first.unjudged_texts), len(second.unjudged_texts)),
    )


def _mode(run: RunData) -> str:
    return "rank" if run.rules.judging is None else run.rules.judging.mode


# -- text by text ----------------------------------------------------------------------------------


def _text_agreement(first: RunData, second: RunData) -> TextAgreement | None:
    judging = first.rules.judging
    if (
        judging is None
        or second.rules.judging is None
        or not _is_same_choice(judging, second.rules.judging)
    ):
        return None
    values = [_values(run) for run in (first, second)]
    keys = [key for key in values[0] if key in values[1] and _same_text(first, second, key)]
    if not keys:
        return None
    a, b = (np.array([by_text[key] for key in keys]) for by_text in values)
    groups = np.array([first.clusters[item_id] for item_id, _ in keys], dtype=np.intp)
    has_values = ~np.isnan(a) & ~np.isnan(b)
    kappa = agreement_beyond_chance(a[has_values], b[has_values], groups[has_values], judging)
    return TextAgreement(
        len(keys),
        wilson_clustered(matches(a, b), groups),
        kappa.interval,
        list(_changes(judging, a, b, groups, first, keys)),
    )


def _is_same_choice(first: JudgingConfig, second: JudgingConfig) -> bool:
    return (first.mode, list(first.labels)) == (second.mode, list(second.labels)) and (
        first.mode == "label" or first.bounds == second.bounds
    )


def _values(run: RunData) -> dict[TextKey, float]:
    judging = run.rules.judging
    if judging is None:
        return {}
    values = {(v.item_id, v.candidate or ""): verdict_value(v, judging) for v in run.verdicts}
    return {key: value for key, value in values.items() if key not in run.unjudged_texts}


def _same_text(first: RunData, second: RunData, key: TextKey) -> bool:
    item_id, candidate = key
    return first.texts[item_id].get(candidate) == second.texts[item_id].get(candidate)


def _changes(
    judging: JudgingConfig,
    a: Floats,
    b: Floats,
    groups: Index,
    run: RunData,
    keys: Sequence[TextKey],
) -> Iterator[TextChange]:
    """Shares of labels or the mean score, the share that passes, the agreement with people."""

    def change(figure: str, x: Floats, y: Floats, rows: Index, widest: float = 1.0) -> TextChange:
        gap, p = paired_gap(y[rows], x[rows], groups[rows], widest=widest)
        means = float(x[rows].mean()), float(y[rows].mean())
        return TextChange(figure, *means, len(rows), gap, p)

    everything = np.arange(len(a))
    for code, label in enumerate(judging.labels):
        yield change(
            f"share.{label}", (a == code).astype(float), (b == code).astype(float), everything
        )
    if judging.mode == "score":
        rows = np.flatnonzero(~np.isnan(a) & ~np.isnan(b))
        if len(rows):
            yield change("score", a, b, rows, judging.bounds[1] - judging.bounds[0])
    if judging.passing is not None:
        yield change("pass_rate", passes(a, judging), passes(b, judging), everything)
    if run.text_votes is not None and run.people_votes:
        truth = dict(
            zip(run.text_votes.texts, run.people_values(run.text_votes).tolist(), strict=True)
        )
        people = np.array([truth.get(key, np.nan) for key in keys])
        rows = np.flatnonzero(~np.isnan(people))
        if len(rows):
            yield change("concordance", matches(a, people), matches(b, people), rows)


# -- which response is better ----------------------------------------------------------------------


def _winner_agreement(first: RunData, second: RunData) -> WinnerAgreement | None:
    orders = [dict(_orders(run)) for run in (first, second)]
    keys = [
        key
        for key in orders[0]
        if key in orders[1] and all(_same_text(first, second, (key[0], name)) for name in key[1:])
    ]
    if not keys:
        return None
    a, b = (np.array([order[key] for key in keys], dtype=np.intp) for order in orders)
    groups = np.array([first.clusters[key[0]] for key in keys], dtype=np.intp)
    equal_order = ((a == b) & (a >= 0)).astype(float)
    has_sides = (a >= 0) & (a < 2) & (b >= 0) & (b < 2)
    people = _people_sides(first, second, keys)
    has_label = people >= 0
    rates, gap, p = None, None, None
    if has_label.any():
        right = [(side_codes == people)[has_label].astype(float) for side_codes in (a, b)]
        rates = tuple(wilson_clustered(part, groups[has_label]) for part in right)
        gap, p = paired_gap(right[1], right[0], groups[has_label], widest=1.0)
    return WinnerAgreement(
        n=len(keys),
        agreement=wilson_clustered(equal_order, groups),
        n_decisive=int(has_sides.sum()),
        decisive=wilson_clustered(equal_order[has_sides], groups[has_sides])
        if has_sides.any()
        else None,
        kappa=cohen_kappa(a, b, 3, clusters=groups).interval,
        tied=(float((a == 2).mean()), float((b == 2).mean())),
        n_labelled=int(has_label.sum()),
        people=None if rates is None else (rates[0], rates[1]),
        people_gap=gap,
        people_p=p,
    )


def _orders(run: RunData) -> Iterator[tuple[PairKey, int]]:
    """The order of each pair of responses, by name: 0 or 1 for the better one, 2 level, -1 unknown."""
    judging = run.rules.judging
    if judging is None:
        for verdict in run.verdicts:
            if verdict.item_id in run.unjudged_items:
                continue
            ranks = ranks_of(verdict.ranking or [])
            for pair in combinations(sorted(run.texts[verdict.item_id]), 2):
                yield (verdict.item_id, *pair), _SIDES.get(side(ranks, *pair) or "", -1)
        return
    by_item: dict[str, dict[str, float]] = {}
    outcomes = np.array([verdict_value(verdict, judging) for verdict in run.verdicts])
    measure, worth = comparable(judging, outcomes)
    if judging.mode == "score":
        measure, worth = "score", outcomes
    if measure is None:
        return  # three labels and more have no order
    worth = np.where(np.isnan(outcomes), np.nan, worth)
    for verdict, value in zip(run.verdicts, worth.tolist(), strict=True):
        if (verdict.item_id, verdict.candidate or "") not in run.unjudged_texts:
            by_item.setdefault(verdict.item_id, {})[verdict.candidate or ""] = value
    for item_id, values in by_item.items():
        for first, second in combinations(sorted(values), 2):
            gap = values[first] - values[second]
            code = -1 if gap != gap else 2 if abs(gap) < 1e-9 else int(gap < 0)
            yield (item_id, first, second), code


def _people_sides(first: RunData, second: RunData, keys: Sequence[PairKey]) -> Index:
    """What people say of each pair, by a label that names the better response; -1 without one."""
    truth = {**_winner_labels(first), **_winner_labels(second)}
    return np.array(
        [
            _SIDES.get(truth[key[0]].side(*key[1:]) or "", -1) if key[0] in truth else -1
            for key in keys
        ],
        dtype=np.intp,
    )


def _winner_labels(run: RunData) -> Mapping[str, Truth]:
    """The labels that name the better of several responses, by item."""
    items = [item for item in run.items if item.label in {*run.texts[item.item_id], TIE, None}]
    return truths(items, run.labels)
