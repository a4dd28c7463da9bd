"""Anthropic's message batches: the rows in one request, the results as a stream of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from clash.providers.anthropic import Anthropic, headers_of
from clash.providers.batch import (
    CANCELLED,
    EXPIRED,
    FEW_MINUTES_S,
    BatchProvider,
    Progress,
    Result,
    status_in,
)
from clash.providers.failures import hint
from clash.providers.payload import clean, decode, word

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from clash.providers.base import Request
    from clash.providers.batch import Lot, Row
    from clash.providers.dialects.common import Dialect
    from clash.providers.ladder import Sent


class AnthropicBatches(BatchProvider, Anthropic):
    """``anthropic/MODEL``, in batches."""

    most_rows = 100_000
    most_bytes = 240_000_000

    def _target(self, request: Request, sent: Sent, dialect: Dialect) -> str:  # noqa: ARG002 - there is one dialect
        # The version is a header of the whole batch, so rows that want another are another batch.
        version = (headers_of(sent, request) or {}).get("anthropic-version")
        return "/v1/messages" + (f" {version}" if version else "")

    async def _submit(self, lot: Lot, rows: Sequence[Row]) -> str:  # noqa: ARG002 - there is no place for our own name
        batches: Any = self._client().messages.batches
        made = await batches.create(
            requests=[{"custom_id": row.key, "params": row.sent.body} for row in rows],
            extra_headers=headers_of(rows[0].sent, rows[0].request),
        )
        return str(made.id)

    async def _find(self, lot: Lot) -> str | None:
        """A batch of that size and of after that moment which no other of ours is.

        Anthropic keeps no name for us, and tells the rows of a batch only once it has ended. Were
        it a stranger's, none of our keys would be in it, and our rows would be asked again later.
        """
        batches: Any = self._client().messages.batches
        oldest = None
        async for batch in batches.list(limit=100):
            if batch.created_at.timestamp() < lot.began.timestamp() - FEW_MINUTES_S:
                break  # newest first
            counts = batch.request_counts
            size = sum(
                getattr(counts, name)
                for name in ("processing", "succeeded", "errored", "canceled", "expired")
            )
            if size == lot.rows and batch.id not in lot.known:
                oldest = str(batch.id)
        return oldest

    async def _poll(self, batch_id: str) -> Progress:
        batches: Any = self._client().messages.batches
        answer = await batches.with_raw_response.retrieve(batch_id)
        batch = await _parsed(answer)
        counts = batch.request_counts
        done = counts.succeeded + counts.errored + counts.canceled + counts.expired
        ended = batch.processing_status == "ended"
        outcome = batch.processing_status
        if ended and counts.expired:
            outcome = "ended, some expired"
        elif ended and batch.cancel_initiated_at is not None:
            outcome = "ended, cancelled"
        return Progress(ended, outcome, done, wait_s=hint(dict(answer.headers)))

    async def _results(self, batch_id: str) -> AsyncIterator[Result]:
        batches: Any = self._client().messages.batches
        where = (await batches.retrieve(batch_id)).results_url
        if _host(where) == _host(self._account.base_url):
            async for row in await batches.results(batch_id):
                yield _result(row.to_dict(mode="json"))
            return
        # Behind a gateway the vendor names its own address, to which this key must not go.
        path = f"/v1/messages/batches/{batch_id}/results"
        answer = await self._client().get(path, cast_to=httpx2.Response)
        for line in answer.content.splitlines():
            if line.strip():
                yield _result(decode(line))

    async def _cancel(self, batch_id: str) -> None:
        batches: Any = self._client().messages.batches
        if (await batches.retrieve(batch_id)).processing_status == "in_progress":
            await batches.cancel(batch_id)


def _host(url: str | None) -> str:
    return urlsplit(url or "").netloc


async def _parsed(answer: Any) -> Any:  # noqa: ANN401 - the SDK's raw answer
    found = answer.parse()
    return await found if hasattr(found, "__await__") else found


def _result(line: Mapping[str, Any]) -> Result:
    key, found = str(line.get("custom_id")), line.get("result") or {}
    match found.get("type"):
        case "succeeded":
            return Result(key, 200, clean(found.get("message") or {}))
        case "expired":
            return Result(key, failure=EXPIRED)
        case "canceled":
            return Result(key, failure=CANCELLED)
        case _:
            body = clean(found.get("error") or {})
            return Result(key, status_in(body, "error", "type"), body, word(body.get("request_id")))
