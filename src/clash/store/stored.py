"""Records that stay on disk: read when they are gone through, a block of them in memory at a time.

Every line is checked once, when its place is noted. A line is decoded against the fields of its
model by msgspec; whatever that refuses goes to the model itself, which reads it or names the error.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, Protocol, Required, TypedDict, TypeVar, overload

import msgspec
from pydantic import ValidationError

from clash.errors import RunFolderError
from clash.files import run_files
from clash.records import Record
from clash.store.journal import decode

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


R = TypeVar("R", bound=Record)
T = TypeVar("T", bound=OfItem)
_BLOCK = 32
"""Records decoded together where single ones are asked for, mostly in order."""
_MOST_BLOCKS = 32
"""Blocks kept: judges that are at different items read in as many places."""
_MANY = 1 << 18
"""Keys above this number are counted by numpy, in a tenth of the memory of a set."""


def decode_fast(path: Path, number: int, line: bytes, model: type[R]) -> R:
    """The record of a line, in a third of the time of :func:`journal.decode` and as strictly.

    Defaults that are lists or maps are shared between records, which are not to be changed.

    Raises:
        RunFolderError: the line is no such record; the message names file and line.
    """
    fields = _fields(line, model)
    if fields is None:
        return decode(path, number, line, model)
    values, names = _template(model)
    return _made(model, {**values, **fields}, names)


def with_item(record: R, item_id: str) -> R:
    """A copy of a record about another item, in a tenth of the time of ``model_copy``."""
    values = {**record.__dict__, "item_id": item_id}
    return _made(type(record), values, record.__pydantic_fields_set__)


def _made(model: type[R], values: dict[str, Any], names: set[str]) -> R:
    record = model.__new__(model)
    _set(record, "__dict__", values)
    _set(record, "__pydantic_fields_set__", names)
    _set(record, "__pydantic_extra__", None)
    _set(record, "__pydantic_private__", None)
    return record


_set = object.__setattr__


def _fields(line: bytes, model: type[Record]) -> dict[str, Any] | None:
    """The fields that a line has; null where only the model can say what they are."""
    try:
        if not line.isascii():
            line.decode()  # what msgspec skips, it does not check
        fields: dict[str, Any] = _decoder(model)(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    if "item_id" in fields:
        fields["item_id"] = sys.intern(fields["item_id"])
    return fields


@cache
def _decoder(model: type[Record]) -> Callable[[bytes], Any]:
    """Decodes the fields of a model, each of its exact type; a line may have others."""
    fields = {
        name: Required[field.annotation] if field.is_required() else field.annotation
        for name, field in model.model_fields.items()
    }
    # The functional form, since the fields are those of the model.
    shape = TypedDict(f"{model.__name__}Fields", fields, total=False)  # type: ignore[misc]
    return msgspec.json.Decoder(shape, dec_hook=_part).decode


def _part(kind: type[BaseModel], value: object) -> BaseModel:
    """A part of a record that is a model itself; equal parts may be one object."""
    if isinstance(value, dict):
        with suppress(TypeError):  # a part with lists or maps in it
            return _flat_part(kind, tuple(value.items()))
    return _validated(kind, value)


@lru_cache(maxsize=4096)
def _flat_part(kind: type[BaseModel], fields: tuple[tuple[str, Any], ...]) -> BaseModel:
    return _validated(kind, dict(fields))


def _validated(kind: type[BaseModel], value: object) -> BaseModel:
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

    def __init__(self, path: Path, model: type[R], places: Sequence[int]) -> None:
        """Args: the file, the kind of its records, and the first byte of each."""
        self.path = path
        self.model = model
        self._places = places
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
        places, keys, start = array("q"), array("q"), 0
        for number, line in enumerate(run_files.lines(path), start=1):
            record = decode_fast(path, number, line, model)
            places.append(start)
            if key is not None:
                keys.append(hash(key(record)))
            start += len(line)
        records = cls(path, model, places)
        if key is None or _all_differ(keys):
            return records
        last = {key(record): place for record, place in zip(records, places, strict=True)}
        return cls(path, model, array("q", last.values()))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[R]:
        return self._read(self._places)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> StoredRecords[R]: ...
    def __getitem__(self, index: int | slice) -> R | StoredRecords[R]:
        if isinstance(index, slice):
            return StoredRecords(self.path, self.model, self._places[index])
        position = range(len(self._places))[index]
        number, offset = divmod(position, _BLOCK)
        block = self._blocks.get(number)
        if block is None:
            first = number * _BLOCK
            block = list(self._read(self._places[first : first + _BLOCK]))
            if len(self._blocks) == _MOST_BLOCKS:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number] = block
        return block[offset]

    def select(self, positions: Iterable[int]) -> StoredRecords[R]:
        """The records at these positions, in this order."""
        places = array("q", (self._places[position] for position in positions))
        return StoredRecords(self.path, self.model, places)

    def _read(self, places: Sequence[int]) -> Iterator[R]:
        if not places:
            return
        with _open(self.path) as file:
            end = 0
            for place in places:
                if place != end:
                    file.seek(place)
                line = file.readline(run_files.LONGEST + 1)
                end = place + len(line)
                yield decode_fast(self.path, self._number(place), line, self.model)

    def _number(self, place: int) -> int:
        """The line number of a place, for the message of an error that comes after the check."""
        return 0 if place else 1


def _open(path: Path) -> BinaryIO:
    try:
        return run_files.open_to_read(path)
    except FileNotFoundError:
        raise RunFolderError(
            f"{path}: is missing, and was there a moment ago\n  fix: repeat the command"
        ) from None


def _all_differ(hashes: array[int]) -> bool:
    """Whether no two numbers are the same."""
    if len(hashes) < _MANY:
        return len(set(hashes)) == len(hashes)
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return not bool((ordered[1:] == ordered[:-1]).any())


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


def of_items(records: Sequence[T], ids: Collection[str]) -> Sequence[T]:
    """The records of some items, in their order."""
    return at(records, [n for n, record in enumerate(records) if record.item_id in ids])


def at(records: Sequence[T], positions: Iterable[int]) -> Sequence[T]:
    """The records at some positions; those that are on disk stay there."""
    if isinstance(records, StoredRecords | JoinedRecords):
        return records.select(positions)
    return tuple(records[position] for position in positions)


class ByItem(Mapping[str, T], Generic[T]):
    """Records by the id of their item, one for each; they may stay on disk."""

    def __init__(self, records: Sequence[T], positions: Mapping[str, int] | None = None) -> None:
        """Args: the records, and where each item's is; read from the records where it is left out."""
        if positions is None:
            positions = {record.item_id: n for n, record in enumerate(records)}
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
        """Those of some items."""
        return ByItem(self._records, {k: n for k, n in self._positions.items() if k in ids})
