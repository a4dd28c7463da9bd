"""Calls through the batch APIs of providers: made like any other, answered with the batch."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from clash.collect.batch_queue import BatchQuestion, BatchQueue, BatchWatcher, FetchFailure
from clash.collect.calling import Caller, Listener
from clash.collect.schedule import Interrupted, announce_start
from clash.errors import ProviderError
from clash.providers import can_batch, open_batches, prices, usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Literal

    from anyio.abc import TaskGroup

    from clash.collect.batch_queue import RunBatch
    from clash.collect.budget import Budget
    from clash.collect.calling import ModelConnection, Past, PendingCall
    from clash.collect.schedule import Stop
    from clash.config import Limits, ModelRef
    from clash.providers.base import Request
    from clash.providers.batch import BatchProvider
    from clash.records import Call
    from clash.store.folder import RunWriter


class BatchProgress(Listener, BatchWatcher, Protocol):
    """Is told of the progress of calls and batches."""


_ALL_AT_ONCE = 20_000
"""Questions to one model that may wait at once: each takes some 10 kB, plus its text."""


class BatchCaller(Caller):
    """Makes calls for one run, in batches where the provider has them.

    The batches of an earlier process are waited for and fetched, whatever ``new`` says.

    Args:
        folder: the run.
        budget: what may be spent.
        limits: timeouts, attempts, and how often to poll a batch.
        environ: where keys are.
        listener: is told of every attempt, and of every poll.
        stop: after it nothing is asked, and nothing submitted.
        past: as for any :class:`Caller`.
        batches: those that an earlier process submitted, or may have.
        new: what to do with new questions: submit them as batches, ask them live, or ask nothing
            and cancel the unfinished batches.
    """

    def __init__(
        self,
        folder: RunWriter,
        budget: Budget,
        limits: Limits,
        environ: Mapping[str, str],
        listener: BatchProgress,
        stop: Stop,
        *,
        past: Past | None = None,
        batches: Iterable[RunBatch] = (),
        new: Literal["batch", "live", "none"] = "batch",
    ) -> None:
        super().__init__(
            folder.append,
            budget,
            limits,
            environ,
            listener,
            stop,
            past=past,
        )
        self._environ = environ
        self._new = new
        self._queue = BatchQueue(folder, limits, listener, stop, cancels=new == "none")
        self._providers: dict[int, BatchProvider] = {}
        self._batches = list(batches)
        self._open_questions = {
            question.call_id: question
            for batch in self._batches
            for question in batch.questions.values()
        }
        self._refs: dict[str, ModelRef] = {}

    def open(self, ref: ModelRef) -> None:
        """Open the connection to a model now. See :meth:`Caller.open`."""
        super().open(ref)
        self._refs.setdefault(ref.model, ref)

    @property
    def workers(self) -> int:
        """All pieces are started, since only what is started can be put into one batch."""
        return _ALL_AT_ONCE

    def start(self, tasks: TaskGroup) -> None:
        """Gather questions and wait for batches in ``tasks``."""
        super().start(tasks)
        self._queue.start(tasks)
        if self._new == "none":
            for batch in self._batches:
                if (ref := self._refs.get(batch.model)) is not None:
                    self._queue.resume(batch, self._provider(ref, self._connection(ref)))

    async def finish(self) -> None:
        """Wait until all cancelled batches have ended."""
        if self._new == "none":
            with self._stop.wakes(patient=True):
                for batch in self._batches:
                    if batch.provider is not None:
                        await batch.cancellation.wait()

    async def aclose(self) -> None:
        """Close every connection."""
        for provider in self._providers.values():
            await provider.aclose()
        await super().aclose()

    def answers_at_once(self, ref: ModelRef) -> bool:
        """Whether a model is a rule, and may be asked."""
        return self._new != "none" and super().answers_at_once(ref)

    async def _attempt(self, pending: PendingCall, connection: ModelConnection) -> Call:
        """One attempt, recorded whichever way it ends; one in a batch that is not fetched has no end."""
        question = self._open_questions.pop(pending.call_id, None)
        if question is None:
            if self._new == "none":
                self.refusal = "batches were cancelled, and nothing new was asked"
                raise Interrupted(self.refusal)
            if self._new == "live" or not can_batch(pending.ref, pending.request):
                return await super()._attempt(pending, connection)
        request = replace(
            pending.request, stream=False, item_id=pending.item_id, judge=pending.judge
        )
        provider = self._provider(pending.ref, connection)
        if question is None:
            question = await self._submit_question(pending, request, connection, provider)
        else:
            self._resume_question(pending, question, request, provider)
        self._listener.attempt_began(pending)
        with self._stop.wakes(patient=True):
            await question.arrival.wait()
        return self._finish_question(pending, question, connection, provider)

    def _provider(self, ref: ModelRef, connection: ModelConnection) -> BatchProvider:
        if id(connection) not in self._providers:
            self._providers[id(connection)] = open_batches(ref, self._environ, self._limits)
        return self._providers[id(connection)]

    def _resume_question(
        self,
        pending: PendingCall,
        question: BatchQuestion,
        request: Request,
        provider: BatchProvider,
    ) -> None:
        """Wait for a question of a batch that an earlier process submitted."""
        announce_start()
        if question.batch is not None:
            self._queue.resume(question.batch, provider)
        question.row = provider.row(request, question.key)
        if question.request_hash != request.hash(pending.ref.model):
            text = "the batch contains a different question from the one that the run would ask"
            question.settle(
                ProviderError(text, error_class="bad_request", action="degrade", maybe_billed=True)
            )

    async def _submit_question(
        self,
        pending: PendingCall,
        request: Request,
        connection: ModelConnection,
        provider: BatchProvider,
    ) -> BatchQuestion:
        """A question of a batch that is being submitted.

        Raises:
            Interrupted: the run stopped before the batch was submitted; nothing is spent.
        """
        if self._stop:
            raise Interrupted(str(self._stop.reason))
        connection.check()
        number = self._next_number(pending)
        worst = prices.worst_case(pending.ref, request, batch=True)
        try:
            row = provider.row(request)
        except ProviderError as error:
            self._record(self._error(pending, number, error, Decimal(0)), pending)
            raise
        question = BatchQuestion(pending.call_id, number, request.hash(pending.ref.model), row=row)
        reservation = None
        with self._stop.wakes():
            reservation = await self._budget.reserve(worst.usd if worst else Decimal(0))
        if reservation is None:
            raise Interrupted(str(self._stop.reason))
        question.reservation = reservation
        announce_start()
        self._queue.add(question, provider)
        with self._stop.wakes():
            await question.submission.wait()
        if not question.submission.is_set():
            self._queue.withdraw(question, provider)
            self._budget.settle(reservation, Decimal(0))
            raise Interrupted(str(self._stop.reason))
        return question

    def _finish_question(
        self,
        pending: PendingCall,
        question: BatchQuestion,
        connection: ModelConnection,
        provider: BatchProvider,
    ) -> Call:
        result, row = question.result, question.row
        if result is None or row is None:
            raise Interrupted(str(self._stop.reason))
        if isinstance(result, FetchFailure):
            raise self._interruption(result, connection)
        try:
            if isinstance(result, ProviderError):
                raise result
            reply = provider.read(row, result)
        except ProviderError as error:
            if error.action == "retry":
                error.action = "fail"  # the next batch is another day: a resumed run asks again
            self._budget.settle(question.reservation, None if error.maybe_billed else Decimal(0))
            call = self._error(pending, question.attempt, error, question.reservation)
            self._record(_as_batch_call(call, question), pending)
            self._queue.count_recorded(question, has_answer=False)
            raise
        charge = usage.charge(pending.ref, pending.request, reply, batch=True)
        self._budget.settle(question.reservation, charge.cost.usd if charge.cost else None)
        call = self._reply(pending, question.attempt, reply, charge, question.reservation)
        self._record(call := _as_batch_call(call, question), pending)
        self._queue.count_recorded(question, has_answer=True)
        return call

    def _interruption(self, failure: FetchFailure, connection: ModelConnection) -> Interrupted:
        """A later process may yet fetch the batch, so nothing is recorded."""
        reason = f"{failure.error.error_class}: {failure.error.message}"
        if failure.error.action == "stop":
            connection.stop(reason)
        self.refusal = self.refusal or f"a batch could not be fetched: {reason}"
        return Interrupted(self.refusal)


def _as_batch_call(call: Call, question: BatchQuestion) -> Call:
    """A call with its row in a batch, and without times: they would be ours, not the model's."""
    row = {
        "batch": question.batch and question.batch.provider_id,
        "custom_id": question.row and question.row.key,
    }
    request = {**(call.request or {}), **row}
    return call.model_copy(update={"request": request, "latency_s": None, "ttft_s": None})
