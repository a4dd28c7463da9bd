"""Journals whose older lines are compressed: ``calls.jsonl.zst`` before ``calls.jsonl``.

A journal is written as plain lines, so that a killed process loses none. From time to time, and when
the run is sealed, its lines are moved into frames of a file beside it. Both together are the
journal: :func:`clash.files.run_files.open_to_read` reads the frames and then the lines, at any
place. ``zstd -dc calls.jsonl.zst`` shows the frames too.

Before each frame stands a skippable frame of the Zstandard format (RFC 8878, section 3.1.2): packed
size, size, and the hash of the last line. The first plain line names that hash where it follows; a
process that was killed between packing lines and removing them leaves some that are in a frame as
well, and these are passed over. A frame never unpacks to more than :data:`MAX_RATIO` times its bytes, because a frame
that would is followed by as many zeros as that takes: a stranger's bomb has to be as large.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, BinaryIO

from clash.errors import RunFolderError
from clash.files.inputs import MAX_RATIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from typing_extensions import Buffer

SUFFIX = ".zst"
FRAME = 1 << 20
"""Bytes of lines in a frame, unless one line is longer: what is unpacked to read a single line."""
LEVEL = 3
_MAGIC = 0x184D2A5C
_HEADER = struct.Struct("<II QQ32s")
_HEAD = struct.Struct("<QQ32s")
_PREFIX_SIZE = 8
"""Bytes of a skippable frame before its content: magic number and size."""
_CACHE_SIZE = 8
"""Frames that are kept unpacked; fewer where some hold a line longer than a frame."""


def packed_path(path: Path) -> Path:
    """The file of frames beside a journal."""
    return path.with_name(path.name + SUFFIX)


def pack(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Complete lines as frames, each with its header."""
    import zstandard

    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    for portion in _portions(lines):
        data = b"".join(portion)
        frame = compressor.compress(data)
        padding = bytes(max(0, -(-len(data) // MAX_RATIO) - len(frame) - _HEADER.size))
        head = hashlib.sha256(portion[-1].removesuffix(b"\n")).digest()
        size = _HEAD.size + len(padding)
        yield _HEADER.pack(_MAGIC, size, len(frame), len(data), head) + padding + frame


def _portions(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    portion: list[bytes] = []
    size = 0
    for line in lines:
        if portion and size + len(line) > FRAME:
            yield portion
            portion, size = [], 0
        portion.append(line)
        size += len(line)
    if portion:
        yield portion


@dataclass(frozen=True)
class Frame:
    """Where a frame is.

    Attributes:
        start: its first byte in the file.
        packed_size: its bytes.
        at: where its lines begin in the journal.
        size: bytes of its lines.
        head: SHA-256 of its last line, in hexadecimal digits.
        end: where the next frame begins in the file.
    """

    start: int
    packed_size: int
    at: int
    size: int
    head: str
    end: int


class Frames:
    """The frames of a file.

    Attributes:
        index: the complete ones.
        is_torn: a frame at the end is incomplete, as a killed process leaves one.
        path: the name of the file, for messages.
        longest: bytes of the longest line.

    Args:
        file: the file.
        path: its name.
        longest: bytes of the longest line.

    Raises:
        RunFolderError: the file has another format, or a frame is larger than one can be.
    """

    def __init__(self, file: BinaryIO, path: Path, longest: int) -> None:
        self._file, self.path, self.longest = file, path, longest
        self.index: list[Frame] = []
        self.is_torn = False
        end, start, at = file.seek(0, os.SEEK_END), 0, 0
        while start < end:
            file.seek(start)
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                self.is_torn = True
                break
            magic, content, packed_size, size, head = _HEADER.unpack(header)
            if magic != _MAGIC or content < _HEAD.size or not size:
                raise self._error("is not a frame that clash wrote")
            if size > longest + FRAME or size > MAX_RATIO * (packed_size + content + _PREFIX_SIZE):
                raise self._error(
                    f"unpacks to {size:,} bytes from {packed_size:,}, as a decompression bomb does"
                )
            body = start + _PREFIX_SIZE + content
            if body + packed_size > end:
                self.is_torn = True
                break
            self.index.append(Frame(body, packed_size, at, size, head.hex(), body + packed_size))
            start, at = body + packed_size, at + size

    @property
    def size(self) -> int:
        """Bytes of lines in the complete frames."""
        return self.index[-1].at + self.index[-1].size if self.index else 0

    def unpack(self, number: int) -> bytes:
        """The lines of a frame.

        Raises:
            RunFolderError: it is damaged, or not of the size that its header says.
        """
        import zstandard

        frame = self.index[number]
        self._file.seek(frame.start)
        data = self._file.read(frame.packed_size)
        try:
            # The size in the frame itself decides how much memory is taken.
            if zstandard.frame_content_size(data) != frame.size:
                raise self._error("is not of the size that its header says", number)
            lines: bytes = zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
        except zstandard.ZstdError as error:
            raise self._error(f"is damaged ({error})", number) from None
        return lines

    def _error(self, message: str, number: int | None = None) -> RunFolderError:
        number = len(self.index) if number is None else number
        return RunFolderError(
            f"{self.path}: frame {number + 1} {message}\n  fix: restore the file from a copy of the run"
        )


class _Content(io.RawIOBase):
    """A journal of frames and plain lines, read as one file.

    Args:
        frames: those of the file beside it.
        frames_file: that file.
        plain: the file of plain lines.
        plain_start: where those begin that are in no frame.
    """

    def __init__(
        self, frames: Frames, frames_file: BinaryIO, plain: BinaryIO, plain_start: int
    ) -> None:
        self._frames_file, self._plain, self._plain_start = frames_file, plain, plain_start
        self._starts = [frame.at for frame in frames.index]
        self._n_packed = frames.size
        self._n_plain = plain.seek(0, os.SEEK_END) - plain_start
        self._at = 0
        largest = max((frame.size for frame in frames.index), default=1)
        n_kept = max(1, min(_CACHE_SIZE, _CACHE_SIZE * FRAME // largest))
        self._unpack: Callable[[int], bytes] = lru_cache(n_kept)(frames.unpack)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        end = self._n_packed + self._n_plain
        self._at = max(0, offset + (0, self._at, end)[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Buffer, /) -> int:
        target = memoryview(buffer).cast("B")
        data = self._piece(len(target))
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _piece(self, most: int) -> bytes:
        """At most so many bytes from here on, of one frame or of the plain lines."""
        if self._at >= self._n_packed:
            self._plain.seek(self._plain_start + self._at - self._n_packed)
            return self._plain.read(most)
        number = bisect_right(self._starts, self._at) - 1
        offset = self._at - self._starts[number]
        return self._unpack(number)[offset : offset + most]

    def close(self) -> None:
        if not self.closed:
            self._frames_file.close()
            self._plain.close()
        super().close()

    def fileno(self) -> int:
        raise io.UnsupportedOperation("a journal of two files has no descriptor")


def content(frames_file: BinaryIO, path: Path, plain: BinaryIO, longest: int) -> io.BufferedReader:
    """A journal as one file, from the file of its frames and its plain lines.

    Raises:
        RunFolderError: the frames are damaged, or lines between them and the plain ones are missing.
    """
    try:
        frames = Frames(frames_file, path, longest)
        plain_start = start_of_plain(plain, frames)
    except RunFolderError:
        # The process that writes the run may have packed the lines between the two readings.
        frames = Frames(frames_file, path, longest)
        plain_start = start_of_plain(plain, frames)
    return io.BufferedReader(_Content(frames, frames_file, plain, plain_start), FRAME >> 4)


def start_of_plain(plain: BinaryIO, frames: Frames) -> int:
    """Where the plain lines begin that are in no frame.

    A process that was killed after it wrote some of its frames, or all, has not removed their lines.

    Raises:
        RunFolderError: the plain lines follow no frame, or those of a torn frame are not there.
    """
    plain_start = _end_of_packed(plain, frames)
    if frames.is_torn and (plain_start is None or plain_start == plain.seek(0, os.SEEK_END)):
        raise RunFolderError(
            f"{frames.path}: ends inside a frame\n  fix: restore the file from a copy of the run"
        )
    if plain_start is None:
        raise RunFolderError(
            f"{frames.path.with_suffix('')}: its first line does not follow the last of "
            f"{frames.path.name}\n  fix: restore both from a copy of the run"
        )
    return plain_start


def _end_of_packed(plain: BinaryIO, frames: Frames) -> int | None:
    if not frames.index or not plain.seek(0, os.SEEK_END):
        return 0
    plain.seek(0)
    if frames.index[-1].head.encode() in plain.readline(frames.longest + 1)[-100:]:
        return 0
    plain.seek(0)
    end = 0
    for line in iter(partial(plain.readline, frames.longest + 1), b""):
        end += len(line)
        if hashlib.sha256(line.removesuffix(b"\n")).hexdigest() == frames.index[-1].head:
            return end
    return None
