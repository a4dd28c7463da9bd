"""The concordance report as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.report.concordance.agreement_tables import (
    contrasts,
    costs,
    headline,
    label_noise,
    methods,
    rows,
    sizes,
    subpanels,
    unanimity,
)
from clash.report.concordance.bias_tables import equal_length, families, lengths, positions, selves
from clash.report.concordance.disagreement_tables import chronic, directions, disagreements, gaps
from clash.report.tables import with_rows

if TYPE_CHECKING:
    from clash.analysis.concordance import Concordance
    from clash.report.tables import Table


def tables(concordance: Concordance | None) -> list[Table]:
    """The tables that have a row, the most important first."""
    if concordance is None:
        return []
    return with_rows(
        [
            headline(concordance),
            label_noise(concordance.ceiling),
            methods(concordance.methods),
            rows("Concordance by tier of the winner", "tier", concordance.by_tier, brief=True),
            contrasts("Tiers against each other", concordance.contrasts),
            rows("Concordance by what people chose", "people's winner", concordance.by_winner),
            rows("Concordance by tag", "tag", concordance.by_tag),
            unanimity(concordance),
            sizes(concordance.subpanels),
            subpanels(concordance.subpanels),
            disagreements(concordance),
            directions(concordance),
            gaps(concordance),
            chronic(concordance),
            families(concordance),
            selves(concordance.self_rates),
            lengths(concordance),
            equal_length(concordance),
            positions(concordance),
            costs(concordance),
        ]
    )
