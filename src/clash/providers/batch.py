"""Batch APIs: questions submitted together, answered within a day, at half the price.

A vendor's batch module adds to its live provider how a batch is submitted, polled, found again and
fetched. Each row is written and read by the dialect of live requests, so an answer means the same
either way.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import msgspec

from clash.providers.failures import STATUS_OF_CODE, Failure, from_answer
from clash.providers.network import Broken, Exchange
from clash.providers.sdk import HTTPX_ERRORS, SdkProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from datetime import datetime

    from clash.providers.base import Reply, Request
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import Ladder, WireRequest

T = TypeVar("T")

LONGEST = 2 * 1024**3
"""Bytes of results that are read from one batch."""
_ROW_OVERHEAD = 300
"""Bytes of a row around its question."""
FEW_MINUTES_S = 600.0
"""How far the vendor's clock may be from ours."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One question as a row of a batch.

    Attributes:
        key: its id at the vendor (``custom_id``); holds nothing of the question.
        target: where a live request would go; the rows of one batch share it.
        size: bytes that it takes in the batch, about.
    """

    key: str
    request: Request
    wire_request: WireRequest
    dialect: Dialect
    target: str
    size: int


@dataclass(frozen=True, slots=True)
class Lot:
    """The rows of one batch, as far as the vendor needs to know.

    Attributes:
        mark: our own name of the batch, part of every key.
        rows: how many.
        began: when the submission began.
        other_ids: the vendor's ids of our other batches.
    """

    mark: str
    run: str
    rows: int
    began: datetime
    other_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """The state of a batch.

    Attributes:
        is_final: the batch has ended, and nothing in it changes any more.
        outcome: the vendor's word for its state.
        n_done: rows that have ended, where the vendor reports them.
        failure: why the batch as a whole failed.
        wait_s: seconds that the vendor asks us to wait before the next poll.
    """

    is_final: bool
    outcome: str
    n_done: int = 0
    failure: Failure | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of a row: an answer with a status, or why it was never asked."""

    key: str
    status: int = 200
    data: Mapping[str, Any] = field(default_factory=dict)
    request_id: str | None = None
    failure: Failure | None = None


class BatchProvider(SdkProvider):
    """A model that is asked in batches.

    Attributes:
        most_rows: rows that one batch may have, and ``most_bytes`` their size.
    """

    pool = "batch"
    longest = LONGEST
    most_rows: int
    most_bytes: int

    # -- for each vendor ---------------------------------------------------------------------

    @abstractmethod
    def _target(self, request: Request, wire_request: WireRequest, dialect: Dialect) -> str:
        """Where a live request would go, below the account's address."""

    @abstractmethod
    async def _submit(self, lot: Lot, rows: Sequence[BatchRequest]) -> str:
        """Submit the rows; returns the vendor's id of the batch."""

    @abstractmethod
    async def _find(self, lot: Lot) -> str | None:
        """The vendor's id of a batch whose submission was cut short; null where it never arrived."""

    @abstractmethod
    async def _poll(self, batch_id: str) -> BatchStatus:
        """The state of the batch."""

    @abstractmethod
    def _results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        """Every row that has a result, in any order."""

    @abstractmethod
    async def _cancel(self, batch_id: str) -> None:
        """Ask no more rows; the results of those that have ended can still be fetched."""

    # -- the interface -----------------------------------------------------------

    @property
    def ladder(self) -> Ladder:
        """What the model refuses."""
        return self._ladder

    @property
    def model(self) -> str:
        """The model, as the configuration names it."""
        return self._ref.model

    def row(self, request: Request, key: str = "") -> BatchRequest:
        """``request`` as a row.

        Raises:
            ProviderError: it holds what no text may hold.
        """
        dialect = self._dialect(request)
        wire_request = dialect.write(self._ref.name, request, self._ladder)
        target = self._target(request, wire_request, dialect)
        if request.options.headers:
            target += f" {json.dumps(request.options.headers, sort_keys=True)}"
        try:
            size = len(msgspec.json.encode(wire_request.body, enc_hook=str)) + _ROW_OVERHEAD
        except UnicodeEncodeError as error:
            text = f"the request contains characters that are not valid text ({error.reason})"
            raise self._error(Exchange(), Failure("bad_request", "fail", text)) from None
        return BatchRequest(key, request, wire_request, dialect, target, size)

    async def submit(self, lot: Lot, rows: Sequence[BatchRequest]) -> str:
        """Submit a batch.

        Returns:
            The vendor's id of it.

        Raises:
            ProviderError: it was not submitted; ``maybe_billed`` where it may have been.
        """
        return await self._call(lambda: self._submit(lot, rows))

    async def find(self, lot: Lot) -> str | None:
        """The vendor's id of a batch that may have been submitted; null where it was not.

        Raises:
            ProviderError: the vendor could not be asked.
        """
        return await self._call(lambda: self._find(lot))

    async def poll(self, batch_id: str) -> BatchStatus:
        """The state of a batch.

        Raises:
            ProviderError: the vendor could not be asked.
        """
        return await self._call(lambda: self._poll(batch_id))

    async def fetch(self, batch_id: str, take: Callable[[BatchResult], None]) -> None:
        """Pass every row of a batch that has ended to ``take``.

        Raises:
            ProviderError: they could not be fetched, or not all.
        """

        async def every() -> None:
            async for result in self._results(batch_id):
                take(result)

        await self._call(every)

    async def cancel(self, batch_id: str) -> None:
        """Have the vendor ask no more rows of a batch.

        Raises:
            ProviderError: the vendor could not be told.
        """
        await self._call(lambda: self._cancel(batch_id))

    def read(self, row: BatchRequest, result: BatchResult) -> Reply:
        """The reply in a row, as it would have been read live.

        Raises:
            ProviderError: there is no usable answer in it.
        """
        options = row.request.options
        exchange = Exchange(
            url=self._account.base_url.rstrip("/") + row.target.partition(" ")[0],
            headers=options.headers,
            body=row.wire_request.body,
            status=result.status,
            answer_headers={"x-request-id": result.request_id} if result.request_id else {},
            data=dict(result.data),
        )
        if result.failure is not None:
            failure = self._degrade(result.failure, exchange, row.wire_request, row.request)
            raise self._error(exchange, failure)
        if result.status >= 400:
            failure = from_answer(result.status, {}, result.data)
            failure = self._degrade(failure, exchange, row.wire_request, row.request)
            raise self._error(exchange, failure)
        try:
            answer, data = self._read(exchange, row.dialect)
        except Broken as broken:
            raise self._error(exchange, broken.failure) from None
        if isinstance(answer, Failure):
            failure = self._degrade(answer, exchange, row.wire_request, row.request)
            raise self._error(exchange, failure)
        return self._reply(exchange, row.wire_request, answer, data)

    # -- failures -------------------------------------------------------------------------------

    async def _call(self, call: Callable[[], Awaitable[T]]) -> T:
        """Make one call of the batch API; its errors become a ProviderError."""
        exchange = Exchange(url=self._account.base_url)
        try:
            with anyio.fail_after(3 * self._limits.timeout_s):
                return await call()
        except TimeoutError:
            raise self._error(exchange, self._late()) from None
        except self.raises as error:
            raise self._error(exchange, self._classify(error)) from None
        except HTTPX_ERRORS as error:
            raise self._error(exchange, self._line_failure(error)) from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # An SDK passes on what a server wrote: null for a count, a page of HTML as a text.
            text = f"the answer of the batch API cannot be read: {error}"
            failure = Failure("bad_payload", "retry", text, maybe_billed=True)
            raise self._error(exchange, failure) from None

    def _classify(self, error: Exception) -> Failure:
        answer = getattr(error, "response", None)
        status = getattr(answer, "status_code", None)
        if not isinstance(status, int):
            return self._line_failure(error)
        body = getattr(error, "body", None) or getattr(error, "details", None) or str(error)
        headers = {str(k).lower(): str(v) for k, v in dict(answer.headers).items()}  # type: ignore[union-attr] # it has a status
        return as_a_whole(from_answer(status, headers, body))

    def _line_failure(self, error: Exception) -> Failure:
        cause = self._broken(error, Exchange())
        if isinstance(cause, Broken):
            return cause.failure
        return Failure("bad_payload", "retry", str(cause), maybe_billed=True)


def as_a_whole(failure: Failure) -> Failure:
    """The failure of a whole batch: it does not mean that each of its rows is too long or blocked."""
    if failure.error_class in ("too_long", "blocked"):
        return replace(failure, error_class="bad_request")
    return failure


def status_in(body: Mapping[str, Any], *path: str) -> int:
    """The HTTP status that goes with the code at ``path`` in an error body."""
    inner: Any = body
    for step in path:
        inner = inner.get(step) if isinstance(inner, dict) else None
    return STATUS_OF_CODE.get(str(inner).lower(), 500)


EXPIRY = Failure("timeout", "fail", "the batch expired before this row was asked")
CANCELLATION = Failure("interrupted", "fail", "the batch was cancelled before this row was asked")


def never_came(progress: BatchStatus) -> Failure:
    """Why a batch that has ended has no result for a row."""
    word = progress.outcome.lower()
    if progress.failure is not None:
        return progress.failure
    if "expired" in word:
        return EXPIRY
    if "cancel" in word:
        return CANCELLATION
    text = f"the batch ended ({progress.outcome}) without this row"
    return Failure("bad_payload", "fail", text, maybe_billed=True)
