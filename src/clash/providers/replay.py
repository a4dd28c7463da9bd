"""Answers from an earlier run, so that the run can be repeated offline.

``replay/PROVIDER/MODEL`` answers what ``PROVIDER/MODEL`` answered to the very same question: same
text, options and cap, by the hash in ``calls.jsonl``. Failures are replayed too, since a verdict
rests on them as much as on answers.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import msgspec

from clash.errors import ConfigError, ProviderError
from clash.files import run_files
from clash.providers.base import Reply
from clash.records import Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clash.config import ModelRef
    from clash.errors import ErrorClass
    from clash.providers.base import Request

VARIABLE = "CLASH_REPLAY"


class _Counts(msgspec.Struct):
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class _Call(msgspec.Struct):
    """The part of a line of ``calls.jsonl`` that a replay needs."""

    call_id: str
    attempt: int
    item_id: str
    request_hash: str
    outcome: str
    judge: str | None = None
    text: str | None = None
    finish_reason: str | None = None
    error_class: str | None = None
    error: str | None = None
    served_model: str | None = None
    structured: str | None = None
    tokens: _Counts | None = None


_Key = tuple[str, str | None, str | None]


class Replay:
    """The answers of one run.

    Args:
        ref: its name is the model whose answers are wanted, its ``base_url`` the run folder.
        environ: ``CLASH_REPLAY`` is the run folder where ``ref`` names none.

    Raises:
        ConfigError: no run folder is named, or it has no ``calls.jsonl``.
    """

    offline = True

    def __init__(self, ref: ModelRef, environ: Mapping[str, str]) -> None:
        self._model = ref.name
        self._path = calls_file(ref, environ)
        self.account = f"replay of {self._path.parent.name}"
        self._answers: dict[_Key, deque[_Call]] | None = None
        self._reading = anyio.Lock()

    async def complete(self, request: Request) -> Reply:
        """Answer as the run was answered.

        Raises:
            ProviderError: the run has no such question (``replay_miss``), or it failed there.
        """
        answers = await self._read()
        request_hash = request.hash(self._model)
        call = _pick(answers, request_hash, request)
        if call is None:
            raise ProviderError(
                f"{self._path} has no answer of {self._model} to this question ({request_hash[:12]}):"
                " the prompt, an option or a template differs",
                error_class="replay_miss",
                action="fail",
            )
        if call.outcome == "error":
            raise ProviderError(
                f"failed in the replayed run: {call.error or call.error_class}",
                error_class=_class_of(call),
                action="fail",
                request={"replayed": call.call_id},
            )
        return _reply(call)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _read(self) -> dict[_Key, deque[_Call]]:
        async with self._reading:
            if self._answers is None:
                self._answers = await anyio.to_thread.run_sync(_index, self._path)
            return self._answers


def calls_file(ref: ModelRef, environ: Mapping[str, str]) -> Path:
    """The file that a replay is answered from.

    Raises:
        ConfigError: no run folder is named, or it has no ``calls.jsonl``.
    """
    where = (ref.base_url or environ.get(VARIABLE, "")).removeprefix("file://")
    if not where:
        raise ConfigError(
            f"{ref.model} does not say which run to replay",
            field="base_url",
            hint=f"base_url: runs/RUN-ID (or set {VARIABLE})",
        )
    path = Path(where)
    path = path / "calls.jsonl" if path.is_dir() else path
    if not run_files.is_file(path):
        raise ConfigError("there is no run to replay", path=path, hint="name a run folder")
    return path


def _index(path: Path) -> dict[_Key, deque[_Call]]:
    """The last attempt of every call, by question, item and judge; and by question alone."""
    last: dict[str, _Call] = {}
    for call in _lines(path):
        latest = last.get(call.call_id)
        if latest is None or latest.attempt <= call.attempt:
            last[call.call_id] = call
    answers: dict[_Key, deque[_Call]] = {}
    for call in last.values():
        for key in _keys(call.request_hash, call.item_id, call.judge):
            answers.setdefault(key, deque()).append(call)
    return answers


def _lines(path: Path) -> Iterator[_Call]:
    decode = msgspec.json.Decoder(_Call).decode
    for number, line in enumerate(run_files.lines(path), start=1):
        try:
            yield decode(line)
        except msgspec.MsgspecError as error:
            if not line.endswith(b"\n"):
                return  # torn by a crash in the middle of the write
            raise ConfigError(
                f"is not a record of a call: {error}", path=path, line=number
            ) from None


def _keys(request_hash: str, item: str | None, judge: str | None) -> tuple[_Key, ...]:
    return (request_hash, item, judge), (request_hash, item, None), (request_hash, None, None)


def _pick(
    answers: Mapping[_Key, deque[_Call]], request_hash: str, request: Request
) -> _Call | None:
    """The answer of the same item and judge, else of the same item, else any; in their order.

    The same question put several times gets its several answers in turn, and the last for good.
    """
    for key in _keys(request_hash, request.item_id, request.judge):
        calls = answers.get(key)
        if calls:
            return calls.popleft() if len(calls) > 1 else calls[0]
    return None


def _reply(call: _Call) -> Reply:
    counts: dict[str, Any] = {} if call.tokens is None else msgspec.to_builtins(call.tokens)
    return Reply(
        text=call.text or "",
        outcome=call.outcome,  # type: ignore[arg-type] # it was written as one
        request={"replayed": call.call_id},
        response=None,
        status=None,
        finish_reason=call.finish_reason,
        tokens=Tokens(**counts),
        cost_usd=0.0,
        served_model=call.served_model,
        structured=call.structured,  # type: ignore[arg-type] # it was written as one
    )


def _class_of(call: _Call) -> ErrorClass:
    return call.error_class or "replay_miss"  # type: ignore[return-value] # it was written as one
