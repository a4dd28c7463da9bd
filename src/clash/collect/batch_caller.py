"""Calls through the providers' batch APIs: asked like any other, and answered when the batch is."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from clash.collect.batch_queue import Desk, Left, Place, Watcher
from clash.collect.calling import Caller, Listener
from clash.collect.schedule import Interrupted, begun
from clash.errors import ProviderError
from clash.providers import batched, prices, usage
from clash.providers.batch import open_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from anyio.abc import TaskGroup

    from clash.collect.batch_queue import HandedIn
    from clash.collect.budget import Budget
    from clash.collect.calling import Ask, Line
    from clash.collect.schedule import Stop
    from clash.config import Limits, ModelRef
    from clash.providers.base import Request
    from clash.providers.batch import BatchProvider
    from clash.records import Call
    from clash.store.folder import RunWriter


class Progress(Listener, Watcher, Protocol):
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
        listener: Progress,
        stop: Stop,
        *,
        done: Iterable[Call] = (),
        tried: Mapping[str, int] | None = None,
        under_way: Iterable[HandedIn] = (),
        new: Literal["batch", "live", "none"] = "batch",
    ) -> None:
        super().__init__(
            folder.append, budget, limits, environ, listener, stop, done=done, tried=tried
        )
        self._environ = environ
        self._new = new
        self._desk = Desk(folder, limits, listener, stop, cancels=new == "none")
        self._providers: dict[int, BatchProvider] = {}
        self._batches = list(under_way)
        self._under_way = {p.call_id: p for lot in self._batches for p in lot.places.values()}
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
        self._desk.start(tasks)
        if self._new == "none":
            for batch in self._batches:
                if (ref := self._refs.get(batch.model)) is not None:
                    self._desk.take_up(batch, self._provider(ref, self._line(ref)))

    async def finish(self) -> None:
        """Wait until everything that is to be cancelled is."""
        if self._new == "none":
            with self._stop.wakes(patient=True):
                for batch in self._batches:
                    if batch.provider is not None:
                        await batch.told.wait()

    async def aclose(self) -> None:
        """Close every line."""
        for provider in self._providers.values():
            await provider.aclose()
        await super().aclose()

    async def _attempt(self, ask: Ask, line: Line) -> Call:
        """One attempt, written down whichever way it ends; a batch that is left has not ended."""
        place = self._under_way.pop(ask.call_id, None)
        if place is None:
            if self._new == "none":
                self.refused = "batches were cancelled, and nothing new was asked"
                raise Interrupted(self.refused)
            if self._new == "live" or not batched(ask.ref, ask.request):
                return await super()._attempt(ask, line)
        request = replace(ask.request, stream=False, item_id=ask.item_id, judge=ask.judge)
        provider = self._provider(ask.ref, line)
        if place is None:
            place = await self._handed_in(ask, request, line, provider)
        else:
            self._taken_up(ask, place, request, provider)
        self._listener.sent(ask)
        with self._stop.wakes(patient=True):
            await place.came.wait()
        return self._ended(ask, place, line, provider)

    def _provider(self, ref: ModelRef, line: Line) -> BatchProvider:
        if id(line) not in self._providers:
            self._providers[id(line)] = open_batches(ref, self._environ, self._limits)
        return self._providers[id(line)]

    def _taken_up(self, ask: Ask, place: Place, request: Request, provider: BatchProvider) -> None:
        """A place in a batch of an earlier process, waited for by this one."""
        begun()
        if place.batch is not None:
            self._desk.take_up(place.batch, provider)
        place.row = provider.row(request, place.key)
        if place.request_hash != request.hash(ask.ref.model):
            text = "the batch holds another question than the run would ask"
            place.settle(
                ProviderError(text, error_class="bad_request", action="degrade", maybe_billed=True)
            )

    async def _handed_in(
        self, ask: Ask, request: Request, line: Line, provider: BatchProvider
    ) -> Place:
        """A place in a batch that is being handed in."""
        if self._stop:
            raise Interrupted(str(self._stop.reason))
        line.check()
        number = self._tried[ask.call_id] = self._tried.get(ask.call_id, 0) + 1
        worst = prices.worst_case(ask.ref, request, batch=True)
        try:
            row = provider.row(request)
        except ProviderError as error:
            self._record(self._error(ask, number, error, Decimal(0)), ask)
            raise
        place = Place(ask.call_id, number, request.hash(ask.ref.model), row=row)
        reserved = None
        with self._stop.wakes():
            reserved = await self._budget.reserve(worst.usd if worst else Decimal(0))
        if reserved is None:
            raise Interrupted(str(self._stop.reason))
        place.reserved = reserved
        begun()
        self._desk.bring(place, provider)
        with self._stop.wakes():
            await place.handed.wait()
        if not place.handed.is_set():
            self._desk.take_back(place, provider)
            self._budget.settle(reserved, Decimal(0))
            raise Interrupted(str(self._stop.reason))
        return place

    def _ended(self, ask: Ask, place: Place, line: Line, provider: BatchProvider) -> Call:
        found, row = place.found, place.row
        if found is None or row is None:
            raise Interrupted(str(self._stop.reason))
        if isinstance(found, Left):
            raise self._left(found, line)
        try:
            if isinstance(found, ProviderError):
                raise found
            reply = provider.read(row, found)
        except ProviderError as error:
            if error.action == "retry":
                error.action = "fail"  # the next batch is another day: a resumed run asks again
            self._budget.settle(place.reserved, None if error.maybe_billed else Decimal(0))
            call = self._error(ask, place.attempt, error, place.reserved)
            self._record(_as_row(call, place), ask)
            self._desk.recorded(place, answered=False)
            raise
        charge = usage.charge(ask.ref, ask.request, reply, batch=True)
        self._budget.settle(place.reserved, charge.cost.usd if charge.cost else None)
        call = self._reply(ask, place.attempt, reply, charge, place.reserved)
        self._record(call := _as_row(call, place), ask)
        self._desk.recorded(place, answered=True)
        return call

    def _left(self, found: Left, line: Line) -> Interrupted:
        """The batch may yet be fetched, so there is nothing to write down."""
        why = f"{found.error.error_class}: {found.error.message}"
        if found.error.action == "stop":
            line.stop(why)
        self.refused = self.refused or f"a batch could not be fetched: {why}"
        return Interrupted(self.refused)


def _as_row(call: Call, place: Place) -> Call:
    """A call with its place in a batch, and without times: they would be ours, not the model's."""
    where = {
        "batch": place.batch and place.batch.provider_id,
        "custom_id": place.row and place.row.key,
    }
    request = {**(call.request or {}), **where}
    return call.model_copy(update={"request": request, "latency_s": None, "ttft_s": None})
