"""Independent computations of one kind, run here or wherever the caller decides.

A task carries its own seed, so its result is the same wherever it runs. What is computed says
``run_tasks``; who has a cluster says ``run_by``. Neither knows of the other.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Setting = TypeVar("Setting")
    Task = TypeVar("Task")
    Result = TypeVar("Result")


class TaskMap(Protocol):
    """Runs tasks and yields their results in their order."""

    def __call__(
        self, function: Callable[[Setting, Task], Result], setting: Setting, tasks: Sequence[Task]
    ) -> Iterator[Result]:
        """``function(setting, task)`` of each; the function stands at the top of a module."""
        ...


_task_map: ContextVar[TaskMap | None] = ContextVar("task_map", default=None)


@contextmanager
def run_by(task_map: TaskMap | None) -> Iterator[None]:
    """Have tasks run by ``task_map``; without one they run here, one after the other."""
    before = _task_map.set(task_map)
    try:
        yield
    finally:
        _task_map.reset(before)


@contextmanager
def on_processes(n: int) -> Iterator[None]:
    """Have tasks run by ``n`` processes of this machine; one is this process."""
    if n == 1:
        yield
        return
    with ProcessPoolExecutor(n, mp_context=get_context("spawn")) as pool:

        def spread(
            function: Callable[[Setting, Task], Result], setting: Setting, tasks: Sequence[Task]
        ) -> Iterator[Result]:
            return pool.map(partial(function, setting), tasks)

        with run_by(spread):
            yield


def is_spread() -> bool:
    """Whether tasks run elsewhere."""
    return _task_map.get() is not None


def run_tasks(
    function: Callable[[Setting, Task], Result], setting: Setting, tasks: Sequence[Task]
) -> Iterator[Result]:
    """The results of ``function(setting, task)``, in the order of the tasks."""
    task_map = _task_map.get()
    if task_map is None:
        return (function(setting, task) for task in tasks)
    return task_map(function, setting, tasks)
