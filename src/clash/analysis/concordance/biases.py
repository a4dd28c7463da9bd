"""What moves the panel apart from quality: family, self, length, position, beside people's own."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.concordance.cases import LabelledCase, Profile, codes, own_name
from clash.labels import TIE
from clash.stats import bias
from clash.stats.intervals import Interval, wilson_clustered

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clash.analysis.rundata import RunData
    from clash.stats.hypothesis_tests import PairedDifference

    Say = Callable[[LabelledCase], str | None]

_FEWEST = 10
"""Items below which a candidate's win rate at equal length is not worth a line."""


@dataclass(frozen=True)
class FamilyBias:
    """Whether the panel, or a judge of that family, favours a family of candidates.

    Attributes:
        picks, people: items won by the family, by the judge and by people, of all items judged.
        n: items with candidates of the family and others: only these can show it.
        test: the judge's picks less people's on these.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"rater": "who", "picks": "picked"}

    rater: str
    family: str
    picks: int
    people: int
    n: int
    test: PairedDifference


@dataclass(frozen=True)
class SelfRate:
    """A candidate that judged, blind, among others its own response.

    Attributes:
        own_rate: how often it put itself alone in first place; ``people``: how often people did.
        test: own less people's, on the same items.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"own_rate": "own"}

    judge: str
    n: int
    own_rate: Interval
    people: Interval
    test: PairedDifference


@dataclass(frozen=True)
class RaterBias:
    """How often a response wins that is longer, or shown first: by a judge, the panel or people."""

    json_keys: ClassVar[Mapping[str, str]] = {"rater": "who"}

    rater: str
    rate: bias.BiasRate


@dataclass(frozen=True)
class EqualLength:
    """A candidate's win rate by the panel as it is, and with both responses equally long."""

    candidate: str
    fit: bias.LengthControl
    people: Interval


def families(
    cases: Sequence[LabelledCase], profiles: Mapping[str, Profile], judges: Mapping[str, str]
) -> list[FamilyBias]:
    """The panel on each family that sits in it, and each judge on its own.

    Args:
        cases: the cases.
        profiles: families of candidates.
        judges: family by voting judge.
    """
    of = {name: profile.family for name, profile in profiles.items() if profile.family}
    lines = [
        _family("panel", family, cases, of, _panel) for family in dict.fromkeys(judges.values())
    ]
    lines += [
        _family(judge, family_of_judge, cases, of, _by(judge))
        for judge, family_of_judge in judges.items()
    ]
    return [line for line in lines if line is not None]


def _panel(case: LabelledCase) -> str | None:
    return case.outcome


def _by(judge: str) -> Say:
    return lambda case: case.tops.get(judge)


def _family(
    rater: str, family: str, cases: Sequence[LabelledCase], of: Mapping[str, str], opinion: Say
) -> FamilyBias | None:
    with_choice = [case for case in cases if opinion(case) is not None]
    contests = [
        case
        for case in with_choice
        if 0 < sum(of.get(name) == family for name in case.candidates) < len(case.candidates)
    ]
    if not contests:
        return None
    picks = [float(of.get(opinion(case) or "") == family) for case in contests]
    people = [float(of.get(case.label) == family) for case in contests]
    return FamilyBias(
        rater,
        family,
        sum(of.get(opinion(case) or "") == family for case in with_choice),
        sum(of.get(case.label) == family for case in with_choice),
        len(contests),
        bias.favouritism(picks, people, codes(contests)),
    )


def self_rates(cases: Sequence[LabelledCase]) -> list[SelfRate]:
    """Each judge that is a candidate, most items first; over several, a line for all of them."""
    rows_by_judge: dict[str, list[tuple[LabelledCase, float]]] = {}
    for case in cases:
        for judge, top in case.tops.items():
            name = own_name(judge, case.candidates)
            if name is not None:
                rows_by_judge.setdefault(name, []).append((case, float(top == name)))
    lines = [
        _self(name, [(case, name, value) for case, value in rows])
        for name, rows in rows_by_judge.items()
    ]
    lines.sort(key=lambda line: (-line.n, line.judge))
    if len(lines) > 1:
        every = [
            (case, name, value) for name, rows in rows_by_judge.items() for case, value in rows
        ]
        lines.append(_self("all", every))
    return lines


def _self(judge: str, rows: Sequence[tuple[LabelledCase, str, float]]) -> SelfRate:
    groups = codes([case for case, _, _ in rows])
    own_firsts = [value for _, _, value in rows]
    people = [float(case.label == name) for case, name, _ in rows]
    return SelfRate(
        judge,
        len(rows),
        wilson_clustered(own_firsts, groups),
        wilson_clustered(people, groups),
        bias.favouritism(own_firsts, people, groups),
    )


def lengths(cases: Sequence[LabelledCase], judges: Sequence[str]) -> list[RaterBias]:
    """How often the longer of two wins: people, the panel, each judge; empty without texts."""
    pairs = [case for case in cases if len(case.candidates) == len(case.lengths) == 2]
    if not pairs:
        return []
    opinions: dict[str, Say] = {"people": lambda case: case.label, "panel": _panel}
    opinions |= {judge: _by(judge) for judge in judges}
    first = [case.lengths[case.candidates[0]] for case in pairs]
    second = [case.lengths[case.candidates[1]] for case in pairs]
    return [
        RaterBias(rater, bias.longer_wins_rate(_first(pairs, opinion), first, second, codes(pairs)))
        for rater, opinion in opinions.items()
    ]


def _first(pairs: Sequence[LabelledCase], opinion: Say) -> list[float]:
    """1 where the first listed wins, 0 the second, 0.5 a tie, NaN nothing said."""
    return [_win(opinion(case), case.candidates[0]) for case in pairs]


def _win(outcome: str | None, name: str) -> float:
    if outcome is None:
        return np.nan
    return 0.5 if outcome == TIE else float(outcome == name)


def equal_length(cases: Sequence[LabelledCase]) -> list[EqualLength]:
    """The candidates with most items: win rates as they are, and at equal length."""
    pairs = [
        case for case in cases if len(case.candidates) == len(case.lengths) == 2 and case.outcome
    ]
    appearances = Counter(name for case in pairs for name in case.candidates)
    return [_equal_length(name, pairs) for name, n in appearances.most_common(12) if n >= _FEWEST]


def _equal_length(name: str, pairs: Sequence[LabelledCase]) -> EqualLength:
    cases = [case for case in pairs if name in case.candidates]
    gap = [2 * case.lengths[name] - sum(case.lengths.values()) for case in cases]
    wins = [_win(case.outcome, name) for case in cases]
    people = [_win(case.label, name) for case in cases]
    fit = bias.length_controlled_win_rate(wins, gap, codes(cases))
    return EqualLength(name, fit, wilson_clustered(people, codes(cases)))


def positions(run: RunData, cases: Sequence[LabelledCase]) -> list[RaterBias]:
    """Who favours the first place: people (as listed), the panel's judges together, each judge."""
    pairs = [case for case in cases if len(case.candidates) == 2]
    lines = []
    if pairs:
        first_listed_rate = bias.first_slot_rate(
            _first(pairs, lambda case: case.label), codes(pairs)
        )
        lines.append(RaterBias("people (first listed)", first_listed_rate))
    voting = [panelist.id for panelist in run.rules.voting]
    lines += [
        RaterBias(rater, rate)
        for rater, judges in {"panel": voting, **{judge: [judge] for judge in voting}}.items()
        if (rate := _first_shown(run, judges)) is not None
    ]
    return lines


def _first_shown(run: RunData, judges: Sequence[str]) -> bias.BiasRate | None:
    """Judgments that rank A0 first; a shared first place counts its part."""
    judgments = [j for j in run.judgments if j.judge in judges and j.ranking]
    if not judgments:
        return None
    tops = [(j.ranking or [[]])[0] for j in judgments]
    first_shares = [("A0" in top) / len(top) for top in tops]
    fair = [1 / len(run.blinds.labels(j)) for j in judgments]
    return bias.first_slot_rate(first_shares, [run.clusters[j.item_id] for j in judgments], fair)
