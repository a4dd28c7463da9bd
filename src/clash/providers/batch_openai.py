"""OpenAI's batches: a file of requests in, a file of answers and one of errors out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from clash.providers.batch import (
    CANCELLATION,
    EXPIRY,
    FEW_MINUTES_S,
    BatchProvider,
    BatchResult,
    BatchStatus,
    as_a_whole,
)
from clash.providers.dialects.responses import Responses
from clash.providers.failures import Failure, from_answer, hint
from clash.providers.openai import OpenAI
from clash.providers.payload import decode, part, word

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from clash.providers.base import Request
    from clash.providers.batch import BatchRequest, Lot
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest

_FINAL_STATES = frozenset({"completed", "failed", "expired", "cancelled"})
_GOING_ON = frozenset({"validating", "in_progress"})
"""What can be cancelled: what is being cancelled, or its files written, ends by itself."""
_RETENTION = {"anchor": "created_at", "seconds": 30 * 24 * 3600}
"""Prompts and answers do not stay with the vendor for ever."""
_NEVER_ASKED = {"batch_expired": EXPIRY, "batch_cancelled": CANCELLATION}


class OpenAIBatches(BatchProvider, OpenAI):
    """``openai/MODEL``, in batches."""

    most_rows = 50_000
    most_bytes = 190_000_000

    def _target(self, request: Request, wire_request: WireRequest, dialect: Dialect) -> str:  # noqa: ARG002 - by the dialect alone
        return "/responses" if isinstance(dialect, Responses) else "/chat/completions"

    async def _submit(self, lot: Lot, rows: Sequence[BatchRequest]) -> str:
        client: Any = self._client()
        path = "/v1" + rows[0].target.partition(" ")[0]
        headers = rows[0].request.options.headers or None
        file = await client.files.create(
            file=(f"clash-{lot.mark}.jsonl", _lines(rows, path)),
            purpose="batch",
            expires_after=_RETENTION,
            extra_headers=headers,
        )
        batch = await client.batches.create(
            input_file_id=file.id,
            endpoint=path,
            completion_window="24h",
            metadata={"clash_run": lot.run[:512], "clash_batch": lot.mark},
            output_expires_after=_RETENTION,
            extra_headers=headers,
        )
        return str(batch.id)

    async def _find(self, lot: Lot) -> str | None:
        client: Any = self._client()
        async for batch in client.batches.list(limit=100):
            if (batch.metadata or {}).get("clash_batch") == lot.mark:
                return str(batch.id)
            if batch.created_at < lot.began.timestamp() - FEW_MINUTES_S:
                return None  # newest first: the rest is older than ours can be
        return None

    async def _poll(self, batch_id: str) -> BatchStatus:
        client: Any = self._client()
        answer = await client.batches.with_raw_response.retrieve(batch_id)
        batch = answer.parse()
        counts = batch.request_counts
        return BatchStatus(
            is_final=batch.status in _FINAL_STATES,
            outcome=batch.status,
            n_done=0 if counts is None else counts.completed + counts.failed,
            failure=_rejection(batch) if batch.status == "failed" else None,
            wait_s=hint(dict(answer.headers)),
        )

    async def _results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        client: Any = self._client()
        batch = await client.batches.retrieve(batch_id)
        # A batch that expired or was cancelled has both files too: the rows that had ended, and
        # why the others had not.
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            async with client.files.with_streaming_response.content(file_id) as answer:
                async for line in answer.iter_lines():
                    if line.strip():
                        yield _result(decode(line.encode()))

    async def _cancel(self, batch_id: str) -> None:
        client: Any = self._client()
        if (await client.batches.retrieve(batch_id)).status in _GOING_ON:
            await client.batches.cancel(batch_id)


def _lines(rows: Sequence[BatchRequest], path: str) -> bytes:
    return b"\n".join(
        msgspec.json.encode(
            {"custom_id": row.key, "method": "POST", "url": path, "body": row.wire_request.body},
            enc_hook=str,
        )
        for row in rows
    )


def _result(line: Mapping[str, Any]) -> BatchResult:
    key = str(line.get("custom_id"))
    answer = line.get("response")
    if isinstance(answer, dict) and isinstance(answer.get("body"), dict):
        status = answer.get("status_code")
        request_id = word(answer.get("request_id"))
        return BatchResult(
            key, status if isinstance(status, int) else 200, answer["body"], request_id
        )
    code = str(part(line, "error", "code"))
    text = str(part(line, "error", "message") or "the batch has no answer for this row")
    return BatchResult(key, failure=_NEVER_ASKED.get(code, Failure("server", "fail", text)))


def _rejection(batch: Any) -> Failure:  # noqa: ANN401 - the SDK's Batch
    """Why a batch was not even begun: OpenAI checks a file as a whole."""
    errors = getattr(batch.errors, "data", None) or []
    first = errors[0] if errors else None
    if first is None:
        return Failure("server", "fail", "the batch failed, and OpenAI does not say why")
    text = f"the batch was refused: {first.message}"
    if first.line is not None:
        text += f" (line {first.line})"
    if "enqueued" in str(first.message).lower():
        return Failure("rate_limit", "fail", text)
    error = {"code": first.code, "message": text, "param": first.param}
    return as_a_whole(from_answer(400, {}, {"error": error}))
