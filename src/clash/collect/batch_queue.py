"""Batches of one run: gathers, submits, awaits and fetches each of them once.

``batches.jsonl`` has a line before a batch is submitted and one after. A process that finds the
first without the second looks for the batch at the provider before it submits anything; one that
finds both waits for the batch and fetches it.
"""

from __future__ import annotations

import random
import secrets
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import anyio
import anyio.to_thread

from clash.errors import ProviderError
from clash.providers.batch import BatchResult, Lot, never_came
from clash.providers.retry import attempts
from clash.records import Batch, BatchRow, Reservation
from clash.store.manifest import now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence

    from anyio.abc import TaskGroup

    from clash.collect.schedule import Stop
    from clash.config import Limits
    from clash.providers.batch import BatchProvider, BatchRequest, BatchStatus
    from clash.providers.ladder import Feature
    from clash.store.folder import RunFolder, RunWriter

T = TypeVar("T")

QUIET_S = 0.25
"""A batch is closed when no question has come for so many seconds: then all that can be asked yet
has been asked."""
SLOWER = 1.5
"""How much longer each wait for a batch is than the one before it."""
SLOWEST = 20
"""The longest wait, as a multiple of ``batch_poll_s``."""
_SERVER_ERROR = 500
_UNIFORM = random.SystemRandom().uniform


# -- questions and batches ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FetchFailure:
    """Why a batch could not be fetched that was, or may have been, submitted."""

    error: ProviderError


@dataclass(eq=False, slots=True)
class BatchQuestion:
    """One question in a batch, and what became of it.

    Attributes:
        attempt: which attempt of the call it is.
        key: the name of the row at the provider.
        row: the question as a row; null while nobody has asked it in this process.
        reservation: the money that is set aside for it, in dollars.
        withdrawn: nobody waits for it any more.
        submission: set once it is being submitted and can no longer be withdrawn.
        arrival: set once ``result`` is there.
        result: the provider's result, an error, or why there is neither yet.
    """

    call_id: str
    attempt: int
    request_hash: str
    key: str = ""
    row: BatchRequest | None = None
    reservation: Decimal = Decimal(0)
    withdrawn: bool = False
    submission: anyio.Event = field(default_factory=anyio.Event)
    arrival: anyio.Event = field(default_factory=anyio.Event)
    result: BatchResult | ProviderError | FetchFailure | None = None
    batch: RunBatch | None = None

    def settle(self, result: BatchResult | ProviderError | FetchFailure) -> None:
        """Hand the result to whoever waits for it; the first result is kept."""
        if self.result is None:
            self.result = result
            self.arrival.set()


@dataclass(eq=False)
class RunBatch:
    """A batch, from the moment it is on record.

    Attributes:
        questions: by the name of the row at the provider.
        refused_features: features of requests that the model had refused by then.
        provider: null while nobody has asked for it in this process.
        provider_id: the provider's name for it; null where that is not known (yet).
        maybe_submitted: the provider may have it, whether or not it said so.
        from_earlier_process: an earlier process began to submit it.
        n_open: questions whose calls are not on record.
        n_answered: questions with an answer on record.
        n_failed: questions with a failure on record.
        outcome: how it ended, in the provider's word.
        cancellation: set once the provider knows that it is to cancel the batch, or need not.
    """

    mark: str
    model: str
    questions: dict[str, BatchQuestion]
    refused_features: list[str]
    start_time: str
    provider: BatchProvider | None = None
    provider_id: str | None = None
    maybe_submitted: bool = False
    from_earlier_process: bool = False
    n_open: int = 0
    n_answered: int = 0
    n_failed: int = 0
    outcome: str | None = None
    cancellation: anyio.Event = field(default_factory=anyio.Event)

    def record(self, state: str, rows: Sequence[BatchRow] = ()) -> Batch:
        """Its line in ``batches.jsonl``."""
        return Batch.model_validate(
            {
                "batch": self.mark,
                "model": self.model,
                "state": state,
                "rows": list(rows),
                "refused": self.refused_features if rows else [],
                "provider_id": self.provider_id,
                "outcome": self.outcome,
                "answered": self.n_answered,
                "failed": self.n_failed,
                "time": now(),
            }
        )


def unfinished_batches(
    folder: RunFolder,
    was_answered: Callable[[str, int], bool | None],
    open_usd: Mapping[tuple[str, int], float],
) -> list[RunBatch]:
    """Batches that an earlier process submitted, or may have submitted, and that have not ended.

    Args:
        folder: the run.
        was_answered: whether an attempt of a call was; null where it is not on record.
        open_usd: dollars reserved for every attempt that is not on record.
    """
    batches = []
    for record in folder.batches():
        if record.state == "ended":
            continue
        questions = {
            row.custom_id: BatchQuestion(
                row.call_id,
                row.attempt,
                row.request_hash,
                row.custom_id,
                reservation=Decimal(repr(open_usd.get((row.call_id, row.attempt), 0.0))),
            )
            for row in record.rows
            if was_answered(row.call_id, row.attempt) is None
        }
        outcomes = [was_answered(row.call_id, row.attempt) for row in record.rows]
        batch = RunBatch(
            record.batch,
            record.model,
            questions,
            record.refused,
            record.time,
            provider_id=record.provider_id,
            maybe_submitted=True,
            from_earlier_process=True,
            n_open=len(questions),
            n_answered=outcomes.count(True),
            n_failed=outcomes.count(False),
        )
        for question in questions.values():
            question.batch = batch
            question.submission.set()
        batches.append(batch)
    return batches


# -- the queue ------------------------------------------------------------------------------------


class BatchWatcher(Protocol):
    """Is told of each batch's progress; the progress line is one."""

    def batch_polled(self, model: str, n_done: int, n_rows: int) -> None:
        """Batches of a model were submitted or polled; ``n_done`` of their rows are done."""
        ...


class BatchQueue:
    """Gathers questions into batches, and follows each batch to its end.

    Args:
        folder: where batches are written down.
        limits: how often to poll, and how often to repeat a call that failed.
        watcher: is told of every poll.
        stop: after it nothing is submitted.
        cancels: batches of an earlier process are cancelled, and what is done is fetched.
    """

    def __init__(
        self, folder: RunWriter, limits: Limits, watcher: BatchWatcher, stop: Stop, *, cancels: bool
    ) -> None:
        self._folder, self._limits = folder, limits
        self._watcher, self._stop = watcher, stop
        self._cancels = cancels
        self._run = folder.manifest().run
        self._ids = {batch.provider_id for batch in folder.batches() if batch.provider_id}
        self._sizes = {batch.batch: len(batch.rows) for batch in folder.batches()}
        self._waiting: defaultdict[BatchProvider, list[BatchQuestion]] = defaultdict(list)
        self._counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self._locks: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        self._tasks: TaskGroup | None = None

    def start(self, tasks: TaskGroup) -> None:
        """Work within ``tasks`` from now on."""
        self._tasks = tasks

    def add(self, question: BatchQuestion, provider: BatchProvider) -> None:
        """Put a question into the next batch of its model."""
        waiting = self._waiting[provider]
        waiting.append(question)
        if len(waiting) == 1:
            self._start(self._gather, provider)

    def withdraw(self, question: BatchQuestion, provider: BatchProvider) -> None:
        """Withdraw a question that has not been submitted."""
        question.withdrawn = True
        if question in self._waiting[provider]:
            self._waiting[provider].remove(question)

    def resume(self, batch: RunBatch, provider: BatchProvider) -> None:
        """Follow a batch of an earlier process to its end; only the first call does something."""
        if batch.provider is None:
            batch.provider = provider
            for feature in batch.refused_features:
                provider.ladder.refuse(cast("Feature", feature))
            self._start(self._complete, batch)

    def count_recorded(self, question: BatchQuestion, *, has_answer: bool) -> None:
        """The call of a question is on record; with the last of them the batch has ended."""
        batch = question.batch
        if batch is None:
            return
        batch.n_open -= 1
        batch.n_answered += has_answer
        batch.n_failed += not has_answer
        if not batch.n_open:
            self._folder.append(batch.record("ended"))

    def _start(self, work: Callable[..., Coroutine[Any, Any, None]], *arguments: object) -> None:
        if self._tasks is None:
            raise AssertionError("a batch queue works within a task group")
        self._tasks.start_soon(work, *arguments)

    # -- gathering ------------------------------------------------------------------------------

    async def _gather(self, provider: BatchProvider) -> None:
        """Wait until no more questions come, then submit them."""
        n_waiting = 0
        while n_waiting != len(self._waiting[provider]):
            n_waiting = len(self._waiting[provider])
            await anyio.sleep(QUIET_S)
        questions = self._waiting.pop(provider, [])
        for part in _split(questions, provider):
            self._start(self._submit, part, provider)

    def _write_down(self, questions: Sequence[BatchQuestion], provider: BatchProvider) -> RunBatch:
        """Put a batch that is about to be submitted on record, with what it may cost."""
        batch = RunBatch(
            mark=secrets.token_hex(6),
            model=provider.model,
            questions={},
            refused_features=list(provider.ladder.refusals),
            start_time=now(),
            provider=provider,
            n_open=len(questions),
        )
        self._sizes[batch.mark] = len(questions)
        for question in questions:
            key = f"{question.call_id.replace('+', '-')}-{batch.mark}"
            question.row = question.row and replace(question.row, key=key)
            question.key, question.batch = key, batch
            batch.questions[key] = question
            question.submission.set()
        rows = [
            BatchRow(
                call_id=question.call_id,
                attempt=question.attempt,
                custom_id=key,
                request_hash=question.request_hash,
            )
            for key, question in batch.questions.items()
        ]
        self._folder.append(batch.record("submitting", rows))
        for question in questions:
            if question.reservation:
                self._folder.append(
                    Reservation(
                        call_id=question.call_id,
                        attempt=question.attempt,
                        usd=float(question.reservation),
                    )
                )
        return batch

    # -- a batch --------------------------------------------------------------------------------

    async def _complete(self, batch: RunBatch) -> None:
        """Follow a batch to its end, whatever that is."""
        try:
            if batch.provider_id is None:
                await self._find(batch)
            if batch.provider_id is None:
                self._settle_unsubmitted(batch)
                return
            if self._cancels:
                await self._with_retries(lambda: self._provider_of(batch).cancel(_id(batch)))
                batch.cancellation.set()
            progress = await self._until_ended(batch)
            await self._fetch(batch, progress)
        except ProviderError as error:
            self._give_up(batch, error)
        finally:
            batch.cancellation.set()

    async def _submit(self, questions: Sequence[BatchQuestion], provider: BatchProvider) -> None:
        # One at a time: a batch whose answer was lost can then be told from the others of the
        # account, since no other one was submitted meanwhile.
        async with self._locks[provider.account]:
            questions = [question for question in questions if not question.withdrawn]
            if self._stop or not questions:
                return
            batch = self._write_down(questions, provider)
            await anyio.to_thread.run_sync(self._folder.sync)
            try:
                await self._with_retries(lambda: self._try_submit(batch))
            except ProviderError as error:
                self._give_up(batch, error)
                return
        self._report(batch, 0)
        await self._complete(batch)

    async def _try_submit(self, batch: RunBatch) -> None:
        provider, lot = self._provider_of(batch), self._lot(batch)
        # The provider may have the batch of an attempt whose answer was lost.
        provider_id = await provider.find(lot) if batch.maybe_submitted else None
        rows = [question.row for question in batch.questions.values() if question.row is not None]
        try:
            with anyio.CancelScope(shield=True):
                self._set_id(batch, provider_id or await provider.submit(lot, rows))
        except ProviderError as error:
            batch.maybe_submitted |= error.maybe_billed or (error.status or 0) >= _SERVER_ERROR
            raise

    async def _find(self, batch: RunBatch) -> None:
        provider = self._provider_of(batch)
        async with self._locks[provider.account]:
            provider_id = await self._with_retries(lambda: provider.find(self._lot(batch)))
            if provider_id is not None:
                self._set_id(batch, provider_id)

    def _set_id(self, batch: RunBatch, provider_id: str) -> None:
        batch.provider_id = provider_id
        self._ids.add(provider_id)
        self._folder.append(batch.record("submitted"))

    def _lot(self, batch: RunBatch) -> Lot:
        """The description by which the provider submits or finds a batch."""
        return Lot(
            mark=batch.mark,
            run=self._run,
            rows=self._sizes[batch.mark],
            began=datetime.fromisoformat(batch.start_time),
            other_ids=frozenset(self._ids),
        )

    async def _until_ended(self, batch: RunBatch) -> BatchStatus:
        is_due = batch.from_earlier_process or self._cancels
        wait = 0.0 if is_due else self._limits.batch_poll_s
        slowest = SLOWEST * self._limits.batch_poll_s
        while True:
            await anyio.sleep(wait * _UNIFORM(0.8, 1.2))
            wait = min(max(wait, self._limits.batch_poll_s / SLOWER) * SLOWER, slowest)
            try:
                progress = await self._provider_of(batch).poll(_id(batch))
            except ProviderError as error:
                # Within a day any connection may break once, so that is no reason to give up.
                if error.action != "retry":
                    raise
                wait = max(wait, error.retry_after or 0.0)
                continue
            self._report(batch, progress.n_done)
            if progress.is_final:
                return progress
            wait = max(wait, min(progress.wait_s or 0.0, slowest))

    def _report(self, batch: RunBatch, n_done: int) -> None:
        """Tell the watcher how far the batches of a model are, together."""
        counts = self._counts[batch.model]
        counts[batch.mark] = n_done
        n_rows = sum(self._sizes[mark] for mark in counts)
        self._watcher.batch_polled(batch.model, sum(counts.values()), n_rows)

    async def _fetch(self, batch: RunBatch, progress: BatchStatus) -> None:
        def take(result: BatchResult) -> None:
            question = batch.questions.get(result.key)
            if question is not None:
                question.settle(result)

        batch.outcome = progress.outcome
        if progress.failure is None:
            await self._with_retries(lambda: self._provider_of(batch).fetch(_id(batch), take))
        for key, question in batch.questions.items():
            question.settle(BatchResult(key, failure=never_came(progress)))

    def _settle_unsubmitted(self, batch: RunBatch) -> None:
        """An earlier process was killed before it had submitted: the questions are asked again."""
        batch.outcome = "never handed in"
        for question in batch.questions.values():
            text = "the run was killed before this batch was handed in"
            question.settle(ProviderError(text, error_class="interrupted", action="degrade"))

    def _give_up(self, batch: RunBatch, error: ProviderError) -> None:
        """Tell everyone who waits why there will be no result in this process."""
        with_provider = batch.maybe_submitted or batch.provider_id is not None
        batch.outcome = None if with_provider else "refused"
        for question in batch.questions.values():
            question.settle(FetchFailure(error) if with_provider else _copy_of(error))

    async def _with_retries(self, call: Callable[[], Awaitable[T]]) -> T:
        """A call of the batch API, repeated where the connection is at fault."""
        results: list[T] = []
        async for attempt in attempts(self._limits.max_attempts):
            with attempt:
                results.append(await call())
        return results[-1]

    @staticmethod
    def _provider_of(batch: RunBatch) -> BatchProvider:
        if batch.provider is None:
            raise AssertionError("nobody has asked for this batch")
        return batch.provider


def _id(batch: RunBatch) -> str:
    return batch.provider_id or ""


def _copy_of(error: ProviderError) -> ProviderError:
    """The same error, for one more question: each raises its own."""
    return ProviderError(
        error.message,
        error_class=error.error_class,
        action=error.action,
        status=error.status,
        response=error.response,
        request_id=error.request_id,
    )


def _split(
    questions: Sequence[BatchQuestion], provider: BatchProvider
) -> Iterator[list[BatchQuestion]]:
    """Batches that the provider takes: one target each, not too many rows, not too large."""
    by_target: defaultdict[str, list[BatchQuestion]] = defaultdict(list)
    for question in questions:
        if question.row is not None:
            by_target[question.row.target].append(question)
    for alike in by_target.values():
        part: list[BatchQuestion] = []
        size = 0
        for question in alike:
            question_size = question.row.size if question.row else 0
            is_full = len(part) == provider.most_rows or size + question_size > provider.most_bytes
            if part and is_full:
                yield part
                part, size = [], 0
            part.append(question)
            size += question_size
        yield part
