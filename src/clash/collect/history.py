"""What earlier processes of a run did: its calls by place, and the money that is spent or bound."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, get_args

import msgspec

from clash.collect.budget import Budget
from clash.errors import ErrorClass
from clash.files import run_files
from clash.records import Call, Dollars, Reservation
from clash.store import layout

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clash.collect.batch_queue import RunBatch
    from clash.collect.plan import Plan
    from clash.records import Judgment, Response
    from clash.store.folder import RunWriter
    from clash.store.table import RecordTable

_ASK_AGAIN = frozenset(get_args(ErrorClass)) - {"blocked", "too_long"}
"""Failures that a resumed run tries again: nothing usable was paid for."""


class _Attempt(msgspec.Struct, gc=False):
    """The fields of a recorded attempt that are counted."""

    call_id: str
    attempt: int
    outcome: str
    cost_usd: Dollars | None = None
    cost_bound_usd: Dollars | None = None


class _Bound(msgspec.Struct, gc=False):
    """The fields of a reservation that are counted."""

    call_id: str
    attempt: int
    usd: Dollars


class PastCalls(Mapping[str, Call]):
    """The last recorded attempt of each call, by id, read on demand.

    Raw answers are the bulk of a run, so of each call its place, a number and an outcome are kept.
    """

    def __init__(self, table: RecordTable[Call]) -> None:
        self._table = table
        self._index: dict[str, int] = {}
        self._rows = array("q")
        self._numbers = array("l")
        self._is_answered = bytearray()
        # Whether each attempt was answered: the first of a call here, the few others by number.
        self._first = bytearray()
        self._later: dict[tuple[str, int], bool] = {}

    def __getitem__(self, call_id: str) -> Call:
        index = self._index.get(call_id)
        if index is None or self._rows[index] < 0:
            raise KeyError(call_id)
        # Nothing needs the raw answers again.
        call = self._table[self._rows[index]]
        return call.model_copy(update={"request": None, "response": None})

    def __iter__(self) -> Iterator[str]:
        return (call_id for call_id, index in self._index.items() if self._rows[index] >= 0)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, call_id: object) -> bool:
        index = self._index.get(call_id) if isinstance(call_id, str) else None
        return index is not None and self._rows[index] >= 0

    def answer(self, call_id: str) -> Call | None:
        """The last attempt of a call, where it was answered."""
        index = self._index.get(call_id)
        return None if index is None or not self._is_answered[index] else self[call_id]

    def number(self, call_id: str) -> int:
        """The number of the last attempt of a call, whether or not it ended; 0 without any."""
        index = self._index.get(call_id)
        return 0 if index is None else self._numbers[index]

    def was_answered(self, call_id: str, attempt: int) -> bool | None:
        """Whether an attempt was answered; null where it is not on record."""
        if attempt != 1:
            return self._later.get((call_id, attempt))
        index = self._index.get(call_id)
        return (
            None if index is None or not self._first[index] else self._first[index] == _WITH_ANSWER
        )

    def add_attempt(self, call_id: str, attempt: int) -> None:
        """Count a reserved attempt."""
        index = self._index_of(call_id)
        self._numbers[index] = max(self._numbers[index], attempt)

    def add_record(self, row: int, attempt: _Attempt) -> None:
        """Count a recorded attempt."""
        is_answered = attempt.outcome != "error"
        self.add_attempt(attempt.call_id, attempt.attempt)
        index = self._index_of(attempt.call_id)
        self._rows[index], self._is_answered[index] = row, is_answered
        if attempt.attempt == 1:
            self._first[index] = _WITH_ANSWER if is_answered else _WITH_ERROR
        else:
            self._later[attempt.call_id, attempt.attempt] = is_answered

    def _index_of(self, call_id: str) -> int:
        index = self._index.setdefault(call_id, len(self._index))
        if index == len(self._rows):
            self._rows.append(-1)
            self._numbers.append(0)
            self._is_answered.append(0)
            self._first.append(0)
        return index


_WITH_ERROR, _WITH_ANSWER = 1, 2


@dataclass(frozen=True)
class RunHistory:
    """What earlier processes of a run did.

    Attributes:
        calls: the calls on record, and how often each was attempted.
        budget: with the money that they spent, or may have.
        batches: those that are with a provider, or may be.
    """

    calls: PastCalls
    budget: Budget
    batches: list[RunBatch]

    def confirms(self, record: Response | Judgment) -> bool:
        """Whether a record stands: it need not be tried again, and its call is there."""
        has_call = record.call_id is None or record.call_id in self.calls
        return has_call and not is_retried(record.error)


def is_retried(error: str | None) -> bool:
    """Whether a resumed run tries again after this failure."""
    return error is not None and error.partition(":")[0] in _ASK_AGAIN


def read_history(plan: Plan, folder: RunWriter) -> RunHistory:
    """Read the calls, reservations and batches of a run, each file once."""
    budget = Budget(plan.max_cost)
    folder.pack()  # lines that are packed while the table is in use would change their places
    table = folder.table(Call)
    calls = PastCalls(table)
    for row, attempt in enumerate(table.parts(_Attempt)):
        calls.add_record(row, attempt)
        cost = attempt.cost_usd if attempt.cost_usd is not None else attempt.cost_bound_usd
        if cost or attempt.cost_usd is None:
            budget.book(Decimal(repr(cost or 0.0)), exact=attempt.cost_usd is not None)
    # Money of attempts without a record: the process was killed before they ended.
    open_usd: dict[tuple[str, int], float] = {}
    for bound in folder.table(Reservation).parts(_Bound):
        calls.add_attempt(bound.call_id, bound.attempt)
        if calls.was_answered(bound.call_id, bound.attempt) is None:
            open_usd[bound.call_id, bound.attempt] = bound.usd
    batches = _unfinished_batches(folder, calls, open_usd)
    for question in (question for batch in batches for question in batch.questions.values()):
        # This money is not lost: the answer may yet come.
        calls.add_attempt(question.call_id, question.attempt)
        open_usd.pop((question.call_id, question.attempt), None)
        budget.hold(question.reservation)
    for usd in open_usd.values():
        budget.book(Decimal(repr(usd)), exact=False)
    return RunHistory(calls, budget, batches)


def _unfinished_batches(
    folder: RunWriter, calls: PastCalls, open_usd: Mapping[tuple[str, int], float]
) -> list[RunBatch]:
    """Batches that may still bring an answer; one whose calls are all recorded has ended."""
    if not run_files.is_file(folder.path / layout.BATCHES):
        return []
    from clash.collect.batch_queue import unfinished_batches

    batches = unfinished_batches(folder, calls.was_answered, open_usd)
    for batch in batches:
        if not batch.n_open:
            folder.append(batch.record("ended"))
    return [batch for batch in batches if batch.n_open]
