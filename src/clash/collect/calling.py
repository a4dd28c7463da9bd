"""One call: reserve its money, wait for room, ask, write every attempt down, settle.

Nothing else in clash touches a provider. What comes back is always a :class:`Call` record, whether
the model answered or not; only a model that refused for good raises, and only once it has been
written down.
"""

from __future__ import annotations

import hashlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from clash.collect.schedule import Interrupted, begun
from clash.errors import ClashError, ProviderError
from clash.providers import open_provider, prices, usage
from clash.providers.limits import Limiters
from clash.providers.retry import attempts
from clash.records import Call, Reservation
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from anyio.abc import TaskGroup

    from clash.collect.budget import Budget
    from clash.collect.schedule import Stop
    from clash.config import Limits, ModelRef
    from clash.providers.base import Provider, Reply, Request
    from clash.providers.limits import Limiter
    from clash.records import Purpose, Record

    Opener = Callable[[ModelRef], Provider]


class ModelStopped(ClashError):
    """The model is not asked any more in this run; the message says why.

    Attributes:
        call_id: the call that it was refused in, which need not be the one that was to be made.
    """

    exit_code = 4

    def __init__(self, reason: str, call_id: str | None = None) -> None:
        super().__init__(reason)
        self.call_id = call_id


@dataclass(frozen=True, slots=True)
class Ask:
    """A call to be made. ``call_id`` is a function of what it is for, so a resume finds it."""

    call_id: str
    purpose: Purpose
    item_id: str
    ref: ModelRef
    request: Request
    judge: str | None = None
    candidate: str | None = None
    presentation: int | None = None

    @property
    def who(self) -> str:
        """Whom the progress line names."""
        return self.judge or self.candidate or "criteria"


class Asker(Protocol):
    """Whoever answers a call: a provider, or the record of a run that has been."""

    async def ask(self, ask: Ask) -> Call:
        """The last attempt of the call."""
        ...


class Listener(Protocol):
    """Someone who watches calls: the progress line."""

    def sent(self, ask: Ask) -> None:
        """An attempt goes out."""
        ...

    def came(self, ask: Ask, call: Call) -> None:
        """An attempt ended, well or not."""
        ...


def call_id(purpose: Purpose, *parts: object) -> str:
    """The id of a call: the same for the same item, judge and presentation."""
    key = "\x1f".join(map(str, parts))
    return f"{purpose}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:16]}"


@dataclass
class Line:
    """An open line to one model.

    Attributes:
        room: holds the model to its own ``concurrency``, whoever asks it.
        stopped: why the model is not asked any more, and ``stopped_in`` the call that showed it.
    """

    model: str
    provider: Provider
    limiter: Limiter
    room: anyio.CapacityLimiter | None
    stopped: str | None = None
    stopped_in: str | None = None

    def stop(self, reason: str, call_id: str | None = None) -> None:
        """Ask the model no more; the first reason stays."""
        if self.stopped is None:
            self.stopped, self.stopped_in = reason, call_id

    def check(self) -> None:
        """Refuse a call to a model that is not asked any more.

        Raises:
            ModelStopped: it is one.
        """
        if self.stopped is not None:
            raise ModelStopped(self.stopped, self.stopped_in)

    @property
    def name(self) -> str:
        """The model with where it is asked: ``compatible/m at host with VARIABLE``."""
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
        done: calls that an earlier process of this run made; answered ones are not made again.
        tried: the number of the last attempt of each call, begun by an earlier process; the next
            attempt has the next number, so that no two reservations are mistaken for one.

    Attributes:
        refused: why questions were turned down that a later run may ask; null where none was.
    """

    refused: str | None = None

    def __init__(
        self,
        write: Callable[[Record], None],
        budget: Budget,
        limits: Limits,
        environ: Mapping[str, str],
        listener: Listener,
        stop: Stop,
        *,
        done: Iterable[Call] = (),
        tried: Mapping[str, int] | None = None,
    ) -> None:
        self._write = write
        self._budget = budget
        self._limits = limits
        self._listener = listener
        self._stop = stop
        self._limiters = Limiters(limits.concurrency)
        self._rooms: dict[tuple[str, str], anyio.CapacityLimiter] = {}
        self._open: Opener = lambda ref: open_provider(ref, environ=environ, limits=limits)
        self._lines: dict[str, Line] = {}
        self._answered = {call.call_id: call for call in done if call.outcome != "error"}
        self._tried = dict(tried or {})

    @property
    def workers(self) -> int:
        """How many pieces of one model's work may be begun at once."""
        return self._limits.concurrency

    @property
    def stopped(self) -> dict[str, str]:
        """Models that refused for good, and why; with address and key where one has several."""
        return {
            self._label(line): line.stopped
            for line in self._lines.values()
            if line.stopped is not None
        }

    def label(self, ref: ModelRef) -> str:
        """What :attr:`stopped` calls a model."""
        return self._label(self._line(ref))

    def _label(self, line: Line) -> str:
        alike = [other for other in self._lines.values() if other.model == line.model]
        return line.name if len({other.provider.account for other in alike}) > 1 else line.model

    def start(self, tasks: TaskGroup) -> None:
        """Put into ``tasks`` what goes on between calls; here nothing does."""

    async def finish(self) -> None:
        """Wait for what goes on between calls and must not be cut off; here nothing is."""

    def open(self, ref: ModelRef) -> None:
        """Open the line to a model now, so that a missing key is found before any call.

        Raises:
            ConfigError: its key or its address is missing.
        """
        self._line(ref)

    async def ask(self, ask: Ask) -> Call:
        """Make a call, with retries.

        Returns:
            The record of the last attempt. Its outcome ``error`` means that there is no answer.

        Raises:
            ModelStopped: the model refused for good, now or earlier.
            BudgetSpent: there is no money for the attempt.
            Interrupted: the run was told to stop before the attempt.
        """
        if ask.call_id in self._answered:
            return self._answered[ask.call_id]
        line = self._line(ask.ref)
        call: Call | None = None
        try:
            async for attempt in attempts(self._limits.max_attempts, sleep=self._sleep):
                with attempt:
                    call = await self._attempt(ask, line)
        except ProviderError as error:
            if error.action == "stop":
                reason = f"{error.error_class}: {error.message}"
                line.stop(reason, ask.call_id)
                raise ModelStopped(line.stopped or reason, ask.call_id) from None
            return self._failed(ask, error)
        if call is None:
            raise AssertionError("a call ended without an attempt")
        return call

    async def aclose(self) -> None:
        """Close every line."""
        for line in self._lines.values():
            await line.provider.aclose()

    def _line(self, ref: ModelRef) -> Line:
        key = ref.model_dump_json()
        if key not in self._lines:
            provider = self._open(ref)
            limiter = self._limiters.of(provider.account)
            self._lines[key] = Line(ref.model, provider, limiter, self._room(provider, ref))
        return self._lines[key]

    def _room(self, provider: Provider, ref: ModelRef) -> anyio.CapacityLimiter | None:
        if ref.concurrency is None:
            return None
        key = (provider.account, ref.model)
        return self._rooms.setdefault(key, anyio.CapacityLimiter(ref.concurrency))

    async def _sleep(self, seconds: float) -> None:
        with self._stop.wakes():
            await anyio.sleep(seconds)

    async def _attempt(self, ask: Ask, line: Line) -> Call:
        """One attempt, written down whichever way it ends."""
        async with AsyncExitStack() as held:
            with self._stop.wakes():
                if line.room is not None:
                    await held.enter_async_context(line.room)
                await held.enter_async_context(line.limiter.slot())
            begun()
            # The world may have changed while this waited for its turn.
            if self._stop:
                raise Interrupted(str(self._stop.reason))
            line.check()
            number = self._tried.get(ask.call_id, 0) + 1
            self._tried[ask.call_id] = number
            reserved = await self._reserve(ask, number)
            self._listener.sent(ask)
            try:
                # A replay tells by item and judge which of several equal questions this is.
                request = replace(ask.request, item_id=ask.item_id, judge=ask.judge)
                reply = await line.provider.complete(request)
            except ProviderError as error:
                lost = None if error.maybe_billed else Decimal(0)
                self._budget.settle(reserved, lost)
                self._record(self._error(ask, number, error, reserved), ask)
                raise
            charge = usage.charge(ask.ref, ask.request, reply)
            self._budget.settle(reserved, charge.cost.usd if charge.cost else None)
        return self._record(self._reply(ask, number, reply, charge, reserved), ask)

    async def _reserve(self, ask: Ask, number: int) -> Decimal:
        """Set the worst case aside, and write that down before any money can flow."""
        worst = prices.worst_case(ask.ref, ask.request)
        reserved = await self._budget.reserve(worst.usd if worst else Decimal(0))
        if self._stop:
            self._budget.settle(reserved, Decimal(0))
            raise Interrupted(str(self._stop.reason))
        if reserved:
            self._write(Reservation(call_id=ask.call_id, attempt=number, usd=float(reserved)))
        return reserved

    def _record(self, call: Call, ask: Ask) -> Call:
        self._write(call)
        self._listener.came(ask, call)
        return call

    def _failed(self, ask: Ask, error: ProviderError) -> Call:
        """The attempt that was given up on, as it was written down."""
        return self._error(ask, self._tried[ask.call_id], error, Decimal(0))

    def _error(self, ask: Ask, number: int, error: ProviderError, reserved: Decimal) -> Call:
        return Call(
            **self._head(ask, number),
            request=dict(error.request) if error.request is not None else None,
            response=error.response,
            status=error.status,
            outcome="error",
            error_class=error.error_class,
            error=error.message,
            request_id=error.request_id,
            cost_usd=None if error.maybe_billed else 0.0,
            cost_bound_usd=float(reserved) if error.maybe_billed else None,
            latency_s=error.latency_s,
        )

    def _reply(
        self, ask: Ask, number: int, reply: Reply, charge: usage.Charge, reserved: Decimal
    ) -> Call:
        cost = charge.cost
        return Call(
            **self._head(ask, number),
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
            cost_bound_usd=None if cost else float(reserved),
            cost_source=cost.source if cost else None,
            usage_doubt=charge.doubt,
            latency_s=round(reply.latency_s, 6),
            ttft_s=round(reply.ttft_s, 6) if reply.ttft_s is not None else None,
            structured=reply.structured,
            degraded=list(reply.degraded),
        )

    def _head(self, ask: Ask, number: int) -> dict[str, Any]:
        return {
            "call_id": ask.call_id,
            "purpose": ask.purpose,
            "item_id": ask.item_id,
            "judge": ask.judge,
            "candidate": ask.candidate,
            "presentation": ask.presentation,
            "attempt": number,
            "model": ask.ref.model,
            "request_hash": ask.request.hash(ask.ref.model),
            "time": now(),
        }
