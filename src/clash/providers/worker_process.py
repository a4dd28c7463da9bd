"""A worker process: makes the attempts that its broker sends it, and ends with the broker.

Started by :mod:`clash.providers.workers` with one end of a socket pair. It decides nothing: when to
call, whether to repeat a call, and what may be spent is the broker's, and so is every record.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
import struct
import sys
import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clash.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clash.config import Limits, ModelRef
    from clash.providers.base import Provider, Reply, Request

_TOO_DEEP: tuple[str, dict[str, Any]] = (
    "the answer is nested too deeply to be sent on",
    {"error_class": "bad_payload", "action": "fail", "maybe_billed": True},
)
HEAD = struct.Struct(">I")
"""Before each message: its length in bytes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The first message to a worker: what it needs to open a model.

    Attributes:
        beat_s: seconds between two signs of life.
    """

    environ: Mapping[str, str]
    limits: Limits
    beat_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """A message to a worker: make this attempt.

    Attributes:
        number: names the attempt in the outcome.
        model: number of the model; ``ref`` comes with the first attempt at it only.
    """

    number: int
    model: int
    ref: ModelRef | None
    request: Request


@dataclass(frozen=True, slots=True)
class AttemptOutcome:
    """A message from a worker: how an attempt ended. A null in its place is a sign of life.

    Attributes:
        reply: the answer; null where there is none.
        failure: the text and the fields of the :class:`ProviderError`, where that is the reason.
        bug: the traceback, where anything else is.
    """

    number: int
    reply: Reply | None = None
    failure: tuple[str, dict[str, Any]] | None = None
    bug: str | None = None


def pack(message: object) -> bytes:
    """A message with its length."""
    # Both ends are this program: the socket pair has no name that another process could open, and
    # a cluster of Ray loads nothing but pickles itself.
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return HEAD.pack(len(data)) + data


def unpack(message: bytes) -> Any:  # noqa: ANN401 - any message
    """What :func:`pack` packed."""
    return pickle.loads(message[HEAD.size :])  # noqa: S301 - see pack


async def receive(reader: asyncio.StreamReader) -> Any:  # noqa: ANN401 - any message
    """The next message.

    Raises:
        EOFError: the other process has ended.
    """
    try:
        (size,) = HEAD.unpack(await reader.readexactly(HEAD.size))
        return pickle.loads(await reader.readexactly(size))  # noqa: S301 - see pack
    except (asyncio.IncompleteReadError, ConnectionError):
        raise EOFError from None


class AttemptMaker:
    """Makes attempts, with a model's connection kept open from its first attempt on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._providers: dict[int, Provider] = {}

    async def answer(self, attempt: Attempt) -> bytes:
        """Make an attempt: the packed :class:`AttemptOutcome`."""
        try:
            return pack(await self._outcome(attempt))
        except RecursionError:
            return pack(AttemptOutcome(attempt.number, failure=_TOO_DEEP))
        except BaseException:  # noqa: BLE001 - the broker raises it where the run can end
            return pack(AttemptOutcome(attempt.number, bug=traceback.format_exc()))

    async def _outcome(self, attempt: Attempt) -> AttemptOutcome:
        try:
            reply = await self._provider(attempt).complete(attempt.request)
        except ProviderError as error:
            return AttemptOutcome(attempt.number, failure=(error.message, vars(error)))
        return AttemptOutcome(attempt.number, reply)

    def _provider(self, attempt: Attempt) -> Provider:
        if attempt.model not in self._providers:
            from clash.providers import open_provider

            if attempt.ref is None:
                raise AssertionError("a worker was asked for a model that it does not know")
            self._providers[attempt.model] = open_provider(
                attempt.ref, environ=self._settings.environ, limits=self._settings.limits
            )
        return self._providers[attempt.model]


async def _beat(writer: asyncio.StreamWriter, seconds: float) -> None:
    """Tell the broker time and again that this process works."""
    sign = pack(None)
    while True:
        writer.write(sign)
        await asyncio.sleep(seconds)


async def _answer(maker: AttemptMaker, attempt: Attempt, writer: asyncio.StreamWriter) -> None:
    writer.write(await maker.answer(attempt))


async def _serve(end: socket.socket) -> None:
    reader, writer = await asyncio.open_connection(sock=end)
    try:
        settings = await receive(reader)
        maker = AttemptMaker(settings)
        tasks = {asyncio.create_task(_beat(writer, settings.beat_s))}
        while True:
            task = asyncio.create_task(_answer(maker, await receive(reader), writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
    except EOFError:
        # Whoever wanted the answers is gone: leave at once, calls in flight included.
        os._exit(0)


def main() -> None:
    """Work on the socket whose number is the first argument."""
    # A closed terminal and a cluster's time limit tell every process; the broker, which waits for
    # the answers in flight, says when to end.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
