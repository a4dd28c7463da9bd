"""When a failed attempt is made again, and how long to wait: the only retry policy of clash.

:func:`decide` is pure; :func:`attempts` is tenacity's loop around it, so that the caller can write
down every attempt as it happens::

    async for attempt in attempts(limits.max_attempts):
        with attempt:
            reply = await provider.complete(request)    # journal the reply, or the ProviderError

What leaves the loop is the reply or the last :class:`ProviderError`, whose ``action`` then is
``fail`` or ``stop``. The vendors' own retries are off: two layers multiply.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import anyio

from clash.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Self

    from tenacity import AsyncRetrying, AttemptManager, RetryCallState

    from clash.errors import Action, ErrorClass

MAX_HINT_S = 120.0
"""A provider that asks for a longer wait is not waited for: the run ends, resumable."""
MAX_DEGRADES = 12
"""More things than one request can be told to leave out; a provider that goes on is broken."""

_BASE_S: Mapping[ErrorClass, float] = {"overloaded": 2.0, "rate_limit": 1.0}
_MOST: Mapping[ErrorClass, int] = {
    "timeout": 3,  # each may have been billed
    "bad_payload": 3,
    "unfinished": 2,  # each was paid for, and a model that does so twice does so again
    "proxy": 2,
}
_FINAL: Mapping[ErrorClass, Action] = {"proxy": "stop"}


@dataclass(frozen=True, slots=True)
class Backoff:
    """How patient we are.

    Attributes:
        attempts: most attempts of one call, the first included.
        base_s: what the first wait is drawn below, where the class of error sets none.
        cap_s: what no wait of our own is drawn above.
    """

    attempts: int = 5
    base_s: float = 0.5
    cap_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from a failed attempt.

    Attributes:
        then: ask again after ``wait_s`` seconds, or give up and leave the call (``fail``) or the
            model (``stop``).
    """

    then: Literal["again", "fail", "stop"]
    wait_s: float = 0.0


def decide(
    error: ProviderError,
    failures: Mapping[ErrorClass, int],
    backoff: Backoff,
    uniform: Callable[[float, float], float],
) -> Decision:
    """What follows from ``error``.

    Args:
        error: what this attempt failed with.
        failures: how often this call has failed so far, by class, this attempt included;
            attempts that were only told to leave something out are under ``unsupported``.
        backoff: how patient we are.
        uniform: draws from [low, high]; full jitter.
    """
    if error.action == "degrade":
        again = failures.get("unsupported", 0) <= MAX_DEGRADES
        return Decision("again") if again else Decision("fail")
    if error.action != "retry":
        return Decision(error.action)
    if error.retry_after is not None and error.retry_after > MAX_HINT_S:
        return Decision("stop")
    kind = error.error_class
    tries = sum(count for name, count in failures.items() if name != "unsupported")
    if tries >= backoff.attempts or failures.get(kind, 1) >= _MOST.get(kind, backoff.attempts):
        return Decision("stop" if _FINAL.get(kind) == "stop" else "fail")
    ceiling = min(backoff.cap_s, _BASE_S.get(kind, backoff.base_s) * 2 ** (tries - 1))
    if error.retry_after is None:
        return Decision("again", uniform(0, ceiling))
    # All that were told the same moment must not come back in the same moment.
    return Decision("again", error.retry_after + uniform(0, min(1.0, ceiling)))


_UNIFORM = random.SystemRandom().uniform


@dataclass
class _Memory:
    """What one call has been through, behind tenacity's callbacks."""

    backoff: Backoff
    uniform: Callable[[float, float], float]
    failures: Counter[ErrorClass] = field(default_factory=Counter)
    wait_s: float = 0.0

    def again(self, state: RetryCallState) -> bool:
        error = state.outcome.exception() if state.outcome else None
        if not isinstance(error, ProviderError):
            return False
        self.failures["unsupported" if error.action == "degrade" else error.error_class] += 1
        decision = decide(error, self.failures, self.backoff, self.uniform)
        self.wait_s = decision.wait_s
        if decision.then == "again":
            return True
        error.action = decision.then
        return False

    def wait(self, _: RetryCallState) -> float:
        return self.wait_s


def attempts(
    most: int = 5,
    *,
    backoff: Backoff | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    uniform: Callable[[float, float], float] = _UNIFORM,
) -> Attempts:
    """The attempts of one call, for ``async for``; make new ones for every call.

    Args:
        most: attempts at most, the first included. Leaving out what a model refuses is not
            counted.
        backoff: replaces ``most`` and the waits.
        sleep: waits; tests pass one that only writes the seconds down.
        uniform: the jitter, from [low, high].
    """
    return Attempts(_Memory(backoff or Backoff(most), uniform), sleep)


class Attempts:
    """A first attempt, and where it fails tenacity's loop, as if it had made that one too.

    Hardly any call fails, and the loop takes 30 us and 5 kB of each.
    """

    def __init__(self, memory: _Memory, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._memory, self._sleep = memory, sleep
        self._first: _First | None = None
        self._loop: AsyncRetrying | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> _First | AttemptManager:
        if self._first is None:
            self._first = _First()
            return self._first
        if self._first.error is None:
            raise StopAsyncIteration
        if self._loop is None:
            self._loop = await self._failed_once(self._first.error)
        return await anext(self._loop)

    async def _failed_once(self, error: ProviderError) -> AsyncRetrying:
        from tenacity import AsyncRetrying

        memory = self._memory
        policy = AsyncRetrying(
            retry=memory.again, wait=memory.wait, sleep=self._sleep, reraise=True
        )
        loop = aiter(policy)
        first = await anext(loop)
        first.retry_state.set_exception((type(error), error, error.__traceback__))
        return loop


class _First:
    """Keeps what the first attempt failed with."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: ProviderError | None = None

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if isinstance(error, ProviderError):
            self.error = error
        return self.error is not None
