"""The one async shape: a pool for each model, whose workers pull from one iterator.

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
    """Whether new work may start: a person or the budget can stop it.

    Attributes:
        reason: why not; null while it may.
        leaves: answers that a provider prepares in its own time (batches) are not waited for either.
    """

    reason: str | None = None
    leaves: bool = False
    _waits: set[anyio.CancelScope] = field(default_factory=set)
    _patient: set[anyio.CancelScope] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.reason is not None

    def now(self, reason: str, *, leaves: bool = False) -> None:
        """Start nothing more; the first reason stays. Tasks that only wait are woken.

        Args:
            reason: why.
            leaves: also wake the tasks that wait for answers which a provider prepares in its own
                time.
        """
        self.reason = self.reason or reason
        self.leaves = self.leaves or leaves
        for scope in (*self._waits, *(self._patient if leaves else ())):
            scope.cancel()

    @contextmanager
    def wakes(self, *, patient: bool = False) -> Iterator[None]:
        """A wait, for capacity or for a retry, that :meth:`now` ends; check then whether it did.

        Args:
            patient: it is for an answer on its way, and ends only with ``leaves``.
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
        queues: work waits for its turn before it starts, and calls :func:`announce_start` then. One
            waiting piece is enough for a model; a worker for each would only take memory.
    """

    todo: Iterable[T]
    work: Callable[[T], Awaitable[None]]
    workers: int
    queues: bool = False


_announcement: ContextVar[Callable[[], None]] = ContextVar("clash_begun")


def announce_start() -> None:
    """Called by work whose turn has come: its pool may now take the next piece."""
    announce = _announcement.get(None)
    if announce is not None:
        announce()


async def drain(pools: Iterable[Pool[T]], stop: Stop) -> None:
    """Do all the work, or as much as starts before ``stop``; what is in flight then is finished.

    An exception in one piece ends the others: a piece that may fail records its failure itself.
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
        """Start more workers, as far as the pool allows."""
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
                except BudgetSpent as error:
                    self._stop.now(str(error))
                except Interrupted:
                    return

    @contextmanager
    def _waits(self) -> Iterator[None]:
        """Around a piece of work, which waits until it calls :func:`announce_start` or ends."""
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
