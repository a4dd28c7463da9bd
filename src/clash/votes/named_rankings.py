"""Runs and votes files as ballots over named candidates, for the rules that rank candidates.

In a run a ballot is one judge's ranking of an item's responses. In a file it is the ``ranking`` of
a line (:mod:`clash.votes.ranking_lines`); a vote on a pair, where lines name ``model_a`` and
``model_b``; or, where lines name one ``model`` and the votes are scores, the order of the scores
that a judge gave within a ``group``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from clash.analysis.verdicts import Blinds, Rules, without_controls
from clash.analysis.verdicts import ballots as unblinded
from clash.errors import InputError, StatisticsError
from clash.labels import TIE, truths
from clash.stats.voting.rankings import RankingArray, ranking_array
from clash.votes.lines import NAMES, NamedLine, is_csv, read_lines
from clash.votes.matrix import wanted
from clash.votes.ranking_lines import holds_ballots, read_ballots
from clash.votes.table import Columns, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from clash.analysis.verdicts import Ballots as Said
    from clash.records import Item
    from clash.stats.typing import Codes, Floats
    from clash.store.folder import RunFolder
    from clash.votes.ranking_lines import Ballot


@dataclass(frozen=True)
class NamedBallots:
    """Ballots, and the names behind their codes.

    Attributes:
        candidates: (K,), sorted; those on no ballot are left out and in ``absent``.
        judges: (J,), sorted.
        weights: (J,), of the panel; 1 each in a votes file.
        ballots: their own weights are shares of a judge's one say on an item.
        n_items: items there are; ``n_judged`` of them have a ballot.
        failed: judgments that were recorded and hold no ballot.
        absent: candidates of a run that nobody judged.
        notes: how copies, scores and oddities were read.
    """

    candidates: tuple[str, ...]
    judges: tuple[str, ...]
    weights: Floats
    ballots: RankingArray
    n_items: int
    failed: int
    absent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    source: str = ""

    @property
    def n_judged(self) -> int:
        """Items with a ballot."""
        return len(np.unique(self.ballots.items))

    @property
    def n_ballots(self) -> int:
        """Ballots that order two candidates or more."""
        return len(self.ballots.ranks)


def run_ballots(
    folder: RunFolder,
    *,
    judges: Sequence[str] | None = None,
    subset: Sequence[str] | None = None,
    decisive: bool = False,
    copies: str = "merge",
) -> NamedBallots:
    """The rankings of a run's voting judges.

    Args:
        folder: the run.
        judges: ids with wildcards; null for all.
        subset: first tags of items, with wildcards; null for all.
        decisive: only items whose label names a winner.
        copies: ``merge`` gives a judge that saw both orders one say, which its rankings share;
            ``separate`` a say for each.

    Raises:
        InputError: no ballot is left.
    """
    rules, items = Rules.of(folder), without_controls(folder.items())
    voting = [p for p in rules.voting if wanted(p.id, judges)]
    names = [p.id for p in sorted(voting, key=lambda p: p.id)]
    judgments = [j for j in folder.judgments() if j.judge in names]
    said = unblinded(judgments, Blinds.of(folder.blinding()), rules.presentations)
    truth = truths(items, folder.labels()) if decisive else {}
    decided = {name for name, label in truth.items() if label.winner not in (TIE, None)}
    kept = [
        item
        for item in items
        if wanted(item.tags[0] if item.tags else None, subset)
        and (not decisive or item.item_id in decided)
    ]
    ids = {item.item_id for item in kept}
    everyone = sorted({r.candidate for r in folder.responses() if r.item_id in ids})
    met = {name for i in ids & said.keys() for name in said[i].candidates}
    found = _Cast.of(
        [(at, item, said[item.item_id]) for at, item in enumerate(kept) if item.item_id in said],
        names,
        [name for name in everyone if name in met],
    )
    if not found.ranks:
        raise InputError(
            "no ballot is left", path=folder.path, hint="leave out a filter, or clash resume"
        )
    weight = {p.id: p.weight for p in voting}
    return NamedBallots(
        candidates=tuple(name for name in everyone if name in met),
        judges=tuple(names),
        weights=np.array([weight[name] for name in names]),
        ballots=ranking_array(
            found.ranks,
            found.shares if copies == "merge" else None,
            found.judges,
            found.items,
            found.clusters,
        ),
        n_items=len(kept),
        failed=sum(j.ranking is None and j.item_id in ids for j in judgments),
        absent=tuple(name for name in everyone if name not in met),
        source=str(folder.path),
    )


@dataclass(frozen=True)
class _Cast:
    """The columns of a run's ballots."""

    ranks: list[Floats]
    shares: list[float]
    judges: list[int]
    items: list[int]
    clusters: list[int]

    @classmethod
    def of(
        cls,
        judged: Iterable[tuple[int, Item, Said]],
        names: Sequence[str],
        candidates: Sequence[str],
    ) -> _Cast:
        """Each item with its number and what was said of it."""
        cast, clusters = cls([], [], [], [], []), _Numbers()
        column = {name: k for k, name in enumerate(candidates)}
        for at, item, said in judged:
            place = [column[name] for name in said.candidates]
            for judge, given in said.ranks.items():
                for ranking in given:
                    row = np.full(len(candidates), np.nan)
                    row[place] = ranking
                    cast.ranks.append(row)
                    cast.shares.append(1 / len(given))
                    cast.judges.append(names.index(judge))
                    cast.items.append(at)
                    cast.clusters.append(clusters[item.cluster])
        return cast


class _Numbers(dict[str, int]):
    """A number for each name, as they come."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]


def file_ballots(
    path: str | Path,
    *,
    judges: Sequence[str] | None = None,
    subset: Sequence[str] | None = None,
    presentation: str | None = None,
    decisive: bool = False,
    copies: str = "merge",
) -> NamedBallots | None:
    """The ballots of a votes file; null where its lines name no candidates.

    Args:
        path: the file.
        judges: ids with wildcards; null for all.
        subset: subsets, likewise.
        presentation: the presentation to keep.
        decisive: only votes whose label is a side.
        copies: ``merge`` gives a judge one say on an item, which its votes in several orders and
            repeats share; ``separate`` a say for each.

    Raises:
        InputError: as ``read_votes``; a line that names only one of a pair; scores of a pair, or
            of models without a ``group``.
        StatisticsError: no ballot orders two candidates.
    """
    file = Path(path)
    if holds_ballots(file):
        given = read_ballots(file, judges, subset, presentation, decisive=decisive)
        return _named(given, copies, str(file))
    columns = Columns(text=is_csv(file), further=NAMES)
    for lines in read_lines(file, NamedLine):
        columns.add(lines)
    table = Table.of(columns, file).filtered(
        None if judges is None else list(judges),
        None if subset is None else list(subset),
        presentation,
        decisive=decisive,
    )
    pairs = any(name is not None for name in table.names["model_a"])
    if not pairs and all(name is None for name in table.names["model"]):
        return None
    names, judge_of = table.judges()
    table.rows(judge_of, len(names))
    found = _pairs(table) if pairs else _scores(table)
    merged = copies == "merge"
    share = _shares(found.items, judge_of[found.lines]) if merged else np.ones(len(found.lines))
    kept, candidates = _present(found)
    return NamedBallots(
        candidates=candidates,
        judges=names,
        weights=np.ones(len(names)),
        ballots=ranking_array(kept, share, judge_of[found.lines], found.items, found.clusters),
        n_items=found.n_items,
        failed=int(np.isnan(table.values["vote"][table.codes["vote"]]).sum()),
        notes=found.notes,
        source=str(file),
    )


def _named(given: Sequence[Ballot], copies: str, source: str) -> NamedBallots:
    """The ballots of a file of ballots.

    Raises:
        StatisticsError: none orders two candidates.
    """
    cast = [ballot for ballot in given if ballot.places is not None and len(ballot.places) > 1]
    if not cast:
        raise StatisticsError("no ballot orders two candidates")
    names = sorted({name for ballot in cast for name in ballot.places or {}})
    judges = sorted({ballot.judge for ballot in given})
    ranks = [[(ballot.places or {}).get(name, np.nan) for name in names] for ballot in cast]
    items, clusters = _Numbers(), _Numbers()
    item = np.array([items[ballot.item] for ballot in cast])
    judge = np.array([judges.index(ballot.judge) for ballot in cast])
    cluster = [clusters[ballot.group or f"\0{ballot.item}"] for ballot in cast]
    share = _shares(item, judge) if copies == "merge" else None
    return NamedBallots(
        candidates=tuple(names),
        judges=tuple(judges),
        weights=np.ones(len(judges)),
        ballots=ranking_array(ranks, share, judge, item, cluster),
        n_items=len({ballot.item for ballot in given}),
        failed=sum(ballot.places is None for ballot in given),
        source=source,
    )


@dataclass(frozen=True)
class _Found:
    """Ballots as a table has them; ``lines`` is a line of each, for its judge."""

    candidates: tuple[str, ...]
    ranks: Floats
    lines: Codes
    items: Codes
    clusters: Codes
    n_items: int
    notes: tuple[str, ...]


def _pairs(table: Table) -> _Found:
    """A ballot for each vote on two named models."""
    if table.kind("vote") == "numeric":
        raise InputError(
            "these votes are scores of a pair",
            path=table.file,
            field="vote",
            hint='write "A", "B" or "tie", or a line for each model with its score and `model`',
        )
    index = {name: k for k, name in enumerate(_names(table, "model_a", "model_b"))}
    first, second = (_indices(table, name, index) for name in ("model_a", "model_b"))
    for name, codes in (("model_a", first), ("model_b", second)):
        if (codes < 0).any():
            hint = "name both models on every line, or on none"
            table.fail("is missing", int(np.flatnonzero(codes < 0)[0]), name, hint)
    votes = table.values["vote"][table.codes["vote"]]
    alone = first == second
    lines = np.flatnonzero(~np.isnan(votes) & ~alone)
    ranks = np.full((len(lines), len(index)), np.nan)
    row = np.arange(len(lines))
    ranks[row, first[lines]] = 1 - votes[lines]
    ranks[row, second[lines]] = votes[lines]
    notes = [f"{alone.sum()} votes compare a model with itself: left out"] if alone.any() else []
    item = table.codes["item"]
    return _Found(
        tuple(index),
        ranks,
        lines,
        item[lines].astype(np.intp),
        _clusters(table)[lines],
        len(np.unique(item[~alone])),
        tuple(notes),
    )


def _scores(table: Table) -> _Found:
    """A ballot for each judge and group of scored models, in one presentation and repeat."""
    group = table.codes["group"]
    index = {name: k for k, name in enumerate(_names(table, "model"))}
    model = _indices(table, "model", index)
    hint = "a score has its `model`, and the `group` of the responses it is compared with"
    for name, empty in (("model", model < 0), ("group", _blank(table, "group"))):
        if empty.any():
            table.fail("is missing", int(np.flatnonzero(empty)[0]), name, hint)
    votes = table.values["vote"][table.codes["vote"]]
    known = np.flatnonzero(~np.isnan(votes))
    keys = [table.codes[name] for name in ("group", "judge", "presentation", "repeat")]
    _, first, ballot = np.unique(
        np.stack(keys)[:, known], axis=1, return_index=True, return_inverse=True
    )
    ranks = np.full((len(first), len(index)), np.nan)
    ranks[ballot.ravel(), model[known]] = -votes[known]
    if len(known) != int((~np.isnan(ranks)).sum()):
        twice = Counter(zip(ballot.ravel().tolist(), model[known].tolist(), strict=True))
        (row, k), n = twice.most_common(1)[0]
        at = known[np.flatnonzero((ballot.ravel() == row) & (model[known] == k))[1]]
        table.fail(
            f"{n} scores of one model by one judge in one group",
            int(at),
            "model",
            "give repeated scores a different repeat",
        )
    lines = known[first]
    return _Found(
        tuple(index),
        ranks,
        lines,
        group[lines].astype(np.intp),
        group[lines].astype(np.intp),
        len(np.unique(group)),
        ("a ballot is the order of the scores that a judge gave within a group",),
    )


def _names(table: Table, *columns: str) -> list[str]:
    """The names that stand in the lines that are left."""
    found: set[str] = set()
    for column in columns:
        names = table.names[column]
        found |= {name for code in np.unique(table.codes[column]) if (name := names[code])}
    return sorted(found)


def _indices(table: Table, column: str, index: Mapping[str, int]) -> Codes:
    """The model of each line; -1 where it names none."""
    code = [-1 if name is None else index.get(name, -1) for name in table.names[column]]
    return np.array(code, dtype=np.intp)[table.codes[column]]


def _blank(table: Table, column: str) -> NDArray[np.bool_]:
    nothing = np.array([name is None for name in table.names[column]])
    return np.asarray(nothing[table.codes[column]])


def _clusters(table: Table) -> Codes:
    """The group of each line where it names one, else its item."""
    group, item = table.codes["group"].astype(np.intp), table.codes["item"].astype(np.intp)
    return np.where(_blank(table, "group"), item + len(table.names["group"]), group)


def _shares(items: Codes, judges: Codes) -> Floats:
    """Of one say, shared by the ballots that a judge cast on an item."""
    cell = items * (int(judges.max(initial=0)) + 1) + judges
    _, where, count = np.unique(cell, return_inverse=True, return_counts=True)
    share: Floats = 1 / count[where.ravel()]
    return share


def _present(found: _Found) -> tuple[Floats, tuple[str, ...]]:
    """The columns of candidates that stand on a ballot, and their names."""
    here = (~np.isnan(found.ranks)).any(axis=0)
    if here.sum() < 2:
        raise StatisticsError("no ballot orders two candidates")
    names = tuple(found.candidates[k] for k in np.flatnonzero(here).tolist())
    return found.ranks[:, here], names
