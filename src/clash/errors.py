"""The exceptions of clash, as a tree, each with its exit code.

    ClashError              2       the base; the command line prints it without a traceback
    ├── InputError          2       a file or a value a user wrote is wrong: file, line, field, hint
    │   └── ConfigError     2       … in a configuration or panel file, or on the command line
    │       └── MissingPackageError 2   an optional package is not installed; the hint installs it
    ├── RunFolderError      2       a run folder is missing, locked, or not of this schema
    ├── StatisticsError     2       the data are too few or too uniform for a statistic
    │   └── NotIdentifiedError 2    several parameter values explain the data equally well
    ├── DownloadError       2       a data set could not be downloaded, or its checksum differs
    ├── IncompleteRun       3       more calls failed than the run allows
    ├── AuditFailed         5       a run folder differs from its manifest or its signature
    └── ProviderError       4       one attempt of one call failed: a record, not a crash

``collect`` adds three that end work inside a run and become records: a model that has stopped, a
budget that is spent, an interruption. A gate that fails (exit code 1) and a run whose provider
refused for good (4) are results, not exceptions: the command reports them and exits with their
code. A failed call is a row in ``calls.jsonl``; only a bug ends in a traceback.
"""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


_NEAR = 0.6
"""Similarity from which one name counts as a misspelling of another (difflib's ratio)."""
_LONGEST_NAME = 200
"""Characters of a name that are compared: comparing takes the square of its length."""


class ClashError(Exception):
    """The base of every exception that clash raises on purpose."""

    exit_code = 2


class InputError(ClashError):
    """A file or a value that a user wrote cannot be used.

    Attributes:
        path: the file, where there is one.
        line: its line, counted from 1.
        field: the field, as ``judges[2].model``.
        hint: what to write instead.
    """

    def __init__(
        self,
        message: str,
        *,
        path: Path | str | None = None,
        line: int | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.path, self.line, self.field, self.hint = path, line, field, hint
        self.message = message
        super().__init__(str(self))

    def __str__(self) -> str:
        where = "" if self.path is None else str(self.path)
        if self.line is not None:
            where += f":{self.line}" if where else f"line {self.line}"
        parts = [part for part in (where, self.field) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}\n  fix: {self.hint}" if self.hint else text


def field_path(loc: Sequence[object]) -> str:
    """``("judges", 2, "model")`` as ``judges[2].model``."""
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """The choice that a name is most likely a misspelling of; null where none is near."""
    spellings = {choice.lower(): choice for choice in choices}
    matches = get_close_matches(name.lower()[:_LONGEST_NAME], spellings, n=1, cutoff=_NEAR)
    return spellings[matches[0]] if matches else None


def one_of(name: str, choices: Iterable[str], *, beside: str = "") -> str:
    """The hint for a name that does not exist: the nearest one, and all that exist.

    Args:
        name: what was written.
        choices: what could have been.
        beside: what is possible beside the choices, as ``or a path``.
    """
    names = list(choices)
    match = nearest(name, names)
    listing = ", ".join(names) + (f", {beside}" if beside else "")
    return f'did you mean "{match}"? Choices: {listing}' if match else f"one of {listing}"


class ConfigError(InputError):
    """A configuration, a panel file or a command line option is wrong."""


class MissingPackageError(ConfigError):
    """What was asked for needs an optional package that is not installed."""


class RunFolderError(ClashError):
    """A run folder is missing, locked by another process, or not readable by this version."""


CONTRADICTIONS = (
    LookupError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    AssertionError,
)
"""What computing from the records of a run may raise where somebody has changed them."""


def contradiction(runs: Sequence[str], error: Exception) -> RunFolderError:
    """The error of runs whose records are inconsistent, from what reading them raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    line = f"{Path(frame.filename).name}:{frame.lineno}"
    return RunFolderError(
        f"{' and '.join(runs)}: its records are inconsistent"
        f" ({type(error).__name__}: {error}, at {line})"
        f"\n  fix: `clash verify {runs[-1]}` shows what was changed; if it finds nothing, this is a"
        " bug of clash: please report it"
    )


@contextmanager
def as_run_errors(*runs: Path) -> Iterator[None]:
    """Raise what contradictory records of runs cause as a :class:`RunFolderError`.

    Raises:
        RunFolderError: the records are inconsistent.
    """
    try:
        yield
    except CONTRADICTIONS as error:
        raise contradiction([*map(str, runs)], error) from error


class StatisticsError(ClashError):
    """The data do not support the statistic: too few, all missing, or out of range."""


class NotIdentifiedError(StatisticsError):
    """Several parameter values explain the data equally well, so none is reported."""


class DownloadError(ClashError):
    """A data set could not be downloaded, or its checksum is not the published one."""


class IncompleteRun(ClashError):
    """The run ended with more failures than ``limits.max_failed``."""

    exit_code = 3


class AuditFailed(ClashError):
    """A run folder differs from what its manifest or its signature says."""

    exit_code = 5


ErrorClass = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "timeout",
    "connection",
    "incomplete_stream",
    "unfinished",
    "bad_payload",
    "unsupported",
    "bad_request",
    "too_long",
    "quota",
    "auth",
    "permission",
    "not_found",
    "tls",
    "proxy",
    "blocked",
    "budget",
    "replay_miss",
    "callable",
    "interrupted",
]
"""Why an attempt failed, in one word that is stored in ``calls.jsonl``."""

Action = Literal["retry", "degrade", "fail", "stop"]
"""The reaction to it: try again later, try again now without the feature that was refused, fail
this call, or stop calling this model for the rest of the run."""


class ProviderError(ClashError):
    """One attempt of one call failed. It becomes a row in ``calls.jsonl``.

    Attributes:
        error_class: why it failed, in one word.
        action: how to react.
        status: the HTTP status, where there was an answer.
        retry_after: seconds that the provider asks to wait, already bounded.
        request: the request as sent, without keys.
        response: the raw answer, where there was one.
        request_id: the provider's own id of the call.
        maybe_billed: the provider may have charged for it (the answer was lost), so the budget
            counts its worst case.
        latency_s: seconds from sending to failing.
        address: the server that failed, where the model has several.
    """

    exit_code = 4
    address: str | None = None

    def __init__(
        self,
        message: str,
        *,
        error_class: ErrorClass,
        action: Action,
        status: int | None = None,
        retry_after: float | None = None,
        request: Mapping[str, Any] | None = None,
        response: Any = None,  # noqa: ANN401 - any JSON value
        request_id: str | None = None,
        maybe_billed: bool = False,
        latency_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.error_class = error_class
        self.action = action
        self.status = status
        self.retry_after = retry_after
        self.request = request
        self.response = response
        self.request_id = request_id
        self.maybe_billed = maybe_billed
        self.latency_s = latency_s
