"""A run folder as votes: judgments unblinded, as rankings of candidates and as pairs of them.

An item of two candidates is one item, whose side A is the first of them by name, so that runs of
one prompts file share a frame whatever was shuffled or finished first. An item of K > 2 candidates
becomes K (K - 1) / 2 items, ``q1#a|b``, one for each pair. The pairs of one ranking are not
independent (a before b and b before c leave no choice for a and c), and a method that takes them
for independent counts one judgment several times; so they share the item's ``group``, by which
every interval is clustered.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, combinations
from operator import mul
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from clash.config import JudgingConfig
from clash.errors import InputError, RunFolderError
from clash.labels import ranks_of, side, truths
from clash.records import Blinding, Criteria, Groups, Item, Judgment, JudgmentFacts, Response
from clash.stats.voting.borda import borda_points
from clash.store import layout
from clash.store.stored import ItemPart, parts, select
from clash.votes.matrix import VoteRow, pair_item
from clash.votes.read import encode
from clash.votes.text_labels import people_votes, text_names, text_truth

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from numpy.typing import NDArray

    from clash.labels import Truth
    from clash.records import Label
    from clash.stats.typing import Floats
    from clash.store.folder import RunFolder
    from clash.store.manifest import Manifest
    from clash.votes.matrix import Votes


@dataclass(frozen=True)
class Panelist:
    """A judge as the manifest lists it."""

    id: str
    role: str
    weight: float
    family: str
    model: str
    stands_in_for: str | None = None

    @property
    def seat(self) -> str:
        """The judge whose place this one has on the panel."""
        return self.stands_in_for or self.id


class JudgmentOutcome(JudgmentFacts, ItemPart, gc=False):
    """What a judgment comes to: a :class:`~clash.records.Judgment` without its scores and reasons.

    For passes over all judgments, which take a third of the time with it.
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
    """What each judgment comes to."""
    return parts(judgments, JudgmentOutcome)


@dataclass(frozen=True)
class ItemRankings:
    """The judges' rankings of one item, by candidate.

    Attributes:
        candidates: those whose responses were shown, sorted.
        ranks: by judge, a row (K,) for each presentation it ranked; smaller is better, NaN for a
            response that the judge was not shown, since it is its own.
        share: of its presentations, how many a judge answered.
        compute_scores: makes ``scores``, which only a broken tie asks for.
        page_order: the candidates in the order in which every judge saw them first; empty where each
            judge had an order of its own.
        page_places: by judge, a row (K,) for each presentation it ranked: where the response stood
            on the page, 0 first.
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
    def has_scores_read(self) -> bool:
        """Whether somebody asked for the scores."""
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


def read_panelists(folder: RunFolder, manifest: Manifest) -> tuple[Panelist, ...]:
    """The judges that a run's manifest lists, without the fallbacks that nobody asked."""
    judges: list[Mapping[str, Any]] = manifest.panel["judges"]
    stand_ins = {j["id"] for j in judges if j.get("stands_in_for")}
    judges_with_judgments = {j.judge for j in folder.records(Judgment)} if stand_ins else set()
    return tuple(
        Panelist(j["id"], j["role"], j["weight"], j["family"], j["model"], j.get("stands_in_for"))
        for j in judges
        if j["id"] not in stand_ins or j["id"] in judges_with_judgments
    )


class BlindingIndex:
    """Labels of each presentation, by item and judge.

    Attributes:
        records: the presentations.
    """

    def __init__(self, records: Sequence[Blinding] = ()) -> None:
        """Args: the presentations, which may stay on disk."""
        self.records = records
        self._pages: dict[tuple[int, str | None], dict[str, _Page]] = {}
        unique_pages: dict[object, _Page] = {}
        for record in records:
            choices = None if record.choices is None else tuple(record.choices)
            page = unique_pages.setdefault(
                (tuple(record.labels.items()), choices), _Page(record.labels, choices or ())
            )
            self._pages.setdefault((record.presentation, record.judge), {})[record.item_id] = page

    @classmethod
    def of(cls, records: Iterable[Blinding]) -> BlindingIndex:
        """An index of ``blinding.jsonl``."""
        return cls(records if isinstance(records, Sequence) else list(records))

    @property
    def presentations(self) -> int:
        """How many presentations an item has at most, 1 where none is on record."""
        return 1 + max((presentation for presentation, _ in self._pages), default=0)

    def _page(self, item_id: str, presentation: int, judge: str | None) -> _Page | None:
        pages = self._pages.get((presentation, judge))
        return None if pages is None else pages.get(item_id)

    def is_own(self, judgment: Judgment) -> bool:
        """Whether the judge of a judgment saw a shuffle of its own."""
        page = self._page(judgment.item_id, judgment.presentation, judgment.seat)
        return page is not None

    def labels(self, judgment: Judgment | JudgmentOutcome) -> Mapping[str, str]:
        """Candidates by label on the page of a judgment; empty where it failed before it saw one.

        Raises:
            RunFolderError: it ranks a page that is not there.
        """
        item_id, presentation = judgment.item_id, judgment.presentation
        page = self._page(item_id, presentation, judgment.seat)
        page = page or self._page(item_id, presentation, None)
        if page is None and judgment.is_usable:
            raise RunFolderError(
                f"{layout.BLINDING}: lacks the page of {judgment.item_id!r} that"
                f" {judgment.judge!r} judged\n  fix: `clash resume` on the run writes it again"
            )
        return {} if page is None else page.labels

    def choices(self, judgment: Judgment) -> Sequence[str]:
        """The labels in the order of the page of a judgment; empty where responses are ranked."""
        item_id, presentation = judgment.item_id, judgment.presentation
        own_page = self._page(item_id, presentation, judgment.seat)
        shared_page = self._page(item_id, presentation, None)
        return (own_page and own_page.choices) or (shared_page and shared_page.choices) or ()


@dataclass(frozen=True)
class _Page:
    """What a judge sees of the responses: the candidate behind each label, and a text's choices."""

    labels: Mapping[str, str]
    choices: Sequence[str]


def count_presentations(manifest: Manifest) -> int:
    """How often each judge was asked about an item: twice where it saw both orders."""
    return 2 if manifest.config.get("blinding", {}).get("both_orders") else 1


def read_judging(manifest: Manifest) -> JudgingConfig | None:
    """What was asked of each text, where a run judges each by itself; else null."""
    section = manifest.config.get("judging")
    judging = JudgingConfig() if section is None else JudgingConfig.model_validate(section)
    return judging if judging.is_single else None


_INSTEAD = {
    "clash review": "add people's labels to labels.jsonl of the run, one a line: "
    '{"item_id": "q1", "annotator": "ann", "vote": "yes"}; then `clash report`',
    "clash choose": "`clash report` compares the candidates by pass rate or score, and their cost",
    "clash variance": "`clash rerun` says how often the panel repeats itself, `--both-orders` how "
    "often the order of the labels changes a judge's answer",
}
"""What answers the question on single texts, by the command that does not."""


def require_rankings(manifest: Manifest, purpose: str) -> None:
    """Refuse a run that judges each text by itself where rankings are needed.

    Args:
        manifest: of the run.
        purpose: what needs them, as the beginning of a sentence.

    Raises:
        InputError: the run has none.
    """
    if read_judging(manifest) is not None:
        raise InputError(
            f"{purpose} compares responses, and {manifest.run} judges each text by itself",
            hint=_INSTEAD.get(
                purpose,
                "`clash report`, `explain`, `aggregate`, `compare`, `rerun` and `gate` take such runs",
            ),
        )


def unblind(judgment: Judgment, labels: Mapping[str, str]) -> list[list[str]] | None:
    """The ranking in names of candidates; null where the judgment failed."""
    if judgment.ranking is None:
        return None
    return [sorted(labels[label] for label in group) for group in judgment.ranking]


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
    """The judgments of each item, unblinded; those that failed leave no trace here.

    A judge that saw both orders has one say: the mean of its two rankings. Where they contradict
    each other that is a tie, and where one of them failed its weight counts half for the quorum.
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


def without_controls(items: Sequence[Item]) -> Sequence[Item]:
    """The items without control items; all items where there are only controls."""
    rows = [row for row, item in enumerate(items) if item.control is None]
    return select(items, rows) if 0 < len(rows) < len(items) else items


@dataclass(frozen=True)
class _RunRecords:
    """What the votes of a run are made from; records stay on disk.

    Attributes:
        items: those that count.
        controls: the ids of the others.
        places: group and first tag of each item that has one.
    """

    folder: RunFolder
    items: Sequence[Item]
    controls: Collection[str]
    places: Mapping[str, tuple[str | None, str | None]]
    blinds: BlindingIndex
    families: Mapping[str, str]
    truths: Mapping[str, Truth]
    labels: Mapping[str, Sequence[Label]]
    presentations: int
    pages_of_text: int
    observers: bool

    @classmethod
    def of(cls, folder: RunFolder, *, observers: bool) -> _RunRecords:
        manifest, labels_of = folder.manifest(), defaultdict(list)
        labels = folder.labels()
        for label in labels:
            labels_of[label.item_id].append(label)
        judges = manifest.panel.get("judges", [])
        blinds = BlindingIndex.of(folder.records(Blinding))
        all_items = folder.records(Item)
        items = without_controls(all_items)
        return cls(
            folder,
            items,
            frozenset(
                ()
                if items is all_items
                else (i.item_id for i in all_items if i.control is not None)
            ),
            {
                item.item_id: (item.group, item.tags[0] if item.tags else None)
                for item in items
                if item.group or item.tags
            },
            blinds,
            {judge["id"]: judge["family"] for judge in judges if judge.get("family")},
            truths(items, labels),
            labels_of,
            blinds.presentations,
            count_presentations(manifest),
            observers,
        )

    def judgments(self) -> Iterator[Judgment]:
        """Those of the voting judges, on items that count; of the observers too where asked for."""
        for judgment in self.folder.records(Judgment):
            is_of_panel = self.observers or judgment.role == "voting"
            if is_of_panel and judgment.item_id not in self.controls:
                yield judgment

    def page_labels(self, judgment: Judgment) -> Mapping[str, str]:
        """The labels of the page behind a judgment, in the order shown."""
        return self.blinds.labels(judgment)

    def own_order(self, judgment: Judgment) -> bool:
        """Whether this judge saw a shuffle of its own."""
        return self.blinds.is_own(judgment)

    def group(self, item_id: str) -> str | None:
        """The group of an item; null where it has none."""
        return self.places.get(item_id, (None, None))[0]

    def cluster(self, item_id: str) -> str:
        """The group of an item, or the item alone."""
        return self.group(item_id) or item_id

    def subset(self, item_id: str) -> str | None:
        """The first tag of an item."""
        return self.places.get(item_id, (None, None))[1]


def vote_rows(folder: RunFolder, *, observers: bool = False) -> Iterator[VoteRow]:
    """The votes of a run, one for each judgment and pair of its candidates.

    ``presentation`` is ``orig`` where the pair's first candidate by name was shown first. Where
    each judge had a shuffle of its own, judges of one item would fall into different rows by
    that, so the order is kept in the extra key ``order`` instead. The label is what the truth of
    the item says of the pair (:mod:`clash.labels`). ``subset`` is the item's first tag.

    A run that judges each text by itself has a vote for each judgment: 1 for the first of two labels
    and 0 for the second, or the score. With three labels or more, each label is an item (``q1#spam``)
    with votes of 1 and 0, all in the group of the text. ``presentation`` is then ``orig`` where the
    page lists the labels in the order of the configuration.

    Args:
        folder: the run.
        observers: the observers' judgments too.

    Raises:
        RunFolderError: a judgment whose blinding is missing.
    """
    judging = read_judging(folder.manifest())
    run = _RunRecords.of(folder, observers=observers)
    if judging is not None:
        yield from _text_rows(run, judging)
        return
    for judgment in run.judgments():
        labels = run.page_labels(judgment)
        ranking = unblind(judgment, labels)
        for first, second in combinations(sorted(labels.values()), 2):
            yield _pair_row(run, judgment, list(labels.values()), ranking, first, second)


def _pair_row(
    run: _RunRecords,
    judgment: Judgment,
    page: Sequence[str],
    ranking: list[list[str]] | None,
    first: str,
    second: str,
) -> VoteRow:
    several = len(page) > 2
    order = "orig" if page.index(first) < page.index(second) else "swap"
    has_own_order = run.own_order(judgment)
    truth = run.truths.get(judgment.item_id)
    return VoteRow(
        item=pair_item(judgment.item_id, first, second, len(page)),
        judge=judgment.judge,
        vote=None if ranking is None else side(ranks_of(ranking), first, second),
        label=None if truth is None else truth.side(first, second),
        family=run.families.get(judgment.judge),
        subset=run.subset(judgment.item_id),
        group=run.cluster(judgment.item_id) if several else run.group(judgment.item_id),
        presentation=None if has_own_order else order,
        # Both orders of a pair already differ in their presentation.
        repeat=str(judgment.presentation) if has_own_order and run.presentations > 1 else None,
        extra={
            "model_a": first,
            "model_b": second,
            **({"order": order} if has_own_order else {}),
            **({"role": judgment.role} if judgment.role != "voting" else {}),
        },
    )


def _text_rows(run: _RunRecords, judging: JudgingConfig) -> Iterator[VoteRow]:
    """A vote for each judgment of a text; of three labels or more, one for each label."""
    texts = [
        (response.item_id, response.candidate)
        for response in run.folder.records(Response)
        if response.item_id not in run.controls
    ]
    names = text_names(texts)
    opinions = people_votes(
        texts,
        run.items,
        [label for labels_of_item in run.labels.values() for label in labels_of_item],
        judging,
    )
    labels = list(judging.labels)
    for judgment in run.judgments():
        candidate = next(iter(run.page_labels(judgment).values()), None)
        if candidate is None:
            continue  # it failed before it saw a page
        key = judgment.item_id, candidate
        truth = text_truth(opinions.get(key, {}))
        own_order = run.own_order(judgment)
        choices = list(run.blinds.choices(judgment))
        order = "orig" if choices == judging.choices else "swap"
        several = len(labels) > 2
        for label in labels if several else labels[:1] or [""]:
            yield VoteRow(
                item=f"{names[key]}#{label}" if several else names[key],
                judge=judgment.judge,
                vote=_text_vote(judgment.vote, label),
                label=_text_vote(truth, label),
                family=run.families.get(judgment.judge),
                subset=run.subset(judgment.item_id),
                group=run.cluster(judgment.item_id)
                if several or names[key] != judgment.item_id
                else run.group(judgment.item_id),
                presentation=None if own_order or several else order,
                repeat=str(judgment.presentation % run.pages_of_text)
                if (own_order or several) and run.pages_of_text > 1
                else None,
                extra={
                    "model": candidate,
                    **({"says": judgment.vote} if labels else {}),
                    **({"role": judgment.role} if judgment.role != "voting" else {}),
                },
            )


def _text_vote(vote: str | float | None, label: str) -> float | None:
    """1 for a label and 0 for another one; a score as it is; null for none."""
    return float(vote == label) if isinstance(vote, str) else vote


def score_rows(folder: RunFolder, *, observers: bool = False) -> Iterator[VoteRow]:
    """The scores of a run: an item ``q1#candidate`` for each response, grouped by item.

    The vote is the judge's mean over the criteria, weighted as the item's criteria say
    (:func:`~clash.votes.from_run.weighted_score`); null where the judge failed or gave that
    response no score. The label is people's mean score.

    Args:
        folder: the run.
        observers: the observers' judgments too.

    Raises:
        RunFolderError: a judgment whose blinding is missing.
    """
    run = _RunRecords.of(folder, observers=observers)
    weights = {
        record.item_id: {criterion.name: criterion.weight for criterion in record.criteria}
        for record in folder.records(Criteria)
    }
    for judgment in run.judgments():
        rubric = weights.get(judgment.item_id, {})
        item_labels = run.labels.get(judgment.item_id, ())
        for label, candidate in run.page_labels(judgment).items():
            yield VoteRow(
                item=f"{judgment.item_id}#{candidate}",
                judge=judgment.judge,
                vote=weighted_score(judgment.scores.get(label, {}), rubric),
                label=_label_score(item_labels, candidate),
                family=run.families.get(judgment.judge),
                subset=run.subset(judgment.item_id),
                group=run.cluster(judgment.item_id),
                repeat=str(judgment.presentation) if run.presentations > 1 else None,
                extra={"model": candidate, "slot": label},
            )


def _label_score(labels: Sequence[Label], candidate: str) -> float | None:
    values = [value for label in labels for value in label.scores.get(candidate, {}).values()]
    return sum(values) / len(values) if values else None


def run_votes(
    folder: RunFolder,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    observers: bool = False,
    scores: bool = False,
) -> Votes:
    """The votes of a run folder, as :func:`clash.votes.read_votes` would read its export.

    Args:
        folder: the run.
        judges: as there.
        subset: as there.
        presentation: as there.
        decisive: as there.
        observers: the observers' judgments too.
        scores: mean criteria scores of each response, instead of outcomes of pairs.

    Raises:
        InputError: as :func:`read_votes`, without lines; a run without judgments.
        RunFolderError: a judgment whose blinding is missing.
    """
    rows = (score_rows if scores else vote_rows)(folder, observers=observers)
    first = next(rows, None)
    if first is None:
        raise InputError(
            "holds no judgment that can be used",
            path=folder.path,
            hint=f"`clash resume {folder.path}`, if it was interrupted",
        )
    votes = encode(
        chain([first], rows),
        judges=judges,
        subset=subset,
        presentation=presentation,
        decisive=decisive,
        source=folder.path,
    )
    judging = read_judging(folder.manifest())
    has_scores = scores or (judging is not None and judging.mode == "score")
    # Scores that all happen to be 0 or 1 are scores still.
    return replace(votes, kind="numeric") if has_scores else votes
