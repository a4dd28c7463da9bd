"""Table 23: patterns of real panels, labels made by a rule that is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from clash.errors import InputError
from clash.reproduction.simulations.experiment import PaperComparison, SampleMean, Simulation
from clash.reproduction.simulations.growth import (
    HALF_DIGIT,
    SCALARS,
    best_possible,
    gap_plot,
    gap_rows,
    gaps,
    mean_curve,
    paper_curve,
    repeat_draws,
)
from clash.stats.simulate.interactions import JUDGES, Regime, ResampledPanels, regime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.reproduction.simulations.growth import ErrorGrid
    from clash.stats.typing import Floats
    from clash.votes import Votes

TABLE_23: dict[Regime, tuple[float, ...]] = {
    "additive": (0.003, 0.000, -0.001, -0.002, -0.001),
    "mixed": (0.010, 0.005, 0.011, 0.006, 0.004),
    "parity": (0.065, 0.055, 0.030, 0.015, 0.009),
}
BUDGETS = (16, 64, 256, 1024, 2048)
UNSEEN_SHARES = {16: 0.273, 2048: 0.007}
"""Of the chosen table in the parity regime (appendix C.4)."""
FEWEST_JUDGES, FEWEST_ROWS = 3, 30
OTHER_PANELS = "patterns of other panels"


def semi_real(seed: int, replications: int, sources: Sequence[Votes]) -> Simulation:
    """Scalar minus table as labels grow, on votes drawn from real panels.

    Args:
        seed: of everything random.
        replications: draws.
        sources: panels; each gives as many rows as any other. Of each, the seven judges (or as
            many as the smallest panel has) that voted most, and the rows on which all of them did.

    Raises:
        InputError: scores, fewer than three judges, or too few rows on which all voted.
    """
    size = min(JUDGES, *(len(votes.judges) for votes in sources))
    panels = tuple(_patterns(votes, size) for votes in sources)
    rows, curves, findings = [], [], []
    for number, (name, paper) in enumerate(TABLE_23.items()):
        law = ResampledPanels(panels, regime(name))
        runs = repeat_draws(law.draw, BUDGETS, [seed, 23, number], replications)
        gap_means = gaps(runs)
        rows += gap_rows(name, BUDGETS, gap_means, paper, "table 23", [OTHER_PANELS] * len(BUDGETS))
        rows += _unseen_patterns(runs) if name == "parity" else []
        curves.append((mean_curve(name, BUDGETS, gap_means), paper_curve(name, BUDGETS, paper)))
        findings.append(best_possible(name, law.bayes_risk, runs))
    return Simulation(
        "semi-real",
        "Scalar minus joint-table test MSE on patterns of real panels",
        "table 23, appendix C.4",
        _setting(sources, panels, size),
        tuple(rows),
        tuple(findings),
        seed,
        replications,
        (gap_plot("semi-real", list(TABLE_23), curves),),
    )


def _patterns(votes: Votes, size: int) -> Floats:
    """(n, size), votes of the judges that voted most, where all of them did."""
    where = votes.source or None
    if votes.kind == "numeric":
        raise InputError("votes are scores, and these rules are of sides", path=where)
    if size < FEWEST_JUDGES:
        raise InputError(
            f"{len(votes.judges)} judges are too few: a rule of several takes {FEWEST_JUDGES}",
            path=where,
            field="judge",
        )
    count = (~np.isnan(votes.matrix)).sum(axis=0)
    most = np.sort(np.argsort(-count, kind="stable")[:size])
    table = votes.matrix[:, most]
    complete = table[~np.isnan(table).any(axis=1)]
    if len(complete) < FEWEST_ROWS:
        raise InputError(
            f"all of {', '.join(votes.judges[j] for j in most)} voted on {len(complete)} rows only",
            path=where,
            hint="--judges with judges that saw the same items",
        )
    return complete


def _unseen_patterns(runs: Sequence[Sequence[ErrorGrid]]) -> list[PaperComparison]:
    return [
        PaperComparison.of(
            f"parity, {n} labels, unseen mass of the table",
            SampleMean.of([run[BUDGETS.index(n)].unseen_by_choice for run in runs]),
            paper,
            "C.4",
            resolution=HALF_DIGIT,
            note=OTHER_PANELS,
        )
        for n, paper in UNSEEN_SHARES.items()
    ]


def _setting(sources: Sequence[Votes], panels: Sequence[Floats], size: int) -> dict[str, str]:
    names = (votes.source.rpartition("/")[2] or "votes" for votes in sources)
    rows = ", ".join(
        f"{name} ({len(panel)} rows, {len(np.unique(panel, axis=0))} patterns)"
        for name, panel in zip(names, panels, strict=True)
    )
    return {
        "patterns": rows,
        "judges": str(size),
        "parity": f"of {min(6, size)}; a vote that is not for A is one for B",
        "scalar": ", ".join(SCALARS),
        "coefficients": "ours",
    }
