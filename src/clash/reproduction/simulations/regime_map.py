"""The regime map where the truth is known: who wins at which prefix and how many labels."""

from __future__ import annotations

import numpy as np

from clash.reproduction.simulations.experiment import PaperComparison, RegimeMaps, Simulation
from clash.reproduction.simulations.growth import NAMES, SCALARS, repeat_draws
from clash.stats.selection.regime import RegimeMap
from clash.stats.simulate.interactions import JUDGES, Regime, regime

BUDGETS = (16, 32, 64, 128, 256, 512, 1024, 2048)
REGIMES: tuple[Regime, ...] = ("additive", "mixed", "parity")


def regime_map(seed: int, replications: int) -> Simulation:
    """A map for each regime of table 22."""
    maps = [_map(name, [seed, 26, number], replications) for number, name in enumerate(REGIMES)]
    rows = [
        row
        for name, survey_map in zip(REGIMES, maps, strict=True)
        for row in _rows(name, survey_map)
    ]
    return Simulation(
        "regime-map",
        "Test MSE, best scalar family minus joint table, at the whole panel",
        "corollary 1, appendix C.3",
        {
            "judges": str(JUDGES),
            "votes": "fair coins",
            "scalar": ", ".join(SCALARS),
            "coefficients": "ours",
        },
        tuple(rows),
        tuple(_boundary(name, survey_map) for name, survey_map in zip(REGIMES, maps, strict=True)),
        seed,
        replications,
        maps=(RegimeMaps("regime-map", REGIMES, tuple(maps)),),
    )


def _map(name: Regime, seed: list[int], replications: int) -> RegimeMap:
    runs = repeat_draws(regime(name).draw, BUDGETS, seed, replications)
    risk = np.stack([[grid.test.T for grid in run] for run in runs])
    return RegimeMap(BUDGETS, tuple(range(1, JUDGES + 1)), NAMES, risk)


def _rows(name: str, survey_map: RegimeMap) -> list[PaperComparison]:
    cells = [survey_map.cell(n, JUDGES) for n in BUDGETS]
    return [
        PaperComparison(f"{name}, {cell.labels} labels", cell.gap, se=cell.se) for cell in cells
    ]


def _boundary(name: str, survey_map: RegimeMap) -> str:
    won_cells = [cell for cell in survey_map.cells() if cell.clear and cell.gap > 0]
    if not won_cells:
        return f"{name}: the table is clearly better nowhere"
    least = min(cell.labels for cell in won_cells)
    sizes = sorted({cell.k for cell in won_cells if cell.labels == least})
    return (
        f"{name}: the table is clearly better in {len(won_cells)} of {len(survey_map.cells())} cells, from"
        f" {least} labels on (K = {', '.join(map(str, sizes))})"
    )
