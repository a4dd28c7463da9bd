"""What only the page of a run shows: criteria, lengths, shared errors, differences, retest."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from clash.analysis.coverage import ResponseText
from clash.analysis.criterion_scores import CriterionScores, criterion_scores
from clash.analysis.differences import Differences, differences
from clash.analysis.shared_errors import SharedErrors, UnknownErrors, shared_errors
from clash.errors import ClashError, RunFolderError
from clash.labels import ranks_of, side
from clash.stats.bias import longer_wins_rate
from clash.store.stored import parts
from clash.votes.matrix import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from clash.analysis.retest import Retest
    from clash.analysis.rundata import RunData
    from clash.stats.bias import BiasRate
    from clash.votes.ballots import ItemRankings

    Say = Callable[["_Pair"], float]


@dataclass(frozen=True)
class Further:
    """Findings that only the page has room for.

    Attributes:
        retest: this run against its parent; null where it has none.
    """

    scores: CriterionScores
    lengths: list[Longer]
    error_overlap: SharedErrors | UnknownErrors
    differences: Differences
    retest: Retest | UnknownErrors | None


def further(run: RunData, folder: Path) -> Further:
    """Compute it.

    Args:
        run: the run.
        folder: its folder, beside which that of its parent is looked for.
    """
    return Further(
        criterion_scores(run),
        longer(run),
        shared_errors(run),
        differences(run),
        _retest(run, folder),
    )


def _retest(run: RunData, folder: Path) -> Retest | UnknownErrors | None:
    name = run.manifest.parent
    if name is None:
        return None
    from clash.analysis.retest import retest
    from clash.analysis.rundata import RunData
    from clash.store.folder import RunFolder

    try:
        parent = RunFolder(folder).sibling(name)
        try:
            earlier = RunData.load(parent)
        except RunFolderError:
            # Its message has the path in it, by which the page would differ from place to place.
            return UnknownErrors(f"the run {name} cannot be read beside this one")
        return retest([earlier, run])
    except ClashError as error:
        return UnknownErrors(str(error).partition("\n")[0])


@dataclass(frozen=True)
class Longer:
    """One rater.

    Attributes:
        rate: over pairs of responses whose lengths differ and that it tells apart; clustered by
            prompt. Longer may well be better: read it beside that of people.
    """

    json_keys: ClassVar[Mapping[str, str]] = {"rater": "who"}

    rater: str
    rate: BiasRate


def longer(run: RunData) -> list[Longer]:
    """People where there are labels, the panel, each judge; raters without such a pair are left out."""
    opinions: dict[str, Say] = {"people": _people(run), "the panel": _panel(run)}
    opinions |= {panelist.id: _judge(panelist.id) for panelist in run.rules.panelists}
    wins = {rater: array("d") for rater in opinions}
    lengths, rows = array("d"), array("q")
    for pair in _pairs(run):
        for rater, opinion in opinions.items():
            wins[rater].append(opinion(pair))
        lengths.extend(pair.lengths)
        rows.append(run.rows[pair.rankings.item_id])
    longer_first, longer_second = np.asarray(lengths).reshape(-1, 2).T
    clusters = run.cluster_codes[np.asarray(rows)]
    lines = [
        Longer(rater, longer_wins_rate(values, longer_first, longer_second, clusters))
        for rater, values in wins.items()
    ]
    return [line for line in lines if line.rate.interval.n]


@dataclass(frozen=True)
class _Pair:
    rankings: ItemRankings
    first: str
    second: str
    lengths: tuple[int, int]


def _pairs(run: RunData) -> Iterator[_Pair]:
    # In one pass over the responses: to go to those of each item takes four times as long.
    authors, lengths, codes = array("i"), array("q"), dict[str, int]()
    for response in parts(run.responses, ResponseText):
        authors.append(codes.setdefault(response.candidate, len(codes)))
        lengths.append(-1 if response.text is None else len(response.text))
    names = list(codes)
    for item, rankings in run.ballots.items():
        length = {
            names[authors[row]]: lengths[row]
            for row in run.responses_of.rows(item)
            if lengths[row] >= 0
        }
        for a, b in combinations(rankings.candidates, 2):
            if a in length and b in length:
                yield _Pair(rankings, a, b, (length[a], length[b]))


def _people(run: RunData) -> Say:
    """What the label says of a pair; NaN where that is a tie, or nothing."""
    return lambda pair: run.wins(pair.rankings.item_id, pair.first, pair.second)


def _panel(run: RunData) -> Say:
    def say(pair: _Pair) -> float:
        verdict = run.verdicts[run.rows[pair.rankings.item_id]]
        outcome = side(ranks_of(verdict.ranking or []), pair.first, pair.second)
        return SIDES.get(outcome or "", np.nan)

    return say


def _judge(judge: str) -> Say:
    def say(pair: _Pair) -> float:
        first, second = map(pair.rankings.candidates.index, (pair.first, pair.second))
        return (1 + pair.rankings.lead(judge, first, second)) / 2

    return say
