"""The sample sizes of the judge-effectiveness pilot, beside ours, and why they differ.

Source: E. Chen, "Pilot V2 Judge Effectiveness Assessment", 2026-02-28, sections 1.2, 2.2, 3.2 to
3.6. What is published is quoted; what is ours is computed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from clash.stats.power.comparisons import required_two_proportions
from clash.stats.power.design import Clustering, ErrorRates

CORRELATIONS = (0.05, 0.10, 0.20, 0.30, 0.50)
CURRENT, IMPROVED_VERSION = "3.3", "3.4"
INFORMATIVE = {CURRENT: 7.1, IMPROVED_VERSION: 9.8}
RUNS = {CURRENT: (72, 88, 121, 155, 221), IMPROVED_VERSION: (57, 74, 109, 144, 214)}
EFFECT, BALLOTS = 0.10, 20
JUDGES = (0.556, 0.365, 0.148)
_ROUNDED_INDEPENDENT = 388


@dataclass(frozen=True)
class PublishedCell:
    """One figure of table 3.3 or 3.4.

    Attributes:
        as_printed: by the paper's own steps: 388 ballots (z rounded to 1.96 + 0.84), the design
            effect rounded to two digits, runs rounded to the nearest.
        exact: unrounded, with unrounded z.
        needed: rounded up: the nearest integer may be one run short of the power.
        is_same: ``as_printed`` is the published figure.
    """

    table: str
    icc: float
    published: int
    as_printed: int
    exact: float
    needed: int

    @property
    def is_same(self) -> bool:
        """Whether the paper's own steps give its figure."""
        return self.as_printed == self.published


@dataclass(frozen=True)
class PublishedClaim:
    """A figure in the text, our figure, and the reason for the difference."""

    where: str
    published: str
    ours: str
    agrees: bool
    why: str


@dataclass(frozen=True)
class PublishedTables:
    """Both tables and the claims around them."""

    cells: tuple[PublishedCell, ...]
    claims: tuple[PublishedClaim, ...]


def published_tables() -> PublishedTables:
    """Recompute the paper's sample sizes."""
    cells = tuple(
        _cell(table, icc, figure)
        for table in (CURRENT, IMPROVED_VERSION)
        for icc, figure in zip(CORRELATIONS, RUNS[table], strict=True)
    )
    return PublishedTables(cells, tuple(_claims()))


def _exact(m: float, icc: float, effect: float = EFFECT) -> float:
    return required_two_proportions(effect, 0.5, Clustering(m, icc), ErrorRates()).exact


def _cell(table: str, icc: float, figure: int) -> PublishedCell:
    m = INFORMATIVE[table]
    effect = round(Clustering(m, icc).design_effect + 1e-9, 2)
    exact = _exact(m, icc)
    as_printed = math.floor(_ROUNDED_INDEPENDENT * effect / m + 0.5)
    return PublishedCell(table, icc, figure, as_printed, exact, math.ceil(exact))


def _claims() -> list[PublishedClaim]:
    independent = required_two_proportions(EFFECT).independent
    ballots_per_judge = BALLOTS / len(JUDGES)
    mean = sum(JUDGES) / len(JUDGES)
    with_replacement = BALLOTS * (JUDGES[0] + JUDGES[1] + 0.45) / 3
    implied_rate = 3 * 0.49 - JUDGES[0] - JUDGES[1]
    small = _exact(7.1, 0.2, 0.05)
    equal = (JUDGES[0] + JUDGES[1] + JUDGES[0]) / 3 * BALLOTS
    return [
        PublishedClaim(
            "3.2: informative ballots a condition",
            "388",
            f"{independent:.1f}",
            True,
            "z rounded to 1.96 + 0.84; unrounded z gives half a ballot more",
        ),
        PublishedClaim(
            "1.2: informative ballots a run",
            "~7.5 of 20 (37.5%)",
            f"{ballots_per_judge * sum(JUDGES):.2f} of {BALLOTS} ({mean:.1%})",
            False,
            "3 judges x 7 ballots are 21, not 20; the attenuation factor is the mean"
            " discrimination rate, 0.356, not 0.375 (2.8 times, not 2.7)",
        ),
        PublishedClaim(
            "3.4: m with a replacement that discriminates 45%",
            "9.8 (mean 0.49)",
            f"{with_replacement:.1f} (mean {with_replacement / BALLOTS:.2f})",
            False,
            f"a mean of 0.49 takes a replacement at {implied_rate:.0%}, as good as the best judge there"
            f" is; at 45% the runs at rho 0.20 are {math.ceil(_exact(with_replacement, 0.2))}, not 109",
        ),
        PublishedClaim(
            "2.2a: runs saved by a replacement at 55.6%, rho 0.30",
            "from ~153 to ~110",
            f"from {math.ceil(_exact(mean * BALLOTS, 0.3))} to {math.ceil(_exact(equal, 0.3))}",
            False,
            "contradicts table 3.4 too (155 to 144): information a run rises by 38%, but"
            " correlated ballots of one run are not worth their number",
        ),
        PublishedClaim(
            "summary: a replacement at 45% saves about 25%",
            "~25%",
            f"{1 - _exact(with_replacement, 0.05) / _exact(mean * BALLOTS, 0.05):.0%} at rho 0.05,"
            f" {1 - _exact(with_replacement, 0.2) / _exact(mean * BALLOTS, 0.2):.0%} at 0.20",
            False,
            "not even without any correlation, where it is"
            f" {1 - _exact(with_replacement, 0.0) / _exact(mean * BALLOTS, 0.0):.0%}",
        ),
        PublishedClaim(
            "3.6: runs for a 5-point difference, rho 0.20",
            "~484",
            f"{math.ceil(small)}",
            False,
            "four times 121; p(1 - p) is larger nearer to one half, and runs are rounded up",
        ),
    ]
