"""Compare the calibrated result of a run before and after new labels."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from clash.analysis.calibration.frame import FEWEST
from clash.errors import InputError, StatisticsError
from clash.labels import TIE, ranks_of, side
from clash.stats.resample import cluster_bootstrap
from clash.stats.selection import expert_pool
from clash.stats.selection.families import FAMILIES, POOL, fit_family
from clash.stats.selection.metrics import expected_side, verdicts
from clash.stats.selection.panel import Evidence, sum_by
from clash.votes.matrix import pair_item

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.analysis.calibration.study import CalibrationStudy
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval
    from clash.stats.resample import RepeatMean
    from clash.stats.selection.panel import Cells, PanelVotes
    from clash.stats.typing import Floats
    from clash.votes import Votes

FOLDS = 5
REPLICATES = 200


@dataclass(frozen=True)
class CalibrationRefusal:
    """Labels that no calibrator can be fitted to.

    Attributes:
        labels: labelled rows: items in each order they were judged in, of more than two candidates
            their pairs.
        items: the labelled items, which a person counts.
        why: the reason.
        missing: how many more items must have a label, of as many rows each; 0 where their number
            is not the reason.
    """

    labels: int
    items: int
    why: str
    missing: int


@dataclass(frozen=True)
class CalibratedResult:
    """A calibrator fitted to all labels of a run.

    Attributes:
        labels: labelled rows: items in each order they were judged in, of more than two candidates
            their pairs.
        items: the labelled items, which a person counts.
        family: of maps that was selected.
        judges: those it asks.
        accuracy: of its verdicts on labels it was not fitted to, by cross-validation.
        ece: calibration error of one map there, without the part that few rows add, and the ends
            of its interval.
        chance_ece: plain calibration error that a perfect map would show on so few.
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
    items: int
    family: str
    judges: tuple[str, ...]
    accuracy: RepeatMean
    ece: float
    ece_low: float
    ece_high: float
    chance_ece: float
    gain: Interval
    candidate: str
    win_rate: Interval | None
    panel_rate: float | None
    winners: Mapping[str, str] = field(repr=False)
    against_panel: tuple[str, ...]


@dataclass(frozen=True)
class CalibrationChange:
    """The calibrated result before and after.

    Attributes:
        changed: rows whose calibrated verdict is another now; empty where there was none.
    """

    before: CalibratedResult | CalibrationRefusal
    after: CalibratedResult | CalibrationRefusal
    changed: tuple[str, ...]


def compare_calibrations(
    data: RunData, before: Votes, after: Votes, leader: str
) -> CalibrationChange:
    """Fit a calibrator to the labels before and to those after.

    Args:
        data: the run.
        before: its votes, with the labels there were.
        after: the same with the labels there are.
        leader: the candidate that win rates are of.
    """
    first, second = (calibrate_run(data, votes, leader) for votes in (before, after))
    changed_rows: tuple[str, ...] = ()
    if isinstance(first, CalibratedResult) and isinstance(second, CalibratedResult):
        winners_before = first.winners
        changed_rows = tuple(
            row for row, winner in second.winners.items() if winners_before.get(row) != winner
        )
    return CalibrationChange(first, second, changed_rows)


def calibrate_run(
    data: RunData, votes: Votes, leader: str
) -> CalibratedResult | CalibrationRefusal:
    """Select and fit on all labels, and apply to all rows; or why that cannot be done."""
    # Only now: it takes as long to load as the rest of a report.
    from clash.analysis.calibration.study import default_settings, study

    # One map, for its judges and family are named, and refitted in every draw of the bootstrap.
    settings = replace(default_settings(votes), combine="one")
    fewest = expert_pool.FEWEST if settings.families == (POOL,) else FEWEST
    seed = data.manifest.seeds.get("seed", 0)
    try:
        study_result = study(votes, settings=settings, folds=FOLDS, seed=seed, jobs=1)
    except (InputError, StatisticsError) as refusal:
        labels, items = int(votes.labelled.sum()), _labelled_items(data, votes)
        missing = math.ceil(max(0, fewest - labels) * items / labels) if labels else fewest
        return CalibrationRefusal(labels, items, _reason(refusal), missing)
    return _apply_to_run(data, votes, study_result, leader, np.random.default_rng([seed, 5]))


def _labelled_items(data: RunData, votes: Votes) -> int:
    """The number of items that have a labelled row."""
    item_of_row = {
        pair_item(page.item_id, first, second, len(page.labels)): page.item_id
        for page in data.blinds.records
        for first, second in combinations(sorted(page.labels.values()), 2)
    }
    rows = (votes.items[row] for row in np.flatnonzero(votes.labelled))
    return len({item_of_row.get(row, row) for row in rows})


def _reason(refusal: Exception) -> str:
    return refusal.message if isinstance(refusal, InputError) else str(refusal)


def _apply_to_run(
    data: RunData,
    votes: Votes,
    study_result: CalibrationStudy,
    leader: str,
    rng: np.random.Generator,
) -> CalibratedResult:
    panel = study_result.frame.panel(votes)
    judges = [study_result.frame.judges.index(judge) for judge in study_result.judges]
    fit = _Fit.of(panel, panel.cells(judges), study_result.selected.family)
    pairs, panel_winners = _pairs(data), _panel_winners(data)
    names = [pairs.get(item) for item in votes.items]
    winners = _winners(votes.items, fit.verdicts(), pairs)
    direction = np.array([_direction(pair, leader) for pair in names])
    return CalibratedResult(
        labels=study_result.n_labelled,
        items=_labelled_items(data, votes),
        family=study_result.selected.family,
        judges=study_result.judges,
        accuracy=study_result.test["accuracy"],
        ece=study_result.calibration_error.estimate,
        ece_low=study_result.calibration_error.low,
        ece_high=study_result.calibration_error.high,
        chance_ece=study_result.chance_ece,
        gain=study_result.gain,
        candidate=leader,
        win_rate=fit.win_rate(direction, rng),
        panel_rate=_panel_rate(panel_winners, names, votes.items, leader),
        winners=winners,
        against_panel=tuple(
            item for item, winner in winners.items() if panel_winners.get(item, winner) != winner
        ),
    )


@dataclass(frozen=True)
class _Fit:
    """A family on the cells of some judges.

    Attributes:
        cell_of: (N,), the cell of each row.
        y: (N, C), targets, 0 where there is none.
        latent: scores of models of votes alone, which labels do not touch.
    """

    panel: PanelVotes
    cells: Cells
    family: str
    cell_of: np.ndarray
    y: Floats
    latent: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, panel: PanelVotes, cells: Cells, family: str) -> _Fit:
        y = np.zeros((panel.n_rows, panel.n_classes))
        labelled_rows = np.flatnonzero(panel.has_label)
        y[labelled_rows] = panel.rows(labelled_rows).y
        return cls(panel, cells, family, cells.of_pattern[panel.pattern], y)

    def predict(self, weights: Floats) -> Floats:
        """(P, C), fitted to the labelled rows, each counted ``weights`` (N,) times."""
        size, label_weights = len(self.cells.values), weights * self.panel.has_label
        s = np.column_stack(
            [sum_by(self.cell_of, label_weights * column, size) for column in self.y.T]
        )
        evidence = Evidence(
            sum_by(self.cell_of, label_weights, size), s, sum_by(self.cell_of, weights, size)
        )
        return fit_family(FAMILIES[self.family], self.cells, evidence, self.latent)

    def verdicts(self) -> list[float]:
        """(N,), 1, 0, or 0.5 for a tie."""
        shares = verdicts(self.predict(np.ones(self.panel.n_rows)))
        side = shares[:, 1] if shares.shape[1] == 2 else shares[:, 2] + shares[:, 1] / 2
        return [float(value) for value in side[self.cell_of]]

    def win_rate(self, direction: Floats, rng: np.random.Generator) -> Interval | None:
        """Mean probability of a candidate that is side 1 (1), side 0 (-1) or absent (0)."""
        has_candidate = direction != 0
        if not has_candidate.any() or len(np.unique(self.panel.group)) < 2:
            return None

        def rate(weights: Floats) -> Floats:
            return np.array([self._rate(row, direction, has_candidate) for row in weights])

        try:
            replicates = cluster_bootstrap(rate, self.panel.group, rng, REPLICATES)
        except StatisticsError:
            return None
        return replicates.interval()

    def _rate(self, weights: Floats, direction: Floats, has_candidate: np.ndarray) -> float:
        """NaN where a draw has none of the rows, or no label to fit to."""
        total = float(weights[has_candidate].sum())
        try:
            side = expected_side(self.predict(weights))[self.cell_of]
        except StatisticsError:
            return np.nan
        win_probability = 0.5 + direction * (side - 0.5)
        return (
            float(weights[has_candidate] @ win_probability[has_candidate]) / total
            if total
            else np.nan
        )


def _winners(
    rows: tuple[str, ...], sides: Sequence[float], pairs: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """The map's winner by item, over both orders where an item was judged in both."""
    total: dict[str, float] = defaultdict(float)
    for row, share in zip(rows, sides, strict=True):
        if row in pairs:
            total[row] += share - 0.5
    return {
        row: "tie" if lead == 0 else pairs[row][0 if lead > 0 else 1] for row, lead in total.items()
    }


def _pairs(data: RunData) -> dict[str, tuple[str, str]]:
    """The two candidates of each row of votes, side A first."""
    pairs: dict[str, tuple[str, str]] = {}
    for page in data.blinds.records:
        names = sorted(page.labels.values())
        for first, second in combinations(names, 2):
            pairs[pair_item(page.item_id, first, second, len(names))] = (first, second)
    return pairs


def _panel_winners(data: RunData) -> dict[str, str]:
    """The panel's winner, or ``tie``, for each row with a verdict."""
    rankings = {v.item_id: v.ranking for v in data.verdicts if v.ranking is not None}
    winners: dict[str, str] = {}
    for row, (first, second) in _pairs(data).items():
        ranking = rankings.get(row if row in rankings else row.rpartition("#")[0])
        if ranking is not None:
            better = {"A": first, "B": second}
            winners[row] = better.get(side(ranks_of(ranking), first, second) or "", TIE)
    return winners


def _direction(pair: tuple[str, str] | None, leader: str) -> float:
    if pair is None or leader not in pair:
        return 0.0
    return 1.0 if pair[0] == leader else -1.0


def _panel_rate(
    winners: Mapping[str, str],
    names: list[tuple[str, str] | None],
    rows: tuple[str, ...],
    leader: str,
) -> float | None:
    points = [
        0.5 if winners[row] == "tie" else float(winners[row] == leader)
        for row, pair in zip(rows, names, strict=True)
        if row in winners and pair is not None and leader in pair
    ]
    return float(np.mean(points)) if points else None
