"""Concordance with people: everything that a labelled run says of its panel, computed once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.concordance import biases, breakdown, disagreements
from clash.analysis.concordance.cases import (
    CaseRate,
    LabelledCase,
    candidate_profiles,
    concordance_of,
    labelled_cases,
)
from clash.analysis.concordance.headline import (
    AgreementCoefficient,
    ConcordanceSummary,
    People,
    headline,
    kappas,
    people,
)
from clash.analysis.concordance.label_noise import Ceiling, label_ceiling
from clash.analysis.concordance.method_table import Method, methods
from clash.analysis.concordance.unanimity import ConcordanceBySplit, split
from clash.analysis.subpanels import SubPanels, subpanels
from clash.datasets.dataset import exact_repeats, texts_by_item

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.concordance.biases import (
        EqualLength,
        FamilyBias,
        RaterBias,
        SelfRate,
    )
    from clash.analysis.concordance.breakdown import ConcordanceRow, Contrast
    from clash.analysis.concordance.disagreements import (
        Direction,
        Disagreement,
        PairLine,
        RatingGap,
    )
    from clash.analysis.rundata import RunData


@dataclass(frozen=True)
class Concordance:
    """A panel beside people.

    Attributes:
        kappas: each named for what it is over; the first is the one that summaries print.
        methods: chance, baselines, judges, panel, people and published figures, in one table.
        contrasts: strong winners against weak ones, where tiers are known.
        ceiling: what the noise of the labels allows; null where too few items have several.
        repeats: labelled items that show what an earlier one shows, prompt and responses alike, by
            that one's id; control items repeat each other by design and are not among them.
        unique: the concordance without them; null where there are none.
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
    lengths: list[RaterBias]
    equal_length: list[EqualLength]
    positions: list[RaterBias]
    split: ConcordanceBySplit
    subpanels: SubPanels | None
    costs: Costs
    ceiling: Ceiling | None = None
    repeats: dict[str, str] = field(default_factory=dict)
    unique: CaseRate | None = None


def concordance(run: RunData) -> Concordance | None:
    """The concordance report of a run; null without labels."""
    cases = labelled_cases(run)
    if not cases:
        return None
    rng = np.random.default_rng(run.manifest.seeds.get("seed", 0))
    profiles, voting = candidate_profiles(run), list(run.rules.voting)
    judges = [panelist.id for panelist in voting]
    crowd = people(cases, rng)
    case_items = {case.item_id for case in cases}
    items = [i for i in run.items if i.item_id in case_items and i.control is None]
    repeats = exact_repeats(items, texts_by_item(run.items, run.responses))
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
        ceiling=label_ceiling(cases),
        repeats=repeats,
        unique=concordance_of([c for c in cases if c.item_id not in repeats]) if repeats else None,
    )


@dataclass(frozen=True)
class Costs:
    """Money and time, of the whole run.

    Attributes:
        cost_usd: null where it is unknown; ``exact`` is false where it is a lower bound.
        per_item, per_correct: dollars by item judged, and by verdict that is the label.
        wall_s: seconds from start to end; ``wall_per_item`` shrinks with concurrency.
        called_s: seconds that an item's calls took, added up; null where not recorded.
    """

    cost_usd: float | None
    exact: bool
    per_item: float | None
    per_correct: float | None
    wall_s: float
    wall_per_item: float | None
    called_s: float | None


def costs(run: RunData, cases: Sequence[LabelledCase]) -> Costs:
    """From the calls; from the manifest where the run holds none."""
    n_unasked = sum(item.item_id in run.truth for item in run.items) - len(cases)
    n, right = len(run.items) - n_unasked, sum(case.right for case in cases)
    if run.usage:
        cost_usd: float | None = math.fsum(use.cost_usd for use in run.usage.values())
        exact = not any(use.unknown for use in run.usage.values())
    else:
        cost_usd, exact = run.manifest.cost_usd, not run.manifest.cost_is_lower_bound
    call_seconds = math.fsum(s for use in run.usage.values() for s in use.latencies)
    wall = run.manifest.wall_s
    # Only labelled items can be right, so their share of the cost is what a correct one costs.
    share = len(cases) / n if n else 0.0
    return Costs(
        cost_usd=cost_usd,
        exact=exact,
        per_item=None if cost_usd is None or not n else cost_usd / n,
        per_correct=None if cost_usd is None or not right else cost_usd * share / right,
        wall_s=wall,
        wall_per_item=wall / n if n and wall else None,
        called_s=call_seconds / n if n and run.usage else None,
    )
