"""The menu to choose from: every path of judges, prefix of it and family of maps; and their fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clash.errors import StatisticsError
from clash.stats.selection.families import (
    ANCHOR,
    FAMILIES,
    FAMILY_MEAN,
    MENU,
    fit_family,
    mean_prediction,
)
from clash.stats.selection.paths import PATH_RULES, JudgePath, build_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from clash.stats.selection.metrics import Loss
    from clash.stats.selection.panel import Evidence, PanelVotes
    from clash.stats.typing import Floats

    Judges = tuple[int, ...]

EVERYBODY = "all"
"""The path of the anchor: the whole panel, in no order."""
Combination = Literal["average", "one"]


@dataclass(frozen=True, slots=True, order=True)
class CandidateMethod:
    """One choice of the menu: the first ``k`` judges of a path, and a family of maps."""

    path: str
    k: int
    family: str


@dataclass(frozen=True)
class SelectionSettings:
    """The menu and how to choose from it.

    Attributes:
        rules: names of path rules.
        sizes: prefix sizes K; those above the number of judges are left out.
        families: names of families.
        loss: compared on validation rows.
        combine: ``average`` deploys all candidates together, weighted by how each predicted the
            validation rows; ``one`` deploys the best of them.
        guard: for ``one``: the standard errors by which a candidate must beat majority on the same
            validation rows to replace it; by default ``FIRM`` below ``FEW`` labelled sources and
            ``EASY`` from there on. Minus infinity deploys the best without a test.
        refit: fit the chosen candidates again, to all training rows.
        prior: families and their weights, from earlier panels or the kind of task. With
            ``average`` they replace the average of families in the prior weights. With ``one`` the
            heaviest replaces majority as the candidate to beat, by the paper's guard unless
            ``guard`` is set.
    """

    rules: tuple[str, ...] = PATH_RULES
    sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7)
    families: tuple[str, ...] = MENU
    loss: Loss = "mse"
    combine: Combination = "average"
    guard: float | None = None
    refit: bool = True
    prior: tuple[tuple[str, float], ...] | None = None

    def candidates(self, n_judges: int) -> list[CandidateMethod]:
        """The whole menu for a panel; the anchor comes first."""
        sizes = [k for k in self.sizes if k <= n_judges]
        menu = [
            CandidateMethod(rule, k, family)
            for rule in self.rules
            for k in sizes
            for family in self.families
            if k <= (FAMILIES[family].most or n_judges)
        ]
        return [anchor(n_judges), *menu]


def anchor(n_judges: int) -> CandidateMethod:
    """Uniform majority of the whole panel."""
    return CandidateMethod(EVERYBODY, n_judges, ANCHOR)


def on_most_judges(
    candidates: Sequence[CandidateMethod], usable: npt.NDArray[np.bool_], family: str
) -> int | None:
    """Index of a family's usable candidate with the most judges; None without any."""
    indices = [i for i, c in enumerate(candidates) if c.family == family and usable[i]]
    return max(indices, key=lambda i: candidates[i].k) if indices else None


class MethodFitter:
    """Fits of one panel and one set of votes.

    The scores of models of the votes alone do not depend on labels, and are computed once.
    """

    def __init__(self, panel: PanelVotes, settings: SelectionSettings) -> None:
        self.panel, self.settings = panel, settings
        self._scores: dict[Judges, dict[str, Floats | StatisticsError]] = {}

    def paths(
        self, selection: Evidence, budget: int, rng: np.random.Generator
    ) -> dict[str, JudgePath]:
        """Every path of the menu, from selection evidence."""
        sizes = [k for k in self.settings.sizes if k <= self.panel.n_judges]
        paths = {
            rule: build_path(rule, self.panel, selection, budget, sizes, rng)
            for rule in self.settings.rules
        }
        everybody = tuple(range(self.panel.n_judges))
        return {**paths, EVERYBODY: JudgePath(EVERYBODY, {self.panel.n_judges: everybody})}

    def predictions(
        self,
        candidates: Sequence[CandidateMethod],
        paths: Mapping[str, JudgePath],
        evidence: Evidence,
    ) -> list[Floats | None]:
        """Predictions of each candidate by pattern of the whole panel; None where refused."""
        fits = _Fits(self.panel, evidence, self._scores)
        return [fits.of(c.family, judges_of(c, paths)) for c in candidates]


def judges_of(candidate: CandidateMethod, paths: Mapping[str, JudgePath]) -> Judges:
    """The judges of a candidate: in the order of the path where the family uses it, else sorted."""
    judges = paths[candidate.path].panels[candidate.k]
    return judges if FAMILIES[candidate.family].uses_order else tuple(sorted(judges))


class _Fits:
    """Fits to one set of labels, each computed once."""

    def __init__(
        self,
        panel: PanelVotes,
        evidence: Evidence,
        scores: dict[Judges, dict[str, Floats | StatisticsError]],
    ) -> None:
        self._panel, self._panel_evidence, self._scores = panel, evidence, scores
        self._predictions: dict[tuple[str, Judges], Floats | None] = {}
        self._evidence: dict[Judges, Evidence] = {}

    def of(self, family: str, judges: Judges) -> Floats | None:
        """Predictions by pattern of the whole panel, shape (P, C)."""
        key = (family, judges)
        if key not in self._predictions:
            self._predictions[key] = (
                self._mean_of_members(judges) if family == FAMILY_MEAN else self._fit(*key)
            )
        return self._predictions[key]

    def _mean_of_members(self, judges: Judges) -> Floats | None:
        """Mean prediction of the family's members, most of which are on the menu themselves."""
        return mean_prediction([self.of(name, judges) for name in FAMILIES[FAMILY_MEAN].members])

    def _fit(self, name: str, judges: Judges) -> Floats | None:
        cells = self._panel.cells(judges)
        if judges not in self._evidence:
            self._evidence[judges] = self._panel_evidence.on(cells)
        scores = self._scores.setdefault(judges, {})
        try:
            p = fit_family(FAMILIES[name], cells, self._evidence[judges], scores)
        except StatisticsError:
            return None
        return p[cells.of_pattern]
