"""Votes files as chunks of lines: JSONL or CSV, plain or gzip."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from clash.errors import InputError
from clash.escape import from_csv
from clash.files.csv_reader import read_csv
from clash.files.inputs import byte_lines, open_bytes, without_gz

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_CHUNK = 1 << 19
_ROWS = 4096
_LONGEST_LINE = 16 << 20
AnyLine = TypeVar("AnyLine", bound=msgspec.Struct)
"""A struct with ``item`` and ``judge`` first, and an example of a line in ``like``."""


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
        kind: what a line becomes: a :class:`Line`, or one that knows more keys.

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
        filled = (text for text in byte_lines(stream, file) if text.strip())
        return next(filled, b"").removeprefix(b"\xef\xbb\xbf")


def is_csv(file: Path) -> bool:
    """Whether a name says CSV, packed or not; everything else is JSONL."""
    return without_gz(file).suffix.lower() == ".csv"


def line_number(file: Path, at: int) -> int:
    """The line that holds the vote ``at`` (from 0); the file is read again for it."""
    if is_csv(file):
        return next(itertools.islice(read_csv(file).rows, at, None))[0]
    with open_bytes(file) as stream:
        lines = enumerate(byte_lines(stream, file), start=1)
        filled = (number for number, text in lines if text.strip())
        return next(itertools.islice(filled, at, None))


def _json_rows(file: Path, kind: type[AnyLine]) -> Iterator[list[AnyLine]]:
    decoder = msgspec.json.Decoder(kind)
    line = 0
    with open_bytes(file) as stream:
        rest = stream.read(3)
        rest = b"" if rest == b"\xef\xbb\xbf" else rest
        while chunk := stream.read(_CHUNK):
            block, newline, rest_of = (rest + chunk).rpartition(b"\n")
            rest = rest_of
            if len(rest) > _LONGEST_LINE:
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
        if rest.strip():
            yield _decode(decoder, rest, file, line)


def _decode(
    decoder: msgspec.json.Decoder[AnyLine], block: bytes, file: Path, line: int
) -> list[AnyLine]:
    try:
        return decoder.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The good road is one call for a thousand lines; only the bad one looks for the line.
        for number, text in enumerate(block.split(b"\n"), start=line + 1):
            if text.strip():
                _decode_line(decoder, text, file, number)
        raise


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
            hint=f"a line is like {decoder.type.like}",
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
