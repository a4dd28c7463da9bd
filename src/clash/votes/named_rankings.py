"""Runs and votes files as rankings of named candidates, for the rules that rank candidates.

In a run a ranking is that of one judge on an item's responses. In a file it is the ``ranking`` of a
line (:mod:`clash.votes.lines`); a vote on a pair, where lines name ``model_a`` and ``model_b``; or,
where lines name one ``model`` and the votes are scores, the order of the scores that a judge gave
within a ``group``.
"""

from __future__ import annotations

import sys
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clash.errors import InputError, StatisticsError
from clash.labels import TIE, truths
from clash.records import Blinding, Item, Judgment, Response
from clash.stats.voting.rankings import RankingArray, ranking_array
from clash.store.stored import ItemPart, item_ids, parts, select
from clash.store.table import ItemRows
from clash.votes.ballots import unblind_rankings
from clash.votes.blinding_index import BlindingIndex, count_presentations
from clash.votes.by_item import ComputedByItem
from clash.votes.from_run import read_panelists, without_controls
from clash.votes.lines import (
    MODEL_KEYS,
    NamedVoteLine,
    holds_rankings,
    is_csv,
    read_lines,
    read_rankings,
)
from clash.votes.matrix import matches_globs
from clash.votes.read import VoteColumns, VoteTable, split_globs
from clash.votes.style import N_TEXT_STYLES, STYLES, StyleSource, organisation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from clash.stats.typing import Codes, Floats
    from clash.store.folder import RunFolder
    from clash.votes.ballots import ItemRankings
    from clash.votes.from_run import Panelist
    from clash.votes.lines import JudgeRanking


PairTexts = Mapping[str, tuple[str, str]]
"""The two responses of an item, the first model's first, by item id."""


@dataclass(frozen=True)
class NamedRankings:
    """Rankings, and the names behind their codes.

    Attributes:
        candidates: (K,), sorted; those that no judge ranked are left out and in ``absent``.
        judges: (J,), sorted.
        weights: (J,), of the panel; 1 each in a votes file.
        rankings: their own weights are shares of a judge's one say on an item.
        n_items: items there are; ``n_ranked_items`` of them have a ranking.
        failed: judgments that were recorded and hold no ranking.
        absent: candidates of a run that no judge ranked.
        notes: how copies, scores and oddities were read.
    """

    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    weights: Floats
    rankings: RankingArray
    n_items: int
    failed: int
    absent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def n_ranked_items(self) -> int:
        """Items with at least one ranking."""
        return len(np.unique(self.rankings.items))

    @property
    def n_rankings(self) -> int:
        """Rankings of two candidates or more."""
        return len(self.rankings.ranks)


def run_rankings(
    folder: RunFolder,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    decisive: bool = False,
    copies: str = "merge",
    style: bool = False,
) -> NamedRankings:
    """The rankings of a run's voting judges.

    Args:
        folder: the run.
        judges: ids with wildcards, comma separated or a list; null for all.
        subset: first tags of items, likewise.
        decisive: only items whose label names a winner.
        copies: ``merge`` gives a judge that saw both orders one say, which its rankings share;
            ``separate`` a say for each.
        style: with the traits of the responses.

    Raises:
        InputError: no ranking is left.
    """
    judge_globs, subset_globs = split_globs(judges), split_globs(subset)
    manifest, items = folder.manifest(), without_controls(folder.records(Item))
    voting = [
        panelist
        for panelist in read_panelists(folder, manifest)
        if panelist.role == "voting" and matches_globs(panelist.id, judge_globs)
    ]
    names = {panelist.id for panelist in voting}
    every_judgment = folder.records(Judgment)
    judgments = select(
        every_judgment, [n for n, j in enumerate(every_judgment) if j.judge in names]
    )
    truth = truths(items, folder.labels()) if decisive else {}
    decisive_ids = {name for name, label in truth.items() if label.winner not in (TIE, None)}
    items_read = [
        item
        for item in items
        if matches_globs(item.tags[0] if item.tags else None, subset_globs)
        and (not decisive or item.item_id in decisive_ids)
    ]
    rankings = ballot_rankings(
        items_read,
        unblind_rankings(
            judgments, BlindingIndex.of(folder.records(Blinding)), count_presentations(manifest)
        ),
        voting,
        folder.records(Response),
        copies=copies,
        style=style,
    )
    if rankings is None:
        raise InputError(
            "no ranking is left", path=folder.path, hint="leave out a filter, or clash resume"
        )
    ids = {item.item_id for item in items_read}
    n_failed = sum(j.ranking is None and j.item_id in ids for j in judgments)
    return replace(rankings, failed=n_failed, source=str(folder.path))


def ballot_rankings(
    items: Sequence[Item],
    ballots: Mapping[str, ItemRankings],
    voting: Sequence[Panelist],
    responses: Sequence[Response],
    *,
    copies: str = "merge",
    style: bool = False,
) -> NamedRankings | None:
    """The rankings of some judges on some items of a run; null where there are none.

    Args:
        items: of the run, in its order.
        ballots: of each item, as its judges ranked it.
        voting: the judges.
        responses: of the run: candidates without a ranking are ``absent``.
        copies: as for :func:`run_rankings`.
        style: with the traits of the responses (:mod:`clash.votes.style`).
    """
    by_name = {panelist.id: panelist for panelist in voting}
    names = sorted(by_name)
    rows = {sys.intern(item_id): row for row, item_id in enumerate(item_ids(items))}
    models: dict[str, str] = {}
    for response in parts(responses, _Author):
        if response.item_id in rows:
            models.setdefault(response.candidate, response.model or "")
    candidates = models.keys()
    ranked_names = {name for i in rows if i in ballots for name in ballots[i].candidates}
    ranked_candidates = tuple(sorted(candidates & ranked_names))
    families = {name: by_name[name].family for name in names}
    authors = {
        name: maker
        for name in ranked_candidates
        if (maker := organisation(models[name])) is not None
    }
    columns = _RankingColumns.of(
        (
            (number, item, ballots[item.item_id])
            for number, item in enumerate(items)
            if item.item_id in ballots
        ),
        names,
        ranked_candidates,
        StyleSource(_texts(responses, rows), families, authors) if style else None,
    )
    if not columns.judges:
        return None
    shape = len(columns.judges), len(ranked_candidates)
    return NamedRankings(
        candidates=ranked_candidates,
        judges=tuple(names),
        weights=np.array([by_name[name].weight for name in names]),
        rankings=ranking_array(
            np.asarray(columns.ranks).reshape(shape),
            columns.shares if copies == "merge" else None,
            columns.judges,
            columns.items,
            columns.clusters,
            np.asarray(columns.traits).reshape(*shape, len(STYLES)) if style else None,
        ),
        n_items=len(items),
        failed=0,
        absent=tuple(sorted(candidates - ranked_names)),
    )


class _Author(ItemPart, gc=False):
    """Who a response is by."""

    candidate: str
    model: str | None = None


def _texts(
    responses: Sequence[Response], rows: Mapping[str, int]
) -> ComputedByItem[dict[str, str]]:
    """Response by item and candidate, where there is one."""
    responses_of = ItemRows(responses, rows)
    return ComputedByItem(
        rows,
        lambda item_id: {r.candidate: r.text for r in responses_of(item_id) if r.text is not None},
    )


@dataclass(frozen=True)
class _RankingColumns:
    """The columns of a run's rankings: an entry for every ranking.

    Of ``ranks`` there is one for each candidate too, of ``traits`` one for each trait of each.
    """

    ranks: array[float] = field(default_factory=lambda: array("d"))
    shares: array[float] = field(default_factory=lambda: array("d"))
    judges: array[int] = field(default_factory=lambda: array("q"))
    items: array[int] = field(default_factory=lambda: array("q"))
    clusters: array[int] = field(default_factory=lambda: array("q"))
    traits: array[float] = field(default_factory=lambda: array("d"))

    @classmethod
    def of(
        cls,
        items: Iterable[tuple[int, Item, ItemRankings]],
        names: Sequence[str],
        candidates: Sequence[str],
        style: StyleSource | None = None,
    ) -> _RankingColumns:
        """From each item, its index among those read, and its rankings."""
        columns, clusters = cls(), _IndexByName()
        column = {name: k for k, name in enumerate(candidates)}
        judge_index = {name: j for j, name in enumerate(names)}
        # Items that are ranked alike share their ranks, which are held here so that ids stay theirs.
        patterns: dict[int, tuple[Mapping[str, Floats], list[_RankedPage]]] = {}
        for number, item, rankings in items:
            indices = [column[name] for name in rankings.candidates]
            if id(rankings.ranks) not in patterns:
                ranked_pages = _ranked_pages(rankings, judge_index, indices, len(candidates), style)
                patterns[id(rankings.ranks)] = rankings.ranks, list(ranked_pages)
            pages = patterns[id(rankings.ranks)][1]
            cluster = clusters[item.cluster] if pages else -1
            text_traits = None
            if style is not None and pages:
                text_traits = style.of_texts(item.item_id, rankings.candidates)
            for page in pages:
                columns.ranks.frombytes(page.ranks)
                columns.shares.append(page.share)
                columns.judges.append(page.judge)
                columns.items.append(number)
                columns.clusters.append(cluster)
                if text_traits is not None:
                    page.traits[indices, :N_TEXT_STYLES] = text_traits
                    columns.traits.frombytes(page.traits.tobytes())
        return columns


@dataclass(frozen=True)
class _RankedPage:
    """What a judge's ranking of a page has in common in all items that are ranked alike.

    Attributes:
        ranks: of each candidate, as bytes of floats.
        traits: (candidates, traits); those of the texts are written item by item.
    """

    judge: int
    share: float
    ranks: bytes
    traits: Floats


def _ranked_pages(
    rankings: ItemRankings,
    judge_index: Mapping[str, int],
    indices: Sequence[int],
    n_candidates: int,
    style: StyleSource | None,
) -> Iterator[_RankedPage]:
    for judge, ranks in rankings.ranks.items():
        if judge not in judge_index:
            continue
        for at_page, ranking in enumerate(ranks):
            row = np.full(n_candidates, np.nan)
            row[indices] = ranking
            traits = np.full((n_candidates, len(STYLES)), np.nan)
            if style is not None:
                page_order = rankings.page_places[judge][at_page].tolist()
                page_traits = style.of_page(judge, rankings.candidates, page_order)
                traits[indices, N_TEXT_STYLES:] = page_traits
            yield _RankedPage(judge_index[judge], 1 / len(ranks), row.tobytes(), traits)


class _IndexByName(dict[str, int]):
    """An index for each name, in order of appearance."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def file_rankings(
    path: str | Path,
    *,
    judges: str | Sequence[str] | None = None,
    subset: str | Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    copies: str = "merge",
    texts: PairTexts | None = None,
) -> NamedRankings | None:
    """The rankings of a votes file; null where its lines name no candidates.

    Args:
        path: the file.
        judges: ids with wildcards, comma separated or a list; null for all.
        subset: subsets, likewise.
        presentation: the presentation to keep.
        decisive: only votes whose label is a side.
        copies: ``merge`` gives a judge one say on an item, which its votes in several orders and
            repeats share; ``separate`` a say for each.
        texts: the two responses of an item, the first model's first: rankings then have the
            traits of the responses. An empty mapping gives those that need no text.

    Raises:
        InputError: as ``read_votes``; a line that names only one of a pair; scores of a pair, or
            of models without a ``group``.
        StatisticsError: no ranking orders two candidates.
    """
    file, filters = Path(path), (split_globs(judges), split_globs(subset), presentation)
    if holds_rankings(file):
        lines_of_file = read_rankings(file, *filters, decisive=decisive)
        return _rank_candidates(lines_of_file, copies, str(file))
    columns = VoteColumns(text=is_csv(file), extra=MODEL_KEYS)
    for lines in read_lines(file, NamedVoteLine):
        columns.add(lines)
    table = VoteTable.of(columns, file).select(*filters, decisive=decisive)
    pairs = any(name is not None for name in table.names["model_a"])
    if not pairs and all(name is None for name in table.names["model"]):
        return None
    names, judge_of = table.judges()
    table.rows(judge_of, len(names))
    rankings = _pair_rankings(table) if pairs else _score_rankings(table)
    merging = copies == "merge"
    share = (
        _shares(rankings.items, judge_of[rankings.lines])
        if merging
        else np.ones(len(rankings.lines))
    )
    ranks, candidates = _drop_absent(rankings)
    traits = None
    if texts is not None and pairs:
        traits = _pair_traits(table, rankings.lines, candidates, texts)
    return NamedRankings(
        candidates=candidates,
        judges=names,
        weights=np.ones(len(names)),
        rankings=ranking_array(
            ranks, share, judge_of[rankings.lines], rankings.items, rankings.clusters, traits
        ),
        n_items=rankings.n_items,
        failed=int(np.isnan(table.values["vote"][table.codes["vote"]]).sum()),
        notes=rankings.notes,
        source=str(file),
    )


def _rank_candidates(rankings: Sequence[JudgeRanking], copies: str, source: str) -> NamedRankings:
    """The rankings of a file of rankings, as arrays.

    Raises:
        StatisticsError: none orders two candidates.
    """
    usable = [
        ranking for ranking in rankings if ranking.places is not None and len(ranking.places) > 1
    ]
    if not usable:
        raise StatisticsError("no ranking orders two candidates")
    names = sorted({name for ranking in usable for name in ranking.places or {}})
    judges = sorted({ranking.judge for ranking in rankings})
    ranks = [[(ranking.places or {}).get(name, np.nan) for name in names] for ranking in usable]
    items, clusters = _IndexByName(), _IndexByName()
    item = np.array([items[ranking.item] for ranking in usable])
    judge = np.array([judges.index(ranking.judge) for ranking in usable])
    cluster = [clusters[ranking.group or f"\0{ranking.item}"] for ranking in usable]
    share = _shares(item, judge) if copies == "merge" else None
    return NamedRankings(
        candidates=tuple(names),
        judges=tuple(judges),
        weights=np.ones(len(judges)),
        rankings=ranking_array(ranks, share, judge, item, cluster),
        n_items=len({ranking.item for ranking in rankings}),
        failed=sum(ranking.places is None for ranking in rankings),
        source=source,
    )


@dataclass(frozen=True)
class _TableRankings:
    """Rankings read from a table of votes; ``lines`` holds one line of each, for its judge."""

    candidates: tuple[str, ...]
    ranks: Floats
    lines: Codes
    items: Codes
    clusters: Codes
    n_items: int
    notes: tuple[str, ...]


def _pair_rankings(table: VoteTable) -> _TableRankings:
    """A ranking for each vote on two named models."""
    if table.kind("vote") == "numeric":
        raise InputError(
            "these votes are scores of a pair",
            path=table.file,
            field="vote",
            hint='write "A", "B" or "tie", or a line for each model with its score and `model`',
        )
    index = {name: k for k, name in enumerate(_names_in(table, "model_a", "model_b"))}
    first, second = (_indices(table, name, index) for name in ("model_a", "model_b"))
    for name, codes in (("model_a", first), ("model_b", second)):
        if (codes < 0).any():
            hint = "name both models on every line, or on none"
            table.fail("is missing", int(np.flatnonzero(codes < 0)[0]), name, hint)
    votes = table.values["vote"][table.codes["vote"]]
    self_pair = first == second
    lines = np.flatnonzero(~np.isnan(votes) & ~self_pair)
    ranks = np.full((len(lines), len(index)), np.nan)
    row = np.arange(len(lines))
    # Smaller is better: a vote of 1 is for the first, so it ranks 0 and the second 1; a tie is 1/2.
    ranks[row, first[lines]] = 1 - votes[lines]
    ranks[row, second[lines]] = votes[lines]
    notes = (
        [f"{self_pair.sum()} votes compare a model with itself: left out"]
        if self_pair.any()
        else []
    )
    item = table.codes["item"]
    return _TableRankings(
        tuple(index),
        ranks,
        lines,
        item[lines].astype(np.intp),
        _clusters(table)[lines],
        len(np.unique(item[~self_pair])),
        tuple(notes),
    )


def _pair_traits(
    table: VoteTable, lines: Codes, candidates: Sequence[str], texts: PairTexts
) -> Floats:
    """The traits of the two responses of each vote, (R, K, q)."""
    names = {
        key: [table.names[key][code] or "" for code in table.codes[key][lines].tolist()]
        for key in ("item", "judge", "model_a", "model_b", "presentation", "family")
    }
    column = {name: k for k, name in enumerate(candidates)}
    families = {j: f for j, f in zip(names["judge"], names["family"], strict=True) if f}
    traits = np.full((len(lines), len(candidates), len(STYLES)), np.nan)
    positions = {"swap": (1.0, 0.0), "orig": (0.0, 1.0)}
    for at, (item, judge, first, second, order, _) in enumerate(zip(*names.values(), strict=True)):
        pair = (first, second)
        source = StyleSource({item: dict(zip(pair, texts.get(item, ()), strict=False))}, families)
        page_order = positions.get(order, (np.nan, np.nan))
        traits[at, [column[first], column[second]]] = source.traits(item, judge, pair, page_order)
    return traits


def _score_rankings(table: VoteTable) -> _TableRankings:
    """A ranking for each judge and group of scored models, in one presentation and repeat."""
    group = table.codes["group"]
    index = {name: k for k, name in enumerate(_names_in(table, "model"))}
    model = _indices(table, "model", index)
    hint = "a score has its `model`, and the `group` of the responses it is compared with"
    for name, empty in (("model", model < 0), ("group", _without_group(table))):
        if empty.any():
            table.fail("is missing", int(np.flatnonzero(empty)[0]), name, hint)
    votes = table.values["vote"][table.codes["vote"]]
    score_lines = np.flatnonzero(~np.isnan(votes))
    keys = [table.codes[name] for name in ("group", "judge", "presentation", "repeat")]
    _, first, row_of = np.unique(
        np.stack(keys)[:, score_lines], axis=1, return_index=True, return_inverse=True
    )
    ranks = np.full((len(first), len(index)), np.nan)
    ranks[row_of.ravel(), model[score_lines]] = -votes[score_lines]
    if len(score_lines) != int((~np.isnan(ranks)).sum()):
        counts = Counter(zip(row_of.ravel().tolist(), model[score_lines].tolist(), strict=True))
        (row, k), n = counts.most_common(1)[0]
        at = score_lines[np.flatnonzero((row_of.ravel() == row) & (model[score_lines] == k))[1]]
        table.fail(
            f"{n} scores of one model by one judge in one group",
            int(at),
            "model",
            "give repeated scores a different repeat",
        )
    lines = score_lines[first]
    return _TableRankings(
        tuple(index),
        ranks,
        lines,
        group[lines].astype(np.intp),
        group[lines].astype(np.intp),
        len(np.unique(group)),
        ("a ranking is the order of the scores that a judge gave within a group",),
    )


def _names_in(table: VoteTable, *columns: str) -> list[str]:
    """The names that occur in the lines the filters keep, sorted."""
    present: set[str] = set()
    for column in columns:
        names = table.names[column]
        present |= {name for code in np.unique(table.codes[column]) if (name := names[code])}
    return sorted(present)


def _indices(table: VoteTable, column: str, index: Mapping[str, int]) -> Codes:
    """The model of each line; -1 where it names none."""
    code = [-1 if name is None else index.get(name, -1) for name in table.names[column]]
    return np.array(code, dtype=np.intp)[table.codes[column]]


def _without_group(table: VoteTable) -> NDArray[np.bool_]:
    """Whether each line names no group."""
    nameless = np.array([name is None for name in table.names["group"]])
    return np.asarray(nameless[table.codes["group"]])


def _clusters(table: VoteTable) -> Codes:
    """The group of each line where it names one, else its item."""
    group, item = table.codes["group"].astype(np.intp), table.codes["item"].astype(np.intp)
    return np.where(_without_group(table), item + len(table.names["group"]), group)


def _shares(items: Codes, judges: Codes) -> Floats:
    """The share of each ranking in the one say that a judge has on an item."""
    cell = items * (int(judges.max(initial=0)) + 1) + judges
    _, cell_of, count = np.unique(cell, return_inverse=True, return_counts=True)
    share: Floats = 1 / count[cell_of.ravel()]
    return share


def _drop_absent(rankings: _TableRankings) -> tuple[Floats, tuple[str, ...]]:
    """The columns of candidates that some judge ranked, and their names."""
    has_rank = (~np.isnan(rankings.ranks)).any(axis=0)
    if has_rank.sum() < 2:
        raise StatisticsError("no ranking orders two candidates")
    names = tuple(rankings.candidates[k] for k in np.flatnonzero(has_rank).tolist())
    return rankings.ranks[:, has_rank], names
