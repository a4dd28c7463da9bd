"""Batches of one run: gathered, handed in, waited for, fetched, and none of them twice.

``batches.jsonl`` has a line before a batch is handed in and one after. A process that finds the
first without the second looks for the batch at the provider before it hands anything in; one that
finds both waits for the batch and fetches it.
"""

from __future__ import annotations

import random
import secrets
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import anyio
import anyio.to_thread

from clash.errors import ProviderError
from clash.providers.batch import Lot, Result, never_came
from clash.providers.retry import attempts
from clash.records import Batch, BatchRow, Reservation
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Coroutine,
        Iterator,
        Mapping,
        Sequence,
    )

    from anyio.abc import TaskGroup

    from clash.collect.schedule import Stop
    from clash.config import Limits
    from clash.providers.batch import BatchProvider, Progress, Row
    from clash.providers.ladder import Feature
    from clash.store.folder import RunFolder, RunWriter


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """The batch is with the provider, or may be, and this is why it was not fetched."""

    error: ProviderError


@dataclass(eq=False, slots=True)
class BatchEntry:
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
    reservation: Decimal = Decimal(0)
    withdrawn: bool = False
    submission: anyio.Event = field(default_factory=anyio.Event)
    arrival: anyio.Event = field(default_factory=anyio.Event)
    result: Result | ProviderError | FetchFailure | None = None
    batch: RunBatch | None = None

    def settle(self, result: Result | ProviderError | FetchFailure) -> None:
        """Say what became of it, to whoever waits."""
        if self.result is None:
            self.result = result
            self.arrival.set()


@dataclass(eq=False)
class RunBatch:
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
    entries: dict[str, BatchEntry]
    refused_features: list[str]
    start_time: str
    provider: BatchProvider | None = None
    provider_id: str | None = None
    maybe_submitted: bool = False
    from_earlier_process: bool = False
    n_open: int = 0
    n_answered: int = 0
    n_failed: int = 0
    outcome: str | None = None
    cancellation: anyio.Event = field(default_factory=anyio.Event)

    def record(self, state: str, rows: Sequence[BatchRow] = ()) -> Batch:
        """Its record."""
        return Batch.model_validate(
            {
                "batch": self.mark,
                "model": self.model,
                "state": state,
                "rows": list(rows),
                "refused": self.refused_features if rows else [],
                "provider_id": self.provider_id,
                "outcome": self.outcome,
                "answered": self.n_answered,
                "failed": self.n_failed,
                "time": now(),
            }
        )


def unfinished_batches(
    folder: RunFolder, made: Mapping[tuple[str, int], bool], held: Mapping[tuple[str, int], float]
) -> list[RunBatch]:
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
            row.custom_id: BatchEntry(
                row.call_id,
                row.attempt,
                row.request_hash,
                row.custom_id,
                reservation=Decimal(repr(held.get((row.call_id, row.attempt), 0.0))),
            )
            for row in batch.rows
            if (row.call_id, row.attempt) not in made
        }
        ends = [made.get((row.call_id, row.attempt)) for row in batch.rows]
        lot = RunBatch(
            batch.batch,
            batch.model,
            places,
            batch.refused,
            batch.time,
            provider_id=batch.provider_id,
            maybe_submitted=True,
            from_earlier_process=True,
            n_open=len(places),
            n_answered=ends.count(True),
            n_failed=ends.count(False),
        )
        for place in places.values():
            place.batch = lot
            place.submission.set()
        found.append(lot)
    return found


T = TypeVar("T")

QUIET_S = 0.25
"""A model that nobody has asked anything for so long has been asked all that can be asked yet."""
SLOWER = 1.5
"""How much longer each wait for a batch is than the one before it."""
SLOWEST = 20
"""The longest wait, in first ones."""
_SERVER_ERROR = 500
_UNIFORM = random.SystemRandom().uniform


class BatchWatcher(Protocol):
    """Someone who watches batches: the progress line."""

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Batches were handed in or looked after: so many of their rows are through."""
        ...


class BatchQueue:
    """Where questions are gathered into batches, and batches seen to their end.

    Args:
        folder: where batches are written down.
        limits: how often to look, and how patient to be with the line.
        watcher: is told of every look.
        stop: after it nothing is handed in.
        cancels: batches that are taken up are cancelled, and what is through is fetched.
    """

    def __init__(
        self, folder: RunWriter, limits: Limits, watcher: BatchWatcher, stop: Stop, *, cancels: bool
    ) -> None:
        self._folder, self._limits = folder, limits
        self._watcher, self._stop = watcher, stop
        self._cancels = cancels
        self._run = folder.manifest().run
        self._ids = {batch.provider_id for batch in folder.batches() if batch.provider_id}
        self._sizes = {batch.batch: len(batch.rows) for batch in folder.batches()}
        self._waiting: defaultdict[BatchProvider, list[BatchEntry]] = defaultdict(list)
        self._counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._tasks: TaskGroup | None = None

    def start(self, tasks: TaskGroup) -> None:
        """Work within ``tasks`` from now on."""
        self._tasks = tasks

    def add(self, place: BatchEntry, provider: BatchProvider) -> None:
        """Put a question to the others that wait for the next batch of its model."""
        waiting = self._waiting[provider]
        waiting.append(place)
        if len(waiting) == 1:
            self._start(self._gather, provider)

    def withdraw(self, place: BatchEntry, provider: BatchProvider) -> None:
        """Take a question back that has not been handed in."""
        place.withdrawn = True
        if place in self._waiting[provider]:
            self._waiting[provider].remove(place)

    def resume(self, lot: RunBatch, provider: BatchProvider) -> None:
        """See a batch of an earlier process to its end; the first who asks for it says so."""
        if lot.provider is None:
            lot.provider = provider
            for feature in lot.refused_features:
                provider.ladder.refuse(cast("Feature", feature))
            self._start(self._complete, lot)

    def count_recorded(self, place: BatchEntry, *, answered: bool) -> None:
        """The call of a row is on record; with the last of them the batch has ended."""
        lot = place.batch
        if lot is None:
            return
        lot.n_open -= 1
        lot.n_answered += answered
        lot.n_failed += not answered
        if not lot.n_open:
            self._folder.append(lot.record("ended"))

    def _start(self, work: Callable[..., Coroutine[Any, Any, None]], *about: object) -> None:
        if self._tasks is None:
            raise AssertionError("a desk works within a task group")
        self._tasks.start_soon(work, *about)

    # -- gathering ------------------------------------------------------------------------------

    async def _gather(self, provider: BatchProvider) -> None:
        """Wait until all there is has been brought, then hand it in."""
        seen = 0
        while seen != len(self._waiting[provider]):
            seen = len(self._waiting[provider])
            await anyio.sleep(QUIET_S)
        places = self._waiting.pop(provider, [])
        for part in _split(places, provider):
            self._start(self._submit, part, provider)

    def _write_down(self, places: Sequence[BatchEntry], provider: BatchProvider) -> RunBatch:
        """A batch that is about to be handed in, with what it may cost."""
        lot = RunBatch(
            mark=secrets.token_hex(6),
            model=provider.model,
            entries={},
            refused_features=list(provider.ladder.refused),
            start_time=now(),
            provider=provider,
            n_open=len(places),
        )
        self._sizes[lot.mark] = len(places)
        for place in places:
            key = f"{place.call_id.replace('+', '-')}-{lot.mark}"
            place.row = place.row and replace(place.row, key=key)
            place.key, place.batch = key, lot
            lot.entries[key] = place
            place.submission.set()
        rows = [
            BatchRow(
                call_id=place.call_id,
                attempt=place.attempt,
                custom_id=key,
                request_hash=place.request_hash,
            )
            for key, place in lot.entries.items()
        ]
        self._folder.append(lot.record("submitting", rows))
        for place in places:
            if place.reservation:
                self._folder.append(
                    Reservation(
                        call_id=place.call_id, attempt=place.attempt, usd=float(place.reservation)
                    )
                )
        return lot

    # -- a batch --------------------------------------------------------------------------------

    async def _complete(self, lot: RunBatch) -> None:
        """See a batch to its end, whatever that is."""
        try:
            if lot.provider_id is None:
                await self._find(lot)
            if lot.provider_id is None:
                self._settle_unsubmitted(lot)
                return
            if self._cancels:
                await self._with_retries(lambda: self._provider_of(lot).cancel(_id(lot)))
                lot.cancellation.set()
            progress = await self._until_ended(lot)
            await self._fetch(lot, progress)
        except ProviderError as error:
            self._give_up(lot, error)
        finally:
            lot.cancellation.set()

    async def _submit(self, places: Sequence[BatchEntry], provider: BatchProvider) -> None:
        # One at a time: only then is there no other that one whose answer was lost could be.
        async with self._turns[provider.account]:
            places = [place for place in places if not place.withdrawn]
            if self._stop or not places:
                return
            lot = self._write_down(places, provider)
            await anyio.to_thread.run_sync(self._folder.sync)
            try:
                await self._with_retries(lambda: self._try_submit(lot))
            except ProviderError as error:
                self._give_up(lot, error)
                return
        self._report(lot, 0)
        await self._complete(lot)

    async def _try_submit(self, lot: RunBatch) -> None:
        provider, told = self._provider_of(lot), self._lot(lot)
        # An attempt whose answer was lost may have come to its end over there.
        found = await provider.find(told) if lot.maybe_submitted else None
        rows = [place.row for place in lot.entries.values() if place.row is not None]
        try:
            with anyio.CancelScope(shield=True):
                self._set_id(lot, found or await provider.submit(told, rows))
        except ProviderError as error:
            lot.maybe_submitted |= error.maybe_billed or (error.status or 0) >= _SERVER_ERROR
            raise

    async def _find(self, lot: RunBatch) -> None:
        async with self._turns[self._provider_of(lot).account]:
            found = await self._with_retries(lambda: self._provider_of(lot).find(self._lot(lot)))
            if found is not None:
                self._set_id(lot, found)

    def _set_id(self, lot: RunBatch, provider_id: str) -> None:
        lot.provider_id = provider_id
        self._ids.add(provider_id)
        self._folder.append(lot.record("submitted"))

    def _lot(self, lot: RunBatch) -> Lot:
        return Lot(
            mark=lot.mark,
            run=self._run,
            rows=self._sizes[lot.mark],
            began=datetime.fromisoformat(lot.start_time),
            known=frozenset(self._ids),
        )

    async def _until_ended(self, lot: RunBatch) -> Progress:
        wait = 0.0 if lot.from_earlier_process or self._cancels else self._limits.batch_poll_s
        slowest = SLOWEST * self._limits.batch_poll_s
        while True:
            await anyio.sleep(wait * _UNIFORM(0.8, 1.2))
            wait = min(max(wait, self._limits.batch_poll_s / SLOWER) * SLOWER, slowest)
            try:
                progress = await self._provider_of(lot).poll(_id(lot))
            except ProviderError as error:
                # A day is long enough for any line to break once.
                if error.action != "retry":
                    raise
                wait = max(wait, error.retry_after or 0.0)
                continue
            self._report(lot, progress.done)
            if progress.ended:
                return progress
            wait = max(wait, min(progress.wait_s or 0.0, slowest))

    def _report(self, lot: RunBatch, done: int) -> None:
        """How far the batches of a model are, together."""
        counts = self._counts[lot.model]
        counts[lot.mark] = done
        rows = sum(self._sizes[mark] for mark in counts)
        self._watcher.batch_polled(lot.model, sum(counts.values()), rows)

    async def _fetch(self, lot: RunBatch, progress: Progress) -> None:
        def take(result: Result) -> None:
            place = lot.entries.get(result.key)
            if place is not None:
                place.settle(result)

        lot.outcome = progress.outcome
        if progress.failure is None:
            await self._with_retries(lambda: self._provider_of(lot).fetch(_id(lot), take))
        for key, place in lot.entries.items():
            place.settle(Result(key, failure=never_came(progress)))

    def _settle_unsubmitted(self, lot: RunBatch) -> None:
        """An earlier process was killed before it had handed in: its rows are asked anew."""
        lot.outcome = "never handed in"
        for place in lot.entries.values():
            text = "the run was killed before this batch was handed in"
            place.settle(ProviderError(text, error_class="interrupted", action="degrade"))

    def _give_up(self, lot: RunBatch, error: ProviderError) -> None:
        """Say to all why there will be nothing now."""
        left = lot.maybe_submitted or lot.provider_id is not None
        lot.outcome = None if left else "refused"
        for place in lot.entries.values():
            place.settle(FetchFailure(error) if left else _copy_of(error))

    async def _with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        """A call of the batch API, repeated where the line is at fault."""
        found: list[T] = []
        async for attempt in attempts(self._limits.max_attempts):
            with attempt:
                found.append(await call())
        return found[-1]

    @staticmethod
    def _provider_of(lot: RunBatch) -> BatchProvider:
        if lot.provider is None:
            raise AssertionError("nobody has asked for this batch")
        return lot.provider


def _id(lot: RunBatch) -> str:
    return lot.provider_id or ""


def _copy_of(error: ProviderError) -> ProviderError:
    """The same error, to be raised once more."""
    return ProviderError(
        error.message,
        error_class=error.error_class,
        action=error.action,
        status=error.status,
        response=error.response,
        request_id=error.request_id,
    )


def _split(places: Sequence[BatchEntry], provider: BatchProvider) -> Iterator[list[BatchEntry]]:
    """Batches that the provider takes: one target each, not too many rows, not too large."""
    by_target: defaultdict[str, list[BatchEntry]] = defaultdict(list)
    for place in places:
        if place.row is not None:
            by_target[place.row.target].append(place)
    for alike in by_target.values():
        part: list[BatchEntry] = []
        size = 0
        for place in alike:
            more = place.row.size if place.row else 0
            if part and (len(part) == provider.most_rows or size + more > provider.most_bytes):
                yield part
                part, size = [], 0
            part.append(place)
            size += more
        yield part
