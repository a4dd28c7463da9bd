"""Append-only JSON Lines: every record is handed to the kernel before the next call starts.

A killed process loses nothing that it wrote. A machine that goes down loses what was not yet
synced: at most the last moments (``docs/decisions/journal.md`` has the measurement).
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from clash.errors import RunFolderError
from clash.files import run_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from clash.records import Record

R = TypeVar("R", bound="Record")
S = TypeVar("S", bound=msgspec.Struct)
_BLOCK = 1 << 16
"""Bytes read at a time from the end of a journal."""
_MOST_GROUPED = 1 << 20
"""Bytes of lines that are written together at most."""
_PORTION = 1 << 24
"""Bytes read at a time of a journal that grows."""


class Journal:
    """A file of records that only grows.

    Raises:
        RunFolderError: it cannot be opened or written (no space, no permission).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = run_files.open_to_append(path)
        self._dirty = False
        self._group: bytearray | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def append(self, record: Record) -> None:
        """Write one line."""
        self.append_line(encode(record))

    def append_line(self, line: bytes) -> None:
        """Write a line that is already encoded, line feed included."""
        self._add(line)

    def begin_group(self) -> None:
        """Keep the lines that follow, until :meth:`end_group`."""
        self._group = bytearray()

    def end_group(self) -> None:
        """Hand the lines of the group to the kernel in one write."""
        lines, self._group = bytes(self._group or b""), None
        if lines:
            self._write(lines)

    def _add(self, line: bytes) -> None:
        """Write a line, or keep it for the end of its group."""
        if self._group is None:
            self._write(line)
        else:
            self._group += line
            if len(self._group) >= _MOST_GROUPED:
                self.end_group()
                self.begin_group()

    def _write(self, data: bytes) -> None:
        remaining = data
        try:
            while remaining:
                remaining = remaining[os.write(self._fd, remaining) :]
        except OSError as error:
            self._take_back(len(data) - len(remaining))
            raise run_files.file_error(self.path, "written", error) from None
        self._dirty = True

    def _take_back(self, n_bytes: int) -> None:
        """Remove an incomplete line after a failed write, or the next line would be joined to it."""
        end = os.lseek(self._fd, 0, os.SEEK_CUR)
        # Labels may have a second writer, whose line must stay.
        if n_bytes and end == os.fstat(self._fd).st_size:
            with suppress(OSError):
                os.truncate(self._fd, end - n_bytes)

    def sync(self) -> None:
        """Sync to disk what has been written."""
        if self._dirty:
            self._dirty = False
            try:
                os.fsync(self._fd)
            except OSError as error:
                raise run_files.file_error(self.path, "written", error) from None

    def close(self) -> None:
        """Sync and close; safe to call twice."""
        if self._fd >= 0:
            self.sync()
            os.close(self._fd)
            self._fd = -1


def encode(record: BaseModel) -> bytes:
    """A record as a line of UTF-8 JSON, newline included."""
    try:
        return _ENCODER.encode(record) + b"\n"
    except UnicodeEncodeError:
        # Lone surrogates: legal in a Python string, impossible in UTF-8.
        # msgspec again, since json would write NaN and infinity as words that are not JSON.
        return msgspec.json.encode(_encodable(record.model_dump())) + b"\n"


def written_fields(value: object) -> dict[str, Any]:
    """The fields of a record, or of a part of one, as a line has them."""
    if isinstance(value, BaseModel):
        conditions = _exclusions(type(value))
        fields = value.__dict__
        absent = [name for name, is_absent in conditions if is_absent(fields[name])]
        if not absent:
            return fields
        fields = fields.copy()
        for name in absent:
            del fields[name]
        return fields
    raise TypeError(f"{type(value).__name__} cannot be stored in a record")


@cache
def _exclusions(model: type[BaseModel]) -> list[tuple[str, Callable[[Any], bool]]]:
    """The fields of a record that may be left out, and when."""
    return [
        (name, field.exclude_if) for name, field in model.model_fields.items() if field.exclude_if
    ]


_ENCODER = msgspec.json.Encoder(enc_hook=written_fields)
"""Takes a fifth of pydantic's time, most of which goes into inspecting raw answers."""


def _encodable(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value


def read(path: Path, model: type[R]) -> Iterator[R]:
    """The records of a journal; none where the file is missing.

    Raises:
        RunFolderError: a line is not such a record; the message names file and line.
    """
    for number, line in enumerate(run_files.lines(path), start=1):
        yield decode(path, number, line, model)


def decode(path: Path, number: int, line: bytes, model: type[R]) -> R:
    """The record of a line.

    Raises:
        RunFolderError: the line is no such record; the message names file and line.
    """
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise RunFolderError(
            f"{path}:{number}: is not a valid {model.__name__.lower()} record"
            f" ({field + ': ' if field else ''}{first['msg']})\n"
            "  fix: an interrupted run is repaired by `clash resume`;"
            " anything else was changed by hand"
        ) from None


def read_part(path: Path, part: type[S], model: type[Record]) -> Iterator[S]:
    """The fields of each record that ``part`` names, several times as fast as :func:`read`.

    Args:
        path: the journal.
        part: a struct with some of the fields of ``model``.
        model: what a line must be; it names the error where ``part`` cannot be read.

    Raises:
        RunFolderError: as :func:`read`, for errors in a field of ``part``.
    """
    decoder = msgspec.json.Decoder(part)
    for number, line in enumerate(run_files.lines(path), start=1):
        yield decode_part(path, number, line, decoder, model)


def decode_part(
    path: Path, number: int, line: bytes, decoder: msgspec.json.Decoder[S], model: type[Record]
) -> S:
    """Some fields of the record of a line.

    Raises:
        RunFolderError: as :func:`read_part`.
    """
    try:
        return decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        decode(path, number, line, model)
        raise RunFolderError(f"{path}:{number}: cannot be read ({error})") from None


def read_on(path: Path, start: int) -> tuple[list[bytes], int]:
    """The complete lines after a byte, of a file that another process may be writing.

    Args:
        path: the journal; a missing one has no lines yet.
        start: where the last reading ended; 0 at first.

    Returns:
        The lines, at most some megabytes of them, and where the next reading begins.

    Raises:
        RunFolderError: a line is longer than a record can be, or the file cannot be read.
    """
    try:
        with run_files.open_to_read(path, refuse_sparse=False) as file:
            file.seek(start)
            data = file.read(_PORTION)
            if b"\n" not in data:
                data += file.read(run_files.LONGEST)
    except FileNotFoundError:
        return [], start
    if b"\n" not in data and len(data) >= run_files.LONGEST:
        raise RunFolderError(f"{path}: has a line longer than {run_files.LONGEST:,} bytes")
    end = data.rfind(b"\n") + 1
    return data[:end].split(b"\n")[:-1], start + end


def repair_tail(path: Path) -> int:
    """Remove a last line that a crash left incomplete; end one that lacks only its line feed.

    Returns:
        The number of bytes removed; 0 where the file is complete or missing.
    """
    tail = last_line(path)
    if _is_record(tail):
        if tail and not tail.endswith(b"\n"):
            with run_files.open_to_update(path) as file:
                file.seek(0, os.SEEK_END)
                file.write(b"\n")
        return 0
    with run_files.open_to_update(path) as file:
        file.truncate(file.seek(0, os.SEEK_END) - len(tail))
    return len(tail)


def last_line(path: Path) -> bytes:
    """The last line, read from the end of the file because a journal may be large.

    Returns:
        The line with its line feed, where it has one; empty where the file is missing or empty.

    Raises:
        RunFolderError: it is longer than a record can be.
    """
    try:
        with run_files.open_to_read(path, refuse_sparse=False) as file:
            return _last_line(file, path)
    except FileNotFoundError:
        return b""


def _last_line(file: BinaryIO, path: Path) -> bytes:
    end = file.seek(0, os.SEEK_END)
    size = min(_BLOCK, end)
    while True:
        file.seek(end - size)
        tail = file.read(size)
        cut = tail.rfind(b"\n", 0, len(tail) - 1) + 1
        if cut or size == end:
            return tail[cut:]
        if size > run_files.LONGEST:
            raise RunFolderError(
                f"{path}: its last line is longer than {run_files.LONGEST:,} bytes"
            )
        size = min(2 * size, end)


def _is_record(line: bytes) -> bool:
    """Whether ``line`` is complete: a prefix of a JSON object is never a JSON object."""
    try:
        return not line or isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
