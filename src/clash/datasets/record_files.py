"""Files of records, whatever they are written in: JSON Lines, JSON, CSV, TSV, Parquet, gzip.

Rows come one at a time, so that a file of a hundred thousand conversations need not fit in
memory, and each knows where it stands, so that an error can point at it.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from clash import documents
from clash.errors import InputError
from clash.extras import require
from clash.files.csv_reader import read_csv
from clash.files.inputs import byte_lines, open_bytes, unpacked_bound, without_gz

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyarrow.parquet import FileMetaData

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".jsonl.zip")

_ROWS = 256
_MAX_COLUMNS = 10_000
_MAX_PARTS = 100_000
_MAX_VALUES = 50_000_000
_MAX_COLUMN_BYTES = 1 << 30
_MAX_BATCH_BYTES = 512 << 20
"""Bounds of a Parquet file: rows read at once, columns of the file, columns of all its row groups,
rows and values of a column, bytes of a column in a row group, bytes of the rows read at once."""


@dataclass(frozen=True)
class SourceRow:
    """One record and where it stands.

    Attributes:
        line: line of the file, counted from 1; null where the format has no lines.
        number: place among the records, counted from 1.
    """

    path: Path
    number: int
    value: Mapping[str, Any]
    line: int | None = None

    def error(
        self, message: str, field: str | None = None, *, hint: str | None = None
    ) -> InputError:
        """An :class:`InputError` that points at this row."""
        if self.line is None:
            field = f"record {self.number}" + (f", {field}" if field else "")
        return InputError(message, path=self.path, line=self.line, field=field, hint=hint)

    def get(self, *names: str) -> Any:  # noqa: ANN401 - any JSON value
        """The first of these fields that has a value; null, NaN and an empty text are none."""
        for name in names:
            value = self.value.get(name)
            if value is not None and value != "" and not _is_nan(value):
                return value
        return None

    def text(self, *names: str) -> str:
        """The first of these fields that has a value, as text.

        Raises:
            InputError: none has one, or it is a list or an object.
        """
        value = self.get(*names)
        if value is None:
            raise self.error("is missing or empty", names[0], hint=_or(names))
        return self._as_text(value, names[0])

    def optional(self, *names: str) -> str | None:
        """As :meth:`text`, null where none has a value."""
        value = self.get(*names)
        return None if value is None else self._as_text(value, names[0])

    def verbatim(self, *names: str) -> str | None:
        """The first of these fields that is there, as text: an empty text is a text.

        Raises:
            InputError: none is there, or it is a list or an object.
        """
        for name in names:
            if name in self.value:
                value = self.value[name]
                return None if value is None or _is_nan(value) else self._as_text(value, name)
        raise self.error("is missing", names[0], hint=_or(names))

    def _as_text(self, value: Any, name: str) -> str:  # noqa: ANN401 - any JSON value
        if isinstance(value, list | dict):
            raise self.error(f"expected text, found {type(value).__name__}", name)
        return value if isinstance(value, str) else str(value)


def rows(path: Path) -> Iterator[SourceRow]:
    """The records of a file.

    Raises:
        InputError: the file is missing, of another format, or broken; names file and line.
    """
    with open_bytes(path):
        suffix = without_gz(path).suffix.lower()
    match suffix:
        case ".jsonl" | ".ndjson":
            return _json_lines(path)
        case ".json":
            return _json_list(path)
        case ".csv":
            return _csv(path, ",")
        case ".tsv":
            return _csv(path, "\t")
        case ".parquet":
            return _parquet(path)
        case ".zip":
            return _zip(path)
        case other:
            raise InputError(
                f"has an ending that holds no records ({other or 'none'})",
                path=path,
                hint=f"one of {', '.join(SUFFIXES)}; all but Parquet also as .gz",
            )


def files_below(path: Path, *patterns: str) -> list[Path]:
    """The file itself, or the files below a folder that match: pattern by pattern, by name."""
    if path.is_file():
        return [path]
    return [file for pattern in patterns for file in sorted(path.rglob(pattern))]


def first(path: Path) -> SourceRow | None:
    """The first record of a file, null where it has none."""
    return next(iter(rows(path)), None)


def read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """A whole JSON file; ``NaN`` is allowed, as pandas writes it.

    Raises:
        InputError: it is missing, too large, not gzip of UTF-8, or not JSON.
    """
    return documents.read_json(path).value


def _json_lines(path: Path) -> Iterator[SourceRow]:
    for number, record in enumerate(documents.read_jsonl(path), start=1):
        yield SourceRow(path, number, record.value, record.line(()))


def _zip(path: Path) -> Iterator[SourceRow]:
    """The records of the one JSON Lines file in an archive."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            parts = [part for part in archive.infolist() if part.filename.endswith(".jsonl")]
            if len(parts) != 1:
                raise InputError(f"holds {len(parts)} files of JSON Lines, not one", path=path)
            bound = unpacked_bound(path.stat().st_size)
            _check_bound("bytes once unpacked", parts[0].file_size, bound, path)
            with archive.open(parts[0]) as file:
                for number, line in enumerate(byte_lines(cast("BinaryIO", file), path), start=1):
                    if line.strip():
                        yield SourceRow(
                            path, number, documents.parse_record(line, path, number), number
                        )
    # RuntimeError: encrypted, or packed in a way that zipfile does not know.
    except (BadZipFile, RuntimeError, EOFError, zlib.error) as error:
        raise InputError(
            f"is no archive that can be read: {error}", path=path, hint="unpack it yourself"
        ) from None


def _json_list(path: Path) -> Iterator[SourceRow]:
    value = read_json(path)
    if not isinstance(value, list):
        raise InputError("expected a list of objects", path=path)
    for number, record in enumerate(value, start=1):
        if not isinstance(record, dict):
            raise InputError("expected an object", path=path, field=f"record {number}")
        yield SourceRow(path, number, record)


def _csv(path: Path, delimiter: str) -> Iterator[SourceRow]:
    for number, (line, record) in enumerate(read_csv(path, delimiter).rows, start=1):
        yield SourceRow(path, number, record, line)


def _parquet(path: Path) -> Iterator[SourceRow]:
    require("pyarrow", field=str(path))
    import pyarrow as pa
    from pyarrow import parquet

    number = n_characters = 0
    # Values that a column repeats are stored once.
    most_characters = max(_MAX_COLUMN_BYTES, unpacked_bound(path.stat().st_size))
    try:
        with parquet.ParquetFile(path) as file:
            batch_size = _check_parquet(file.metadata, path)
            for batch in file.iter_batches(batch_size=batch_size):
                for record in batch.to_pylist():
                    number += 1
                    n_characters += _text_size(record)
                    _check_bound("characters once unpacked", n_characters, most_characters, path)
                    yield SourceRow(path, number, record)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"is not Parquet: {reason}", path=path, hint="pull it again") from None
    except (ValueError, OverflowError) as error:  # text that is no UTF-8, a date beyond Python's
        message = f"a value in or after record {number + 1} cannot be read: {error}"
        raise InputError(message, path=path, hint="write it as JSON Lines (.jsonl)") from None


def _check_parquet(metadata: FileMetaData, path: Path) -> int:
    """Refuse a file that promises more than fits in memory; how many rows to read at once.

    A few bytes can stand for millions of values, and one value be as long as its column.

    Raises:
        InputError: too many columns, rows, values of a column, or bytes; or it unpacks to so many
            times its size as a decompression bomb does.
    """
    n_parts = metadata.num_columns * metadata.num_row_groups
    _check_bound("columns", metadata.num_columns, _MAX_COLUMNS, path)
    _check_bound("parts of columns", n_parts, _MAX_PARTS, path)
    _check_bound("rows", metadata.num_rows, _MAX_VALUES, path)
    longest, total = 1, 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name = column.path_in_schema
            _check_bound(f"values in {name!r}", column.num_values, _MAX_VALUES, path)
            size = column.total_uncompressed_size
            _check_bound(f"bytes in {name!r}", size, _MAX_COLUMN_BYTES, path)
            longest, total = max(longest, size), total + size
    _check_bound("bytes once unpacked", total, unpacked_bound(path.stat().st_size), path)
    return max(1, min(_ROWS, _MAX_BATCH_BYTES // longest))


def _text_size(value: object) -> int:
    """The characters, and bytes, of a value and its parts."""
    if isinstance(value, str | bytes):
        return len(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_text_size, parts))


def _check_bound(unit: str, count: int, bound: int, path: Path) -> None:
    if not 0 <= count <= bound:
        raise InputError(
            f"holds {count:,} {unit}; {bound:,} are read at most",
            path=path,
            hint="if you trust it, write it as JSON Lines (.jsonl), which is read line by line",
        )


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _or(names: Sequence[str]) -> str:
    return f"the record needs {' or '.join(names)}"
