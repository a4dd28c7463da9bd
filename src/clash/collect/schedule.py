"""The one async shape: some workers pull from one iterator, one pool for each model.

A slow vendor never holds up the others, and ten thousand calls are not ten thousand tasks.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from clash.collect.budget import BudgetSpent
from clash.errors import ClashError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from anyio.abc import TaskGroup

T = TypeVar("T")


class Interrupted(ClashError):
    """The run ends before this piece of work: nothing is recorded, and a resumed run does it."""

    exit_code = 130


@dataclass
class Stop:
    """Whether new work may start: a person or the budget can say no.

    Attributes:
        reason: why not, null while it may.
        leaves: what a provider works at in its own time is not waited for either.
    """

    reason: str | None = None
    leaves: bool = False
    _waits: set[anyio.CancelScope] = field(default_factory=set)
    _patient: set[anyio.CancelScope] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.reason is not None

    def now(self, reason: str, *, leaves: bool = False) -> None:
        """Start nothing more; the first reason stands. Those who only wait are woken.

        Args:
            reason: why.
            leaves: wake those too who wait for what a provider works at in its own time.
        """
        self.reason = self.reason or reason
        self.leaves = self.leaves or leaves
        for scope in (*self._waits, *(self._patient if leaves else ())):
            scope.cancel()

    @contextmanager
    def wakes(self, *, patient: bool = False) -> Iterator[None]:
        """A wait, for room or for a retry, that :meth:`now` ends; ask then whether it has.

        Args:
            patient: it is for an answer that is under way, and ends only where that is left.
        """
        waits = self._patient if patient else self._waits
        with anyio.CancelScope() as scope:
            if self.leaves if patient else self:
                scope.cancel()
            waits.add(scope)
            try:
                yield
            finally:
                waits.discard(scope)


@dataclass(frozen=True)
class Pool(Generic[T]):
    """Work for one model: ``todo`` is pulled by at most ``workers`` at a time.

    Attributes:
        queues: work waits for its turn before it begins, and says :func:`begun` then. One piece
            is enough to wait for the model; a worker for each would only take memory.
    """

    todo: Iterable[T]
    work: Callable[[T], Awaitable[None]]
    workers: int
    queues: bool = False


_announcement: ContextVar[Callable[[], None]] = ContextVar("clash_begun")


def announce_start() -> None:
    """Said by work whose turn has come: its pool may now take up the next piece."""
    announce = _announcement.get(None)
    if announce is not None:
        announce()


async def drain(pools: Iterable[Pool[T]], stop: Stop) -> None:
    """Work everything off, or until ``stop``; what is in flight then is finished.

    An error in one piece of work ends the others: pieces that may fail turn failure into a record
    themselves.
    """
    async with anyio.create_task_group() as tasks:
        for pool in pools:
            _Crew(pool, stop, tasks).hire(1 if pool.queues else pool.workers)


class _Crew(Generic[T]):
    """The workers of one pool."""

    def __init__(self, pool: Pool[T], stop: Stop, tasks: TaskGroup) -> None:
        self._pool, self._stop, self._tasks = pool, stop, tasks
        self._pending = iter(pool.todo)
        self._n_workers = 0
        self._waiting = 0

    def hire(self, number: int = 1) -> None:
        """More workers, as far as the pool allows."""
        for _ in range(min(number, self._pool.workers - self._n_workers)):
            self._n_workers += 1
            self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        while not self._stop:
            # next() and not `for`: a worker that is told to stop must not take a piece with it.
            try:
                piece = next(self._pending)
            except StopIteration:
                return
            with self._waits():
                try:
                    await self._pool.work(piece)
                except BudgetSpent as spent:
                    self._stop.now(str(spent))
                except Interrupted:
                    return

    @contextmanager
    def _waits(self) -> Iterator[None]:
        """A piece of work that waits until it says :func:`begun`, or has ended."""
        waiting = True

        def begins() -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                self._waiting -= 1
                if not self._waiting:
                    self.hire()

        self._waiting += 1
        token = _announcement.set(begins)
        try:
            yield
        finally:
            begins()
            _announcement.reset(token)
