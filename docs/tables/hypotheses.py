"""Writes docs/tables/hypotheses.md: size and power of the tests of structured hypotheses.

python docs/tables/hypotheses.py [--replications 200] [--seed 0]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from clash.report.markdown import render_table
from clash.report.tables import Table
from clash.reproduction.simulations import EXPERIMENTS
from clash.reproduction.simulations.structured_tests import BREAKS, HYPOTHESES, SETTINGS
from clash.stats.intervals import wilson

if TYPE_CHECKING:
    from clash.reproduction.simulations.experiment import Simulation

PAGE = Path(__file__).resolve().parent / "hypotheses.md"
HEAD = """# Tests of structured hypotheses: size and power

Written by `docs/tables/hypotheses.py`, from `clash simulate hypotheses --replications {n} --seed {seed}`.
What the tests are is in [dependence.md](../dependence.md#tests).

Five judges of two families (three and two), coupled by 1 within each, where votes are 0 and 1; both classes
equally frequent and as far from 1/2. All three hypotheses are true of this panel. It is then broken in one way:
judges of different families are coupled; one pair of the larger family has a coupling beyond the others';
couplings are stronger in class 1. Share of {n} panels on which the hypothesis is rejected at 5%, with 95%
intervals. With labels 700 items, without 3,000.
"""
BROKEN = {
    "families": "coupling across families",
    "equals": "beyond the others of its family",
    "classes": "beyond class 0",
}


def table(simulation: Simulation) -> Table:
    """A row for each hypothesis and how far it is broken."""
    share = {row.quantity: row.ours for row in simulation.rows}
    rows = []
    for name, hypothesis in HYPOTHESES.items():
        for strength in (0.0, *BREAKS[name]):
            label = f"broken by {strength:g}" if strength else "true"
            cells = []
            for truth, n in SETTINGS:
                at = share[f"{hypothesis.name}, {label}, {n} items with {truth}"]
                interval = wilson(round(at * simulation.replications), simulation.replications)
                cells.append(f"{at:.1%} [{100 * interval.low:.1f}, {100 * interval.high:.1f}]")
            setting = f"{strength:g} {BROKEN[name]}" if strength else "true"
            rows.append([hypothesis.name, setting, *cells])
    columns = ["hypothesis", "the panel", "rejected with labels", "without"]
    return Table("Rejected at 5%", columns, rows, frozenset({2, 3}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replications", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    simulation = EXPERIMENTS["hypotheses"].run(options.seed, options.replications)
    head = HEAD.format(n=options.replications, seed=options.seed)
    findings = "\n".join(f"- {finding}" for finding in simulation.findings)
    text = "\n\n".join([head.strip(), render_table(table(simulation)).strip(), findings])
    PAGE.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
