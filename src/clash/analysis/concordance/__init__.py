"""Concordance with people: everything that a labelled run says of its panel, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance import biases, breakdown, disagreements
from clash.analysis.concordance.biases import (
    EqualLength,
    Family,
    Length,
    Position,
    SelfRate,
)
from clash.analysis.concordance.breakdown import Contrast, Row
from clash.analysis.concordance.cases import Case, Profile, Rate, labelled_cases, profiles
from clash.analysis.concordance.costs import Costs, costs
from clash.analysis.concordance.disagreements import Direction, Disagreement, Gap, PairLine
from clash.analysis.concordance.headline import (
    Headline,
    Named,
    People,
    headline,
    kappas,
    people,
)
from clash.analysis.concordance.methods import Method, methods
from clash.analysis.concordance.unanimity import Split, split
from clash.analysis.subpanels import SubPanels, subpanels

if TYPE_CHECKING:
    from clash.analysis.rundata import RunData

__all__ = [
    "Case",
    "Concordance",
    "Contrast",
    "Costs",
    "Direction",
    "Disagreement",
    "EqualLength",
    "Family",
    "Gap",
    "Headline",
    "Length",
    "Method",
    "Named",
    "PairLine",
    "People",
    "Position",
    "Profile",
    "Rate",
    "Row",
    "SelfRate",
    "Split",
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

    headline: Headline
    kappas: list[Named]
    people: People | None
    methods: list[Method]
    by_winner: list[Row]
    by_tier: list[Row]
    by_tag: list[Row]
    contrasts: list[Contrast]
    disagreements: list[Disagreement]
    directions: list[Direction]
    gaps: list[Gap]
    chronic: list[PairLine]
    families: list[Family]
    self_rates: list[SelfRate]
    lengths: list[Length]
    equal_length: list[EqualLength]
    positions: list[Position]
    split: Split
    subpanels: SubPanels | None
    costs: Costs


def concordance(run: RunData) -> Concordance | None:
    """The concordance report of a run; null without labels."""
    found = labelled_cases(run)
    if not found:
        return None
    rng = np.random.default_rng(run.manifest.seeds.get("seed", 0))
    known, voting = profiles(run), list(run.rules.voting)
    judges = [panelist.id for panelist in voting]
    crowd = people(found, rng)
    return Concordance(
        headline=headline(found),
        kappas=kappas(found),
        people=crowd,
        methods=methods(run, found, crowd),
        by_winner=breakdown.by_winner(found),
        by_tier=breakdown.by_tier(found),
        by_tag=breakdown.by_tag(found),
        contrasts=breakdown.tier_contrasts(found),
        disagreements=disagreements.disagreements(found, known),
        directions=disagreements.directions(found, known),
        gaps=disagreements.by_gap(found, known),
        chronic=disagreements.chronic(found),
        families=biases.families(found, known, {p.id: p.family for p in voting}),
        self_rates=biases.self_rates(found),
        lengths=biases.lengths(found, judges),
        equal_length=biases.equal_length(found),
        positions=biases.positions(run, found),
        split=split(found, judges),
        subpanels=subpanels(found, voting, rng),
        costs=costs(run, found),
    )
