"""The concordance report as tables of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.concordance.agreement import (
    contrasts,
    costs,
    headline,
    methods,
    rows,
    unanimity,
)
from clash.report.concordance.biases import equal_length, families, lengths, positions, selves
from clash.report.concordance.errors import chronic, directions, disagreements, gaps
from clash.report.concordance.panels import sizes, subpanels

if TYPE_CHECKING:
    from clash.analysis.concordance import Concordance
    from clash.report.tables import Table


def tables(found: Concordance | None) -> list[Table]:
    """Everything worth a table, in the order of interest; empty ones are left out."""
    if found is None:
        return []
    made = [
        headline(found),
        methods(found.methods),
        rows("Concordance by tier of the winner", "tier", found.by_tier, brief=True),
        contrasts("Tiers against each other", found.contrasts),
        rows("Concordance by what people chose", "people's winner", found.by_winner),
        rows("Concordance by tag", "tag", found.by_tag),
        unanimity(found),
        sizes(found.subpanels),
        subpanels(found.subpanels),
        disagreements(found),
        directions(found),
        gaps(found),
        chronic(found),
        families(found),
        selves(found.self_rates),
        lengths(found),
        equal_length(found),
        positions(found),
        costs(found),
    ]
    return [table for table in made if table.rows]
