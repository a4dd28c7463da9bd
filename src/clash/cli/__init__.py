"""The command line: parse, call, print. One module a command."""

from __future__ import annotations

import gc
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

_YOUNG = 10_000


def main() -> None:
    """Run ``clash``; errors of ours become a message and an exit code, never a traceback."""
    from clash.cli.app import run
    from clash.cli.guard import guard

    sys.stdout, sys.stderr = _patient(sys.stdout), _patient(sys.stderr)
    guard()
    # A run holds many small objects for long and makes few cycles: looking for them at the default
    # of every 700 costs a twentieth of its time.
    gc.set_threshold(_YOUNG)
    sys.exit(run(sys.argv[1:]))


class _Pipe(io.FileIO):
    """What is written after the reader has left goes nowhere.

    `clash eval … | head` ends the reading, not the judging, and the exit code stays that of the
    run: 1 would say that a gate failed.
    """

    def write(self, data: Buffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _patient(stream: TextIO | None) -> TextIO:
    """The stream, whose reader may leave, or has never been there; as it is on a terminal."""
    if stream is None:  # closed by the shell, as `>&-` does
        return Path(os.devnull).open("w", encoding="utf-8")
    if not isinstance(stream, io.TextIOWrapper) or stream.isatty():
        return stream
    return io.TextIOWrapper(
        io.BufferedWriter(_Pipe(stream.fileno(), "wb", closefd=False)),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
