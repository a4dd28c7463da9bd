"""Streams that end no run: their reader may leave, their disk fill up, their encoding lack a letter."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

_LEFT = (errno.EPIPE, errno.EIO, errno.ECONNRESET)
"""Nobody reads any more: `clash eval … | head` has ended, or the terminal was closed."""


class _Patient(io.FileIO):
    """What cannot be written goes nowhere; ``failure`` is the first reason.

    A reader that leaves ends the reading, not the judging, and the exit code stays that of the
    run: 1 would say that a gate failed.
    """

    failure: OSError | None = None

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.failure = self.failure or error
            return memoryview(data).nbytes


def patient(stream: TextIO | None) -> TextIO:
    """The stream, or one to nowhere where there is none; a letter it lacks is a question mark."""
    if stream is None:  # closed by the shell, as `>&-` does
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper):
        return stream
    if os.name == "nt" and stream.isatty():  # pragma: no cover - a console is no file there
        stream.reconfigure(errors="replace")
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Patient(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def failure(stream: TextIO) -> OSError | None:
    """Why some of what was printed is lost; null where it is not, or where nobody wants it."""
    stream.flush()
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    error = raw.failure if isinstance(raw, _Patient) else None
    return None if error is None or error.errno in _LEFT else error
