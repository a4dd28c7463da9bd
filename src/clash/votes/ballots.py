"""The judgments of a run, unblinded: how each judge ranked the candidates of an item."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import mul
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from clash.records import Criteria, Groups, Judgment, JudgmentFacts
from clash.stats.voting.borda import borda_points
from clash.store.stored import ItemPart, parts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from clash.stats.typing import Floats
    from clash.votes.blinding_index import BlindingIndex


class JudgmentOutcome(JudgmentFacts, ItemPart, gc=False):
    """A :class:`~clash.records.Judgment` without its scores and reasons.

    A pass over all judgments takes a third of the time with it.
    """

    presentation: int
    judge: str
    role: str
    ranking: Groups | None
    parse: str
    flags: list[str] = msgspec.field(default_factory=list)
    error: str | None = None
    stands_in_for: str | None = None
    vote: str | int | None = None


def outcomes(judgments: Iterable[Judgment]) -> Iterator[JudgmentOutcome]:
    """Each judgment without its scores and reasons."""
    return parts(judgments, JudgmentOutcome)


@dataclass(frozen=True)
class ItemRankings:
    """The judges' rankings of one item, by candidate.

    Attributes:
        candidates: the K candidates whose responses were shown, sorted.
        ranks: by judge, a row (K,) for each presentation it ranked; smaller is better, NaN for a
            response that the judge did not see because it wrote it.
        share: by judge, the share of its presentations that it answered.
        compute_scores: computes ``scores``, which only the breaking of a tie reads.
        page_order: the candidates in the order in which every judge saw them first; empty where each
            judge had an order of its own.
        page_places: by judge, a row (K,) for each presentation it ranked: the position of each
            response on the page, 0 first.
    """

    item_id: str
    candidates: tuple[str, ...]
    ranks: Mapping[str, Floats]
    share: Mapping[str, float]
    compute_scores: Callable[[], Mapping[str, Floats]] = field(repr=False, compare=False)
    page_order: tuple[str, ...] = ()
    page_places: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def scores(self) -> Mapping[str, Floats]:
        """Mean criteria score by judge, as the rubric weighs them; (K,) each, NaN without."""
        return self.compute_scores()

    @property
    def has_scores(self) -> bool:
        """Whether the scores have been computed."""
        return "scores" in self.__dict__

    def of_item(
        self, item_id: str, compute_scores: Callable[[], Mapping[str, Floats]]
    ) -> ItemRankings:
        """The same rankings of another item; what was computed from them is shared."""
        rankings = object.__new__(ItemRankings)
        # A frozen dataclass sets its eight fields one by one, in ten times the time.
        values = {**self.__dict__, "item_id": item_id, "compute_scores": compute_scores}
        values.pop("scores", None)
        rankings.__dict__.update(values, _tops=self._tops, fields=self.fields, _leads=self._leads)
        return rankings

    @cached_property
    def fields(self) -> dict[str, frozenset[str]]:
        """The candidates that each judge ranked in all of its presentations."""
        names = np.array(self.candidates, dtype=object)
        return {
            judge: frozenset(names[~np.isnan(ranks).any(axis=0)].tolist())
            for judge, ranks in self.ranks.items()
        }

    def has_ranked(self, judge: str, candidate: str) -> bool:
        """Whether a judge ranked a candidate."""
        return candidate in self.fields.get(judge, ())

    def share_above(self, judge: str, candidate: str) -> float:
        """The share of the others that a judge ranks a candidate above, a tie half; NaN without."""
        ranks = self.ranks[judge]
        own_index = self.candidates.index(candidate)
        rival_ranks = np.delete(ranks, own_index, axis=1)
        lead = (np.sign(rival_ranks - ranks[:, [own_index]]) + 1) / 2
        return float(np.nanmean(lead)) if not np.isnan(lead).all() else math.nan

    def lead(self, judge: str, first: int, second: int) -> float:
        """Which of two candidates, by number, a judge ranks higher over its presentations.

        1 is the first, -1 the second, 0 neither; NaN where it did not rank both in each of them.
        """
        key = judge, first, second
        if key not in self._leads:
            ranks = self.ranks.get(judge, np.full((1, len(self.candidates)), np.nan))
            # A judge prefers whom more of its presentations put higher.
            self._leads[key] = float(np.sign(np.sign(ranks[:, second] - ranks[:, first]).sum()))
        return self._leads[key]

    @cached_property
    def _leads(self) -> dict[tuple[str, int, int], float]:
        return {}

    def top(self, judge: str) -> str | None:
        """The candidate that a judge ranks first alone; null where tied or missing."""
        return self._tops.get(judge)

    @cached_property
    def _tops(self) -> dict[str, str | None]:
        return {judge: self._first(ranks) for judge, ranks in self.ranks.items()}

    def _first(self, ranks: Floats) -> str | None:
        index = _sole_first(ranks.shape, ranks.tobytes())
        return None if index is None else self.candidates[index]


# Thousands of items are ranked in a few ways only, and arrays as small as these take longer to
# set up than to count.
@lru_cache(maxsize=4096)
def _sole_first(shape: tuple[int, ...], ranks: bytes) -> int | None:
    """The place of the only best candidate, over the presentations that a judge ranked."""
    points = borda_points(np.frombuffer(ranks).reshape(shape)).mean(axis=0)
    if np.isnan(points).all():  # a ranking that a judge gave of none of the responses
        return None
    best = np.flatnonzero(
        points > np.nanmax(points) - 1e-9
    )  # means of halves: a tie but for rounding
    return int(best[0]) if len(best) == 1 else None


class Ballots(Mapping[str, ItemRankings]):
    """The judgments of each item, unblinded, in the order in which the items were judged.

    Items that are ranked alike share their arrays, so that memory grows little with the items.

    Attributes:
        rows: the number of each item.
    """

    def __init__(
        self,
        judgments: Sequence[Judgment],
        blinds: BlindingIndex,
        presentations: int,
        criteria: Mapping[str, Criteria],
    ) -> None:
        """Args: as for :func:`unblind_rankings`."""
        self._judgments, self._blinds, self._criteria = judgments, blinds, criteria
        self.rows: dict[str, int] = {}
        rows, votes = array("i"), array("i")
        positions, vote_codes = array("i"), _Numbers()
        for position, judgment in enumerate(outcomes(judgments)):
            if judgment.ranking is not None:
                groups = tuple(map(tuple, judgment.ranking))
                page = tuple(blinds.labels(judgment).items())
                item_id = sys.intern(judgment.item_id)
                rows.append(self.rows.setdefault(item_id, len(self.rows)))
                votes.append(vote_codes[judgment.judge, groups, page])
                positions.append(position)
        order = np.argsort(np.asarray(rows, np.int32), kind="stable")
        self._positions = np.asarray(positions, np.int32)[order]
        in_order = np.asarray(rows, np.int32)[order]
        self._starts = np.searchsorted(in_order, np.arange(len(self.rows) + 1))
        self._patterns, self._codes = self._patterns_of(
            np.asarray(votes, np.int32)[order], presentations
        )

    def _patterns_of(
        self, votes: NDArray[np.int32], presentations: int
    ) -> tuple[list[ItemRankings], array[int]]:
        """The different sets of rankings, and which of them each item has."""
        patterns: list[ItemRankings] = []
        codes, pattern_codes = array("i"), _Numbers()
        bounds = self._starts.tolist()
        for row, item_id in enumerate(self.rows):
            code = pattern_codes[votes[bounds[row] : bounds[row + 1]].tobytes()]
            if code == len(patterns):
                by_judge: dict[str, list[Judgment]] = {}
                for judgment in self._of(row):
                    by_judge.setdefault(judgment.judge, []).append(judgment)
                patterns.append(_item_rankings(item_id, by_judge, self._blinds, presentations))
            codes.append(code)
        return patterns, codes

    def _of(self, row: int) -> Iterator[Judgment]:
        for position in self._positions[self._starts[row] : self._starts[row + 1]].tolist():
            yield self._judgments[position]

    def __getitem__(self, item_id: str) -> ItemRankings:
        row = self.rows[item_id]
        return self._patterns[self._codes[row]].of_item(item_id, lambda: self._scores(row, item_id))

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self.rows

    def pattern(self, item_id: str) -> int:
        """A number that items have in common where judges rank them alike; scores may differ."""
        return self._codes[self.rows[item_id]]

    def only(self, ids: Collection[str]) -> Ballots:
        """Those of some items."""
        part = copy(self)
        part.rows = {item_id: row for item_id, row in self.rows.items() if item_id in ids}
        return part

    def _scores(self, row: int, item_id: str) -> Mapping[str, Floats]:
        record = self._criteria.get(item_id)
        rubric = {} if record is None else {c.name: c.weight for c in record.criteria}
        by_judge: dict[str, list[Judgment]] = {}
        for judgment in self._of(row):
            by_judge.setdefault(judgment.judge, []).append(judgment)
        candidates = self._patterns[self._codes[row]].candidates
        return {
            judge: _mean_scores(judge_judgments, self._blinds, candidates, rubric)
            for judge, judge_judgments in by_judge.items()
        }


class _Numbers(dict[Any, int]):
    """The number of each key, in the order in which they are first asked for."""

    def __missing__(self, key: object) -> int:
        self[key] = number = len(self)
        return number


def unblind_rankings(
    judgments: Sequence[Judgment],
    blinds: BlindingIndex,
    presentations: int = 1,
    criteria: Mapping[str, Criteria] | None = None,
) -> Ballots:
    """The judgments of each item, unblinded; failed ones are left out.

    A judge that saw both orders has one ranking: the mean of its two. If they contradict each other,
    it is a tie; if one of them failed, the judge counts half towards the quorum.
    """
    return Ballots(judgments, blinds, presentations, criteria or {})


def _item_rankings(
    item: str,
    by_judge: Mapping[str, list[Judgment]],
    blinds: BlindingIndex,
    presentations: int,
) -> ItemRankings:
    """The rankings of an item, without its scores."""
    names = {
        name for judgments in by_judge.values() for name in blinds.labels(judgments[0]).values()
    }
    candidates = tuple(sorted(names))
    first_pages = [list(blinds.labels(judgments[0]).values()) for judgments in by_judge.values()]
    ranks, share, page_places = {}, {}, {}
    for judge, judge_judgments in by_judge.items():
        pages = [list(blinds.labels(j).values()) for j in judge_judgments]
        page_places[judge] = np.array(
            [[float(p.index(c)) if c in p else np.nan for c in candidates] for p in pages]
        )
        ranks[judge] = np.array(
            [_rank_row(j, blinds.labels(j), candidates) for j in judge_judgments]
        )
        share[judge] = min(1.0, len(judge_judgments) / presentations)
    return ItemRankings(
        item,
        candidates,
        ranks,
        share,
        dict,
        _common_order(first_pages),
        page_places,
    )


def _common_order(pages: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The longest page, if the others are parts of it in the same order; else empty.

    A judge that does not judge its own response has such a part.
    """
    longest = max(pages, key=len)
    is_same = all([name for name in longest if name in page] == list(page) for page in pages)
    return tuple(longest) if is_same else ()


def _rank_row(
    judgment: Judgment, labels: Mapping[str, str], candidates: Sequence[str]
) -> list[float]:
    ranks = {
        labels[label]: float(rank)
        for rank, group in enumerate(judgment.ranking or [])
        for label in group
    }
    return [ranks.get(candidate, np.nan) for candidate in candidates]


def _mean_scores(
    judgments: Sequence[Judgment],
    blinds: BlindingIndex,
    candidates: Sequence[str],
    rubric: Mapping[str, float],
) -> Floats:
    """Mean score by candidate over criteria and presentations; NaN where there is none."""
    cells: dict[str, list[float]] = {candidate: [] for candidate in candidates}
    for judgment in judgments:
        labels = blinds.labels(judgment)
        for label, by_criterion in judgment.scores.items():
            mean = weighted_score(by_criterion, rubric)
            if mean is not None:
                cells[labels[label]].append(mean)
    return np.array([sum(means) / len(means) if means else np.nan for means in cells.values()])


def weighted_score(scores: Mapping[str, int], rubric: Mapping[str, float]) -> float | None:
    """The mean score of a response, weighted by criterion; null without a score.

    A criterion that is not in the rubric weighs nothing, unless none of those scored is in it:
    then all weigh the same.
    """
    if not scores:
        return None
    weights = [rubric.get(name, 0.0) for name in scores]
    total = sum(weights)
    if total == 0:
        return sum(scores.values()) / len(scores)
    points: float = sum(map(mul, scores.values(), weights))
    return points / total
