"""Calls in flight: really as many as configured, and fewer where an account says so."""

from __future__ import annotations

import anyio
import pytest

from clash.errors import ProviderError
from clash.providers import limits
from clash.providers.limits import START, Limiter, Limiters, _Pace


@pytest.fixture(autouse=True)
def _slow_machine(monkeypatch):
    """No test but those about it sees the growth by time: a machine may stand still for long."""
    monkeypatch.setattr(limits, "_UNANSWERED_S", 3600)


def error(kind="rate_limit", retry_after=None):
    return ProviderError("no", error_class=kind, action="retry", retry_after=retry_after)


class Load:
    """Workers that hold slots until they are told to end, as calls in flight do."""

    def __init__(self, limiter):
        self.limiter = limiter
        self.ending = {}

    async def call(self, name, outcome=None):
        try:
            async with self.limiter.slot():
                self.ending[name] = anyio.Event()
                await self.ending[name].wait()
                if outcome is not None:
                    raise outcome
        except ProviderError:
            pass


async def settle():
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


def test_the_configured_number_is_reached_in_the_second_round():
    """500 in flight from a start at 64: a round is as long as a call."""

    async def main():
        limiter = Limiters(500).of("account")
        rounds = []

        async def worker(calls):
            for _ in range(calls):
                async with limiter.slot():
                    await barrier[-1].wait()

        barrier = [anyio.Event()]
        async with anyio.create_task_group() as tasks:
            for _ in range(500):
                tasks.start_soon(worker, 3)
            while limiter.in_flight or not rounds:
                await settle()
                rounds.append(limiter.in_flight)
                released_event, _ = barrier[-1], barrier.append(anyio.Event())
                released_event.set()
                await settle()
        return rounds, limiter.peak

    rounds, peak = anyio.run(main)
    assert rounds[0] == START
    assert peak == 500
    assert max(rounds[:2]) == 500


@pytest.mark.parametrize(
    ("end", "most"), [(None, 500), ("answered", START + 7), ("refused", START)]
)
def test_room_grows_by_time_until_the_first_call_has_ended(monkeypatch, end, most):
    """Answers take seconds, and an account that allows fewer calls says so at once."""

    async def main():
        load = Load(Limiters(500).of("account"))
        async with anyio.create_task_group() as tasks:
            for n in range(START + 1):
                tasks.start_soon(load.call, n, error() if end == "refused" else None)
            await settle()
            if end is not None:
                load.ending[0].set()
                await settle()
            monkeypatch.setattr(limits, "_UNANSWERED_S", 0)
            for n in range(START + 1, 600):
                tasks.start_soon(load.call, n)
            for _ in range(20):
                await settle()
            in_flight = load.limiter.in_flight
            tasks.cancel_scope.cancel()
        return in_flight

    assert anyio.run(main) == most


def test_a_small_ceiling_is_kept():
    async def main():
        load = Load(Limiter(3))
        async with anyio.create_task_group() as tasks:
            for n in range(10):
                tasks.start_soon(load.call, n)
            await settle()
            assert load.limiter.in_flight == 3
            while load.ending:
                load.ending.pop(next(iter(load.ending))).set()
                await settle()
                assert load.limiter.in_flight <= 3
        assert load.limiter.peak == 3

    anyio.run(main)


def test_the_cap_over_all_accounts_is_kept():
    async def main():
        limiters = Limiters(10)
        loads = [Load(limiters.of(name)) for name in ("a", "b")]
        async with anyio.create_task_group() as tasks:
            for load in loads:
                for n in range(20):
                    tasks.start_soon(load.call, n)
            await settle()
            assert limiters.in_flight == 10
            assert sum(load.limiter.in_flight for load in loads) == 10
            tasks.cancel_scope.cancel()
        assert limiters.in_flight == 0

    anyio.run(main)


def test_an_account_that_waits_holds_nothing_of_the_cap():
    """What waits for a slow account must not keep the others from theirs."""

    async def main():
        limiters = Limiters(10)
        slow, fast = Load(limiters.of("slow", ceiling=2)), Load(limiters.of("fast"))
        async with anyio.create_task_group() as tasks:
            for n in range(50):
                tasks.start_soon(slow.call, n)
            for n in range(50):
                tasks.start_soon(fast.call, n)
            await settle()
            assert (slow.limiter.in_flight, fast.limiter.in_flight) == (2, 8)
            tasks.cancel_scope.cancel()

    anyio.run(main)


def test_a_burst_of_rate_limits_is_one_cut():
    async def main():
        limiter = Limiter(100)
        load = Load(limiter)
        async with anyio.create_task_group() as tasks:
            for n in range(64):
                tasks.start_soon(load.call, n, error())
            await settle()
            assert limiter.in_flight == 64
            for ending in load.ending.values():
                ending.set()
        return limiter

    limiter = anyio.run(main)
    assert limiter.limit == int(64 * 0.7)
    assert limiter.epoch == 1


def test_a_rate_limit_of_a_later_call_cuts_again():
    async def main():
        limiter = Limiter(100)
        for _ in range(3):
            load = Load(limiter)
            async with anyio.create_task_group() as tasks:
                for n in range(limiter.limit):
                    tasks.start_soon(load.call, n, error())
                await settle()
                for ending in load.ending.values():
                    ending.set()
        return limiter

    limiter = anyio.run(main)
    assert limiter.epoch == 3
    assert limiter.limit == int(64 * 0.7**3)


def test_after_a_cut_the_limit_grows_by_a_sixteenth_of_the_ceiling_in_a_round():
    async def main():
        limiter = Limiter(160)
        with pytest.raises(ProviderError):
            async with limiter.slot():
                raise error()
        low = limiter.limit
        load = Load(limiter)
        limits = []
        async with anyio.create_task_group() as tasks:
            for n in range(100):
                tasks.start_soon(load.call, n)
            for _ in range(3):
                await settle()
                limits.append(limiter.limit)
                for ending in list(load.ending.values()):
                    ending.set()
            await settle()
            tasks.cancel_scope.cancel()
        return low, limits

    low, limits = anyio.run(main)
    assert low == 1
    assert limits[:2] == [1, 11]
    assert 17 <= limits[2] <= 21


def test_the_limit_never_falls_below_one():
    async def main():
        limiter = Limiter(64)
        for _ in range(50):
            with pytest.raises(ProviderError):
                async with limiter.slot():
                    raise error()
        return limiter.limit

    assert anyio.run(main) == 1


async def round_of(limiter, outcomes, waiting=0):
    """One round of calls in flight at once, that end as told; more may wait meanwhile."""
    load = Load(limiter)
    async with anyio.create_task_group() as tasks:
        for n, outcome in enumerate(outcomes):
            tasks.start_soon(load.call, n, outcome)
        await settle()
        assert limiter.in_flight == len(outcomes)
        for n in range(waiting):
            tasks.start_soon(load.call, -1 - n)
        await settle()
        for ending in list(load.ending.values()):
            ending.set()
        await settle()
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("kind", ["server", "overloaded", "timeout", "connection"])
@pytest.mark.parametrize(("failures", "grows"), [(6, True), (7, False)])
def test_a_tenth_of_passing_errors_pauses_growth_and_cuts_nothing(kind, failures, grows):
    """They come first here, so that every success of the round finds growth paused."""

    async def main():
        limiter = Limiter(100)
        outcomes = [error(kind)] * failures + [None] * (START - failures)
        await round_of(limiter, outcomes, waiting=200)
        return limiter.limit, limiter.epoch

    assert anyio.run(main) == (100 if grows else START, 0)


@pytest.mark.parametrize(("n_limited", "cut"), [(6, False), (7, True)])
def test_a_few_rate_limits_are_for_retries_and_more_than_a_tenth_for_a_cut(n_limited, cut):
    async def main():
        limiter = Limiter(64)
        await round_of(limiter, [error()] * n_limited + [None] * (64 - n_limited))
        return limiter.limit

    assert anyio.run(main) == (int(64 * 0.7) if cut else 64)


def test_a_small_account_is_cut_at_its_first_rate_limit():
    async def main():
        limiter = Limiter(8)
        await round_of(limiter, [error(), *[None] * 7])
        return limiter.limit

    assert anyio.run(main) == int(8 * 0.7)


def test_rate_limits_that_are_scattered_over_time_cut_nothing():
    async def main():
        limiter = Limiter(100)
        for _ in range(20):
            await round_of(limiter, [error(), error(), *[None] * 62])
        return limiter.epoch

    assert anyio.run(main) == 0


def test_a_cut_starts_from_what_was_in_flight():
    """A limit of 500 of which ten were used is no limit of 350 after a burst."""

    async def main():
        limiter = Limiter(64)
        await round_of(limiter, [error()] * 10)
        return limiter.limit

    assert anyio.run(main) == 7


def test_final_errors_say_nothing_of_the_load():
    async def main():
        limiter = Limiter(500)
        for kind in ("auth", "blocked", "too_long", "unsupported"):
            with pytest.raises(ProviderError):
                async with limiter.slot():
                    raise error(kind)
        return limiter.limit, limiter.epoch

    assert anyio.run(main) == (START, 0)


def test_a_limit_that_is_not_used_does_not_grow():
    async def main():
        limiter = Limiter(500)
        for _ in range(1000):
            async with limiter.slot():
                pass
        return limiter.limit

    assert anyio.run(main) == START


def test_a_hint_holds_the_whole_account():
    """What one call was told is meant for all of its account."""

    async def main():
        time = [100.0]
        waits = []

        async def sleep(seconds):
            waits.append(seconds)
            time[0] += seconds

        limiter = Limiter(10, clock=lambda: time[0], sleep=sleep)
        with pytest.raises(ProviderError):
            async with limiter.slot():
                raise error(retry_after=7.0)
        async with limiter.slot():
            pass
        async with limiter.slot():
            pass
        return waits

    assert anyio.run(main) == [7.0]


def test_a_bug_or_a_cancellation_gives_the_room_back():
    async def main():
        limiter = Limiters(2).of("account")
        with pytest.raises(ZeroDivisionError):
            async with limiter.slot():
                raise ZeroDivisionError
        with anyio.move_on_after(0.01):
            async with limiter.slot():
                await anyio.sleep(10)
        return limiter.in_flight, limiter.limit

    assert anyio.run(main) == (0, 2)


def test_cancelling_one_that_waits_leaves_nothing_behind():
    async def main():
        limiters = Limiters(1)
        limiter = limiters.of("account")
        async with limiter.slot():
            with anyio.move_on_after(0.01):
                async with limiter.slot():
                    raise AssertionError("there was no room")
        async with limiter.slot():
            return limiter.in_flight, limiters.in_flight

    assert anyio.run(main) == (1, 1)


def test_models_at_one_account_share_its_limiter():
    limiters = Limiters(100)
    assert limiters.of("a") is limiters.of("a", ceiling=5)
    assert limiters.of("a") is not limiters.of("b")


@pytest.mark.parametrize("limit", [5, 40, 150])
def test_an_account_with_a_rate_is_used_and_hardly_ever_asked_too_often(limit):
    """The account allows so many calls a second, the client could make 200."""
    pace, now, level = _Pace(), 0.0, float(limit)
    refusals, answers = [], []
    while now < 300:
        step = max(pace.wait_s(now), 1 / 200)
        now, level = now + step, min(limit, level + step * limit)
        if level >= 1:
            level -= 1
            answers.append(now)
            pace.on_success(now)
        else:
            refusals.append(now)
            pace.on_rate_limit(now, cut=True)
    later = sum(moment > 100 for moment in refusals) / sum(moment > 100 for moment in answers)
    assert later < 0.01
    assert sum(moment > 100 for moment in answers) > 0.85 * 200 * limit


def test_no_account_is_paced_for_429s_that_are_scattered():
    pace = _Pace()
    for second in range(100):
        pace.on_success(second)
        pace.on_rate_limit(second, cut=False)
    assert pace.per_second is None


def test_an_outage_leaves_half_of_the_pace():
    pace = _Pace()
    for tenth in range(21):
        pace.on_success(tenth / 10)
    pace.on_rate_limit(2, cut=True)
    before = pace.per_second
    for second in range(3, 3600):
        pace.on_rate_limit(second, cut=True)
    assert pace.per_second == pytest.approx(before / 2)
    for call in range(100):
        pace.on_success(3600 + call / 10)
    assert 0.9 * before < pace.per_second < before


def test_a_rate_that_fell_is_not_taken_for_an_outage():
    pace = _Pace()
    for tenth in range(21):
        pace.on_success(tenth / 10)
    pace.on_rate_limit(2, cut=True)
    for second in range(4, 40):  # some answers come all the while
        pace.on_success(second)
        pace.on_rate_limit(second + 0.5, cut=True)
    after = pace.per_second
    for call in range(100):
        pace.on_success(60 + call / 10)
    assert pace.per_second < 1.1 * after


@pytest.mark.parametrize("one_in", [50, 20, 10, 7, 4, 2])
def test_an_account_that_turns_down_calls_at_any_pace_does_not_stop_a_run(one_in):
    pace, now = _Pace(), 0.0
    for call in range(150):
        now = call / 50
        pace.on_success(now)
    for call in range(3000):
        now += pace.wait_s(now)
        if call % one_in:
            pace.on_success(now)
        else:
            pace.on_rate_limit(now, cut=True)
    assert now < 150


@pytest.mark.parametrize("remaining_calls", [0.6, 0.45, 0.25, 0.1])
def test_a_limit_that_fell_is_not_taken_for_refusals_at_random(remaining_calls):
    """Of 40 calls a second an account suddenly allows so many fewer."""
    pace, now, level = _Pace(), 0.0, 40.0
    refusals = answers = 0
    while now < 400:
        n_allowed = 40 if now < 100 else 40 * remaining_calls
        step = max(pace.wait_s(now), 1 / 200)
        now, level = now + step, min(n_allowed, level + step * n_allowed)
        is_answered = level >= 1
        level -= is_answered
        if is_answered:
            pace.on_success(now)
        else:
            pace.on_rate_limit(now, cut=True)
        refusals += now > 200 and not is_answered
        answers += now > 200 and is_answered
    assert refusals < 0.02 * answers
    assert answers > 0.8 * 200 * 40 * remaining_calls
