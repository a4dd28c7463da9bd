"""Cold start: a prior over families from the kind of task or from earlier panels (appendix C.2).

A handful of labels cannot choose among hundreds of candidates. They can confirm or refute one that is
named beforehand: by the kind of target (the paper's prior), or by the test errors of families on
earlier panels of that kind with as few labels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import StatisticsError
from clash.stats.selection.families import ANCHOR, FAMILIES, MENU, fit_family

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.stats.selection.panel import PanelVotes, Target
    from clash.stats.typing import Floats, Index

TASK: dict[Target, str] = {
    "binary": "one-coin-isotonic",
    "three": "one-coin-isotonic",
    "scalar": "ridge-isotonic",
}
"""The paper's prior: one-coin reliabilities for pairwise tasks, ridge calibration for scores."""
DRAWS = 12
BOOTSTRAPS = 1000
FEWEST_LEFT = 20
"""Fewest labelled sources of an earlier panel to measure on."""


@dataclass(frozen=True)
class Prior:
    """The weight of each family before any label of this panel.

    Attributes:
        weights: family and weight, the heaviest first; they add up to one.
        panels: number of earlier panels it was learnt from; 0 for the prior of a kind of target.
        labels: labelled sources that families were fitted to there; 0 likewise.
    """

    weights: tuple[tuple[str, float], ...]
    panels: int = 0
    labels: int = 0

    @property
    def family(self) -> str:
        """The family to deploy before there is any label."""
        return self.weights[0][0]


def prior_of_task(target: Target) -> Prior:
    """The paper's prior for a kind of target."""
    return Prior(((TASK[target], 1.0),))


@dataclass(frozen=True)
class Experience:
    """Test errors of the families on one earlier panel, fitted to few labels.

    Attributes:
        families: F names.
        ratio: (F,), mean log of test squared error over majority's; 0 where a family was refused,
            since majority would have been deployed in its place.
        labels: sources fitted to.
    """

    families: tuple[str, ...]
    ratio: Floats = field(repr=False)
    labels: int


def experience(
    panel: PanelVotes,
    labels: int,
    rng: np.random.Generator,
    *,
    families: Sequence[str] = MENU,
    draws: int = DRAWS,
) -> Experience:
    """Fit every family on the whole panel to a few random sources, and measure it on the others.

    Args:
        panel: an earlier panel with labels.
        labels: sources to fit to, as many as the new panel has labelled; fewer where the earlier
            panel is too small.
        rng: of the draws.
        families: names of families.
        draws: random draws of the sources.

    Raises:
        StatisticsError: too few labelled sources to fit and to measure.
    """
    sources = np.unique(panel.group[panel.has_label])
    if len(sources) < 2 * FEWEST_LEFT:
        raise StatisticsError(f"{len(sources)} labelled sources are too few to learn a prior from")
    size = min(labels, len(sources) - FEWEST_LEFT)
    names = tuple(dict.fromkeys((ANCHOR, *families)))
    ratios = [_ratios(panel, rng.permutation(sources)[:size], names) for _ in range(draws)]
    return Experience(names, np.mean(ratios, axis=0), size)


def _ratios(panel: PanelVotes, sources: Index, families: Sequence[str]) -> Floats:
    """(F,), log ratios of one draw; models of votes alone see the votes of all rows."""
    rows = np.flatnonzero(panel.has_label)
    inside = np.isin(panel.group[rows], sources)
    everybody = panel.votes(np.arange(panel.n_rows))
    cells = panel.cells(range(panel.n_judges))
    evidence = panel.rows(rows[inside]).evidence(panel.n_patterns, everybody).on(cells)
    test = panel.seal(rows[~inside])
    risks = np.full(len(families), np.nan)
    scores: dict[str, Floats | StatisticsError] = {}
    for i, name in enumerate(families):
        try:
            risks[i] = test.mse(
                fit_family(FAMILIES[name], cells, evidence, scores)[cells.of_pattern]
            )
        except StatisticsError:
            continue
    ratio = np.log(np.maximum(risks, _TINY) / max(float(risks[0]), _TINY))
    return np.where(np.isnan(ratio), 0.0, ratio)


_TINY = 1e-9


def pool_experience(experiences: Sequence[Experience], rng: np.random.Generator) -> Prior:
    """Weights of the families: how often each has the least mean error over panels like the earlier ones.

    Panels are resampled by Bayesian bootstrap, so that one panel does not decide; and one more panel is
    added on which all families are equal, so that a single earlier panel does not settle it.

    Args:
        experiences: one for each earlier panel, with the same families.
        rng: of the bootstrap.

    Raises:
        StatisticsError: no panel.
    """
    if not experiences:
        raise StatisticsError("no earlier panel to learn a prior from")
    families = experiences[0].families
    ratio = np.stack([panel_experience.ratio for panel_experience in experiences])
    mixes = rng.dirichlet(np.ones(len(experiences)), BOOTSTRAPS)
    best = np.argmin(mixes @ ratio, axis=1)
    share = np.bincount(best, minlength=len(families)) / BOOTSTRAPS
    weights = (len(experiences) * share + 1 / len(families)) / (len(experiences) + 1)
    # Families of equal weight are ordered by their mean error.
    order = sorted(range(len(families)), key=lambda i: (-weights[i], ratio[:, i].mean()))
    labels = min(panel_experience.labels for panel_experience in experiences)
    return Prior(tuple((families[i], float(weights[i])) for i in order), len(experiences), labels)
