"""Batches on a cluster of one's own: Ray Data feeds engines of vLLM, as a Ray job.

A batch is a folder that this machine and the head node of the cluster share. The job that answers
it is started, looked after and stopped through Ray's REST API for jobs, so it outlives this process,
and Ray is needed on the cluster alone. Whoever can write to the folder can forge answers, which are
read like those of any server, and can change the program that the cluster runs.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
import msgspec

from clash.errors import ConfigError, RunFolderError
from clash.files import run_files
from clash.providers import vllm_job
from clash.providers.accounts import engine_destination
from clash.providers.batch import LONGEST, BatchProvider, BatchResult, BatchStatus
from clash.providers.dialects.chat import Chat
from clash.providers.failures import Failure
from clash.providers.network import Broken, Exchange
from clash.providers.payload import MAX_BYTES, NotPayload, count, decode, word
from clash.secrets.destinations import is_confirmed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence

    import httpx2

    from clash.config import Engine, Limits, ModelRef
    from clash.providers.accounts import Account
    from clash.providers.base import Reply, Request
    from clash.providers.batch import BatchRequest, Lot
    from clash.providers.dialects.protocol import Dialect
    from clash.providers.ladder import WireRequest
    from clash.providers.sdk import Kind

T = TypeVar("T")

_DIALECT = Chat("compatible")
_GOING_ON = frozenset({"PENDING", "RUNNING"})
_BROKEN = frozenset({"FAILED", "LOST"})
"""Ray's word for a job that ended badly, and ours for one that the cluster no longer knows."""
_REQUEST_ERRORS = ("ValueError", "TypeError", "VLLMValidationError", "VLLMClientError")
"""Exceptions of vLLM that are about the question; its server answers them with status 400."""
_TAIL = 2_000
"""Characters kept of a job's log."""
MOST_RESTARTS = 10


class JobsRefusal(Exception):
    """Ray's API for jobs answered with an error status."""

    def __init__(self, response: httpx2.Response) -> None:
        super().__init__(f"status {response.status_code}")
        self.response = response
        self.body = response.text[-_TAIL:]


class VllmBatches(BatchProvider):
    """``vllm/MODEL``, in batches; there is no other way to ask it."""

    raises: tuple[type[Exception], ...] = (JobsRefusal,)
    meanings: Mapping[str, Kind] = {"JobsRefusal": "answer"}
    longest = MAX_BYTES
    most_rows = 50_000
    most_bytes = 500_000_000

    def __init__(self, ref: ModelRef, account: Account, limits: Limits) -> None:
        super().__init__(ref, account, limits)
        self._engine = engine_of(ref)

    def _dialect(self, request: Request) -> Dialect:  # noqa: ARG002 - one dialect for all
        return _DIALECT

    def _target(self, request: Request, wire_request: WireRequest, dialect: Dialect) -> str:  # noqa: ARG002 - there is one dialect
        """Rows of one batch share their template's settings and the names of their parameters.

        Arrow gives all rows the same columns, and vLLM would take a missing value for one of null.
        """
        _, sampling, template = question_of(wire_request.body)
        shape = {"parameters": sorted(sampling), "template": template}
        return f"/api/jobs/ {msgspec.json.encode(shape, order='sorted').decode()}"

    async def _ask(
        self,
        exchange: Exchange,  # noqa: ARG002 - nothing is sent
        wire_request: WireRequest,  # noqa: ARG002
        request: Request,  # noqa: ARG002
        dialect: Dialect,  # noqa: ARG002
    ) -> None:
        text = "models on a cluster (vllm/) are asked in batches only: --batch"
        raise Broken(Failure("unsupported", "stop", text))

    # -- the batch API ------------------------------------------------------------------------

    async def _submit(self, lot: Lot, rows: Sequence[BatchRequest]) -> str:
        batch_id = _id(lot)
        await anyio.to_thread.run_sync(self._write, self._folder(batch_id), rows)
        await self._start(batch_id, 1)
        return batch_id

    async def _find(self, lot: Lot) -> str | None:
        return _id(lot) if await self._job(_id(lot)) is not None else None

    async def _poll(self, batch_id: str) -> BatchStatus:
        folder = self._folder(batch_id)
        starts = await _read(_starts, folder)
        job = await self._job(_job_id(batch_id, len(starts) + 1))
        state = "LOST" if job is None else word(job.get("status")) or "UNKNOWN"
        n_done = await _read(_n_lines, folder / "answers.jsonl")
        if state in _GOING_ON:
            return BatchStatus(is_final=False, outcome=state.lower(), n_done=n_done)
        has_progress = n_done > (starts or [0])[-1] and len(starts) < MOST_RESTARTS
        if state in _BROKEN and has_progress:
            # It got further than the one before it, so the next one may get to the end.
            await _read(_note_start, folder, [*starts, n_done])
            await self._start(batch_id, len(starts) + 2)
            return BatchStatus(is_final=False, outcome="restarted", n_done=n_done)
        failure = _rejection(job) if state in _BROKEN and not n_done else None
        outcome = "cancelled" if state == "STOPPED" else state.lower()
        is_final = state in {*_BROKEN, "STOPPED", "SUCCEEDED"}
        return BatchStatus(is_final, outcome, n_done, failure)

    async def _results(self, batch_id: str) -> AsyncIterator[BatchResult]:
        for result in await _read(_results_in, self._folder(batch_id) / "answers.jsonl"):
            yield result

    async def _cancel(self, batch_id: str) -> None:
        starts = await _read(_starts, self._folder(batch_id))
        job_id = _job_id(batch_id, len(starts) + 1)
        job = await self._job(job_id)
        if job is not None and job.get("status") in _GOING_ON:
            await self._request("POST", f"/api/jobs/{job_id}/stop")

    def read(self, row: BatchRequest, result: BatchResult) -> Reply:
        """The reply in a line of answers. See :meth:`BatchProvider.read`.

        Ray does not pass on why the engine stopped: an answer that is as long as it may be was cut.
        """
        if result.failure is None and result.status == 200:
            most = self._engine.arguments.get("max_model_len")
            data = _completion(result.data, row.wire_request.body, count(most))
            result = replace(result, data=data)
        return super().read(row, result)

    # -- jobs ---------------------------------------------------------------------------------

    async def _start(self, batch_id: str, attempt: int) -> None:
        script = shlex.quote(str(self._folder(batch_id) / "job.py"))
        folder = shlex.quote(str(self._folder(batch_id)))
        job = {
            "entrypoint": f"python {script} {folder}",
            "submission_id": _job_id(batch_id, attempt),
            "metadata": {"clash_batch": batch_id},
        }
        await self._request("POST", "/api/jobs/", job)

    async def _job(self, job_id: str) -> dict[str, Any] | None:
        """What the cluster says of a job; null where it does not know it."""
        try:
            return await self._request("GET", f"/api/jobs/{job_id}")
        except JobsRefusal as refusal:
            if refusal.response.status_code == 404:
                return None
            raise

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        key = self._account.key
        answer = await self._clients.get().request(
            method,
            f"{self._account.base_url}{path}",
            json=body,
            headers={"authorization": f"Bearer {key}"} if key else None,
        )
        if not answer.is_success:
            raise JobsRefusal(answer)
        return decode(answer.content)

    # -- the folder ---------------------------------------------------------------------------

    def _folder(self, batch_id: str) -> Path:
        return Path(self._engine.folder).expanduser().absolute() / batch_id

    def _write(self, folder: Path, rows: Sequence[BatchRequest]) -> None:
        """What the job reads.

        Raises:
            ProviderError: the folder cannot be written.
        """
        _, _, template = question_of(rows[0].wire_request.body)
        settings = self._engine.model_dump() | {
            "source": self._engine.source or self._ref.name,
            "template": template,
        }
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "job.py").write_bytes(Path(vllm_job.__file__).read_bytes())
            (folder / "settings.json").write_bytes(msgspec.json.encode(settings))
            with (folder / "rows.jsonl").open("wb") as file:
                file.writelines(_lines(rows))
        except OSError as error:
            text = f"{error.filename or folder}: cannot be written ({error.strerror or error})"
            raise self._error(Exchange(), Failure("bad_request", "stop", text)) from None


def check_engine(ref: ModelRef, environ: Mapping[str, str]) -> None:
    """Refuse a model whose batches could not be run, or whose engine a stranger's file describes.

    Arguments of the engine name code that runs on the cluster, and its folder is written to.

    Raises:
        ConfigError: the engine is missing, or it was set by a file that nobody named.
    """
    engine_of(ref)
    where = engine_destination(ref, environ)
    if where is not None and ref.source in ("auto", "run") and not is_confirmed(where, environ):
        raise ConfigError(
            f"{ref.model} has an engine that was set by a file that you did not name",
            field="engine",
            hint="name the file (--panel FILE or --config FILE); for this command only: "
            f"--trust-host {where.host}",
        )


def engine_of(ref: ModelRef) -> Engine:
    """How batches of the model run.

    Raises:
        ConfigError: nothing says so.
    """
    if ref.engine is None:
        raise ConfigError(
            f"{ref.model} runs on a Ray cluster, and its engine is missing",
            field="engine",
            hint="engine: {folder: /shared/clash}, which this machine and the head node both see",
        )
    return ref.engine


def question_of(
    body: Mapping[str, Any],
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """A chat request as vLLM's engine takes it.

    Returns:
        The messages, the sampling parameters, and the settings of the chat template.
    """
    sampling = dict(body)
    sampling.pop("model", None)
    messages = sampling.pop("messages")
    template = dict(sampling.pop("chat_template_kwargs", None) or {})
    if (effort := sampling.pop("reasoning_effort", None)) is not None:
        template["reasoning_effort"] = effort
    if (cap := sampling.pop("max_completion_tokens", None)) is not None:
        sampling["max_tokens"] = cap
    match sampling.pop("response_format", None):
        case {"json_schema": {"schema": schema}}:
            # As text, since Arrow would give the schemas of all rows the same keys.
            sampling["structured_outputs"] = {"json": msgspec.json.encode(schema).decode()}
        case {"type": "json_object"}:
            sampling["structured_outputs"] = {"json_object": True}
        case _:
            pass
    return messages, sampling, template


def _id(lot: Lot) -> str:
    return f"clash-{lot.mark}"


def _job_id(batch_id: str, attempt: int) -> str:
    return batch_id if attempt == 1 else f"{batch_id}-{attempt}"


def _lines(rows: Iterable[BatchRequest]) -> Iterator[bytes]:
    for row in rows:
        messages, sampling, _ = question_of(row.wire_request.body)
        question = {"messages": messages, "sampling_params": sampling}
        yield (
            msgspec.json.encode({"custom_id": row.key, "question": question}, enc_hook=str) + b"\n"
        )


def _rejection(job: Mapping[str, Any] | None) -> Failure:
    """Why a job ended without a single answer."""
    if job is None:
        return Failure("server", "fail", "the Ray cluster no longer knows the job of this batch")
    log = (word(job.get("message")) or "Ray does not say why").strip()[-_TAIL:]
    return Failure("server", "fail", f"the Ray job of this batch failed: {log}")


# -- what the job wrote, which is read like the answer of any server ------------------------------


async def _read(read: Callable[..., T], *arguments: object) -> T:
    """Read or note something in the folder, beside the event loop.

    Raises:
        NotPayload: the folder or a file in it is not what it should be.
    """
    try:
        return await anyio.to_thread.run_sync(partial(read, *arguments))
    except (RunFolderError, OSError) as error:
        raise NotPayload(str(error)) from None


def _lines_in(path: Path) -> Iterator[bytes]:
    """The lines of a file, none where it is missing; of a huge one the beginning."""
    try:
        file = run_files.open_to_read(path)
    except FileNotFoundError:
        return
    with file:
        size = 0
        for line in iter(partial(file.readline, MAX_BYTES + 1), b""):
            size += len(line)
            if size > LONGEST:
                return
            yield line


def _n_lines(path: Path) -> int:
    return sum(line.endswith(b"\n") for line in _lines_in(path))


def _results_in(path: Path) -> list[BatchResult]:
    """The lines that can be read; a row without one counts as failed."""
    results = []
    for line in _lines_in(path):
        try:
            results.append(_result(decode(line)))
        except NotPayload:
            continue  # a kill cut it short, or it is none of the job's
    return results


def _result(line: Mapping[str, Any]) -> BatchResult:
    key, error = str(line.get("custom_id")), line.get("error")
    if error is None:
        return BatchResult(key, data=line)
    text = str(error)[:_TAIL]
    status = 400 if text.partition(":")[0] in _REQUEST_ERRORS else 500
    return BatchResult(key, status, {"error": {"code": status, "message": text}})


def _completion(
    line: Mapping[str, Any], body: Mapping[str, Any], longest: int | None
) -> dict[str, Any]:
    """A line of answers as a chat completion; one without a text has no choices."""
    text = word(line.get("text"))
    if text is None:
        return {"choices": []}
    n_in, n_out = count(line.get("input_tokens")), count(line.get("output_tokens"))
    cap = count(body.get("max_tokens") or body.get("max_completion_tokens"))
    is_cut = n_out is not None and (
        (cap is not None and n_out >= cap)
        or (longest is not None and n_in is not None and n_in + n_out >= longest)
    )
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "length" if is_cut else "stop",
    }
    return {"choices": [choice], "usage": {"prompt_tokens": n_in, "completion_tokens": n_out}}


def _starts(folder: Path) -> list[int]:
    """How many rows were answered each time the job was started again."""
    try:
        value = json.loads(run_files.read(folder / "restarts.json", most=10_000))
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    counts = [count(number) for number in value] if isinstance(value, list) else []
    return [number for number in counts if number is not None][:MOST_RESTARTS]


def _note_start(folder: Path, starts: Sequence[int]) -> None:
    run_files.replace(folder / "restarts.json", json.dumps(starts).encode())
