"""Files of records, whatever they are written in: JSON Lines, JSON, CSV, TSV, Parquet, gzip.

Rows come one at a time, so that a file of a hundred thousand conversations need not fit in
memory, and each knows where it stands, so that an error can point at it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")
_LONGEST_CELL = 1 << 30  # a conversation in a CSV cell is longer than Python's default limit


@dataclass(frozen=True)
class Row:
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
        self, message: str, field: str | None = None, *, mend: str | None = None
    ) -> InputError:
        """An :class:`InputError` that points at this row."""
        if self.line is None:
            field = f"record {self.number}" + (f", {field}" if field else "")
        return InputError(message, path=self.path, line=self.line, field=field, mend=mend)

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
            raise self.error("is missing or empty", names[0], mend=_or(names))
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
        raise self.error("is missing", names[0], mend=_or(names))

    def _as_text(self, value: Any, name: str) -> str:  # noqa: ANN401 - any JSON value
        if isinstance(value, list | dict):
            raise self.error(f"expected text, found {type(value).__name__}", name)
        return value if isinstance(value, str) else str(value)


def rows(path: Path) -> Iterator[Row]:
    """The records of a file.

    Raises:
        InputError: the file is missing, of another format, or broken; names file and line.
    """
    if not path.is_file():
        what = "is a folder, expected a file" if path.is_dir() else "no such file"
        raise InputError(what, path=path, mend="check the path")
    name = path.name.removesuffix(".gz")
    match Path(name).suffix.lower():
        case ".jsonl" | ".ndjson":
            return _json_lines(path)
        case ".json":
            return _json_list(path)
        case ".csv" | ".tsv":
            return _csv(path, "\t" if name.endswith(".tsv") else ",")
        case ".parquet":
            return _parquet(path)
        case other:
            raise InputError(
                f"has an ending that holds no records ({other or 'none'})",
                path=path,
                mend=f"one of {', '.join(SUFFIXES)}; all but Parquet also as .gz",
            )


def first(path: Path) -> Row | None:
    """The first record of a file, null where it has none."""
    return next(iter(rows(path)), None)


def read_json(path: Path) -> Any:  # noqa: ANN401 - any JSON value
    """A whole JSON file; ``NaN`` is allowed, as pandas writes it.

    Raises:
        InputError: it is missing, not gzip of UTF-8, or not JSON.
    """
    try:
        with _open(path) as file:
            return json.loads(file.read())
    except FileNotFoundError:
        raise InputError("no such file", path=path, mend="check the path") from None
    except json.JSONDecodeError as error:
        raise InputError(f"is not JSON: {error.msg}", path=path, line=error.lineno) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _json_lines(path: Path) -> Iterator[Row]:
    number = 0
    try:
        with _open(path) as file:
            # Iterating a binary file splits at \n only: a line separator inside a JSON string
            # (U+2028, a vertical tab) stays where it is.
            for line, text in enumerate(file, start=1):
                if text.strip():
                    number += 1
                    yield Row(path, number, _json_object(path, line, text), line)
    except (OSError, EOFError) as error:
        raise _unreadable(path, error) from None


def _json_object(path: Path, line: int, text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start})", path=path, line=line) from None
    except ValueError as error:
        raise InputError(
            f"is not JSON: {error}", path=path, line=line, mend="one JSON object a line"
        ) from None
    if not isinstance(value, dict):
        raise InputError("expected a JSON object", path=path, line=line)
    return value


def _json_list(path: Path) -> Iterator[Row]:
    value = read_json(path)
    if not isinstance(value, list):
        raise InputError("expected a list of objects", path=path)
    for number, record in enumerate(value, start=1):
        if not isinstance(record, dict):
            raise InputError("expected an object", path=path, field=f"record {number}")
        yield Row(path, number, record)


def _csv(path: Path, delimiter: str) -> Iterator[Row]:
    csv.field_size_limit(_LONGEST_CELL)
    try:
        with _open(path) as raw, io.TextIOWrapper(raw, "utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter=delimiter, strict=True)
            for number, record in enumerate(reader, start=1):
                if None in record:
                    raise InputError(
                        "has more cells than the header", path=path, line=reader.line_num
                    )
                yield Row(path, number, record, reader.line_num)
    except csv.Error as error:
        raise InputError(f"is not CSV: {error}", path=path) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _parquet(path: Path) -> Iterator[Row]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        number = 0
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for record in batch.to_pylist():
                    number += 1
                    yield Row(path, number, record)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"is not Parquet: {reason}", path=path, mend="pull it again") from None


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _unreadable(path: Path, error: Exception) -> InputError:
    if isinstance(error, UnicodeDecodeError):
        return InputError(f"is not UTF-8 (byte {error.start})", path=path, mend="save it as UTF-8")
    return InputError(f"cannot be read: {error}", path=path)


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _or(names: Sequence[str]) -> str:
    return f"the record needs {' or '.join(names)}"
