"""When a failed attempt is made again, and how long to wait: the only retry policy of clash.

:func:`decide` is pure. :class:`RetryPolicy` answers tenacity's questions with it (retry? stop? how
long to wait?), and :func:`attempts` is tenacity's loop under that policy, so that the caller can
record every attempt as it happens::

    async for attempt in attempts(limits.max_attempts):
        with attempt:
            reply = await provider.complete(request)    # journal the reply, or the ProviderError

The loop ends with the reply, or raises the last :class:`ProviderError`, whose ``action`` then is
``fail`` or ``stop``. Any other exception, a cancellation included, leaves the loop at once. The
vendors' own retries are off: two layers multiply.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NoReturn

import anyio

from clash.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from tenacity import AsyncRetrying, RetryCallState

    from clash.errors import Action, ErrorClass

MAX_HINT_S = 120.0
"""Where a provider asks for a longer wait, the run ends, resumable."""
MAX_DEGRADES = 12
"""More than one request has parts to leave out; a provider that refuses more is broken."""

_BASE_S: Mapping[ErrorClass, float] = {"overloaded": 2.0, "rate_limit": 1.0}
# A 429 or 529 says nothing about the call, only that others came before it: of a million calls some
# meet five in a row. Those classes have every attempt there is.
_MAX_ATTEMPTS: Mapping[ErrorClass, int] = {
    "server": 5,
    "connection": 5,
    "incomplete_stream": 5,
    "timeout": 3,  # each may have been billed
    "bad_payload": 3,
    "unfinished": 2,  # each was paid for, and a model that does so twice does so again
    "proxy": 2,
}
_FINAL: Mapping[ErrorClass, Action] = {"proxy": "stop"}


@dataclass(frozen=True, slots=True)
class Backoff:
    """How many attempts, and how far apart.

    Attributes:
        attempts: most attempts of one call, the first included.
        base_s: upper bound of the first wait in seconds, where the class of error sets none.
        cap_s: upper bound of every wait that no provider asked for.
    """

    attempts: int = 8
    base_s: float = 0.5
    cap_s: float = 60.0


@dataclass(frozen=True, slots=True)
class RetryDecision:
    """What follows from a failed attempt.

    Attributes:
        then: ask again after ``wait_s`` seconds, or give up on the call (``fail``) or on the
            model (``stop``).
    """

    then: Literal["again", "fail", "stop"]
    wait_s: float = 0.0


def decide(
    error: ProviderError,
    failures: Mapping[ErrorClass, int],
    backoff: Backoff,
    uniform: Callable[[float, float], float],
) -> RetryDecision:
    """What follows from ``error``.

    Args:
        error: the failure of this attempt.
        failures: how often this call has failed so far, by class, this attempt included;
            attempts that were only told to leave something out are under ``unsupported``.
        backoff: how many attempts, and how far apart.
        uniform: draws from [low, high]; full jitter.
    """
    if error.action == "degrade":
        again = failures.get("unsupported", 0) <= MAX_DEGRADES
        return RetryDecision("again") if again else RetryDecision("fail")
    if error.action != "retry":
        return RetryDecision(error.action)
    if error.retry_after is not None and error.retry_after > MAX_HINT_S:
        return RetryDecision("stop")
    kind = error.error_class
    tries = sum(count for name, count in failures.items() if name != "unsupported")
    most = _MAX_ATTEMPTS.get(kind, backoff.attempts)
    if tries >= backoff.attempts or failures.get(kind, 1) >= most:
        return RetryDecision("stop" if _FINAL.get(kind) == "stop" else "fail")
    ceiling = min(backoff.cap_s, _BASE_S.get(kind, backoff.base_s) * 2 ** (tries - 1))
    if error.retry_after is None:
        return RetryDecision("again", uniform(0, ceiling))
    # Calls that got the same hint at the same moment must not all come back at the same moment.
    return RetryDecision("again", error.retry_after + uniform(0, min(1.0, ceiling)))


_UNIFORM = random.SystemRandom().uniform


@dataclass
class RetryPolicy:
    """tenacity's callbacks for the attempts of one call; they run in the order of the methods.

    Attributes:
        failures: failed attempts of the call so far, by class.
        decision: what follows from the last of them.
    """

    backoff: Backoff
    uniform: Callable[[float, float], float] = _UNIFORM
    failures: Counter[ErrorClass] = field(default_factory=Counter)
    decision: RetryDecision = field(default_factory=lambda: RetryDecision("again"))

    def retry(self, state: RetryCallState) -> bool:
        """Whether the failure is one that another attempt may mend; a bug never is."""
        error = state.outcome.exception() if state.outcome else None
        return isinstance(error, ProviderError) and error.action in ("retry", "degrade")

    def after(self, state: RetryCallState) -> None:
        """Record the failure, and decide what follows from it."""
        error = _failure_of(state)
        self.failures["unsupported" if error.action == "degrade" else error.error_class] += 1
        self.decision = decide(error, self.failures, self.backoff, self.uniform)

    def wait(self, _: RetryCallState) -> float:
        """Seconds until the next attempt."""
        return self.decision.wait_s

    def stop(self, _: RetryCallState) -> bool:
        """Whether there is no next attempt."""
        return self.decision.then != "again"

    def give_up(self, state: RetryCallState) -> NoReturn:
        """Raise the last failure with the action that is left.

        Raises:
            ProviderError: always.
        """
        error = _failure_of(state)
        if self.decision.then != "again":
            error.action = self.decision.then
        raise error


def _failure_of(state: RetryCallState) -> ProviderError:
    error = state.outcome.exception() if state.outcome else None
    assert isinstance(error, ProviderError)  # noqa: S101 - `retry` has said so
    return error


def attempts(
    most: int = 8,
    *,
    backoff: Backoff | None = None,
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    uniform: Callable[[float, float], float] = _UNIFORM,
) -> AsyncRetrying:
    """The attempts of one call, for ``async for``; each call needs its own.

    Args:
        most: attempts at most, the first included. Leaving out what a model refuses is not
            counted.
        backoff: replaces ``most`` and the waits.
        sleep: waits; tests pass one that only notes the seconds.
        uniform: the jitter, from [low, high].
    """
    from tenacity import AsyncRetrying  # 50 ms, which commands that call no model do not pay

    policy = RetryPolicy(backoff or Backoff(most), uniform)
    return AsyncRetrying(
        retry=policy.retry,
        after=policy.after,
        wait=policy.wait,
        stop=policy.stop,
        retry_error_callback=policy.give_up,
        sleep=sleep,
    )
