"""Anthropic's message batches: the rows in one request, the results as a stream of lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx2

from clash.providers.anthropic import Anthropic, headers_of
from clash.providers.batch import (
    CANCELLATION,
    EXPIRY,
    FEW_MINUTES_S,
    BatchProvider,
    BatchResult,
    BatchStatus,
    status_in,
)
from clash.providers.failures import hint
from clash.providers.payload import clean, decode, part, word

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from clash.providers.base import Request
    from clash.providers.batch import BatchRequest, Lot
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest


class AnthropicBatches(BatchProvider, Anthropic):
    """``anthropic/MODEL``, in batches."""

    most_rows = 100_000
    most_bytes = 240_000_000

    def _target(self, request: Request, wire_request: WireRequest, dialect: Dialect) -> str:  # noqa: ARG002 - there is one dialect
        # The version is a header of the whole batch, so rows that want another are another batch.
        version = (headers_of(wire_request, request) or {}).get("anthropic-version")
        return "/v1/messages" + (f" {version}" if version else "")

    async def _submit(self, lot: Lot, rows: Sequence[BatchRequest]) -> str:  # noqa: ARG002 - there is no place for our own name
        batches: Any = self._client().messages.batches
        batch = await batches.create(
            requests=[{"custom_id": row.key, "params": row.wire_request.body} for row in rows],
            extra_headers=headers_of(rows[0].wire_request, rows[0].request),
        )
        return str(batch.id)

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
            if size == lot.rows and batch.id not in lot.other_ids:
                oldest = str(batch.id)
        return oldest

    async def _poll(self, batch_id: str) -> BatchStatus:
        batches: Any = self._client().messages.batches
        answer = await batches.with_raw_response.retrieve(batch_id)
        batch = await _parse(answer)
        counts = batch.request_counts
        n_done = counts.succeeded + counts.errored + counts.canceled + counts.expired
        is_final = batch.processing_status == "ended"
        outcome = batch.processing_status
        if is_final and counts.expired:
            outcome = "ended, some expired"
        elif is_final and batch.cancel_initiated_at is not None:
            outcome = "ended, cancelled"
        return BatchStatus(is_final, outcome, n_done, wait_s=hint(dict(answer.headers)))

    async def _results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        batches: Any = self._client().messages.batches
        where = (await batches.retrieve(batch_id)).results_url
        if _server(where) == _server(self._account.base_url):
            async for row in await batches.results(batch_id):
                yield _result(row.to_dict(mode="json", warnings=False))  # of other types than said
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


def _server(url: str | None) -> tuple[str, str]:
    """Scheme and host: a key that goes to https does not go to http."""
    return urlsplit(url or "")[:2]


async def _parse(answer: Any) -> Any:  # noqa: ANN401 - the SDK's raw answer
    batch = answer.parse()
    return await batch if hasattr(batch, "__await__") else batch


def _result(line: Mapping[str, Any]) -> BatchResult:
    key = str(line.get("custom_id"))
    match part(line, "result", "type"):
        case "succeeded":
            return BatchResult(key, 200, _object(part(line, "result", "message")))
        case "expired":
            return BatchResult(key, failure=EXPIRY)
        case "canceled":
            return BatchResult(key, failure=CANCELLATION)
        case _:
            body = _object(part(line, "result", "error"))
            return BatchResult(
                key, status_in(body, "error", "type"), body, word(body.get("request_id"))
            )


def _object(value: object) -> dict[str, Any]:
    """A part of a result as a file can hold it; empty where it is no object."""
    return clean(value) if isinstance(value, dict) else {}
