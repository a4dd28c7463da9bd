"""Whom people prefer by the labels of a run, and whether that contradicts its panel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.leaderboard import duel_test, has_same_items
from clash.analysis.win_rates import PairOutcomes, win_rates
from clash.votes.matrix import SIDES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clash.analysis.corrected import CorrectedDuel, Correction
    from clash.analysis.leaderboard import Standing
    from clash.analysis.rundata import RunData
    from clash.stats.intervals import Interval

LEVEL = 0.10
"""Two-sided level of the test behind a contradiction: it is a warning, and one-sided in its question
("is the panel's first choice worse?"), so that 5% in that direction suffice."""


@dataclass(frozen=True)
class LabelledRate:
    """A candidate's win rate by the labels alone, ties counting half."""

    candidate: str
    rate: Interval


@dataclass(frozen=True)
class Contradiction:
    """People prefer another candidate to the one that the panel puts first.

    Attributes:
        panel_first: whom the panel puts first.
        people_first: whom the labels put first.
        people_last: whom the labels put last.
        wins, ties, losses: of ``people_first`` against ``panel_first``, by the labels.
        p: of the sign test over these.
    """

    panel_first: str
    people_first: str
    people_last: str
    wins: int
    ties: int
    losses: int
    p: float


@dataclass(frozen=True)
class Preference:
    """How the labels of a run rank its candidates.

    Attributes:
        n_labelled: items with a label.
        rates: best first; candidates that no label compares are absent.
        contradiction: null where the labels do not speak against the panel's first place.
        corrected_duel: people's first against the candidate that comes closest; null where the
            labels are too few, or no random sample.
    """

    n_labelled: int
    rates: list[LabelledRate]
    contradiction: Contradiction | None
    corrected_duel: CorrectedDuel | None


def preference(
    run: RunData, board: Sequence[Standing], people: Correction | None
) -> Preference | None:
    """Rank the candidates by the labels; null where no label compares two of them.

    Args:
        run: the run.
        board: the panel's leaderboard, best first.
        people: what labels and verdicts together say.
    """
    pairs = _label_pairs(run)
    if not pairs:
        return None
    clusters = run.cluster_codes
    result = win_rates(pairs, clusters, len(run.candidates), same_items=has_same_items(run))
    rates = [
        LabelledRate(name, rate)
        for name, rate in zip(run.candidates, result.rates, strict=True)
        if rate is not None
    ]
    rates.sort(key=lambda line: (-round(line.rate.estimate, 12), line.candidate))
    return Preference(
        len(run.truths),
        rates,
        _contradiction(run, board, rates, pairs),
        None if people is None or people.decision is None else people.decision.duel,
    )


def _label_pairs(run: RunData) -> list[PairOutcomes]:
    """What the labels say of every two candidates; items on which no label does are left out."""
    rows: dict[tuple[int, int], list[int]] = {}
    outcomes: dict[tuple[int, int], list[float]] = {}
    column = {name: index for index, name in enumerate(run.candidates)}
    for item_id, row in run.rows.items():
        truth = run.truths.get(item_id)
        if truth is None:
            continue
        names = sorted(run.responders[item_id], key=column.__getitem__)
        for n, first in enumerate(names):
            for second in names[n + 1 :]:
                outcome = SIDES.get(truth.side(first, second) or "")
                if outcome is not None:
                    pair = column[first], column[second]
                    rows.setdefault(pair, []).append(row)
                    outcomes.setdefault(pair, []).append(outcome)
    return [
        PairOutcomes(*pair, np.array(rows[pair], dtype=np.intp), np.array(outcomes[pair]))
        for pair in rows
    ]


def _contradiction(
    run: RunData,
    board: Sequence[Standing],
    rates: Sequence[LabelledRate],
    pairs: Sequence[PairOutcomes],
) -> Contradiction | None:
    if not board or board[0].win_rate_ties_half is None or len(rates) < 2:
        return None
    panel_first, people_first = board[0].candidate, rates[0].candidate
    columns = [run.candidates.index(name) for name in (people_first, panel_first)]
    pair = next((p for p in pairs if {p.first, p.second} == set(columns)), None)
    if people_first == panel_first or pair is None:
        return None
    outcomes = pair.outcomes if pair.first == columns[0] else 1 - pair.outcomes
    clusters = np.array([run.clusters[run.items[row].item_id] for row in pair.rows])
    p = duel_test(2 * outcomes - 1, clusters, run.manifest.seeds.get("seed", 0)).p
    if p > LEVEL or outcomes.mean() <= 0.5:
        return None
    wins, ties, losses = (int((outcomes == outcome).sum()) for outcome in (1, 0.5, 0))
    return Contradiction(
        panel_first, people_first, rates[-1].candidate, wins, ties, losses, float(p)
    )
