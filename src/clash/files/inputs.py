"""Open input files within bounds: regular files only, and never more than fits in memory."""

from __future__ import annotations

import gzip
import io
import os
import stat
import zlib
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from clash.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer

MAX_WHOLE = 256 << 20
"""Bytes of a file that is read at once, such as JSON and Parquet, after decompression."""

MAX_LINE = 64 << 20
"""Bytes of one line of a file that is read line by line."""

MAX_DEPTH = 100
"""Levels of lists and mappings in YAML and JSON."""

MAX_RATIO = 200
"""The highest ratio of unpacked to packed size. Text reaches 5 to 60, a bomb 1,000."""

_ANY_RATIO = 32 << 20
"""Unpacked bytes up to which the ratio is not checked: small files may be very repetitive."""

_CHUNK = 1 << 19
_GZIP = b"\x1f\x8b"
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


def without_gz(path: Path) -> Path:
    """The path without ``.gz``, whose stem and suffix describe what :func:`open_bytes` reads."""
    return path.with_suffix("") if path.suffix.lower() == ".gz" else path


def unpacked_bound(packed_size: int) -> int:
    """Bytes that a file of a size may unpack to."""
    return max(_ANY_RATIO, MAX_RATIO * packed_size)


@contextmanager
def open_bytes(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; gzip is decompressed while it is read.

    Raises:
        InputError: it cannot be opened, is not a regular file, is damaged gzip, or decompresses to
            more than ``MAX_RATIO`` times its size.
    """
    with _open_regular(path) as raw:
        is_gzip = raw.peek(2)[:2] == _GZIP
        if path.suffix.lower() == ".gz" and not is_gzip and raw.peek(1):
            raise InputError(
                "is not gzip", path=path, hint="compress it with gzip, or rename it without .gz"
            )
        yield cast(
            "BinaryIO", io.BufferedReader(_GzipContent(raw, path), _CHUNK) if is_gzip else raw
        )


def files_in(folder: Path, *suffixes: str) -> list[Path]:
    """The files of a folder whose names end so, by name.

    Raises:
        InputError: one is a link that leads out of the folder. What these files hold is sent to
            models, so a link in a folder from elsewhere could send any file.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes)
    for path in files:
        # Not ``Path.resolve``, which fails on a link to itself.
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(folder.resolve()):
            raise InputError(
                "is a link that leads out of its folder", path=path, hint="copy the file instead"
            )
    return files


def check_unpacks(path: Path) -> None:
    """Read a gzip file to its end and keep nothing: a bomb is refused before its lines take memory.

    Raises:
        InputError: as :func:`open_bytes`.
    """
    with open_bytes(path) as file:
        if isinstance(cast("io.BufferedReader", file).raw, _GzipContent):
            while file.read(_CHUNK):
                pass


def read_bytes(path: Path, limit: int = MAX_WHOLE) -> bytes:
    """The content of a file, decompressed.

    Raises:
        InputError: as :func:`open_bytes`, or it is larger than ``limit``.
    """
    content = io.BytesIO()
    with open_bytes(path) as file:
        while chunk := file.read(_CHUNK):
            content.write(chunk)
            if content.tell() > limit:
                raise InputError(
                    f"is larger than {limit >> 20} MB, the most that is read as one document",
                    path=path,
                    hint="split it, or write JSON Lines (.jsonl), which is read line by line",
                )
    return content.getvalue()


def byte_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    r"""The lines of an open file, split at ``\n`` only: JSON strings may hold other separators.

    Raises:
        InputError: a line is longer than ``MAX_LINE``.
    """
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise InputError(
                f"is longer than {MAX_LINE >> 20} MB", path=path, line=number, hint="split it"
            )
        yield line


def _folder_error(path: Path) -> InputError:
    return InputError("is a folder, expected a file", path=path, hint="name the file in it")


def _open_regular(path: Path) -> io.BufferedReader:
    """Open without waiting: a device, or a pipe without a writer, would never end."""
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        is_dash = str(path) == "-"
        hint = "standard input is not read: write it to a file" if is_dash else "check the path"
        raise InputError("no such file", path=path, hint=hint) from None
    except PermissionError:
        if path.is_dir():
            raise _folder_error(path) from None
        raise InputError("permission denied", path=path, hint="make it readable") from None
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be opened: {reason}", path=path, hint="check the path") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise _folder_error(path)
        raise InputError(
            "is not a regular file", path=path, hint="write its content to a file, and name that"
        )
    return io.BufferedReader(io.FileIO(descriptor, "rb"), _CHUNK)


class _GzipContent(io.RawIOBase):
    """The content of a gzip file, as long as it stays in proportion to the bytes read so far."""

    def __init__(self, packed_file: io.BufferedReader, path: Path) -> None:
        self._packed_file, self._path = packed_file, path
        self._content = gzip.GzipFile(fileobj=packed_file)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        target = memoryview(buffer).cast("B")
        try:
            data = self._content.read(len(target))
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"is a damaged .gz file: {error}", path=self._path) from None
        self._size += len(data)
        if self._size > unpacked_bound(self._packed_file.tell()):
            raise InputError(
                f"unpacks to more than {MAX_RATIO} times its size, as a decompression bomb does",
                path=self._path,
                hint="if you trust it, unpack it with gunzip and name the unpacked file",
            )
        target[: len(data)] = data
        return len(data)


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name equals one of the patterns or matches it as a glob, upper case apart.

    Equality first: ``gpt[4]`` is a name before it is a class of characters.
    """
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)
