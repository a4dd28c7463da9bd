"""Concordance with people: everything that a labelled run says of its panel, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance import biases, breakdown, disagreements
from clash.analysis.concordance.biases import (
    EqualLength,
    FamilyBias,
    LengthPreference,
    PositionBias,
    SelfRate,
)
from clash.analysis.concordance.breakdown import ConcordanceRow, Contrast
from clash.analysis.concordance.cases import (
    CaseRate,
    LabelledCase,
    Profile,
    candidate_profiles,
    labelled_cases,
)
from clash.analysis.concordance.costs import Costs, costs
from clash.analysis.concordance.disagreements import Direction, Disagreement, PairLine, RatingGap
from clash.analysis.concordance.headline import (
    AgreementCoefficient,
    ConcordanceSummary,
    People,
    headline,
    kappas,
    people,
)
from clash.analysis.concordance.methods import Method, methods
from clash.analysis.concordance.unanimity import ConcordanceBySplit, split
from clash.analysis.subpanels import SubPanels, subpanels

if TYPE_CHECKING:
    from clash.analysis.rundata import RunData

__all__ = [
    "AgreementCoefficient",
    "CaseRate",
    "Concordance",
    "ConcordanceBySplit",
    "ConcordanceRow",
    "ConcordanceSummary",
    "Contrast",
    "Costs",
    "Direction",
    "Disagreement",
    "EqualLength",
    "FamilyBias",
    "LabelledCase",
    "LengthPreference",
    "Method",
    "PairLine",
    "People",
    "PositionBias",
    "Profile",
    "RatingGap",
    "SelfRate",
    "SubPanels",
    "concordance",
    "labelled_cases",
]


@dataclass(frozen=True)
class Concordance:
    """A panel beside people.

    Attributes:
        kappas: each named for what it is over; the first is the one that summaries print.
        methods: chance, baselines, judges, panel, people and published figures, in one table.
        contrasts: strong winners against weak ones, where tiers are known.
    """

    headline: ConcordanceSummary
    kappas: list[AgreementCoefficient]
    people: People | None
    methods: list[Method]
    by_winner: list[ConcordanceRow]
    by_tier: list[ConcordanceRow]
    by_tag: list[ConcordanceRow]
    contrasts: list[Contrast]
    disagreements: list[Disagreement]
    directions: list[Direction]
    gaps: list[RatingGap]
    chronic: list[PairLine]
    families: list[FamilyBias]
    self_rates: list[SelfRate]
    lengths: list[LengthPreference]
    equal_length: list[EqualLength]
    positions: list[PositionBias]
    split: ConcordanceBySplit
    subpanels: SubPanels | None
    costs: Costs


def concordance(run: RunData) -> Concordance | None:
    """The concordance report of a run; null without labels."""
    cases = labelled_cases(run)
    if not cases:
        return None
    rng = np.random.default_rng(run.manifest.seeds.get("seed", 0))
    profiles, voting = candidate_profiles(run), list(run.rules.voting)
    judges = [panelist.id for panelist in voting]
    crowd = people(cases, rng)
    return Concordance(
        headline=headline(cases),
        kappas=kappas(cases),
        people=crowd,
        methods=methods(run, cases, crowd),
        by_winner=breakdown.by_winner(cases),
        by_tier=breakdown.by_tier(cases),
        by_tag=breakdown.by_tag(cases),
        contrasts=breakdown.tier_contrasts(cases),
        disagreements=disagreements.disagreements(cases, profiles),
        directions=disagreements.directions(cases, profiles),
        gaps=disagreements.by_gap(cases, profiles),
        chronic=disagreements.chronic(cases),
        families=biases.families(cases, profiles, {p.id: p.family for p in voting}),
        self_rates=biases.self_rates(cases),
        lengths=biases.lengths(cases, judges),
        equal_length=biases.equal_length(cases),
        positions=biases.positions(run, cases),
        split=split(cases, judges),
        subpanels=subpanels(cases, voting, rng),
        costs=costs(run, cases),
    )
