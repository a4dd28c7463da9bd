"""The pilot's published sample sizes: which come out by its own steps, and which claims do not."""

from __future__ import annotations

from clash.analysis.power.scenarios import PanelDesign, PowerQuestion, scenario
from clash.reproduction.power_tables import CORRELATIONS, published_tables


def test_published_tables_come_out() -> None:
    """By the paper's own steps every one of the ten figures; rounded up, at most one run more."""
    cells = published_tables().cells
    assert len(cells) == 10
    assert all(cell.is_same for cell in cells)
    assert all(0 <= cell.needed - cell.published <= 1 for cell in cells)


def test_published_claims_that_do_not_come_out_are_named() -> None:
    claims = published_tables().claims
    assert [claim.agrees for claim in claims].count(False) == 5
    assert all(claim.why for claim in claims)


def test_default_scenario_is_the_published_one() -> None:
    panels = [PanelDesign((0.356,), 20), PanelDesign((0.49,), 20)]
    plan = scenario(PowerQuestion("compare"), panels, CORRELATIONS)
    assert [plan.cell(0, r).needed for r in CORRELATIONS] == [72, 88, 122, 155, 222]
    assert [plan.cell(1, r).needed for r in CORRELATIONS] == [58, 75, 110, 145, 215]
    assert plan.cell(0, 0.2).ballots == 122 * 20
