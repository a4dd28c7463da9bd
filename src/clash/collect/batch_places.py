"""What is kept of a batch while it is on: its rows, who waits for them, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import anyio

from clash.records import Batch, BatchRow
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clash.errors import ProviderError
    from clash.providers.batch import BatchProvider, Result, Row
    from clash.store.folder import RunFolder


@dataclass(frozen=True, slots=True)
class Left:
    """The batch is with the provider, or may be, and this is why it was not fetched."""

    error: ProviderError


@dataclass(eq=False, slots=True)
class Place:
    """The place of one question in a batch.

    Attributes:
        attempt: which attempt of the call it is.
        key: what the provider knows it by.
        row: the question as a row; null while nobody has asked it in this process.
        reserved: the money that is set aside for it.
        taken_back: nobody waits for it any more.
        handed: it is being handed in, and no longer to be taken back.
        came: ``found`` is there.
        found: what became of it.
    """

    call_id: str
    attempt: int
    request_hash: str
    key: str = ""
    row: Row | None = None
    reserved: Decimal = Decimal(0)
    taken_back: bool = False
    handed: anyio.Event = field(default_factory=anyio.Event)
    came: anyio.Event = field(default_factory=anyio.Event)
    found: Result | ProviderError | Left | None = None
    batch: HandedIn | None = None

    def settle(self, found: Result | ProviderError | Left) -> None:
        """Say what became of it, to whoever waits."""
        if self.found is None:
            self.found = found
            self.came.set()


@dataclass(eq=False)
class HandedIn:
    """A batch, from the moment it is written down.

    Attributes:
        places: by the key that the provider knows a row by.
        provider: null while nobody has asked for it in this process.
        provider_id: the provider's name of it; null where that is not known (yet).
        perhaps: the provider may have it, whether or not it said so.
        earlier: an earlier process began to hand it in.
        open: places whose calls are not on record.
        answered: places with an answer on record, and ``failed`` those with a failure.
        outcome: how it ended, in the provider's word.
        told: the provider knows that it is to cancel it, or that need not be.
    """

    mark: str
    model: str
    places: dict[str, Place]
    refused: list[str]
    began: str
    provider: BatchProvider | None = None
    provider_id: str | None = None
    perhaps: bool = False
    earlier: bool = False
    open: int = 0
    answered: int = 0
    failed: int = 0
    outcome: str | None = None
    told: anyio.Event = field(default_factory=anyio.Event)

    def line(self, state: str, rows: Sequence[BatchRow] = ()) -> Batch:
        """Its record."""
        return Batch.model_validate(
            {
                "batch": self.mark,
                "model": self.model,
                "state": state,
                "rows": list(rows),
                "refused": self.refused if rows else [],
                "provider_id": self.provider_id,
                "outcome": self.outcome,
                "answered": self.answered,
                "failed": self.failed,
                "time": now(),
            }
        )


def under_way(
    folder: RunFolder, made: Mapping[tuple[str, int], bool], held: Mapping[tuple[str, int], float]
) -> list[HandedIn]:
    """The batches that an earlier process handed in, or may have, and did not see to the end.

    Args:
        folder: the run.
        made: of every call on record and its attempt, whether it was answered.
        held: what is set aside for each call and attempt, in dollars.
    """
    found = []
    for batch in folder.batches():
        if batch.state == "ended":
            continue
        places = {
            row.custom_id: Place(
                row.call_id,
                row.attempt,
                row.request_hash,
                row.custom_id,
                reserved=Decimal(repr(held.get((row.call_id, row.attempt), 0.0))),
            )
            for row in batch.rows
            if (row.call_id, row.attempt) not in made
        }
        ends = [made.get((row.call_id, row.attempt)) for row in batch.rows]
        lot = HandedIn(
            batch.batch,
            batch.model,
            places,
            batch.refused,
            batch.time,
            provider_id=batch.provider_id,
            perhaps=True,
            earlier=True,
            open=len(places),
            answered=ends.count(True),
            failed=ends.count(False),
        )
        for place in places.values():
            place.batch = lot
            place.handed.set()
        found.append(lot)
    return found
