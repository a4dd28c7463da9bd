"""How many calls are in flight: adaptive for each account, with one cap over all.

Slow start: the limit of an account begins at 64, grows by as many every tenth of a second until the
first call has ended, and then eightfold in a round of successes, up to its ceiling: an account that
allows fewer says so at once, and answers take seconds. Where more than a tenth of a round is answered 429, the limit is cut once for the whole
burst to 70%, and grows by a sixteenth of the ceiling a round from then on. More than a tenth of
transient failures of any kind pauses growth. Below that, retries are enough: an account that turns
down one call in twenty is well used.

Most vendors limit calls a minute and not calls in flight. So an account that has had its limit cut
is also paced: calls begin at nine tenths of the rate at which it answered, and each further 429 takes
away 7%. In between the pace grows, by 7% in some 300 calls, and faster the longer it holds. After an
outage it is back within a hundred calls at nine tenths of the last rate that the account kept.

Some accounts turn calls down at random, at any pace: a slower one would only be slower. Where fewer
than a tenth are turned down, the pace keeps three quarters of its best. Where there are more, it falls
to half and compares: if as many are turned down as before, it goes back to where it fell from.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio

from clash.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

START = 64
_GROWTH = 7.0
"""Added to the limit for each success in slow start: a round of them makes eight of one."""
_UNANSWERED_S = 0.1
"""Seconds after which :data:`START` more calls may begin where none has ended yet."""
_CUT = 0.7
_STEPS = 16
_TENTH = 10
_WINDOW_S = 5.0
"""Seconds over which answers are counted."""
_SHORTEST_S = 1.0
"""Fewer seconds tell nothing about a rate; also the least time between two changes of it for a 429."""
_SHARE = 0.9
_BACK = 0.93
_LEAST = 0.5
"""A pace falls no further than to this part of what it was when the last answer came: without any
answer nobody knows how many are allowed, and after an outage it would take hours to grow again."""
_GAIN = 0.0002
_RETURN = 0.01
"""What each answer adds to a pace that is below :data:`_SHARE` of the last one known to be kept."""
_FEW = 0.1
"""Where fewer calls than this part are answered 429, the pace falls no further than to :data:`_FLOOR` of
the highest one at which it was so: some accounts turn down a few calls at random, at any pace."""
_FLOOR = 0.75
_HIGH = 0.7
_LOW = 0.5
"""A fall compares the calls above and below these parts of the pace that it began at."""
_FEWEST = 10, 20
"""Answers above and below that a comparison needs."""
_LOW_CALLS, _LOW_REFUSALS = 40, 8
"""Calls below that it needs, and how many must be expected to be turned down if the pace is nothing to them."""
_BETTER = 1.3
"""A limit answers twice the share of calls at half of the pace, and random refusals the same share."""
_CALM = 100
"""So many answers in a row end a fall."""
_MEMORY = 300
"""Calls over which the part that is answered 429 is smoothed."""
_SLOWEST = 0.05
"""Calls a second: three a minute, the lowest limit of a vendor."""
_PATIENCE = 500
"""The pace grows twice as fast once it has held for so many calls, three times after twice as many."""
_TRANSIENT = frozenset({"overloaded", "server", "timeout", "connection", "incomplete_stream"})


@dataclass(slots=True)
class _Round:
    """As many ends of calls as there have been calls in flight.

    Attributes:
        peak: the most in flight since it began.
        ends: calls that have ended.
        rate_limits: of these, answered 429.
        troubles: of these, failed in any way that passes (429 included).
    """

    peak: int = 1
    ends: int = 0
    rate_limits: int = 0
    troubles: int = 0

    def over(self, count: int) -> bool:
        """Whether ``count`` is more than a tenth of the calls in flight."""
        return count * _TENTH > self.peak


@dataclass(slots=True)
class _Fall:
    """What was answered since a pace began to fall: near its height, and at half of it.

    Attributes:
        top: calls a second at the beginning.
        high: calls near it, and ``high_answers`` those of them that were answered.
        low: calls at half of it and below, and ``low_answers`` those that were answered.
    """

    top: float
    high: int = 0
    high_answers: int = 0
    low: int = 0
    low_answers: int = 0

    def count(self, per_second: float, *, is_answered: bool) -> None:
        """Count the end of a call made at so many a second."""
        if per_second >= _HIGH * self.top:
            self.high += 1
            self.high_answers += is_answered
        elif per_second <= _LOW * self.top:
            self.low += 1
            self.low_answers += is_answered

    @property
    def ends_early(self) -> bool:
        """Whether it came to half of its height too soon to compare anything with it."""
        return self.low > 0 and self.high_answers < _FEWEST[0]

    def random_share(self) -> float | None:
        """The share of calls that is turned down whatever the pace; null where that is not so, or not clear."""
        n_refused = self.high - self.high_answers
        if self.low_answers < _FEWEST[1] or self.low < _LOW_CALLS or not n_refused:
            return None
        if self.low * n_refused < _LOW_REFUSALS * self.high:
            return None
        share_high, share_low = n_refused / self.high, 1 - self.low_answers / self.low
        is_random = share_low > share_high / 2 and 1 - share_low < _BETTER * (1 - share_high)
        return share_low if is_random else None


class _Pace:
    """How many calls a second may begin; null until a limit has been met.

    Attributes:
        per_second: calls a second.
    """

    def __init__(self) -> None:
        self.per_second: float | None = None
        self._answer_times = deque[float]()
        self._first_answer: float | None = None
        self._next_start = 0.0
        self._change_time = 0.0
        self._n_steady = 0
        self._least_per_second = 0.0
        self._kept_per_second = 0.0
        self._usual_per_second = 0.0
        self._turned_down = 0.0
        self._few = _FEW
        self._fall = _Fall(0.0)

    def wait_s(self, now: float) -> float:
        """Take the next turn; the seconds until it comes."""
        if self.per_second is None:
            return 0.0
        start = max(now, self._next_start)
        self._next_start = start + 1 / self.per_second
        return start - now

    def on_success(self, now: float) -> None:
        """Count an answer, and grow a little."""
        if self._first_answer is None:
            self._first_answer = now
        self._answer_times.append(now)
        while self._answer_times[0] < now - _WINDOW_S:
            self._answer_times.popleft()
        self._n_steady += 1
        self._turned_down -= self._turned_down / _MEMORY
        if self.per_second is not None:
            self.per_second *= 1 + _GAIN * (1 + self._n_steady / _PATIENCE)
            if self.per_second < _SHARE * self._kept_per_second:
                self.per_second *= 1 + _RETURN
            self._least_per_second = _LEAST * self.per_second
            self._fall.count(self.per_second, is_answered=True)

    def on_rate_limit(self, now: float, *, cut: bool) -> None:
        """Slow down, at most once a second; ``cut`` says that a burst was turned down."""
        self._turned_down += (1 - self._turned_down) / _MEMORY
        if self.per_second is not None:
            self._compare(self.per_second)
        if now - self._change_time < _SHORTEST_S:
            return
        if self.per_second is not None:
            if self._n_steady:  # else nothing is answered: an outage says nothing of the rate
                self._kept_per_second = self.per_second
            self._change(now, min(self.per_second, self._slower(self.per_second)))
        elif cut and self._first_answer is not None:
            seconds = min(_WINDOW_S, now - self._first_answer)
            recent = sum(moment > now - _WINDOW_S for moment in self._answer_times)
            if seconds >= _SHORTEST_S and recent:
                self._kept_per_second = _SHARE * recent / seconds
                self._least_per_second = _LEAST * self._kept_per_second
                self._change(now, self._kept_per_second)
                self._fall = _Fall(self._kept_per_second)

    def _compare(self, per_second: float) -> None:
        """Count a 429 of the fall; go back to its height where falling changes nothing."""
        if self._n_steady >= _CALM or self._fall.ends_early:
            self._fall = _Fall(per_second)
        self._fall.count(per_second, is_answered=False)
        if (share := self._fall.random_share()) is not None:
            self.per_second = self._usual_per_second = self._fall.top
            self._turned_down, self._few = share, 1 - _FLOOR * (1 - share)
            self._fall = _Fall(self.per_second)

    def _slower(self, per_second: float) -> float:
        """The pace after a 429 at ``per_second``."""
        if self._turned_down < self._few:
            self._usual_per_second = max(self._usual_per_second, per_second)
        else:
            self._usual_per_second, self._few = 0.0, _FEW
        least = max(self._least_per_second, _FLOOR * self._usual_per_second, _SLOWEST)
        return max(_BACK * per_second, least)

    def _change(self, now: float, per_second: float) -> None:
        self.per_second, self._change_time, self._n_steady = per_second, now, 0


class Limiter:
    """The calls in flight to one account.

    ::

        async with limiter.slot():
            reply = await provider.complete(request)

    A slot learns from what leaves it: a :class:`ProviderError`, or none.

    Attributes:
        ceiling: the most that it may grow to.
        in_flight: calls that hold a slot now.
        peak: the most there have been.
    """

    def __init__(
        self,
        ceiling: int,
        total: anyio.CapacityLimiter | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self.ceiling = ceiling
        self.in_flight = 0
        self.peak = 0
        self.epoch = 0
        self._limit = float(min(START, ceiling))
        self._slow_start = True
        self._is_unanswered = True
        self._waiting = 0
        self._round = _Round()
        self._held_until = 0.0
        self._pace = _Pace()
        self._tokens = anyio.CapacityLimiter(self.limit)
        self._total = total
        self._clock = clock
        self._sleep = sleep

    @property
    def limit(self) -> int:
        """The most in flight at this moment."""
        return max(1, int(self._limit))

    def slot(self, capacity: anyio.CapacityLimiter | None = None) -> Slot:
        """Room for one attempt, as an async context manager.

        Args:
            capacity: room that a model has besides; null without a limit of its own.
        """
        return Slot(self, capacity)

    def try_acquire(self, borrower: object) -> bool:
        """Take room where there is some and no wait is due."""
        if self._pace.per_second is not None or self._held_until > self._clock():
            return False
        try:
            self._tokens.acquire_on_behalf_of_nowait(borrower)
        except anyio.WouldBlock:
            return False
        try:
            if self._total is not None:
                self._total.acquire_on_behalf_of_nowait(borrower)
        except anyio.WouldBlock:
            self._tokens.release_on_behalf_of(borrower)
            return False
        self._begin_call()
        return True

    async def acquire(self, borrower: object) -> None:
        """Wait for room at this account, then for room under the cap over all."""
        self._waiting += 1
        try:
            await self._acquire_token(borrower)
        finally:
            self._waiting -= 1
        try:
            await self._wait_for_hint()
            if (wait := self._pace.wait_s(self._clock())) > 0:
                await self._sleep(wait)
                await self._wait_for_hint()
            if self._total is not None:
                await self._total.acquire_on_behalf_of(borrower)
        except BaseException:
            self._tokens.release_on_behalf_of(borrower)
            raise
        self._begin_call()

    async def _acquire_token(self, borrower: object) -> None:
        """Wait for room at this account; it grows by itself until a call has ended."""
        while self._is_unanswered and self._limit < self.ceiling:
            limit = self._limit
            with anyio.move_on_after(_UNANSWERED_S):
                await self._tokens.acquire_on_behalf_of(borrower)
                return
            self._grow_unanswered(limit)
        await self._tokens.acquire_on_behalf_of(borrower)

    def _grow_unanswered(self, limit: float) -> None:
        """Allow more calls, unless one has ended or another that waited was first."""
        if self._is_unanswered and self._limit == limit:
            self._set(limit + START)

    def _begin_call(self) -> None:
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        self._round.peak = max(self._round.peak, self.in_flight)

    async def _wait_for_hint(self) -> None:
        while (wait := self._held_until - self._clock()) > 0:
            await self._sleep(wait)

    def release(self, borrower: object) -> None:
        """Give the room back."""
        self.in_flight -= 1
        if self._total is not None:
            self._total.release_on_behalf_of(borrower)
        self._tokens.release_on_behalf_of(borrower)

    def on_success(self) -> None:
        """Grow, unless growth is paused or nobody waits for more room."""
        self._is_unanswered = False
        self._pace.on_success(self._clock())
        grows = not self._round.over(self._round.troubles)
        if self._waiting and self._limit < self.ceiling and grows:
            step = _GROWTH if self._slow_start else max(1.0, self.ceiling / _STEPS) / self._limit
            self._set(self._limit + step)
        self._end_call()

    def on_failure(self, error: ProviderError, epoch: int) -> None:
        """Learn from a failure of an attempt that began in ``epoch``."""
        self._is_unanswered = False
        # Calls in flight at the last cut belong to the burst that caused it: one cut a burst.
        is_rate_limit = error.error_class == "rate_limit" and epoch == self.epoch
        self._round.rate_limits += is_rate_limit
        self._round.troubles += is_rate_limit or error.error_class in _TRANSIENT
        is_cut = self._round.over(self._round.rate_limits)
        if error.error_class == "rate_limit":
            self._pace.on_rate_limit(self._clock(), cut=is_cut)
        if is_cut:
            self._cut(error.retry_after or 0.0)
        else:
            self._end_call()

    def _end_call(self) -> None:
        self._round.ends += 1
        if self._round.ends >= self._round.peak:
            self._round = _Round(max(1, self.in_flight - 1))

    def _cut(self, seconds: float) -> None:
        """Lower the limit, and start no call for ``seconds``: a hint to one call holds for all."""
        self._held_until = max(self._held_until, self._clock() + seconds)
        self._slow_start = False
        self.epoch += 1
        self._set(min(self._limit, self._round.peak) * _CUT)
        self._round = _Round(max(1, self.in_flight - 1))

    def _set(self, limit: float) -> None:
        self._limit = min(float(self.ceiling), max(1.0, limit))
        if self._tokens.total_tokens != self.limit:
            self._tokens.total_tokens = self.limit


class Slot:
    """Room for one attempt at an account.

    Args:
        limiter: of the account.
        capacity: room that a model has besides, whoever asks it; null without a limit of its own.

    Attributes:
        is_taken: it holds the room.
    """

    __slots__ = ("_capacity", "_epoch", "_limiter", "is_taken")

    def __init__(self, limiter: Limiter, capacity: anyio.CapacityLimiter | None = None) -> None:
        self._limiter = limiter
        self._capacity = capacity
        self._epoch = 0
        self.is_taken = False

    def take(self) -> bool:
        """Take the room at once, where there is some; nearly every call finds it so."""
        self.is_taken = self._capacity is None and self._limiter.try_acquire(self)
        return self.is_taken

    async def wait(self) -> None:
        """Take the room once there is some; a wait that is cancelled takes none."""
        if self._capacity is not None:
            await self._capacity.acquire_on_behalf_of(self)
        try:
            await self._limiter.acquire(self)
            self.is_taken = True
        finally:
            if not self.is_taken:
                self._release_capacity()

    async def __aenter__(self) -> None:
        if not self.is_taken:
            await self.wait()
        self._epoch = self._limiter.epoch

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self._limiter.on_success()
        elif isinstance(error, ProviderError):
            self._limiter.on_failure(error, self._epoch)
        self._limiter.release(self)
        self._release_capacity()

    def _release_capacity(self) -> None:
        if self._capacity is not None:
            self._capacity.release_on_behalf_of(self)


class Limiters:
    """One limiter for each account, under one cap over all.

    Args:
        total: the most calls in flight over all accounts (``limits.concurrency``).
    """

    def __init__(self, total: int) -> None:
        self._total = anyio.CapacityLimiter(total)
        self._limiters: dict[str, Limiter] = {}

    @property
    def in_flight(self) -> int:
        """Calls in flight over all accounts."""
        return int(self._total.borrowed_tokens)

    def of(self, account: str, ceiling: int | None = None) -> Limiter:
        """The limiter of ``account``; the first to ask sets its ceiling."""
        if account not in self._limiters:
            most = int(self._total.total_tokens)
            self._limiters[account] = Limiter(min(ceiling or most, most), self._total)
        return self._limiters[account]
