"""A run read while another process writes it: each refresh reads only what was appended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

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
from clash.store.folder import RunFolder
from clash.store.journal import decode, decode_part, read_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

T = TypeVar("T")
R = TypeVar("R", bound=Record)


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
    return lambda path, number, line: decode(path, number, line, model)


class FollowedFolder(RunFolder):
    """A run folder as of its last refresh.

    What grows is read by :meth:`refresh` alone, so that what is computed from the folder sees one
    moment of the run. Manifest and labels are as they stand.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        decoder = msgspec.json.Decoder(CallSummary)
        self._items = self._tail(layout.ITEMS, Item)
        self._responses = self._tail(layout.RESPONSES, Response)
        self._blinding = self._tail(layout.BLINDING, Blinding)
        self._criteria = self._tail(layout.CRITERIA, Criteria)
        self._judgments = self._tail(layout.JUDGMENTS, Judgment)
        self._reservations = self._tail(layout.RESERVATIONS, Reservation)
        self._calls = _Tail(
            path / layout.CALLS, lambda file, n, line: decode_part(file, n, line, decoder, Call)
        )

    def _tail(self, name: str, model: type[R]) -> _Tail[R]:
        return _Tail(self.path / name, _record_of(model))

    def refresh(self) -> int:
        """Read what was appended to every journal; returns how many records that was.

        A record is read before what it refers to: an item, written first, is read last.

        Raises:
            RunFolderError: a line is not a record.
        """
        return sum(
            tail.refresh()
            for tail in (
                self._calls,
                self._reservations,
                self._judgments,
                self._criteria,
                self._blinding,
                self._responses,
                self._items,
            )
        )

    def items(self) -> list[Item]:
        """The items so far."""
        return list(self._items.records)

    def responses(self) -> list[Response]:
        """The responses so far; the last one for a candidate and item counts."""
        return list({(r.item_id, r.candidate): r for r in self._responses.records}.values())

    def blinding(self) -> list[Blinding]:
        """The presentations so far."""
        return list(self._blinding.records)

    def criteria(self) -> list[Criteria]:
        """The criteria so far."""
        return list({r.item_id: r for r in self._criteria.records}.values())

    def judgments(self) -> list[Judgment]:
        """The judgments so far; the last one of a judge on a presentation counts."""
        records = self._judgments.records
        return list({(r.item_id, r.presentation, r.seat): r for r in records}.values())

    def reservations(self) -> list[Reservation]:
        """The reservations so far."""
        return list(self._reservations.records)

    def call_summaries(self) -> Iterator[CallSummary]:
        """The attempts so far."""
        return iter(self._calls.records)
