"""Votes files as chunks of lines: JSONL or CSV, plain or gzip."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import IO

_CHUNK = 1 << 19
_ROWS = 4096
AnyLine = TypeVar("AnyLine", bound=msgspec.Struct)
"""A struct with ``item`` and ``judge`` first, and an example of a line in ``like``."""


class Line(msgspec.Struct, gc=False):
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

    like: ClassVar[str] = '{"item": "q1", "judge": "gpt", "vote": "A"}'


class NamedLine(Line, gc=False):
    """A line that says whose responses were judged: the two of a pair, or the one of a score."""

    model_a: str | None = None
    model_b: str | None = None
    model: str | None = None


NAMES = ("model_a", "model_b", "model")
"""The keys of a named line that say whose responses were judged."""


@contextlib.contextmanager
def _open(file: Path) -> Iterator[IO[bytes]]:
    try:
        with file.open("rb") as raw:
            packed = raw.peek(2)[:2] == b"\x1f\x8b"
            if not packed:
                yield raw
                return
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield io.BufferedReader(unpacked, _CHUNK)
    except FileNotFoundError:
        raise InputError("no such file", path=file, mend="check the path") from None
    except IsADirectoryError:
        raise InputError("is a folder, expected a votes file", path=file) from None
    except PermissionError:
        raise InputError("may not be read (permission denied)", path=file) from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise InputError(f"is a damaged .gz file: {error}", path=file) from None


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
    with _open(file) as stream:
        return next((text for text in stream if text.strip()), b"").removeprefix(b"\xef\xbb\xbf")


def is_csv(file: Path) -> bool:
    """Whether a name says CSV, packed or not; everything else is JSONL."""
    return file.name.lower().removesuffix(".gz").endswith(".csv")


def line_number(file: Path, at: int) -> int:
    """The line that holds the vote ``at`` (from 0); the file is read again for it."""
    if is_csv(file):
        with _open(file) as stream:
            reader = _csv_reader(stream)
            return next(reader.line_num for i, _ in enumerate(reader) if i == at)
    with _open(file) as stream:
        filled = (number for number, text in enumerate(stream, start=1) if text.strip())
        return next(number for i, number in enumerate(filled) if i == at)


def _json_rows(file: Path, kind: type[AnyLine]) -> Iterator[list[AnyLine]]:
    decoder = msgspec.json.Decoder(kind)
    line = 0
    with _open(file) as stream:
        rest = stream.read(3)
        rest = b"" if rest == b"\xef\xbb\xbf" else rest
        while chunk := stream.read(_CHUNK):
            block, newline, rest_of = (rest + chunk).rpartition(b"\n")
            rest = rest_of
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
    except (msgspec.DecodeError, UnicodeDecodeError):
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
            mend=f"a line is like {decoder.type.like}",
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"is not JSON: {error}", path=file, line=number, mend="one JSON object a line"
        ) from None


def _csv_rows(file: Path, kind: type[AnyLine]) -> Iterator[list[AnyLine]]:
    with _open(file) as stream:
        reader = _csv_reader(stream)
        try:
            _check_header(reader.fieldnames or (), file)
            lines = (_csv_line(row, file, reader.line_num, kind) for row in reader)
            while rows := list(itertools.islice(lines, _ROWS)):
                yield rows
        except UnicodeDecodeError:
            raise InputError("is not UTF-8", path=file, mend="save it as UTF-8") from None
        except csv.Error as error:
            raise InputError(f"is not CSV: {error}", path=file, line=reader.line_num) from None


def _check_header(columns: Sequence[str], file: Path) -> None:
    for name in ("item", "judge", "vote"):
        if name not in columns:
            raise InputError(
                f"has no column {name!r}",
                path=file,
                line=1,
                mend="the header is item,judge,vote and, optionally, label,family,subset,…",
            )


def _csv_reader(stream: IO[bytes]) -> csv.DictReader[str]:
    return csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))


def _csv_line(row: Mapping[str, str | None], file: Path, line: int, kind: type[AnyLine]) -> AnyLine:
    for name in ("item", "judge"):
        if not row[name]:
            raise InputError("is empty", path=file, line=line, field=name)
    optional = {name: row.get(name) or None for name in kind.__struct_fields__[2:]}
    return kind(item=row["item"] or "", judge=row["judge"] or "", **optional)
