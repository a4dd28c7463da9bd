"""Files of ballots: a ranking of named candidates on each line.

    {"item": "q1", "judge": "gpt", "ranking": [["ada"], ["bob", "eve"]], "label": "ada"}

Best first; a group of several is a tie, and a name may stand without its brackets. A null ranking
is a judge that failed. The label is a candidate's name, ``tie``, or a ranking too. Models of two sides read such a
file as a vote for each pair of a ranking, as they read a run (:mod:`clash.votes.from_run`).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, ClassVar

import msgspec

from clash.errors import InputError
from clash.labels import TIE, ItemLabel, ranks_of, side
from clash.votes.lines import first_line, is_csv, line_number, read_lines
from clash.votes.matrix import VoteRow, matches_globs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.records import Groups


Ranking = list[str | list[str]]


class RankingLine(msgspec.Struct, gc=False):
    """A line of a file of ballots; keys it does not know are passed over."""

    item: str | int
    judge: str | int
    ranking: Ranking | None
    label: str | Ranking | None = None
    family: str | None = None
    subset: str | int | None = None
    group: str | int | None = None
    presentation: str | int | None = None
    repeat: str | int | float | None = None

    example: ClassVar[str] = '{"item": "q1", "judge": "gpt", "ranking": [["ada"], ["bob", "eve"]]}'


@dataclass(frozen=True)
class JudgeRanking:
    """One judge's ranking of one item.

    Attributes:
        places: of each candidate, 0 is best; null where the judge failed.
        copy: what tells a judge's several ballots on an item apart.
    """

    item: str
    judge: str
    places: Mapping[str, int] | None
    label: ItemLabel | None
    family: str | None
    subset: str | None
    group: str | None
    presentation: str | None
    copy: str | None


def holds_rankings(file: Path) -> bool:
    """Whether the first line of a file has a ranking and no vote."""
    if is_csv(file):
        return False
    try:
        keys = msgspec.json.decode(first_line(file))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False  # the reader of votes says what is wrong with it
    return isinstance(keys, dict) and "ranking" in keys and "vote" not in keys


def read_rankings(
    file: Path,
    judges: Sequence[str] | None = None,
    subset: Sequence[str] | None = None,
    presentation: str | None = None,
    *,
    decisive: bool = False,
) -> list[JudgeRanking]:
    """The ballots of a file that a command asked for.

    Args:
        file: the file.
        judges: ids with wildcards; null for all.
        subset: subsets, likewise.
        presentation: the presentation to keep.
        decisive: only items whose label is a candidate.

    Raises:
        InputError: with file and line, where a line is no ballot, names a candidate twice, is a
            judge's second on an item, or has another label; without line, where nothing is left.
    """
    rankings, keys, labels = [], set(), dict[str, ItemLabel]()
    lines = (line for chunk in read_lines(file, RankingLine) for line in chunk)
    for at, line in enumerate(lines):
        ranking = _judge_ranking(line, file, at)
        key = (ranking.item, ranking.judge, ranking.copy)
        if key in keys:
            hint = "give repeated ballots a different repeat, or keep one"
            problem = f"a second ballot of {ranking.judge!r} on item {ranking.item!r}"
            raise InputError(problem, path=file, line=line_number(file, at), hint=hint)
        if ranking.label and labels.setdefault(ranking.item, ranking.label) != ranking.label:
            hint = "a label is of the item: write the same one on all its ballots"
            problem = f"item {ranking.item!r} has two labels"
            raise InputError(problem, path=file, line=line_number(file, at), field="label", hint=hint)
        keys.add(key)
        rankings.append(ranking)
    chosen = [
        ballot
        for ballot in rankings
        if matches_globs(ballot.judge, judges)
        and matches_globs(ballot.subset, subset)
        and presentation in (None, ballot.presentation)
        and not (decisive and (ballot.label is None or ballot.label.choice in (None, TIE)))
    ]
    if not chosen:
        raise InputError("no ballot is left", path=file, hint="leave out a filter")
    return chosen


def _judge_ranking(line: RankingLine, file: Path, at: int) -> JudgeRanking:
    ranking = None if line.ranking is None else _check_groups(line.ranking, file, at, "ranking")
    presentation, repeat = _text(line.presentation), _text(line.repeat)
    return JudgeRanking(
        item=str(line.item),
        judge=str(line.judge),
        places=None if ranking is None else ranks_of(ranking),
        label=_item_label(line.label, file, at),
        family=line.family,
        subset=_text(line.subset),
        group=_text(line.group),
        presentation=presentation,
        copy=None if presentation is repeat is None else f"{presentation or ''}/{repeat or ''}",
    )


def _check_groups(ranking: Ranking, file: Path, at: int, field: str) -> Groups:
    groups = [[group] if isinstance(group, str) else group for group in ranking]
    names: set[str] = set()
    for name in chain.from_iterable(groups):
        if not name or name in names:
            raise InputError(
                f"candidate {name!r} stands twice" if name else "a candidate has no name",
                path=file,
                line=line_number(file, at),
                field=field,
                hint="every candidate once, best first; a list of several is a tie",
            )
        names.add(name)
    return groups


def _item_label(label: str | Ranking | None, file: Path, at: int) -> ItemLabel | None:
    if not label:
        return None
    if isinstance(label, str):
        return ItemLabel(label)
    return ItemLabel(None, _check_groups(label, file, at, "label"))


def _text(value: float | str | None) -> str | None:
    return None if value is None else str(value)


def pair_rows(rankings: Sequence[JudgeRanking]) -> Iterator[VoteRow]:
    """A vote for each ballot and pair of its item's candidates; side A is the first by name.

    A judge that failed has failed on every pair, and one that did not rank a candidate on each of
    that candidate's. Of K > 2 candidates the pairs of an item share its group.
    """
    candidates: dict[str, set[str]] = defaultdict(set)
    for ranking in rankings:
        candidates[ranking.item] |= set(ranking.places or {})
    for ranking in rankings:
        names = sorted(candidates[ranking.item])
        for first, second in combinations(names, 2):
            yield VoteRow(
                item=ranking.item if len(names) == 2 else f"{ranking.item}#{first}|{second}",
                judge=ranking.judge,
                vote=side(ranking.places or {}, first, second),
                label=None if ranking.label is None else ranking.label.side(first, second),
                family=ranking.family,
                subset=ranking.subset,
                group=ranking.group or (ranking.item if len(names) > 2 else None),
                repeat=ranking.copy,
            )
