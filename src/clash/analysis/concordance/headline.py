"""How often panel and people agree, beyond chance too, and how often people agree themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance.cases import CaseRate, LabelledCase, codes, concordance_of
from clash.errors import StatisticsError
from clash.labels import TIE
from clash.stats.agreement import cohen_kappa, krippendorff_alpha, landis_koch
from clash.stats.intervals import Interval, mean_clustered
from clash.stats.retest.repeats import self_consistency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class ConcordanceSummary:
    """Concordance of a labelled run.

    Attributes:
        clusters: questions that the items are of.
        no_verdict: why, by item: these are misses.
        tied: verdicts that are a tie.
    """

    rate: CaseRate
    clusters: int
    no_verdict: dict[str, str]
    tied: int


@dataclass(frozen=True)
class AgreementCoefficient:
    """A coefficient of agreement, and over what it is.

    Attributes:
        key: ``kappa`` at even chance, ``kappa.sides``, ``kappa.candidates``.
        words: Landis and Koch's adjective, where it is a kappa.
    """

    key: str
    name: str
    over: str
    interval: Interval
    words: str = ""


@dataclass(frozen=True)
class People:
    """What the annotators say of each other.

    Attributes:
        annotators: how many people.
        items: labelled by two people or more.
        agreement: how often two people say the same of an item, each item counting once; null
            where no item has two.
        decisive: the same over votes without ties.
        alpha: Krippendorff's, over people alone.
        alpha_with_panel: with the panel as one rater more.
        panel_with_person: how often the panel says what a single person says.
    """

    annotators: int
    items: int
    agreement: Interval
    decisive: Interval | None
    alpha: Interval
    alpha_with_panel: Interval
    panel_with_person: Interval


def headline(cases: Sequence[LabelledCase]) -> ConcordanceSummary:
    """The first lines of the report."""
    return ConcordanceSummary(
        rate=concordance_of(cases),
        clusters=len({case.cluster for case in cases}),
        no_verdict={
            case.item_id: case.verdict.abstained or "" for case in cases if case.outcome is None
        },
        tied=sum(case.outcome == TIE for case in cases),
    )


def kappas(cases: Sequence[LabelledCase]) -> list[AgreementCoefficient]:
    """Agreement beyond chance with the labels, by what chance is taken to be."""
    coefficients = [_even(cases)]
    pairs = [case for case in cases if len(case.candidates) == 2]
    if len(pairs) == len(cases):
        coefficients.append(_sides(pairs))
    coefficients.append(_names(cases))
    return coefficients


def _even(cases: Sequence[LabelledCase]) -> AgreementCoefficient:
    """(p - c) / (1 - c), with the chance c of a blind guess: 2p - 1 for two sides."""
    ties = any(case.label == TIE for case in cases)
    chance = float(np.mean([1 / (len(case.candidates) + ties) for case in cases]))
    kappa = concordance_of(cases).interval.transform(lambda share: (share - chance) / (1 - chance))
    two = chance == 0.5
    return AgreementCoefficient(
        "kappa",
        "kappa over sides, shuffled" if two else "kappa at even chance",
        "2p - 1: with two sides in random order both margins are one half, whatever the models"
        if two
        else f"(p - c) / (1 - c), a blind guess being right with c = {chance:.3f}",
        replace(kappa, method="of the concordance"),
        landis_koch(kappa.estimate),
    )


def _sides(pairs: Sequence[LabelledCase]) -> AgreementCoefficient:
    verdict_codes = [case.code(case.outcome) for case in pairs]
    kappa = cohen_kappa(verdict_codes, [c.code(c.label) for c in pairs], 3, clusters=codes(pairs))
    return AgreementCoefficient(
        "kappa.sides",
        "Cohen's kappa over sides, as listed",
        "first or second in the data file; items without a verdict left out",
        kappa.interval,
        kappa.words,
    )


def _names(cases: Sequence[LabelledCase]) -> AgreementCoefficient:
    names = {name: n for n, name in enumerate(sorted({n for c in cases for n in c.candidates}))}
    names[TIE] = len(names)
    verdict_codes = [-1 if case.outcome is None else names[case.outcome] for case in cases]
    label = [names[case.label] for case in cases]
    kappa = cohen_kappa(verdict_codes, label, len(names), clusters=codes(cases))
    return AgreementCoefficient(
        "kappa.candidates",
        "Cohen's kappa over candidates",
        f"which of {len(names) - 1} candidates won, as if each could win every item, so chance "
        "agreement looks smaller than it is; items without a verdict are left out",
        kappa.interval,
        kappa.words,
    )


def people(cases: Sequence[LabelledCase], rng: np.random.Generator) -> People | None:
    """What annotators say of each other; null where no item has two of them."""
    several = [case for case in cases if len(case.annotators) > 1]
    if not several:
        return None
    table, groups = _table(several), codes(several)
    panel = np.array([[float(case.code(case.outcome))] for case in several])
    with_panel = np.hstack([table, np.where(panel < 0, np.nan, panel)])
    return People(
        annotators=table.shape[1],
        items=len(several),
        agreement=self_consistency(_integers(table), groups),
        decisive=_decisive(table, several, groups),
        alpha=krippendorff_alpha(table, rng=rng, clusters=groups),
        alpha_with_panel=krippendorff_alpha(with_panel, rng=rng, clusters=groups),
        panel_with_person=_with_person(several, groups),
    )


def _table(cases: Sequence[LabelledCase]) -> NDArray[np.float64]:
    """Sides by item and annotator; NaN where a person did not judge it."""
    column: dict[str, int] = {}
    for case in cases:
        for annotator in case.annotators:
            column.setdefault(annotator, len(column))
    table = np.full((len(cases), len(column)), np.nan)
    for row, case in enumerate(cases):
        for annotator, winner in case.annotators.items():
            table[row, column[annotator]] = case.code(winner)
    return table


def _integers(table: NDArray[np.float64]) -> NDArray[np.intp]:
    return np.where(np.isnan(table), -1, table).astype(np.intp)


def _decisive(
    table: NDArray[np.float64], cases: Sequence[LabelledCase], groups: NDArray[np.intp]
) -> Interval | None:
    ties = np.array([[len(case.candidates)] for case in cases])
    decisive_votes = np.where(table == ties, np.nan, table)
    try:
        return self_consistency(_integers(decisive_votes), groups)
    except StatisticsError:
        return None


def _with_person(cases: Sequence[LabelledCase], groups: NDArray[np.intp]) -> Interval:
    """Mean over items of the share of people that the panel agrees with."""
    share = [
        float(np.mean([w == case.outcome for w in case.annotators.values()])) for case in cases
    ]
    return mean_clustered(share, groups).within(0.0, 1.0)
