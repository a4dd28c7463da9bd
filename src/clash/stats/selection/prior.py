"""Cold start: what the kind of task, or earlier panels, say before there are labels (appendix C.2).

A handful of labels cannot choose among hundreds of candidates. They can confirm or refute one that
is named beforehand: by the kind of target (the paper's prior), or by how families fared on earlier
panels of that kind with as few labels.
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
"""The paper's prior: reliabilities for sides, least squares for scores."""
DRAWS = 12
BOOTSTRAPS = 1000
FEWEST_LEFT = 20
"""Labelled sources of an earlier panel that must be left to measure on."""


@dataclass(frozen=True)
class Prior:
    """How much each family is trusted before any label of this panel.

    Attributes:
        weights: family and weight, the heaviest first; they add up to one.
        panels: earlier panels behind it; 0 where only the kind of target is.
        labels: sources that families were fitted to there; 0 likewise.
    """

    weights: tuple[tuple[str, float], ...]
    panels: int = 0
    labels: int = 0

    @property
    def family(self) -> str:
        """The one to deploy before any label speaks."""
        return self.weights[0][0]


def prior_of_task(target: Target) -> Prior:
    """The paper's prior for a kind of target."""
    return Prior(((TASK[target], 1.0),))


@dataclass(frozen=True)
class Experience:
    """How families fared on one earlier panel with few labels.

    Attributes:
        families: F names.
        ratio: (F,), mean log of test squared error over majority's; 0 where a family was refused,
            for majority is what would have been deployed.
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
    """Fit every family on the whole panel to a few sources, again and again; measure on the rest.

    Args:
        panel: an earlier one, labelled.
        labels: labelled sources, as many as the new panel has; fewer where the earlier one is too
            small.
        rng: of the draws.
        families: of the menu.
        draws: of sources.

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
    """Weights of the families by how often each is best on average over panels like the earlier ones.

    "Like" by Bayesian bootstrap over panels, so that one panel on which a family shone does not
    decide; and as if one panel more had found all families alike, so that one panel alone does not
    settle it.

    Args:
        experiences: one for each earlier panel, of the same families.
        rng: of the bootstrap.

    Raises:
        StatisticsError: no panel.
    """
    if not experiences:
        raise StatisticsError("no earlier panel to learn a prior from")
    families = experiences[0].families
    ratio = np.stack([each.ratio for each in experiences])
    mixes = rng.dirichlet(np.ones(len(experiences)), BOOTSTRAPS)
    best = np.argmin(mixes @ ratio, axis=1)
    share = np.bincount(best, minlength=len(families)) / BOOTSTRAPS
    weights = (len(experiences) * share + 1 / len(families)) / (len(experiences) + 1)
    # Among families that were never best, the one that was better on average.
    order = sorted(range(len(families)), key=lambda i: (-weights[i], ratio[:, i].mean()))
    labels = min(each.labels for each in experiences)
    return Prior(tuple((families[i], float(weights[i])) for i in order), len(experiences), labels)
