"""Read and write the files of a run folder, which may come from a stranger.

A symbolic link, a pipe or a device in a run folder is refused, so that nothing outside the folder
is read or written through it and no command waits for it. The check is made on the open file,
because another process may replace the file between a check and an open.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, BinaryIO, cast

from clash.errors import RunFolderError
from clash.extras import require
from clash.files import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

LONGEST = 1 << 26
"""Bytes of the longest line, and of the largest file that is read at once by default. No provider
accepts or returns half as much in one call; a file without line ends would otherwise fill memory."""

_FLAGS = (
    getattr(os, "O_NOFOLLOW", 0)
    # Without it, opening a pipe waits until somebody opens its other end.
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)  # Windows would write \r\n
)
_HAS_DIR_FD = os.open in os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ABSENT = (errno.ENOENT, errno.ENOTDIR)
_FORBIDDEN = (errno.EROFS, errno.EACCES, errno.EPERM)
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def is_file(path: Path) -> bool:
    """Whether the path is a regular file, not a link to one.

    Raises:
        RunFolderError: the path is something else.
    """
    try:
        _check_kind(path, path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise file_error(path, "read", error) from None
    return True


def open_to_read(path: Path, *, refuse_sparse: bool = True) -> BinaryIO:
    """Open a file for reading.

    Args:
        path: the file.
        refuse_sparse: refuse a large file that is mostly holes. Set it wherever the file is read
            from end to end, which would take hours.

    Raises:
        FileNotFoundError: the file is missing.
        RunFolderError: it is not a regular file, or cannot be read.
    """
    file = os.fdopen(_open(path, os.O_RDONLY, "read"), "rb")
    if refuse_sparse and _is_sparse(file.fileno()):
        file.close()
        raise RunFolderError(
            f"{path}: has holes (it is a sparse file), so it was not written by clash"
        )
    return _with_frames(file, path) if path.suffix == ".jsonl" else file


def _with_frames(plain: BinaryIO, path: Path) -> BinaryIO:
    """A journal with the lines that are compressed beside it, where some are.

    Raises:
        RunFolderError: a frame is damaged, or would unpack to more than a bomb may.
        MissingPackageError: the package that unpacks them is missing.
    """
    try:
        file = os.fdopen(_open(packed.packed_path(path), os.O_RDONLY, "read"), "rb")
    except FileNotFoundError:
        return plain
    with ExitStack() as stack:
        stack.enter_context(file)
        stack.enter_context(plain)
        require("zstandard", field=packed.packed_path(path).name)
        content = cast("BinaryIO", packed.content(file, packed.packed_path(path), plain, LONGEST))
        stack.pop_all()  # the content closes both
    return content


def mend_frames(path: Path) -> None:
    """Remove what a process left that was killed while it packed the lines of a journal.

    Either a part of a frame, whose lines are still there, or lines that are in a frame as well.

    Raises:
        RunFolderError: a frame is damaged, or there are lines that follow no frame.
    """
    target = packed.packed_path(path)
    try:
        file = open_to_update(target)
    except FileNotFoundError:
        return
    with file, open_to_update(path) as plain:
        frames = packed.Frames(file, target, LONGEST)
        plain_start = packed.start_of_plain(plain, frames)
        if frames.is_torn:
            file.truncate(frames.index[-1].end if frames.index else 0)
        if plain_start:
            plain.seek(plain_start)
            replace(path, iter(partial(plain.read, packed.FRAME), b""))


def pack_lines(path: Path) -> None:
    """Move the lines of a journal into frames of the file beside it; the lines go last.

    Raises:
        RunFolderError: there is no space for the frames; the lines stay.
    """
    target = packed.packed_path(path)
    with open_to_update(path) as plain:
        descriptor = open_to_append(target)
        end = os.fstat(descriptor).st_size
        try:
            for frame in packed.pack(lines_of(plain, path)):
                remaining = memoryview(frame)
                while remaining:
                    remaining = remaining[os.write(descriptor, remaining) :]
            os.fsync(descriptor)
        except OSError as error:
            os.ftruncate(descriptor, end)
            raise file_error(target, "written", error) from None
        finally:
            os.close(descriptor)
        plain.truncate(0)


def open_to_append(path: Path) -> int:
    """Open a file that only grows, and create it where it is missing.

    Returns:
        The file descriptor.

    Raises:
        RunFolderError: it is not a regular file, has a second name, or cannot be written.
    """
    return _writable(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def open_to_update(path: Path) -> BinaryIO:
    """Open an existing file for reading and writing.

    Raises:
        FileNotFoundError: the file is missing.
        RunFolderError: as :func:`open_to_append`.
    """
    return cast("BinaryIO", os.fdopen(_writable(path, os.O_RDWR), "rb+"))


def read(path: Path, *, most: int = LONGEST) -> bytes:
    """The content of a file.

    Raises:
        FileNotFoundError: the file is missing.
        RunFolderError: it is not a regular file, is larger than ``most`` bytes, or cannot be read.
    """
    with open_to_read(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise RunFolderError(
            f"{path}: is larger than {most:,} bytes, so it was not written by clash"
        )
    return data


def lines(path: Path) -> Iterator[bytes]:
    """The lines of a file, each with its line end; none where the file is missing.

    Raises:
        RunFolderError: it is not a regular file, cannot be read, or has a line longer than a record
            can be.
    """
    try:
        file = open_to_read(path)
    except FileNotFoundError:
        return
    with file:
        yield from lines_of(file, path)


def lines_of(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a file that is open.

    Raises:
        RunFolderError: one is longer than a record can be.
    """
    for number, line in enumerate(iter(partial(file.readline, LONGEST + 1), b""), start=1):
        if len(line) > LONGEST:
            raise RunFolderError(f"{path}:{number}: is longer than {LONGEST:,} bytes")
        yield line


def replace(path: Path, data: bytes | Iterable[bytes]) -> None:
    """Replace a file atomically: a reader sees the old or the new content, after a power cut too.

    Args:
        path: the file.
        data: its content, or the parts of it.

    Raises:
        RunFolderError: the path is not a regular file, or cannot be written.
    """
    is_file(path)
    part = f".{path.name}.{secrets.token_hex(8)}.part"
    try:
        with _folder(path.parent) as (at, folder):
            try:
                with os.fdopen(_create(at(part), folder), "wb") as file:
                    file.writelines([data] if isinstance(data, bytes) else data)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(at(part), at(path.name), src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(at(part), dir_fd=folder)
                raise
            if folder is not None:
                os.fsync(folder)  # the new name
    except OSError as error:
        raise file_error(path, "written", error) from None


def with_hint(message: str, error: OSError) -> str:
    """The message with a fix for the error, where one is known."""
    if error.errno in _FULL:
        return (
            f"{message}\n  fix: make room on the disk, then repeat the command; `clash resume` "
            "continues"
            " a run that had started, and pays for nothing twice"
        )
    if error.errno in _FORBIDDEN:
        return f"{message}\n  fix: choose a folder that you may write to"
    if error.errno in _ABSENT:
        return f"{message}\n  fix: check the path; its folder has to exist"
    return message


def sweep(folder: Path) -> None:
    """Remove the temporary files of a process that was killed in :func:`replace`."""
    for path in folder.glob(".*.part"):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()  # of a link this removes the link


@contextmanager
def _folder(path: Path) -> Iterator[tuple[Callable[[str], str], int | None]]:
    """Hold a folder open; yields a function from file name to path, and the descriptor.

    The temporary file is renamed within the folder that it was written to, even if the path leads
    elsewhere by then.
    """
    if not _HAS_DIR_FD:  # pragma: no cover - Windows
        yield (lambda name: str(path / name)), None
        return
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str, folder
    finally:
        os.close(folder)


def _create(name: str, folder: int | None) -> int:
    return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666, dir_fd=folder)


def _writable(path: Path, flags: int) -> int:
    fd = _open(path, flags, "written")
    # Writing to a file changes it under all of its names, and another name may be anywhere.
    if os.fstat(fd).st_nlink > 1:
        os.close(fd)
        raise RunFolderError(
            f"{path}: has a second name (a hard link) that would change too"
            f"\n  fix: replace it with a copy of itself"
        )
    return fd


def _open(path: Path, flags: int, verb: str) -> int:
    try:
        with suppress(FileNotFoundError):
            _check_kind(path, path.lstat())  # before opening: a device may react to it
        fd = os.open(path, flags | _FLAGS, 0o666)
    except FileNotFoundError:
        if flags & os.O_CREAT:
            raise RunFolderError(
                f"{path}: cannot be {verb} (its folder no longer exists)"
            ) from None
        raise
    except OSError as error:
        raise file_error(path, verb, error) from None
    try:
        _check_kind(path, os.fstat(fd))  # after opening: the file may have been replaced
    except RunFolderError:
        os.close(fd)
        raise
    return fd


def _check_kind(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no regular file")
        raise RunFolderError(
            f"{path}: is {kind}; every file of a run must be a regular file"
            "\n  fix: use this folder only if you know where it comes from;"
            " then replace the entry with the file itself"
        )


def _is_sparse(fd: int) -> bool:
    """Whether a file is large and has holes, so that reading it would take hours.

    Small files pass: a power cut may leave a few zero bytes.
    """
    size = os.fstat(fd).st_size
    if size <= LONGEST or not hasattr(os, "SEEK_HOLE"):
        return False
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE) < size
    except OSError:  # the file system does not tell
        return False
    finally:
        os.lseek(fd, 0, os.SEEK_SET)


def file_error(path: Path, verb: str, error: OSError) -> RunFolderError:
    """The :class:`RunFolderError` for an ``OSError``; ``verb`` is "read" or "written"."""
    message = f"{path}: cannot be {verb} ({error.strerror or error})"
    return RunFolderError(with_hint(message, error))
