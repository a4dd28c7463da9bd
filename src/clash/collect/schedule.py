"""The one async shape: some workers pull from one iterator, one pool for each model.

A slow vendor never holds up the others, and ten thousand calls are not ten thousand tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

from clash.collect.budget import BudgetSpent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

T = TypeVar("T")


@dataclass
class Stop:
    """Whether new work may start: a person or the budget can say no.

    Attributes:
        reason: why not, null while it may.
    """

    reason: str | None = None

    def __bool__(self) -> bool:
        return self.reason is not None


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
            stop.reason = stop.reason or str(spent)
