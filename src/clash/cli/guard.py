"""The last gate on the way to a terminal or a log: what passes holds no known secret."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO, cast

from clash.secrets.redaction import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator


class Guarded:
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
        stream if isinstance(stream, Guarded) else cast("TextIO", Guarded(stream, redactor))
        for stream in (sys.stdout, sys.stderr)
    )


@contextmanager
def guarded() -> Iterator[None]:
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
        if isinstance(stream, Guarded):
            stream.redactor = stream.redactor.with_secrets(dict(redactor.secrets))
