"""Records that stay on disk: read as they are iterated, one block in memory at a time.

Every line is checked once, when its place is noted. A line is decoded against the fields of its
model by msgspec; whatever that refuses goes to the model itself, which reads it or names the error.
"""

from __future__ import annotations

import sys
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, Required, TypedDict, TypeVar, overload

import msgspec
from pydantic import ValidationError

from clash.errors import RunFolderError
from clash.files import run_files
from clash.records import Call, Record
from clash.store.journal import decode, decode_part

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from pydantic import BaseModel


class OfItem(Protocol):
    """A record about an item."""

    @property
    def item_id(self) -> str:
        """The id of the item."""


class ItemPart(msgspec.Struct, gc=False):
    """Which item a record is of."""

    item_id: str


R = TypeVar("R", bound=Record)
T = TypeVar("T", bound=OfItem)
S = TypeVar("S", bound=msgspec.Struct)
_BLOCK = 32
"""Records decoded together where single ones are asked for, mostly in order."""
_MOST_BLOCKS = 32
"""Blocks kept: judges that are at different items read in as many places."""
_MANY = 1 << 18
"""Keys above this number are counted by numpy, in a tenth of the memory of a set."""


def decode_fast(
    path: Path, number: int, line: bytes, model: type[R], without: tuple[str, ...] = ()
) -> R:
    """The record of a line, in a third of the time of :func:`journal.decode` and as strictly.

    Defaults that are lists or maps are shared between records, which are not to be changed.

    Args:
        path: the file, for the message.
        number: of the line, for the message.
        line: the line.
        model: what it must be.
        without: fields that are skipped; they have their defaults.

    Raises:
        RunFolderError: the line is no such record; the message names file and line.
    """
    fields = _fields(line, model, without)
    if fields is None:
        record = decode(path, number, line, model)
        return record.model_copy(update={name: _template(model)[0][name] for name in without})
    values, names = _template(model)
    return _new_record(model, {**values, **fields}, names)


def with_item(record: R, item_id: str) -> R:
    """A copy of a record about another item, in a tenth of the time of ``model_copy``."""
    values = {**record.__dict__, "item_id": item_id}
    return _new_record(type(record), values, record.__pydantic_fields_set__)


def _new_record(model: type[R], values: dict[str, Any], names: set[str]) -> R:
    record = model.__new__(model)
    _set(record, "__dict__", values)
    _set(record, "__pydantic_fields_set__", names)
    _set(record, "__pydantic_extra__", None)
    _set(record, "__pydantic_private__", None)
    return record


_set = object.__setattr__


def _fields(line: bytes, model: type[Record], without: tuple[str, ...]) -> dict[str, Any] | None:
    """The fields that a line has; null where only the model can say what they are."""
    try:
        if not line.isascii():
            line.decode()  # what msgspec skips, it does not check
        fields: dict[str, Any] = _decoder(model, without)(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if "item_id" in fields:
        fields["item_id"] = sys.intern(fields["item_id"])
    return fields


@cache
def _decoder(model: type[Record], without: tuple[str, ...]) -> Callable[[bytes], Any]:
    """Decodes the fields of a model, each of its exact type; a line may have others."""
    fields = {
        name: Required[field.annotation] if field.is_required() else field.annotation
        for name, field in model.model_fields.items()
        if name not in without
    }
    # The functional form, since the fields are those of the model.
    shape = TypedDict(f"{model.__name__}Fields", fields, total=False)  # type: ignore[misc]
    return msgspec.json.Decoder(shape, dec_hook=_part).decode


def _part(kind: type[BaseModel], value: object) -> BaseModel:
    """A part of a record that is itself a model; equal parts may share one object."""
    if isinstance(value, dict):
        try:
            return _flat_part(kind, tuple(value.items()))
        except TypeError:  # a part with lists or maps in it
            return _validate(kind, value)
    return _validate(kind, value)


@lru_cache(maxsize=4096)
def _flat_part(kind: type[BaseModel], fields: tuple[tuple[str, Any], ...]) -> BaseModel:
    return _validate(kind, dict(fields))


def _validate(kind: type[BaseModel], value: object) -> BaseModel:
    try:
        return kind.model_validate(value)
    except ValidationError:
        raise ValueError(kind.__name__) from None


@cache
def _template(model: type[Record]) -> tuple[dict[str, Any], set[str]]:
    """The defaults of a model in the order of its fields, and their names."""
    defaults = {
        name: None if field.is_required() else field.get_default(call_default_factory=True)
        for name, field in model.model_fields.items()
    }
    return defaults, set(defaults)


class StoredRecords(Sequence[R], Generic[R]):
    """Records of a file that is only appended to; indexing and iterating read it again.

    Attributes:
        path: the file.
        model: what its lines are.
    """

    def __init__(self, path: Path, model: type[R], offsets: Sequence[int]) -> None:
        """Args: the file, the kind of its records, and the first byte of each."""
        self.path = path
        self.model = model
        self._offsets = offsets
        self._blocks: dict[int, list[R]] = {}

    @classmethod
    def of(
        cls, path: Path, model: type[R], key: Callable[[R], Hashable] | None = None
    ) -> StoredRecords[R]:
        """The records of a file; none where it is missing.

        Args:
            path: the file.
            model: what its lines must be.
            key: of several records with the same key, the last one counts, in the first one's place.

        Raises:
            RunFolderError: a line is no such record; the message names file and line.
        """
        offsets, keys, start = array("q"), array("q"), 0
        for number, line in enumerate(run_files.lines(path), start=1):
            record = decode_fast(path, number, line, model)
            offsets.append(start)
            if key is not None:
                keys.append(hash(key(record)))
            start += len(line)
        records = cls(path, model, offsets)
        if key is None or all_differ(keys):
            return records
        last = {key(record): offset for record, offset in zip(records, offsets, strict=True)}
        return cls(path, model, array("q", last.values()))

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[R]:
        return self._read(self._offsets)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> StoredRecords[R]: ...
    def __getitem__(self, index: int | slice) -> R | StoredRecords[R]:
        if isinstance(index, slice):
            return StoredRecords(self.path, self.model, self._offsets[index])
        position = range(len(self._offsets))[index]
        number, index_in_block = divmod(position, _BLOCK)
        block = self._blocks.get(number)
        if block is None:
            first = number * _BLOCK
            block = list(self._read(self._offsets[first : first + _BLOCK]))
            if len(self._blocks) == _MOST_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = block
        return block[index_in_block]

    def select(self, positions: Iterable[int]) -> StoredRecords[R]:
        """The records at these positions, in this order."""
        offsets = array("q", (self._offsets[position] for position in positions))
        return StoredRecords(self.path, self.model, offsets)

    def parts(self, part: type[S]) -> Iterator[S]:
        """The fields of every record that ``part`` names."""
        decode_line = msgspec.json.Decoder(part).decode
        for line in self._lines(self._offsets):
            try:
                yield decode_line(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                # What the model reads in another way: a number as text, say.
                yield part_of(_read_again(self.path, line, self.model), part)

    def _read(self, offsets: Sequence[int]) -> Iterator[R]:
        return (_read_again(self.path, line, self.model) for line in self._lines(offsets))

    def _lines(self, offsets: Sequence[int]) -> Iterator[bytes]:
        if not offsets:
            return
        with _open(self.path) as file:
            end = 0
            for offset in offsets:
                if offset != end:
                    file.seek(offset)
                line = file.readline(run_files.LONGEST + 1)
                end = offset + len(line)
                yield line


def _read_again(path: Path, line: bytes, model: type[R], without: tuple[str, ...] = ()) -> R:
    """The record of a line that was a valid record when the file was indexed."""
    try:
        return decode_fast(path, 0, line, model, without)
    except RunFolderError:
        raise RunFolderError(
            f"{path}: was changed while it was read\n  fix: repeat the command"
        ) from None


def _open(path: Path) -> BinaryIO:
    try:
        return run_files.open_to_read(path)
    except FileNotFoundError:
        raise RunFolderError(
            f"{path}: is missing, and was there a moment ago\n  fix: repeat the command"
        ) from None


class HashedKeys:
    """A set of keys in eight bytes each; a missing key passes for a present one once in 10^12 runs."""

    def __init__(self, keys: Iterable[Hashable]) -> None:
        """Args: the keys. Python salts its hashes per process, so nobody can choose keys that collide."""
        import numpy as np

        hashes = np.frombuffer(array("q", map(hash, keys)), np.int64)
        self._hashes = array("q", np.sort(hashes).tobytes())

    def __contains__(self, key: Hashable) -> bool:
        index = bisect_left(self._hashes, hash(key))
        return index < len(self._hashes) and self._hashes[index] == hash(key)


def all_differ(hashes: array[int]) -> bool:
    """Whether no two numbers are the same."""
    if len(hashes) < _MANY:
        return len(set(hashes)) == len(hashes)
    import numpy as np

    sorted_hashes = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return not bool((sorted_hashes[1:] == sorted_hashes[:-1]).any())


class _CallPart(msgspec.Struct, gc=False):
    """Which call a line is of."""

    call_id: str


class StoredCalls(Mapping[str, Call]):
    """The last attempt of each call, by id, without request and raw answer; they stay on disk."""

    def __init__(self, path: Path) -> None:
        """Args: the file; one that is missing has no calls.

        Raises:
            RunFolderError: a line has no call id; the message names file and line. The others are
                checked when they are asked for.
        """
        self._path = path
        hashes, offsets, start = array("q"), array("q"), 0
        decoder = msgspec.json.Decoder(_CallPart)
        for number, line in enumerate(run_files.lines(path), start=1):
            hashes.append(hash(decode_part(path, number, line, decoder, Call).call_id))
            offsets.append(start)
            start += len(line)
        import numpy as np

        order = np.argsort(np.asarray(hashes, np.int64), kind="stable")
        self._hashes = array("q", np.asarray(hashes, np.int64)[order].tobytes())
        self._offsets = array("q", np.asarray(offsets, np.int64)[order].tobytes())
        self._file: BinaryIO | None = None

    def __getitem__(self, call_id: str) -> Call:
        index = bisect_right(self._hashes, hash(call_id))
        # Attempts of a call have the same hash, and so may other calls; the last attempt counts.
        while index > 0 and self._hashes[index - 1] == hash(call_id):
            index -= 1
            call = self._call(self._offsets[index])
            if call.call_id == call_id:
                return call
        raise KeyError(call_id)

    def _call(self, offset: int) -> Call:
        if self._file is None:
            self._file = _open(self._path)
            weakref.finalize(self, self._file.close)
        self._file.seek(offset)
        line = self._file.readline(run_files.LONGEST + 1)
        return _read_again(self._path, line, Call, _RAW)

    def __iter__(self) -> Iterator[str]:
        yield from dict.fromkeys(self._call(offset).call_id for offset in self._offsets)

    def __len__(self) -> int:
        return sum(1 for _ in self)


_RAW = ("request", "response")


class JoinedRecords(Sequence[R], Generic[R]):
    """Records of several files, in an order of their own."""

    def __init__(self, parts: Sequence[Sequence[R]], order: Sequence[tuple[int, int]]) -> None:
        """Args: the records of each file, and which record of which file comes when."""
        self._parts, self._order = parts, order

    def __len__(self) -> int:
        return len(self._order)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> JoinedRecords[R]: ...
    def __getitem__(self, index: int | slice) -> R | JoinedRecords[R]:
        if isinstance(index, slice):
            return JoinedRecords(self._parts, self._order[index])
        part, position = self._order[index]
        return self._parts[part][position]

    def select(self, positions: Iterable[int]) -> JoinedRecords[R]:
        """The records at these positions, in this order."""
        return JoinedRecords(self._parts, [self._order[position] for position in positions])


def parts(records: Iterable[Record], part: type[S]) -> Iterator[S]:
    """The fields of each record that ``part`` names, of those on disk in a tenth of the time."""
    if isinstance(records, StoredRecords):
        return records.parts(part)
    return (part_of(record, part) for record in records)


def part_of(record: Record, part: type[S]) -> S:
    """The fields of a record that ``part`` names."""
    return part(**{name: getattr(record, name) for name in part.__struct_fields__})


def item_ids(records: Iterable[OfItem]) -> Iterator[str]:
    """The item of each record."""
    if isinstance(records, StoredRecords):
        return (part.item_id for part in records.parts(ItemPart))
    return (record.item_id for record in records)


def of_items(records: Sequence[T], ids: Collection[str]) -> Sequence[T]:
    """The records of some items, in file order."""
    return select(records, [n for n, item_id in enumerate(item_ids(records)) if item_id in ids])


def select(records: Sequence[T], positions: Iterable[int]) -> Sequence[T]:
    """The records at some positions; those that are on disk stay there."""
    if isinstance(records, StoredRecords | JoinedRecords):
        return records.select(positions)
    return tuple(records[position] for position in positions)


class ByItem(Mapping[str, T], Generic[T]):
    """Records by the id of their item, one for each; they may stay on disk."""

    def __init__(self, records: Sequence[T], positions: Mapping[str, int] | None = None) -> None:
        """Args: the records, and where each item's is; read from the records where it is left out."""
        if positions is None:
            positions = {sys.intern(item_id): n for n, item_id in enumerate(item_ids(records))}
        self._records, self._positions = records, positions

    def __getitem__(self, item_id: str) -> T:
        return self._records[self._positions[item_id]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._positions

    def only(self, ids: Collection[str]) -> ByItem[T]:
        """The records of some items."""
        return ByItem(self._records, {k: n for k, n in self._positions.items() if k in ids})
