"""One call: wait for capacity, reserve the money, send, record every attempt, settle the money.

Nothing else in clash calls a provider. The result is always a :class:`Call` record, whether the
model answered or not; only a model that refused for good raises, and only once that is on record.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio

from clash.collect.schedule import Interrupted, announce_start
from clash.errors import ClashError, ProviderError
from clash.providers import open_provider, prices, usage
from clash.providers.base import AtOnce
from clash.providers.limits import Limiters
from clash.providers.retry import attempts
from clash.records import Call, Reservation
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskGroup

    from clash.collect.budget import Budget
    from clash.collect.schedule import Stop
    from clash.config import Limits, ModelRef
    from clash.providers.base import Provider, Reply, Request
    from clash.providers.limits import Limiter
    from clash.providers.ray_workers import RayPool
    from clash.providers.workers import WorkerPool
    from clash.records import Purpose, Record

    Opener = Callable[[ModelRef], Provider]


class ModelStopError(ClashError):
    """The model gets no more calls in this run; the message says why.

    Attributes:
        call_id: the call in which it refused; not always the one that was about to be made.
    """

    exit_code = 4

    def __init__(self, reason: str, call_id: str | None = None) -> None:
        super().__init__(reason)
        self.call_id = call_id


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call to be made. Its ``call_id`` follows from its purpose, so a resumed run finds it."""

    call_id: str
    purpose: Purpose
    item_id: str
    ref: ModelRef
    request: Request
    judge: str | None = None
    candidate: str | None = None
    presentation: int | None = None

    @property
    def actor(self) -> str:
        """The judge, the candidate, ``user`` or ``criteria``: the name in the progress line."""
        return "user" if self.purpose == "user" else self.judge or self.candidate or "criteria"


class AnswerSource(Protocol):
    """Answers calls: a provider, or the record of an earlier run."""

    async def ask(self, pending: PendingCall) -> Call:
        """The last attempt of the call."""
        ...


class Past(Protocol):
    """The calls of earlier processes of a run."""

    def answer(self, call_id: str) -> Call | None:
        """The last attempt of a call, where it was answered."""
        ...

    def number(self, call_id: str) -> int:
        """The number of the last attempt of a call; 0 without any."""
        ...


class Listener(Protocol):
    """Is told of each attempt; the progress line is one."""

    def attempt_began(self, pending: PendingCall) -> None:
        """An attempt goes out."""
        ...

    def attempt_ended(self, pending: PendingCall, call: Call) -> None:
        """An attempt ended, with or without an answer."""
        ...


def call_id(purpose: Purpose, *parts: object) -> str:
    """The id of a call: the same for the same item, judge and presentation."""
    key = "\x1f".join(map(str, parts))
    return f"{purpose}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:16]}"


@dataclass
class ModelConnection:
    """An open connection to one model.

    Attributes:
        limiter: holds the provider's account to its limits.
        capacity: holds the model to its own ``concurrency``, whoever asks it; null without one.
        stop_reason: why the model gets no more calls; null while it gets them.
        stop_call_id: the call in which it refused.
    """

    model: str
    provider: Provider
    limiter: Limiter
    capacity: anyio.CapacityLimiter | None
    stop_reason: str | None = None
    stop_call_id: str | None = None

    def stop(self, reason: str, call_id: str | None = None) -> None:
        """Send the model no more calls; the first reason is kept."""
        if self.stop_reason is None:
            self.stop_reason, self.stop_call_id = reason, call_id

    def check(self) -> None:
        """Refuse a call to a model that was stopped.

        Raises:
            ModelStopError: it was stopped.
        """
        if self.stop_reason is not None:
            raise ModelStopError(self.stop_reason, self.stop_call_id)

    @property
    def name(self) -> str:
        """The model and its account: ``compatible/m at host with VARIABLE``."""
        return f"{self.model} {self.provider.account.partition(' ')[2]}"


class Caller:
    """Makes calls for one run.

    Args:
        write: appends a record to the run folder.
        budget: what may be spent.
        limits: concurrency, timeouts, attempts.
        environ: where keys are.
        listener: is told of every attempt.
        stop: after it no attempt begins.
        past: the calls that an earlier process of this run made; answered ones are not made again.
            The next attempt of a call has the next number, so that no two reservations are mistaken
            for one.

    Attributes:
        refusal: why questions were not asked that a later process may ask; null where all were.
    """

    refusal: str | None = None

    def __init__(
        self,
        write: Callable[[Record], None],
        budget: Budget,
        limits: Limits,
        environ: Mapping[str, str],
        listener: Listener,
        stop: Stop,
        *,
        past: Past | None = None,
    ) -> None:
        self._write = write
        self._budget = budget
        self._limits = limits
        self._listener = listener
        self._stop = stop
        self._limiters = Limiters(limits.concurrency)
        self._capacities: dict[tuple[str, str], anyio.CapacityLimiter] = {}
        self._open: Opener = lambda ref: open_provider(ref, environ=environ, limits=limits)
        self._pool = _worker_pool(environ, limits, self._open)
        self._has_cluster = limits.ray is not None
        self._connections: dict[str, ModelConnection] = {}
        self._by_object: dict[int, tuple[ModelRef, ModelConnection]] = {}
        self._past = past
        # Of calls without an answer only: a run may make millions.
        self._attempt_numbers: dict[str, int] = {}

    @property
    def workers(self) -> int:
        """How many calls to one model may be started at once."""
        return self._limits.concurrency

    @property
    def stop_reasons(self) -> dict[str, str]:
        """Models that refused for good, and why; with address and key where a model has several."""
        return {
            self._label(connection): connection.stop_reason
            for connection in self._connections.values()
            if connection.stop_reason is not None
        }

    def label(self, ref: ModelRef) -> str:
        """The name of a model in :attr:`stop_reasons`."""
        return self._label(self._connection(ref))

    def _label(self, connection: ModelConnection) -> str:
        alike = [c for c in self._connections.values() if c.model == connection.model]
        return connection.name if len({c.provider.account for c in alike}) > 1 else connection.model

    def keep_stopped(self, reasons: Mapping[str, str]) -> None:
        """Stop these models, which refused for good in an earlier process; the reason by label."""
        for connection in self._connections.values():
            if (reason := reasons.get(self._label(connection))) is not None:
                connection.stop(reason)

    def start(self, tasks: TaskGroup) -> None:
        """Start background work in ``tasks``."""
        if self._pool is not None:
            self._pool.start(tasks)

    async def finish(self) -> None:
        """Wait for background work that must not be cut off; here there is none."""

    def open(self, ref: ModelRef) -> None:
        """Open the connection to a model now, so that a missing key is found before any call.

        Raises:
            ConfigError: its key or its address is missing.
        """
        self._connection(ref)

    def answers_at_once(self, ref: ModelRef) -> bool:
        """Whether a model is a rule: it answers without waiting and costs nothing."""
        return isinstance(self._connection(ref).provider, AtOnce)

    def answer_at_once(self, pending: PendingCall) -> Call:
        """The answer of a rule, which needs no turn, no money and no retry.

        Raises:
            Interrupted: the run was told to stop.
        """
        if self._past is not None and (answer := self._past.answer(pending.call_id)) is not None:
            return answer
        if self._stop:
            raise Interrupted(str(self._stop.reason))
        rule = cast("AtOnce", self._connection(pending.ref).provider)
        number = self._last_number(pending) + 1
        self._listener.attempt_began(pending)
        reply = rule.answer(pending.request)
        charge = usage.charge(pending.ref, pending.request, reply)
        return self._record(self._reply(pending, number, reply, charge, Decimal(0)), pending)

    async def ask(self, pending: PendingCall) -> Call:
        """Make a call, with retries.

        Returns:
            The record of the last attempt. Its outcome ``error`` means that there is no answer.

        Raises:
            ModelStopError: the model refused for good, now or earlier.
            BudgetSpent: there is no money for the attempt.
            Interrupted: the run was told to stop before the attempt.
        """
        if self._past is not None and (answer := self._past.answer(pending.call_id)) is not None:
            return answer
        connection = self._connection(pending.ref)
        try:
            return await self._attempt(pending, connection)
        except ProviderError as error:
            failure = error
        try:
            return await self._retry(pending, connection, failure)
        except ProviderError as error:
            if error.action == "stop":
                reason = f"{error.error_class}: {error.message}"
                connection.stop(reason, pending.call_id)
                raise ModelStopError(connection.stop_reason or reason, pending.call_id) from None
            number = self._last_number(pending)
            return self._error(pending, number, error, Decimal(0))

    async def _retry(
        self, pending: PendingCall, connection: ModelConnection, failure: ProviderError
    ) -> Call:
        """Attempts after the first, which failed.

        The loop costs as much as a fast call does, so only calls that fail pay for it.

        Raises:
            ProviderError: of the last attempt; its action says what is given up.
        """
        first: ProviderError | None = failure
        async for attempt in attempts(self._limits.max_attempts, sleep=self._sleep):
            with attempt:
                if first is not None:
                    error, first = first, None
                    raise error
                return await self._attempt(pending, connection)
        raise AssertionError("the loop ends with a call or an error")

    async def aclose(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            await connection.provider.aclose()
        if self._pool is not None:
            await self._pool.aclose()

    def _connection(self, ref: ModelRef) -> ModelConnection:
        # Each call of a judge comes with the same object, and to write that out takes long.
        ref_and_connection = self._by_object.get(id(ref))
        if ref_and_connection is None:
            ref_and_connection = self._by_object[id(ref)] = ref, self._equal_connection(ref)
        return ref_and_connection[1]

    def _equal_connection(self, ref: ModelRef) -> ModelConnection:
        """The connection that all equal references share."""
        key = ref.model_dump_json()
        if key not in self._connections:
            is_remote = self._pool is not None and ref.provider not in prices.OFFLINE
            provider = (self._pool.open if self._pool and is_remote else self._open)(ref)
            limiter = self._limiters.of(provider.account)
            self._connections[key] = ModelConnection(
                ref.model, provider, limiter, self._capacity(provider, ref)
            )
        return self._connections[key]

    def _capacity(self, provider: Provider, ref: ModelRef) -> anyio.CapacityLimiter | None:
        if ref.concurrency is None:
            return None
        key = (provider.account, ref.model)
        return self._capacities.setdefault(key, anyio.CapacityLimiter(ref.concurrency))

    async def _sleep(self, seconds: float) -> None:
        with self._stop.wakes():
            await anyio.sleep(seconds)

    async def _attempt(self, pending: PendingCall, connection: ModelConnection) -> Call:
        """One attempt, recorded whichever way it ends."""
        slot = connection.limiter.slot(connection.capacity)
        # A provider that never waits for anything has to wait here, or nothing else would get a turn.
        if connection.provider.offline or not slot.take():
            with self._stop.wakes():
                await slot.wait()
            if not slot.is_taken:
                raise Interrupted(str(self._stop.reason))
        async with slot:
            return await self._attempt_now(pending, connection)

    async def _attempt_now(self, pending: PendingCall, connection: ModelConnection) -> Call:
        """An attempt whose turn has come, unless the run or the model stopped before it did."""
        announce_start()
        if self._pool and self._has_cluster and pending.ref.provider not in prices.OFFLINE:
            await self._pool.worker()  # where none can be started, no money is reserved
        if self._stop:
            raise Interrupted(str(self._stop.reason))
        connection.check()
        number = self._next_number(pending)
        reservation = await self._reserve(pending, number)
        self._listener.attempt_began(pending)
        try:
            # A replay needs item and judge to tell equal questions apart.
            request = replace(pending.request, item_id=pending.item_id, judge=pending.judge)
            reply = await connection.provider.complete(request)
        except ProviderError as error:
            cost = None if error.maybe_billed else Decimal(0)
            self._budget.settle(reservation, cost)
            self._record(self._error(pending, number, error, reservation), pending)
            raise
        charge = usage.charge(pending.ref, pending.request, reply)
        self._budget.settle(reservation, charge.cost.usd if charge.cost else None)
        del self._attempt_numbers[pending.call_id]
        return self._record(self._reply(pending, number, reply, charge, reservation), pending)

    def _next_number(self, pending: PendingCall) -> int:
        """The number of the attempt that begins."""
        number = self._last_number(pending) + 1
        self._attempt_numbers[pending.call_id] = number
        return number

    def _last_number(self, pending: PendingCall) -> int:
        """The number of the last attempt, in this process or an earlier one; 0 without any."""
        number = self._attempt_numbers.get(pending.call_id)
        if number is None:
            number = 0 if self._past is None else self._past.number(pending.call_id)
        return number

    async def _reserve(self, pending: PendingCall, number: int) -> Decimal:
        """Reserve the worst case, on record before any money can be spent."""
        worst = prices.worst_case(pending.ref, pending.request)
        reservation = await self._budget.reserve(worst.usd if worst else Decimal(0))
        if self._stop:
            self._budget.settle(reservation, Decimal(0))
            raise Interrupted(str(self._stop.reason))
        if reservation:
            self._write(
                Reservation(call_id=pending.call_id, attempt=number, usd=float(reservation))
            )
        return reservation

    def _record(self, call: Call, pending: PendingCall) -> Call:
        self._write(call)
        self._listener.attempt_ended(pending, call)
        return call

    def _error(
        self, pending: PendingCall, number: int, error: ProviderError, reservation: Decimal
    ) -> Call:
        return Call(
            **self._head(pending, number),
            request=dict(error.request) if error.request is not None else None,
            response=error.response,
            status=error.status,
            outcome="error",
            error_class=error.error_class,
            error=error.message,
            request_id=error.request_id,
            cost_usd=None if error.maybe_billed else 0.0,
            cost_bound_usd=float(reservation) if error.maybe_billed else None,
            latency_s=error.latency_s,
            address=error.address,
        )

    def _reply(
        self,
        pending: PendingCall,
        number: int,
        reply: Reply,
        charge: usage.Charge,
        reservation: Decimal,
    ) -> Call:
        cost = charge.cost
        return Call(
            **self._head(pending, number),
            request=dict(reply.request),
            response=reply.response,
            text=reply.text,
            status=reply.status,
            outcome=reply.outcome,
            finish_reason=reply.finish_reason,
            served_model=reply.served_model,
            request_id=reply.request_id,
            tokens=charge.tokens,
            cost_usd=float(cost.usd) if cost else None,
            cost_bound_usd=None if cost else float(reservation),
            cost_source=cost.source if cost else None,
            usage_doubt=charge.doubt,
            latency_s=round(reply.latency_s, 6),
            ttft_s=round(reply.ttft_s, 6) if reply.ttft_s is not None else None,
            structured=reply.structured,
            degraded=list(reply.degraded),
            address=reply.address,
        )

    def _head(self, pending: PendingCall, number: int) -> dict[str, Any]:
        return {
            "call_id": pending.call_id,
            "purpose": pending.purpose,
            "item_id": pending.item_id,
            "judge": pending.judge,
            "candidate": pending.candidate,
            "presentation": pending.presentation,
            "attempt": number,
            "model": pending.ref.model,
            "request_hash": pending.request.hash(pending.ref.model),
            "time": now(),
        }


def _worker_pool(
    environ: Mapping[str, str], limits: Limits, open_here: Opener
) -> WorkerPool | RayPool | None:
    """The processes or actors that make the calls; null where this process does."""
    if limits.ray is not None:
        from clash.providers.ray_workers import RayPool

        return RayPool(environ, limits, open_here)
    if not limits.workers:
        return None
    from clash.providers.workers import WorkerPool

    return WorkerPool(environ, limits, open_here)
