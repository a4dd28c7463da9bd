"""Lines of votes files (JSONL or CSV, plain or gzip) and of files of rankings (JSONL).

A file of rankings has a ranking of named candidates on each line:

    {"item": "q1", "judge": "gpt", "ranking": [["ada"], ["bob", "eve"]], "label": "ada"}

Best first; a group of several is a tie, and a name may stand without its brackets. A null ranking
is a judge that failed. The label is a candidate's name, ``tie``, or a ranking too. Models of two
sides read such a file as a vote for each pair of a ranking, as they read a run
(:mod:`clash.votes.from_run`).
"""

from __future__ import annotations

import itertools
import operator
import re
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from clash.documents import parse_record
from clash.errors import InputError
from clash.escape import from_csv
from clash.files.csv_reader import read_csv
from clash.files.inputs import byte_lines, open_bytes, without_gz
from clash.labels import TIE, ItemLabel, ranks_of, side
from clash.votes.matrix import VoteRow, matches_globs, pair_item

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clash.records import Groups

_CHUNK = 1 << 19
_ROWS = 4096
_LONGEST_LINE = 16 << 20
_ESCAPED_ASCII = re.compile(rb"\\u00[2-7]")
"""No writer escapes a letter of a key; with one, a key is not found by its letters."""
AnyLine = TypeVar("AnyLine", bound=msgspec.Struct)
"""A struct with ``item`` and ``judge`` first, and a line to show in error messages in ``example``."""


class VoteLine(msgspec.Struct, gc=False):
    """A line of a votes file; keys it does not know are passed over undecoded."""

    item: str | int
    judge: str | int
    vote: str | float | bool | None
    label: str | float | bool | None = None
    family: str | None = None
    subset: str | int | None = None
    group: str | int | None = None
    presentation: str | int | None = None
    repeat: str | int | float | None = None

    example: ClassVar[str] = '{"item": "q1", "judge": "gpt", "vote": "A"}'


class NamedVoteLine(VoteLine, gc=False):
    """A line that says whose responses were judged: the two of a pair, or the one of a score."""

    model_a: str | None = None
    model_b: str | None = None
    model: str | None = None


MODEL_KEYS = ("model_a", "model_b", "model")
"""The keys of a named line that say whose responses were judged."""


def read_lines(file: Path, kind: type[AnyLine]) -> Iterator[list[AnyLine]]:
    """The votes of a file, in chunks; CSV where the name says so, else JSONL.

    Args:
        file: the file.
        kind: what a line becomes: a :class:`VoteLine`, or a kind that knows more keys.

    Raises:
        InputError: a line is not a vote, or the file cannot be read.
    """
    return _csv_rows(file, kind) if is_csv(file) else _json_rows(file, kind)


def first_line(file: Path) -> bytes:
    """The first line that holds something; empty where none does.

    Raises:
        InputError: the file cannot be read.
    """
    with open_bytes(file) as stream:
        nonempty = (text for text in byte_lines(stream, file) if text.strip())
        return next(nonempty, b"").removeprefix(b"\xef\xbb\xbf")


def is_csv(file: Path) -> bool:
    """Whether a name says CSV, packed or not, or Excel; everything else is JSONL."""
    return without_gz(file).suffix.lower() in (".csv", ".xlsx")


def line_number(file: Path, at: int) -> int:
    """The line that holds the vote ``at`` (from 0); the file is read again for it."""
    if is_csv(file):
        return next(itertools.islice(read_csv(file).rows, at, None))[0]
    with open_bytes(file) as stream:
        lines = enumerate(byte_lines(stream, file), start=1)
        nonempty = (number for number, text in lines if text.strip())
        return next(itertools.islice(nonempty, at, None))


def _json_rows(file: Path, kind: type[AnyLine]) -> Iterator[list[AnyLine]]:
    decoder = msgspec.json.Decoder(kind)
    line = 0
    with open_bytes(file) as stream:
        tail = stream.read(3)
        tail = b"" if tail == b"\xef\xbb\xbf" else tail
        while chunk := stream.read(_CHUNK):
            block, newline, next_tail = (tail + chunk).rpartition(b"\n")
            tail = next_tail
            if len(tail) > _LONGEST_LINE:
                number = line + block.count(b"\n") + bool(newline) + 1
                raise InputError(
                    f"is longer than {_LONGEST_LINE >> 20} MB",
                    path=file,
                    line=number,
                    hint="one vote a line",
                )
            if newline:
                yield _decode(decoder, block, file, line)
                line += block.count(b"\n") + 1
        if tail.strip():
            yield _decode(decoder, tail, file, line)


def _decode(
    decoder: msgspec.json.Decoder[AnyLine], block: bytes, file: Path, line: int
) -> list[AnyLine]:
    try:
        rows: list[AnyLine] = decoder.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # One call decodes thousands of lines; only a failure is worth a search for its line.
        for number, text in enumerate(block.split(b"\n"), start=line + 1):
            if text.strip():
                _decode_line(decoder, text, file, number)
        raise
    _check_keys(block, decoder.type, file, line)
    return rows


def _check_keys(block: bytes, kind: type[msgspec.Struct], file: Path, line: int) -> None:
    """Refuse a line that has a key twice, of which the decoder takes the last.

    Lines are read a second time only in a block where one may have a key twice.
    """
    keys = [f'"{name}"'.encode() for name in kind.__struct_fields__]
    if not _ESCAPED_ASCII.search(block) and not any(_stands_twice(block, key) for key in keys):
        return
    for number, text in enumerate(block.split(b"\n"), start=line + 1):
        if _ESCAPED_ASCII.search(text) or any(text.count(key) > 1 for key in keys):
            parse_record(text, file, number)


def _stands_twice(block: bytes, text: bytes) -> bool:
    """Whether some line of a block holds a text twice."""
    between = block.split(text)[1:-1]
    return not all(map(operator.contains, between, itertools.repeat(b"\n")))


def _decode_line(decoder: msgspec.json.Decoder[Any], text: bytes, file: Path, number: int) -> None:
    try:
        decoder.decode(text)
    except msgspec.ValidationError as error:
        message, _, where = str(error).partition(" - at `$")
        raise InputError(
            message,
            path=file,
            line=number,
            field=where.strip("`.") or None,
            hint=f"a line is like {decoder.type.example}",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"is not JSON: {error}", path=file, line=number, hint="one JSON object a line"
        ) from None


def _csv_rows(file: Path, kind: type[AnyLine]) -> Iterator[list[AnyLine]]:
    table = read_csv(file)
    _check_header(table.header, file)
    lines = (_csv_line(row, file, line, kind) for line, row in table.rows)
    while rows := list(itertools.islice(lines, _ROWS)):
        yield rows


def _check_header(columns: Sequence[str], file: Path) -> None:
    for name in ("item", "judge", "vote"):
        if name not in columns:
            raise InputError(
                f"has no column {name!r}",
                path=file,
                line=1,
                hint="the header is item,judge,vote and, optionally, label,family,subset,…",
            )


def _csv_line(row: Mapping[str, str], file: Path, line: int, kind: type[AnyLine]) -> AnyLine:
    for name in ("item", "judge"):
        if not row.get(name):
            raise InputError("is empty", path=file, line=line, field=name)
    optional = {
        name: from_csv(row[name]) if row.get(name) else None for name in kind.__struct_fields__[2:]
    }
    return kind(item=from_csv(row["item"]), judge=from_csv(row["judge"]), **optional)


Ranking = list[str | list[str]]


class RankingLine(msgspec.Struct, gc=False):
    """A line of a file of rankings; keys it does not know are passed over."""

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
        copy: tells a judge's several rankings of an item apart: presentation and repeat.
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
    """The rankings of a file that pass a command's filters.

    Args:
        file: the file.
        judges: ids with wildcards; null for all.
        subset: subsets, likewise.
        presentation: the presentation to keep.
        decisive: only items whose label is a candidate.

    Raises:
        InputError: with file and line, where a line is no ranking, names a candidate twice, is a
            judge's second on an item, or has another label; without line, where nothing is left.
    """
    rankings, keys, labels = [], set(), dict[str, ItemLabel]()
    lines = (line for chunk in read_lines(file, RankingLine) for line in chunk)
    for at, line in enumerate(lines):
        ranking = _judge_ranking(line, file, at)
        key = (ranking.item, ranking.judge, ranking.copy)
        if key in keys:
            hint = "give repeated rankings a different repeat, or keep one"
            problem = f"a second ranking of {ranking.judge!r} on item {ranking.item!r}"
            raise InputError(problem, path=file, line=line_number(file, at), hint=hint)
        if ranking.label and labels.setdefault(ranking.item, ranking.label) != ranking.label:
            hint = "a label belongs to the item: write the same one on all its rankings"
            problem = f"item {ranking.item!r} has two labels"
            raise InputError(
                problem, path=file, line=line_number(file, at), field="label", hint=hint
            )
        keys.add(key)
        rankings.append(ranking)
    wanted_rankings = [
        ranking
        for ranking in rankings
        if matches_globs(ranking.judge, judges)
        and matches_globs(ranking.subset, subset)
        and presentation in (None, ranking.presentation)
        and not (decisive and (ranking.label is None or ranking.label.choice in (None, TIE)))
    ]
    if not wanted_rankings:
        raise InputError("no ranking is left", path=file, hint="leave out a filter")
    return wanted_rankings


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
                f"candidate {name!r} appears twice" if name else "a candidate has no name",
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
    """A vote for each ranking and pair of its item's candidates; side A is the first by name.

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
                item=pair_item(ranking.item, first, second, len(names)),
                judge=ranking.judge,
                vote=side(ranking.places or {}, first, second),
                label=None if ranking.label is None else ranking.label.side(first, second),
                family=ranking.family,
                subset=ranking.subset,
                group=ranking.group or (ranking.item if len(names) > 2 else None),
                repeat=ranking.copy,
            )
