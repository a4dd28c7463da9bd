"""Appendix C: three judges for whom independence turns a right answer into a sure wrong one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clash.reproduction.simulations.experiment import PaperComparison, Simulation
from clash.stats.simulate.spins import IsingPanel

HALF_DIGIT = 5e-5
PARAMETER_ROUNDING = 4e-4
"""Relative error of a probability when its parameters are printed to four decimals."""

SHARED_PANEL = IsingPanel.of(
    [[-1.7447, 2.2991, 3.5085], [-2.0094, 0.1721, -2.7597]],
    [[0, -2.7496, 4.4583], [-2.7496, 0, -4.8249], [4.4583, -4.8249, 0]],
)
BY_CLASS = IsingPanel.of(
    [[2.7369, 1.3602, 1.9559], [-2.5484, -2.2580, -0.9266]],
    [
        [[0, -2.4445, 2.4553], [-2.4445, 0, -2.9206], [2.4553, -2.9206, 0]],
        [[0, -3.3637, 3.0718], [-3.3637, 0, -0.0677], [3.0718, -0.0677, 0]],
    ],
)


@dataclass(frozen=True)
class PublishedTable:
    """The figures of one example in appendix C; pmf and posteriors at ``votes``."""

    panel: IsingPanel
    couplings: str
    votes: tuple[int, int, int]
    pmf: tuple[float, float]
    bayes: float
    independent: float


EXAMPLES = (
    PublishedTable(
        SHARED_PANEL,
        "shared couplings",
        (0, 1, 1),
        (0.0048253, 0.0001929),
        0.0384,
        0.9682,
    ),
    PublishedTable(
        BY_CLASS,
        "couplings by class",
        (1, 1, 0),
        (0.00393, 1.24e-4),
        0.0305,
        0.9571,
    ),
)


def three_judges(seed: int, replications: int) -> Simulation:
    """Both examples, exactly: eight vote vectors are all there are."""
    rows = [row for example in EXAMPLES for row in _rows(example)]
    return Simulation(
        name="three-judges",
        title="Three judges: right marginals, independence assumed, the opposite label",
        source="appendix C",
        setting={"judges": "3", "prevalence": "0.5", "method": "exact, by enumeration"},
        rows=tuple(rows),
        findings=tuple(_finding(example) for example in EXAMPLES),
        seed=seed,
        replications=replications,
    )


def _state(example: PublishedTable) -> int:
    return int(np.flatnonzero((example.panel.states == example.votes).all(axis=1))[0])


def _rows(example: PublishedTable) -> list[PaperComparison]:
    panel, state = example.panel, _state(example)
    at = f"at votes {example.votes}, {example.couplings}"
    p_zero, p_one = panel.pmf()[:, state]
    bayes, independent = panel.posterior(), panel.posterior_if_independent()
    figures = {
        "P(votes | 0)": (
            p_zero,
            example.pmf[0],
            PARAMETER_ROUNDING * p_zero + _half_unit(example.pmf[0]),
        ),
        "P(votes | 1)": (
            p_one,
            example.pmf[1],
            PARAMETER_ROUNDING * p_one + _half_unit(example.pmf[1]),
        ),
        "P(1 | votes), Bayes": (bayes[state], example.bayes, HALF_DIGIT),
        "P(1 | votes), independence": (independent[state], example.independent, HALF_DIGIT),
    }
    return [
        PaperComparison(
            f"{title} {at}", float(value), paper, "appendix C", resolution=float(resolution)
        )
        for title, (value, paper, resolution) in figures.items()
    ]


def _half_unit(figure: float) -> float:
    """Half a unit of the last digit of a figure printed with three significant digits."""
    return float(0.5 * 10 ** (np.floor(np.log10(figure)) - 2))


def _finding(example: PublishedTable) -> str:
    panel = example.panel
    bayes = panel.risk(panel.posterior() >= 0.5)
    independent = panel.risk(panel.posterior_if_independent() >= 0.5)
    return (
        f"With {example.couplings}, a panel of such judges errs on {bayes:.1%} of the items under "
        f"Bayes' rule and on {independent:.1%} if taken for independent."
    )
