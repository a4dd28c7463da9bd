"""Streams that end no run and pass on no secret.

Their reader may leave, their disk fill up, their encoding lack a letter; and whatever is written
to them, the secrets in it are taken out.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from clash.secrets.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

_READER_GONE = (errno.EPIPE, errno.EIO, errno.ECONNRESET)
"""Nobody reads any more: `clash eval … | head` has ended, or the terminal was closed."""


class _PatientFile(io.FileIO):
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
        io.BufferedWriter(_PatientFile(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors="replace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def failure(stream: TextIO) -> OSError | None:
    """Why some of what was printed is lost; null where it is not, or where nobody wants it."""
    stream.flush()
    error = _first_failure(stream)
    return None if error is None or error.errno in _READER_GONE else error


def is_lost(stream: TextIO) -> bool:
    """Whether what is written goes nowhere any more: a command that only prints may stop."""
    return _first_failure(stream) is not None


def _first_failure(stream: TextIO) -> OSError | None:
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.failure if isinstance(raw, _PatientFile) else None


class GuardedStream:
    """A stream of text that takes the secrets out of what is written to it.

    Reports, progress, warnings, logs and tracebacks all come through here, whoever wrote them.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        self._stream = stream
        self.redactor = redactor

    def write(self, text: str) -> int:
        """Pass ``text`` on without the secrets in it."""
        self._stream.write(self.redactor.data(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


def guard() -> None:
    """Guard stdout and stderr against the secrets of the process's environment, for good."""
    redactor = Redactor.of_environ(os.environ)
    sys.stdout, sys.stderr = (
        stream
        if isinstance(stream, GuardedStream)
        else cast("TextIO", GuardedStream(stream, redactor))
        for stream in (sys.stdout, sys.stderr)
    )


@contextmanager
def guard_streams() -> Iterator[None]:
    """Guard stdout and stderr for as long as a command runs."""
    before = sys.stdout, sys.stderr
    guard()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def learn(redactor: Redactor) -> None:
    """Guard against what ``redactor`` knows as well: ``.env`` is read by the command itself."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, GuardedStream):
            stream.redactor = stream.redactor.with_secrets(dict(redactor.secrets))
