"""Google's batches of ``generateContent``, with the rows in the request and in the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.genai import types

from clash.providers.batch import (
    CANCELLATION,
    FEW_MINUTES_S,
    BatchProvider,
    BatchResult,
    BatchStatus,
)
from clash.providers.failures import Failure, from_answer
from clash.providers.google import Google
from clash.providers.payload import clean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from clash.config import Limits, ModelRef
    from clash.providers.accounts import Account
    from clash.providers.base import Request
    from clash.providers.batch import BatchRequest, Lot
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest

_FINAL_STATES = frozenset({"SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED"})
_KEY = "key"
_RPC_CANCELLED = 1
_STATUS_OF_RPC: Mapping[int, int] = {
    3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401,
}  # fmt: skip
"""A row's error has a code of google.rpc, where a live answer has an HTTP status."""


class GoogleBatches(BatchProvider, Google):
    """``google/MODEL``, in batches."""

    most_rows = 50_000
    most_bytes = 18_000_000

    def __init__(self, ref: ModelRef, account: Account, limits: Limits) -> None:
        super().__init__(ref, account, limits)
        # Batches are a matter of v1beta, whatever single questions are asked by.
        self._ladder.refuse("stable_api")

    @property
    def _at(self) -> dict[str, Any]:
        version = self._ref.options.api_version or "v1beta"
        return {"http_options": types.HttpOptions(api_version=version)}

    def _target(self, request: Request, wire_request: WireRequest, dialect: Dialect) -> str:  # noqa: ARG002 - there is one dialect
        return f"/{wire_request.body['api_version']}/models/{wire_request.body['model']}:generateContent"

    async def _submit(self, lot: Lot, rows: Sequence[BatchRequest]) -> str:
        first = rows[0]
        config: dict[str, Any] = {
            "display_name": _name(lot),
            "http_options": types.HttpOptions(
                api_version=first.wire_request.body["api_version"],
                headers=dict(first.request.options.headers) or None,
            ),
        }
        batches: Any = self._client().aio.batches
        job = await batches.create(
            model=first.wire_request.body["model"],
            src=[
                {
                    "contents": row.wire_request.body["contents"],
                    "config": row.wire_request.body["config"],
                    "metadata": {_KEY: row.key},
                }
                for row in rows
            ],
            config=config,
        )
        return str(job.name)

    async def _find(self, lot: Lot) -> str | None:
        batches: Any = self._client().aio.batches
        async for job in await batches.list(config={"page_size": 100, **self._at}):
            if job.display_name == _name(lot):
                return str(job.name)
            created_at = job.create_time
            if (
                created_at is not None
                and created_at.timestamp() < lot.began.timestamp() - FEW_MINUTES_S
            ):
                return None  # newest first
        return None

    async def _poll(self, batch_id: str) -> BatchStatus:
        job = await self._job(batch_id)
        state = _state(job)
        n_done = sum(1 for _ in _rows(job)) if state in _FINAL_STATES else 0
        failure = _rejection(job) if state == "FAILED" and not n_done else None
        return BatchStatus(state in _FINAL_STATES, state, n_done, failure)

    async def _results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        for row in _rows(await self._job(batch_id)):
            yield _result(row)

    async def _cancel(self, batch_id: str) -> None:
        if _state(await self._job(batch_id)) not in _FINAL_STATES:
            batches: Any = self._client().aio.batches
            await batches.cancel(name=batch_id, config=self._at)

    async def _job(self, batch_id: str) -> Any:  # noqa: ANN401 - the SDK's BatchJob
        batches: Any = self._client().aio.batches
        return await batches.get(name=batch_id, config=self._at)


def _name(lot: Lot) -> str:
    return f"clash-{lot.mark}"


def _state(job: Any) -> str:  # noqa: ANN401 - the SDK's BatchJob
    name = getattr(job.state, "value", job.state) or "UNSPECIFIED"
    return str(name).removeprefix("JOB_STATE_").removeprefix("BATCH_STATE_")


def _rows(job: Any) -> Sequence[Any]:  # noqa: ANN401 - the SDK's BatchJob
    return (job.dest and job.dest.inlined_responses) or []


def _result(row: Any) -> BatchResult:  # noqa: ANN401 - the SDK's InlinedResponse
    key = str((row.metadata or {}).get(_KEY))
    if row.response is not None:
        data = row.response.model_dump(mode="json", by_alias=True, exclude_none=True)
        data.pop("sdkHttpResponse", None)
        return BatchResult(key, 200, clean(data))
    error = row.error
    code = getattr(error, "code", None) or 13
    if code == _RPC_CANCELLED:
        return BatchResult(key, failure=CANCELLATION)
    status = _STATUS_OF_RPC.get(code, code if code >= 400 else 500)
    text = getattr(error, "message", None) or "the batch has no answer for this row"
    return BatchResult(key, status, {"error": {"code": status, "message": text}})


def _rejection(job: Any) -> Failure:  # noqa: ANN401 - the SDK's BatchJob
    if job.error is None:
        return Failure("server", "fail", "the batch failed, and Google does not say why")
    status = _STATUS_OF_RPC.get(job.error.code or 13, 500)
    text = f"the batch failed: {job.error.message}"
    return from_answer(status, {}, {"error": {"code": status, "message": text}})
