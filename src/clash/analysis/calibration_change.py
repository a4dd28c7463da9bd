"""What a calibrator makes of a run, on the labels there were and on those there are now."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.analysis.calibration.frame import FEWEST
from clash.errors import InputError, StatisticsError
from clash.stats.resample import cluster_bootstrap
from clash.stats.selection.families import FAMILIES, fit_family
from clash.stats.selection.metrics import expected_side, verdicts
from clash.stats.selection.panel import Evidence, sum_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.calibration.study import Figure, Study
    from clash.analysis.rundata import RunData
    from clash.records import Groups
    from clash.stats.intervals import Interval
    from clash.stats.selection.panel import Cells, PanelVotes
    from clash.stats.typing import Floats
    from clash.votes import Votes

FOLDS = 5
REPLICATES = 200


@dataclass(frozen=True)
class Refused:
    """Labels that no calibrator can be fitted to.

    Attributes:
        labels: how many there are.
        why: the reason.
        missing: how many more there must be; 0 where their number is not the reason.
    """

    labels: int
    why: str
    missing: int


@dataclass(frozen=True)
class Calibrated:
    """A calibrator fitted to all labels of a run.

    Attributes:
        labels: labelled rows: items, or of more than two candidates their pairs.
        family: of maps that was selected.
        judges: those it asks.
        accuracy: of its verdicts on labels it was not fitted to, by cross-validation; ``ece``
            likewise, and ``chance_ece`` what a perfect map would show on so few.
        gain: accuracy less that of the plain majority, on the same labels.
        candidate: who leads the run, whom ``win_rate`` is of.
        win_rate: mean over all rows of the probability that people prefer the candidate, a tie
            counting half; the interval is by a bootstrap over prompts that fits the map anew,
            with family and judges as they were selected. Null where it has no pairs.
        panel_rate: the same by the panel's verdicts as they are.
        winners: by item or pair, what the map says: a candidate, or ``tie``.
        against_panel: rows in which that is not the panel's verdict.
    """

    labels: int
    family: str
    judges: tuple[str, ...]
    accuracy: Figure
    ece: float
    chance_ece: float
    gain: Interval
    candidate: str
    win_rate: Interval | None
    panel_rate: float | None
    winners: Mapping[str, str] = field(repr=False)
    against_panel: tuple[str, ...]


@dataclass(frozen=True)
class Recalibrated:
    """The calibrated result before and after.

    Attributes:
        changed: rows whose calibrated verdict is another now; empty where there was none.
    """

    before: Calibrated | Refused
    after: Calibrated | Refused
    changed: tuple[str, ...]


def recalibrated(data: RunData, before: Votes, after: Votes, leader: str) -> Recalibrated:
    """Fit a calibrator to the labels before and to those after.

    Args:
        data: the run.
        before: its votes, with the labels there were.
        after: the same with the labels there are.
        leader: the candidate that win rates are of.
    """
    first, second = (calibrated(data, votes, leader) for votes in (before, after))
    changed: tuple[str, ...] = ()
    if isinstance(first, Calibrated) and isinstance(second, Calibrated):
        then = first.winners
        changed = tuple(row for row, said in second.winners.items() if then.get(row) != said)
    return Recalibrated(first, second, changed)


def calibrated(data: RunData, votes: Votes, leader: str) -> Calibrated | Refused:
    """Select and fit on all labels, and apply to all rows; or why that cannot be done."""
    # Only now: it takes as long to load as the rest of a report.
    from clash.analysis.calibration.study import study
    from clash.stats.selection.candidate_methods import SelectionSettings

    # One map, for its judges and family are named, and refitted in every draw of the bootstrap.
    one = SelectionSettings(combine="one")
    seed = data.manifest.seeds.get("seed", 0)
    try:
        found = study(votes, settings=one, folds=FOLDS, seed=seed, jobs=1)
    except (InputError, StatisticsError) as refusal:
        labels = int(votes.labelled.sum())
        return Refused(labels, _reason(refusal), max(0, FEWEST - labels))
    return _applied(data, votes, found, leader, np.random.default_rng([seed, 5]))


def _reason(refusal: Exception) -> str:
    return refusal.message if isinstance(refusal, InputError) else str(refusal)


def _applied(
    data: RunData, votes: Votes, found: Study, leader: str, rng: np.random.Generator
) -> Calibrated:
    panel = found.frame.panel(votes)
    judges = [found.frame.judges.index(judge) for judge in found.judges]
    fit = _Fit.of(panel, panel.cells(judges), found.selected.family)
    pairs, said = _pairs(data), _said(data)
    names = [pairs.get(item) for item in votes.items]
    winners = _winners(votes.items, fit.verdicts(), pairs)
    direction = np.array([_direction(pair, leader) for pair in names])
    return Calibrated(
        labels=found.n_labelled,
        family=found.selected.family,
        judges=found.judges,
        accuracy=found.test["accuracy"],
        ece=found.test["ece"].mean,
        chance_ece=found.chance_ece,
        gain=found.gain,
        candidate=leader,
        win_rate=fit.win_rate(direction, rng),
        panel_rate=_panel_rate(said, names, votes.items, leader),
        winners=winners,
        against_panel=tuple(
            item for item, winner in winners.items() if said.get(item, winner) != winner
        ),
    )


@dataclass(frozen=True)
class _Fit:
    """A family on the cells of some judges.

    Attributes:
        place: (N,), the cell of each row.
        y: (N, C), targets, 0 where there is none.
        latent: scores of models of votes alone, which labels do not touch.
    """

    panel: PanelVotes
    cells: Cells
    family: str
    place: np.ndarray
    y: Floats
    latent: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, panel: PanelVotes, cells: Cells, family: str) -> _Fit:
        y = np.zeros((panel.n_rows, panel.n_classes))
        known = np.flatnonzero(panel.has_label)
        y[known] = panel.rows(known).y
        return cls(panel, cells, family, cells.of_pattern[panel.pattern], y)

    def predicted(self, weights: Floats) -> Floats:
        """(P, C), fitted to the labelled rows, each counted ``weights`` (N,) times."""
        size, seen = len(self.cells.values), weights * self.panel.has_label
        s = np.column_stack([sum_by(self.place, seen * column, size) for column in self.y.T])
        evidence = Evidence(sum_by(self.place, seen, size), s, sum_by(self.place, weights, size))
        return fit_family(FAMILIES[self.family], self.cells, evidence, self.latent)

    def verdicts(self) -> list[float]:
        """(N,), 1, 0, or 0.5 for a tie."""
        shares = verdicts(self.predicted(np.ones(self.panel.n_rows)))
        side = shares[:, 1] if shares.shape[1] == 2 else shares[:, 2] + shares[:, 1] / 2
        return [float(value) for value in side[self.place]]

    def win_rate(self, direction: Floats, rng: np.random.Generator) -> Interval | None:
        """Mean probability of a candidate that is side 1 (1), side 0 (-1) or absent (0)."""
        mine = direction != 0
        if not mine.any() or len(np.unique(self.panel.group)) < 2:
            return None

        def rate(weights: Floats) -> Floats:
            return np.array([self._rate(row, direction, mine) for row in weights])

        try:
            found = cluster_bootstrap(rate, self.panel.group, rng, REPLICATES)
        except StatisticsError:
            return None
        return found.interval()

    def _rate(self, weights: Floats, direction: Floats, mine: np.ndarray) -> float:
        """NaN where a draw has none of the rows, or no label to fit to."""
        total = float(weights[mine].sum())
        try:
            side = expected_side(self.predicted(weights))[self.place]
        except StatisticsError:
            return np.nan
        won = 0.5 + direction * (side - 0.5)
        return float(weights[mine] @ won[mine]) / total if total else np.nan


def _winners(
    rows: tuple[str, ...], sides: Sequence[float], pairs: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """What the map says by item: of both orders together, where an item was shown in both."""
    total: dict[str, float] = defaultdict(float)
    for row, side in zip(rows, sides, strict=True):
        if row in pairs:
            total[row] += side - 0.5
    return {
        row: "tie" if lead == 0 else pairs[row][0 if lead > 0 else 1] for row, lead in total.items()
    }


def _pairs(data: RunData) -> dict[str, tuple[str, str]]:
    """The two candidates of each row of votes, side A first."""
    found: dict[str, tuple[str, str]] = {}
    for page in data.blinds.records:
        shown = sorted(page.labels.values())
        for first, second in combinations(shown, 2):
            row = f"{page.item_id}#{first}|{second}" if len(shown) > 2 else page.item_id
            found[row] = (first, second)
    return found


def _said(data: RunData) -> dict[str, str]:
    """What the panel's verdict says of each row that it decides or ties."""
    rankings = {v.item_id: v.ranking for v in data.verdicts if v.ranking is not None}
    found: dict[str, str] = {}
    for row, (first, second) in _pairs(data).items():
        ranking = rankings.get(row if row in rankings else row.rpartition("#")[0])
        if ranking is not None:
            found[row] = _better(ranking, first, second)
    return found


def _better(ranking: Groups, first: str, second: str) -> str:
    place = {name: rank for rank, group in enumerate(ranking) for name in group}
    gap = place[first] - place[second]
    return "tie" if gap == 0 else first if gap < 0 else second


def _direction(pair: tuple[str, str] | None, leader: str) -> float:
    if pair is None or leader not in pair:
        return 0.0
    return 1.0 if pair[0] == leader else -1.0


def _panel_rate(
    said: Mapping[str, str],
    names: list[tuple[str, str] | None],
    rows: tuple[str, ...],
    leader: str,
) -> float | None:
    points = [
        0.5 if said[row] == "tie" else float(said[row] == leader)
        for row, pair in zip(rows, names, strict=True)
        if row in said and pair is not None and leader in pair
    ]
    return float(np.mean(points)) if points else None
