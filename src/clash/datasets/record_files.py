"""Files of records, whatever they are written in: JSON Lines, JSON, CSV, TSV, Parquet, gzip.

Rows come one at a time, so that a file of a hundred thousand conversations need not fit in
memory, and each knows where it stands, so that an error can point at it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash import documents
from clash.errors import InputError
from clash.extras import require
from clash.files.csv_reader import read_csv
from clash.files.inputs import open_bytes, without_gz

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


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

    try:
        number = 0
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for record in batch.to_pylist():
                    number += 1
                    yield SourceRow(path, number, record)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"is not Parquet: {reason}", path=path, hint="pull it again") from None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _or(names: Sequence[str]) -> str:
    return f"the record needs {' or '.join(names)}"
