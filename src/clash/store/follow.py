"""A run read while another process writes it: each refresh reads only what was appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import msgspec

from clash.records import (
    Blinding,
    Call,
    CallSummary,
    Criteria,
    Item,
    Judgment,
    Record,
    Reservation,
    Response,
)
from clash.store import layout
from clash.store.folder import RunFolder, latest_records
from clash.store.journal import decode_part, read_on
from clash.store.stored import decode_fast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

T = TypeVar("T")
R = TypeVar("R", bound=Record)


_LAST_FIRST: dict[type[Record], str] = {
    Reservation: layout.RESERVATIONS,
    Judgment: layout.JUDGMENTS,
    Criteria: layout.CRITERIA,
    Blinding: layout.BLINDING,
    Response: layout.RESPONSES,
    Item: layout.ITEMS,
}
"""What is read of a run that goes on, what refers to something before what it refers to."""


class _Tail(Generic[T]):
    """The records of a journal so far."""

    def __init__(self, path: Path, parse: Callable[[Path, int, bytes], T]) -> None:
        self.records: list[T] = []
        self._path, self._parse, self._end = path, parse, 0

    def refresh(self) -> int:
        """Read what was appended; returns how many records that was."""
        before = len(self.records)
        lines, end = read_on(self._path, self._end)
        records = [
            self._parse(self._path, number, line)
            for number, line in enumerate(lines, start=before + 1)
        ]
        self.records += records
        self._end = end
        return len(self.records) - before


def _record_of(model: type[R]) -> Callable[[Path, int, bytes], R]:
    return lambda path, number, line: decode_fast(path, number, line, model)


class FollowedFolder(RunFolder):
    """A run folder as of its last refresh.

    What grows is read by :meth:`refresh` alone, so that what is computed from the folder sees one
    moment of the run. Manifest and labels are as they stand.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        decoder = msgspec.json.Decoder(CallSummary)
        self._tails: dict[type[Record], _Tail[Any]] = {
            model: _Tail(path / name, _record_of(model)) for model, name in _LAST_FIRST.items()
        }
        self._calls = _Tail(
            path / layout.CALLS, lambda file, n, line: decode_part(file, n, line, decoder, Call)
        )

    def refresh(self) -> int:
        """Read what was appended to every journal; returns how many records that was.

        A record is read before what it refers to: an item, written first, is read last.

        Raises:
            RunFolderError: a line is not a record.
        """
        return sum(tail.refresh() for tail in (self._calls, *self._tails.values()))

    def records(self, model: type[R]) -> Sequence[R]:
        """The records so far that count of a kind."""
        return latest_records(cast("_Tail[R]", self._tails[model]).records, model)

    def call_summaries(self) -> Iterator[CallSummary]:
        """The attempts so far."""
        return iter(self._calls.records)
