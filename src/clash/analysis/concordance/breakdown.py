"""Concordance by what people chose: the winner, its tier, the item's tags; strong against weak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from clash.analysis.concordance.cases import CaseRate, LabelledCase, concordance_of
from clash.labels import TIE
from clash.stats.hypothesis_tests import (
    Significance,
    chi_square,
    fisher_exact,
    odds_ratio,
    smallest_expected,
)
from clash.stats.intervals import Interval, newcombe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


@dataclass(frozen=True)
class ConcordanceRow:
    """Concordance of some of the items."""

    name: str
    rate: CaseRate


@dataclass(frozen=True)
class Contrast:
    """Two groups of items against each other.

    Attributes:
        table: ((right, wrong) of the first group, (right, wrong) of the second).
        over: which items count.
        smallest_expected: below about 5, read Fisher's test and not chi-square.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"corrected_test": "corrected"}

    first: str
    second: str
    over: str
    table: tuple[tuple[int, int], tuple[int, int]]
    difference: Interval
    chi_square: Significance
    corrected_test: Significance
    fisher: Significance
    odds_ratio: Interval
    smallest_expected: float


def by_winner(cases: Sequence[LabelledCase]) -> list[ConcordanceRow]:
    """A row for each candidate that people chose, most items first."""
    return _rows(cases, lambda case: [case.label])


def by_tier(cases: Sequence[LabelledCase]) -> list[ConcordanceRow]:
    """A row for each tier of the winner; empty where tiers are not known."""
    return _rows(cases, lambda case: [case.tier] if case.tier else [])


def by_tag(cases: Sequence[LabelledCase]) -> list[ConcordanceRow]:
    """A row for each tag; an item may have several."""
    return _rows(cases, lambda case: case.tags)


def _rows(
    cases: Sequence[LabelledCase], names: Callable[[LabelledCase], Iterable[str]]
) -> list[ConcordanceRow]:
    groups: dict[str, list[LabelledCase]] = {}
    for case in cases:
        for name in names(case):
            groups.setdefault(name, []).append(case)
    rows = [ConcordanceRow(name, concordance_of(members)) for name, members in groups.items()]
    return sorted(rows, key=lambda row: (row.name == TIE, -row.rate.n, row.name))


def tier_contrasts(cases: Sequence[LabelledCase]) -> list[Contrast]:
    """Strong winners against weak ones (else the two largest tiers), where there are two tiers.

    Over items with a verdict, as published contrasts are; and over all of them, where some have
    none.
    """
    tiers = [row.name for row in by_tier(cases) if row.name != TIE]
    if len(tiers) < 2:
        return []
    first, second = ("strong", "weak") if {"strong", "weak"} <= set(tiers) else tiers[:2]
    with_verdict = [case for case in cases if case.outcome is not None]
    contrasts = [
        contrast(
            first, second, _tier(with_verdict, first), _tier(with_verdict, second), "with a verdict"
        )
    ]
    if len(with_verdict) < len(cases):
        contrasts.append(contrast(first, second, _tier(cases, first), _tier(cases, second), "all"))
    return contrasts


def _tier(cases: Sequence[LabelledCase], tier: str) -> list[bool]:
    return [case.right for case in cases if case.tier == tier]


def contrast(
    first: str, second: str, of_first: Sequence[bool], of_second: Sequence[bool], over: str
) -> Contrast:
    """Whether one group of items is right more often than another.

    Args:
        first: its name.
        second: the other's.
        of_first: right or not, by item.
        of_second: likewise.
        over: which items count, for the report.
    """
    a, c = sum(of_first), sum(of_second)
    table = ((a, len(of_first) - a), (c, len(of_second) - c))
    return Contrast(
        first,
        second,
        over,
        table,
        newcombe(a, len(of_first), c, len(of_second)),
        chi_square(table),
        chi_square(table, correction=True),
        fisher_exact(table),
        odds_ratio(table),
        smallest_expected(table),
    )
