"""Fits of the whole menu to one set of labels, each made once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clash.errors import StatisticsError
from clash.stats.selection.families import AVERAGED, FAMILIES, averaged, fitted
from clash.stats.selection.menu import EVERYBODY
from clash.stats.selection.paths import Path, build

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from clash.stats.selection.menu import Candidate, Settings
    from clash.stats.selection.panel import Evidence, Panel
    from clash.stats.typing import Floats

    Judges = tuple[int, ...]


class Fitter:
    """Fits of one panel and one set of votes; scores that no label enters are kept."""

    def __init__(self, panel: Panel, settings: Settings) -> None:
        self.panel, self.settings = panel, settings
        self._scores: dict[Judges, dict[str, Floats | StatisticsError]] = {}

    def paths(self, selection: Evidence, budget: int, rng: np.random.Generator) -> dict[str, Path]:
        """Every path of the menu, from selection evidence."""
        sizes = [k for k in self.settings.sizes if k <= self.panel.n_judges]
        made = {
            rule: build(rule, self.panel, selection, budget, sizes, rng)
            for rule in self.settings.rules
        }
        whole = tuple(range(self.panel.n_judges))
        return {**made, EVERYBODY: Path(EVERYBODY, {self.panel.n_judges: whole})}

    def all(
        self, candidates: Sequence[Candidate], paths: Mapping[str, Path], seen: Evidence
    ) -> list[Floats | None]:
        """Predictions of each candidate by pattern of the whole panel; None where refused."""
        fits = _Fits(self.panel, seen, self._scores)
        return [fits.of(c.family, judges_of(c, paths)) for c in candidates]

    def one(self, candidate: Candidate, paths: Mapping[str, Path], seen: Evidence) -> Floats | None:
        """Predictions of one candidate by pattern of the whole panel."""
        return self.all([candidate], paths, seen)[0]


def judges_of(candidate: Candidate, paths: Mapping[str, Path]) -> Judges:
    """The judges that a candidate asks, in the order of the path where that matters."""
    judges = paths[candidate.path].panels[candidate.k]
    return judges if FAMILIES[candidate.family].ordered else tuple(sorted(judges))


class _Fits:
    """Fits to one set of labels."""

    def __init__(
        self,
        panel: Panel,
        seen: Evidence,
        scores: dict[Judges, dict[str, Floats | StatisticsError]],
    ) -> None:
        self._panel, self._seen, self._scores = panel, seen, scores
        self._kept: dict[tuple[str, Judges], Floats | None] = {}
        self._evidence: dict[Judges, Evidence] = {}

    def of(self, family: str, judges: Judges) -> Floats | None:
        """Predictions by pattern of the whole panel, shape (P, C)."""
        key = (family, judges)
        if key not in self._kept:
            self._kept[key] = self._averaged(judges) if family == AVERAGED else self._fit(*key)
        return self._kept[key]

    def _averaged(self, judges: Judges) -> Floats | None:
        """The mean of the members, which the menu mostly fits anyway."""
        return averaged([self.of(name, judges) for name in FAMILIES[AVERAGED].members])

    def _fit(self, name: str, judges: Judges) -> Floats | None:
        cells = self._panel.cells(judges)
        if judges not in self._evidence:
            self._evidence[judges] = self._seen.on(cells)
        scores = self._scores.setdefault(judges, {})
        try:
            p = fitted(FAMILIES[name], cells, self._evidence[judges], scores)
        except StatisticsError:
            return None
        return p[cells.of_pattern]
