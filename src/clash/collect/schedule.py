"""The one async shape: some workers pull from one iterator, one pool for each model.

A slow vendor never holds up the others, and ten thousand calls are not ten thousand tasks.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from clash.collect.budget import BudgetSpent
from clash.errors import ClashError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

T = TypeVar("T")


class Interrupted(ClashError):
    """The run ends before this piece of work: nothing is recorded, and a resumed run does it."""

    exit_code = 130


@dataclass
class Stop:
    """Whether new work may start: a person or the budget can say no.

    Attributes:
        reason: why not, null while it may.
    """

    reason: str | None = None
    _waits: set[anyio.CancelScope] = field(default_factory=set)

    def __bool__(self) -> bool:
        return self.reason is not None

    def now(self, reason: str) -> None:
        """Start nothing more; the first reason stands. Those who only wait are woken."""
        self.reason = self.reason or reason
        for scope in tuple(self._waits):
            scope.cancel()

    @contextmanager
    def wakes(self) -> Iterator[None]:
        """A wait, for room or for a retry, that :meth:`now` ends; ask then whether it has."""
        with anyio.CancelScope() as scope:
            if self:
                scope.cancel()
            self._waits.add(scope)
            try:
                yield
            finally:
                self._waits.discard(scope)


@dataclass(frozen=True)
class Pool(Generic[T]):
    """Work for one model: ``todo`` is pulled by at most ``workers`` at a time."""

    todo: Iterable[T]
    work: Callable[[T], Awaitable[None]]
    workers: int


async def drain(pools: Iterable[Pool[T]], stop: Stop) -> None:
    """Work everything off, or until ``stop``; what is in flight then is finished.

    An error in one piece of work ends the others: pieces that may fail turn failure into a record
    themselves.
    """
    async with anyio.create_task_group() as tasks:
        for pool in pools:
            pending = iter(pool.todo)
            for _ in range(pool.workers):
                tasks.start_soon(_worker, pending, pool.work, stop)


async def _worker(pending: Iterator[T], work: Callable[[T], Awaitable[None]], stop: Stop) -> None:
    while not stop:
        # next() and not `for`: a worker that is told to stop must not take a piece with it.
        try:
            piece = next(pending)
        except StopIteration:
            return
        try:
            await work(piece)
        except BudgetSpent as spent:
            stop.now(str(spent))
        except Interrupted:
            return
