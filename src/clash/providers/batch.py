"""Batch APIs: questions handed in together, answered within a day, at half the price.

What a vendor's own module adds to its live provider: how a batch is handed in, looked after, found
again and read. A row is written by the same dialect as a live request and read by the same one, so
that an answer is worth the same whichever way it came.
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
    from clash.providers.dialects.common import Dialect
    from clash.providers.ladder import Ladder, Sent

T = TypeVar("T")

LONGEST = 2 * 1024**3
"""Bytes of results that are read of one batch."""
_ROW_OVERHEAD = 300
"""Bytes of a row around its question."""
FEW_MINUTES_S = 600.0
"""How far the vendor's clock may be from ours."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question as a row of a batch.

    Attributes:
        key: what the vendor knows it by (``custom_id``); holds nothing of the question.
        target: where a live request would go; the rows of one batch share it.
        size: bytes that it takes in the batch, about.
    """

    key: str
    request: Request
    sent: Sent
    dialect: Dialect
    target: str
    size: int


@dataclass(frozen=True, slots=True)
class Lot:
    """Rows that are handed in as one batch, as far as the vendor is told.

    Attributes:
        mark: our own name of it, part of every key.
        rows: how many.
        began: when handing in began.
        known: the vendor's ids of our other batches.
    """

    mark: str
    run: str
    rows: int
    began: datetime
    known: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a batch is.

    Attributes:
        ended: nothing more will come of it.
        outcome: the vendor's word for how it is or how it ended.
        done: rows that are through, as far as the vendor tells.
        failure: why the batch as a whole came to nothing.
        wait_s: how long the vendor asks us to wait.
    """

    ended: bool
    outcome: str
    done: int = 0
    failure: Failure | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a row: an answer with a status, or the reason why it was never asked."""

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

    # -- what a vendor adds ---------------------------------------------------------------------

    @abstractmethod
    def _target(self, request: Request, sent: Sent, dialect: Dialect) -> str:
        """Where a live request would go, below the account's address."""

    @abstractmethod
    async def _submit(self, lot: Lot, rows: Sequence[Row]) -> str:
        """Hand in; returns the vendor's id."""

    @abstractmethod
    async def _find(self, lot: Lot) -> str | None:
        """The vendor's id of a batch whose handing in may or may not have come to its end."""

    @abstractmethod
    async def _poll(self, batch_id: str) -> Progress:
        """How far it is."""

    @abstractmethod
    def _results(self, batch_id: str) -> AsyncIterator[Result]:
        """Every row that there is, in any order."""

    @abstractmethod
    async def _cancel(self, batch_id: str) -> None:
        """Ask no more of its rows; those that are through can still be fetched."""

    # -- what the rest of clash calls -----------------------------------------------------------

    @property
    def ladder(self) -> Ladder:
        """What the model has been found to refuse."""
        return self._ladder

    @property
    def model(self) -> str:
        """The model, as the configuration names it."""
        return self._ref.model

    def row(self, request: Request, key: str = "") -> Row:
        """``request`` as a row.

        Raises:
            ProviderError: it holds what no text may hold.
        """
        dialect = self._dialect(request)
        sent = dialect.write(self._ref.name, request, self._ladder)
        target = self._target(request, sent, dialect)
        if request.options.headers:
            target += f" {json.dumps(request.options.headers, sort_keys=True)}"
        try:
            size = len(msgspec.json.encode(sent.body, enc_hook=str)) + _ROW_OVERHEAD
        except UnicodeEncodeError as error:
            text = f"the request holds characters that no text may hold ({error.reason})"
            raise self._error(Exchange(), Failure("bad_request", "fail", text)) from None
        return Row(key, request, sent, dialect, target, size)

    async def submit(self, lot: Lot, rows: Sequence[Row]) -> str:
        """Hand in a batch.

        Returns:
            The vendor's id of it.

        Raises:
            ProviderError: it was not handed in; ``maybe_billed`` where it may have been.
        """
        return await self._through(lambda: self._submit(lot, rows))

    async def find(self, lot: Lot) -> str | None:
        """The vendor's id of a batch that was perhaps handed in; null where it was not.

        Raises:
            ProviderError: the vendor could not be asked.
        """
        return await self._through(lambda: self._find(lot))

    async def poll(self, batch_id: str) -> Progress:
        """How far a batch is.

        Raises:
            ProviderError: the vendor could not be asked.
        """
        return await self._through(lambda: self._poll(batch_id))

    async def fetch(self, batch_id: str, take: Callable[[Result], None]) -> None:
        """Hand every row of a batch that has ended to ``take``.

        Raises:
            ProviderError: they could not be fetched, or not all.
        """

        async def every() -> None:
            async for result in self._results(batch_id):
                take(result)

        await self._through(every)

    async def cancel(self, batch_id: str) -> None:
        """Have the vendor ask no more of a batch's rows.

        Raises:
            ProviderError: the vendor could not be told.
        """
        await self._through(lambda: self._cancel(batch_id))

    def read(self, row: Row, result: Result) -> Reply:
        """The reply in a row, as it would have been read live.

        Raises:
            ProviderError: there is no usable answer in it.
        """
        options = row.request.options
        exchange = Exchange(
            url=self._account.base_url.rstrip("/") + row.target.partition(" ")[0],
            headers=options.headers,
            body=row.sent.body,
            status=result.status,
            answer_headers={"x-request-id": result.request_id} if result.request_id else {},
            data=dict(result.data),
        )
        if result.failure is not None:
            failure = self._degraded(result.failure, exchange, row.sent, row.request)
            raise self._error(exchange, failure)
        if result.status >= 400:
            failure = from_answer(result.status, {}, result.data)
            failure = self._degraded(failure, exchange, row.sent, row.request)
            raise self._error(exchange, failure)
        try:
            answer, data = self._read(exchange, row.dialect)
        except Broken as broken:
            raise self._error(exchange, broken.failure) from None
        if isinstance(answer, Failure):
            failure = self._degraded(answer, exchange, row.sent, row.request)
            raise self._error(exchange, failure)
        return self._reply(exchange, row.sent, answer, data)

    # -- the line -------------------------------------------------------------------------------

    async def _through(self, call: Callable[[], Awaitable[T]]) -> T:
        """One call of the batch API, and what went wrong with it in our words."""
        exchange = Exchange(url=self._account.base_url)
        try:
            with anyio.fail_after(3 * self._limits.timeout_s):
                return await call()
        except TimeoutError:
            raise self._error(exchange, self._late()) from None
        except self.raises as error:
            raise self._error(exchange, self._meant(error)) from None
        except HTTPX_ERRORS as error:
            raise self._error(exchange, self._lost(error)) from None
        except ValueError as error:
            text = f"the answer of the batch API cannot be read: {error}"
            failure = Failure("bad_payload", "retry", text, maybe_billed=True)
            raise self._error(exchange, failure) from None

    def _meant(self, error: Exception) -> Failure:
        answer = getattr(error, "response", None)
        status = getattr(answer, "status_code", None)
        if not isinstance(status, int):
            return self._lost(error)
        body = getattr(error, "body", None) or getattr(error, "details", None) or str(error)
        headers = {str(k).lower(): str(v) for k, v in dict(answer.headers).items()}  # type: ignore[union-attr] # it has a status
        return as_a_whole(from_answer(status, headers, body))

    def _lost(self, error: Exception) -> Failure:
        found = self._broken(error, Exchange())
        if isinstance(found, Broken):
            return found.failure
        return Failure("bad_payload", "retry", str(found), maybe_billed=True)


def as_a_whole(failure: Failure) -> Failure:
    """Why no row of a batch was asked, which says of none that it cannot be."""
    if failure.error_class in ("too_long", "blocked"):
        return replace(failure, error_class="bad_request")
    return failure


def status_in(body: Mapping[str, Any], *path: str) -> int:
    """The status that an error body would have come under."""
    inner: Any = body
    for step in path:
        inner = inner.get(step) if isinstance(inner, dict) else None
    return STATUS_OF_CODE.get(str(inner).lower(), 500)


EXPIRED = Failure("timeout", "fail", "the batch expired before this row was asked")
CANCELLED = Failure("interrupted", "fail", "the batch was cancelled before this row was asked")


def never_came(progress: Progress) -> Failure:
    """Why a batch that has ended has nothing of a row."""
    word = progress.outcome.lower()
    if progress.failure is not None:
        return progress.failure
    if "expired" in word:
        return EXPIRED
    if "cancel" in word:
        return CANCELLED
    text = f"the batch ended ({progress.outcome}) without this row"
    return Failure("bad_payload", "fail", text, maybe_billed=True)
