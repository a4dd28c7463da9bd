"""Records of which one at a time is in memory: the lines are in a file, their offsets here.

Twelve bytes a record and eight an item, whatever a record holds, so that a run of a million items
is planned and judged in the memory of a small one.
"""

from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, BinaryIO, Generic, Protocol, TypeVar, overload

import msgspec

from clash.files import run_files
from clash.store.journal import decode_part, encode
from clash.store.stored import ItemPart, OfItem, decode_fast, item_ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from clash.records import Record

R = TypeVar("R", bound="Record")
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T", bound=OfItem)
_IN_MEMORY = 1 << 20
"""Bytes of lines that are kept in memory; what is more goes into a temporary file."""


class _Source(Protocol):
    """Where lines are."""

    path: Path

    def read(self, start: int, size: int) -> bytes: ...


class _File:
    """Bytes of an open file, for any thread; it is closed with this object."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self._lock = Lock()
        weakref.finalize(self, file.close)

    def read(self, start: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(start)
            return self._file.read(size)

    def write(self, start: int, data: bytes) -> None:
        with self._lock:
            self._file.seek(start)
            self._file.write(data)


class _Spool:
    """Lines, in memory while they are few, then in a temporary file that nobody else can open."""

    def __init__(self) -> None:
        self.path = Path("records")
        self._new = bytearray()
        self._n_written = 0
        self._file: _File | None = None

    def append(self, line: bytes) -> int:
        """Keep a line; returns where it is."""
        start = self._n_written + len(self._new)
        self._new += line
        if len(self._new) >= _IN_MEMORY:
            self._write()
        return start

    def read(self, start: int, size: int) -> bytes:
        n_in_file = max(0, min(size, self._n_written - start))
        head = self._file.read(start, n_in_file) if self._file and n_in_file else b""
        begin = start + n_in_file - self._n_written
        return head + bytes(self._new[begin : begin + size - n_in_file])

    def _write(self) -> None:
        if self._file is None:
            file = tempfile.TemporaryFile(prefix="clash-")  # noqa: SIM115 - open as long as this
            self._file = _File(self.path, file)
        self._file.write(self._n_written, bytes(self._new))
        self._n_written += len(self._new)
        self._new = bytearray()


class RecordTable(Sequence[R]):
    """Records by position. Reading one parses its line.

    Args:
        model: the class of the records.
        source: where the lines are.
        starts: where each begins.
        sizes: how long each is, line feed included.
    """

    def __init__(
        self, model: type[R], source: _Source, starts: array[int], sizes: array[int]
    ) -> None:
        self.model = model
        self._source, self._starts, self._sizes = source, starts, sizes

    @classmethod
    def of(cls, model: type[R], records: Iterable[R]) -> RecordTable[R]:
        """A table of records; one of a table is that table."""
        if isinstance(records, RecordTable):
            return records
        return cls.of_lines(model, map(encode, records))

    @classmethod
    def of_lines(cls, model: type[R], lines: Iterable[bytes]) -> RecordTable[R]:
        """A table of records that are lines already."""
        table = cls(model, _Spool(), array("q"), array("I"))
        for line in lines:
            table.append_line(line)
        return table

    @classmethod
    def of_file(cls, model: type[R], path: Path) -> RecordTable[R]:
        """A table of the records in a file of a run; empty where it is missing.

        Raises:
            RunFolderError: the file cannot be read.
        """
        try:
            file = run_files.open_to_read(path)
        except FileNotFoundError:
            return cls.of_lines(model, ())
        starts, sizes, start = array("q"), array("I"), 0
        source = _File(path, file)
        for line in run_files.lines_of(file, path):
            starts.append(start)
            sizes.append(len(line))
            start += len(line)
        return cls(model, source, starts, sizes)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> R: ...

    @overload
    def __getitem__(self, index: slice) -> RecordTable[R]: ...

    def __getitem__(self, index: int | slice) -> R | RecordTable[R]:
        if isinstance(index, slice):
            return type(self)(self.model, self._source, self._starts[index], self._sizes[index])
        return self._record(index, self.line(index))

    def __iter__(self) -> Iterator[R]:
        return map(self._record, range(len(self)), self.lines())

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Sequence) or len(self) != len(value):
            return False
        return all(map(lambda a, b: a == b, self, value))

    __hash__ = None  # type: ignore[assignment] # as a list

    def append(self, record: R) -> None:
        """Add a record to a table of :meth:`of`."""
        self.append_line(encode(record))

    def append_line(self, line: bytes) -> None:
        """Add a record that is already a line, line feed included."""
        if not isinstance(self._source, _Spool):
            raise TypeError("the lines of a file of a run are written by its journal")
        self._starts.append(self._source.append(line))
        self._sizes.append(len(line))

    @property
    def is_encoded_here(self) -> bool:
        """Whether its lines are as this version of clash writes them."""
        return isinstance(self._source, _Spool)

    def line(self, index: int) -> bytes:
        """The line of a record."""
        return self._source.read(self._starts[index], self._sizes[index])

    def lines(self) -> Iterator[bytes]:
        """The line of every record, in portions that one reading takes."""
        for first, last in self._portions():
            start = self._starts[first]
            data = self._source.read(start, self._starts[last] + self._sizes[last] - start)
            for index in range(first, last + 1):
                begin = self._starts[index] - start
                yield data[begin : begin + self._sizes[index]]

    def _portions(self) -> Iterator[tuple[int, int]]:
        """The first and last position of records that are close to each other in the file."""
        first = 0
        for index in range(1, len(self) + 1):
            if index == len(self) or not (
                0 <= self._starts[index] - self._starts[first] < _IN_MEMORY
            ):
                yield first, index - 1
                first = index

    def parts(self, part: type[S]) -> Iterator[S]:
        """The fields of every record that ``part`` names, several times as fast as the records."""
        decoder = msgspec.json.Decoder(part)
        for number, line in enumerate(self.lines(), start=1):
            yield decode_part(self._source.path, number, line, decoder, self.model)

    def where(self, flags: Iterable[bool]) -> RecordTable[R]:
        """The records at whose position a flag is true."""
        starts, sizes = array("q"), array("I")
        for start, size, is_chosen in zip(self._starts, self._sizes, flags, strict=True):
            if is_chosen:
                starts.append(start)
                sizes.append(size)
        return type(self)(self.model, self._source, starts, sizes)

    def _record(self, index: int, line: bytes) -> R:
        return decode_fast(self._source.path, index + 1, line, self.model)


class ItemRows(Generic[T]):
    """The records of each item, in their order; those that are on disk stay there.

    Eight bytes an item and four a record.

    Args:
        records: the records.
        positions: where each item is; records of others are left out.
    """

    def __init__(self, records: Sequence[T], positions: Mapping[str, int]) -> None:
        self._records, self._positions = records, positions
        size = max(positions.values(), default=-1) + 1
        first = self._first = array("i", [-1]) * size
        following = self._following = array("i", [-1]) * len(records)
        last = array("i", [-1]) * size
        parts = records.parts(ItemPart) if isinstance(records, RecordTable) else None
        ids = item_ids(records) if parts is None else (part.item_id for part in parts)
        for row, item_id in enumerate(ids):
            position = positions.get(item_id)
            if position is None:
                continue
            if first[position] < 0:
                first[position] = row
            else:
                following[last[position]] = row
            last[position] = row

    def __call__(self, item_id: str) -> list[T]:
        """The records of one item; empty for an unknown item."""
        return [self._records[row] for row in self.rows(item_id)]

    def rows(self, item_id: str) -> Iterator[int]:
        """The rows of the records of one item."""
        position = self._positions.get(item_id)
        return iter(()) if position is None else self._rows_at(position)

    def of(self, position: int) -> Iterator[T]:
        """The records of the item at a position."""
        return map(self._records.__getitem__, self._rows_at(position))

    def _rows_at(self, position: int) -> Iterator[int]:
        row = self._first[position]
        while row >= 0:
            yield row
            row = self._following[row]


class Marks:
    """Marked positions under each of a few keys, one byte each."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._rows: dict[object, bytearray] = {}

    def __iter__(self) -> Iterator[object]:
        return iter(self._rows)

    def put(self, key: object, position: int, is_marked: bool = True) -> None:
        """Mark a position under a key, or take the mark away."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = bytearray(self._size)
        row[position] = is_marked

    def has(self, key: object, position: int) -> bool:
        """Whether a position is marked under a key."""
        row = self._rows.get(key)
        return row is not None and bool(row[position])

    def count(self, key: object) -> int:
        """How many positions are marked under a key."""
        return sum(self._rows.get(key, b""))
