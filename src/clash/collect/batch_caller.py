"""Calls through the providers' batch APIs: asked like any other, and answered when the batch is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from clash.collect.batch_queue import BatchEntry, BatchQueue, BatchWatcher, FetchFailure
from clash.collect.calling import Caller, Listener
from clash.collect.schedule import Interrupted, announce_start
from clash.errors import ProviderError
from clash.providers import batched, prices, usage
from clash.providers.batch import open_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from anyio.abc import TaskGroup

    from clash.collect.batch_queue import RunBatch
    from clash.collect.budget import Budget
    from clash.collect.calling import Ask, ModelConnection
    from clash.collect.schedule import Stop
    from clash.config import Limits, ModelRef
    from clash.providers.base import Request
    from clash.providers.batch import BatchProvider
    from clash.records import Call
    from clash.store.folder import RunWriter


class BatchProgress(Listener, BatchWatcher, Protocol):
    """Watches calls and batches."""


_ALL_AT_ONCE = 20_000
"""Questions to one model that wait at once: each takes some 10 kB, and its text, while it waits."""


class BatchCaller(Caller):
    """Makes calls for one run, in batches where the provider has them.

    What an earlier process handed in is waited for and fetched, whatever ``new`` says.

    Args:
        folder: the run.
        budget: what may be spent.
        limits: timeouts, attempts, and how often to look after a batch.
        environ: where keys are.
        listener: is told of every attempt, and of every look after a batch.
        stop: after it nothing is asked, and nothing handed in.
        done: as for any :class:`Caller`, and so is ``tried``.
        under_way: batches that an earlier process handed in, or may have.
        new: what to do with new questions: hand them in as batches, ask them live, or ask nothing
            and cancel what is under way.
    """

    def __init__(
        self,
        folder: RunWriter,
        budget: Budget,
        limits: Limits,
        environ: Mapping[str, str],
        listener: BatchProgress,
        stop: Stop,
        *,
        calls: Iterable[Call] = (),
        attempt_numbers: Mapping[str, int] | None = None,
        batches: Iterable[RunBatch] = (),
        new: Literal["batch", "live", "none"] = "batch",
    ) -> None:
        super().__init__(
            folder.append,
            budget,
            limits,
            environ,
            listener,
            stop,
            calls=calls,
            attempt_numbers=attempt_numbers,
        )
        self._environ = environ
        self._new = new
        self._queue = BatchQueue(folder, limits, listener, stop, cancels=new == "none")
        self._providers: dict[int, BatchProvider] = {}
        self._batches = list(batches)
        self._open_entries = {p.call_id: p for lot in self._batches for p in lot.entries.values()}
        self._refs: dict[str, ModelRef] = {}

    def open(self, ref: ModelRef) -> None:
        """Open the line to a model now. See :meth:`Caller.open`."""
        super().open(ref)
        self._refs.setdefault(ref.model, ref)

    @property
    def workers(self) -> int:
        """All pieces are begun, since only what is begun can be put into one batch."""
        return _ALL_AT_ONCE

    def start(self, tasks: TaskGroup) -> None:
        """Gather and wait within ``tasks``."""
        self._queue.start(tasks)
        if self._new == "none":
            for batch in self._batches:
                if (ref := self._refs.get(batch.model)) is not None:
                    self._queue.resume(batch, self._provider(ref, self._connection(ref)))

    async def finish(self) -> None:
        """Wait until everything that is to be cancelled is."""
        if self._new == "none":
            with self._stop.wakes(patient=True):
                for batch in self._batches:
                    if batch.provider is not None:
                        await batch.cancellation.wait()

    async def aclose(self) -> None:
        """Close every line."""
        for provider in self._providers.values():
            await provider.aclose()
        await super().aclose()

    async def _attempt(self, ask: Ask, line: ModelConnection) -> Call:
        """One attempt, written down whichever way it ends; a batch that is left has not ended."""
        place = self._open_entries.pop(ask.call_id, None)
        if place is None:
            if self._new == "none":
                self.refusal = "batches were cancelled, and nothing new was asked"
                raise Interrupted(self.refusal)
            if self._new == "live" or not batched(ask.ref, ask.request):
                return await super()._attempt(ask, line)
        request = replace(ask.request, stream=False, item_id=ask.item_id, judge=ask.judge)
        provider = self._provider(ask.ref, line)
        if place is None:
            place = await self._submit_entry(ask, request, line, provider)
        else:
            self._resume_entry(ask, place, request, provider)
        self._listener.attempt_began(ask)
        with self._stop.wakes(patient=True):
            await place.arrival.wait()
        return self._finish_entry(ask, place, line, provider)

    def _provider(self, ref: ModelRef, line: ModelConnection) -> BatchProvider:
        if id(line) not in self._providers:
            self._providers[id(line)] = open_batches(ref, self._environ, self._limits)
        return self._providers[id(line)]

    def _resume_entry(
        self, ask: Ask, place: BatchEntry, request: Request, provider: BatchProvider
    ) -> None:
        """A place in a batch of an earlier process, waited for by this one."""
        announce_start()
        if place.batch is not None:
            self._queue.resume(place.batch, provider)
        place.row = provider.row(request, place.key)
        if place.request_hash != request.hash(ask.ref.model):
            text = "the batch holds another question than the run would ask"
            place.settle(
                ProviderError(text, error_class="bad_request", action="degrade", maybe_billed=True)
            )

    async def _submit_entry(
        self, ask: Ask, request: Request, line: ModelConnection, provider: BatchProvider
    ) -> BatchEntry:
        """A place in a batch that is being handed in."""
        if self._stop:
            raise Interrupted(str(self._stop.reason))
        line.check()
        number = self._attempt_numbers[ask.call_id] = self._attempt_numbers.get(ask.call_id, 0) + 1
        worst = prices.worst_case(ask.ref, request, batch=True)
        try:
            row = provider.row(request)
        except ProviderError as error:
            self._record(self._error(ask, number, error, Decimal(0)), ask)
            raise
        place = BatchEntry(ask.call_id, number, request.hash(ask.ref.model), row=row)
        reserved = None
        with self._stop.wakes():
            reserved = await self._budget.reserve(worst.usd if worst else Decimal(0))
        if reserved is None:
            raise Interrupted(str(self._stop.reason))
        place.reservation = reserved
        announce_start()
        self._queue.add(place, provider)
        with self._stop.wakes():
            await place.submission.wait()
        if not place.submission.is_set():
            self._queue.withdraw(place, provider)
            self._budget.settle(reserved, Decimal(0))
            raise Interrupted(str(self._stop.reason))
        return place

    def _finish_entry(
        self, ask: Ask, place: BatchEntry, line: ModelConnection, provider: BatchProvider
    ) -> Call:
        found, row = place.result, place.row
        if found is None or row is None:
            raise Interrupted(str(self._stop.reason))
        if isinstance(found, FetchFailure):
            raise self._interruption(found, line)
        try:
            if isinstance(found, ProviderError):
                raise found
            reply = provider.read(row, found)
        except ProviderError as error:
            if error.action == "retry":
                error.action = "fail"  # the next batch is another day: a resumed run asks again
            self._budget.settle(place.reservation, None if error.maybe_billed else Decimal(0))
            call = self._error(ask, place.attempt, error, place.reservation)
            self._record(_as_batch_call(call, place), ask)
            self._queue.count_recorded(place, answered=False)
            raise
        charge = usage.charge(ask.ref, ask.request, reply, batch=True)
        self._budget.settle(place.reservation, charge.cost.usd if charge.cost else None)
        call = self._reply(ask, place.attempt, reply, charge, place.reservation)
        self._record(call := _as_batch_call(call, place), ask)
        self._queue.count_recorded(place, answered=True)
        return call

    def _interruption(self, found: FetchFailure, line: ModelConnection) -> Interrupted:
        """The batch may yet be fetched, so there is nothing to write down."""
        why = f"{found.error.error_class}: {found.error.message}"
        if found.error.action == "stop":
            line.stop(why)
        self.refusal = self.refusal or f"a batch could not be fetched: {why}"
        return Interrupted(self.refusal)


def _as_batch_call(call: Call, place: BatchEntry) -> Call:
    """A call with its place in a batch, and without times: they would be ours, not the model's."""
    where = {
        "batch": place.batch and place.batch.provider_id,
        "custom_id": place.row and place.row.key,
    }
    request = {**(call.request or {}), **where}
    return call.model_copy(update={"request": request, "latency_s": None, "ttft_s": None})
