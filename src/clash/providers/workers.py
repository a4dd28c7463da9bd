"""Worker processes that make the calls of one run, and the broker's side of them.

The SDKs take milliseconds of CPU for a call, so one process keeps some hundred calls in flight,
whatever it is allowed. With workers the process of the run is the broker: it alone counts calls and
money by account, writes the run folder, and reads the answers. A worker makes one attempt at a time
for each request that it is handed, through the providers as they are.

A worker that is killed loses the attempts that it was making; they count as possibly billed and are
made again, by another worker. So are those of a worker that hangs: each says once a second that it
is alive, and one that has been silent for long gets no more work. Where it goes on after all, a late
answer is taken for a call that still waits for one, and never twice. Workers end with the broker,
however it ends: their end of the socket pair is then closed.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.to_thread

from clash.errors import ClashError, ConfigError, ProviderError
from clash.providers.accounts import account
from clash.providers.worker_process import Attempt, Settings, pack, receive

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from anyio.abc import TaskGroup

    from clash.config import Limits, ModelRef
    from clash.providers.base import Provider, Reply, Request
    from clash.providers.worker_process import AttemptOutcome

_VAIN_STARTS = 3
"""Workers in a row that end before their first answer: after them no further one is started."""
_EARLY_KILLS = 30
"""The same of workers that somebody kills: on a busy machine a worker takes seconds to start."""
_PROGRAM = "from clash.providers import worker_process; worker_process.main()"
_PATIENCE_S = 5.0
"""Seconds that a worker has to end before it is killed."""
BEAT_S = 1.0
"""Seconds between two signs of life of a worker."""
_SILENT_BEATS = 30
"""So many beats in a row that a worker missed, and it hangs. An import takes seconds."""


class WorkerError(ClashError):
    """The worker processes cannot be started. The run can be resumed without them."""


@dataclass(eq=False)
class _WorkerHandle:
    """A worker process, as the broker sees it.

    Attributes:
        pending: the attempts that it is making, by number.
        overdue: those that it was making when it was found to hang, by number.
        models: the models that it knows.
        has_answered: it has ended an attempt.
        n_silent_beats: beats of the broker since its last message.
        is_gone: it has ended, or hangs: it gets no further attempt.
    """

    process: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pending: dict[int, _Pending] = field(default_factory=dict)
    overdue: dict[int, _Pending] = field(default_factory=dict)
    models: set[int] = field(default_factory=set)
    has_answered: bool = False
    n_silent_beats: int = 0
    is_gone: bool = False


@dataclass(eq=False)
class _Pending:
    """An attempt that a worker is making, and who waits for its answer.

    Attributes:
        late_reply: the answer, where it came after the attempt had been given up and nobody waited.
    """

    model: int
    request: Request
    future: asyncio.Future[Reply]
    late_reply: Reply | None = None

    def fail(self, message: str) -> None:
        """Tell who waits that the attempt is lost, and may have been billed."""
        if not self.future.done():
            self.future.set_exception(
                ProviderError(message, error_class="connection", action="retry", maybe_billed=True)
            )


class WorkerPool:
    """The worker processes of a run.

    Args:
        environ: where keys are.
        limits: timeouts, and how many workers.
        open_here: opens a model in this process.

    Raises:
        ConfigError: this system has no socket pairs that a process can inherit.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        limits: Limits,
        open_here: Callable[[ModelRef], Provider],
    ) -> None:
        if os.name == "nt":  # pragma: no cover - Windows
            raise ConfigError(
                "worker processes need Linux or macOS", field="--workers", hint="leave it out"
            )
        self._settings = Settings(environ, limits, BEAT_S)
        self._open_here = open_here
        self._workers: list[_WorkerHandle] = []
        self._hung_workers: list[_WorkerHandle] = []
        self._overdue: list[_Pending] = []
        self._numbers = itertools.count()
        self._models = itertools.count()
        self._starting = anyio.Lock()
        self._n_vain_starts = self._n_early_kills = 0
        self._tasks: TaskGroup | None = None

    def open(self, ref: ModelRef) -> Provider:
        """A model whose calls the workers make.

        Raises:
            ConfigError: its key or its address is missing or wrong.
        """
        name = account_name(ref, self._settings.environ, self._open_here)
        return RemoteProvider(self, next(self._models), ref, name)

    def start(self, tasks: TaskGroup) -> None:
        """Listen to workers within ``tasks``; each is started when it is first needed."""
        self._tasks = tasks
        tasks.start_soon(self._count_beats)

    async def worker(self) -> _WorkerHandle:
        """The worker with the fewest attempts, started first where there are too few.

        Raises:
            WorkerError: workers end as soon as they are started.
        """
        async with self._starting:
            while True:
                # A worker may end while the next one starts: nobody would answer its attempts.
                self._workers = [worker for worker in self._workers if not worker.is_gone]
                if len(self._workers) >= self._settings.limits.workers:
                    return min(self._workers, key=lambda worker: len(worker.pending))
                self._workers.append(await self._start_worker())

    async def attempt(
        self, worker: _WorkerHandle, model: int, ref: ModelRef, request: Request
    ) -> Reply:
        """Have an attempt made.

        Raises:
            ProviderError: it failed, or its worker ended before it did.
        """
        # The task behind a prompt is for judges that read no prompt; no worker has one.
        request = replace(request, task=None)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if (reply := self._late_reply(model, request, future)) is not None:
            return reply
        number = next(self._numbers)
        worker.pending[number] = _Pending(model, request, future)
        known_ref = None if model in worker.models else ref
        worker.models.add(model)
        worker.writer.write(pack(Attempt(number, model, known_ref, request)))
        try:
            return await future
        finally:
            worker.pending.pop(number, None)

    def _late_reply(
        self, model: int, request: Request, future: asyncio.Future[Reply]
    ) -> Reply | None:
        """The answer to an attempt at the same question that was given up; it is handed out once.

        Where it may yet come, ``future`` waits for it too: the first of two answers counts.
        """
        for given_up in self._overdue:
            if given_up.future.done() and (given_up.model, given_up.request) == (model, request):
                if given_up.late_reply is None:
                    given_up.future = future
                else:
                    self._overdue.remove(given_up)
                return given_up.late_reply
        return None

    async def aclose(self) -> None:
        """End every worker."""
        for worker in self._hung_workers:
            worker.process.kill()
        for worker in (*self._workers, *self._hung_workers):
            worker.writer.close()
        for worker in (*self._workers, *self._hung_workers):
            await anyio.to_thread.run_sync(_wait_for, worker.process)
        self._workers.clear()
        self._hung_workers.clear()

    async def _start_worker(self) -> _WorkerHandle:
        if self._tasks is None:
            raise AssertionError("the pool was not started")
        if self._n_vain_starts >= _VAIN_STARTS or self._n_early_kills >= _EARLY_KILLS:
            raise WorkerError(
                f"{self._n_vain_starts + self._n_early_kills} worker processes ended before their"
                " first answer"
                "\n  fix: leave out --workers, or see above why they ended"
            )
        own_end, worker_end = socket.socketpair()
        with worker_end:
            process = _spawn(worker_end)
        reader, writer = await asyncio.open_connection(sock=own_end)
        worker = _WorkerHandle(process, reader, writer)
        writer.write(pack(self._settings))
        self._tasks.start_soon(self._listen, worker)
        return worker

    async def _listen(self, worker: _WorkerHandle) -> None:
        """Hand each outcome to whoever waits for it, until the worker ends."""
        try:
            while True:
                outcome = await receive(worker.reader)
                worker.n_silent_beats = 0
                if outcome is None:
                    continue  # a sign of life
                worker.has_answered = True
                self._n_vain_starts = self._n_early_kills = 0
                if outcome.number in worker.overdue:
                    self._take_late(worker, outcome)
                elif outcome.number in worker.pending:
                    _settle(worker.pending[outcome.number].future, outcome)
        except EOFError:
            await self._bury(worker)

    def _take_late(self, worker: _WorkerHandle, outcome: AttemptOutcome) -> None:
        """Hand a late answer to whoever asks the same by now, or keep it for who will."""
        given_up = worker.overdue.pop(outcome.number)
        if outcome.reply is None:
            self._overdue.remove(given_up)
        elif given_up.future.done():
            given_up.late_reply = outcome.reply
        else:
            self._overdue.remove(given_up)
            given_up.future.set_result(outcome.reply)
        if not worker.overdue:
            worker.writer.close()  # another has its place

    async def _count_beats(self) -> None:
        """Give up on workers that are silent for too long.

        Beats of this loop are counted, not seconds: where the broker itself stood still, signs of
        life wait to be read.
        """
        while True:
            await anyio.sleep(BEAT_S)
            for worker in self._workers:
                worker.n_silent_beats += 1
                if worker.n_silent_beats > _SILENT_BEATS and not worker.is_gone:
                    self._give_up(worker)

    def _give_up(self, worker: _WorkerHandle) -> None:
        """Let others make the attempts of a worker that hangs."""
        worker.is_gone = True
        self._n_vain_starts += not worker.has_answered
        self._hung_workers.append(worker)
        worker.overdue = dict(worker.pending)
        self._overdue += worker.overdue.values()
        for attempt in worker.overdue.values():
            attempt.fail("the worker process that made the call does not respond")
        if not worker.overdue:
            worker.process.kill()

    async def _bury(self, worker: _WorkerHandle) -> None:
        was_given_up, worker.is_gone = worker.is_gone, True
        worker.writer.close()
        await anyio.to_thread.run_sync(_wait_for, worker.process)
        if not (was_given_up or worker.has_answered):
            self._n_vain_starts += worker.process.returncode >= 0
            self._n_early_kills += worker.process.returncode < 0
        if worker in self._hung_workers:
            self._hung_workers.remove(worker)
        for given_up in worker.overdue.values():
            self._overdue.remove(given_up)
        code = worker.process.returncode
        for attempt in list(worker.pending.values()):
            attempt.fail(f"the worker process that made the call ended ({code})")


def _settle(future: asyncio.Future[Reply], outcome: AttemptOutcome) -> None:
    """Hand an outcome to whoever waits for it."""
    if future.done():
        return  # nobody waits any more
    try:
        future.set_result(reply_of(outcome))
    except (ProviderError, RuntimeError) as error:
        future.set_exception(error)


def reply_of(outcome: AttemptOutcome) -> Reply:
    """The answer that a worker sent.

    Raises:
        ProviderError: the attempt failed.
        RuntimeError: there is a bug, with the traceback of the worker.
    """
    if outcome.reply is not None:
        return outcome.reply
    if outcome.failure is not None:
        raise _failure(*outcome.failure)
    raise RuntimeError(f"in a worker process:\n{outcome.bug}")


class AttemptPool(Protocol):
    """Workers that make attempts, wherever they are. A worker says by ``is_gone`` that it ended."""

    async def worker(self) -> Any:  # noqa: ANN401 - each pool has workers of its own
        """The worker that the next attempt goes to."""
        ...

    async def attempt(
        self,
        worker: Any,  # noqa: ANN401
        model: int,
        ref: ModelRef,
        request: Request,
    ) -> Reply:
        """Have an attempt made."""
        ...


def account_name(
    ref: ModelRef, environ: Mapping[str, str], open_here: Callable[[ModelRef], Provider]
) -> str:
    """What rate limits of a model are shared by.

    Raises:
        ConfigError: its key or its address is missing or wrong.
    """
    is_special = ref.base_urls or ref.provider == "vllm"
    return open_here(ref).account if is_special else account(ref, environ).name


class RemoteProvider:
    """A model whose attempts are made by workers.

    What a server refuses, each worker finds out for itself; an attempt that is repeated for that
    reason goes to the worker that has.
    """

    offline = False

    def __init__(self, pool: AttemptPool, model: int, ref: ModelRef, account: str) -> None:
        self.account = account
        self._pool, self._model, self._ref = pool, model, ref
        self._learners: dict[tuple[str | None, str | None], Any] = {}

    async def complete(self, request: Request) -> Reply:
        """Make exactly one attempt. See :meth:`clash.providers.base.Provider.complete`."""
        key = request.item_id, request.judge
        worker = self._learners.pop(key, None)
        if worker is None or worker.is_gone:
            worker = await self._pool.worker()
        try:
            return await self._pool.attempt(worker, self._model, self._ref, request)
        except ProviderError as error:
            if error.action == "degrade":
                self._learners[key] = worker
            raise

    async def aclose(self) -> None:
        """Nothing is open here; the pool ends the workers."""


def _failure(message: str, fields: dict[str, object]) -> ProviderError:
    error = ProviderError(message, error_class="connection", action="fail")
    vars(error).update(fields)
    return error


def _spawn(worker_end: socket.socket) -> subprocess.Popen[bytes]:
    # -P: a module in the working folder must not take the place of one of clash or of an SDK.
    command = [sys.executable, "-P", "-c", _PROGRAM, str(worker_end.fileno())]
    try:
        return subprocess.Popen(  # noqa: S603 - this program
            command,
            pass_fds=[worker_end.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            process_group=0,  # Ctrl-C reaches every process of a group, before it can be ignored
        )
    except OSError as error:
        raise WorkerError(
            f"a worker process cannot be started ({error.strerror})\n  fix: leave out --workers"
        ) from None


def _wait_for(process: subprocess.Popen[bytes]) -> None:
    with suppress(subprocess.TimeoutExpired):
        process.wait(_PATIENCE_S)
        return
    process.kill()
    process.wait()
